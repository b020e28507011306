//! A recording that is read again.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};
use serde::Deserialize;

use super::RecordError;
use super::batch::{AboutTable, Holds, ModelTable, StepMark, StepNote};
use super::block;
use super::room;
use super::schema::{self, crc};
use crate::incident::{Event, Incident};
use crate::server::ServerView;
use crate::session::{Mode, Session};
use crate::site::{LocalView, Truth};
use crate::stream::{Continuity, Frame};

/// No run has more steps: a damaged or hostile file must not fill the memory.
const MOST_STEPS: u64 = 1 << 28;

/// Pages of a file that stay in memory while it is read: a day of a plant, and some more.
const CACHE_KB: i64 = 16 << 10;

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredEvent {
    /// The last step before it.
    pub(crate) step: u64,
    /// It happened after the end of the stream.
    pub(crate) after_end: bool,
    pub(crate) event: Event,
}

/// A line of `run --json` with its place in the run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredFact {
    pub(crate) step: u64,
    pub(crate) line: String,
}

/// What a client had given away at a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredLedger {
    pub(crate) step: u64,
    pub(crate) client: usize,
    pub(crate) time: String,
    pub(crate) line: String,
}

/// A recording on the disk.
#[derive(Debug)]
pub(crate) struct Recording {
    file: PathBuf,
    db: Connection,
    /// Of its tables.
    version: i64,
}

impl Recording {
    /// Opens a recording, also one whose run was killed or is still going on.
    pub(crate) fn open(file: &Path) -> Result<Self, RecordError> {
        // SQLite would make a file that is not there.
        std::fs::metadata(file).map_err(RecordError::file(file))?;
        if !super::is_recording(file) {
            return Err(RecordError::NotARecording(file.to_path_buf()));
        }
        let (recording, found) = Self::open_with(file, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .or_else(|_| Self::open_with(file, OpenFlags::SQLITE_OPEN_READ_ONLY))?;
        found.map(|()| recording)
    }

    fn open_with(
        file: &Path,
        flags: OpenFlags,
    ) -> Result<(Self, Result<(), RecordError>), RecordError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(file, flags).map_err(RecordError::sqlite(file))?;
        db.busy_timeout(std::time::Duration::from_secs(2)).map_err(RecordError::sqlite(file))?;
        // The check below reads every page: they stay in memory for what is read after it.
        db.pragma_update(None, "cache_size", -CACHE_KB).map_err(RecordError::sqlite(file))?;
        let checked = match schema::check(&db, file) {
            Err(error @ RecordError::Sqlite { .. }) => return Err(error),
            checked => checked,
        };
        let version = *checked.as_ref().unwrap_or(&0);
        let recording = Self { file: file.to_path_buf(), db, version };
        let sound = checked.and_then(|_| recording.check_pages());
        Ok((recording, sound))
    }

