//! Loss, bytes and time of a round by number of clients.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use ndarray::{Array2, Axis, Slice};
use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, DatasetSource};
use super::{Failure, models, unprotected};
use crate::base::rng;
use crate::federation::states::{Replay, replay};
use crate::federation::{Federation, FederationError};
use crate::nn::train::SETTLING;
use crate::nn::weights::ProprietaryWeights;
use crate::session::TwinSource;
use crate::session::settings::{self, ModelSettings, PrivacySettings};
use crate::site::training::SiteData;
use crate::stream::twin::slices;

/// Steps between the moments from which two copies see one run. It has no factor in common with
/// the twenty steps of the plant's period, so that copies are at all phases of it.
const APART: usize = 47;

/// Rows that a federation is judged on.
const JUDGED: usize = 500;

/// Sources of a seed.
const MODELS: u64 = 0x4D;
const FEDERATION: u64 = 0x46;

/// How much is learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Size {
    /// Passes of the proprietary models.
    pub epochs: usize,
    /// Rows of the federation.
    pub rows: usize,
    /// Its passes over them.
    pub passes: usize,
    /// Whether the federation has the paper's settings, with one pass.
    pub as_published: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scale {
    pub clients: usize,
    /// Plants they are the clients of.
    pub copies: usize,
    /// Whether it is one of the short runs.
    pub short: bool,
    /// Whether it has the paper's settings.
    pub as_published: bool,
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

/// A plant of `clients` clients at its own size, with our settings and with the paper's, and, where
/// there is something `beyond`, a short run of it and of so many copies as give those numbers of clients.
pub(crate) fn grow(
    clients: usize,
    seed: u64,
    size: Size,
    short: Size,
    beyond: &[usize],
) -> Result<Vec<Scale>, Failure> {
    let most = beyond.iter().map(|number| number / clients).max().unwrap_or(1);
    let nominal = slices(&TwinSource { clients, ..TwinSource::default() }).calibration.start;
    let dataset = DatasetSource::Twin(clients).dataset(seed, nominal + shift(most - 1) + JUDGED)?;
    let settings = ModelSettings { epochs: size.epochs, ..ModelSettings::default() };
    let models = models(&dataset, &dataset.fit, &settings, rng::child(seed, MODELS))?;
    let plants = Plants { dataset: &dataset, models: &models, seed: rng::child(seed, FEDERATION) };
    let published = Size { as_published: true, ..size };
    let mut found = vec![plants.federation(1, size)?, plants.federation(1, published)?];
    if !beyond.is_empty() {
        let numbers = std::iter::once(clients).chain(beyond.iter().copied());
        for number in numbers {
            let scale = plants.federation(number / clients, short)?;
            found.push(Scale { short: true, ..scale });
        }
    }
    Ok(found)
}

/// How much later a copy begins than the first.
fn shift(copy: usize) -> usize {
    copy * APART
}

struct Plants<'a> {
    dataset: &'a Dataset,
    models: &'a [ProprietaryWeights],
    seed: u64,
}

impl<'a> Plants<'a> {
    /// The clients of `copies` plants over at most `length` of the rows `from`: each copy sees
    /// another stretch of them. How far two copies are apart is the same in all rows: it is as fixed
    /// as the phases of two clients of one plant.
    fn sites(&self, copies: usize, from: &Range<usize>, length: usize) -> Vec<SiteData<'a>> {
        let length = length.min(from.len().saturating_sub(shift(copies - 1)));
        let stretches = (0..copies).map(|copy| from.start + shift(copy));
        stretches.flat_map(|start| self.dataset.sites(self.models, start..start + length)).collect()
    }

    fn federation(&self, copies: usize, size: Size) -> Result<Scale, FederationError> {
        let Self { dataset, .. } = self;
        let sites = self.sites(copies, &dataset.fit, size.rows);
        let mut settings = ModelSettings {
            federation: settings::Federation::Online { passes: size.passes },
            ..ModelSettings::default()
        };
        if size.as_published {
            settings.federate_as_published();
        }
        let privacy = PrivacySettings::default();
        let mut federation = Federation::new(&sites, &settings, unprotected(&privacy), self.seed)?;
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
        let last = history.reached.iter().rev().take(eighth).map(|reached| reached.server_loss);
        let judged = self.sites(copies, &dataset.nominal, JUDGED);
        let replayed = replay(&judged, &outcome.weights)?;
        let held_out = replayed.server_loss(SETTLING);
        let rounds = history.rounds as f64;
        Ok(Scale {
            clients: sites.len(),
            copies,
            short: false,
            as_published: size.as_published,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::train::test_support::{plant, small_filter};

    fn dataset() -> Dataset {
        let rows = vec![plant(400, 3, 1), plant(400, 3, 2)];
        Dataset {
            names: vec!["C1".into(), "C2".into()],
            anomalous: vec![false; 400],
            events: Vec::new(),
            period_s: 1.0,
            delivered: None,
            states: None,
            fit: 0..200,
            nominal: 200..400,
            rows,
        }
    }

    #[test]
    fn every_client_of_every_copy_sends_its_states_and_is_answered() {
        let dataset = dataset();
        let models: Vec<_> =
            (1..3).map(|k| ProprietaryWeights::Filter(small_filter(3, false, k))).collect();
        let plants = Plants { dataset: &dataset, models: &models, seed: 1 };
        let size = Size { epochs: 0, rows: 60, passes: 2, as_published: false };
        let published = plants.federation(1, Size { as_published: true, ..size }).unwrap();
        assert_eq!((published.rounds, published.as_published), (59, true), "one pass");
        for copies in [1, 3] {
            let scale = plants.federation(copies, size).unwrap();
            assert_eq!((scale.clients, scale.rounds), (2 * copies, 2 * 59));
            let per_round = |numbers: usize| (numbers * 4 * scale.clients) as f64;
            assert!((scale.bytes_up - per_round(4)).abs() < 1e-9, "{scale:?}");
            assert!((scale.bytes_down - per_round(2)).abs() < 1e-9, "{scale:?}");
            assert!(scale.server_loss > 0.0 && scale.held_out > 0.0 && scale.round_us > 0.0);
            let again = plants.federation(copies, size).unwrap();
            assert_eq!(Scale { round_us: 0.0, ..again }, Scale { round_us: 0.0, ..scale });
        }
    }

    #[test]
    fn copies_see_the_same_run_from_moments_that_are_always_as_far_apart() {
        let dataset = dataset();
        let models: Vec<_> =
            (1..3).map(|k| ProprietaryWeights::Filter(small_filter(3, false, k))).collect();
        let plants = Plants { dataset: &dataset, models: &models, seed: 1 };
        for from in [&dataset.fit, &dataset.nominal] {
            let sites = plants.sites(3, from, 60);
            assert_eq!(sites.len(), 6);
            for (k, site) in sites.iter().enumerate() {
                let start = from.start + k / 2 * APART;
                assert_eq!(site.rows, dataset.view(k % 2, start..start + 60));
            }
        }
    }
}
