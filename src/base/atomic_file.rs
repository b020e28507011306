//! Files that come into being all at once.
//!
//! A [`AtomicFile`] is written under another name in the same folder and takes its own name when it is
//! complete. Given up before that (an error, a full disk, a killed process), it leaves what stood
//! there before as it was. It must not know what it holds.
//!
//! Guarantees:
//! - a draft that is dropped removes its partial file, and so does [`leave`] for all of them;
//! - a process that is killed outright leaves its partial files, and [`remove_stale`] removes them
//!   later. A writer holds a lock on its partial file, which the operating system releases when the
//!   process ends, so a file that is still being written is never removed.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

/// What the name of every partial file ends in.
const PARTIAL: &str = ".partial";

/// Partial files that this process writes.
static WRITTEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Partial files begun by this process.
static BEGUN: AtomicU64 = AtomicU64::new(0);

fn written() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or folder that could not be written.
#[derive(Debug, Error)]
#[error("cannot write {}: {source}", file.display())]
pub(crate) struct WriteError {
    pub(crate) file: PathBuf,
    /// The operating system's answer.
    pub(crate) source: io::Error,
}

impl WriteError {
    /// Attaches the file to an operating-system error.
    pub(crate) fn at(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_path_buf();
        move |source| Self { file, source }
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    target: PathBuf,
    partial: PathBuf,
    file: Option<BufWriter<File>>,
    /// The file once it is complete: as long as it is open, its lock holds.
    complete: Option<File>,
}

impl AtomicFile {
    /// Begins the file `name` in `folder`, which is made when it is not there.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self, WriteError> {
        let folder = or_here(folder);
        fs::create_dir_all(folder).map_err(WriteError::at(folder))?;
        let target = folder.join(name);
        let (partial, file) = begin(folder, name).map_err(WriteError::at(&target))?;
        let file = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(Self { target, partial, file, complete: None })
    }

    /// Writes with `fill`; a complaint names the file that was asked for.
    pub(crate) fn fill<T>(
        &mut self,
        fill: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> Result<T, WriteError> {
        fill(self).map_err(WriteError::at(&self.target))
    }

    /// Brings all of it to the disk; a disk that is full says so here at the latest.
    pub(crate) fn finish(&mut self) -> Result<(), WriteError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let complete = file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all().map(|()| file))
            .map_err(WriteError::at(&self.target))?;
        self.complete = Some(complete);
        Ok(())
    }

    /// Gives the file its name.
    pub(crate) fn publish(mut self) -> Result<PathBuf, WriteError> {
        self.finish()?;
        let mut written = written();
        fs::rename(&self.partial, &self.target).map_err(WriteError::at(&self.target))?;
        written.remove(&std::mem::take(&mut self.partial));
        drop(written);
        // The new name must survive a power cut too. Some systems cannot open a folder: no error.
        if let Some(folder) = self.target.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(std::mem::take(&mut self.target))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::Error::other("the file is finished")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // `publish` takes the name away; otherwise a failure cannot be reported here.
        if !self.partial.as_os_str().is_empty() {
            let mut written = written();
            let _ = fs::remove_file(&self.partial);
            written.remove(&self.partial);
        }
    }
}

/// Makes a partial file for `name` that no other writer uses, and locks it.
fn begin(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let mut written = written();
    loop {
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        let partial = folder.join(format!(".{name}.{}-{number}{PARTIAL}", std::process::id()));
        let file = match File::create_new(&partial) {
            Ok(file) => file,
            // Left by a killed process of the same number, or written in another container.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        };
        // Without locks (some network drives) the file is written all the same: nobody can take
        // it for a stale one, since that needs a lock too.
        let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        // Another process that looks for stale files may have locked or removed it just now.
        if !is_taken && partial.exists() {
            written.insert(partial.clone());
            return Ok((partial, file));
        }
    }
}

/// Removes the partial files of this process, which is about to end at once; no draft begins, ends
/// or is published after that. Returns what was removed.
pub(crate) fn leave() -> Vec<PathBuf> {
    let mut written = written();
    let gone = std::mem::take(&mut *written).into_iter();
    let gone = gone.filter(|partial| fs::remove_file(partial).is_ok()).collect();
    // Kept until the process is gone.
    std::mem::forget(written);
    gone
}

/// Removes partial files in `folder` that no process writes any more: those of the file `name`, or of
/// every file where the whole folder belongs to this program. Returns what was removed. A folder that
/// cannot be read has none: writing there will fail with a message.
pub(crate) fn remove_stale(folder: &Path, name: Option<&str>) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(or_here(folder)) else { return Vec::new() };
    let mut removed: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| is_partial(&entry.file_name().to_string_lossy(), name))
        .map(|entry| entry.path())
        .filter(|path| remove_if_unlocked(path))
        .collect();
    removed.sort();
    removed
}

