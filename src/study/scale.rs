//! A federation of so many clients, measured: loss, bytes and time of a round.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use ndarray::{Array2, Axis, Slice};
use serde::{Deserialize, Serialize};

use crate::client::Site;
use crate::federation::states::{Replay, replay};
use crate::federation::{Federation, FederationError};
use crate::model::train::SETTLING;
use crate::model::weights::ProprietaryWeights;
use crate::rng;
use crate::session::settings::{self, ModelSettings, PrivacySettings};
use crate::study::frame::StudyError;
use crate::study::lesson::{Ground, Plant, hooks, models};

/// Rows that a federation is judged on.
const JUDGED: usize = 500;

/// Sources of a seed.
const MODELS: u64 = 0x4D;
const FEDERATION: u64 = 0x46;

/// How much is learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Passes of the proprietary models.
    pub epochs: usize,
    /// Rows of the federation.
    pub rows: usize,
    /// Its passes over them.
    pub passes: usize,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Clients.
    pub clients: usize,
    /// Plants they are the clients of.
    pub copies: usize,
    /// Whether it is one of the short runs.
    pub short: bool,
    /// Rounds.
    pub rounds: usize,
    /// Mean L_s of the last eighth of training.
    pub server_loss: f64,
    /// Mean L_s on rows that nothing was fitted to.
    pub held_out: f64,
    /// The latter as a share of the variance of x_a.
    pub unexplained: f64,
    /// Bytes a round from clients to the server.
    pub bytes_up: f64,
    /// Bytes a round from the server to clients.
    pub bytes_down: f64,
    /// Microseconds of a round, in the best stretch of training.
    pub round_us: f64,
}

/// A plant of `clients` clients at its own size and, where there is something `beyond`, a short run
/// of it and of so many copies as give those numbers of clients.
pub fn grow(
    clients: usize,
    seed: u64,
    size: Size,
    short: Size,
    beyond: &[usize],
) -> Result<Vec<Scale>, StudyError> {
    let ground = Plant::Twin(clients).ground(seed, usize::MAX)?;
    let settings = ModelSettings { epochs: size.epochs, ..ModelSettings::default() };
    let models = models(&ground, &settings, rng::child(seed, MODELS))?;
    let plants = Plants { ground: &ground, models: &models, seed: rng::child(seed, FEDERATION) };
    let mut found = vec![plants.federation(1, size)?];
    if !beyond.is_empty() {
        let numbers = std::iter::once(clients).chain(beyond.iter().copied());
        for number in numbers {
            let scale = plants.federation(number / clients, short)?;
            found.push(Scale { short: true, ..scale });
        }
    }
    Ok(found)
}

struct Plants<'a> {
    ground: &'a Ground,
    models: &'a [ProprietaryWeights],
    seed: u64,
}

impl<'a> Plants<'a> {
    /// The clients of `copies` plants over `length` of the rows `from`: each copy sees another
    /// stretch of them, all as far apart as there is room for.
    fn sites(&self, copies: usize, from: &Range<usize>, length: usize) -> Vec<Site<'a>> {
        let length = length.min(from.len());
        let apart = (from.len() - length) / copies.saturating_sub(1).max(1);
        let stretches = (0..copies).map(|copy| from.start + copy * apart);
        stretches.flat_map(|start| self.ground.sites(self.models, start..start + length)).collect()
    }

    fn federation(&self, copies: usize, size: Size) -> Result<Scale, FederationError> {
        let Self { ground, .. } = self;
        let sites = self.sites(copies, &ground.fit, size.rows);
        let settings = ModelSettings {
            federation: settings::Federation::Online { passes: size.passes },
            ..ModelSettings::default()
        };
        let open = PrivacySettings::default();
        let mut federation = Federation::new(&sites, &settings, hooks(&open), self.seed)?;
        let (mut best, mut before, mut since) = (f64::INFINITY, 0, Instant::now());
        let outcome = federation.run(&mut |progress| {
            let rounds = (progress.round - before) as f64;
            best = best.min(since.elapsed().as_secs_f64() * 1e6 / rounds);
            (before, since) = (progress.round, Instant::now());
            ControlFlow::Continue(())
        })?;
        drop(federation);
        let history = outcome.history;
        let eighth = history.reached.len().div_ceil(8);
        let last = history.reached.iter().rev().take(eighth).map(|word| word.server_loss);
        let judged = self.sites(copies, &ground.nominal, JUDGED);
        let replayed = replay(&judged, &outcome.weights)?;
        let held_out = replayed.server_loss(SETTLING);
        let rounds = history.rounds as f64;
        Ok(Scale {
            clients: sites.len(),
            copies,
            short: false,
            rounds: history.rounds,
            server_loss: last.sum::<f64>() / eighth.max(1) as f64,
            held_out,
            unexplained: held_out / variance(&replayed),
            bytes_up: (history.bytes - history.bytes_down) as f64 / rounds,
            bytes_down: history.bytes_down as f64 / rounds,
            round_us: best,
        })
    }
}

/// Summed variance of all x_a, after the filters have found their states.
fn variance(replayed: &Replay) -> f64 {
    let x_a: Array2<f32> = replayed.x_a();
    let settled = x_a.slice_axis(Axis(0), Slice::from(SETTLING.min(x_a.nrows())..));
    settled.mapv(f64::from).var_axis(Axis(0), 0.0).sum()
}
