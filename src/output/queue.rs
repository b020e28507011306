//! Facts that wait for their receivers, on disk.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::base::digest::sha256;

/// Facts that may wait for one receiver.
pub(crate) const MOST: u64 = 100_000;
/// Waits after a failure, in seconds.
const FIRST_WAIT_S: f64 = 1.0;
const LONGEST_WAIT_S: f64 = 300.0;

const COUNT_GIVEN_UP: &str = "INSERT INTO given_up VALUES (?1, ?2)
    ON CONFLICT (receiver) DO UPDATE SET facts = facts + ?2";
/// Hexadecimal digits of a checksum.
const SUM: usize = 16;

/// A fact as it is stored: a checksum stands behind it. A line of JSON has no tab in it.
fn sealed(line: &str) -> String {
    format!("{line}\t{}", &sha256(line.as_bytes())[..SUM])
}

/// The fact that was stored; none where it is damaged. Older programs stored no checksum.
fn unsealed(stored: &str) -> Option<&str> {
    match stored.rsplit_once('\t') {
        Some((line, sum)) => (sha256(line.as_bytes())[..SUM] == *sum).then_some(line),
        None => {
            let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(stored).is_ok();
            (stored.starts_with('{') && is_json()).then_some(stored)
        }
    }
}

/// A fact that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) number: i64,
    pub(crate) line: String,
    attempts: u32,
}

/// The queues of all receivers, in one file. Several threads may have it open.
#[derive(Debug)]
pub(crate) struct Queue {
    db: Connection,
    most: u64,
}

