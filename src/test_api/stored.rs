//! Formats that cross a local socket or wait on disk: read as the program reads them.

use std::path::Path;

use jiff::Timestamp;

use crate::engine::carried;
use crate::incident::{Annunciator, Rules};
use crate::remote::stored as federation;
use crate::session::Mode;
use crate::stream::live::kept::KeptReader;
use crate::stream::{Frame, Stream as _};

/// Reads bytes as a service reads those of a console, and as a console reads those of a service, and
/// draws what came; how many packets were understood.
///
/// # Errors
/// Why neither understands them.
#[cfg(unix)]
pub fn read_packets(bytes: &[u8]) -> Result<usize, String> {
    let orders = crate::attach::orders_of(bytes).map_err(|why| why.to_string());
    let (session, events) = match crate::attach::events_of(bytes) {
        Ok(told) => told,
        Err(_) if orders.is_ok() => return orders,
        Err(why) => return Err(why),
    };
    let count = events.len();
    crate::console::drawn(&session, events);
    Ok(count)
}

/// Reads the outbox of a site in `file` to its end; how many releases it holds.
///
/// # Errors
/// Why it cannot be used.
pub fn read_outbox(file: &Path) -> Result<u64, String> {
    federation::read_outbox(file).map_err(|why| why.to_string())
}

/// Puts bytes into an outbox, with the checksums that belong to them: the kind of each, its step, and
/// the bytes.
///
/// # Errors
/// Why they cannot be stored.
pub fn fill_outbox(file: &Path, entries: &[(u8, u64, &[u8])]) -> Result<(), String> {
    federation::fill_outbox(file, entries).map_err(|why| why.to_string())
}

/// Reads the journal of a server in `file` to its end; how many steps of it are of use.
///
/// # Errors
/// Why it cannot be used.
pub fn read_journal(file: &Path) -> Result<u64, String> {
    federation::read_journal(file).map_err(|why| why.to_string())
}

/// Puts bytes into a journal, as [`fill_outbox`] does.
///
/// # Errors
/// Why they cannot be stored.
pub fn fill_journal(file: &Path, entries: &[(u8, u64, &[u8])]) -> Result<(), String> {
    federation::fill_journal(file, entries).map_err(|why| why.to_string())
}

/// Takes every fact for `receiver` out of the queue of outputs in `file`: the facts, and how many were
/// given up.
///
/// # Errors
/// Why it cannot be used.
pub fn empty_queue(file: &Path, receiver: &str) -> Result<(Vec<String>, u64), String> {
    crate::output::queue::empty(file, receiver).map_err(|why| why.to_string())
}

/// Reads rows of a live source that are kept in `file`; how many there are.
///
/// # Errors
/// Why they cannot be read.
pub fn read_history(file: &Path) -> Result<usize, String> {
    let mut reader = KeptReader::open(file).map_err(|why| why.to_string())?;
    let mut frame = Frame::for_layout(reader.layout());
    let mut rows = 0;
    while reader.next(&mut frame).map_err(|why| why.to_string())? {
        rows += 1;
    }
    Ok(rows)
}

/// Takes over what the run before left in `folder`, for a plant with these clients; in words.
///
/// # Errors
/// Why it cannot be read.
pub fn resume(folder: &Path, clients: &[&str]) -> Result<String, String> {
    let Some(before) = carried::read(folder, "models")? else { return Err("nothing".to_owned()) };
    let names = clients.iter().map(|&name| name.to_owned()).collect();
    let rules = Rules::with_period(1.0);
    let mut annunciator = Annunciator::new(names, Mode::Evidence, rules, Timestamp::UNIX_EPOCH);
    Ok(annunciator.resume(&before.carried).to_line())
}

/// Scores a file of alarms against a file of the truth; how many alarms there are.
///
/// # Errors
/// What is wrong with either.
pub fn score(truth: &Path, alarms: &Path) -> Result<String, String> {
    let tail = crate::session::Span { seconds: 600.0 };
    let report = crate::score::run(truth, alarms, tail).map_err(|why| why.to_string())?;
    serde_json::to_string(&report).map_err(|why| why.to_string())
}

/// Reads bytes as they come from a terminal, in pieces of this length; how many events they are, and how
/// many of these are Ctrl-C.
#[cfg(unix)]
#[must_use]
pub fn read_keys(bytes: &[u8], piece: usize) -> (usize, usize) {
    crate::console::read_keys(bytes, piece)
}
