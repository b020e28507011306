//! Flags step by step: their run lengths, the look-up, and flags that are sent untruly.
//!
//! The flags of the federated models come from a run. Those of the paper's other models are made here
//! from their residuals; distances are kept, so that a model is judged at several percentiles.

use ndarray::{Array2, ArrayView2, Axis, Slice};
use serde::{Deserialize, Serialize};

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
use crate::score::metrics::run_length::{self, RunLength, RunTotals};
use crate::score::metrics::{Tick, Window};
use crate::score::steps::{Truth, TruthEvent, tick};
use crate::server::lookup::{Voting, look_up};
use crate::session::{PrivacySettings, Session, Tau, TwinSource, Vote};
use crate::stream::twin::slices;

/// Distances of one residual: those of the calibration, and those of all that is watched.
#[derive(Debug, Clone)]
struct Distances {
    nominal: NominalDistances,
    watched: Vec<f32>,
}

impl Distances {
    /// µ and Σ are those of the `calibration` first rows once the filter has settled.
    fn new(residuals: &ArrayView2<f32>, calibration: usize) -> Self {
        let (first, watched) = residuals.split_at(Axis(0), calibration.min(residuals.nrows()));
        let settled: Vec<f32> =
            first.outer_iter().skip(SETTLING).flat_map(|row| row.to_vec()).collect();
        let sensors = residuals.ncols();
        let mut distance = Mahalanobis::new(&Gaussian::fit(sensors, &settled, RIDGE));
        let nominal = NominalDistances::new(
            settled.chunks_exact(sensors.max(1)).filter_map(|r| distance.squared(r)),
        );
        let watched = watched
            .outer_iter()
            .map(|row| distance.squared(&row.to_vec()).unwrap_or(f32::NAN))
            .collect();
        Self { nominal, watched }
    }

    /// Z at every watched step.
    fn flags(&self, percentile: f64) -> Vec<Option<bool>> {
        let tau = self.nominal.threshold(Tau::Percentile(percentile));
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

/// The time that one flag covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Span {
    /// One step.
    #[default]
    Step,
    /// A minute: at least one of its steps is flagged.
    AnyOfAMinute,
    /// A minute: more than half of its steps are flagged.
    MostOfAMinute,
}

impl Span {
    /// The readings of "a flag per minute": the paper does not say which it takes.
    const MINUTES: [Self; 2] = [Self::AnyOfAMinute, Self::MostOfAMinute];

