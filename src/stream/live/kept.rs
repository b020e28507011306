//! Nominal rows of a live source, kept on disk: models are made from them, now and at the next start.
//!
//! A file begins with a line that describes its rows. Each row has its time, how it follows the row
//! before it, and its values, as plain numbers of 64 bits: nothing is rounded. The file grows while
//! the source is learned from, and is never changed after that. How large it gets is set by the
//! ranges of the session: 8 bytes a value.
//!
//! One process gathers at a time: it holds [`lock`] for as long as it runs with what it gathered.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::versions;
use crate::base::atomic_file::AtomicFile;
use crate::base::{digest, folders};
use crate::session::Session;
use crate::stream::time_seen::TimeSeen;
use crate::stream::{Continuity, Event, Frame, Label, Layout, Note, NoteKind, Stream, StreamError};

/// The rows that are complete, and what is known about them.
pub(super) const ROWS: &str = "history.rows";
pub(super) const ABOUT: &str = "history.json";
/// Rows that are still being gathered.
pub(super) const PART: &str = "history.part";
/// What was left out of them so far.
const NOTES: &str = "history.notes";
/// Held by the process that gathers them; its number stands in it.
const LOCK: &str = "history.lock";
/// Notes that are kept one by one; more of a kind are added up.
const MOST_NOTES: usize = 32;

/// What is known about complete rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) rows: u64,
    /// SHA-256 of the file.
    pub(crate) digest: String,
    /// Counted from 1: a history that replaces another is a new version.
    #[serde(default = "first")]
    pub(crate) version: u64,
    /// What was left out, and where the clock of the source moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
}

fn first() -> u64 {
    1
}

/// The first line of a file of rows.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    layout: Layout,
}

/// The folder of a live session: for its history and for the queues of its outputs.
pub(crate) fn folder(session: &Session) -> Result<PathBuf, StreamError> {
    let folder = folders::live(|name| std::env::var(name).ok()).ok_or_else(|| {
        let what = "there is no folder to keep a live source's history in: set HEADWATER_LIVE";
        StreamError::Setting(what.into())
    })?;
    // Two sessions of one name in two places are two sessions; so is one whose columns have changed.
    let place = fs::canonicalize(&session.folder).unwrap_or_else(|_| session.folder.clone());
    let clients: Vec<_> =
        session.clients.iter().map(|c| (&c.name, &c.columns, &c.except, &c.inputs)).collect();
    let ranges = (&session.ranges.fit, &session.ranges.calibration);
    let grid = session.live().map(|live| live.grid_s);
    let parts = serde_json::to_string(&(place.to_string_lossy(), clients, ranges, grid));
    let parts = parts.map_err(|why| StreamError::Setting(why.to_string()))?;
    let of = digest::sha256(parts.as_bytes());
    Ok(folder.join(format!("{}-{}", session.name, &of[..12])))
}

/// Takes the right to gather rows of a session, until the file is dropped or the process ends, however it
/// ends. Nothing where the file system has no locks.
pub(crate) fn lock(session: &Session) -> Result<Option<File>, StreamError> {
    let folder = folder(session)?;
    fs::create_dir_all(&folder).map_err(StreamError::io(&folder))?;
    let path = folder.join(LOCK);
    let open = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = open.map_err(StreamError::io(&path))?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => {
            let mut number = String::new();
            let _ = file.take(20).read_to_string(&mut number);
            let who = match number.trim() {
                "" => "another process".to_owned(),
                number => format!("process {number}"),
            };
            Err(StreamError::Setting(format!(
                "{} is in use: {who} learns from its source, or runs with what it learned; wait for \
                 its end, or set HEADWATER_LIVE to another folder for a second run",
                session.name
            )))
        }
        Err(fs::TryLockError::Error(_)) => Ok(None),
        Ok(()) => {
            // Only for the message above: a number that cannot be written costs nothing.
            let _ = file.set_len(0);
            let _ = write!(file, "{}", std::process::id());
            Ok(Some(file))
        }
    }
}

/// What is kept of a session's nominal rows, once they are complete.
pub(crate) fn complete(session: &Session) -> Option<Kept> {
    about(&folder(session).ok()?.join(ABOUT))
}

pub(super) fn about(file: &Path) -> Option<Kept> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

/// The layout of a session's kept rows, complete or not.
pub(crate) fn layout(session: &Session) -> Option<Layout> {
    let folder = folder(session).ok()?;
    let open = |name| KeptReader::open(&folder.join(name)).ok();
    open(ROWS).or_else(|| open(PART)).map(|reader| reader.layout)
}

fn write_error(file: &Path) -> impl FnOnce(std::io::Error) -> StreamError {
    StreamError::io(file)
}

/// Rows that were gathered so far are not thrown away unasked.
fn cannot_go_on(part: &Path) -> impl FnOnce(StreamError) -> StreamError {
    let file = part.to_owned();
    |why| StreamError::Header {
        file,
        what: format!(
            "the rows that were gathered so far cannot be used ({why}); remove this file to learn anew"
        ),
    }
}

