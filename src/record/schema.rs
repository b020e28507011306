//! The tables of a recording. The guide documents them for other programs.

use std::path::Path;

use rusqlite::Connection;

use super::RecordError;

/// The version of the tables. A file of an older version is brought up to it when it is written to; a
/// newer one is refused.
pub(super) const VERSION: i64 = 3;

/// `Hwtr`: what says that a SQLite file is one of ours.
pub(super) const APPLICATION: i64 = 0x4877_7472;

const TABLES: &str = "
CREATE TABLE about (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE steps (
    first INTEGER PRIMARY KEY, steps INTEGER NOT NULL,
    from_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE step_notes (
    step INTEGER PRIMARY KEY, json TEXT NOT NULL, crc INTEGER NOT NULL
);

CREATE TABLE site_about (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE site_steps (
    first INTEGER NOT NULL, client INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (first, client)
) WITHOUT ROWID;
CREATE TABLE site_truth (
    first INTEGER NOT NULL, client INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (first, client)
) WITHOUT ROWID;
CREATE TABLE site_models (
    kind TEXT PRIMARY KEY, sha256 TEXT NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE site_measurements (
    first INTEGER PRIMARY KEY, frames INTEGER NOT NULL,
    from_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE site_ledger (
    step INTEGER NOT NULL, client INTEGER NOT NULL, time TEXT NOT NULL,
    json TEXT NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (step, client)
) WITHOUT ROWID;
CREATE TABLE site_messages (
    first INTEGER PRIMARY KEY, data BLOB NOT NULL
);

CREATE TABLE server_about (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE server_models (
    kind TEXT PRIMARY KEY, sha256 TEXT NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE server_steps (
    first INTEGER NOT NULL, client INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (first, client)
) WITHOUT ROWID;
CREATE TABLE server_messages (
    first INTEGER PRIMARY KEY, data BLOB NOT NULL
);
CREATE TABLE server_facts (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, line TEXT NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE server_events (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, after_end INTEGER NOT NULL,
    time TEXT NOT NULL, who TEXT, incident INTEGER, json TEXT NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE server_incidents (
    number INTEGER PRIMARY KEY, json TEXT NOT NULL, crc INTEGER NOT NULL
);
CREATE VIEW server_actions AS
    SELECT number, step, time, who, incident, json FROM server_events WHERE who IS NOT NULL;
CREATE VIEW server_settings AS
    SELECT number, step, json_extract(line, '$.time') AS time, json_extract(line, '$.what') AS what,
        json_extract(line, '$.from') AS \"from\", json_extract(line, '$.to') AS \"to\"
    FROM server_facts WHERE json_extract(line, '$.fact') = 'setting';
CREATE VIEW server_loss AS
    SELECT json_extract(line, '$.round') AS round, json_extract(line, '$.server_loss') AS server_loss,
        json_extract(line, '$.client_loss') AS client_loss
    FROM server_facts WHERE json_extract(line, '$.fact') = 'training';
";

/// What brings a file of version `n` to version `n + 1`, at place `n − 1`.
///
/// Version 2 stores what a site's steps were before they were released, and the models themselves.
/// Version 3 has room for what a site sends that is a process of its own.
const MIGRATIONS: [&str; VERSION as usize - 1] = [
    "
CREATE TABLE site_truth (
    first INTEGER NOT NULL, client INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (first, client)
) WITHOUT ROWID;
CREATE TABLE site_models (
    kind TEXT PRIMARY KEY, sha256 TEXT NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
",
    "
CREATE TABLE site_messages (
    first INTEGER PRIMARY KEY, data BLOB NOT NULL
);
",
];

/// Makes the tables of a new file.
pub(super) fn create(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "page_size", 4096)?;
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // An empty file need not survive a loss of power: the run does not wait for the disk yet.
    db.pragma_update(None, "synchronous", "OFF")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.execute_batch(&format!("BEGIN; {TABLES} COMMIT;"))?;
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", VERSION)?;
    db.pragma_update(None, "synchronous", "NORMAL")
}

/// Whether a file is a recording that this program can read, and of which version. One of an older
/// version is brought up to date first where it may be written, and read as it is where it may not.
pub(super) fn check(db: &Connection, file: &Path) -> Result<i64, RecordError> {
    let number = |name: &str| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(RecordError::sqlite(file))
    };
    if number("application_id")? != APPLICATION {
        return Err(RecordError::NotARecording(file.to_path_buf()));
    }
    let found = number("user_version")?;
    if found > VERSION {
        return Err(RecordError::Newer { file: file.to_path_buf(), found, known: VERSION });
    }
    let older = usize::try_from(found - 1)
        .map_err(|_| RecordError::damaged(file, format!("its tables have the version {found}")))?;
    if db.is_readonly("main").unwrap_or(true) {
        return Ok(found);
    }
    for (version, migration) in (found + 1..).zip(&MIGRATIONS[older..]) {
        let script = format!("BEGIN; {migration} PRAGMA user_version = {version}; COMMIT;");
        db.execute_batch(&script).map_err(RecordError::sqlite(file))?;
    }
    Ok(VERSION)
}

/// The check sum beside a text.
pub(super) fn crc(text: &str) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(text.as_bytes());
    crc.sum()
}
