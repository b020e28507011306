//! What a site has released, and what it was told: kept in SQLite until the federation is over.
//!
//! A release is stored before it is sent. After a kill the site finds here what it sent last and sends
//! that again.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};
use thiserror::Error;

use super::envelope::nanosecond;
use crate::privacy::Trained;

/// Why a release could not be stored.
#[derive(Debug, Error)]
pub(crate) enum OutboxError {
    #[error("{}: {why}", path.display())]
    Sqlite { path: PathBuf, why: rusqlite::Error },
    #[error("{}: {why}", path.display())]
    Folder { path: PathBuf, why: std::io::Error },
    /// What trainings have cost must not be forgotten.
    #[error("{}: what trainings have released cannot be read: {why}", path.display())]
    Trainings { path: PathBuf, why: serde_json::Error },
    #[error(
        "{} belongs to another run (other settings, seed, method or version); remove it to begin \
         anew, or name another file with --outbox",
        path.display()
    )]
    Foreign { path: PathBuf },
}

/// The outbox of one site.
#[derive(Debug)]
pub(crate) struct Outbox {
    path: PathBuf,
    store: Connection,
    /// Which start of the site this is; later ones have larger numbers.
    start: u64,
}

impl Outbox {
    /// Opens the outbox in `path`, or makes one, for runs with this `agreement`.
    pub(crate) fn open(path: &Path, agreement: &str) -> Result<Self, OutboxError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let failed = |why| OutboxError::Folder { path: folder.to_owned(), why };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let failed = |why| OutboxError::Sqlite { path: path.to_owned(), why };
        let store = Connection::open(path).map_err(failed)?;
        // A write-ahead log that is not synced survives a killed process, not a power loss: then the
        // last steps are missing and are released again.
        store
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
                 CREATE TABLE IF NOT EXISTS run (agreement TEXT NOT NULL, start INTEGER NOT NULL);
                 CREATE TABLE IF NOT EXISTS models (id BLOB NOT NULL);
                 CREATE TABLE IF NOT EXISTS trainings (trained TEXT NOT NULL);
                 CREATE TABLE IF NOT EXISTS up (step INTEGER PRIMARY KEY, envelope BLOB NOT NULL);
                 CREATE TABLE IF NOT EXISTS orders (step INTEGER PRIMARY KEY, orders BLOB NOT NULL);
                 CREATE TABLE IF NOT EXISTS answer (step INTEGER PRIMARY KEY, envelope BLOB NOT NULL);",
            )
            .map_err(failed)?;
        let known: Option<(String, i64)> = store
            .query_row("SELECT agreement, start FROM run", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(failed)?;
        // A clock that was set back must not make a later start look like an earlier one.
        let mut start = nanosecond(jiff::Timestamp::now());
        match known {
            Some((known, _)) if known != agreement => {
                return Err(OutboxError::Foreign { path: path.to_owned() });
            }
            Some((_, before)) => {
                start = start.max(before.saturating_add(1));
                store.execute("UPDATE run SET start = ?1", [start]).map_err(failed)?;
            }
            None => {
                let new = "INSERT INTO run (agreement, start) VALUES (?1, ?2)";
                store.execute(new, params![agreement, start]).map_err(failed)?;
            }
        }
        Ok(Self { path: path.to_owned(), store, start: start.unsigned_abs() })
    }

    /// Which start of the site this is.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The training whose models the releases are made with; none before the first.
    pub(crate) fn models(&self) -> Result<Option<u64>, OutboxError> {
        let found =
            self.store.query_row("SELECT id FROM models", [], |row| row.get::<_, [u8; 8]>(0));
        let found = found.optional().map_err(|why| self.failed(why))?;
        Ok(found.map(u64::from_le_bytes))
    }

    /// Releases are made with the models of this training from now on.
    pub(crate) fn keep_models(&self, id: u64) -> Result<(), OutboxError> {
        self.store
            .execute("DELETE FROM models", [])
            .and_then(|_| {
                self.store.execute("INSERT INTO models (id) VALUES (?1)", [id.to_le_bytes()])
            })
            .map(|_| ())
            .map_err(|why| self.failed(why))
    }

    /// What trainings have released, or will have released if they were not broken off.
    pub(crate) fn trainings(&self) -> Result<Vec<Trained>, OutboxError> {
        let found = self
            .store
            .query_row("SELECT trained FROM trainings", [], |row| row.get::<_, String>(0));
        let found = found.optional().map_err(|why| self.failed(why))?;
        let parse = |text: String| serde_json::from_str(&text);
        let damaged = |why| OutboxError::Trainings { path: self.path.clone(), why };
        Ok(found.map(parse).transpose().map_err(damaged)?.unwrap_or_default())
    }

    /// Writes that down, and waits until it is on disk: it must not be lost once something was sent.
    pub(crate) fn keep_trainings(&self, trained: &[Trained]) -> Result<(), OutboxError> {
        let text = serde_json::to_string(trained).unwrap_or_default();
        self.store
            .execute_batch("PRAGMA synchronous = FULL; BEGIN; DELETE FROM trainings;")
            .and_then(|()| {
                self.store.execute("INSERT INTO trainings (trained) VALUES (?1)", [text])
            })
            .and_then(|_| self.store.execute_batch("COMMIT; PRAGMA synchronous = NORMAL;"))
            .map_err(|why| self.failed(why))
    }

    /// The last step that was released; none before the enrolment.
    pub(crate) fn last(&self) -> Result<Option<u64>, OutboxError> {
        let last: Option<i64> = self
            .store
            .query_row("SELECT max(step) FROM up", [], |row| row.get(0))
            .map_err(|why| self.failed(why))?;
        Ok(last.map(|step| step as u64))
    }

    /// The envelope of a step, as it was sealed when the step was released.
    pub(crate) fn envelope(&self, step: u64) -> Result<Option<Vec<u8>>, OutboxError> {
        self.get("SELECT envelope FROM up WHERE step = ?1", step)
    }

    pub(crate) fn keep(&self, step: u64, envelope: &[u8]) -> Result<(), OutboxError> {
        self.put("INSERT INTO up (step, envelope) VALUES (?1, ?2)", step, envelope)
    }

    /// What the server ordered after a step.
    pub(crate) fn orders(&self, step: u64) -> Result<Option<Vec<u8>>, OutboxError> {
        self.get("SELECT orders FROM orders WHERE step = ?1", step)
    }

    pub(crate) fn keep_orders(&self, step: u64, orders: &[u8]) -> Result<(), OutboxError> {
        self.put("INSERT OR IGNORE INTO orders (step, orders) VALUES (?1, ?2)", step, orders)
    }

    /// What was answered to a question at a step.
    pub(crate) fn answer(&self, step: u64) -> Result<Option<Vec<u8>>, OutboxError> {
        self.get("SELECT envelope FROM answer WHERE step = ?1", step)
    }

    pub(crate) fn keep_answer(&self, step: u64, envelope: &[u8]) -> Result<(), OutboxError> {
        self.put("INSERT OR IGNORE INTO answer (step, envelope) VALUES (?1, ?2)", step, envelope)
    }

    /// The run is over and nobody will ask for it again: removes the file.
    pub(crate) fn remove(self) -> Result<(), OutboxError> {
        let Self { path, store, .. } = self;
        let failed = |why| OutboxError::Sqlite { path: path.clone(), why };
        store.close().map_err(|(_, why)| failed(why))?;
        std::fs::remove_file(&path).map_err(|why| OutboxError::Folder { path, why })
    }

    fn get(&self, query: &str, step: u64) -> Result<Option<Vec<u8>>, OutboxError> {
        let found = self.store.prepare_cached(query).and_then(|mut query| {
            query.query_row([number(step)], |row| row.get::<_, Vec<u8>>(0)).optional()
        });
        found.map_err(|why| self.failed(why))
    }

    fn put(&self, query: &str, step: u64, bytes: &[u8]) -> Result<(), OutboxError> {
        let put = self
            .store
            .prepare_cached(query)
            .and_then(|mut query| query.execute(params![number(step), bytes]));
        put.map(|_| ()).map_err(|why| self.failed(why))
    }

    fn failed(&self, why: rusqlite::Error) -> OutboxError {
        OutboxError::Sqlite { path: self.path.clone(), why }
    }
}

