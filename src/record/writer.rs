//! The thread that owns the file: batches become rows, one transaction a second.
//!
//! The steps of the last block are written again with every transaction until the block is full, so
//! that a slow run does not leave a row for every step.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, params};

use super::RecordError;
use super::batch::{Batch, Holds, Row, Seen, StepMark};
use super::block::{self, Packer, nanoseconds};
use super::recorder::Limits;
use super::room;
use super::schema::{self, crc};
use crate::base::digest;
use crate::incident::Incident;
use crate::site::local;
use crate::site::meter::Meters;
use crate::stream::Frame;

/// What was handed over is in the file after so long.
const EVERY: Duration = Duration::from_millis(700);
/// At full speed a transaction has so many steps.
const STEPS: usize = 4 * 1024;
/// Steps of a full block.
const BLOCK: usize = 1024;
/// Frames of a full block of measurements.
const FRAMES: usize = 1024;

/// What the writer has to say.
#[derive(Debug)]
pub(super) enum Report {
    Notice(String),
    /// The file is written no more.
    Failed(RecordError),
}

/// A block that is not full yet.
#[derive(Debug, Default)]
struct Block {
    /// The number of its first step.
    first: u64,
    steps: Vec<StepMark>,
    seen: Vec<Seen>,
    messages: Vec<u8>,
    changed: bool,
}

impl Block {
    /// The number of the step that follows.
    fn next(&self) -> u64 {
        self.first + self.steps.len() as u64
    }
}

pub(super) struct Writer {
    path: PathBuf,
    db: Connection,
    /// Held as long as the file is written: no other run may write it. SQLite's own locks end with
    /// every transaction. It is closed after the connection.
    _lock: File,
    limits: Limits,
    holds: Holds,
    block: Block,
    packer: Packer,
    frames: Vec<Frame>,
    first_frame: u64,
    facts: u64,
    /// Incidents that have changed since the last transaction, each as it stands now.
    incidents: BTreeMap<u64, Box<Incident>>,
    /// Steps since the last transaction.
    pending: usize,
    dirty: bool,
    committed: Instant,
    /// Measure rows of sites that do not do it themselves.
    meters: Option<Meters>,
}

