//! Versions of the history that a live session's models and thresholds are made from: one is in use,
//! the others are set aside and can be used again. Nothing is deleted.
//!
//! A version is a pair of files, the rows and what is known about them. It counts only where both are
//! there, so that a process that is killed between two renames loses nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::kept::{self, ABOUT, Kept, KeptReader, PART, ROWS};
use crate::session::Session;
use crate::stream::{Frame, Stream as _, StreamError};

/// Held while the files of a live session are in use: by a run, or by a change of versions.
const LOCK: &str = "operator.lock";

/// A history that models can be made from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Version {
    pub(crate) number: u64,
    /// The next start uses it.
    pub(crate) in_use: bool,
    pub(crate) rows: u64,
    pub(crate) digest: String,
    /// Its first and its last row.
    pub(crate) span: Option<(Timestamp, Timestamp)>,
}

/// Takes the files of a session; nothing where a run has them.
pub(crate) fn lock(folder: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(folder)?;
    let lock = File::options().write(true).create(true).truncate(false).open(folder.join(LOCK))?;
    match lock.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        // Without locks (some network drives) the files are used all the same.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(Some(lock)),
    }
}

/// Every version of a session's history, the oldest first.
pub(crate) fn list(session: &Session) -> Result<Vec<Version>, StreamError> {
    let folder = kept::folder(session)?;
    let mut versions: Vec<Version> = numbers(&folder)
        .into_iter()
        .filter_map(|number| {
            let kept = kept::about(&aside(&folder, ABOUT, number))?;
            Some(version(&kept, number, &aside(&folder, ROWS, number), false))
        })
        .collect();
    if let Some(kept) = kept::complete(session) {
        versions.push(version(&kept, kept.version, &folder.join(ROWS), true));
    }
    versions.sort_by_key(|version| version.number);
    Ok(versions)
}

/// The number of the next history that is learned from.
pub(super) fn next_number(folder: &Path) -> u64 {
    let in_use = kept::about(&folder.join(ABOUT)).map(|kept| kept.version);
    numbers(folder).into_iter().chain(in_use).max().map_or(1, |last| last + 1)
}

/// Sets the history in use aside: the next start learns anew. Gives its number.
pub(crate) fn renew(session: &Session) -> Result<u64, StreamError> {
    let folder = kept::folder(session)?;
    let kept = kept::complete(session).ok_or_else(|| {
        let what = "nothing has been learned yet: there is nothing to learn anew";
        StreamError::Setting(what.into())
    })?;
    set_aside(&folder, &kept)?;
    Ok(kept.version)
}

/// Uses version `number` again; the one in use is set aside.
pub(crate) fn roll_back(session: &Session, number: u64) -> Result<(), StreamError> {
    let folder = kept::folder(session)?;
    let (rows, about) = (aside(&folder, ROWS, number), aside(&folder, ABOUT, number));
    if kept::about(&about).is_none() || !rows.exists() {
        let known: Vec<String> = numbers(&folder).iter().map(u64::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let what = format!("there is no version {number} that was set aside; there is {known}");
        return Err(StreamError::Setting(what));
    }
    if let Some(kept) = kept::complete(session) {
        set_aside(&folder, &kept)?;
    }
    // Rows of a history that was begun belong to no version.
    let part = folder.join(PART);
    if part.exists() {
        fs::remove_file(&part).map_err(StreamError::io(&part))?;
    }
    rename(&rows, &folder.join(ROWS))?;
    rename(&about, &folder.join(ABOUT))
}

fn set_aside(folder: &Path, kept: &Kept) -> Result<(), StreamError> {
    // Without what is known about them, rows are not in use: the order matters.
    rename(&folder.join(ABOUT), &aside(folder, ABOUT, kept.version))?;
    rename(&folder.join(ROWS), &aside(folder, ROWS, kept.version))
}

fn rename(from: &Path, to: &Path) -> Result<(), StreamError> {
    fs::rename(from, to).map_err(StreamError::io(from))
}

/// `history.3.rows` for version 3 of `history.rows`.
fn aside(folder: &Path, name: &str, number: u64) -> PathBuf {
    let (stem, end) = name.split_once('.').unwrap_or((name, ""));
    folder.join(format!("{stem}.{number}.{end}"))
}

/// Versions that were set aside.
fn numbers(folder: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let number = |entry: fs::DirEntry| -> Option<u64> {
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_prefix("history.")?.strip_suffix(".json")?.parse().ok()?;
        aside(folder, ROWS, number).exists().then_some(number)
    };
    let mut numbers: Vec<u64> = entries.flatten().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn version(kept: &Kept, number: u64, rows: &Path, in_use: bool) -> Version {
    let span = span(rows).ok().flatten();
    Version { number, in_use, rows: kept.rows, digest: kept.digest.clone(), span }
}

/// The first and the last time of some rows.
fn span(rows: &Path) -> Result<Option<(Timestamp, Timestamp)>, StreamError> {
    let mut reader = KeptReader::open(rows)?;
    let mut frame = Frame::for_layout(reader.layout());
    let mut span = None;
    while reader.next(&mut frame)? {
        span = Some((span.map_or(frame.time, |(first, _)| first), frame.time));
    }
    Ok(span)
}
