//! Where recordings stand that nobody named, and how many of them are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::RecordError;
use crate::base::folders;

/// What the name of every recording ends in.
pub(crate) const ENDING: &str = "hwrec";

/// How much is kept of recordings that nobody named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Bytes of all of them together.
    pub(crate) bytes: u64,
    /// Since their last change.
    pub(crate) age: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { bytes: 4 << 30, age: Duration::from_hours(90 * 24) }
    }
}

/// The folder of recordings.
pub(crate) fn folder() -> Option<PathBuf> {
    folders::recordings(|name| std::env::var(name).ok())
}

/// A name for a new recording of a session: what was recorded, and when.
pub(crate) fn new_file(
    folder: &Path,
    session: &str,
    now: Timestamp,
) -> Result<PathBuf, RecordError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(RecordError::file(folder))?;
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let session: String = session.chars().map(safe).take(80).collect();
    let time = now.strftime("%Y-%m-%dT%H-%M-%SZ");
    let names = (1..).map(|n| match n {
        1 => format!("{session}-{time}.{ENDING}"),
        n => format!("{session}-{time}-{n}.{ENDING}"),
    });
    let mut paths = names.map(|name| folder.join(name));
    Ok(paths.find(|path| !path.exists()).unwrap_or_else(|| folder.join(ENDING)))
}

/// The recordings in a folder, the oldest change first.
pub(crate) fn list(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING);
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_recording)
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

/// Removes the oldest recordings of a folder that are too old, or too much together. One that is
/// being written stays. Says what was removed.
pub(crate) fn retain(folder: &Path, keep: Retention, now: SystemTime) -> Vec<String> {
    let known = |path: PathBuf| {
        let found = fs::metadata(&path).ok()?;
        let age = now.duration_since(found.modified().ok()?).unwrap_or_default();
        Some((path, found.len(), age))
    };
    let files: Vec<(PathBuf, u64, Duration)> = list(folder).into_iter().filter_map(known).collect();
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    let mut removed = Vec::new();
    for (path, size, age) in files {
        let why = match (age > keep.age, bytes > keep.bytes) {
            (true, _) => format!("older than {} days", keep.age.as_secs() / 86_400),
            (false, true) => format!("more than {} MB of recordings", keep.bytes >> 20),
            (false, false) => continue,
        };
        if is_written(&path) || fs::remove_file(&path).is_err() {
            continue;
        }
        for beside in ["-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(beside);
            // Only a run that was killed leaves them.
            let _ = fs::remove_file(name);
        }
        bytes -= size;
        removed.push(format!("the recording {} was removed: {why}", path.display()));
    }
    removed
}

/// Whether a run is writing to a file. Not for files that this process writes itself.
pub(crate) fn is_written(path: &Path) -> bool {
    fs::File::open(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_recordings_go_first_and_one_that_is_written_stays() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = |name: &str, age: u64| {
            let path = folder.path().join(format!("{name}.{ENDING}"));
            fs::write(&path, vec![0; 1000]).expect("written");
            let file = fs::File::options().write(true).open(&path).expect("there");
            let time = SystemTime::now() - Duration::from_secs(age);
            file.set_modified(time).expect("its time can be set");
            path
        };
        let (old, older, oldest) = (file("a", 10), file("b", 20), file("c", 1000));
        let other = folder.path().join("notes.txt");
        fs::write(&other, vec![0; 5000]).expect("written");
        let held = fs::File::open(&oldest).expect("there");
        held.try_lock().expect("nobody else holds it");
        let keep = Retention { bytes: 2500, age: Duration::from_secs(100) };
        let removed = retain(folder.path(), keep, SystemTime::now());
        assert_eq!(removed.len(), 1, "{removed:?}");
        assert!(removed[0].contains("b.hwrec") && removed[0].contains("0 MB"), "{removed:?}");
        assert!(old.exists() && !older.exists() && oldest.exists() && other.exists());
        drop(held);
        let removed = retain(folder.path(), keep, SystemTime::now());
        assert!(removed.len() == 1 && removed[0].contains("c.hwrec"), "{removed:?}");
    }

    #[test]
    fn two_runs_of_one_second_have_two_names() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let now = Timestamp::from_second(1_700_000_000).expect("an instant");
        let first = new_file(folder.path(), "a/b c", now).expect("a name");
        assert!(first.ends_with("a_b_c-2023-11-14T22-13-20Z.hwrec"), "{}", first.display());
        fs::write(&first, "").expect("written");
        let second = new_file(folder.path(), "a/b c", now).expect("a name");
        assert!(second.ends_with("a_b_c-2023-11-14T22-13-20Z-2.hwrec"));
    }
}
