//! Data of the built-in plants, written to files together with the truth about it.
//!
//! It must not know who reads them: what it writes is plain CSV and JSON.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::stream::StreamError;

pub mod plant;

/// Why nothing was written.
#[derive(Debug, Error)]
pub enum MakeError {
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] StreamError),
    /// The operating system refused.
    #[error("cannot write {}: {source}", file.display())]
    Write {
        /// Which file or folder.
        file: PathBuf,
        /// Its answer.
        source: io::Error,
    },
}

impl MakeError {
    fn write(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_path_buf();
        move |source| Self::Write { file, source }
    }
}

/// A file that comes into being all at once: it is written under another name in the same folder
/// and takes its own name when it is complete. Dropped before that, it leaves nothing behind, and
/// what stood there before stays.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    partial: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Draft {
    /// Begins the file `name` in `folder`.
    pub fn create(folder: &Path, name: &str) -> Result<Self, MakeError> {
        let partial = folder.join(format!(".{name}.{}.partial", std::process::id()));
        let target = folder.join(name);
        let file = File::create(&partial).map_err(MakeError::write(&target))?;
        Ok(Self { target, partial, file: Some(BufWriter::with_capacity(1 << 18, file)) })
    }

    /// Adds to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), MakeError> {
        match &mut self.file {
            Some(file) => file.write_all(bytes).map_err(MakeError::write(&self.target)),
            None => Ok(()),
        }
    }

    /// Brings all of it to the disk; a disk that is full says so here at the latest.
    pub fn finish(&mut self) -> Result<(), MakeError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .map_err(MakeError::write(&self.target))
    }

    /// Gives the file its name.
    pub fn publish(mut self) -> Result<PathBuf, MakeError> {
        self.finish()?;
        fs::rename(&self.partial, &self.target).map_err(MakeError::write(&self.target))?;
        Ok(std::mem::take(&mut self.target))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` the name is gone; otherwise there is nobody left to tell of a failure.
        let _ = fs::remove_file(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_is_given_up_leaves_what_stood_there() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::write(folder.path().join("a.csv"), "old").expect("written");
        let mut draft = Draft::create(folder.path(), "a.csv").expect("the folder takes files");
        draft.write(b"half").expect("written");
        drop(draft);
        assert_eq!(fs::read(folder.path().join("a.csv")).expect("still there"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn a_published_draft_replaces_what_stood_there() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::write(folder.path().join("a.csv"), "old").expect("written");
        let mut draft = Draft::create(folder.path(), "a.csv").expect("the folder takes files");
        draft.write(b"new").expect("written");
        let path = draft.publish().expect("published");
        assert_eq!(fs::read(path).expect("there"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let error = Draft::create(&folder.path().join("none"), "a.csv").expect_err("no folder");
        assert!(error.to_string().contains("none"), "{error}");
    }
}
