//! Results of jobs, kept by what they were made from.
//!
//! A result belongs to the study, the job's inputs and the program that made it. The program counts
//! by version, size and time of change of its file: a rebuilt one starts afresh.
//!
//! A file is the checksum of its second line, and that line: the result as JSON.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::atomic_file::{AtomicFile, WriteError};
use crate::base::digest;
use crate::engine::experiment::results_folder;

/// A folder of results.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    folder: PathBuf,
    program: String,
}

impl Store {
    /// That of this program and this user.
    pub(crate) fn of_process() -> Self {
        let file = std::env::current_exe().and_then(std::fs::metadata);
        let build = file.ok().map(|file| (file.len(), file.modified().ok()));
        Self::new(results_folder(), format!("{} {build:?}", env!("CARGO_PKG_VERSION")))
    }

    pub(crate) fn new(folder: PathBuf, program: String) -> Self {
        Self { folder, program }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn name(&self, study: &str, inputs: &Value) -> String {
        // The parts hold no line feed: JSON escapes it, and names have none.
        let named = format!("{}\n{study}\n{inputs}", self.program);
        format!("{study}-{}.json", digest::sha256(named.as_bytes()))
    }

    /// The kept result of a job; nothing where there is no file. An error is the reason why the file cannot be
    /// used, and the job is done again.
    pub(crate) fn find(&self, study: &str, inputs: &Value) -> Result<Option<Value>, String> {
        let file = self.folder.join(self.name(study, inputs));
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(why) if is_absent(&why) => return Ok(None),
            Err(why) => return Err(format!("{}: {why}", file.display())),
        };
        let (sum, result) = text.split_at_checked(digest::DIGITS + 1).unwrap_or_default();
        if format!("{}\n", digest::sha256(result)).as_bytes() != sum {
            return Err(format!("{}: cannot be read: checksum differs", file.display()));
        }
        serde_json::from_slice(result).map(Some).map_err(|why| format!("{}: {why}", file.display()))
    }

    /// Keeps a result, and hands it back as it will be read the next time: a number that has been
    /// written and read once does not change any more. An error is the reason why it is not kept: it will be
    /// made again the next time, which is not worth failing for.
    pub(crate) fn keep(
        &self,
        study: &str,
        inputs: &Value,
        result: &Value,
    ) -> (Value, Result<(), WriteError>) {
        let text = result.to_string();
        let kept = self.write(&self.name(study, inputs), &text);
        (serde_json::from_str(&text).unwrap_or_else(|_| result.clone()), kept)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), WriteError> {
        let mut draft = AtomicFile::create(&self.folder, name)?;
        draft.fill(|file| write!(file, "{}\n{text}", digest::sha256(text.as_bytes())))?;
        draft.publish().map(|_| ())
    }
}

/// There is no such file, and no folder for it.
fn is_absent(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
