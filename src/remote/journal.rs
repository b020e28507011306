//! What the server has heard, kept in SQLite until the run is over: a server that begins anew takes the
//! steps from here, and asks sites for those that are missing alone.
//!
//! A step is stored before it is decided. Decisions are not stored: the same steps give the same ones.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::envelope::{Step, pack_steps, unpack_steps};
use super::outbox::OutboxError;

/// The steps of a run as the server heard them.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    store: Connection,
}

/// What every site sent of one step; none from those that did not.
pub(super) type Heard = Vec<Option<Step>>;

impl Journal {
    /// Opens the journal in `path` for a run with this `agreement` and the models of this training.
    /// That of another run is of no use any more, and is replaced; so is any with `anew`.
    pub(super) fn open(
        path: &Path,
        agreement: &str,
        models: u64,
        anew: bool,
    ) -> Result<Self, OutboxError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let failed = |why| OutboxError::Folder { path: folder.to_owned(), why };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let failed = |why| OutboxError::Sqlite { path: path.to_owned(), why };
        let store = Connection::open(path).map_err(failed)?;
        // As in an outbox: it survives a killed process. After a power loss the last steps are asked for.
        store
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
                 CREATE TABLE IF NOT EXISTS run (agreement TEXT NOT NULL);
                 CREATE TABLE IF NOT EXISTS heard (step INTEGER PRIMARY KEY, steps BLOB NOT NULL);
                 CREATE TABLE IF NOT EXISTS answer
                     (step INTEGER, client INTEGER, messages BLOB NOT NULL, PRIMARY KEY (step, client));",
            )
            .map_err(failed)?;
        let own = format!("{agreement} {models:016x}");
        let known: Option<String> = store
            .query_row("SELECT agreement FROM run", [], |row| row.get(0))
            .optional()
            .map_err(failed)?;
        if anew || known.as_deref() != Some(&own) {
            store
                .execute_batch("DELETE FROM run; DELETE FROM heard; DELETE FROM answer;")
                .and_then(|()| store.execute("INSERT INTO run (agreement) VALUES (?1)", [own]))
                .map_err(failed)?;
        }
        Ok(Self { path: path.to_owned(), store })
    }

    /// How many steps it holds, the enrolment among them.
    pub(super) fn steps(&self) -> Result<u64, OutboxError> {
        let count =
            self.store.query_row("SELECT count(*) FROM heard", [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(|why| self.failed(why))?.unsigned_abs())
    }

    pub(super) fn step(&self, step: u64) -> Result<Option<Heard>, OutboxError> {
        let found = self.store.prepare_cached("SELECT steps FROM heard WHERE step = ?1");
        let found = found.and_then(|mut query| {
            query.query_row([number(step)], |row| row.get::<_, Vec<u8>>(0)).optional()
        });
        // What cannot be read is asked for again.
        Ok(found.map_err(|why| self.failed(why))?.and_then(|bytes| unpack_steps(&bytes).ok()))
    }

    pub(super) fn keep(&self, step: u64, heard: &Heard) -> Result<(), OutboxError> {
        let Ok(bytes) = pack_steps(heard) else { return Ok(()) };
        let kept = self
            .store
            .prepare_cached("INSERT OR REPLACE INTO heard (step, steps) VALUES (?1, ?2)")
            .and_then(|mut query| query.execute(params![number(step), bytes]));
        kept.map(|_| ()).map_err(|why| self.failed(why))
    }

    /// What a client answered to a question at a step; an empty list where the answer did not come in time.
    pub(super) fn answer(&self, step: u64, client: usize) -> Result<Option<Vec<u8>>, OutboxError> {
        let query = "SELECT messages FROM answer WHERE step = ?1 AND client = ?2";
        let found = self.store.prepare_cached(query).and_then(|mut query| {
            let of = params![number(step), number(client as u64)];
            query.query_row(of, |row| row.get::<_, Vec<u8>>(0)).optional()
        });
        found.map_err(|why| self.failed(why))
    }

    pub(super) fn keep_answer(
        &self,
        step: u64,
        client: usize,
        messages: &[u8],
    ) -> Result<(), OutboxError> {
        let query = "INSERT OR REPLACE INTO answer (step, client, messages) VALUES (?1, ?2, ?3)";
        let kept = self.store.prepare_cached(query).and_then(|mut query| {
            query.execute(params![number(step), number(client as u64), messages])
        });
        kept.map(|_| ()).map_err(|why| self.failed(why))
    }

    /// The run is over: removes the file.
    pub(super) fn remove(self) -> Result<(), OutboxError> {
        let Self { path, store } = self;
        let failed = |why| OutboxError::Sqlite { path: path.clone(), why };
        store.close().map_err(|(_, why)| failed(why))?;
        std::fs::remove_file(&path).map_err(|why| OutboxError::Folder { path, why })
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
    use crate::stream::Continuity;
    use jiff::Timestamp;

    #[test]
    fn what_was_heard_is_there_after_a_new_start_and_that_of_another_run_is_not() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("below/journal.sqlite");
        let time = Timestamp::from_second(7).expect("a time");
        let step = Step::new(1, time, Continuity::Next, vec![vec![1, 2], Vec::new()]);
        let heard = vec![Some(step), None];
        {
            let journal = Journal::open(&path, "one", 5, false).expect("a new journal");
            assert_eq!(journal.steps().expect("readable"), 0);
            journal.keep(1, &heard).expect("kept");
            journal.keep_answer(1, 0, b"answer").expect("kept");
        }
        let journal = Journal::open(&path, "one", 5, false).expect("the same journal");
        assert_eq!(journal.steps().expect("readable"), 1);
        assert_eq!(journal.step(1).expect("readable"), Some(heard));
        assert_eq!(journal.step(2).expect("readable"), None);
        assert_eq!(journal.answer(1, 0).expect("readable").as_deref(), Some(&b"answer"[..]));
        assert_eq!(journal.answer(1, 1).expect("readable"), None);
        drop(journal);
        let other = Journal::open(&path, "one", 6, false).expect("a journal for other models");
        assert_eq!(other.steps().expect("readable"), 0);
        other.remove().expect("removed");
        assert!(!path.exists());
    }
}