impl Queue {
    pub(crate) fn open(file: &Path) -> rusqlite::Result<Self> {
        let db = Connection::open(file)?;
        db.busy_timeout(Duration::from_secs(10))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS queue (
                 number INTEGER PRIMARY KEY AUTOINCREMENT,
                 receiver TEXT NOT NULL,
                 line TEXT NOT NULL,
                 attempts INTEGER NOT NULL DEFAULT 0,
                 due_s REAL NOT NULL DEFAULT 0
             );
             CREATE INDEX IF NOT EXISTS by_receiver ON queue (receiver, number);
             CREATE TABLE IF NOT EXISTS given_up (receiver TEXT PRIMARY KEY, facts INTEGER NOT NULL);",
        )?;
        Ok(Self { db, most: MOST })
    }

    /// Adds a fact. Beyond the bound the oldest one is given up.
    pub(crate) fn push(&mut self, receiver: &str, line: &str) -> rusqlite::Result<()> {
        let change = self.db.transaction()?;
        change.execute(
            "INSERT INTO queue (receiver, line) VALUES (?1, ?2)",
            params![receiver, sealed(line)],
        )?;
        let waiting: u64 = change.query_row(
            "SELECT COUNT(*) FROM queue WHERE receiver = ?1",
            [receiver],
            |row| row.get(0),
        )?;
        let over = waiting.saturating_sub(self.most);
        if over > 0 {
            change.execute(
                "DELETE FROM queue WHERE number IN
                 (SELECT number FROM queue WHERE receiver = ?1 ORDER BY number LIMIT ?2)",
                params![receiver, over],
            )?;
            change.execute(COUNT_GIVEN_UP, params![receiver, over])?;
        }
        change.commit()
    }

    /// The oldest fact of a receiver, if its time has come. Facts that cannot be read any more are given
    /// up, so that those behind them go out.
    pub(crate) fn due(&mut self, receiver: &str, now_s: f64) -> rusqlite::Result<Option<Waiting>> {
        loop {
            let oldest = self.db.query_row(
                "SELECT number, line, attempts, due_s FROM queue WHERE receiver = ?1
                 ORDER BY number LIMIT 1",
                [receiver],
                |row| {
                    let line = row.get_ref(1)?.as_str().ok().and_then(unsealed).map(str::to_owned);
                    // Numbers that are none do not keep a fact back.
                    let attempts = row.get(2).unwrap_or(0);
                    Ok((row.get(0)?, line, attempts, row.get(3).unwrap_or(0.0)))
                },
            );
            let Some((number, line, attempts, due_s)) = oldest.optional()? else {
                return Ok(None);
            };
            let Some(line) = line else {
                tracing::error!("a fact for {receiver} is lost: what was stored of it is damaged");
                self.give_up(receiver, number)?;
                continue;
            };
            // Nobody waits longer than that: the clock was set back.
            let is_due = due_s <= now_s || due_s > now_s + LONGEST_WAIT_S;
            return Ok(is_due.then_some(Waiting { number, line, attempts }));
        }
    }

    fn give_up(&mut self, receiver: &str, number: i64) -> rusqlite::Result<()> {
        let change = self.db.transaction()?;
        change.execute("DELETE FROM queue WHERE number = ?1", [number])?;
        change.execute(COUNT_GIVEN_UP, params![receiver, 1])?;
        change.commit()
    }

    /// It was delivered.
    pub(crate) fn done(&self, waiting: &Waiting) -> rusqlite::Result<()> {
        self.db.execute("DELETE FROM queue WHERE number = ?1", [waiting.number])?;
        Ok(())
    }

    /// It could not be delivered: it is tried again, later each time.
    pub(crate) fn failed(&self, waiting: &Waiting, now_s: f64) -> rusqlite::Result<f64> {
        let doubled = FIRST_WAIT_S * 2_f64.powi(waiting.attempts.min(20).cast_signed());
        let due_s = now_s + doubled.min(LONGEST_WAIT_S);
        self.db.execute(
            "UPDATE queue SET attempts = attempts + 1, due_s = ?2 WHERE number = ?1",
            params![waiting.number, due_s],
        )?;
        Ok(due_s)
    }

    /// Facts that wait for a receiver.
    pub(crate) fn waiting(&self, receiver: &str) -> rusqlite::Result<u64> {
        let count = "SELECT COUNT(*) FROM queue WHERE receiver = ?1";
        self.db.query_row(count, [receiver], |row| row.get(0))
    }

    /// Facts of a receiver that were given up because too many waited.
    pub(crate) fn given_up(&self, receiver: &str) -> rusqlite::Result<u64> {
        let count = "SELECT facts FROM given_up WHERE receiver = ?1";
        Ok(self.db.query_row(count, [receiver], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    #[cfg(test)]
    pub(super) fn with_most(self, most: u64) -> Self {
        Self { most, ..self }
    }
}

/// Takes every fact for `receiver` out of the queue in `file`: the facts, and how many were given up.
pub(crate) fn empty(file: &Path, receiver: &str) -> rusqlite::Result<(Vec<String>, u64)> {
    let mut queue = Queue::open(file)?;
    let mut lines = Vec::new();
    while let Some(waiting) = queue.due(receiver, f64::MAX)? {
        queue.done(&waiting)?;
        lines.push(waiting.line);
    }
    Ok((lines, queue.given_up(receiver)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_gives_up_the_oldest_facts_and_counts_them() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("queue");
        let mut queue = Queue::open(&file).expect("a queue").with_most(3);
        for i in 0..5 {
            queue.push("a", &i.to_string()).expect("pushed");
        }
        queue.push("b", "x").expect("pushed");
        // Another start goes on where this one ended.
        drop(queue);
        let mut queue = Queue::open(&file).expect("a queue");
        assert_eq!(queue.waiting("a").expect("counted"), 3);
        assert_eq!(queue.given_up("a").expect("counted"), 2);
        assert_eq!(queue.given_up("b").expect("counted"), 0);
        assert_eq!(queue.due("a", 0.0).expect("read").expect("one").line, "2");
    }

    #[test]
    fn a_damaged_fact_is_given_up_and_counted_and_those_behind_it_go_out() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("queue");
        let mut queue = Queue::open(&file).expect("a queue");
        for i in 0..6 {
            queue.push("a", &format!("{{\"i\":{i}}}")).expect("pushed");
        }
        let damage =
            "UPDATE queue SET line = replace(line, '{\"i\":0', '{\"i\":9') WHERE number = 1;
             UPDATE queue SET line = x'ff00' WHERE number = 2;
             UPDATE queue SET line = 7 WHERE number = 3;
             UPDATE queue SET attempts = 'many', due_s = 'never' WHERE number = 4;
             UPDATE queue SET line = '{\"i\":4}' WHERE number = 5;";
        queue.db.execute_batch(damage).expect("damaged");
        let (lines, given_up) = empty(&file, "a").expect("a queue");
        // The fifth is as an older program stored it.
        assert_eq!(lines, ["{\"i\":3}", "{\"i\":4}", "{\"i\":5}"]);
        assert_eq!(given_up, 3);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_keep_facts_back() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let mut queue = Queue::open(&folder.path().join("queue")).expect("a queue");
        queue.push("a", "{}").expect("pushed");
        let waiting = queue.due("a", 1e9).expect("read").expect("one");
        queue.failed(&waiting, 1e9).expect("noted");
        assert_eq!(queue.due("a", 1e9).expect("read"), None, "not at once");
        assert!(queue.due("a", 1e9 - 86_400.0).expect("read").is_some(), "a day earlier");
    }
}
