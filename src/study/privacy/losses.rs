//! Losses against σ, in each direction.

use serde::Serialize;

use super::{mean, published};
use crate::federation::{Federation, FederationError, Noise, states};
use crate::nn::train::SETTLING;
use crate::nn::weights::ProprietaryWeights;
use crate::rng;
use crate::session::{ModelSettings, PrivacySettings};
use crate::study::detection::Models;
use crate::study::detection::baseline::TOGETHER;
use crate::study::frame::StudyError;
use crate::study::lesson::{self, Ground, Plant};

/// One σ in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LossRow {
    pub(crate) family: &'static str,
    /// "states up" or "gradients down".
    pub(crate) direction: &'static str,
    /// σ; zero is no mechanism at all, neither noise nor clipping.
    pub(crate) sigma: f64,
    pub(crate) seeds: usize,
    /// Mean L_s of the trained models on nominal rows that nothing was fitted to.
    pub(crate) server_loss: Option<f64>,
    /// Mean L_a likewise.
    pub(crate) client_loss: Option<f64>,
    /// Mean L_s as the server saw it at the end of training, noise included.
    pub(crate) server_loss_seen: Option<f64>,
    pub(crate) diverged: usize,
}

const SIGMAS: [f64; 9] = [0.0, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5];
const QUICK: [f64; 5] = [0.0, 1e-1, 1e1, 1e3, 1e5];

/// What one training came to.
#[derive(Debug, Clone, Copy)]
struct Losses {
    server: f64,
    client: f64,
    seen: f64,
}

/// Clients that learn from each other, in whatever way.
struct Learners {
    ground: Ground,
    models: Vec<ProprietaryWeights>,
    settings: ModelSettings,
    seed: u64,
}

impl Learners {
    fn new(family: &str, seed: u64, quick: bool) -> Result<Self, StudyError> {
        let session = published(family, seed, quick)?;
        let mut models = Models::default();
        let clients = &models.of(&session)?.clients;
        Ok(Self {
            ground: Plant::Twin(clients.len()).ground(seed, usize::MAX)?,
            models: clients.iter().map(|client| client.sending.clone()).collect(),
            settings: session.model,
            seed: rng::child(seed, TOGETHER),
        })
    }
}

/// The paper's figure 3 on its plant of two clients. A session noises by ε; here σ is given.
pub(crate) fn losses(seeds: &[u64], quick: bool) -> Result<Vec<LossRow>, StudyError> {
    let family = "A2";
    let clients = seeds.iter().map(|seed| Learners::new(family, *seed, quick));
    let clients: Vec<Learners> = clients.collect::<Result<_, _>>()?;
    let sigmas: &[f64] = if quick { &QUICK } else { &SIGMAS };
    let mut rows = Vec::new();
    for direction in ["states up", "gradients down"] {
        for &sigma in sigmas {
            let some = (sigma > 0.0).then_some(sigma);
            let noise = if direction == "states up" {
                Noise { up: some, down: None }
            } else {
                Noise { up: None, down: some }
            };
            let mut found = Vec::new();
            for clients in &clients {
                found.push(trained(clients, noise)?);
            }
            rows.push(LossRow {
                family,
                direction,
                sigma,
                seeds: seeds.len(),
                server_loss: mean(found.iter().map(|l| l.map(|l| l.server))),
                client_loss: mean(found.iter().map(|l| l.map(|l| l.client))),
                server_loss_seen: mean(found.iter().map(|l| l.map(|l| l.seen))),
                diverged: found.iter().filter(|l| l.is_none()).count(),
            });
        }
    }
    Ok(rows)
}

/// Trains with noise; none when that diverges, which is a finding and no failure.
fn trained(learners: &Learners, noise: Noise) -> Result<Option<Losses>, StudyError> {
    let Learners { ground, models, settings, seed } = learners;
    let privacy = PrivacySettings::default();
    let sites = ground.sites(models, ground.fit.clone());
    let mut federation =
        Federation::with_noise(&sites, settings, lesson::hooks(&privacy), noise, *seed)?;
    let outcome = match federation.run(&mut lesson::go_on) {
        Ok(outcome) => outcome,
        Err(FederationError::Diverged { .. }) => return Ok(None),
        Err(other) => return Err(other.into()),
    };
    let held_out = ground.sites(models, ground.nominal.clone());
    let replay = states::replay(&held_out, &outcome.weights)?;
    let own = replay.client_loss(SETTLING);
    Ok(Some(Losses {
        server: replay.server_loss(SETTLING),
        client: own.iter().sum::<f64>() / own.len().max(1) as f64,
        seen: outcome.history.reached.last().map_or(f64::NAN, |word| word.server_loss),
    }))
}
