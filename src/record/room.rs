//! What goes first where a file has become too large: the oldest measurements, then the oldest of what
//! sites showed, and only then the oldest steps and messages, without which nothing before can be
//! decided again. Facts, events and incidents stay.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::block;
use super::schema::crc;
use crate::base::digest;
use crate::wire;

/// Where the last enrolment of every client stands once the messages it came with are gone.
pub(crate) const ENROLMENTS: &str = "enrolments";
/// The keys of `about` that say what is left.
pub(crate) const MEASUREMENTS_FROM: &str = "kept_measurements_from_ns";
pub(crate) const SITES_FROM: &str = "kept_sites_from_step";
pub(crate) const STEPS_FROM: &str = "kept_from_step";

/// What can go, in the order in which it goes.
const KINDS: [Kind; 3] = [
    Kind {
        tables: &["site_measurements"],
        begins: "SELECT min(from_ns) FROM site_measurements",
        key: MEASUREMENTS_FROM,
        what: "measurements",
    },
    Kind {
        tables: &["site_steps", "site_truth"],
        begins: "SELECT min(first) FROM site_steps",
        key: SITES_FROM,
        what: "distances, norms and true flags",
    },
    Kind {
        tables: &["steps", "server_steps", "server_messages", "site_messages"],
        begins: "SELECT min(first) FROM steps",
        key: STEPS_FROM,
        what: "steps and messages",
    },
];

struct Kind {
    /// The first one says which blocks there are.
    tables: &'static [&'static str],
    begins: &'static str,
    key: &'static str,
    what: &'static str,
}

/// Removes the oldest eighth of something, as often as it takes, where the file has more than `most`
/// bytes. Says what was removed.
pub(super) fn make(db: &Connection, path: &Path, most: u64) -> rusqlite::Result<Vec<String>> {
    let mut removed = BTreeMap::new();
    while bytes(db)? > most {
        let Some((order, kind)) = first_with_blocks(db)? else { break };
        removed.insert(order, kind.remove(db, path)?);
    }
    Ok(removed.into_values().collect())
}

fn bytes(db: &Connection) -> rusqlite::Result<u64> {
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok(number("page_count")?.saturating_sub(number("freelist_count")?) * number("page_size")?)
}

/// The last block is being written: it stays.
fn first_with_blocks(db: &Connection) -> rusqlite::Result<Option<(usize, &'static Kind)>> {
    for (order, kind) in KINDS.iter().enumerate() {
        if kind.blocks(db)? > 1 {
            return Ok(Some((order, kind)));
        }
    }
    Ok(None)
}

impl Kind {
    fn blocks(&self, db: &Connection) -> rusqlite::Result<u64> {
        let query = format!("SELECT count(DISTINCT first) FROM {}", self.tables[0]);
        db.query_row(&query, [], |row| row.get(0))
    }

    fn remove(&self, db: &Connection, path: &Path) -> rusqlite::Result<String> {
        let blocks = (self.blocks(db)? / 8).max(1);
        let table = self.tables[0];
        let query = format!("SELECT DISTINCT first FROM {table} ORDER BY first LIMIT 1 OFFSET ?1");
        let until: u64 = db.query_row(&query, params![blocks], |row| row.get(0))?;
        if self.tables.contains(&"server_messages") {
            keep_enrolments(db, until)?;
        }
        for table in self.tables {
            db.execute(&format!("DELETE FROM {table} WHERE first < ?1"), params![until])?;
        }
        let begins: i64 = db.query_row(self.begins, [], |row| row.get(0))?;
        let value = begins.to_string();
        db.execute(
            "INSERT OR REPLACE INTO about VALUES (?1, ?2, ?3)",
            params![self.key, value, crc(&value)],
        )?;
        let since: i64 = match self.key {
            MEASUREMENTS_FROM => begins,
            _ => db.query_row("SELECT from_ns FROM steps WHERE first >= ?1", [begins], |row| {
                row.get(0)
            })?,
        };
        let since = super::recording::instant(since);
        let (path, what) = (path.display(), self.what);
        Ok(format!("{path} is as large as it may be: its {what} before {since} were removed"))
    }
}

/// Whoever reads the rest must know how symbols are to be weighed.
fn keep_enrolments(db: &Connection, until: u64) -> rusqlite::Result<()> {
    let query = "SELECT data FROM server_models WHERE kind = ?1";
    let known: Option<Vec<u8>> =
        db.query_row(query, params![ENROLMENTS], |row| row.get(0)).optional()?;
    let mut log = known.unwrap_or_default();
    let mut blocks =
        db.prepare("SELECT data FROM server_messages WHERE first < ?1 ORDER BY first")?;
    let mut blocks = blocks.query(params![until])?;
    while let Some(row) = blocks.next()? {
        // This program has written it: it can be read.
        if let Ok(messages) = block::unpack("messages", &row.get::<_, Vec<u8>>(0)?) {
            log.extend(messages);
        }
        log = wire::last_enrolments(&log);
    }
    db.execute(
        "INSERT OR REPLACE INTO server_models VALUES (?1, ?2, ?3)",
        params![ENROLMENTS, digest::sha256(&log), log],
    )?;
    Ok(())
}
