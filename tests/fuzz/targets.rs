//! What must hold for any bytes that come from outside: one function for each format. They are run by
//! the fuzz targets, and by `tests/hostile.rs` on the corpus and on changed copies of it.
//!
//! A function panics where a promise is broken. It also says whether the bytes were accepted, so that
//! a test can show that the corpus reaches the code behind the first check.

#![allow(dead_code, reason = "every fuzz target uses one of these functions")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use headwater::test_api::{
    Session, check_keys, decode_message, decode_order, empty_queue, fill_journal, fill_outbox,
    live_rows, make_models, open_envelope, parse_session, read_history, read_journal, read_keys,
    read_models, read_outbox, read_packets, read_recording, replay, resume, score as score_files,
    verify_ledger,
};
use sha2::{Digest as _, Sha256};

/// A longer input finds nothing that a shorter one does not, and takes longer.
const LONGEST: usize = 64 * 1024;

/// A session is understood, or refused in words. One that is understood can be opened or is refused in
/// words, and nothing is allocated that its bounds do not allow.
pub(crate) fn session(data: &[u8]) -> bool {
    text(data).is_some_and(|text| is_accepted(&parse_session("fuzz.ron", Path::new(""), text)))
}

/// A table is read to its end, or refused in words. Time goes forward within a run, and no row is used
/// twice.
pub(crate) fn table(data: &[u8]) -> bool {
    if data.len() > LONGEST {
        return false;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("day.csv"), data).expect("the table can be written");
    let session = "Session(about: \"a table\", source: Table(data: \".\", time: (column: \"time\")), \
        clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
        ranges: (fit: (files: [\"day.csv\"], until: \"+9s\"), \
        calibration: (files: [\"day.csv\"], from: \"+9s\"), \
        replay: (files: [\"day.csv\"])))";
    let session = parse_session("fuzz.ron", folder.path(), session).expect("a sound session");
    let frames = read(&session);
    if let Ok(frames) = frames {
        let lines = data.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
        assert!(frames <= lines + 1, "{frames} frames of {lines} lines");
    }
    is_accepted(&frames) && frames != Ok(0)
}

fn read(session: &Session) -> Result<usize, String> {
    let frames = replay(session)?;
    assert!(is_forward(&frames), "time goes back within a run");
    Ok(frames.len())
}

/// Whether time goes forward within each run: the second part of a row says that a run begins.
fn is_forward<T: PartialOrd>(rows: &[(T, bool)]) -> bool {
    rows.windows(2).all(|pair| pair[1].1 || pair[0].0 < pair[1].0)
}

/// Bytes are a message, or refused in words; either way nothing large is allocated.
pub(crate) fn message(data: &[u8]) -> bool {
    let (up, down) = (decode_message(data), decode_order(data));
    for words in [&up, &down] {
        let (Ok(words) | Err(words)) = words;
        assert!(!words.trim().is_empty(), "a message or an error without words");
    }
    up.is_ok() || down.is_ok()
}

/// Lines of a live source become rows, or are counted as unreadable; the source is used, or refused in
/// words. Time goes forward within a run, in rows of all values and in rows of single values alike.
pub(crate) fn live(data: &[u8]) -> bool {
    if data.len() > LONGEST {
        return false;
    }
    let session = |shape: &str| {
        let text = format!(
            "Session(about: \"live\", source: Live(input: Stdin{shape}), \
             clients: [(name: \"A\", columns: [\"a\", \"a2\"]), (name: \"B\", columns: [\"b\"])], \
             ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+2h\")))"
        );
        parse_session("fuzz.ron", Path::new(""), &text).expect("a sound session")
    };
    let mut is_used = false;
    for shape in ["", ", shape: Long(tag: \"tag\", value: \"v\")"] {
        let rows = live_rows(&session(shape), data);
        if let Ok(rows) = &rows {
            assert!(is_forward(rows), "time goes back within a run");
        }
        is_used |= is_accepted(&rows) && rows.is_ok_and(|rows| !rows.is_empty());
    }
    is_used
}

/// Bytes from a broker are an envelope, or refused in words.
pub(crate) fn envelope(data: &[u8]) -> bool {
    is_accepted(&open_envelope(data))
}

/// A ledger is read to its end, or refused at a line.
pub(crate) fn ledger(data: &[u8]) -> bool {
    let clients = verify_ledger(data);
    is_accepted(&clients) && clients != Ok(0)
}

/// A recording is read and decided again, or refused in words.
pub(crate) fn recording(data: &[u8]) -> bool {
    if data.len() > 4 * LONGEST {
        return false;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a.hwrec");
    fs::write(&file, data).expect("the recording can be written");
    let steps = read_recording(&file);
    is_accepted(&steps) && steps != Ok(0)
}

/// Bytes from a console are orders and bytes from a service are what a screen shows, or they are refused
/// in words. Every view can be drawn of what was understood.
pub(crate) fn attach(data: &[u8]) -> bool {
    if data.len() > 4 * LONGEST {
        return false;
    }
    let packets = read_packets(data);
    is_accepted(&packets) && packets != Ok(0)
}

/// An outbox is read to its end, or refused in words: a file of any bytes, and one with any bytes behind
/// checksums that fit.
pub(crate) fn outbox(data: &[u8]) -> bool {
    stored(data, fill_outbox, read_outbox)
}

/// A journal likewise. What is damaged in it is asked for again.
pub(crate) fn journal(data: &[u8]) -> bool {
    stored(data, fill_journal, read_journal)
}

/// How every file of SQLite begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

fn stored(
    data: &[u8],
    fill: fn(&Path, &[(u8, u64, &[u8])]) -> Result<(), String>,
    read: fn(&Path) -> Result<u64, String>,
) -> bool {
    if data.len() > 4 * LONGEST {
        return false;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("stored.sqlite");
    if data.starts_with(SQLITE) {
        fs::write(&file, data).expect("the file can be written");
    } else if !is_accepted(&fill(&file, &entries(data))) {
        return false;
    }
    let steps = read(&file);
    is_accepted(&steps) && steps != Ok(0)
}

/// Bytes as entries of a table: what kind of entry, its step, its length, and its bytes.
fn entries(mut data: &[u8]) -> Vec<(u8, u64, &[u8])> {
    let mut entries = Vec::new();
    while let [kind, step, length, rest @ ..] = data {
        let (bytes, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        // The last numbers of a byte are those of 64 bits.
        let step = if *step < 0xf0 { u64::from(*step) } else { u64::MAX - u64::from(0xff - *step) };
        entries.push((*kind, step, bytes));
        data = rest;
    }
    entries
}

/// A queue of outputs is emptied, or refused in words. What comes out of it is JSON and nothing else.
pub(crate) fn queue(data: &[u8]) -> bool {
    if data.len() > 4 * LONGEST {
        return false;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("outputs.sqlite");
    if data.starts_with(SQLITE) {
        fs::write(&file, data).expect("the file can be written");
    } else {
        // The program makes the tables; the bytes are what stands in them.
        empty_queue(&file, "a").expect("a new queue");
        let rows = rusqlite::Connection::open(&file).expect("a queue");
        for (kind, number, bytes) in entries(data) {
            let line: rusqlite::types::Value = match String::from_utf8(bytes.to_vec()) {
                Ok(text) if kind & 1 == 0 => text.into(),
                _ => bytes.to_vec().into(),
            };
            let attempts = i64::from(kind) << 32;
            let due_s = f64::from_bits(number.rotate_right(12));
            let values = (line, attempts, due_s, number.cast_signed());
            let row = "INSERT INTO queue (receiver, line, attempts, due_s, number) \
                       VALUES ('a', ?1, ?2, ?3, ?4)";
            // A number that is taken, or no number, is refused by SQLite.
            let _ = rows.execute(row, values);
        }
    }
    let out = empty_queue(&file, "a");
    if let Ok((lines, _)) = &out {
        for line in lines {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line:?} goes out");
        }
    }
    is_accepted(&out) && out.is_ok_and(|(lines, _)| !lines.is_empty())
}

/// What a live session keeps for its next start is used, or refused in words: its history, and what
/// operators did.
pub(crate) fn kept(data: &[u8]) -> bool {
    if data.len() > 4 * LONGEST {
        return false;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (history, operator) = (folder.path().join("history.rows"), "operator.json");
    fs::write(&history, data).expect("the history can be written");
    let rows = read_history(&history);
    let is_history = is_accepted(&rows) && rows != Ok(0);
    fs::write(folder.path().join(operator), data).expect("the file can be written");
    is_accepted(&resume(folder.path(), &["A", "B"])) || is_history
}

/// Files of alarms and of the truth are scored, or refused in words. They are one input, with a zero
/// byte between them.
pub(crate) fn score(data: &[u8]) -> bool {
    if data.len() > LONGEST {
        return false;
    }
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len() / 2);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [truth, alarms] = ["truth", "alarms"].map(|name| folder.path().join(name));
    fs::write(&truth, &data[..at]).expect("written");
    fs::write(&alarms, data[at..].strip_prefix(&[0]).unwrap_or(&data[at..])).expect("written");
    is_accepted(&score_files(&truth, &alarms))
}

/// Bytes of a terminal become events, and every Ctrl-C among them is one, however they are cut.
pub(crate) fn terminal(data: &[u8]) -> bool {
    let Some((piece, bytes)) = data.split_first().filter(|_| data.len() <= LONGEST) else {
        return false;
    };
    let (events, interrupts) = read_keys(bytes, usize::from(*piece));
    let typed = bytes.iter().filter(|byte| **byte == 3).count();
    assert!(interrupts >= typed, "{interrupts} of {typed} Ctrl-C are seen");
    assert!(events <= 2 * bytes.len(), "{events} events of {} bytes", bytes.len());
    events > 0
}

/// Models that were changed by somebody who knows how to enter a checksum are read, or refused in words.
/// The bytes are changes: where (three bytes), and what stands there.
pub(crate) fn models(data: &[u8]) -> bool {
    thread_local! {
        static SOUND: (Session, Vec<u8>, tempfile::TempDir) = sound_models();
    }
    SOUND.with(|(session, sound, folder)| {
        let mut copy = sound.clone();
        for change in data.chunks_exact(4) {
            let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
            match copy.get_mut(at) {
                Some(byte) => *byte = change[3],
                None => copy.truncate(copy.len().saturating_sub(1 + usize::from(change[3]))),
            }
        }
        sign_again(&mut copy);
        let file = folder.path().join("kept.safetensors");
        fs::write(&file, &copy).expect("written");
        is_accepted(&read_models(session, &file))
    })
}

fn sound_models() -> (Session, Vec<u8>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("kept.safetensors");
    let text = "Session(about: \"short\", source: Twin(clients: 2), \
         model: (proprietary: Linear, federation: Batched(rounds: 1)))";
    let session = parse_session("short", Path::new(""), text).expect("a sound session");
    make_models(&session, &file).expect("prepared");
    let sound = fs::read(&file).expect("kept");
    (session, sound, folder)
}

/// How a file of models begins, up to its checksum.
const BEFORE_CHECKSUM: &[u8] = br#"{"__metadata__":{"headwater":"{\"checksum\":\""#;

/// Enters the checksum that belongs to these bytes, as somebody would who knows how; nothing where
/// there is no place for it any more.
pub(crate) fn sign_again(bytes: &mut [u8]) {
    let begin = 8 + BEFORE_CHECKSUM.len();
    let has_place = bytes.len() >= begin + 64 && bytes[8..].starts_with(BEFORE_CHECKSUM);
    if !has_place {
        return;
    }
    bytes[begin..begin + 64].fill(b'0');
    let mut digits = String::new();
    for byte in Sha256::digest(&*bytes) {
        let _ = write!(digits, "{byte:02x}");
    }
    bytes[begin..begin + 64].copy_from_slice(digits.as_bytes());
}

/// A file of keys is understood, or refused in words.
pub(crate) fn keys(data: &[u8]) -> bool {
    text(data).is_some_and(|text| is_accepted(&check_keys("keys.ron", text)))
}

/// Whether something was accepted. What is refused is refused in words.
fn is_accepted<T>(result: &Result<T, String>) -> bool {
    if let Err(error) = result {
        assert!(!error.trim().is_empty(), "an error without words");
    }
    result.is_ok()
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().filter(|text| text.len() <= LONGEST)
}
