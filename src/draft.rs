//! Files that come into being all at once.
//!
//! A [`Draft`] is written under another name in the same folder and takes its own name when it is
//! complete. Given up before that (an error, a full disk, a killed process), it leaves what stood
//! there before as it was. It must not know what it holds.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A file or folder that could not be written.
#[derive(Debug, Error)]
#[error("cannot write {}: {source}", file.display())]
pub struct DraftError {
    /// Which file or folder.
    pub file: PathBuf,
    /// The operating system's answer.
    pub source: io::Error,
}

impl DraftError {
    /// Attaches the file to an operating-system error.
    pub fn at(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_path_buf();
        move |source| Self { file, source }
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    partial: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Draft {
    /// Begins the file `name` in `folder`, which is made when it is not there.
    pub fn create(folder: &Path, name: &str) -> Result<Self, DraftError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        fs::create_dir_all(folder).map_err(DraftError::at(folder))?;
        let partial = folder.join(format!(".{name}.{}.partial", std::process::id()));
        let target = folder.join(name);
        let file = File::create(&partial).map_err(DraftError::at(&target))?;
        Ok(Self { target, partial, file: Some(BufWriter::with_capacity(1 << 18, file)) })
    }

    /// Writes with `fill`; a complaint names the file that was asked for.
    pub fn fill<T>(
        &mut self,
        fill: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> Result<T, DraftError> {
        fill(self).map_err(DraftError::at(&self.target))
    }

    /// Brings all of it to the disk; a disk that is full says so here at the latest.
    pub fn finish(&mut self) -> Result<(), DraftError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .map_err(DraftError::at(&self.target))
    }

    /// Gives the file its name.
    pub fn publish(mut self) -> Result<PathBuf, DraftError> {
        self.finish()?;
        fs::rename(&self.partial, &self.target).map_err(DraftError::at(&self.target))?;
        // The new name must survive a power cut too. Some systems cannot open a folder: no error.
        if let Some(folder) = self.target.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(std::mem::take(&mut self.target))
    }
}

impl Write for Draft {
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

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` the name is gone; otherwise there is nobody left to tell of a failure.
        let _ = fs::remove_file(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with_old_file() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::write(folder.path().join("a.csv"), "old").expect("written");
        folder
    }

    fn begun(folder: &Path, bytes: &[u8]) -> Draft {
        let mut draft = Draft::create(folder, "a.csv").expect("the folder takes files");
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
        let error = Draft::create(&folder.path().join("a.csv/none"), "b").expect_err("no folder");
        assert!(error.to_string().contains("none"), "{error}");
    }
}