/// A step as SQLite has numbers. No run is so long that it does not fit.
fn number(step: u64) -> i64 {
    i64::try_from(step).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Provenance, Spend, What};

    #[test]
    fn what_a_training_will_have_released_is_there_after_a_kill_until_it_is_kept_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("outbox.sqlite");
        let trained = Trained {
            training: "one-begun-0".to_owned(),
            what: What::ProprietaryState,
            spend: Spend::Clear,
            count: 7,
            samples: 3,
            rounds: 0,
            until: jiff::Timestamp::UNIX_EPOCH,
            randomness: Provenance::OperatingSystem,
        };
        {
            let outbox = Outbox::open(&path, "one").expect("a new outbox");
            assert_eq!(outbox.trainings().expect("readable"), []);
            outbox.store.execute("INSERT INTO trainings VALUES ('[{')", []).expect("damaged");
            let why = outbox.trainings().expect_err("what was spent is not forgotten");
            assert!(why.to_string().contains("cannot be read"), "{why}");
            outbox.keep_trainings(&[trained.clone(), trained.clone()]).expect("kept");
            outbox.keep_trainings(std::slice::from_ref(&trained)).expect("kept");
        }
        let outbox = Outbox::open(&path, "one").expect("the same outbox");
        assert_eq!(outbox.trainings().expect("readable"), [trained]);
        outbox.keep_trainings(&[]).expect("kept");
        assert_eq!(outbox.trainings().expect("readable"), []);
    }

    #[test]
    fn a_release_is_kept_once_and_found_after_the_site_was_opened_again() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("below/outbox.sqlite");
        let first;
        {
            let outbox = Outbox::open(&path, "one").expect("a new outbox");
            first = outbox.start();
            assert_eq!(outbox.last().expect("readable"), None);
            outbox.keep(0, b"enrolment").expect("kept");
            outbox.keep(1, b"first").expect("kept");
            outbox.keep(1, b"another draw").expect_err("a step is released once");
            outbox.keep_orders(1, b"orders").expect("kept");
            outbox.keep_orders(1, b"others").expect("the first ones count");
        }
        let outbox = Outbox::open(&path, "one").expect("the same outbox");
        assert!(outbox.start() > first, "a later start");
        assert_eq!(outbox.last().expect("readable"), Some(1));
        assert_eq!(outbox.envelope(1).expect("readable").as_deref(), Some(&b"first"[..]));
        assert_eq!(outbox.orders(1).expect("readable").as_deref(), Some(&b"orders"[..]));
        assert_eq!(outbox.envelope(2).expect("readable"), None);
        let refused = Outbox::open(&path, "two").expect_err("another run");
        assert!(refused.to_string().contains("belongs to another run"), "{refused}");
        outbox.remove().expect("removed");
        assert!(!path.exists());
    }
}
