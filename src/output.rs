//! Facts for receivers outside: each has a queue on disk, so that neither a restart nor a receiver
//! that is away loses anything.
//!
//! ```text
//!  engine ─► Outputs::take ─► queue (SQLite, one table for all) ─► a thread a receiver ─► outside
//! ```
//!
//! | bound | value |
//! |---|---|
//! | facts that wait for one receiver | [`queue::MOST`]; beyond it the oldest are given up, and counted |
//! | time between two attempts | 1 s, doubled after each failure, up to 5 min |
//! | one attempt | 10 s |
//!
//! A receiver gets facts in their order, and every fact at least once: after a lost answer one may
//! come twice, with the same number. It must not know how facts are made.

mod hmac;
pub(crate) mod metrics;
mod net;
pub(crate) mod queue;
mod receiver;
mod worker;

use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use self::queue::Queue;
use self::worker::Worker;
use crate::fact::Fact;
use crate::session::Session;
use crate::session::output::FactKind;

/// Why facts cannot go out.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    #[error("output {0:?} runs a command: allow that with --allow-exec")]
    NotAllowed(String),
    #[error("output {name:?}: {why}")]
    Setting { name: String, why: String },
    #[error(
        "{}: the queue of outputs cannot be used: {why}; move it away to begin a new one",
        file.display()
    )]
    Queue { file: PathBuf, why: rusqlite::Error },
    #[error("the queue of outputs: {0}")]
    Io(#[from] std::io::Error),
}

/// Everybody who gets facts.
#[derive(Debug)]
pub(crate) struct Outputs {
    queue: Queue,
    workers: Vec<Worker>,
    trouble: Option<String>,
}

impl Outputs {
    /// Goes on with the queues in `folder`; nothing where the session names no outputs.
    pub(crate) fn open(
        session: &Session,
        folder: &Path,
        allow_exec: bool,
    ) -> Result<Option<Self>, OutputError> {
        if session.outputs.is_empty() {
            return Ok(None);
        }
        std::fs::create_dir_all(folder)?;
        let file = folder.join("outputs.sqlite");
        let open =
            || Queue::open(&file).map_err(|why| OutputError::Queue { file: file.clone(), why });
        let queue = open()?;
        let mut workers = Vec::new();
        for settings in &session.outputs {
            let receiver = receiver::open(settings, &session.folder, allow_exec)?;
            workers.push(Worker::start(settings, receiver, open()?)?);
        }
        Ok(Some(Self { queue, workers, trouble: None }))
    }

    /// Puts a fact into the queue of every receiver that wants it.
    pub(crate) fn take(&mut self, fact: &Fact) {
        let Some(kind) = kind(fact).filter(|_| !is_suspended(fact)) else { return };
        let mut line = None;
        for worker in self.workers.iter().filter(|worker| worker.wants(kind)) {
            let line = line.get_or_insert_with(|| fact.to_line());
            if let Err(why) = self.queue.push(worker.name(), line) {
                tracing::error!("a fact for {} is lost: {why}", worker.name());
                self.trouble = Some(format!("a fact for {} is lost: {why}", worker.name()));
            }
            worker.wake();
        }
    }

    /// What went wrong with the queue itself since this was asked last.
    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Facts that wait and facts that were given up, for each receiver.
    pub(crate) fn waiting(&self) -> Vec<(String, u64, u64)> {
        let of = |worker: &Worker| {
            let name = worker.name();
            let waiting = self.queue.waiting(name).unwrap_or(0);
            (name.to_owned(), waiting, self.queue.given_up(name).unwrap_or(0))
        };
        self.workers.iter().map(of).collect()
    }

    /// Tries once more to deliver what waits, for so long at most; the rest waits for the next start.
    pub(crate) fn finish(self, longest: Duration) {
        for worker in self.workers {
            worker.finish(longest);
        }
    }
}

/// Whether it is about an incident whose alarm is suspended.
fn is_suspended(fact: &Fact) -> bool {
    fact.incident().is_some_and(|incident| incident.suspended)
}

fn kind(fact: &Fact) -> Option<FactKind> {
    match fact {
        Fact::Opened(_) => Some(FactKind::Opened),
        Fact::Updated(_) => Some(FactKind::Updated),
        Fact::Closed(_) => Some(FactKind::Closed),
        Fact::Verdict(_) => Some(FactKind::Verdict),
        Fact::Setting(_) => Some(FactKind::Setting),
        Fact::Ledger(_) => Some(FactKind::Ledger),
        Fact::Quality(_) => Some(FactKind::Quality),
        Fact::Training(_) | Fact::Calibrated(_) | Fact::Summary(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_queue_is_refused_with_its_file() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let text = "Session(about: \"x\", source: Twin(), \
                    outputs: [(name: \"a\", to: File(\"a.jsonl\"))])";
        let session = Session::parse("x", folder.path(), text).expect("a sound session");
        std::fs::write(folder.path().join("outputs.sqlite"), [7; 5000]).expect("damaged");
        let why = Outputs::open(&session, folder.path(), false).expect_err("no queue").to_string();
        assert!(why.contains("outputs.sqlite: the queue of outputs cannot be used"), "{why}");
    }
}
