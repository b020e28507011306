//! Why a session cannot be prepared or opened.

use jiff::Timestamp;
use thiserror::Error;

use super::cost::TooMuch;
use crate::federation::FederationError;
use crate::nn::checkpoint::CheckpointError;
use crate::nn::kernel::WeightsError;
use crate::nn::train::TrainError;
use crate::privacy::{PrivacyError, Trained};
use crate::stream::StreamError;

/// Why there is no stream.
pub(crate) type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// The releases of a training before it failed.
#[derive(Debug, Clone)]
pub(crate) struct TrainingReleases {
    /// The first sample it is about.
    pub(crate) from: Timestamp,
    /// The clients by name, with what was released about each, by kind.
    pub(crate) clients: Vec<(String, Vec<Trained>)>,
}

/// Why a session cannot be prepared.
#[derive(Debug, Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Federation(#[from] FederationError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("{client}: the calibration range is too short to tell what is normal")]
    TooShort { client: String },
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
    /// It failed after clients had released something, which belongs in their ledgers.
    #[error("{why}")]
    AfterReleases { why: Box<PrepareError>, released: TrainingReleases },
    #[error("the fits of the sites cannot be written: {0}")]
    Fits(postcard::Error),
    #[error("{what} cannot be written as JSON: {source}")]
    Json {
        /// Which part of the session or of its models.
        what: &'static str,
        source: serde_json::Error,
    },
}
