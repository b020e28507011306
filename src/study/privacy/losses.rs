//! Losses against σ, in each direction.

use std::ops::ControlFlow;

use serde::Serialize;

use super::flags::{Clients, noised};
use super::{PrivacyStudyError, bed, mean};
use crate::federation::{FederationError, Noise, states};
use crate::model::train::SETTLING;
use crate::session::privacy::PrivacySettings;

/// One σ in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossRow {
    /// The family.
    pub family: &'static str,
    /// "states up" or "gradients down".
    pub direction: &'static str,
    /// σ; zero is no mechanism at all, neither noise nor clipping.
    pub sigma: f64,
    /// Seeds.
    pub seeds: usize,
    /// Mean L_s of the trained models on nominal rows that nothing was fitted to.
    pub server_loss: Option<f64>,
    /// Mean L_a likewise.
    pub client_loss: Option<f64>,
    /// Mean L_s as the server saw it at the end of training, noise included.
    pub server_loss_seen: Option<f64>,
    /// Trainings that diverged.
    pub diverged: usize,
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

/// The paper's figure 3 on its plant of two clients.
pub fn losses(seeds: &[u64], quick: bool) -> Result<Vec<LossRow>, PrivacyStudyError> {
    let family = "A2";
    let clients: Vec<Clients> = seeds
        .iter()
        .map(|seed| Clients::new(bed(family), *seed, quick))
        .collect::<Result<_, _>>()?;
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
fn trained(clients: &Clients, noise: Noise) -> Result<Option<Losses>, PrivacyStudyError> {
    let privacy = PrivacySettings::default();
    let mut federation = noised(clients, &privacy, noise)?;
    let outcome = match federation.run(&mut |_| ControlFlow::Continue(())) {
        Ok(outcome) => outcome,
        Err(FederationError::Diverged { .. }) => return Ok(None),
        Err(other) => return Err(other.into()),
    };
    let replay = states::replay(&clients.nominal_sites(), &outcome.weights)?;
    let own = replay.client_loss(SETTLING);
    Ok(Some(Losses {
        server: replay.server_loss(SETTLING),
        client: own.iter().sum::<f64>() / own.len().max(1) as f64,
        seen: outcome.history.reached.last().map_or(f64::NAN, |word| word.server_loss),
    }))
}
