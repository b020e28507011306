//! What the server has heard, kept in SQLite until the run is over: a server that begins anew takes the
//! steps from here, and asks sites for those that are missing alone.
//!
//! A step is stored before it is decided. Decisions are not stored: the same steps give the same ones.

use std::path::Path;

use rusqlite::ToSql;

use super::envelope::{Step, pack_steps, unpack_steps};
use super::store::{FORM, Store, StoreError, number, sealed};

/// The steps of a run as the server heard them.
#[derive(Debug)]
pub(super) struct Journal {
    store: Store,
}

/// What every site sent of one step; none from those that did not.
pub(super) type Heard = Vec<Option<Step>>;

/// The tables of a journal.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS run (agreement TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS heard (step INTEGER PRIMARY KEY, steps BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS gone (client INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS answer
        (step INTEGER, client INTEGER, messages BLOB NOT NULL, PRIMARY KEY (step, client));";

fn place(step: u64) -> String {
    format!("step {step}")
}

fn place_of_answer(step: u64, client: usize) -> String {
    format!("the answer of {client} at step {step}")
}

impl Journal {
    /// Who has left the run of this `agreement` whose journal is in `path`.
    pub(super) fn who_is_gone(path: &Path, agreement: &str) -> Result<Vec<usize>, StoreError> {
        if !path.exists() {
            return Ok(Vec::new());
        }
        let store = Store::open(path, SCHEMA)?;
        let known: Option<String> = store.get("SELECT agreement FROM run", [])?;
        if !known.is_some_and(|known| known.starts_with(&format!("{FORM} {agreement}"))) {
            return Ok(Vec::new());
        }
        let gone: Vec<i64> = store.all("SELECT client FROM gone ORDER BY client", [])?;
        Ok(gone.into_iter().filter_map(|client| usize::try_from(client).ok()).collect())
    }

    /// A client has left for good, or has come back.
    pub(super) fn note_gone(&self, client: usize, is_gone: bool) -> Result<(), StoreError> {
        let statement = if is_gone {
            "INSERT OR REPLACE INTO gone (client) VALUES (?1)"
        } else {
            "DELETE FROM gone WHERE client = ?1"
        };
        self.store.put(statement, &[&number(client as u64)])
    }

    /// Opens the journal in `path` for a run with this `agreement` and the models of this training.
    /// That of another run is of no use any more, and is replaced; so is any with `anew`.
    pub(super) fn open(
        path: &Path,
        agreement: &str,
        models: u64,
        anew: bool,
    ) -> Result<Self, StoreError> {
        let store = Store::open(path, SCHEMA)?;
        let own = format!("{FORM} {agreement} {models:016x}");
        let known: Option<String> = store.get("SELECT agreement FROM run", [])?;
        if anew || known.as_deref() != Some(&own) {
            store.batch(
                "DELETE FROM run; DELETE FROM heard; DELETE FROM gone; DELETE FROM answer;",
            )?;
            store.put("INSERT INTO run (agreement) VALUES (?1)", &[&own])?;
        }
        Ok(Self { store })
    }

    /// How many steps it holds, the enrolment among them.
    pub(super) fn steps(&self) -> Result<u64, StoreError> {
        let count: Option<i64> = self.store.get("SELECT count(*) FROM heard", [])?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    pub(super) fn step(&self, step: u64) -> Result<Option<Heard>, StoreError> {
        let query = "SELECT steps FROM heard WHERE step = ?1";
        let found = self.sealed(query, &place(step), &[&number(step)])?;
        Ok(found.and_then(|bytes| unpack_steps(&bytes).ok()))
    }

    pub(super) fn keep(&self, step: u64, heard: &Heard) -> Result<(), StoreError> {
        let Ok(bytes) = pack_steps(heard) else { return Ok(()) };
        self.keep_bytes(step, &bytes)
    }

    pub(super) fn keep_bytes(&self, step: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let statement = "INSERT OR REPLACE INTO heard (step, steps) VALUES (?1, ?2)";
        self.store.put(statement, &[&number(step), &sealed(&place(step), bytes)])
    }

    /// What a client answered to a question at a step; an empty list where the answer did not come in time.
    pub(super) fn answer(&self, step: u64, client: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let query = "SELECT messages FROM answer WHERE step = ?1 AND client = ?2";
        let of: [&dyn ToSql; 2] = [&number(step), &number(client as u64)];
        self.sealed(query, &place_of_answer(step, client), &of)
    }

    /// Bytes as they were stored. What is damaged counts as not stored: sites are asked for it again.
    fn sealed(
        &self,
        query: &str,
        place: &str,
        of: &[&dyn ToSql],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        match self.store.get_sealed(query, of, place) {
            Err(StoreError::Damaged { .. }) => Ok(None),
            found => found,
        }
    }

    pub(super) fn keep_answer(
        &self,
        step: u64,
        client: usize,
        messages: &[u8],
    ) -> Result<(), StoreError> {
        let statement =
            "INSERT OR REPLACE INTO answer (step, client, messages) VALUES (?1, ?2, ?3)";
        let messages = sealed(&place_of_answer(step, client), messages);
        self.store.put(statement, &[&number(step), &number(client as u64), &messages])
    }

    /// The run is over: removes the file.
    pub(super) fn remove(self) -> Result<(), StoreError> {
        self.store.remove()
    }
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
        for (client, is_gone) in [(1, true), (0, true), (0, false)] {
            journal.note_gone(client, is_gone).expect("kept");
        }
        drop(journal);
        assert_eq!(Journal::who_is_gone(&path, "one").expect("readable"), [1]);
        assert_eq!(Journal::who_is_gone(&path, "two").expect("readable"), [0; 0]);
        let other = Journal::open(&path, "one", 6, false).expect("a journal for other models");
        assert_eq!(other.steps().expect("readable"), 0);
        other.remove().expect("removed");
        assert!(!path.exists());
    }

    #[test]
    fn a_damaged_step_of_a_journal_is_asked_for_again() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("journal.sqlite");
        let journal = Journal::open(&path, "one", 5, false).expect("a new journal");
        let step = Step::new(1, Timestamp::UNIX_EPOCH, Continuity::Next, vec![vec![1, 2]]);
        journal.keep(1, &vec![Some(step.clone())]).expect("kept");
        journal.keep_answer(1, 0, b"answer").expect("kept");
        let damage = "UPDATE heard SET steps = substr(steps, 1, 4) || x'ff' || substr(steps, 6);
                      UPDATE answer SET messages = x'00';";
        journal.store.batch(damage).expect("damaged");
        assert_eq!(journal.step(1).expect("readable"), None);
        assert_eq!(journal.answer(1, 0).expect("readable"), None);
        journal.keep(1, &vec![Some(step.clone())]).expect("heard again");
        assert_eq!(journal.step(1).expect("readable"), Some(vec![Some(step)]));
    }
}