impl Writer {
    pub(super) fn create(path: &Path, limits: Limits, holds: Holds) -> Result<Self, RecordError> {
        let lock = match File::options().read(true).write(true).create_new(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(who_has(path));
            }
            Err(error) => return Err(RecordError::file(path)(error)),
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            lock.set_permissions(std::fs::Permissions::from_mode(0o600))
                .map_err(RecordError::file(path))?;
        }
        // Without locks (some network drives) the file is written all the same.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(RecordError::Locked(path.to_path_buf()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(RecordError::sqlite(path))?;
        db.busy_timeout(Duration::from_secs(2)).map_err(RecordError::sqlite(path))?;
        schema::create(&db).map_err(RecordError::sqlite(path))?;
        Ok(Self {
            path: path.to_path_buf(),
            db,
            _lock: lock,
            limits,
            holds,
            block: Block { first: 1, ..Block::default() },
            packer: Packer::default(),
            frames: Vec::new(),
            first_frame: 0,
            facts: 0,
            incidents: BTreeMap::new(),
            pending: 0,
            dirty: false,
            committed: Instant::now(),
            meters: None,
        })
    }

    fn take(&mut self, mut batch: Batch) -> rusqlite::Result<()> {
        self.begin()?;
        if batch.meters.is_some() {
            self.meters = batch.meters.take();
        }
        if let Some(meters) = &mut self.meters {
            let seen = batch.seen.iter_mut().map(|seen| (&mut seen.local, &mut seen.truth));
            meters.measure(&batch.unmeasured, seen);
        }
        for row in batch.rows {
            self.row(row)?;
        }
        if !batch.steps.is_empty() && batch.first != self.block.next() {
            self.store_block()?;
            self.block = Block { first: batch.first, ..Block::default() };
        }
        let clients = batch.seen.len().checked_div(batch.steps.len()).unwrap_or(0);
        self.pending += batch.steps.len();
        self.block.messages.extend_from_slice(&batch.messages);
        self.block.changed |= !batch.messages.is_empty() || !batch.steps.is_empty();
        for (at, mark) in batch.steps.iter().enumerate() {
            self.block.steps.push(*mark);
            self.block.seen.extend_from_slice(&batch.seen[at * clients..(at + 1) * clients]);
            // The messages of the batch belong to its last step, or to one before it.
            if self.block.steps.len() >= BLOCK && at + 1 == batch.steps.len() {
                self.store_block()?;
                self.block = Block { first: self.block.next(), ..Block::default() };
            }
        }
        self.frames.extend(batch.frames);
        if self.frames.len() >= FRAMES {
            self.store_frames()?;
            self.first_frame += self.frames.len() as u64;
            self.frames.clear();
        }
        Ok(())
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if !self.dirty {
            self.db.execute_batch("BEGIN IMMEDIATE")?;
            self.dirty = true;
        }
        Ok(())
    }

    fn row(&mut self, row: Row) -> rusqlite::Result<()> {
        match row {
            Row::About { table, key, value } => {
                let insert = format!("INSERT OR REPLACE INTO {} VALUES (?1, ?2, ?3)", table.name());
                self.db.prepare_cached(&insert)?.execute(params![key, value, crc(&value)])?;
            }
            Row::Model { table, kind, data } => {
                let insert = format!("INSERT OR REPLACE INTO {} VALUES (?1, ?2, ?3)", table.name());
                let sha256 = digest::sha256(&data);
                self.db.prepare_cached(&insert)?.execute(params![kind, sha256, data])?;
            }
            Row::Note { step, note } => {
                let json = json(&note);
                let insert = "INSERT OR REPLACE INTO step_notes VALUES (?1, ?2, ?3)";
                self.db.prepare_cached(insert)?.execute(params![step, json, crc(&json)])?;
            }
            Row::Fact { step, line } => {
                self.facts += 1;
                let insert = "INSERT INTO server_facts VALUES (?1, ?2, ?3, ?4)";
                let row = params![self.facts, step, line, crc(&line)];
                self.db.prepare_cached(insert)?.execute(row)?;
            }
            Row::Event { step, after_end, event } => {
                let (json, time) = (json(&event), event.time.to_string());
                let insert =
                    "INSERT OR REPLACE INTO server_events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let (number, who, incident) =
                    (event.number, event.who.as_deref(), event.incident());
                let row = params![number, step, after_end, time, who, incident, json, crc(&json)];
                self.db.prepare_cached(insert)?.execute(row)?;
            }
            Row::Incident(incident) => {
                self.incidents.insert(incident.number, incident);
            }
            Row::Ledger { step, client, time, ledger, fact } => {
                let Some(fact) = fact(&ledger, time) else { return Ok(()) };
                let json = fact.to_line();
                let insert = "INSERT OR REPLACE INTO site_ledger VALUES (?1, ?2, ?3, ?4, ?5)";
                let row = params![step, client as u64, time.to_string(), json, crc(&json)];
                self.db.prepare_cached(insert)?.execute(row)?;
            }
        }
        Ok(())
    }

    /// Writes the block as it is so far.
    fn store_block(&mut self) -> rusqlite::Result<()> {
        let Block { first, steps, seen, messages, changed } = &mut self.block;
        let packer = &mut self.packer;
        if !std::mem::take(changed) {
            return Ok(());
        }
        let holds = self.holds;
        if !messages.is_empty() {
            let table = if holds.has_server() { "server_messages" } else { "site_messages" };
            let insert = format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2)");
            self.db.prepare_cached(&insert)?.execute(params![*first, packer.pack(messages)])?;
        }
        let (Some(begin), Some(end)) = (steps.first(), steps.last()) else { return Ok(()) };
        let (begin, end) = (nanoseconds(begin.time), nanoseconds(end.time));
        let insert = "INSERT OR REPLACE INTO steps VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![*first, steps.len() as u64, begin, end, block::pack_steps(packer, steps)];
        self.db.prepare_cached(insert)?.execute(row)?;
        let clients = seen.len() / steps.len();
        // A site has one column, that of its client.
        let place = if let Holds::Site(client) = holds { client as u64 } else { 0 };
        for client in 0..clients {
            let seen = seen.iter().skip(client).step_by(clients);
            let client = place + client as u64;
            if holds.has_sites() {
                let insert = "INSERT OR REPLACE INTO site_steps VALUES (?1, ?2, ?3)";
                let row = params![*first, client, block::pack_site(packer, &seen)];
                self.db.prepare_cached(insert)?.execute(row)?;
                let insert = "INSERT OR REPLACE INTO site_truth VALUES (?1, ?2, ?3)";
                let row = params![*first, client, block::pack_truth(packer, &seen)];
                self.db.prepare_cached(insert)?.execute(row)?;
            }
            if holds.has_server() {
                let insert = "INSERT OR REPLACE INTO server_steps VALUES (?1, ?2, ?3)";
                let row = params![*first, client, block::pack_server(packer, &seen)];
                self.db.prepare_cached(insert)?.execute(row)?;
            }
        }
        Ok(())
    }

    /// Writes every incident that has changed, once.
    fn store_incidents(&mut self) -> rusqlite::Result<()> {
        for (number, incident) in std::mem::take(&mut self.incidents) {
            let json = json(&incident);
            let insert = "INSERT OR REPLACE INTO server_incidents VALUES (?1, ?2, ?3)";
            self.db.prepare_cached(insert)?.execute(params![number, json, crc(&json)])?;
        }
        Ok(())
    }

    fn store_frames(&mut self) -> rusqlite::Result<()> {
        let mark = |frame: &Frame| StepMark {
            time: frame.time,
            continuity: frame.continuity,
            label: frame.label,
        };
        let marks: Vec<StepMark> = self.frames.iter().map(mark).collect();
        let (Some(begin), Some(end)) = (marks.first(), marks.last()) else { return Ok(()) };
        let (begin, end) = (nanoseconds(begin.time), nanoseconds(end.time));
        let values: Vec<&[f64]> = self.frames.iter().map(local::measurements_of).collect();
        let insert = "INSERT OR REPLACE INTO site_measurements VALUES (?1, ?2, ?3, ?4, ?5)";
        let data = block::pack_frames(&mut self.packer, &marks, &values);
        let row = params![self.first_frame, marks.len() as u64, begin, end, data];
        self.db.prepare_cached(insert)?.execute(row)?;
        Ok(())
    }

    fn commit(&mut self) -> rusqlite::Result<Vec<String>> {
        self.committed = Instant::now();
        self.pending = 0;
        if !self.dirty {
            return Ok(Vec::new());
        }
        self.store_block()?;
        self.store_frames()?;
        self.store_incidents()?;
        let notices = room::make(&self.db, &self.path, self.limits.file_bytes)?;
        self.db.execute_batch("COMMIT")?;
        self.dirty = false;
        Ok(notices)
    }

    /// Leaves one file that stands alone.
    fn close(&mut self) -> rusqlite::Result<Vec<String>> {
        let notices = self.commit()?;
        // Room of what was removed goes back to the disk.
        let mut vacuum = self.db.prepare("PRAGMA incremental_vacuum")?;
        // A page a row.
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        drop(pages);
        drop(vacuum);
        self.db.pragma_update(None, "journal_mode", "DELETE")?;
        Ok(notices)
    }
}

