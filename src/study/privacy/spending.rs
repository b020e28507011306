//! F1 and delay against what is really spent: ε composed over a day, at one δ for all.

use serde::Serialize;

use super::flags::{Clients, Told};
use super::{PrivacyStudyError, bed, mean};
use crate::privacy::{Manner, Response, Tally};
use crate::session::Proprietary;
use crate::study::detection::{Heard, Setup, Spoken};

/// δ of every composed ε.
const DELTA: f64 = 1e-5;

/// The watch of the thrifty manner: ε of an arming, symbols after an alarm.
pub const WATCH: (f64, u64) = (8.0, 10);

/// Steps in a window.
pub const WINDOW: u64 = 5;

/// ε of an answer that is kept.
pub const PERMANENT: f64 = 4.0;

/// Where it is measured.
pub const FAMILIES: [&str; 2] = ["A2", "B4"];

/// One method at one ε.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpendingRow {
    /// The family.
    pub family: &'static str,
    /// Mode and manner.
    pub method: String,
    /// ε of each flag or symbol; none where they are sent as they are.
    pub epsilon_flag: Option<f64>,
    /// δ of `epsilon_day`.
    pub delta: f64,
    /// ε of a day of the client that spent most; none where something is sent as it is.
    pub epsilon_day: Option<f64>,
    /// The same by adding up.
    pub basic_day: Option<f64>,
    /// Releases of that client in a day.
    pub releases_day: u64,
    /// Seeds.
    pub seeds: usize,
    /// Incidents with the right root, of all incidents.
    pub precision: Option<f64>,
    /// Events so answered, of all events.
    pub recall: Option<f64>,
    /// Their harmonic mean.
    pub f1: Option<f64>,
    /// Time from an event to its alarm, seconds: the median of a seed in evidence mode, the mean to
    /// the first right name in paper mode.
    pub delay_s: Option<f64>,
    /// False alarms a day.
    pub false_alarms_per_day: Option<f64>,
}

const EPSILONS: [Option<f64>; 7] =
    [Some(0.5), Some(1.0), Some(2.0), Some(3.0), Some(4.0), Some(8.0), None];
const QUICK: [Option<f64>; 4] = [Some(1.0), Some(2.0), Some(4.0), None];

/// Both modes on two families, every manner of sending symbols among them.
pub fn spending(seeds: &[u64], quick: bool) -> Result<Vec<SpendingRow>, PrivacyStudyError> {
    let epsilons: &[Option<f64>] = if quick { &QUICK } else { &EPSILONS };
    let mut rows = Vec::new();
    for family in FAMILIES {
        rows.extend(evidence(family, seeds, epsilons)?);
        rows.extend(paper(family, seeds, epsilons, quick)?);
    }
    Ok(rows)
}

/// What a day costs at the pace of a watch.
fn day(released: &[Tally], seconds: f64) -> (Tally, f64) {
    let days = released.iter().map(|tally| tally.times(86_400.0 / seconds));
    days.map(|tally| {
        let epsilon = tally.epsilon(DELTA).0;
        (tally, epsilon)
    })
    .reduce(|a, b| if b.1 > a.1 { b } else { a })
    .unwrap_or((Tally::NOTHING, 0.0))
}

