//! One federation, trained on one plant with one seed, beside the centralised oracle.
//!
//! One experiment serves three studies: losses (`convergence`), how states move together
//! (`correlation`) and residuals (`residuals`). The oracle sees the raw data of all clients; it is the
//! paper's reference, and it takes most of the time. Nothing is noised here.

use ndarray::{ArrayView2, Axis, concatenate};
use serde::{Deserialize, Serialize};

use super::correlation_map::{self, CorrelationMap};
use super::dataset::{self, Dataset, DatasetSource};
use super::flags::{self, ModelFlags};
use super::loss_curve::{self, LossCurve};
use super::residual_norms::{NormSeries, NormTrace, ResidualNorms};
use super::{Failure, models, to_the_end, unprotected};
use crate::base::rng;
use crate::engine::decimation;
use crate::federation::FederationError;
use crate::federation::convergence::OracleAlignment;
use crate::federation::states::{replay, series};
use crate::federation::variant::{Fitted, Variant};
use crate::nn::oracle::Oracle;
use crate::nn::weights::ProprietaryWeights;
use crate::session::Session;
use crate::session::settings::{Federation, ModelSettings, PrivacySettings, StepSize};
use crate::site::training::SiteData;

/// The weights of the server's gradient that are tried: none, the paper's, ten times that.
pub(crate) const ETA2: [f64; 3] = [0.0, 1.0, 10.0];

/// The weight of the method as published.
pub(crate) const PUBLISHED: f64 = 1.0;

/// Rows that were not fitted to and on which states are compared with the oracle's: two fifths to
/// align them, the rest to compare.
const COMPARED: usize = 5000;

/// Sources of the seed.
const MODELS: u64 = 0x4D;
const ORACLE: u64 = 0x4F;
const FEDERATION: u64 = 0x46;

/// How much is learned from, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Rows of the fit slice that filters, federation and oracle learn from, at most.
    pub rows: usize,
    /// Passes of the proprietary models, where they are not delivered.
    pub epochs: usize,
    /// Passes of Algorithm 1.
    pub passes: usize,
    /// Passes of the oracle, over the same rows.
    pub oracle_epochs: usize,
    pub oracle_width: usize,
    /// Width of φ.
    pub augment_width: usize,
    /// The step size of Algorithm 1 is constant.
    pub constant_step: bool,
}

impl Effort {
    /// The usual one.
    const FULL: Self = Self {
        rows: 12_000,
        epochs: 10,
        passes: 8,
        oracle_epochs: 10,
        oracle_width: 128,
        augment_width: 16,
        constant_step: false,
    };
    /// An answer within half a minute.
    const QUICK: Self = Self { rows: 2500, epochs: 3, passes: 4, oracle_epochs: 3, ..Self::FULL };

    pub(crate) fn new(quick: bool) -> Self {
        if quick { Self::QUICK } else { Self::FULL }
    }

    /// With the paper's own settings, for the first 10,000 steps at most.
    pub(crate) fn published(quick: bool) -> Self {
        let effort = Self::new(quick);
        let rows = effort.rows.min(10_000);
        Self { rows, passes: 1, augment_width: 1, constant_step: true, ..effort }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FederationExperiment {
    pub source: DatasetSource,
    /// Of the plant and of all networks.
    pub seed: u64,
    pub effort: Effort,
}

/// What the oracle, and the clients beside it, learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Learned {
    pub rows: usize,
    /// Passes of the oracle over them.
    pub oracle_epochs: usize,
    pub oracle_width: usize,
    /// The clients' filters came with the program: other rows made them.
    pub delivered_filters: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    /// Names of the clients.
    pub clients: Vec<String>,
    pub learned: Learned,
    /// One for each weight of the server's gradient.
    pub curves: Vec<LossCurve>,
    /// How states move together, by model.
    pub maps: Vec<CorrelationMap>,
    /// Mean |correlation| of true states of clients of two plants that have nothing in common but
    /// their kind; none where no state is known.
    pub null_correlation: Option<f64>,
    pub norms: Vec<ResidualNorms>,
    /// The norms step by step around the first anomaly.
    pub traces: Vec<NormTrace>,
    /// Flags of each model; run lengths in steps.
    pub flags: Vec<ModelFlags>,
    /// Seconds between two steps.
    pub period_s: f64,
}

impl Results {
    /// The curve with this weight of the server's gradient.
    pub(crate) fn curve(&self, eta2: f64) -> Option<&LossCurve> {
        self.curves.iter().find(|curve| (curve.eta2 - eta2).abs() < 1e-9)
    }