/// Why a file that is there already cannot be written.
fn who_has(path: &Path) -> RecordError {
    let taken = File::open(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)));
    if taken {
        RecordError::Locked(path.to_path_buf())
    } else {
        RecordError::Exists(path.to_path_buf())
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("events and incidents have string keys and finite numbers")
}

/// Writes batches until there are no more, or until the file fails.
pub(super) fn write(
    mut writer: Writer,
    batches: &mpsc::Receiver<Batch>,
    reports: &mpsc::Sender<Report>,
) {
    let done = write_all(&mut writer, batches, reports);
    // Whoever has left does not wait for a report.
    if let Err(error) = done {
        let _ = reports.send(Report::Failed(RecordError::sqlite(&writer.path)(error)));
    }
}

fn write_all(
    writer: &mut Writer,
    batches: &mpsc::Receiver<Batch>,
    reports: &mpsc::Sender<Report>,
) -> rusqlite::Result<()> {
    loop {
        let rest = EVERY.saturating_sub(writer.committed.elapsed());
        let batch = match batches.recv_timeout(rest) {
            Ok(batch) => Some(batch),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                for notice in writer.close()? {
                    let _ = reports.send(Report::Notice(notice));
                }
                return Ok(());
            }
        };
        if let Some(batch) = batch {
            writer.take(batch)?;
        }
        if writer.committed.elapsed() >= EVERY || writer.pending >= STEPS {
            for notice in writer.commit()? {
                let _ = reports.send(Report::Notice(notice));
            }
        }
    }
}
