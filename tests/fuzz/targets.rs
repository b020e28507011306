//! What must hold for any bytes that come from outside: one function for each format. They are run by
//! the fuzz targets, and by `tests/hostile.rs` on the corpus and on changed copies of it.
//!
//! A function panics where a promise is broken. It also says whether the bytes were accepted, so that
//! a test can show that the corpus reaches the code behind the first check.

#![allow(dead_code, reason = "every fuzz target uses one of these functions")]

use std::fs;
use std::path::Path;

use headwater::console;
use headwater::privacy::signed;
use headwater::session::Session;
use headwater::stream::{self, Frame, Part, Stream as _};
use headwater::wire::{Message, ToSite};

/// A longer input finds nothing that a shorter one does not, and takes longer.
const LONGEST: usize = 64 * 1024;

/// A session is understood, or refused in words. One that is understood can be opened or is refused in
/// words, and nothing is allocated that its bounds do not allow.
pub fn session(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    match Session::parse("fuzz.ron", Path::new(""), text) {
        Ok(_) => true,
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "an error without words");
            false
        }
    }
}

/// A table is read to its end, or refused in words. Time goes forward within a run, and no row is used
/// twice.
pub fn table(data: &[u8]) -> bool {
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
    let session = Session::parse("fuzz.ron", folder.path(), session).expect("a sound session");
    match read(&session) {
        Ok(frames) => {
            let lines = data.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
            assert!(frames <= lines + 1, "{frames} frames of {lines} lines");
            frames > 0
        }
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "an error without words");
            false
        }
    }
}

fn read(session: &Session) -> Result<usize, stream::StreamError> {
    let mut stream = stream::open(session, Part::Replay)?;
    let mut frame = Frame::for_layout(stream.layout());
    let (mut frames, mut before) = (0, None);
    while stream.next(&mut frame)? {
        let is_new = frame.continuity == stream::Continuity::NewRun;
        assert!(is_new || before < Some(frame.time), "time goes back within a run");
        before = Some(frame.time);
        frames += 1;
    }
    Ok(frames)
}

/// Bytes are a message, or refused in words; either way nothing large is allocated.
pub fn message(data: &[u8]) -> bool {
    let up = Message::decode(data).map(|message| message.text()).map_err(|e| e.to_string());
    let down = ToSite::decode(data).map(|message| message.text()).map_err(|e| e.to_string());
    for words in [&up, &down] {
        let (Ok(words) | Err(words)) = words;
        assert!(!words.trim().is_empty(), "a message or an error without words");
    }
    up.is_ok() || down.is_ok()
}

/// A ledger is read to its end, or refused at a line.
pub fn ledger(data: &[u8]) -> bool {
    match signed::read(data, None) {
        Ok(signed) => !signed.ledgers.is_empty(),
        Err(broken) => {
            assert!(!broken.to_string().trim().is_empty(), "an error without words");
            false
        }
    }
}

/// A file of keys is understood, or refused in words.
pub fn keys(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    match console::keys_of("keys.ron", text) {
        Ok(_) => true,
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "an error without words");
            false
        }
    }
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().filter(|text| text.len() <= LONGEST)
}
