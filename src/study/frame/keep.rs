//! Results of jobs, kept by what they were made from.
//!
//! A result belongs to the study, the job's inputs and the program that made it. The program counts
//! by version, size and time of change of its file: a rebuilt one starts afresh.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::draft::{Draft, DraftError};
use crate::model::checkpoint::{CacheEnvironment, Hasher, cache_folder};

/// A folder of results.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    program: String,
}

impl Store {
    /// That of this program and this user.
    #[must_use]
    pub fn of_process() -> Self {
        let folder = cache_folder(&CacheEnvironment::of_process()).join("studies");
        let file = std::env::current_exe().and_then(std::fs::metadata);
        let build = file.ok().map(|file| (file.len(), file.modified().ok()));
        Self::new(folder, format!("{} {build:?}", env!("CARGO_PKG_VERSION")))
    }

    /// One in a given folder, for a given program.
    #[must_use]
    pub fn new(folder: PathBuf, program: String) -> Self {
        Self { folder, program }
    }

    fn name(&self, study: &str, inputs: &Value) -> String {
        let mut hasher = Hasher::new();
        hasher.text(&self.program).text(study).text(&inputs.to_string());
        format!("{study}-{}.json", hasher.finish())
    }

    /// What is kept of a job. A file that cannot be read is as good as none.
    #[must_use]
    pub fn find(&self, study: &str, inputs: &Value) -> Option<Value> {
        let text = std::fs::read_to_string(self.folder.join(self.name(study, inputs))).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps a result, and hands it back as it will be read the next time: a number that has been
    /// written and read once does not change any more.
    #[must_use]
    pub fn keep(&self, study: &str, inputs: &Value, result: &Value) -> Value {
        let text = result.to_string();
        // A result that cannot be kept is made again the next time: not worth failing for.
        let _ = self.write(&self.name(study, inputs), &text);
        serde_json::from_str(&text).unwrap_or_else(|_| result.clone())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), DraftError> {
        let mut draft = Draft::create(&self.folder, name)?;
        draft.fill(|file| file.write_all(text.as_bytes()))?;
        draft.publish().map(|_| ())
    }
}
