//! Training with noise of a given size. A session noises by ε; the paper's figure 3 varies σ.

use super::dataset::{Dataset, DatasetSource};
use super::{Failure, to_the_end, unprotected};
use crate::base::rng;
use crate::engine::prepare::Prepared;
use crate::federation::{Federation, FederationError, Noise, states};
use crate::nn::train::SETTLING;
use crate::nn::weights::ProprietaryWeights;
use crate::session::{ModelSettings, PrivacySettings, Session};

/// Source of the seed of federated training: the engine's own, so that all models begin with the same
/// networks.
pub(super) const TOGETHER: u64 = 0x46;

/// Clients of a synthetic plant of family A with their models, ready to be trained together.
#[derive(Debug)]
pub(crate) struct NoisedTraining {
    dataset: Dataset,
    models: Vec<ProprietaryWeights>,
    settings: ModelSettings,
    seed: u64,
}

/// The direction in which messages are noised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    StatesUp,
    GradientsDown,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Losses {
    /// Mean L_s of the trained models, without noise, on nominal rows that nothing was fitted to.
    pub server: f64,
    /// Mean L_a likewise.
    pub client: f64,
    /// Mean L_s at the end of training, noise included.
    pub seen: f64,
}

impl NoisedTraining {
    /// With the models that were prepared for `session`.
    pub(crate) fn new(session: &Session, prepared: &Prepared) -> Result<Self, Failure> {
        let clients = &prepared.clients;
        Ok(Self {
            dataset: DatasetSource::Twin(clients.len()).dataset(session.seed, usize::MAX)?,
            models: clients.iter().map(|client| client.sending.clone()).collect(),
            settings: session.model.clone(),
            seed: rng::child(session.seed, TOGETHER),
        })
    }

    /// Trains with σ, where zero is no mechanism at all. Divergence is a result, not a failure: it gives
    /// no losses.
    pub(crate) fn losses(
        &self,
        direction: Direction,
        sigma: f64,
    ) -> Result<Option<Losses>, Failure> {
        let some = (sigma > 0.0).then_some(sigma);
        let noise = match direction {
            Direction::StatesUp => Noise { up: some, down: None },
            Direction::GradientsDown => Noise { up: None, down: some },
        };
        let Self { dataset, models, settings, seed } = self;
        let privacy = PrivacySettings::default();
        let sites = dataset.sites(models, dataset.fit.clone());
        let mut federation =
            Federation::with_noise(&sites, settings, unprotected(&privacy), noise, *seed)?;
        let outcome = match federation.run(&mut to_the_end) {
            Ok(outcome) => outcome,
            Err(FederationError::Diverged { .. }) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let held_out = dataset.sites(models, dataset.nominal.clone());
        let replay = states::replay(&held_out, &outcome.weights)?;
        let own = replay.client_loss(SETTLING);
        Ok(Some(Losses {
            server: replay.server_loss(SETTLING),
            client: own.iter().sum::<f64>() / own.len().max(1) as f64,
            seen: outcome.history.reached.last().map_or(f64::NAN, |last| last.server_loss),
        }))
    }
}
