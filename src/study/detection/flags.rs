//! Paper mode on a trial: distances of residuals, flags at any percentile, the look-up.
//!
//! Distances are kept, so that one fitted model is judged at many thresholds.

use ndarray::{ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use super::figures::{Happened, Runs, Said};
use crate::evidence::lookup::{Voting, look_up};
use crate::evidence::threshold::{FlagThresholds, Flags, NominalDistances, flag};
use crate::federation::variant::Residuals;
use crate::model::kernel::gaussian::{Gaussian, RIDGE};
use crate::model::kernel::mahalanobis::Mahalanobis;
use crate::model::train::SETTLING;
use crate::session::{Tau, Vote};
use crate::study::metrics::Tick;
use crate::study::metrics::run_length;

/// Distances of one residual: those of the calibration, and those of all that is watched.
#[derive(Debug, Clone)]
struct Distances {
    nominal: NominalDistances,
    watched: Vec<f32>,
}

impl Distances {
    /// µ and Σ are those of the `calibration` first rows once the filter has settled.
    fn new(residuals: ArrayView2<f32>, calibration: usize) -> Self {
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

/// A model of the paper, measured on a trial.
#[derive(Debug, Clone)]
pub struct Flagged {
    clients: Vec<(Distances, Option<Distances>)>,
}

/// Percentiles of both thresholds and the vote of the look-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Of τ_c.
    pub tau_c: f64,
    /// Of τ_a.
    pub tau_a: f64,
    /// Declare only when so many of the last steps agree.
    pub vote: Option<Vote>,
}

impl Thresholds {
    /// Both at one percentile, each step for itself.
    #[must_use]
    pub fn at(percentile: f64) -> Self {
        Self { tau_c: percentile, tau_a: percentile, vote: None }
    }

    /// With the remark on long horizons: three of the last five steps must agree.
    #[must_use]
    pub fn voted(self) -> Self {
        Self { vote: Some(Vote { k: 3, n: 5 }), ..self }
    }
}

/// How often the flags of one model were raised by themselves and how soon by an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FlagRuns {
    /// Nominal steps of each client up to its next flag.
    pub arl0: Runs,
    /// From each onset to the next flag of the client it is in.
    pub arl1: Runs,
}

impl Flagged {
    /// From residuals whose first `calibration` rows are for calibration.
    pub(super) fn new(residuals: &[Residuals], calibration: usize) -> Self {
        let of = |r: &ndarray::Array2<f32>| Distances::new(r.view(), calibration);
        let clients = residuals.iter().map(|r| (of(&r.c), r.a.as_ref().map(of))).collect();
        Self { clients }
    }

    /// What the look-up declares step by step. A model without r_a has nothing to look up.
    #[must_use]
    pub fn look_up(&self, thresholds: Thresholds) -> Option<Said> {
        let flags: Vec<Vec<Option<Flags>>> = self
            .clients
            .iter()
            .map(|(c, a)| a.as_ref().map(|a| pairs(c, a, thresholds)))
            .collect::<Option<_>>()?;
        let mut voting = thresholds.vote.map(|vote| Voting::new(vote, flags.len()));
        let steps = flags.first().map_or(0, Vec::len);
        let mut now = vec![None; flags.len()];
        let declared = (0..steps).map(|t| {
            now.iter_mut().zip(&flags).for_each(|(now, flags)| *now = flags[t]);
            let named = look_up(&now).root();
            voting.as_mut().map_or(named, |voting| voting.step(named))
        });
        Some(Said::steps(declared.collect()))
    }

    /// Shares of the four pairs (Z_c, Z_a) at given client-steps: 00, 01, 10, 11.
    #[must_use]
    pub fn pair_shares(
        &self,
        thresholds: Thresholds,
        at: impl Fn(usize, usize) -> bool,
    ) -> Option<[f64; 4]> {
        let mut counts = [0_usize; 4];
        for (m, (c, a)) in self.clients.iter().enumerate() {
            for (t, flags) in pairs(c, a.as_ref()?, thresholds).into_iter().enumerate() {
                if let Some(flags) = flags.filter(|_| at(m, t)) {
                    counts[2 * usize::from(flags.z_c) + usize::from(flags.z_a)] += 1;
                }
            }
        }
        let all: usize = counts.iter().sum();
        (all > 0).then(|| counts.map(|count| count as f64 / all as f64))
    }

    /// Run lengths of the flags: of Z_a where there is one, otherwise of the only flag there is.
    #[must_use]
    pub fn run_lengths(&self, percentile: f64, events: &[Happened]) -> FlagRuns {
        let flags: Vec<Vec<Option<bool>>> =
            self.clients.iter().map(|(c, a)| a.as_ref().unwrap_or(c).flags(percentile)).collect();
        let steps = flags.first().map_or(0, Vec::len);
        let onsets: Vec<Tick> = events.iter().map(|event| event.window.start).collect();
        let nominal = onsets.iter().min().map_or(steps, |first| (*first as usize).min(steps));
        let raised = flags.iter().flat_map(|flags| &flags[..nominal]).filter(|z| **z == Some(true));
        let arl0 =
            run_length::RunLength::new((nominal * flags.len()) as f64, raised.count(), flags.len());
        let runs = run_length::runs(&onsets, steps as Tick - 1);
        let (mut watched, mut ended) = (0.0, 0);
        for (run, event) in runs.iter().zip(events) {
            let raised: Vec<Tick> = (run.onset..=run.until)
                .filter(|t| flags[event.origin][*t as usize] == Some(true))
                .collect();
            let length = run_length::arl1(std::slice::from_ref(run), &raised);
            watched += length.at_least.unwrap_or(0.0);
            ended += length.ended;
        }
        let arl1 = Runs { watched, ended, censored: runs.len() - ended };
        FlagRuns { arl0: arl0.into(), arl1 }
    }
}

fn pairs(c: &Distances, a: &Distances, thresholds: Thresholds) -> Vec<Option<Flags>> {
    let distances = FlagThresholds {
        tau_c: c.nominal.threshold(Tau::Percentile(thresholds.tau_c)),
        tau_a: a.nominal.threshold(Tau::Percentile(thresholds.tau_a)),
    };
    c.watched.iter().zip(&a.watched).map(|(c, a)| distances.flags(*c, *a)).collect()
}
