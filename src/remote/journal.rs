//! What the server has heard, kept in SQLite until the run is over: a server that begins anew takes the
//! steps from here, and asks sites for those that are missing alone.
//!
//! A step is stored before it is decided. Decisions are not stored: the same steps give the same ones.

use std::path::Path;

use rusqlite::ToSql;
use serde::{Deserialize, Serialize};

use super::envelope::{Step, pack_steps, unpack_steps};
use super::store::{Store, StoreError, number, sealed};

/// The steps of a run as the server heard them.
#[derive(Debug)]
pub(super) struct Journal {
    store: Store,
}

/// What every site sent of one step; none from those that did not.
pub(super) type Heard = Vec<Option<Step>>;

/// The version of the tables. A journal of another version is replaced, like that of another run.
const VERSION: i64 = 3;
/// The tables of a journal.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS run (id TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS heard (step INTEGER PRIMARY KEY, steps BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS gone (client INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS absent (client INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS own (client INTEGER PRIMARY KEY, models BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS waiting (client INTEGER PRIMARY KEY, models BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS accepted (client INTEGER PRIMARY KEY, models BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS graded
        (step INTEGER, client INTEGER, messages BLOB NOT NULL, PRIMARY KEY (step, client));
    CREATE TABLE IF NOT EXISTS answer
        (step INTEGER, client INTEGER, messages BLOB NOT NULL, PRIMARY KEY (step, client));";

/// What tells one run from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunId {
    /// What the server and each of its sites must agree on, by client.
    pub(super) agreements: Vec<String>,
    /// The influences that the session declares, by name.
    pub(super) edges: Vec<(String, String)>,
    pub(super) names: Vec<String>,
    /// The training whose models the run is with; none while they are not known.
    pub(super) models: Option<u64>,
}

impl RunId {
    /// Whether `other` is the same run, or the same with more clients: those stand last.
    fn goes_on_as(&self, other: &Self) -> bool {
        let clients = self.agreements.len();
        let known = |name: &String| self.names.contains(name);
        let edges = other.edges.iter().filter(|(from, to)| known(from) && known(to));
        other.agreements.get(..clients) == Some(&self.agreements[..])
            && self.edges.iter().eq(edges)
            && (other.models.is_none() || self.models == other.models)
    }
}

/// What a journal says of the clients of a run before anything else is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members {
    /// Clients that the run was begun with, here or not; none where there is no such run.
    pub(super) clients: usize,
    /// The training whose models the run is with.
    pub(super) models: Option<u64>,
    pub(super) gone: Vec<usize>,
    pub(super) absent: Vec<usize>,
    /// Who has enrolled with models of its own.
    pub(super) own: Vec<(usize, u64)>,
}

fn place(step: u64) -> String {
    format!("step {step}")
}

fn place_of_answer(step: u64, client: usize) -> String {
    format!("the answer of {client} at step {step}")
}

impl Journal {
    /// Who takes part in the run `id` whose journal is in `path`, whatever its models are.
    pub(super) fn members(path: &Path, id: &RunId) -> Result<Members, StoreError> {
        if !path.exists() {
            return Ok(Members::default());
        }
        let store = Store::open(path, SCHEMA)?;
        let journal = Self { store };
        let Some(known) = journal.known()?.filter(|known| known.goes_on_as(id)) else {
            return Ok(Members::default());
        };
        let places = |query: &str| -> Result<Vec<usize>, StoreError> {
            let found: Vec<i64> = journal.store.all(query, [])?;
            Ok(found.into_iter().filter_map(|client| usize::try_from(client).ok()).collect())
        };
        let own = places("SELECT client FROM own ORDER BY client")?;
        let models = own.into_iter().map(|client| Ok((client, journal.models("own", client)?)));
        let models: Vec<(usize, Option<u64>)> = models.collect::<Result<_, StoreError>>()?;
        Ok(Members {
            clients: known.agreements.len(),
            models: known.models,
            gone: places("SELECT client FROM gone ORDER BY client")?,
            absent: places("SELECT client FROM absent ORDER BY client")?,
            own: models.into_iter().filter_map(|(client, id)| Some((client, id?))).collect(),
        })
    }