fn evidence(
    family: &'static str,
    seeds: &[u64],
    epsilons: &[Option<f64>],
) -> Result<Vec<SpendingRow>, PrivacyStudyError> {
    let setup = Setup { decimate: Some(1), ..Setup::new(Proprietary::Linear) };
    let heard = seeds.iter().map(|seed| Heard::fit(bed(family), *seed, &setup));
    let heard = heard.collect::<Result<Vec<_>, _>>()?;
    let Some(first) = heard.first() else { return Ok(Vec::new()) };
    let manners = [
        ("evidence, every step", Manner::EveryStep, false),
        ("evidence, every step, one bit", Manner::EveryStep, true),
        ("evidence, strongest of 5 steps", Manner::Window { steps: WINDOW }, false),
        ("evidence, while raised", Manner::WhileRaised(first.vigil(WATCH.0, WATCH.1)), false),
        ("evidence, kept answers", Manner::Memoised { permanent: PERMANENT }, false),
    ];
    let mut rows = Vec::new();
    for (method, manner, one_bit) in manners {
        for &epsilon in epsilons {
            // Saving is about a price: without one there is the plain manner only.
            if epsilon.is_none() && manner != Manner::EveryStep {
                continue;
            }
            let spoken = heard.iter().map(|heard| heard.spoken(epsilon, manner, one_bit));
            let spoken: Vec<Spoken> = spoken.collect::<Result<_, _>>()?;
            let days: Vec<(Tally, f64)> =
                spoken.iter().map(|s| day(&s.released, s.seconds)).collect();
            let alarms = |s: &Spoken| s.judged.false_alarms.len() as f64 * 86_400.0 / s.seconds;
            rows.push(SpendingRow {
                epsilon_flag: epsilon,
                precision: mean(spoken.iter().map(|s| s.judged.precision)),
                recall: mean(spoken.iter().map(|s| s.judged.recall)),
                f1: mean(spoken.iter().map(|s| s.judged.f1)),
                delay_s: mean(spoken.iter().map(|s| s.judged.delay_s)),
                false_alarms_per_day: mean(spoken.iter().map(|s| Some(alarms(s)))),
                ..priced(family, method, &days)
            });
        }
    }
    Ok(rows)
}

fn paper(
    family: &'static str,
    seeds: &[u64],
    epsilons: &[Option<f64>],
    quick: bool,
) -> Result<Vec<SpendingRow>, PrivacyStudyError> {
    let clients = seeds.iter().map(|seed| Clients::new(bed(family), *seed, quick));
    let clients: Vec<Clients> = clients.collect::<Result<_, _>>()?;
    let flagged = clients.iter().map(Clients::flagged).collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for (source, &epsilon) in (100..).zip(epsilons) {
        let response = epsilon.map(Response::binary).transpose()?;
        let told = flagged.iter().map(|f| f.told(response, response, source));
        let told: Vec<Told> = told.collect::<Result<_, _>>()?;
        let days: Vec<(Tally, f64)> = flagged
            .iter()
            .map(|f| {
                let spend = response.map_or(crate::privacy::Spend::Clear, |r| r.spend());
                day(&[Tally::of(spend, 2 * f.steps() as u64)], f.steps() as f64 * f.period_s())
            })
            .collect();
        let period = flagged.first().map_or(1.0, super::flags::Flagged::period_s);
        rows.push(SpendingRow {
            epsilon_flag: epsilon,
            precision: mean(told.iter().map(|t| t.end_to_end.rates.precision)),
            recall: mean(told.iter().map(|t| t.end_to_end.rates.recall)),
            f1: mean(told.iter().map(|t| t.end_to_end.rates.f1)),
            delay_s: mean(told.iter().map(|t| t.delay.map(|d| d * period))),
            false_alarms_per_day: mean(told.iter().map(|t| Some(t.false_alarms_per_day))),
            ..priced(family, "paper, every step", &days)
        });
    }
    Ok(rows)
}

/// A row with its price, and nothing about its worth yet.
fn priced(family: &'static str, method: &str, days: &[(Tally, f64)]) -> SpendingRow {
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    let clear = days.iter().any(|(_, epsilon)| epsilon.is_infinite());
    let mean_unless_clear =
        |of: &dyn Fn(&(Tally, f64)) -> Option<f64>| mean(days.iter().map(of)).filter(|_| !clear);
    let releases: u64 = days.iter().map(|(tally, _)| tally.releases()).sum();
    SpendingRow {
        family,
        method: method.to_owned(),
        epsilon_flag: None,
        delta: DELTA,
        epsilon_day: mean_unless_clear(&|(_, epsilon)| finite(*epsilon)),
        basic_day: mean_unless_clear(&|(tally, _)| finite(tally.basic(DELTA))),
        releases_day: releases / days.len().max(1) as u64,
        seeds: days.len(),
        precision: None,
        recall: None,
        f1: None,
        delay_s: None,
        false_alarms_per_day: None,
    }
}
