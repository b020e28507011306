//! Flags step by step: their run lengths, the look-up, and flags that are sent untruly.
//!
//! The flags of the federated models come from a run. Those of the paper's other models are made here
//! from their residuals; distances are kept, so that a model is judged at several percentiles.

mod minutes;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis, Slice, concatenate};
use serde::{Deserialize, Serialize};

pub(crate) use self::minutes::{Span, steps_of_a_minute};
use super::dataset::{Dataset, DatasetSource};
use super::noise::TOGETHER;
use super::{Failure, to_the_end, unprotected};
use crate::base::rng;
use crate::engine::prepare::Prepared;
use crate::evidence::threshold::{Flags, NominalDistances, flag};
use crate::federation::states::{Replay, Series};
use crate::federation::variant::{Residuals, Variant};
use crate::nn::kernel::gaussian::{Gaussian, RIDGE};
use crate::nn::kernel::mahalanobis::Mahalanobis;
use crate::nn::oracle::Layout;
use crate::nn::train::SETTLING;
use crate::nn::weights::ProprietaryWeights;
use crate::privacy::composition::epsilon_of_truth;
use crate::privacy::{PrivacyError, Randomness, Response};
use crate::score::metrics::Tick;
use crate::score::metrics::run_length::{self, RunLength, RunTotals};
use crate::score::steps::{Truth, TruthEvent, tick};
use crate::server::lookup::{Voting, look_up};
use crate::session::{PrivacySettings, Session, Tau, TwinSource, Vote};
use crate::stream::twin::slices;

/// Distances of one residual: those of the calibration, and those of all that is watched.
#[derive(Debug, Clone)]
struct Distances {
    nominal: NominalDistances,
    /// Of the calibration, step by step, once the filter has settled.
    known: Vec<f32>,
    watched: Vec<f32>,
}

impl Distances {
    /// µ and Σ, `ridge` added to its diagonal, are those of the `calibration` first rows once the filter
    /// has settled.
    fn new(residuals: &ArrayView2<f32>, calibration: usize, ridge: f64) -> Self {
        let (first, watched) = residuals.split_at(Axis(0), calibration.min(residuals.nrows()));
        let settled: Vec<f32> =
            first.outer_iter().skip(SETTLING).flat_map(|row| row.to_vec()).collect();
        let sensors = residuals.ncols();
        let mut distance = Mahalanobis::new(&Gaussian::fit(sensors, &settled, ridge));
        let mut squared = |row: &[f32]| distance.squared(row).unwrap_or(f32::NAN);
        let known: Vec<f32> = settled.chunks_exact(sensors.max(1)).map(&mut squared).collect();
        let watched = watched.outer_iter().map(|row| squared(&row.to_vec())).collect();
        Self { nominal: NominalDistances::new(known.iter().copied()), known, watched }
    }

    fn threshold(&self, percentile: f64) -> f32 {
        self.nominal.threshold(Tau::Percentile(percentile))
    }

    /// Z at every watched step.
    fn flags(&self, percentile: f64) -> Vec<Option<bool>> {
        let tau = self.threshold(percentile);
        self.watched.iter().map(|d| flag(*d, tau)).collect()
    }
}

/// (Z_c, Z_a) of every client at every step, as the server received them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlagSeries {
    clients: Vec<Vec<Option<Flags>>>,
}

impl FlagSeries {
    pub(crate) fn new(clients: usize) -> Self {
        Self { clients: vec![Vec::new(); clients] }
    }

    /// Adds a step: the flags of every client.
    pub(crate) fn push(&mut self, flags: impl Iterator<Item = Option<Flags>>) {
        self.clients.iter_mut().zip(flags).for_each(|(client, flags)| client.push(flags));
    }

    pub(crate) fn steps(&self) -> usize {
        self.clients.first().map_or(0, Vec::len)
    }

