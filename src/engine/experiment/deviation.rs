//! One federation on the paper's plant with other settings than ours: what a setting changes in the
//! losses and in the flags. Only A2 is used, where everything takes seconds.

use super::dataset::{Dataset, DatasetSource};
use super::flags::{FlagSeries, ModelDistances};
use super::noise::TOGETHER;
use super::{Failure, models, to_the_end, unprotected};
use crate::base::rng;
use crate::federation::Federation;
use crate::federation::states::replay;
use crate::federation::variant::Fitted;
use crate::nn::train::SETTLING;
use crate::nn::weights::ProprietaryWeights;
use crate::score::steps::{Truth, TruthEvent};
use crate::session::TwinSource;
use crate::session::settings::{ModelSettings, PrivacySettings};
use crate::stream::twin::slices;

/// Source of the seed of the proprietary models.
const MODELS: u64 = 0x4D;

/// A federation and what it gives on rows that it did not learn from.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Mean L_s on nominal rows.
    pub server_loss: f64,
    /// Mean L_a there, over clients.
    pub client_loss: f64,
    /// Flags at the percentile that was asked for.
    pub flags: FlagSeries,
    pub truth: Truth,
}

/// A2 and its proprietary models, which no setting of the federation changes.
#[derive(Debug)]
pub(crate) struct Clients {
    seed: u64,
    dataset: Dataset,
    filters: Vec<ProprietaryWeights>,
}

impl Clients {
    pub(crate) fn new(seed: u64) -> Result<Self, Failure> {
        let dataset = DatasetSource::Twin(2).dataset(seed, usize::MAX)?;
        let settings = ModelSettings::default();
        let filters = models(&dataset, &settings, rng::child(seed, MODELS))?;
        Ok(Self { seed, dataset, filters })
    }
}

/// Trains the federation of `clients` with `settings` and flags it at `percentile`.
pub(crate) fn train(
    clients: &Clients,
    settings: &ModelSettings,
    percentile: f64,
) -> Result<Outcome, Failure> {
    let Clients { seed, dataset, filters } = clients;
    let privacy = PrivacySettings::default();
    let fit = dataset.sites(filters, dataset.fit.clone());
    let seed = rng::child(*seed, TOGETHER);
    let mut federation = Federation::new(&fit, settings, unprotected(&privacy), seed)?;
    let weights = federation.run(&mut to_the_end)?.weights;
    let nominal = replay(&dataset.sites(filters, dataset.nominal.clone()), &weights)?;
    let client_loss = nominal.client_loss(SETTLING);
    let (from, steps) = (dataset.fit.end, dataset.steps());
    let rows: Vec<_> = (0..filters.len()).map(|m| dataset.view(m, from..steps)).collect();
    let calibration = slices(&TwinSource::default()).calibration;
    let residuals = Fitted::Augmented(filters.clone(), weights).residuals(&rows)?;
    let distances = ModelDistances::new(&residuals, calibration.len());
    let Some(flags) = distances.at(percentile) else {
        return Err(format!("no flags at the {percentile}th percentile").into());
    };
    Ok(Outcome {
        server_loss: nominal.server_loss(SETTLING),
        client_loss: client_loss.iter().sum::<f64>() / client_loss.len().max(1) as f64,
        flags,
        truth: Truth {
            clients: filters.len(),
            steps: steps - calibration.end,
            period_s: dataset.period_s,
            events: TruthEvent::later(&dataset.events, calibration.end),
        },
    })
}
