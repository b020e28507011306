//! Data of the built-in plants, written to files together with the truth about it.
//!
//! It must not know who reads them: what it writes is plain CSV and JSON.

use thiserror::Error;

use crate::draft::DraftError;
use crate::stream::StreamError;

pub mod plant;
pub mod twin;

/// Why nothing was written.
#[derive(Debug, Error)]
pub enum MakeError {
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] StreamError),
    /// The operating system refused.
    #[error(transparent)]
    Write(#[from] DraftError),
}
