//! Recordings: a run is stored while it happens, in one SQLite file that any tool can read.
//!
//! ```text
//!  engine ──► Recorder ──► (bounded queue) ──► writer thread ──► FILE: one transaction a second
//!  FILE ──► Recording ──► facts, steps, messages, events: what the engine said, again
//! ```
//!
//! Guarantees:
//! - The engine hands rows over and goes on. It waits only while the queue is full, and not for long:
//!   a disk that does not keep up ends the recording, never the run.
//! - What was handed over reaches the file within a second. A process that is killed loses no more, and
//!   what is in the file then is the beginning of what the whole run would have stored.
//! - What a site shows on its own machine and what the server knows stand in separate tables.
//! - Measurements are stored only where the session asks for it (`record: (measurements: true)`).
//!   Keys and passwords are never stored.
//! - Whatever the bytes of a file are, opening it gives a recording or an error in words.
//!
//! | module | what it is for |
//! |---|---|
//! | `schema` | the tables, their version, and how older files are brought up to it |
//! | `block` | the columns of some steps as bytes |
//! | `batch` | what the engine hands to the writer |
//! | [`recorder`] | the engine's end: rows in, never a wait for the disk |
//! | `writer` | the thread that owns the file |
//! | [`room`] | what goes first where the file has become too large |
//! | [`recording`] | a file that is read again |
//! | [`export`], [`report`] | tables for other programs, reports for people |
//! | [`folder`] | where recordings stand that nobody named, and how many are kept |
//!
//! It must not know how a run decides, nor how anything is shown.

pub(crate) mod batch;
mod block;
pub(crate) mod export;
pub(crate) mod folder;
pub(crate) mod recorder;
pub(crate) mod recording;
pub(crate) mod report;
pub(crate) mod room;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};

use thiserror::Error;

pub(crate) use self::batch::{Holds, Seen, StepMark, StepNote};
pub(crate) use self::recorder::Recorder;
pub(crate) use self::recording::Recording;

/// Why something cannot be recorded, or a recording not be read.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    #[error("{}: there is a file of that name already; a recording never replaces one", .0.display())]
    Exists(PathBuf),
    #[error("{}: another run is recording to it", .0.display())]
    Locked(PathBuf),
    #[error("{}: {source}", file.display())]
    File { file: PathBuf, source: std::io::Error },
    #[error("{}: {}", file.display(), in_words(source))]
    Sqlite { file: PathBuf, source: rusqlite::Error },
    #[error("{}: not a recording of headwater", .0.display())]
    NotARecording(PathBuf),
    #[error(
        "{}: its tables are of version {found}, and this program knows versions up to {known}: \
         open it with the program that wrote it, or a newer one",
        file.display()
    )]
    Newer { file: PathBuf, found: i64, known: i64 },
    #[error("{}: damaged: {what}", file.display())]
    Damaged { file: PathBuf, what: String },
    #[error(
        "{}: a recording of site {client} alone. It holds the site's distances, norms, flags, what it \
         sent, and its ledger: `headwater export` writes them (--what residuals, flags, messages or \
         ledger). Incidents are in the recording of the server",
        file.display()
    )]
    OfSite { file: PathBuf, client: String },
    #[error(
        "{}: a recording of the server alone: it holds no {what}, which stay with the sites and stand \
         in their recordings",
        file.display()
    )]
    OfServer { file: PathBuf, what: &'static str },
    #[error("{}: there is no incident #{number}; it has {known}", file.display())]
    NoIncident { file: PathBuf, number: u64, known: usize },
    #[error("{}: the disk does not keep up; the recording ends here", .0.display())]
    Behind(PathBuf),
    #[error(
        "there is no folder for recordings: set HEADWATER_RECORDINGS, or name a file with --record"
    )]
    NoFolder,
}

impl RecordError {
    fn file(file: &Path) -> impl Fn(std::io::Error) -> Self + '_ {
        |source| Self::File { file: file.to_path_buf(), source }
    }

    fn sqlite(file: &Path) -> impl Fn(rusqlite::Error) -> Self + '_ {
        |source| Self::Sqlite { file: file.to_path_buf(), source }
    }

    fn damaged(file: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.to_path_buf(), what: what.into() }
    }
}

/// What SQLite means, for people who do not know its error codes.
fn in_words(error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode as Code;
    let known = match error.sqlite_error_code() {
        Some(Code::DiskFull) => "the disk is full",
        Some(Code::ReadOnly | Code::PermissionDenied) => "it cannot be written: read-only",
        Some(Code::CannotOpen) => "it cannot be opened or made there",
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => "another program holds it",
        Some(Code::DatabaseCorrupt) => "damaged: a page of it makes no sense",
        Some(Code::NotADatabase) => "not a recording of headwater",
        Some(Code::SystemIoFailure) => "the disk failed",
        _ => return error.to_string(),
    };
    format!("{known} ({error})")
}

/// Whether a file begins like a recording, and not like a session.
pub(crate) fn is_recording(file: &Path) -> bool {
    use std::io::Read as _;
    let mut begin = [0; 16];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"SQLite format 3\0"
}
