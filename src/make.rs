//! Data of the built-in plants, written to files together with the truth about it, or live.
//!
//! It must not know who reads them: what it writes is plain CSV and JSON.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

use crate::base::atomic_file::WriteError;
use crate::stream::StreamError;

pub(crate) mod live;
#[cfg(feature = "opcua")]
pub(crate) mod opcua;
pub(crate) mod plant;
pub(crate) mod publish;
pub(crate) mod twin;

/// Why nothing was written.
#[derive(Debug, Error)]
pub(crate) enum MakeError {
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] StreamError),
    /// The operating system refused.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The receiver of live rows cannot be written to.
    #[error(transparent)]
    Sink(#[from] std::io::Error),
    /// A broker refuses, or what is said about it makes no sense.
    #[error("{0}")]
    Broker(String),
    #[error("stopped before the data was complete: no file was written")]
    Stopped,
}

/// Which of the files `names` stand in `folder`.
pub(crate) fn standing<'a>(folder: &Path, names: &[&'a str]) -> Vec<&'a str> {
    // A link that leads nowhere would be replaced as well.
    let stands = |name: &&str| fs::symlink_metadata(folder.join(name)).is_ok();
    names.iter().copied().filter(stands).collect()
}

/// Whether it is to stop.
fn is_wanted(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}