    /// Words behind the name of a model.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Step => "",
            Self::AnyOfAMinute => ", a minute with any flag",
            Self::MostOfAMinute => ", a minute of mostly flags",
        }
    }

    /// One flag a minute of `each` steps; a rest of less than a minute is left out.
    fn gather(self, raised: &[bool], each: usize) -> Vec<bool> {
        let of_minute = |minute: &[bool]| {
            let flagged = minute.iter().filter(|z| **z).count();
            match self {
                Self::Step | Self::AnyOfAMinute => flagged > 0,
                Self::MostOfAMinute => 2 * flagged > minute.len(),
            }
        };
        raised.chunks_exact(each).map(of_minute).collect()
    }
}

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

    /// The same of minutes of `each` steps, in both readings; run lengths in steps.
    fn of_minutes(
        model: Variant,
        flagged: &ModelDistances,
        events: &[TruthEvent],
        each: usize,
    ) -> Vec<Self> {
        let in_minutes = |event: &TruthEvent| {
            let minute = |t: Tick| t / tick(each);
            let window = Window::new(minute(event.window.start), minute(event.window.end));
            TruthEvent { window, ..event.clone() }
        };
        let events: Vec<TruthEvent> = events.iter().map(in_minutes).collect();
        let mut all = Vec::new();
        for percentile in PERCENTILES {
            let raised = flagged.raised(percentile);
            for span in Span::MINUTES {
                let minutes: Vec<Vec<bool>> =
                    raised.iter().map(|client| span.gather(client, each)).collect();
                let FlagRuns { arl0, arl1 } = FlagRuns::of(&minutes, &events);
                let steps =
                    |runs: RunTotals| RunTotals { watched: runs.watched * each as f64, ..runs };
                let runs = FlagRuns { arl0: steps(arl0), arl1: steps(arl1) };
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
        let of = |r: &ndarray::Array2<f32>| Distances::new(&r.view(), calibration);
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
/// first half of the nominal rows that nothing was fitted to; the rows after it are watched.
pub(super) fn of_models(
    dataset: &Dataset,
    federation: &Replay,
    central: &Series,
    layout: &Layout,
) -> Vec<ModelFlags> {
    let from = dataset.nominal.start;
    let calibration = dataset.nominal.len() / 2;
    let events = TruthEvent::later(&dataset.events, from + calibration);
    let judged = |model: Variant, of: &dyn Fn(usize) -> Array2<f32>| {
        let clients = 0..dataset.names.len();
        let rows = |all: Array2<f32>| all.slice_axis_move(Axis(0), Slice::from(from..));
        let residuals: Vec<Residuals> =
            clients.map(|m| Residuals { c: rows(of(m)), a: None }).collect();
        let distances = ModelDistances::new(&residuals, calibration);
        let mut all = ModelFlags::of(model, &distances, &events);
        if dataset.period_s <= 1.0 {
            let each = (60.0 / dataset.period_s).round() as usize;
            all.extend(ModelFlags::of_minutes(model, &distances, &events, each));
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

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use rand_distr::{Distribution as _, StandardNormal};

    use super::*;
    use crate::base::rng;
    use crate::score::metrics::incident::{GAP, group};

    const CALIBRATION: usize = 1000;

    /// Noise of two sensors; the second client's is ten times as large in steps 200 to 219 of what
    /// is watched, and its augmented residual with it.
    fn residuals() -> Vec<Residuals> {
        let noise = |client: u64| {
            let mut rng = rng::stream(client, 0);
            let shape = (CALIBRATION + 500, 2);
            let mut r: Array2<f32> =
                Array2::from_shape_simple_fn(shape, || StandardNormal.sample(&mut rng));
            if client == 1 {
                for mut row in r.outer_iter_mut().skip(CALIBRATION + 200).take(20) {
                    row.mapv_inplace(|v| 10.0 * v + 20.0);
                }
            }
            r
        };
        (0..2).map(|m| Residuals { c: noise(m), a: Some(noise(m)) }).collect()
    }

    fn event() -> TruthEvent {
        TruthEvent { window: Window::new(200, 219), origin: 1, affected: vec![0] }
    }

    #[test]
    fn the_look_up_names_the_client_whose_flags_stand() {
        let flagged = ModelDistances::new(&residuals(), CALIBRATION);
        let at = |percentile, vote| {
            let named = flagged.at(percentile).expect("there is an r_a").look_up(vote);
            group(&named, GAP)
        };
        let voted = at(99.0, Some(Vote { k: 3, n: 5 }));
        let named: Vec<_> = voted.iter().map(|i| (i.name, i.window.start)).collect();
        assert_eq!(named, [(1, 202)]);
        assert!(at(80.0, None).len() > 10, "every fifth step is flagged somewhere");
    }

    #[test]
    fn a_minute_is_flagged_by_any_or_by_most_of_its_steps() {
        let raised = [false, true, false, true, true, false, false, false, false, true];
        assert_eq!(Span::AnyOfAMinute.gather(&raised, 3), [true, true, false]);
        assert_eq!(Span::MostOfAMinute.gather(&raised, 3), [false, true, false]);
        let flagged = ModelDistances::new(&residuals(), CALIBRATION);
        let minutes = ModelFlags::of_minutes(Variant::Federated, &flagged, &[event()], 20);
        assert_eq!(minutes.len(), PERCENTILES.len() * Span::MINUTES.len());
        // The second client is flagged throughout steps 200 to 219, one whole minute.
        assert!(minutes.iter().all(|flags| flags.runs.arl1.ended == 1), "{minutes:?}");
        let at = |span| minutes.iter().find(|f| f.span == span).map(|f| f.runs.arl0.ended);
        assert!(at(Span::AnyOfAMinute) > at(Span::MostOfAMinute));
    }

    #[test]
    fn a_model_with_one_residual_is_flagged_and_names_nobody() {
        let only: Vec<Residuals> =
            residuals().into_iter().map(|r| Residuals { a: None, ..r }).collect();
        let flagged = ModelDistances::new(&only, CALIBRATION);
        assert_eq!(flagged.at(95.0), None);
        let runs = flagged.run_lengths(95.0, &[event()]);
        let mean = RunTotals::pooled([&runs.arl0]).mean.expect("there are false flags");
        assert!((10.0..40.0).contains(&mean), "one in twenty by design: {mean}");
        assert_eq!(runs.arl1, RunTotals { watched: 0.0, ended: 1, censored: 0 });
    }

    #[test]
    fn equal_residuals_never_say_effect() {
        let flags =
            ModelDistances::new(&residuals(), CALIBRATION).at(95.0).expect("there is an r_a");
        let shares = flags.pair_shares(|_, _| true).expect("flags");
        assert!(shares[1] == 0.0 && shares[2] == 0.0, "{shares:?}");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(flags.pair_shares(|_, _| false), None);
        let [own, augmented] = flags.models(95.0, &[event()]);
        assert_eq!(own.runs, augmented.runs);
    }
}
