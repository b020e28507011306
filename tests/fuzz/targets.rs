//! What must hold for any bytes that come from outside: one function for each format. They are run by
//! the fuzz targets, and by `tests/hostile.rs` on the corpus and on changed copies of it.
//!
//! A function panics where a promise is broken. It also says whether the bytes were accepted, so that
//! a test can show that the corpus reaches the code behind the first check.

#![allow(dead_code, reason = "every fuzz target uses one of these functions")]

use std::fs;
use std::path::Path;

use headwater::test_api::{
    Session, check_keys, decode_message, decode_order, live_rows, open_envelope, parse_session,
    read_recording, replay, verify_ledger,
};

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