    /// Whether the pages of the file fit together.
    fn check_pages(&self) -> Result<(), RecordError> {
        let said: String = self
            .db
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(RecordError::sqlite(&self.file))?;
        if said == "ok" {
            return Ok(());
        }
        // The first line names the database, which is the file.
        let found = said.lines().last().unwrap_or_default();
        Err(self.damaged(format!("a page of it makes no sense ({found})")))
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn damaged(&self, what: impl Into<String>) -> RecordError {
        RecordError::damaged(&self.file, what)
    }

    /// All rows of a query, each made of its columns.
    fn rows<T>(
        &self,
        query: &str,
        mut read: impl FnMut(&Row<'_>) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let failed = RecordError::sqlite(&self.file);
        let mut statement = self.db.prepare(query).map_err(&failed)?;
        let mut rows = statement.query([]).map_err(&failed)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    fn get<T: rusqlite::types::FromSql>(
        &self,
        row: &Row<'_>,
        column: usize,
    ) -> Result<T, RecordError> {
        row.get(column).map_err(RecordError::sqlite(&self.file))
    }

    /// A text with its check sum in the column behind it.
    fn text(&self, row: &Row<'_>, column: usize) -> Result<String, RecordError> {
        let text: String = self.get(row, column)?;
        if self.get::<u32>(row, column + 1)? == crc(&text) {
            return Ok(text);
        }
        Err(self.damaged("the check sum of a row is wrong"))
    }

    fn parse<'a, T: Deserialize<'a>>(&self, what: &str, json: &'a str) -> Result<T, RecordError> {
        serde_json::from_str(json).map_err(|why| self.damaged(format!("{what}: {why}")))
    }

    /// An entry about the run as a whole.
    pub(crate) fn about(
        &self,
        table: AboutTable,
        key: &str,
    ) -> Result<Option<String>, RecordError> {
        let query = format!("SELECT value, crc FROM {} WHERE key = ?1", table.name());
        let failed = RecordError::sqlite(&self.file);
        let mut statement = self.db.prepare_cached(&query).map_err(&failed)?;
        let mut rows = statement.query(params![key]).map_err(&failed)?;
        match rows.next().map_err(&failed)? {
            Some(row) => self.text(row, 0).map(Some),
            None => Ok(None),
        }
    }

    /// Whether its run came to the first step. One that was killed while it began holds nothing that
    /// could be decided again.
    pub(crate) fn has_begun(&self) -> Result<bool, RecordError> {
        Ok(self.of_steps("step_layout")?.is_some())
    }

    /// Whose tables it has.
    pub(crate) fn holds(&self) -> Result<Holds, RecordError> {
        match self.about(AboutTable::Both, "holds")?.as_deref() {
            None => Ok(Holds::Both),
            Some("server") => Ok(Holds::Server),
            Some("site") => Ok(Holds::Site(self.value(AboutTable::Both, "site_client")?)),
            Some(other) => Err(self.damaged(format!("it holds {other:?}, which is not known"))),
        }
    }

    /// Refuses what a site alone does not have.
    pub(crate) fn needs_server(&self) -> Result<(), RecordError> {
        let Holds::Site(client) = self.holds()? else { return Ok(()) };
        let names: Vec<String> = self.value(AboutTable::Both, "clients")?;
        let client = names.get(client).cloned().unwrap_or_default();
        Err(RecordError::OfSite { file: self.file.clone(), client })
    }

    /// Refuses what the server alone does not have.
    pub(crate) fn needs_sites(&self, what: &'static str) -> Result<(), RecordError> {
        match self.holds()? {
            Holds::Server => Err(RecordError::OfServer { file: self.file.clone(), what }),
            Holds::Both | Holds::Site(_) => Ok(()),
        }
    }

    /// An entry about steps: a site's, or the server's where it has no sites.
    fn of_steps(&self, key: &str) -> Result<Option<String>, RecordError> {
        let of_site = self.about(AboutTable::Site, key)?;
        if of_site.is_some() { Ok(of_site) } else { self.about(AboutTable::Server, key) }
    }

    /// The same, which every recording has, as a value of its own type.
    pub(crate) fn value_of_steps<T: for<'a> Deserialize<'a>>(
        &self,
        key: &str,
    ) -> Result<T, RecordError> {
        self.maybe_of_steps(key)?.ok_or_else(|| self.unknown(key))
    }

    /// The same, which an older recording may not have.
    pub(crate) fn maybe_of_steps<T: for<'a> Deserialize<'a>>(
        &self,
        key: &str,
    ) -> Result<Option<T>, RecordError> {
        self.of_steps(key)?.map(|text| self.parse(key, &text)).transpose()
    }

    /// An entry that every recording has.
    pub(crate) fn known(&self, table: AboutTable, key: &str) -> Result<String, RecordError> {
        self.about(table, key)?.ok_or_else(|| self.unknown(key))
    }

    fn unknown(&self, key: &str) -> RecordError {
        self.damaged(format!("nothing is stored of {key:?}; the run ended before it began"))
    }

    /// The same as a value of its own type.
    pub(crate) fn value<T: for<'a> Deserialize<'a>>(
        &self,
        table: AboutTable,
        key: &str,
    ) -> Result<T, RecordError> {
        self.parse(key, &self.known(table, key)?)
    }

    /// The same where only some recordings have it.
    pub(crate) fn maybe<T: for<'a> Deserialize<'a>>(
        &self,
        table: AboutTable,
        key: &str,
    ) -> Result<Option<T>, RecordError> {
        self.about(table, key)?.map(|text| self.parse(key, &text)).transpose()
    }

    /// Whether the run came to its end and the file was closed.
    pub(crate) fn ended(&self) -> Result<Option<Timestamp>, RecordError> {
        let ended = self.about(AboutTable::Both, "ended")?;
        Ok(ended.and_then(|time| time.parse().ok()))
    }

    /// The session as it was run. Its file is not needed: it may have been moved or changed since.
    pub(crate) fn session(&self) -> Result<Session, RecordError> {
        let text = self.known(AboutTable::Both, "session")?;
        let mut session: Session =
            ron::from_str(&text).map_err(|why| self.damaged(format!("the session: {why}")))?;
        session.name = self.known(AboutTable::Both, "session_name")?;
        session.folder = PathBuf::from(self.known(AboutTable::Both, "session_folder")?);
        session.seed_asked_for = self.value(AboutTable::Both, "seed_asked_for")?;
        Ok(session)
    }

    /// The method that decided at the start.
    pub(crate) fn mode(&self) -> Result<Mode, RecordError> {
        self.value(AboutTable::Both, "mode")
    }

    /// A model of the sites, or what the server knew beside messages; nothing where it is not stored.
    pub(crate) fn model(
        &self,
        table: ModelTable,
        kind: &str,
    ) -> Result<Option<Vec<u8>>, RecordError> {
        if table == ModelTable::Site && self.version < 2 {
            return Ok(None);
        }
        let failed = RecordError::sqlite(&self.file);
        let query = format!("SELECT data, sha256 FROM {} WHERE kind = ?1", table.name());
        let read = |row: &Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?));
        let found = self.db.query_row(&query, params![kind], read).optional().map_err(&failed)?;
        let Some((data, sha256)) = found else { return Ok(None) };
        if crate::base::digest::sha256(&data) != sha256 {
            return Err(self.damaged(format!("the digest of {kind} is wrong")));
        }
        Ok(Some(data))
    }

    /// The first step that is still there: 1 unless the file had become too large.
    pub(crate) fn kept_from(&self) -> Result<u64, RecordError> {
        let query = "SELECT min(first) FROM steps";
        let first = self.db.query_row(query, [], |row| row.get::<_, Option<u64>>(0));
        Ok(first.map_err(RecordError::sqlite(&self.file))?.unwrap_or(1))
    }

    /// What had to go when the file had become too large, a sentence each.
    pub(crate) fn missing(&self) -> Result<Vec<String>, RecordError> {
        let number = |key| -> Result<Option<i64>, RecordError> {
            Ok(self.about(AboutTable::Both, key)?.and_then(|value| value.parse().ok()))
        };
        let mut said = Vec::new();
        if let Some(from_ns) = number(room::MEASUREMENTS_FROM)? {
            said.push(format!("measurements before {}", instant(from_ns)));
        }
        let mut of_steps = vec![(number(room::SITES_FROM)?, "distances, norms and true flags")];
        of_steps.push((number(room::STEPS_FROM)?, "steps and messages"));
        for (first, what) in of_steps {
            let Some(first) = first else { continue };
            let query = "SELECT from_ns FROM steps WHERE first >= ?1 ORDER BY first";
            let from_ns = self.db.query_row(query, params![first], |row| row.get(0)).optional();
            if let Some(from_ns) = from_ns.map_err(RecordError::sqlite(&self.file))? {
                said.push(format!("{what} before {}", instant(from_ns)));
            }
        }
        Ok(said)
    }

    pub(crate) fn facts(&self) -> Result<Vec<StoredFact>, RecordError> {
        self.rows("SELECT step, line, crc FROM server_facts ORDER BY number", |row| {
            Ok(StoredFact { step: self.get(row, 0)?, line: self.text(row, 1)? })
        })
    }

    pub(crate) fn events(&self) -> Result<Vec<StoredEvent>, RecordError> {
        let query = "SELECT step, after_end, json, crc FROM server_events ORDER BY number";
        self.rows(query, |row| {
            let json = self.text(row, 2)?;
            let event = self.parse("an event", &json)?;
            Ok(StoredEvent { step: self.get(row, 0)?, after_end: self.get(row, 1)?, event })
        })
    }

    pub(crate) fn incidents(&self) -> Result<Vec<Incident>, RecordError> {
        self.rows("SELECT json, crc FROM server_incidents ORDER BY number", |row| {
            let json = self.text(row, 0)?;
            self.parse("an incident", &json)
        })
    }

    pub(crate) fn ledger(&self) -> Result<Vec<StoredLedger>, RecordError> {
        let query = "SELECT step, client, time, json, crc FROM site_ledger ORDER BY step, client";
        self.rows(query, |row| {
            let client: u64 = self.get(row, 1)?;
            Ok(StoredLedger {
                step: self.get(row, 0)?,
                client: client as usize,
                time: self.get(row, 2)?,
                line: self.text(row, 3)?,
            })
        })
    }

    /// Every step that is still there, in order.
    pub(crate) fn steps(&self) -> Result<Vec<StepMark>, RecordError> {
        Ok(self.numbered_steps()?.into_iter().map(|(_, mark)| mark).collect())
    }

    /// The same with their numbers. Only a site of its own leaves numbers out: those of steps that it
    /// did not take.
    pub(crate) fn numbered_steps(&self) -> Result<Vec<(u64, StepMark)>, RecordError> {
        let (mut next, has_server) = (self.kept_from()?, self.holds()?.has_server());
        let mut all = Vec::new();
        self.rows("SELECT first, steps, data FROM steps ORDER BY first", |row| {
            let (first, steps): (u64, u64) = (self.get(row, 0)?, self.get(row, 1)?);
            let data: Vec<u8> = self.get(row, 2)?;
            if first < next || (first > next && has_server) {
                return Err(self.damaged(format!("steps before {first} are missing")));
            }
            next = first.saturating_add(steps);
            let block = block::unpack_steps(&data, steps as usize);
            let block = block.map_err(|bad| self.damaged(bad.to_string()))?;
            all.extend((first..).zip(block));
            Ok(())
        })?;
        Ok(all)
    }

    /// What few steps have, by the number of the step.
    pub(crate) fn notes(&self) -> Result<Vec<(u64, StepNote)>, RecordError> {
        self.rows("SELECT step, json, crc FROM step_notes ORDER BY step", |row| {
            let json = self.text(row, 1)?;
            Ok((self.get(row, 0)?, self.parse("a note", &json)?))
        })
    }

    /// Blocks of a client, one row a step that is still there; where only its block is gone, nothing
    /// is known of a step.
    fn blocks<T: Clone + Default>(
        &self,
        table: &str,
        client: usize,
        unpack: impl Fn(&[u8], usize) -> Result<Vec<T>, block::BadBlock>,
    ) -> Result<Vec<T>, RecordError> {
        let query = format!(
            "SELECT steps.steps, {table}.data, first FROM {table} JOIN steps USING (first) \
             WHERE client = {client} ORDER BY first"
        );
        let mut all = Vec::new();
        self.rows(&query, |row| {
            let (steps, data): (u64, Vec<u8>) = (self.get(row, 0)?, self.get(row, 1)?);
            if all.is_empty() {
                all.resize(self.steps_before(self.get(row, 2)?)?, T::default());
            }
            let block = unpack(&data, steps as usize);
            all.append(&mut block.map_err(|bad| self.damaged(bad.to_string()))?);
            Ok(())
        })?;
        Ok(all)
    }

    /// How many steps before this one are still there.
    fn steps_before(&self, first: u64) -> Result<usize, RecordError> {
        let query = "SELECT coalesce(sum(steps), 0) FROM steps WHERE first < ?1";
        let steps = self.db.query_row(query, params![first], |row| row.get::<_, u64>(0));
        let steps = steps.map_err(RecordError::sqlite(&self.file))?;
        if steps > MOST_STEPS {
            return Err(self.damaged("more steps than any run has"));
        }
        Ok(steps as usize)
    }

    /// What a site showed on its own machine, step by step.
    pub(crate) fn residuals(&self, client: usize) -> Result<Vec<LocalView>, RecordError> {
        self.blocks("site_steps", client, block::unpack_site)
    }

    /// What steps of a site were before anything of them was released; nothing in older recordings.
    pub(crate) fn truths(&self, client: usize) -> Result<Vec<Truth>, RecordError> {
        if self.version < 2 {
            return Ok(Vec::new());
        }
        self.blocks("site_truth", client, block::unpack_truth)
    }

    /// How the server saw a client, and how the other method would have.
    pub(crate) fn decisions(&self, client: usize) -> Result<Vec<[ServerView; 2]>, RecordError> {
        self.blocks("server_steps", client, block::unpack_server)
    }

    /// The log of everything that crossed between sites and server; of a site alone, what it sent and
    /// heard.
    pub(crate) fn messages(&self) -> Result<Vec<u8>, RecordError> {
        let has_server = self.holds()?.has_server();
        let table = if has_server { "server_messages" } else { "site_messages" };
        let blocks = self.rows(&format!("SELECT data FROM {table} ORDER BY first"), |row| {
            let data: Vec<u8> = self.get(row, 0)?;
            block::unpack("messages", &data).map_err(|bad| self.damaged(bad.to_string()))
        })?;
        Ok(blocks.concat())
    }

    /// Measurements, where the session asked for them.
    pub(crate) fn frames(&self, width: usize) -> Result<Vec<Frame>, RecordError> {
        let mut frames: Vec<Frame> = Vec::new();
        self.rows("SELECT frames, data FROM site_measurements ORDER BY first", |row| {
            let (rows, data): (u64, Vec<u8>) = (self.get(row, 0)?, self.get(row, 1)?);
            let (marks, values) = block::unpack_frames(&data, rows as usize)
                .map_err(|bad| self.damaged(bad.to_string()))?;
            for (mark, values) in marks.into_iter().zip(values) {
                if values.len() != width {
                    return Err(self.damaged("measurements of other sensors"));
                }
                let mut frame = Frame::with_values(values);
                (frame.time, frame.continuity, frame.label) =
                    (mark.time, mark.continuity, mark.label);
                frames.push(frame);
            }
            Ok(())
        })?;
        if let Some(first) = frames.first_mut() {
            first.continuity = Continuity::NewRun;
        }
        Ok(frames)
    }
}

/// An instant of a column that ends in `_ns`.
pub(super) fn instant(ns: i64) -> Timestamp {
    // Every 64-bit number of nanoseconds is within the years that an instant may have.
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default()
}