    /// The run that the journal is of; none where it is empty or of another version.
    fn known(&self) -> Result<Option<RunId>, StoreError> {
        if self.store.version()? != VERSION {
            return Ok(None);
        }
        let found: Option<String> = self.store.get("SELECT id FROM run", [])?;
        Ok(found.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Models of a client in one of the tables that have them.
    fn models(&self, table: &str, client: usize) -> Result<Option<u64>, StoreError> {
        let query = format!("SELECT models FROM {table} WHERE client = ?1");
        let found: Option<[u8; 8]> = self.store.get(&query, [number(client as u64)])?;
        Ok(found.map(u64::from_le_bytes))
    }

    fn keep_models(&self, table: &str, client: usize, models: u64) -> Result<(), StoreError> {
        let statement = format!("INSERT OR REPLACE INTO {table} (client, models) VALUES (?1, ?2)");
        self.store.put(&statement, &[&number(client as u64), &models.to_le_bytes()])
    }

    /// A site waits until an operator accepts these models.
    pub(super) fn note_waiting(&self, client: usize, models: u64) -> Result<(), StoreError> {
        self.keep_models("waiting", client, models)
    }

    /// The models of a site that an operator has accepted.
    pub(super) fn accepted(&self, client: usize) -> Result<Option<u64>, StoreError> {
        self.models("accepted", client)
    }

    /// An operator accepts the models that a site waits with: which ones; none where it does not wait.
    pub(super) fn accept(&self, client: usize) -> Result<Option<u64>, StoreError> {
        let waiting = self.models("waiting", client)?;
        if let Some(models) = waiting {
            self.keep_models("accepted", client, models)?;
        }
        Ok(waiting)
    }

    /// A client enrols with models of its own.
    pub(super) fn note_own(&self, client: usize, models: u64) -> Result<(), StoreError> {
        self.keep_models("own", client, models)
    }

    /// A client has not enrolled yet, or now has.
    pub(super) fn note_absent(&self, client: usize, is_absent: bool) -> Result<(), StoreError> {
        let place = number(client as u64);
        if is_absent {
            let statement = "INSERT OR REPLACE INTO absent (client) VALUES (?1)";
            return self.store.put(statement, &[&place]);
        }
        self.store.put("DELETE FROM absent WHERE client = ?1", &[&place])?;
        self.store.put("DELETE FROM waiting WHERE client = ?1", &[&place])
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

    /// Opens the journal in `path` for the run `id`. That of another run is of no use any more, and is
    /// replaced; so is any with `anew`.
    pub(super) fn open(path: &Path, id: &RunId, anew: bool) -> Result<Self, StoreError> {
        let journal = Self { store: Store::open(path, SCHEMA)? };
        let goes_on = journal.known()?.is_some_and(|known| known.goes_on_as(id));
        if anew || !goes_on {
            for table in ["run", "heard", "gone", "absent", "own", "waiting", "accepted"] {
                journal.store.batch(&format!("DROP TABLE IF EXISTS {table};"))?;
            }
            journal.store.batch("DROP TABLE IF EXISTS graded; DROP TABLE IF EXISTS answer;")?;
            journal.store.batch(SCHEMA)?;
            journal.store.set_version(VERSION)?;
        }
        let text = serde_json::to_string(id).unwrap_or_default();
        journal.store.batch("DELETE FROM run;")?;
        journal.store.put("INSERT INTO run (id) VALUES (?1)", &[&text])?;
        Ok(journal)
    }

    /// The journal of a run that goes on, for an operator beside it; none where there is none.
    pub(super) fn of_running(path: &Path, id: &RunId) -> Result<Option<Self>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let journal = Self { store: Store::open(path, SCHEMA)? };
        let goes_on = journal.known()?.is_some_and(|known| known.goes_on_as(id));
        Ok(goes_on.then_some(journal))
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

    /// What a client released at a step that it had announced.
    pub(super) fn graded(&self, step: u64, client: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let query = "SELECT messages FROM graded WHERE step = ?1 AND client = ?2";
        let of: [&dyn ToSql; 2] = [&number(step), &number(client as u64)];
        self.sealed(query, &place_of_answer(step, client), &of)
    }

    /// Keeps that of all clients of a step at once.
    pub(super) fn keep_graded(
        &self,
        step: u64,
        graded: &[(usize, Vec<u8>)],
    ) -> Result<(), StoreError> {
        let statement =
            "INSERT OR REPLACE INTO graded (step, client, messages) VALUES (?1, ?2, ?3)";
        self.store.whole(|| {
            graded.iter().try_for_each(|(client, messages)| {
                let place = number(*client as u64);
                let messages = sealed(&place_of_answer(step, *client), messages);
                self.store.put(statement, &[&number(step), &place, &messages])
            })
        })
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
        let id = RunId {
            agreements: vec!["one".to_owned(), "two".to_owned()],
            edges: Vec::new(),
            names: vec!["A".to_owned(), "B".to_owned()],
            models: Some(5),
        };
        {
            let journal = Journal::open(&path, &id, false).expect("a new journal");
            assert_eq!(journal.steps().expect("readable"), 0);
            journal.keep(1, &heard).expect("kept");
            journal.keep_answer(1, 0, b"answer").expect("kept");
            journal.keep_graded(1, &[(1, b"graded".to_vec())]).expect("kept");
        }
        let journal = Journal::open(&path, &id, false).expect("the same journal");
        assert_eq!(journal.steps().expect("readable"), 1);
        assert_eq!(journal.step(1).expect("readable"), Some(heard));
        assert_eq!(journal.step(2).expect("readable"), None);
        assert_eq!(journal.answer(1, 0).expect("readable").as_deref(), Some(&b"answer"[..]));
        assert_eq!(journal.answer(1, 1).expect("readable"), None);
        assert_eq!(journal.graded(1, 1).expect("readable").as_deref(), Some(&b"graded"[..]));
        for (client, is_gone) in [(1, true), (0, true), (0, false)] {
            journal.note_gone(client, is_gone).expect("kept");
        }
        journal.note_absent(1, true).expect("kept");
        assert_eq!(journal.accept(1).expect("readable"), None, "nobody waits");
        journal.note_waiting(1, 77).expect("kept");
        let operator = Journal::of_running(&path, &id).expect("readable").expect("a run");
        assert_eq!(operator.accept(1).expect("kept"), Some(77));
        assert_eq!(journal.accepted(1).expect("readable"), Some(77));
        journal.note_own(1, 77).expect("kept");
        drop((journal, operator));
        let unknown = RunId { models: None, ..id.clone() };
        let members = Members {
            clients: 2,
            models: Some(5),
            gone: vec![1],
            absent: vec![1],
            own: vec![(1, 77)],
        };
        assert_eq!(Journal::members(&path, &unknown).expect("readable"), members);
        // A client was added to the session, behind the others: the run goes on.
        let mut wider = id.clone();
        wider.agreements.push("three".to_owned());
        wider.names.push("C".to_owned());
        wider.edges.push(("A".to_owned(), "C".to_owned()));
        assert_eq!(Journal::members(&path, &wider).expect("readable"), members);
        let journal = Journal::open(&path, &wider, false).expect("the same journal");
        assert_eq!(journal.steps().expect("readable"), 1);
        journal.note_absent(1, false).expect("kept");
        drop(journal);
        assert_eq!(Journal::members(&path, &id).expect("readable").clients, 0, "fewer clients");
        let mut other = wider.clone();
        other.edges.push(("A".to_owned(), "B".to_owned()));
        assert_eq!(Journal::members(&path, &other).expect("readable").clients, 0, "other edges");
        let other = RunId { models: Some(6), ..wider };
        let other = Journal::open(&path, &other, false).expect("a journal for other models");
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
