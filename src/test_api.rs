//! What integration tests, documentation tests and fuzz targets reach of the crate.
//!
//! Every other module is private. This is no interface for other programs: it changes with the crate.

mod stored;

use std::ops::ControlFlow;
use std::path::Path;

use jiff::Timestamp;

pub use crate::base::digest::sha256;
pub use crate::privacy::{Provenance, Released, Symbol};
pub use crate::server::Server;
pub use crate::session::Session;
pub use crate::stream::Row;
pub use crate::wire::{Memory, Message, Outgoing, ToSite, Wire, WireError};
pub use stored::{
    empty_queue, fill_journal, fill_outbox, read_history, read_journal, read_outbox, resume, score,
};
#[cfg(unix)]
pub use stored::{read_keys, read_packets};

use crate::engine::handle::Options;
use crate::engine::pace::Speed;
use crate::engine::recorded::Recorded;
use crate::engine::{prepare, spawn_recorded};
use crate::record::Recording;
use crate::remote::envelope;
use crate::stream::{Continuity, Frame, NoteKind, Part, open};

/// The session that `text` describes. Paths in it are relative to `folder`.
///
/// # Errors
/// What is wrong, with its line and column.
pub fn parse_session(place: &str, folder: &Path, text: &str) -> Result<Session, String> {
    Session::parse(place, folder, text).map_err(|error| error.to_string())
}

/// The time of each frame of the session's replay, and whether a new run begins with it.
///
/// # Errors
/// Why the data cannot be read to its end.
pub fn replay(session: &Session) -> Result<Vec<(Timestamp, bool)>, String> {
    let mut stream = open(session, Part::Replay).map_err(|error| error.to_string())?;
    let mut frame = Frame::for_layout(stream.layout());
    let mut frames = Vec::new();
    while stream.next(&mut frame).map_err(|error| error.to_string())? {
        frames.push((frame.time, frame.continuity == Continuity::NewRun));
    }
    Ok(frames)
}

/// What became of the rows of a session's replay.
#[derive(Debug, Default)]
pub struct Rows {
    /// Rows that became frames.
    pub frames: u64,
    /// Rows that were left out, for a reason that was reported.
    pub left_out: u64,
    /// How often the clock of the data was reported to have moved.
    pub clock_moves: u64,
    /// Frames before which others are missing.
    pub gaps: u64,
}

/// Counts what became of the rows of the session's replay.
///
/// # Errors
/// Why the data cannot be read to its end.
pub fn replayed_rows(session: &Session) -> Result<Rows, String> {
    let mut stream = open(session, Part::Replay).map_err(|error| error.to_string())?;
    let mut frame = Frame::for_layout(stream.layout());
    let mut rows = Rows::default();
    loop {
        let more = stream.next(&mut frame).map_err(|error| error.to_string())?;
        for note in &frame.notes {
            rows.left_out += note.rows;
            rows.clock_moves += u64::from(matches!(note.what, NoteKind::ClockMoved { .. }));
        }
        if !more {
            return Ok(rows);
        }
        rows.gaps += u64::from(matches!(frame.continuity, Continuity::Gap { .. }));
        rows.frames += 1;
    }
}

/// Makes the models of a session and keeps them in `file`.
///
/// # Errors
/// Why they cannot be made.
pub fn make_models(session: &Session, file: &Path) -> Result<(), String> {
    let on_stage = &mut |_: prepare::Stage| ControlFlow::Continue(());
    prepare::prepare(session, file, on_stage).map(|_| ()).map_err(|error| error.to_string())
}

/// Reads the models of a session as they are kept in `file`.
///
/// # Errors
/// Why they cannot be used.
pub fn read_models(session: &Session, file: &Path) -> Result<(), String> {
    prepare::kept(session, file).map(|_| ()).map_err(|error| error.to_string())
}

/// Decodes a message to the server; what it says, as text.
///
/// # Errors
/// Why the bytes are no such message.
pub fn decode_message(bytes: &[u8]) -> Result<String, String> {
    Message::decode(bytes).map(|message| message.text()).map_err(|error| error.to_string())
}

/// Decodes a message to a site; what it says, as text.
///
/// # Errors
/// Why the bytes are no such message.
pub fn decode_order(bytes: &[u8]) -> Result<String, String> {
    ToSite::decode(bytes).map(|message| message.text()).map_err(|error| error.to_string())
}

/// Reads the file of a ledger and verifies it; the number of clients in it.
///
/// # Errors
/// The first line that does not hold.
pub fn verify_ledger(file: &[u8]) -> Result<usize, String> {
    let signed = crate::privacy::signed::read(file, None).map_err(|broken| broken.to_string())?;
    Ok(signed.ledgers.len())
}

/// Reads a recording and lets the server decide again on its messages; the number of its steps.
///
/// # Errors
/// Why it cannot be read.
pub fn read_recording(file: &Path) -> Result<usize, String> {
    let recording = Recording::open(file).map_err(|error| error.to_string())?;
    let recorded = Recorded::read(&recording).map_err(|error| error.to_string())?;
    let options = Options::facts(Speed::Max);
    let engine = spawn_recorded(recorded, options).map_err(|error| error.to_string())?;
    let mut steps = 0;
    engine
        .into_end(|_, update| steps += update.news.times.len())
        .map_err(|error| error.to_string())?;
    Ok(steps)
}

/// Reads lines as a live source of `session` would deliver them, one a second; the times of the rows
/// they become, and whether a new run begins with each.
///
/// # Errors
/// Why the source cannot be used.
pub fn live_rows(session: &Session, lines: &[u8]) -> Result<Vec<(Timestamp, bool)>, String> {
    crate::stream::live::rows_of_lines(session, lines).map_err(|error| error.to_string())
}

/// Opens what crossed a broker, in either direction.
///
/// # Errors
/// Why the bytes are no envelope.
pub fn open_envelope(bytes: &[u8]) -> Result<(), String> {
    let up = envelope::open_up(bytes).map(|_| ());
    up.or_else(|_| envelope::open_down(bytes).map(|_| ())).map_err(|error| error.to_string())
}

/// A new key of a ledger: the text of the file it is kept in, and its public half.
///
/// # Errors
/// The operating system has no randomness.
pub fn new_ledger_key() -> Result<(String, String), String> {
    let key = crate::privacy::LedgerKey::new().map_err(|error| error.to_string())?;
    Ok((key.to_text(), key.public()))
}

/// Reads a file of keys.
///
/// # Errors
/// What is wrong, with its line and column.
pub fn check_keys(file: &str, text: &str) -> Result<(), String> {
    crate::console::keys_of(file, text).map(|_| ()).map_err(|error| error.to_string())
}
