//! One training: losses, bytes, and the distance from the oracle pass by pass.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{to_the_end, unprotected};
use crate::federation::convergence::OracleAlignment;
pub(crate) use crate::federation::convergence::OracleDistance;
use crate::federation::states::replay;
pub(crate) use crate::federation::theory::{ClientTheory, ServerTheory};
use crate::federation::{FederatedWeights, Federation, FederationError, History};
use crate::nn::train::SETTLING;
use crate::session::settings::{ModelSettings, PrivacySettings};
use crate::site::training::SiteData;

/// A curve has at most so many points.
const POINTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LossCurve {
    /// Weight of the server's gradient.
    pub eta2: f64,
    pub rounds: usize,
    /// Bytes from clients to the server, all rounds together.
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub losses: Vec<LossPoint>,
    /// Mean L_s on nominal rows that nothing was fitted to.
    pub server_loss: f64,
    /// Mean L_a of each client there.
    pub client_loss: Vec<f64>,
    /// After every pass, means over clients.
    pub passes: Vec<Pass>,
    /// Every client beside the oracle at the end of training.
    pub end: Vec<OracleDistance>,
    /// The quantities of the theorems, client by client.
    pub theory: Vec<ClientTheory>,
    pub server_theory: ServerTheory,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LossPoint {
    /// Rounds done.
    pub round: usize,
    /// Mean L_s since the point before.
    pub server: f64,
    /// Mean L_a of each client since the point before.
    pub clients: Vec<f64>,
}

/// Distances from the oracle after a pass, means over clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pass {
    /// ‖x_a − x_o‖.
    pub x_a: f64,
    /// ‖x_s − x_o‖.
    pub x_s: f64,
}

/// Learns on `fit` and is judged on `held_out`, the sites of `alignment`.
pub(super) fn follow(
    fit: &[SiteData],
    held_out: &[SiteData],
    alignment: &OracleAlignment,
    settings: &ModelSettings,
    seed: u64,
) -> Result<(LossCurve, FederatedWeights), FederationError> {
    let privacy = PrivacySettings::default();
    let mut federation = Federation::new(fit, settings, unprotected(&privacy), seed)?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keeper = Arc::clone(&seen);
    federation.monitor(move |weights| {
        keeper.lock().unwrap_or_else(PoisonError::into_inner).push(weights.clone());
    });
    let outcome = federation.run(&mut to_the_end)?;
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    let first = seen.first().unwrap_or(&outcome.weights);
    let (theory, server_theory) = alignment.theory(first, &outcome.weights)?;
    let passes = seen.iter().map(|weights| Ok(pass(&alignment.compare(weights)?)));
    let passes = passes.collect::<Result<_, FederationError>>()?;
    let replay = replay(held_out, &outcome.weights)?;
    let History { rounds, bytes, bytes_down, .. } = outcome.history;
    let curve = LossCurve {
        eta2: settings.eta2,
        rounds,
        bytes_up: bytes - bytes_down,
        bytes_down,
        losses: thinned(&outcome.history),
        server_loss: replay.server_loss(SETTLING),
        client_loss: replay.client_loss(SETTLING),
        passes,
        end: alignment.compare(&outcome.weights)?,
        theory,
        server_theory,
    };
    Ok((curve, outcome.weights))
}

fn pass(clients: &[OracleDistance]) -> Pass {
    let mean = |of: &dyn Fn(&OracleDistance) -> f64| {
        clients.iter().map(of).sum::<f64>() / clients.len().max(1) as f64
    };
    Pass { x_a: mean(&|b| b.x_a), x_s: mean(&|b| b.x_s) }
}

/// The history in at most [`POINTS`] points, each the mean of its stretch.
fn thinned(history: &History) -> Vec<LossPoint> {
    let each = history.reached.len().div_ceil(POINTS).max(1);
    let points = history.reached.chunks(each).filter_map(|stretch| {
        let n = stretch.len() as f64;
        let last = stretch.last()?;
        let client = |m: usize| stretch.iter().map(|w| w.client_loss[m]).sum::<f64>() / n;
        Some(LossPoint {
            round: last.round,
            server: stretch.iter().map(|w| w.server_loss).sum::<f64>() / n,
            clients: (0..last.client_loss.len()).map(client).collect(),
        })
    });
    points.collect()
}