    /// The flags of every client at a step.
    pub(crate) fn at(&self, step: usize) -> impl Iterator<Item = Option<Flags>> + '_ {
        self.clients.iter().map(move |client| client.get(step).copied().flatten())
    }

    /// The root that the look-up declares at each step.
    pub(crate) fn look_up(&self, vote: Option<Vote>) -> Vec<Option<usize>> {
        let mut voting = vote.map(|vote| Voting::new(vote, self.clients.len()));
        let mut now = Vec::with_capacity(self.clients.len());
        let declared = (0..self.steps()).map(|t| {
            now.clear();
            now.extend(self.at(t));
            let named = look_up(&now).root();
            voting.as_mut().map_or(named, |voting| voting.step(named))
        });
        declared.collect()
    }

    /// The same flags as randomised response sends them: Z_c truly with probability `p_c`, Z_a with
    /// `p_a`. `source` distinguishes noises of one seed.
    pub(crate) fn randomised(
        &self,
        (p_c, p_a): (f64, f64),
        seed: u64,
        source: u64,
    ) -> Result<Self, PrivacyError> {
        let response = |p: f64| epsilon(p).map(Response::binary).transpose();
        let (c, a) = (response(p_c)?, response(p_a)?);
        let answer = |response: Option<Response>, flag: bool, noise: &mut Randomness| {
            response.map_or(Ok(flag), |r| Ok(r.rehearse(u8::from(flag), noise)? == 1))
        };
        let client = |(m, flags): (usize, &Vec<Option<Flags>>)| {
            let mut noise = Randomness::seeded(rng::child(seed, m as u64), source);
            let step = |flags: &Option<Flags>| match *flags {
                Some(Flags { z_c, z_a }) => {
                    let z_c = answer(c, z_c, &mut noise)?;
                    Ok(Some(Flags { z_c, z_a: answer(a, z_a, &mut noise)? }))
                }
                None => Ok(None),
            };
            flags.iter().map(step).collect::<Result<_, PrivacyError>>()
        };
        let clients = self.clients.iter().enumerate().map(client);
        Ok(Self { clients: clients.collect::<Result<_, _>>()? })
    }

    /// Shares of the four pairs (Z_c, Z_a) at given client-steps: 00, 01, 10, 11.
    pub(crate) fn pair_shares(&self, at: impl Fn(usize, usize) -> bool) -> Option<[f64; 4]> {
        let mut counts = [0_usize; 4];
        for (m, client) in self.clients.iter().enumerate() {
            for (t, flags) in client.iter().enumerate() {
                if let Some(flags) = flags.filter(|_| at(m, t)) {
                    counts[2 * usize::from(flags.z_c) + usize::from(flags.z_a)] += 1;
                }
            }
        }
        let all: usize = counts.iter().sum();
        (all > 0).then(|| counts.map(|count| count as f64 / all as f64))
    }

    /// Run lengths of one of the two flags.
    pub(crate) fn run_lengths(&self, z: fn(&Flags) -> bool, events: &[TruthEvent]) -> FlagRuns {
        let raised = |client: &Vec<Option<Flags>>| {
            client.iter().map(|flags| flags.as_ref().is_some_and(z)).collect()
        };
        FlagRuns::of(&self.clients.iter().map(raised).collect::<Vec<_>>(), events)
    }

    /// The flags of the proprietary and of the augmented models, judged separately.
    pub(crate) fn models(&self, percentile: f64, events: &[TruthEvent]) -> [ModelFlags; 2] {
        let of = |model: Variant, z: fn(&Flags) -> bool| ModelFlags {
            model: model.name().into(),
            percentile,
            span: Span::Step,
            runs: self.run_lengths(z, events),
        };
        [of(Variant::OnlyProprietary, |z| z.z_c), of(Variant::Federated, |z| z.z_a)]
    }
}

/// ε of a flag that is sent truly with probability `p`; none where it always is.
pub(crate) fn epsilon(p: f64) -> Option<f64> {
    (p < 1.0).then(|| epsilon_of_truth(p))
}

/// How often the flags of one model were raised by themselves and how soon by an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlagRuns {
    /// Nominal steps of each client up to its next flag.
    pub arl0: RunTotals,
    /// From each onset to the next flag of the client it is in.
    pub arl1: RunTotals,
}

impl FlagRuns {
    /// Of flags client by client: false ones outside events and their tails, true ones from each
    /// onset on.
    fn of(raised: &[Vec<bool>], events: &[TruthEvent]) -> Self {
        let steps = raised.first().map_or(0, Vec::len);
        let onsets: Vec<Tick> = events.iter().map(|event| event.window.start).collect();
        let is_quiet = |step: &usize| !events.iter().any(|event| event.is_answered_at(*step));
        let quiet: Vec<usize> = (0..steps).filter(is_quiet).collect();
        let early = raised.iter().flat_map(|client| quiet.iter().filter(|step| client[**step]));
        let arl0 = RunLength::new((quiet.len() * raised.len()) as f64, early.count(), raised.len());
        let runs = run_length::runs(&onsets, tick(steps) - 1);
        let (mut watched, mut ended) = (0.0, 0);
        for (run, event) in runs.iter().zip(events) {
            let own: Vec<Tick> =
                (run.onset..=run.until).filter(|t| raised[event.origin][*t as usize]).collect();
            let length = run_length::arl1(std::slice::from_ref(run), &own);
            watched += length.at_least.unwrap_or(0.0);
            ended += length.ended;
        }
        let arl1 = RunTotals { watched, ended, censored: runs.len() - ended };
        Self { arl0: arl0.into(), arl1 }
    }
}