    pub(crate) fn map(&self, model: &str) -> Option<&CorrelationMap> {
        self.maps.iter().find(|map| map.model == model)
    }
}

impl FederationExperiment {
    pub(crate) fn run(&self) -> Result<Results, Failure> {
        let dataset = self.source.dataset(self.seed, usize::MAX)?;
        let null_correlation = self.source.null_correlation(self.seed, &dataset)?;
        self.on(&dataset, null_correlation)
    }

    /// The same on the rows of a session, whatever its source: those of all its parts.
    pub(crate) fn on_session(&self, session: &Session) -> Result<Results, Failure> {
        let every = decimation::every(session)?;
        self.on(&dataset::of_session(session, every)?, None)
    }

    /// The same on rows that are there already.
    pub(super) fn on(
        &self,
        dataset: &Dataset,
        null_correlation: Option<f64>,
    ) -> Result<Results, Failure> {
        let Effort { rows, epochs, passes, augment_width, constant_step, .. } = self.effort;
        let step_size = if constant_step { StepSize::Constant } else { StepSize::Decaying };
        let settings = ModelSettings {
            epochs,
            augment_width,
            step_size,
            federation: Federation::Online { passes },
            ..ModelSettings::default()
        };
        let fit = dataset.fit.start..dataset.fit.end.min(dataset.fit.start + rows);
        let models = match &dataset.delivered {
            Some(models) => models.clone(),
            None => models(dataset, &fit, &settings, rng::child(self.seed, MODELS))?,
        };
        // Filters, φ, server and oracle learn from the same rows: a bound that learned from fewer would
        // be none. Filters that come with the program are excepted.
        let oracle = self.oracle(&dataset.sites(&models, fit.clone()), &settings)?;

        let compared =
            dataset.nominal.start..dataset.nominal.end.min(dataset.nominal.start + COMPARED);
        let held_out = dataset.sites(&models, compared.clone());
        let alignment = OracleAlignment::new(&held_out, &oracle, 2 * compared.len() / 5)?;
        let learning = dataset.sites(&models, fit.clone());
        let seed = rng::child(self.seed, FEDERATION);
        let (mut curves, mut published) = (Vec::new(), None);
        for eta2 in ETA2 {
            let settings = ModelSettings { eta2, ..settings.clone() };
            let (curve, weights) =
                loss_curve::follow(&learning, &held_out, &alignment, &settings, seed)?;
            curves.push(curve);
            if (eta2 - PUBLISHED).abs() < 1e-9 {
                published = Some(weights);
            }
        }
        let weights = published.expect("the published weight is among those tried");

        let all = dataset.sites(&models, 0..dataset.steps());
        let federation = replay(&all, &weights)?;
        let central = {
            let rows: Vec<ArrayView2<f32>> = all.iter().map(|site| site.rows).collect();
            let joint = concatenate(Axis(1), &rows).expect("rows of one plant are of one length");
            series(&ProprietaryWeights::Filter(oracle.filter.clone()), None, &joint.view())
                .map_err(FederationError::from)?
        };
        let residuals = NormSeries::of(&all, &federation, &central, &oracle.layout)?;
        Ok(Results {
            clients: dataset.names.clone(),
            learned: Learned {
                rows: fit.len(),
                oracle_epochs: self.effort.oracle_epochs,
                oracle_width: self.effort.oracle_width,
                delivered_filters: dataset.delivered.is_some(),
            },
            curves,
            maps: correlation_map::maps(dataset, &federation, &central),
            null_correlation,
            traces: residuals.traces(dataset),
            flags: flags::of_models(dataset, &fit, &federation, &central, &oracle.layout),
            norms: residuals.norms(dataset, fit),
            period_s: dataset.period_s,
        })
    }

    fn oracle(
        &self,
        sites: &[SiteData],
        settings: &ModelSettings,
    ) -> Result<Oracle, FederationError> {
        let Effort { oracle_epochs: epochs, oracle_width, .. } = self.effort;
        let settings = ModelSettings { oracle_width, epochs, ..settings.clone() };
        let privacy = PrivacySettings::default();
        let seed = rng::child(self.seed, ORACLE);
        let variant = Variant::CentralisedOracle;
        match variant.fit(sites, &settings, unprotected(&privacy), seed, &mut to_the_end)? {
            Fitted::CentralisedOracle(oracle) => Ok(oracle),
            other => unreachable!("the oracle was asked for, not {other:?}"),
        }
    }
}
