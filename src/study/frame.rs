//! A study: jobs that can be done in any order, and a report of their results.
//!
//! A job is one unit of work (a family, a seed, a setting). It is named by its inputs and gives the same
//! JSON every time. So jobs run on all cores, finished ones are kept, and a study that was stopped goes
//! on where it was.

mod keep;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

pub(crate) use self::keep::Store;
pub(crate) use self::run::{Progress, Ran, Workshop, before, run};
use super::report::{Report, Table};
pub(crate) use crate::engine::experiment::Failure;

/// The options of the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StudyOptions {
    /// Number of seeds; each study has its own default.
    pub seeds: Option<usize>,
    /// The first seed; 1 where a study has no other.
    pub first_seed: Option<u64>,
    /// Fewer seeds and families, shorter runs: an answer in minutes.
    pub quick: bool,
    /// Folder with recorded data.
    pub data: Option<PathBuf>,
}

impl StudyOptions {
    /// The seeds of a study: from the one asked for on, else from 1; as many as asked for, or `usual`
    /// of them (`quick` ones if in a hurry).
    pub(crate) fn seeds(&self, usual: usize, quick: usize) -> Vec<u64> {
        self.seeds_from(1, usual, quick)
    }

    /// The same, from `first` on where no first seed is asked for.
    pub(crate) fn seeds_from(&self, first: u64, usual: usize, quick: usize) -> Vec<u64> {
        let count = self.seeds.unwrap_or(if self.quick { quick } else { usual });
        (self.first_seed.unwrap_or(first)..).take(count).collect()
    }

    /// The command with these options.
    fn command(&self, study: &Study) -> String {
        let seeds = self.seeds.map_or_else(String::new, |seeds| format!(" --seeds {seeds}"));
        let from = self.first_seed.map_or_else(String::new, |n| format!(" --seed-from {n}"));
        let quick = if self.quick { " --quick" } else { "" };
        let data = if study.needs_data { " --data DIR" } else { "" };
        format!("headwater study {}{seeds}{from}{quick}{data}", study.name)
    }
}

/// A table or a figure that a command makes.
#[derive(Debug)]
pub(crate) struct Study {
    pub name: &'static str,
    pub about: &'static str,
    /// Whether it needs data that the user must fetch.
    pub needs_data: bool,
    /// A table that says something without its jobs, from the results that are kept: it is shown before
    /// they are done.
    pub first: Option<FirstTable>,
    /// The work. [`StudyError::NoData`] when it needs data that is not there.
    pub jobs: fn(&StudyOptions) -> Result<Vec<Job>, StudyError>,
    /// The report on finished jobs, in the order of `jobs`; after an interruption not all of them. Name,
    /// title and command are added to it.
    pub report: fn(&StudyOptions, &[Done]) -> Result<Report, StudyError>,
}

impl Study {
    /// The whole report on finished jobs.
    pub(crate) fn report(
        &self,
        options: &StudyOptions,
        done: &[Done],
    ) -> Result<Report, StudyError> {
        let (study, title) = (self.name.into(), self.about.into());
        let report = (self.report)(options, done)?;
        Ok(Report { study, title, command: options.command(self), ..report })
    }
}

type FirstTable = fn(&[Done]) -> Result<Table, StudyError>;

type Work = Box<dyn Fn() -> Result<Value, Failure> + Send + Sync>;

/// One unit of work.
pub(crate) struct Job {
    /// The work in words, for the person who waits.
    pub label: String,
    /// All that the result depends on, the program itself aside. Two jobs with the same inputs are the
    /// same job.
    pub inputs: Value,
    /// About how long it takes beside its siblings; the longest are started first.
    pub cost: u32,
    /// The name its result is kept under, where several studies share it.
    shared: Option<&'static str>,
    work: Work,
}

impl Job {
    /// A job whose result can be written as JSON.
    pub(crate) fn new<R: serde::Serialize>(
        label: impl Into<String>,
        inputs: Value,
        work: impl Fn() -> Result<R, Failure> + Send + Sync + 'static,
    ) -> Self {
        let work = move || Ok(serde_json::to_value(work()?)?);
        Self { label: label.into(), inputs, cost: 1, shared: None, work: Box::new(work) }
    }

    pub(crate) fn costing(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// Kept under a name that other studies use too, so that the work is done once for all of them.
    pub(crate) fn kept_as(mut self, name: &'static str) -> Self {
        self.shared = Some(name);
        self
    }
}

/// A finished job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Done {
    pub inputs: Value,
    pub result: Value,
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

    /// The results of the jobs whose input `name` is `value`.
    pub(crate) fn with_input<T: DeserializeOwned>(
        done: &[Self],
        name: &str,
        value: &str,
    ) -> Result<Vec<T>, StudyError> {
        let is_wanted = |done: &&Self| done.inputs.get(name).and_then(Value::as_str) == Some(value);
        done.iter().filter(is_wanted).map(Self::read).collect()
    }
}

/// Why there is no report, or not a whole one.
#[derive(Debug, Error)]
pub(crate) enum StudyError {
    #[error("{study} needs data that is not here: {how}")]
    NoData { study: &'static str, how: String },
    #[error("{label}: {reason}")]
    Job { label: String, reason: Failure },
    #[error("the result of a job is not what it should be: {0}")]
    Result(#[from] serde_json::Error),
    #[error("{0}")]
    Session(Failure),
}