/// Percentiles at which the flags of the models are judged.
pub(crate) const PERCENTILES: [f64; 2] = [95.0, 99.5];

/// The flags of one model at one percentile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelFlags {
    pub model: String,
    pub percentile: f64,
    #[serde(default)]
    pub span: Span,
    pub runs: FlagRuns,
}

impl ModelFlags {
    /// Of a model at every percentile.
    pub(crate) fn of(model: Variant, flagged: &ModelDistances, events: &[TruthEvent]) -> Vec<Self> {
        let at = |percentile| Self {
            model: model.name().into(),
            percentile,
            span: Span::Step,
            runs: flagged.run_lengths(percentile, events),
        };
        PERCENTILES.map(at).into()
    }

    /// The same of minutes of `each` steps, in these readings; run lengths in steps.
    fn of_minutes(
        model: Variant,
        flagged: &ModelDistances,
        events: &[TruthEvent],
        each: usize,
        spans: [Span; 2],
    ) -> Vec<Self> {
        let mut all = Vec::new();
        for percentile in PERCENTILES {
            let raised = flagged.raised(percentile);
            // An event in a last minute that is not whole has no minute to be flagged in.
            let whole = tick(raised.first().map_or(0, |client| client.len() / each));
            let events = events.iter().map(|event| event.in_blocks(each));
            let events: Vec<TruthEvent> =
                events.filter(|event| event.window.start < whole).collect();
            for span in spans {
                let minutes: Vec<Vec<bool>> =
                    raised.iter().map(|client| span.gather(client, each)).collect();
                let FlagRuns { arl0, arl1 } = FlagRuns::of(&minutes, &events);
                let steps =
                    |runs: RunTotals| RunTotals { watched: runs.watched * each as f64, ..runs };
                let arl0 = if Span::IN_TRAINING.contains(&span) {
                    flagged.first_in_calibration(percentile, span, each)
                } else {
                    steps(arl0)
                };
                let runs = FlagRuns { arl0, arl1: steps(arl1) };
                all.push(Self { model: model.name().into(), percentile, span, runs });
            }
        }
        all
    }
}

/// Distances of one of the paper's models on a run: its flags follow at any percentile.
#[derive(Debug, Clone)]
pub(crate) struct ModelDistances {
    clients: Vec<(Distances, Option<Distances>)>,
}

impl ModelDistances {
    /// From residuals whose first `calibration` rows are for calibration.
    pub(super) fn new(residuals: &[Residuals], calibration: usize) -> Self {
        Self::with_ridge(residuals, calibration, RIDGE)
    }

    /// The same with another ridge on Σ.
    pub(super) fn with_ridge(residuals: &[Residuals], calibration: usize, ridge: f64) -> Self {
        let of = |r: &Array2<f32>| Distances::new(&r.view(), calibration, ridge);
        let clients = residuals.iter().map(|r| (of(&r.c), r.a.as_ref().map(of))).collect();
        Self { clients }
    }

    /// Both flags at one percentile. A model without r_a has no pair to look up.
    pub(crate) fn at(&self, percentile: f64) -> Option<FlagSeries> {
        let pairs = |(c, a): &(Distances, Option<Distances>)| {
            let both = c.flags(percentile).into_iter().zip(a.as_ref()?.flags(percentile));
            Some(both.map(|(c, a)| Some(Flags::new(c?, a?))).collect())
        };
        Some(FlagSeries { clients: self.clients.iter().map(pairs).collect::<Option<_>>()? })
    }

    /// Run lengths of the flags: of Z_a where there is one, otherwise of the only flag there is.
    pub(crate) fn run_lengths(&self, percentile: f64, events: &[TruthEvent]) -> FlagRuns {
        FlagRuns::of(&self.raised(percentile), events)
    }

