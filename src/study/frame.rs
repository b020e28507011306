//! What every study is made of: jobs that can be done in any order, and a report of what came out.
//!
//! A job is one unit of work (a family, a seed, a setting). It is named by its inputs, gives JSON,
//! and gives the same JSON every time; so jobs run on all cores, finished ones are kept, and a study
//! that was stopped goes on where it was.

mod keep;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

pub(crate) use self::keep::Store;
pub(crate) use self::run::{Bench, Progress, Ran, run};
use super::report::Report;

/// What a person asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Options {
    /// How many seeds; each study has its own default.
    pub(crate) seeds: Option<usize>,
    /// Fewer seeds and families, shorter runs: an answer in minutes.
    pub(crate) quick: bool,
    /// Folder with recorded data.
    pub(crate) data: Option<PathBuf>,
}

impl Options {
    /// The seeds of a study: 1, 2, … as many as asked for, or `usual` of them (`quick` ones if in a
    /// hurry).
    pub(crate) fn seeds(&self, usual: usize, quick: usize) -> Vec<u64> {
        let count = self.seeds.unwrap_or(if self.quick { quick } else { usual });
        (1..=count as u64).collect()
    }

    /// The command that asks for the same.
    pub(crate) fn command(&self, study: &str) -> String {
        let mut command = format!("headwater study {study}");
        if let Some(seeds) = self.seeds {
            command.push_str(" --seeds ");
            command.push_str(&seeds.to_string());
        }
        if self.quick {
            command.push_str(" --quick");
        }
        command
    }
}

/// One unit of work.
pub(crate) struct Job {
    /// What is being done, for the person who waits.
    pub(crate) label: String,
    /// All that the result depends on, the program itself aside. Two jobs with the same inputs are
    /// the same job.
    pub(crate) inputs: Value,
    /// About how long it takes beside its siblings; the longest are started first.
    pub(crate) cost: u32,
    /// The name its result is kept under, where several studies ask for the same.
    shared: Option<&'static str>,
    work: Work,
}

type Work = Box<dyn Fn() -> Result<Value, StudyError> + Send + Sync>;

impl Job {
    /// A job whose result can be written as JSON.
    pub(crate) fn new<R: serde::Serialize>(
        label: impl Into<String>,
        inputs: Value,
        work: impl Fn() -> Result<R, StudyError> + Send + Sync + 'static,
    ) -> Self {
        let work = move || serde_json::to_value(work()?).map_err(StudyError::from);
        Self { label: label.into(), inputs, cost: 1, shared: None, work: Box::new(work) }
    }

    /// With its cost beside its siblings.
    #[must_use]
    pub(crate) fn costing(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// Kept under a name that other studies use too: what one of them did, none does again.
    #[must_use]
    pub(crate) fn kept_as(mut self, name: &'static str) -> Self {
        self.shared = Some(name);
        self
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("label", &self.label).finish_non_exhaustive()
    }
}

/// A job that was done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Done {
    /// The inputs of the job.
    pub(crate) inputs: Value,
    pub(crate) result: Value,
}

impl Done {
    /// The result in its own type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, StudyError> {
        Ok(serde_json::from_value(self.result.clone())?)
    }

    /// An input by its name, in its own type.
    pub(crate) fn input<T: DeserializeOwned>(&self, name: &str) -> Result<T, StudyError> {
        let value = self.inputs.get(name).cloned().unwrap_or(Value::Null);
        Ok(serde_json::from_value(value)?)
    }
}

/// A table or a figure that a command makes.
pub(crate) trait Study: Sync {
    /// The name under which it is run.
    fn name(&self) -> &'static str;

    /// What it shows, in a line.
    fn about(&self) -> &'static str;

    /// What there is to do. [`StudyError::NoData`] when it needs data that is not there.
    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError>;

    /// What came out. `done` holds the jobs that were done, in the order of [`Self::jobs`]; after an
    /// interruption not all of them.
    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError>;
}

/// Why there is no report, or not a whole one.
#[derive(Debug, Error)]
pub(crate) enum StudyError {
    /// It needs data that must be fetched by the user.
    #[error("{study} needs data that is not here: {how}")]
    NoData {
        study: &'static str,
        /// How to get it.
        how: String,
    },
    #[error("{label}: {reason}")]
    Job { label: String, reason: String },
    /// What a job gave cannot be read or written.
    #[error("the result of a job is not what it should be: {0}")]
    Result(#[from] serde_json::Error),
    /// The data cannot be had.
    #[error(transparent)]
    Stream(#[from] crate::stream::StreamError),
    /// The session cannot be used.
    #[error(transparent)]
    Session(#[from] crate::session::SessionError),
    /// A mechanism of privacy cannot be made.
    #[error(transparent)]
    Privacy(#[from] crate::privacy::PrivacyError),
    /// A federation could not learn.
    #[error(transparent)]
    Federation(Box<crate::federation::FederationError>),
    /// A session could not be prepared.
    #[error(transparent)]
    Prepare(Box<crate::engine::prepare::PrepareError>),
    /// A session could not be run.
    #[error(transparent)]
    Run(crate::engine::handle::OpenError),
    /// There is no thread for the engine.
    #[error("no thread for the engine: {0}")]
    Thread(#[from] std::io::Error),
}

/// Large errors are kept apart: a result is handed on far more often than it fails.
macro_rules! boxed {
    ($($variant:ident($error:ty)),* $(,)?) => {
        $(impl From<$error> for StudyError {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error))
            }
        })*
    };
}

boxed! {
    Federation(crate::federation::FederationError),
    Prepare(crate::engine::prepare::PrepareError),
}