fn digest_of(file: &Path) -> std::io::Result<String> {
    let mut hashed = digest::Hashed::default();
    let mut bytes = vec![0; 1 << 16];
    let mut file = File::open(file)?;
    loop {
        let read = file.read(&mut bytes)?;
        if read == 0 {
            return Ok(hashed.hex());
        }
        hashed.take(&bytes[..read]);
    }
}

/// Rows being gathered.
#[derive(Debug)]
pub(crate) struct Gathering {
    folder: PathBuf,
    part: PathBuf,
    file: BufWriter<File>,
    rows: u64,
    first: Option<Timestamp>,
    seen: TimeSeen,
    row: Vec<u8>,
    /// What was left out so far, and whether that is on disk.
    notes: Vec<Note>,
    are_noted: bool,
}

impl Gathering {
    /// Begins anew, or goes on where an earlier start was stopped.
    pub(crate) fn begin(
        session: &Session,
        layout: &Layout,
        goes_on: bool,
    ) -> Result<Self, StreamError> {
        let folder = folder(session)?;
        let mut seen = TimeSeen::new(layout.period_s);
        let part = folder.join(PART);
        let known = folder.join(ABOUT);
        if goes_on && known.exists() && about(&known).is_none() {
            let what = "what was known of the history that was learned is damaged; remove this file \
                        to learn anew";
            return Err(StreamError::Header { file: known, what: what.into() });
        }
        fs::create_dir_all(&folder).map_err(write_error(&folder))?;
        // A process that was killed before the first bytes reached the disk has lost nothing.
        let has_begun = fs::metadata(&part).is_ok_and(|part| part.len() > 0);
        if goes_on && has_begun {
            let mut reader = KeptReader::open(&part).map_err(cannot_go_on(&part))?;
            if reader.layout != *layout {
                let why = StreamError::Setting("they are of other columns".into());
                return Err(cannot_go_on(&part)(why));
            }
            let mut frame = Frame::for_layout(layout);
            let (mut rows, mut first) = (0, None);
            while reader.next(&mut frame)? {
                first.get_or_insert(frame.time);
                seen.take(frame.time);
                rows += 1;
            }
            // A row that was not written to its end is left out.
            let end = reader.head + rows * reader.row_bytes();
            let open = || -> std::io::Result<File> {
                let mut file = OpenOptions::new().write(true).open(&part)?;
                file.set_len(end)?;
                file.seek(SeekFrom::End(0))?;
                Ok(file)
            };
            let file = BufWriter::new(open().map_err(write_error(&part))?);
            let notes = fs::read(folder.join(NOTES)).ok();
            let notes = notes.and_then(|text| serde_json::from_slice(&text).ok());
            let notes = notes.unwrap_or_default();
            let row = Vec::new();
            return Ok(Self { folder, part, file, rows, first, seen, row, notes, are_noted: true });
        }
        let head = Head { version: 1, layout: layout.clone() };
        let mut head =
            serde_json::to_vec(&head).map_err(|why| StreamError::Setting(why.to_string()))?;
        head.push(b'\n');
        let create = || -> std::io::Result<BufWriter<File>> {
            let mut file = BufWriter::new(File::create(&part)?);
            file.write_all(&head)?;
            Ok(file)
        };
        let file = create().map_err(write_error(&part))?;
        let (first, row, notes) = (None, Vec::new(), Vec::new());
        Ok(Self { folder, part, file, rows: 0, first, seen, row, notes, are_noted: false })
    }

    /// Rows so far, those of an earlier start included.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Time of the first row.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.first
    }

    /// The time that rows cover so far.
    pub(crate) fn seen(&self) -> TimeSeen {
        self.seen
    }

    pub(crate) fn add(&mut self, frame: &Frame) -> Result<(), StreamError> {
        let Ok(time) = i64::try_from(frame.time.as_nanosecond()) else { return Ok(()) };
        let follows = match frame.continuity {
            Continuity::NewRun => f64::NAN,
            Continuity::Next => 0.0,
            Continuity::Gap { seconds } => seconds,
        };
        self.row.clear();
        self.row.extend_from_slice(&time.to_le_bytes());
        for value in [follows].iter().chain(&frame.values).chain(&frame.inputs) {
            self.row.extend_from_slice(&value.to_le_bytes());
        }
        self.file.write_all(&self.row).map_err(write_error(&self.part))?;
        self.first.get_or_insert(frame.time);
        self.seen.take(frame.time);
        self.rows += 1;
        Ok(())
    }

    /// Something was left out, or the clock of the source moved.
    pub(crate) fn note(&mut self, note: Note) {
        self.are_noted = false;
        let is_full = self.notes.len() >= MOST_NOTES;
        let is_same = |known: &Note| match (known.what, note.what) {
            (NoteKind::ClockMoved { .. }, NoteKind::ClockMoved { .. }) => is_full,
            (known, other) => known == other,
        };
        match self.notes.iter_mut().rfind(|known| is_same(known)) {
            Some(known) => known.rows += note.rows,
            None => self.notes.push(note),
        }
    }

    /// Makes what was gathered survive a crash.
    pub(crate) fn sync(&mut self) -> Result<(), StreamError> {
        if !self.are_noted {
            write_json(&self.folder, NOTES, &self.notes)?;
            self.are_noted = true;
        }
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(write_error(&self.part))
    }

    /// There are enough rows: they are complete.
    pub(crate) fn finish(mut self) -> Result<Kept, StreamError> {
        self.sync()?;
        let digest = digest_of(&self.part).map_err(write_error(&self.part))?;
        let version = versions::next_number(&self.folder);
        let notes = std::mem::take(&mut self.notes);
        let kept = Kept { rows: self.rows, digest, version, notes };
        // Rows of an earlier start are not complete any more before they are replaced.
        let about = self.folder.join(ABOUT);
        if about.exists() {
            fs::remove_file(&about).map_err(write_error(&about))?;
        }
        let rows = self.folder.join(ROWS);
        fs::rename(&self.part, &rows).map_err(write_error(&rows))?;
        write_json(&self.folder, ABOUT, &kept)?;
        // They stand in what is known by now.
        let _ = fs::remove_file(self.folder.join(NOTES));
        Ok(kept)
    }
}

fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), StreamError> {
    let text = serde_json::to_vec(value).map_err(|why| StreamError::Setting(why.to_string()))?;
    let write = || -> Result<(), crate::base::atomic_file::WriteError> {
        let mut file = AtomicFile::create(folder, name)?;
        file.fill(|file| file.write_all(&text))?;
        file.finish()?;
        file.publish().map(|_| ())
    };
    write().map_err(|why| StreamError::Setting(why.to_string()))
}

/// Reads rows that are kept.
#[derive(Debug)]
pub(crate) struct KeptReader {
    path: PathBuf,
    layout: Layout,
    file: BufReader<File>,
    /// Bytes of the first line.
    head: u64,
    row: Vec<u8>,
    /// What was left out when they were gathered; it goes with the first row.
    notes: Vec<Note>,
}

impl KeptReader {
    /// The complete rows of a session.
    pub(crate) fn of(session: &Session, part: &'static str) -> Result<Self, StreamError> {
        let nothing = || StreamError::Empty {
            part,
            why: "nothing has been learned yet; `headwater run` with its source learns".into(),
        };
        let kept = complete(session).ok_or_else(nothing)?;
        let file = folder(session)?.join(ROWS);
        // Models must not be made of rows that were not measured.
        if digest_of(&file).map_err(StreamError::io(&file))? != kept.digest {
            let what = "the history is damaged: its checksum is not the one that was kept with it; \
                        `headwater calibration` goes back to an earlier one or learns anew";
            return Err(StreamError::Header { file, what: what.into() });
        }
        Ok(Self { notes: kept.notes, ..Self::open(&file)? })
    }

    pub(crate) fn open(path: &Path) -> Result<Self, StreamError> {
        let mut file = BufReader::new(File::open(path).map_err(StreamError::io(path))?);
        let mut head = Vec::new();
        file.read_until(b'\n', &mut head).map_err(StreamError::io(path))?;
        let known: Head = serde_json::from_slice(&head).map_err(|why| StreamError::Header {
            file: path.to_owned(),
            what: format!("no history of a live source: {why}"),
        })?;
        Ok(Self {
            path: path.to_owned(),
            layout: known.layout,
            file,
            head: head.len() as u64,
            row: Vec::new(),
            notes: Vec::new(),
        })
    }

    fn row_bytes(&self) -> u64 {
        8 * (2 + self.layout.width() + self.layout.input_width()) as u64
    }
}

impl Stream for KeptReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        frame.notes.clear();
        self.row.resize(self.row_bytes() as usize, 0);
        match self.file.read_exact(&mut self.row) {
            Ok(()) => {}
            Err(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(why) => return Err(StreamError::io(&self.path)(why)),
        }
        let mut numbers = self.row.chunks_exact(8).map(|bytes| {
            let mut number = [0; 8];
            number.copy_from_slice(bytes);
            number
        });
        let time = i64::from_le_bytes(numbers.next().unwrap_or_default());
        frame.time = Timestamp::from_nanosecond(time.into()).unwrap_or_default();
        let mut values = numbers.map(f64::from_le_bytes);
        frame.continuity = match values.next() {
            Some(follows) if follows.is_nan() => Continuity::NewRun,
            Some(seconds) if seconds > 0.0 => Continuity::Gap { seconds },
            _ => Continuity::Next,
        };
        frame.values.clear();
        frame.values.extend(values.by_ref().take(self.layout.width()));
        frame.inputs.clear();
        frame.inputs.extend(values);
        frame.label = Label::Unlabelled;
        frame.notes.append(&mut self.notes);
        Ok(true)
    }

    fn events(&self) -> &[Event] {
        &[]
    }
}
