//! F1 and delay against what is really spent: ε composed over a day, at one δ for all.

use serde::Serialize;

use super::{mean, published, twin};
use crate::privacy::Tally;
use crate::score::metrics::Tick;
use crate::score::metrics::delay::{Delays, per_day};
use crate::score::metrics::incident::TAIL;
use crate::session::{Alphabet, Session, Thrift};
use crate::study::detection::figures::Figures;
use crate::study::detection::watch::{Watched, watch};
use crate::study::detection::{Models, linear};
use crate::study::frame::StudyError;

/// δ of every composed ε.
const DELTA: f64 = 1e-5;

/// The watch of the thrifty manner: ε of an arming, symbols after an alarm.
pub(crate) const WATCH: (f64, u64) = (8.0, 10);

/// Steps in a window.
pub(crate) const WINDOW: u64 = 5;

/// ε of an answer that is kept.
pub(crate) const PERMANENT: f64 = 4.0;

/// Where it is measured.
pub(crate) const FAMILIES: [&str; 2] = ["A2", "B4"];

/// One method at one ε.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SpendingRow {
    pub(crate) family: &'static str,
    pub(crate) method: String,
    /// ε of each flag or symbol; none where they are sent as they are.
    pub(crate) epsilon_flag: Option<f64>,
    /// δ of `epsilon_day`.
    pub(crate) delta: f64,
    /// ε of a day of the client that spent most; none where something is sent as it is.
    pub(crate) epsilon_day: Option<f64>,
    /// The same by adding up.
    pub(crate) basic_day: Option<f64>,
    /// Releases of that client in a day.
    pub(crate) releases_day: u64,
    pub(crate) seeds: usize,
    /// Incidents with the right root, of all incidents.
    pub(crate) precision: Option<f64>,
    /// Events so answered, of all events.
    pub(crate) recall: Option<f64>,
    /// Their harmonic mean.
    pub(crate) f1: Option<f64>,
    /// Time from an event to its alarm, seconds: the median of a seed in evidence mode, the mean to
    /// the first right name in paper mode.
    pub(crate) delay_s: Option<f64>,
    /// False alarms a day.
    pub(crate) false_alarms_per_day: Option<f64>,
}

const EPSILONS: [Option<f64>; 7] =
    [Some(0.5), Some(1.0), Some(2.0), Some(3.0), Some(4.0), Some(8.0), None];
const QUICK: [Option<f64>; 4] = [Some(1.0), Some(2.0), Some(4.0), None];

/// How symbols are sent: the name, how often, and in which alphabet.
const MANNERS: [(&str, Thrift, Alphabet); 5] = [
    ("evidence, every step", Thrift::EveryStep, Alphabet::Graded),
    ("evidence, every step, one bit", Thrift::EveryStep, Alphabet::OneBit),
    ("evidence, strongest of 5 steps", Thrift::Window(WINDOW), Alphabet::Graded),
    ("evidence, while raised", Thrift::WhileRaised, Alphabet::Graded),
    ("evidence, kept answers", Thrift::Memoised { permanent: PERMANENT }, Alphabet::Graded),
];

/// Both modes on two families, every manner of sending symbols among them.
pub(crate) fn spending(seeds: &[u64], quick: bool) -> Result<Vec<SpendingRow>, StudyError> {
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

/// A session of one seed with its models.
type Ready = (Session, Models);

fn ready(session: Session) -> Result<Ready, StudyError> {
    let mut models = Models::default();
    models.of(&session)?;
    Ok((session, models))
}

fn evidence(
    family: &'static str,
    seeds: &[u64],
    epsilons: &[Option<f64>],
) -> Result<Vec<SpendingRow>, StudyError> {
    let of_seed = |seed: &u64| {
        let mut session = twin(family).session(*seed)?;
        linear(&mut session);
        (session.privacy.watch.epsilon, session.privacy.watch.burst) = WATCH;
        ready(session)
    };
    let mut sessions: Vec<Ready> = seeds.iter().map(of_seed).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for (method, thrift, symbol) in MANNERS {
        for &epsilon in epsilons {
            // Saving is about a price: without one there is the plain manner only.
            if epsilon.is_none() && thrift != Thrift::EveryStep {
                continue;
            }
            let row = row(family, method, epsilon, &mut sessions, median_delay, |session| {
                (session.privacy.thrift, session.privacy.symbol) = (thrift, symbol);
            });
            rows.push(row?);
        }
    }
    Ok(rows)
}

fn paper(
    family: &'static str,
    seeds: &[u64],
    epsilons: &[Option<f64>],
    quick: bool,
) -> Result<Vec<SpendingRow>, StudyError> {
    let sessions = seeds.iter().map(|seed| ready(published(family, *seed, quick)?));
    let mut sessions: Vec<Ready> = sessions.collect::<Result<_, _>>()?;
    epsilons
        .iter()
        .map(|epsilon| {
            row(family, "paper, every step", *epsilon, &mut sessions, named_delay, |_| {})
        })
        .collect()
}

/// One method at one ε: every session with this setting, run and judged.
fn row(
    family: &'static str,
    method: &str,
    epsilon: Option<f64>,
    sessions: &mut [Ready],
    delay: fn(&Watched, &Figures) -> Option<f64>,
    change: impl Fn(&mut Session),
) -> Result<SpendingRow, StudyError> {
    let (mut days, mut judged) = (Vec::new(), Vec::new());
    for (session, models) in sessions {
        let mut session = session.clone();
        session.privacy.epsilon_flag = epsilon;
        change(&mut session);
        let watched = watch(&session, models.of(&session)?)?;
        days.push(day(&watched.released, watched.seconds()));
        let figures = watched.figures();
        let per_day = per_day(figures.false_alarms, watched.quiet_seconds() / 86_400.0);
        let delay_s = delay(&watched, &figures).map(|steps| steps * watched.truth.period_s);
        judged.push((figures, per_day, delay_s));
    }
    Ok(SpendingRow {
        epsilon_flag: epsilon,
        precision: mean(judged.iter().map(|(figures, ..)| figures.precision)),
        recall: mean(judged.iter().map(|(figures, ..)| figures.recall)),
        f1: mean(judged.iter().map(|(figures, ..)| figures.f1)),
        delay_s: mean(judged.iter().map(|(_, _, delay_s)| *delay_s)),
        false_alarms_per_day: mean(judged.iter().map(|(_, per_day, _)| *per_day)),
        ..priced(family, method, &days)
    })
}

/// Steps from an event to its alarm, the first anomalous one included.
fn median_delay(_: &Watched, figures: &Figures) -> Option<f64> {
    Delays::of(&figures.delays).median.map(|delay| delay + 1.0)
}

/// Mean steps from an event to the first step that names its origin, the first anomalous one
/// included.
fn named_delay(watched: &Watched, _: &Figures) -> Option<f64> {
    let names = &watched.output.names;
    mean(watched.truth.events.iter().map(|event| {
        let (first, last) = (event.window.start, event.window.end + TAIL);
        let is_right = |t: &Tick| names.get(*t as usize) == Some(&Some(event.origin));
        let right = (first..=last).find(is_right)?;
        Some((right - first + 1) as f64)
    }))
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
