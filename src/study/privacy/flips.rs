//! Paper mode against flags that are not always true.

use serde::Serialize;

use super::{mean, published};
use crate::privacy::composition::epsilon_of_truth;
use crate::privacy::{PrivacyError, Randomness, Response};
use crate::rng;
use crate::score::metrics::Tick;
use crate::score::metrics::run_length::{self, RunLength};
use crate::study::detection::Models;
use crate::study::detection::figures::{Figures, MethodOutput, Truth};
use crate::study::detection::flags::FlagSeries;
use crate::study::detection::watch::{Watched, watch};
use crate::study::frame::StudyError;

/// One pair of probabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FlipRow {
    pub(crate) family: &'static str,
    /// The chance that Z_c is told truly.
    pub(crate) p_c: f64,
    /// The chance that Z_a is told truly.
    pub(crate) p_a: f64,
    /// ε of a Z_c; none where it is always true.
    pub(crate) epsilon_c: Option<f64>,
    /// ε of a Z_a.
    pub(crate) epsilon_a: Option<f64>,
    pub(crate) seeds: usize,
    /// Steps between false alarms of Z_a.
    pub(crate) arl0: Option<f64>,
    /// Steps from an anomaly to the next Z_a.
    pub(crate) arl1: Option<f64>,
    /// Incidents that name the origin of an anomaly they answer, of all incidents.
    pub(crate) precision: Option<f64>,
    pub(crate) recall: Option<f64>,
    /// Their harmonic mean.
    pub(crate) f1: Option<f64>,
}

const TRUTHS: [f64; 8] = [0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const QUICK: [f64; 4] = [0.6, 0.8, 0.95, 1.0];

/// The paper's figure 4: first p_c with every Z_a true, then p_a with every Z_c true. A session has
/// one ε for both flags, so the flags of a run without noise are randomised here.
pub(crate) fn flips(seeds: &[u64], quick: bool) -> Result<Vec<FlipRow>, StudyError> {
    let family = "A2";
    let watched = |seed: &u64| {
        let session = published(family, *seed, quick)?;
        Ok((*seed, watch(&session, Models::default().of(&session)?)?))
    };
    let watched: Vec<(u64, Watched)> =
        seeds.iter().map(watched).collect::<Result<_, StudyError>>()?;
    let truths: &[f64] = if quick { &QUICK } else { &TRUTHS };
    let pairs = truths.iter().map(|p| (*p, 1.0)).chain(truths.iter().map(|p| (1.0, *p)));
    let mut rows = Vec::new();
    for (source, (p_c, p_a)) in (0..).zip(pairs) {
        let epsilon = |p: f64| (p < 1.0).then(|| epsilon_of_truth(p));
        let response = |p: f64| epsilon(p).map(Response::binary).transpose();
        let (c, a) = (response(p_c)?, response(p_a)?);
        let judged = watched.iter().map(|(seed, watched)| {
            let flags = randomised(&watched.flags, [c, a], *seed, source)?;
            Ok(Judged::of(&watched.truth, &flags))
        });
        let judged: Vec<Judged> = judged.collect::<Result<_, PrivacyError>>()?;
        let rate = |of: fn(&Judged) -> Option<f64>| mean(judged.iter().map(of));
        rows.push(FlipRow {
            family,
            p_c,
            p_a,
            epsilon_c: epsilon(p_c),
            epsilon_a: epsilon(p_a),
            seeds: seeds.len(),
            arl0: rate(|j| j.arl0.mean.or(j.arl0.at_least)),
            arl1: rate(|j| j.arl1.mean),
            precision: rate(|j| j.figures.precision),
            recall: rate(|j| j.figures.recall),
            f1: rate(|j| j.figures.f1),
        });
    }
    Ok(rows)
}

/// Every flag through its response; without one it stays as it is.
fn randomised(
    flags: &FlagSeries,
    [c, a]: [Option<Response>; 2],
    seed: u64,
    source: u64,
) -> Result<FlagSeries, PrivacyError> {
    let answer = |response: Option<Response>, flag: bool, noise: &mut Randomness| {
        response.map_or(Ok(flag), |r| Ok(r.rehearse(u8::from(flag), noise)? == 1))
    };
    let noise = |client: usize| Randomness::seeded(rng::child(seed, client as u64), source);
    let mut noise: Vec<Randomness> = (0..flags.clients()).map(noise).collect();
    let mut series = FlagSeries::new(flags.clients());
    for t in 0..flags.steps() {
        let mut step = Vec::with_capacity(flags.clients());
        for (flags, noise) in flags.at(t).zip(&mut noise) {
            step.push(match flags {
                Some(mut flags) => {
                    flags.z_c = answer(c, flags.z_c, noise)?;
                    flags.z_a = answer(a, flags.z_a, noise)?;
                    Some(flags)
                }
                None => None,
            });
        }
        series.push(step.into_iter());
    }
    Ok(series)
}

/// What paper mode makes of flags.
struct Judged {
    /// Steps between false alarms of any Z_a.
    arl0: RunLength,
    /// Steps from an onset to the next Z_a of any client.
    arl1: RunLength,
    figures: Figures,
}

impl Judged {
    fn of(truth: &Truth, flags: &FlagSeries) -> Self {
        let tick = |step: usize| Tick::try_from(step).unwrap_or(Tick::MAX);
        let raised = |t: &usize| flags.at(*t).flatten().any(|flags| flags.z_a);
        let alarms: Vec<Tick> = (0..flags.steps()).filter(raised).map(tick).collect();
        let onsets: Vec<Tick> = truth.events.iter().map(|event| event.window.start).collect();
        let last = tick(truth.steps) - 1;
        let nominal = onsets.iter().copied().min().unwrap_or(last);
        let early = alarms.iter().filter(|alarm| **alarm < nominal).count();
        Self {
            arl0: run_length::arl0(nominal as f64, early),
            arl1: run_length::arl1(&run_length::runs(&onsets, last), &alarms),
            figures: Figures::of(truth, &MethodOutput::from_names(flags.look_up(None))),
        }
    }
}
