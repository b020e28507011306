//! How one federation learned: losses, bytes, and its distance from the oracle pass by pass.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{go_on, hooks};
use crate::federation::convergence::{self, Yardstick};
use crate::federation::states::replay;
use crate::federation::{FederatedWeights, Federation, FederationError, History};
use crate::nn::train::SETTLING;
use crate::session::settings::{ModelSettings, PrivacySettings};
use crate::site::training::SiteData;

/// A curve has at most so many points.
const POINTS: usize = 64;

/// One training, from beginning to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Course {
    /// Weight of the server's gradient.
    pub(crate) eta2: f64,
    pub(crate) rounds: usize,
    /// Bytes from clients to the server, all rounds together.
    pub(crate) bytes_up: u64,
    /// Bytes from the server to clients.
    pub(crate) bytes_down: u64,
    pub(crate) losses: Vec<Loss>,
    /// Mean L_s on nominal rows that nothing was fitted to.
    pub(crate) server_loss: f64,
    /// Mean L_a of each client there.
    pub(crate) client_loss: Vec<f64>,
    /// After every pass, means over clients.
    pub(crate) passes: Vec<Pass>,
    /// Every client beside the oracle at the end.
    pub(crate) end: Vec<Beside>,
}

/// A point of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Loss {
    pub(crate) round: usize,
    /// Mean L_s since the point before.
    pub(crate) server: f64,
    /// Mean L_a of each client since the point before.
    pub(crate) clients: Vec<f64>,
}

/// Distances from the oracle after a pass, means over clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pass {
    /// ‖x_a − x_o‖.
    pub(crate) x_a: f64,
    /// ‖x_s − x_o‖.
    pub(crate) x_s: f64,
}

/// One client beside the oracle, and the theorem's condition there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beside {
    /// Mean ‖x_c − x_o‖.
    pub(crate) x_c: f64,
    /// Mean ‖x_a − x_o‖.
    pub(crate) x_a: f64,
    /// Mean ‖x_s − x_o‖.
    pub(crate) x_s: f64,
    /// Share of the variance of x_c that an affine map of x_o leaves over.
    pub(crate) unexplained: f64,
    /// Largest ‖F‖.
    pub(crate) l_f: f64,
    /// Largest ‖H‖.
    pub(crate) l_h: f64,
    /// Largest ‖ΔK‖.
    pub(crate) delta_k: f64,
    /// Mean ‖x_o‖: what a distance has to be measured against.
    pub(crate) c_x: f64,
    /// ρ of theorem 6.10 where its condition holds.
    pub(crate) rho: Option<f64>,
    /// Whether the condition holds at all steps.
    pub(crate) holds: bool,
    /// Whether it holds with the 95 % quantiles in place of the largest values.
    pub(crate) holds_mostly: bool,
}

impl From<&convergence::Beside> for Beside {
    fn from(b: &convergence::Beside) -> Self {
        Self {
            x_c: b.x_c,
            x_a: b.x_a,
            x_s: b.x_s,
            unexplained: b.unexplained,
            l_f: b.l_f.max,
            l_h: b.l_h.max,
            delta_k: b.delta_k.max,
            c_x: b.c_x,
            rho: b.rho,
            holds: b.holds,
            holds_mostly: b.holds_mostly,
        }
    }
}

/// Learns on `fit` and is judged on `held_out`, the sites of `yardstick`.
pub(super) fn follow(
    fit: &[SiteData],
    held_out: &[SiteData],
    yardstick: &Yardstick,
    settings: &ModelSettings,
    seed: u64,
) -> Result<(Course, FederatedWeights), FederationError> {
    let open = PrivacySettings::default();
    let mut federation = Federation::new(fit, settings, hooks(&open), seed)?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keeper = Arc::clone(&seen);
    federation.monitor(move |weights| {
        keeper.lock().unwrap_or_else(PoisonError::into_inner).push(weights.clone());
    });
    let outcome = federation.run(&mut go_on)?;
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    let passes = seen.iter().map(|weights| Ok(pass(&yardstick.compare(weights)?)));
    let passes = passes.collect::<Result<_, FederationError>>()?;
    let replay = replay(held_out, &outcome.weights)?;
    let History { rounds, bytes, bytes_down, .. } = outcome.history;
    let course = Course {
        eta2: settings.eta2,
        rounds,
        bytes_up: bytes - bytes_down,
        bytes_down,
        losses: thinned(&outcome.history),
        server_loss: replay.server_loss(SETTLING),
        client_loss: replay.client_loss(SETTLING),
        passes,
        end: yardstick.compare(&outcome.weights)?.iter().map(Beside::from).collect(),
    };
    Ok((course, outcome.weights))
}

fn pass(clients: &[convergence::Beside]) -> Pass {
    let mean = |of: &dyn Fn(&convergence::Beside) -> f64| {
        clients.iter().map(of).sum::<f64>() / clients.len().max(1) as f64
    };
    Pass { x_a: mean(&|b| b.x_a), x_s: mean(&|b| b.x_s) }
}

/// Means over so many words of progress that few points are left.
fn thinned(history: &History) -> Vec<Loss> {
    let each = history.reached.len().div_ceil(POINTS).max(1);
    let points = history.reached.chunks(each).filter_map(|words| {
        let n = words.len() as f64;
        let last = words.last()?;
        let client = |m: usize| words.iter().map(|w| w.client_loss[m]).sum::<f64>() / n;
        Some(Loss {
            round: last.round,
            server: words.iter().map(|w| w.server_loss).sum::<f64>() / n,
            clients: (0..last.client_loss.len()).map(client).collect(),
        })
    });
    points.collect()
}