/// Whether a file is called like a partial file of `name`, or of any file.
fn is_partial(file: &str, name: Option<&str>) -> bool {
    let numbered = file.strip_prefix('.').and_then(|rest| rest.strip_suffix(PARTIAL));
    let Some((target, number)) = numbered.and_then(|rest| rest.rsplit_once('.')) else {
        return false;
    };
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_number && !target.is_empty() && name.is_none_or(|name| name == target)
}

fn remove_if_unlocked(path: &Path) -> bool {
    // A folder or a link of that name is none of ours.
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    // The lock is held while the file is removed, so that no process begins to write it in between.
    File::open(path).is_ok_and(|file| file.try_lock().is_ok() && fs::remove_file(path).is_ok())
}

fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with_old_file() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::write(folder.path().join("a.csv"), "old").expect("written");
        folder
    }

    fn begun(folder: &Path, bytes: &[u8]) -> AtomicFile {
        let mut draft = AtomicFile::create(folder, "a.csv").expect("the folder takes files");
        draft.write_all(bytes).expect("written");
        draft
    }

    #[test]
    fn a_draft_that_is_given_up_leaves_what_stood_there() {
        let folder = folder_with_old_file();
        drop(begun(folder.path(), b"half"));
        assert_eq!(fs::read(folder.path().join("a.csv")).expect("still there"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn a_published_draft_replaces_what_stood_there() {
        let folder = folder_with_old_file();
        let path = begun(folder.path(), b"new").publish().expect("published");
        assert_eq!(fs::read(path).expect("there"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn a_partial_file_of_a_killed_process_is_removed_and_one_that_is_written_is_not() {
        let folder = folder_with_old_file();
        let draft = begun(folder.path(), b"half");
        let stale = ["4711-3", "4711"].map(|n| folder.path().join(format!(".a.csv.{n}.partial")));
        for path in &stale {
            fs::write(path, "left behind").expect("written");
        }
        let others =
            [".b.csv.4711.partial", ".a.csv.partial", "a.csv.1.partial", ".a.csv.x.partial"];
        for name in others {
            fs::write(folder.path().join(name), "").expect("written");
        }
        assert_eq!(remove_stale(folder.path(), Some("a.csv")), stale);
        assert!(others.iter().all(|name| folder.path().join(name).exists()));
        assert_eq!(remove_stale(folder.path(), None), [folder.path().join(others[0])]);
        assert_eq!(fs::read(draft.publish().expect("published")).expect("there"), b"half");
    }

    #[test]
    fn a_finished_draft_is_not_stale_before_it_has_its_name() {
        let folder = folder_with_old_file();
        let mut draft = begun(folder.path(), b"new");
        draft.finish().expect("finished");
        assert_eq!(remove_stale(folder.path(), None), Vec::<PathBuf>::new());
        assert_eq!(fs::read(draft.publish().expect("published")).expect("there"), b"new");
    }

    #[test]
    fn two_drafts_of_one_file_do_not_write_into_each_other() {
        let folder = folder_with_old_file();
        let (first, second) = (begun(folder.path(), b"first"), begun(folder.path(), b"second"));
        second.publish().expect("published");
        assert_eq!(fs::read(folder.path().join("a.csv")).expect("there"), b"second");
        first.publish().expect("published");
        assert_eq!(fs::read(folder.path().join("a.csv")).expect("there"), b"first");
    }

    #[test]
    fn a_full_disk_is_told_with_the_name_of_the_file_that_was_asked_for() {
        let folder = folder_with_old_file();
        let mut draft = begun(folder.path(), b"half");
        let full = draft.fill(|_| Err::<(), _>(io::ErrorKind::StorageFull.into()));
        let message = full.expect_err("the disk is full").to_string();
        assert!(message.contains("a.csv: no storage space"), "{message}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = folder_with_old_file();
        let error =
            AtomicFile::create(&folder.path().join("a.csv/none"), "b").expect_err("no folder");
        assert!(error.to_string().contains("none"), "{error}");
    }
}
