//! The paper's own experiments: data, models and trainings that no session can ask for.
//!
//! `study` runs sessions through the engine like every command. Only what the paper compares with and
//! varies is made here: the centralised oracle and the other baselines, training with a given σ, plants
//! of up to 1024 clients. It sees the rows of all clients, so no command but `study` may use it.
//!
//! | module | purpose |
//! |---|---|
//! | [`dataset`] | one run of a plant as standardised rows per client |
//! | [`deviation`] | one federation with other settings than ours: what each of them changes |
//! | [`federation`] | one federation beside the oracle: losses, states, residuals, flags |
//! | [`loss_curve`], [`correlation_map`], [`residual_norms`] | its results |
//! | [`flags`] | flags of a model at any percentile, their run lengths, the look-up |
//! | [`graph`] | who influences whom, learned, beside the plant's true graph |
//! | [`noise`] | training with noise of a given size |
//! | [`scalability`] | loss, bytes and time of a round by number of clients |
//! | [`spending`] | the privacy that a day of a run spends |
//! | [`recorded`] | where the files of a recorded data set are |

pub(crate) mod correlation_map;
pub(crate) mod dataset;
pub(crate) mod deviation;
pub(crate) mod federation;
pub(crate) mod flags;
pub(crate) mod graph;
pub(crate) mod loss_curve;
pub(crate) mod noise;
pub(crate) mod recorded;
pub(crate) mod residual_norms;
pub(crate) mod scalability;
pub(crate) mod spending;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

use self::dataset::Dataset;
use crate::base::rng;
pub(crate) use crate::federation::variant::Variant;
use crate::federation::{FederationError, Hooks, Progress};
use crate::nn::checkpoint::{CacheEnvironment, cache_folder};
use crate::nn::train::{self, proprietary};
use crate::nn::weights::ProprietaryWeights;
use crate::privacy::Provenance;
use crate::session::settings::{ModelSettings, PrivacySettings, Proprietary};

/// Why an experiment has no result.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Where results of experiments are kept between runs of the program.
pub(crate) fn results_folder() -> PathBuf {
    cache_folder(&CacheEnvironment::of_process()).join("studies")
}

/// The clients' proprietary models, of the paper's form, from the rows `fit`.
fn models(
    dataset: &Dataset,
    fit: &Range<usize>,
    settings: &ModelSettings,
    seed: u64,
) -> Result<Vec<ProprietaryWeights>, FederationError> {
    let clients = dataset.names.iter().enumerate();
    clients
        .map(|(m, name)| {
            let job = train::Job {
                client: name,
                kind: Proprietary::Paper,
                settings,
                fit: dataset.view(m, fit.clone()),
                held_out: dataset.view(m, 0..0),
                seed: rng::child(seed, m as u64),
            };
            Ok(proprietary(&job, &|_| ControlFlow::Continue(()))?.weights)
        })
        .collect()
}

/// No noise, all randomness from the seed.
fn unprotected(privacy: &PrivacySettings) -> Hooks<'_> {
    Hooks { privacy, provenance: Provenance::Seeded }
}

fn to_the_end(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