    /// Steps from the first of the calibration to the end of the first flag in it, a run for each client.
    /// A flag covers `each` steps.
    pub(crate) fn first_in_calibration(
        &self,
        percentile: f64,
        span: Span,
        each: usize,
    ) -> RunTotals {
        let mut runs = RunTotals::default();
        for (c, a) in &self.clients {
            let distances = a.as_ref().unwrap_or(c);
            let tau = distances.threshold(percentile);
            let raised: Vec<bool> =
                distances.known.iter().map(|d| flag(*d, tau) == Some(true)).collect();
            let flags = span.gather(&raised, each);
            let first = flags.iter().position(|z| *z);
            runs.watched += (first.map_or(flags.len(), |place| place + 1) * each) as f64;
            runs.ended += usize::from(first.is_some());
            runs.censored += usize::from(first.is_none());
        }
        runs
    }

    /// Those flags, client by client.
    fn raised(&self, percentile: f64) -> Vec<Vec<bool>> {
        let raised = |(c, a): &(Distances, Option<Distances>)| {
            let flags = a.as_ref().unwrap_or(c).flags(percentile);
            flags.into_iter().map(|z| z == Some(true)).collect()
        };
        self.clients.iter().map(raised).collect()
    }
}

/// One of the paper's models on the filters that were prepared for a session of family A: its distances
/// on the rows that follow the fit slice, and the truth after calibration. No session can ask for it.
pub(crate) fn of_variant(
    variant: Variant,
    session: &Session,
    prepared: &Prepared,
) -> Result<(ModelDistances, Truth), Failure> {
    let filters: Vec<ProprietaryWeights> =
        prepared.clients.iter().map(|client| client.sending.clone()).collect();
    let dataset = DatasetSource::Twin(filters.len()).dataset(session.seed, usize::MAX)?;
    let privacy = PrivacySettings::default();
    let fitted = variant.fit(
        &dataset.sites(&filters, dataset.fit.clone()),
        &session.model,
        unprotected(&privacy),
        rng::child(session.seed, TOGETHER),
        &mut to_the_end,
    )?;
    let (from, steps) = (dataset.fit.end, dataset.steps());
    let rows: Vec<_> = (0..filters.len()).map(|m| dataset.view(m, from..steps)).collect();
    let calibration = slices(&TwinSource::default()).calibration;
    let distances = ModelDistances::new(&fitted.residuals(&rows)?, calibration.len());
    let truth = Truth {
        clients: filters.len(),
        steps: steps - calibration.end,
        period_s: dataset.period_s,
        events: TruthEvent::later(&dataset.events, calibration.end),
    };
    Ok((distances, truth))
}

/// Flags of the proprietary and the augmented models and of the oracle. Thresholds are those of the
/// first half of the nominal rows that nothing was fitted to; the rows after it are watched. A minute is
/// flagged by the thresholds of the training rows `fit` too.
pub(super) fn of_models(
    dataset: &Dataset,
    fit: &Range<usize>,
    federation: &Replay,
    central: &Series,
    layout: &Layout,
) -> Vec<ModelFlags> {
    let calibration = dataset.nominal.start..dataset.nominal.start + dataset.nominal.len() / 2;
    let events = TruthEvent::later(&dataset.events, calibration.end);
    let judged = |model: Variant, of: &dyn Fn(usize) -> Array2<f32>| {
        let by = |known: &Range<usize>| {
            let residuals: Vec<Residuals> = (0..dataset.names.len())
                .map(|m| Residuals { c: rows(&of(m), known, calibration.end), a: None })
                .collect();
            ModelDistances::new(&residuals, known.len())
        };
        let distances = by(&calibration);
        let mut all = ModelFlags::of(model, &distances, &events);
        if let Some(each) = steps_of_a_minute(dataset.period_s) {
            for (distances, spans) in [(distances, Span::MINUTES), (by(fit), Span::IN_TRAINING)] {
                all.extend(ModelFlags::of_minutes(model, &distances, &events, each, spans));
            }
        }
        all
    };
    let own = |m: usize| federation.clients[m].r_c.clone();
    let augmented = |m: usize| {
        let client = &federation.clients[m];
        client.augmented.as_ref().map_or_else(|| client.r_c.clone(), |a| a.r_a.clone())
    };
    let oracle = |m: usize| layout.extract_rows(m, &central.r_c.view()).to_owned();
    let mut all = judged(Variant::OnlyProprietary, &own);
    all.extend(judged(Variant::Federated, &augmented));
    all.extend(judged(Variant::CentralisedOracle, &oracle));
    all
}

/// The rows `known`, and after them all from `watched` on.
pub(super) fn rows(all: &Array2<f32>, known: &Range<usize>, watched: usize) -> Array2<f32> {
    let part = |rows: Slice| all.slice_axis(Axis(0), rows);
    concatenate(Axis(0), &[part(Slice::from(known.clone())), part(Slice::from(watched..))])
        .expect("rows of one table have one width")
}
