//! What a site has released, and what it was told: kept in SQLite until the federation is over.
//!
//! A release is stored before it is sent. After a kill the site finds here what it sent last and sends
//! that again. A site with a live source also keeps the rows of its steps: nobody else could bring them
//! back. They stay in this file, on the machine of the site.

use std::path::Path;

use rusqlite::params;

use super::account::SpentSoFar;
use super::envelope::nanosecond;
use super::store::{FORM, Store, StoreError, number, sealed};
use crate::privacy::Trained;

/// The version of the tables. Later versions only add tables.
const VERSION: i64 = 2;
/// What trainings have released, as a checksum has it.
const TRAININGS: &str = "what trainings have released";

/// What is stored under a step, as a checksum has it and as a message says it.
fn place(what: &str, step: u64) -> String {
    format!("the {what} of step {step}")
}

/// The outbox of one site.
#[derive(Debug)]
pub(crate) struct Outbox {
    store: Store,
    /// Which start of the site this is; later ones have larger numbers.
    start: u64,
}

impl Outbox {
    /// Opens the outbox in `path`, or makes one, for runs with this `agreement`.
    pub(crate) fn open(path: &Path, agreement: &str) -> Result<Self, StoreError> {
        let store = Store::open(
            path,
            "CREATE TABLE IF NOT EXISTS run (agreement TEXT NOT NULL, start INTEGER NOT NULL);
             CREATE TABLE IF NOT EXISTS models (id BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS trainings (trained BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS up (step INTEGER PRIMARY KEY, envelope BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS row (step INTEGER PRIMARY KEY, row BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS orders (step INTEGER PRIMARY KEY, orders BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS answer (step INTEGER PRIMARY KEY, envelope BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS joined (step INTEGER NOT NULL);
             CREATE TABLE IF NOT EXISTS used (trained TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS spent (name TEXT PRIMARY KEY, spent TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS graded
                 (step INTEGER PRIMARY KEY, orders BLOB NOT NULL, envelope BLOB NOT NULL);",
        )?;
        store.set_version(VERSION)?;
        let agreement = &*format!("{FORM} {agreement}");
        let known: Option<String> = store.get("SELECT agreement FROM run", [])?;
        let before: Option<i64> = store.get("SELECT start FROM run", [])?;
        // A clock that was set back must not make a later start look like an earlier one.
        let mut start = nanosecond(jiff::Timestamp::now());
        match (known, before) {
            (Some(known), _) if known != agreement => {
                return Err(StoreError::Foreign { path: store.path().to_owned() });
            }
            (Some(_), Some(before)) => {
                start = start.max(before.saturating_add(1));
                store.put("UPDATE run SET start = ?1", &[&start])?;
            }
            (None, _) | (_, None) => {
                let new = "INSERT INTO run (agreement, start) VALUES (?1, ?2)";
                store.put(new, params![agreement, start])?;
            }
        }
        Ok(Self { store, start: start.unsigned_abs() })
    }

    /// Which start of the site this is.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The training whose models the releases are made with; none before the first.
    pub(crate) fn models(&self) -> Result<Option<u64>, StoreError> {
        let found: Option<[u8; 8]> = self.store.get("SELECT id FROM models", [])?;
        Ok(found.map(u64::from_le_bytes))
    }

    /// Releases are made with the models of this training from now on, which cost `trained`.
    pub(crate) fn keep_models(&self, id: u64, trained: &[Trained]) -> Result<(), StoreError> {
        let text = sealed(TRAININGS, &serde_json::to_vec(trained).unwrap_or_default());
        self.store.whole(|| {
            self.store.batch("DELETE FROM models; DELETE FROM used;")?;
            self.store.put("INSERT INTO models (id) VALUES (?1)", params![id.to_le_bytes()])?;
            self.store.put("INSERT INTO used (trained) VALUES (?1)", &[&text])
        })
    }

    /// Releases are made anew from `step` on, after an enrolment that is yet to come: the server has
    /// what it will ever ask for of those before. What they cost stays.
    pub(crate) fn begin_at(&self, step: u64) -> Result<(), StoreError> {
        let past = add(self.past()?, self.spent("now")?);
        self.store.whole(|| {
            self.store.batch(
                "DELETE FROM up; DELETE FROM row; DELETE FROM orders; DELETE FROM answer;
                 DELETE FROM graded; DELETE FROM joined; DELETE FROM spent;",
            )?;
            self.store.put("INSERT INTO joined (step) VALUES (?1)", &[&number(step)])?;
            past.map_or(Ok(()), |past| self.keep_spent("past", past))
        })
    }

    /// The first step that the site is heard at.
    pub(crate) fn joined(&self) -> Result<u64, StoreError> {
        let step: Option<i64> = self.store.get("SELECT step FROM joined", [])?;
        Ok(step.map_or(1, i64::unsigned_abs))
    }

    /// What was released under enrolments before the present one.
    pub(crate) fn past(&self) -> Result<Option<SpentSoFar>, StoreError> {
        self.spent("past")
    }

    fn spent(&self, name: &str) -> Result<Option<SpentSoFar>, StoreError> {
        let query = "SELECT spent FROM spent WHERE name = ?1";
        let found: Option<String> = self.store.get(query, [name])?;
        let damaged = |why| StoreError::Trainings { path: self.store.path().to_owned(), why };
        found.map(|text| serde_json::from_str(&text)).transpose().map_err(damaged)
    }

    fn keep_spent(&self, name: &str, spent: SpentSoFar) -> Result<(), StoreError> {
        let text = serde_json::to_string(&spent).unwrap_or_default();
        let statement = "INSERT OR REPLACE INTO spent (name, spent) VALUES (?1, ?2)";
        self.store.put(statement, &[&name, &text])
    }

    /// What is predicted of a step that was announced, what is released of it, and what was spent so far.
    pub(crate) fn keep_graded(
        &self,
        step: u64,
        (orders, envelope): (&[u8], &[u8]),
        spent: SpentSoFar,
    ) -> Result<(), StoreError> {
        self.store.whole(|| {
            let statement = "INSERT INTO graded (step, orders, envelope) VALUES (?1, ?2, ?3)";
            let orders = sealed(&place("predictions", step), orders);
            let envelope = sealed(&place("graded release", step), envelope);
            self.store.put(statement, &[&number(step), &orders, &envelope])?;
            self.keep_spent("now", spent)
        })
    }

    pub(crate) fn predicted(&self, step: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.sealed("SELECT orders FROM graded WHERE step = ?1", "predictions", step)
    }

    /// The envelope with what was released of an announced step.
    pub(crate) fn graded(&self, step: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.sealed("SELECT envelope FROM graded WHERE step = ?1", "graded release", step)
    }

    /// What trainings have released, or will have released if they were not broken off.
    pub(crate) fn trainings(&self) -> Result<Vec<Trained>, StoreError> {
        self.trained("SELECT trained FROM trainings")
    }

    /// What the training of the models released that the releases are made with.
    pub(crate) fn used(&self) -> Result<Vec<Trained>, StoreError> {
        self.trained("SELECT trained FROM used")
    }

    fn trained(&self, query: &str) -> Result<Vec<Trained>, StoreError> {
        let found = self.store.get_sealed(query, [], TRAININGS)?;
        let parse = |text: Vec<u8>| serde_json::from_slice(&text);
        let damaged = |why| StoreError::Trainings { path: self.store.path().to_owned(), why };
        Ok(found.map(parse).transpose().map_err(damaged)?.unwrap_or_default())
    }

    /// Writes that down, and waits until it is on disk: it must not be lost once something was sent.
    pub(crate) fn keep_trainings(&self, trained: &[Trained]) -> Result<(), StoreError> {
        self.keep_training_bytes(&serde_json::to_vec(trained).unwrap_or_default())
    }

    pub(super) fn keep_training_bytes(&self, text: &[u8]) -> Result<(), StoreError> {
        let text = sealed(TRAININGS, text);
        self.store.batch("PRAGMA synchronous = FULL; BEGIN; DELETE FROM trainings;")?;
        self.store.put("INSERT INTO trainings (trained) VALUES (?1)", &[&text])?;
        self.store.batch("COMMIT; PRAGMA synchronous = NORMAL;")
    }

    /// The last step that was released; none before the enrolment.
    pub(crate) fn last(&self) -> Result<Option<u64>, StoreError> {
        let last: Option<Option<i64>> = self.store.get("SELECT max(step) FROM up", [])?;
        let last = last.flatten().map(i64::unsigned_abs);
        // A number that no release stands under would be counted up to.
        if let Some(last) = last {
            self.envelope(last)?.ok_or_else(|| self.store.damaged(&place("release", last)))?;
        }
        Ok(last)
    }

    /// Whether the releases of all steps that the site was heard at up to `last` are there: those of a
    /// replay are never removed.
    pub(crate) fn check_all(&self, last: u64) -> Result<(), StoreError> {
        let count: Option<i64> = self.store.get("SELECT count(*) FROM up", [])?;
        let least: Option<Option<i64>> = self.store.get("SELECT min(step) FROM up", [])?;
        let joined = self.joined()?;
        let steps = last.checked_add(1).and_then(|after| after.checked_sub(joined));
        let expected =
            if last == 0 { Some(1) } else { steps.and_then(|steps| steps.checked_add(1)) };
        let is_whole = count.map(i64::unsigned_abs) == expected;
        if is_whole && least.flatten() == Some(0) {
            return Ok(());
        }
        Err(self.store.damaged("the list of releases"))
    }

    /// The first step after the enrolment that the server may not have.
    pub(crate) fn first(&self) -> Result<Option<u64>, StoreError> {
        let query = "SELECT min(step) FROM up WHERE step > 0";
        let first: Option<Option<i64>> = self.store.get(query, [])?;
        Ok(first.flatten().map(i64::unsigned_abs))
    }

    /// The envelope of a step, as it was sealed when the step was released.
    pub(crate) fn envelope(&self, step: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.sealed("SELECT envelope FROM up WHERE step = ?1", "release", step)
    }

    /// Keeps the envelope of a step, and what was spent up to it.
    pub(crate) fn keep(
        &self,
        step: u64,
        envelope: &[u8],
        spent: SpentSoFar,
    ) -> Result<(), StoreError> {
        self.store.whole(|| self.put_up(step, envelope, spent))
    }

    fn put_up(&self, step: u64, envelope: &[u8], spent: SpentSoFar) -> Result<(), StoreError> {
        let statement = "INSERT INTO up (step, envelope) VALUES (?1, ?2)";
        let envelope = sealed(&place("release", step), envelope);
        self.store.put(statement, &[&number(step), &envelope])?;
        self.keep_spent("now", spent)
    }

    /// Bytes of a step, as they were stored.
    fn sealed(&self, query: &str, what: &str, step: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get_sealed(query, [number(step)], &place(what, step))
    }

    /// The same with the row that it was made from.
    pub(crate) fn keep_with_row(
        &self,
        step: u64,
        envelope: &[u8],
        row: &[u8],
        spent: SpentSoFar,
    ) -> Result<(), StoreError> {
        self.store.whole(|| {
            self.keep_row(step, row)?;
            self.put_up(step, envelope, spent)
        })
    }

    /// Keeps the row of a step that was not taken yet.
    pub(crate) fn keep_row(&self, step: u64, row: &[u8]) -> Result<(), StoreError> {
        let statement = "INSERT OR REPLACE INTO row (step, row) VALUES (?1, ?2)";
        self.store.put(statement, &[&number(step), &sealed(&place("row", step), row)])
    }

    /// The row of a step, where it was kept.
    pub(crate) fn row(&self, step: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.sealed("SELECT row FROM row WHERE step = ?1", "row", step)
    }

    /// The steps `from..=to` whose rows are kept, in their order.
    pub(crate) fn rows(&self, from: u64, to: u64) -> Result<Vec<u64>, StoreError> {
        let query = "SELECT step FROM row WHERE step BETWEEN ?1 AND ?2 ORDER BY step";
        let steps: Vec<i64> = self.store.all(query, [number(from), number(to)])?;
        Ok(steps.into_iter().map(i64::unsigned_abs).collect())
    }

    /// The last step whose row is kept; 0 where there is none.
    pub(crate) fn last_row(&self) -> Result<u64, StoreError> {
        let last: Option<Option<i64>> = self.store.get("SELECT max(step) FROM row", [])?;
        Ok(last.flatten().map_or(0, i64::unsigned_abs))
    }

    /// The server has every step before `step`, on disk: nobody will ask for them again. The enrolment
    /// and the last release stay.
    pub(crate) fn acknowledge(&self, step: u64) -> Result<(), StoreError> {
        let statement = "DELETE FROM up WHERE step > 0 AND step < ?1 \
                         AND step < (SELECT max(step) FROM up)";
        self.store.put(statement, &[&number(step)])
    }

    /// What the server ordered after a step.
    pub(crate) fn orders(&self, step: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.sealed("SELECT orders FROM orders WHERE step = ?1", "orders", step)
    }

    pub(crate) fn keep_orders(&self, step: u64, orders: &[u8]) -> Result<(), StoreError> {
        let statement = "INSERT OR IGNORE INTO orders (step, orders) VALUES (?1, ?2)";
        self.store.put(statement, &[&number(step), &sealed(&place("orders", step), orders)])
    }

    /// The same instead of what is there.
    pub(crate) fn replace_orders(&self, step: u64, orders: &[u8]) -> Result<(), StoreError> {
        let statement = "INSERT OR REPLACE INTO orders (step, orders) VALUES (?1, ?2)";
        self.store.put(statement, &[&number(step), &sealed(&place("orders", step), orders)])
    }

    /// What was answered to a question at a step.
    pub(crate) fn answer(&self, step: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.sealed("SELECT envelope FROM answer WHERE step = ?1", "answer", step)
    }

    pub(crate) fn keep_answer(&self, step: u64, envelope: &[u8]) -> Result<(), StoreError> {
        let statement = "INSERT OR IGNORE INTO answer (step, envelope) VALUES (?1, ?2)";
        self.store.put(statement, &[&number(step), &sealed(&place("answer", step), envelope)])
    }

    /// The run is over and nobody will ask for it again: removes the file.
    pub(crate) fn remove(self) -> Result<(), StoreError> {
        self.store.remove()
    }
}

/// Both together. Without a bound on one there is none on both.
pub(crate) fn add(past: Option<SpentSoFar>, now: Option<SpentSoFar>) -> Option<SpentSoFar> {
    let (Some(past), Some(now)) = (past, now) else { return past.or(now) };
    let is_nothing = |spent: SpentSoFar| spent.releases == 0;
    if is_nothing(past) || is_nothing(now) {
        return Some(if is_nothing(now) { past } else { now });
    }
    let epsilon = past.epsilon.zip(now.epsilon).map(|(past, now)| past + now);
    Some(SpentSoFar { epsilon, releases: past.releases + now.releases })
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
            outbox.store.batch("INSERT INTO trainings VALUES (x'5b7b')").expect("damaged");
            let why = outbox.trainings().expect_err("what was spent is not forgotten");
            assert!(why.to_string().contains("released is damaged"), "{why}");
            outbox.keep_trainings(&[trained.clone(), trained.clone()]).expect("kept");
            outbox.keep_trainings(std::slice::from_ref(&trained)).expect("kept");
        }
        let outbox = Outbox::open(&path, "one").expect("the same outbox");
        assert_eq!(outbox.trainings().expect("readable"), [trained]);
        outbox.keep_trainings(&[]).expect("kept");
        assert_eq!(outbox.trainings().expect("readable"), []);
    }

    fn spent(releases: u64) -> SpentSoFar {
        SpentSoFar { epsilon: Some(releases as f64), releases }
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
            outbox.keep(0, b"enrolment", spent(0)).expect("kept");
            outbox.keep(1, b"first", spent(1)).expect("kept");
            outbox.keep(1, b"another draw", spent(9)).expect_err("a step is released once");
            outbox.keep_orders(1, b"orders").expect("kept");
            outbox.keep_orders(1, b"others").expect("the first ones count");
            for step in 2..=4 {
                outbox.keep_with_row(step, b"live", b"row", spent(step)).expect("kept");
            }
            assert_eq!(outbox.first().expect("readable"), Some(1));
            outbox.acknowledge(4).expect("the server has what is before");
            assert_eq!(outbox.first().expect("readable"), Some(4));
            outbox.acknowledge(9).expect("the last release stays");
            assert_eq!(outbox.last().expect("readable"), Some(4));
            outbox.keep_row(6, b"row").expect("it is taken later");
            assert_eq!(outbox.rows(1, 4).expect("readable"), [2, 3, 4]);
            assert_eq!(outbox.rows(5, 9).expect("readable"), [6]);
            assert_eq!(outbox.last_row().expect("readable"), 6);
        }
        let outbox = Outbox::open(&path, "one").expect("the same outbox");
        assert!(outbox.start() > first, "a later start");
        assert_eq!(outbox.last().expect("readable"), Some(4));
        assert_eq!(outbox.envelope(4).expect("readable").as_deref(), Some(&b"live"[..]));
        assert_eq!(outbox.envelope(1).expect("readable"), None, "the server has it");
        assert_eq!(outbox.row(4).expect("readable").as_deref(), Some(&b"row"[..]));
        assert_eq!(outbox.orders(1).expect("readable").as_deref(), Some(&b"orders"[..]));
        assert_eq!(outbox.envelope(5).expect("readable"), None);
        let refused = Outbox::open(&path, "two").expect_err("another run");
        assert!(refused.to_string().contains("belongs to another run"), "{refused}");
        // It enrols again: what it released before is not asked for any more, and stays spent.
        outbox.begin_at(7).expect("kept");
        assert_eq!(outbox.joined().expect("readable"), 7);
        assert_eq!(outbox.last().expect("readable"), None);
        assert_eq!(outbox.past().expect("readable"), Some(spent(4)));
        outbox.keep(0, b"enrolment", spent(1)).expect("kept");
        outbox.begin_at(9).expect("kept");
        assert_eq!(outbox.past().expect("readable"), Some(spent(5)));
        outbox.remove().expect("removed");
        assert!(!path.exists());
    }

    #[test]
    fn a_damaged_outbox_is_told_and_nothing_of_it_is_sent() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let open = || Outbox::open(&folder.path().join("outbox.sqlite"), "one").expect("an outbox");
        let outbox = open();
        for step in 0..4 {
            outbox.keep(step, b"release", SpentSoFar::default()).expect("kept");
            outbox.keep_orders(step, b"orders").expect("kept");
        }
        outbox.check_all(3).expect("all are there");
        // Another byte, another step, no blob.
        for damage in [
            "UPDATE up SET envelope = x'00' || substr(envelope, 2) WHERE step = 2",
            "UPDATE up SET envelope = (SELECT envelope FROM up WHERE step = 1) WHERE step = 2",
            "UPDATE up SET envelope = 7 WHERE step = 2",
            "UPDATE up SET envelope = x'' WHERE step = 2",
        ] {
            outbox.store.batch(damage).expect("damaged");
            let why = outbox.envelope(2).expect_err("noticed").to_string();
            assert!(why.contains("the release of step 2 is damaged"), "{why}");
        }
        outbox.store.batch("UPDATE orders SET orders = x'01' WHERE step = 1").expect("damaged");
        outbox.orders(1).expect_err("noticed");
        outbox.store.batch("DELETE FROM up WHERE step = 1").expect("damaged");
        outbox.check_all(3).expect_err("one is missing");
        // A number that somebody would count up to.
        for step in [i64::MAX, 1 << 40] {
            let statement = format!("UPDATE up SET step = {step} WHERE step = 3");
            outbox.store.batch(&statement).expect("damaged");
            outbox.last().expect_err("no release was stored under it");
            outbox
                .store
                .batch(&format!("UPDATE up SET step = 3 WHERE step = {step}"))
                .expect("back");
        }
        assert_eq!(outbox.last().expect("readable"), Some(3));
    }
}
