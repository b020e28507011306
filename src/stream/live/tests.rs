use std::time::Duration;

use super::reader::Reader;
use crate::session::Session;
use crate::stream::{Continuity, Frame, NoteKind};

fn session(live: &str, columns: &str) -> Session {
    let text = format!(
        "Session(about: \"x\", source: Live(input: Stdin{live}), \
         clients: [(name: \"A\", columns: {columns})], \
         ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+2h\")))"
    );
    Session::parse("x.ron", std::path::Path::new(""), &text).expect("a sound session")
}

/// Frames of `lines`, one a second of arrival: time, how it follows, values.
fn frames(session: &Session, lines: &[&str]) -> (Vec<(i64, Continuity, Vec<f64>)>, Reader) {
    let live = session.live().expect("a live session");
    let mut reader = Reader::new(live, &session.clients, "test", None).expect("a reader");
    let (mut frame, mut found) = (Frame::default(), Vec::new());
    for (i, line) in lines.iter().enumerate() {
        let now = Duration::from_secs(i as u64);
        reader.line(line.as_bytes(), now).expect("the header is right");
        while reader.take(now, false, &mut frame).is_some() {
            found.push((frame.time.as_second(), frame.continuity, frame.raw_values().to_vec()));
        }
    }
    while reader.take(Duration::from_secs(999), true, &mut frame).is_some() {
        found.push((frame.time.as_second(), frame.continuity, frame.raw_values().to_vec()));
    }
    (found, reader)
}

#[test]
fn csv_and_json_lines_give_the_same_frames() {
    let csv = [
        "timestamp,b,a",
        "1970-01-01 00:00:01,5,1.5",
        "1970-01-01 00:00:02,5,",
        "1970-01-01T00:00:03Z,5,3.5",
    ];
    let json = [
        "{\"timestamp\": \"1970-01-01 00:00:01\", \"a\": 1.5, \"b\": 5, \"extra\": [1, {}]}",
        "{\"a\": null, \"timestamp\": \"1970-01-01 00:00:02\", \"b\": 5}",
        "{\"timestamp\": \"1970-01-01T00:00:03Z\", \"a\": \"3.5\", \"b\": 5}",
    ];
    let session = session("", "[\"a\"]");
    let (of_csv, _) = frames(&session, &csv);
    let (of_json, _) = frames(&session, &json);
    let times: Vec<i64> = of_csv.iter().map(|frame| frame.0).collect();
    assert_eq!(times, [1, 2, 3]);
    assert!(of_csv[1].2[0].is_nan());
    assert_eq!(format!("{of_csv:?}"), format!("{of_json:?}"));
}

#[test]
fn single_values_with_a_quality_become_rows() {
    let session = session(", shape: Long(tag: \"tag\", value: \"v\")", "[\"a\", \"b\"]");
    let (found, reader) = frames(
        &session,
        &[
            "timestamp,tag,v,quality",
            "1970-01-01 00:00:01,a,1,good",
            "1970-01-01 00:00:01,b,2,good",
            "1970-01-01 00:00:02.5,b,3,bad",
            "1970-01-01 00:00:02,a,4,192",
            "1970-01-01 00:00:02,unknown,4,192",
        ],
    );
    assert_eq!(format!("{found:?}"), "[(1, NewRun, [1.0, 2.0]), (2, Next, [4.0, NaN])]");
    assert_eq!(reader.counts().bad, 1);
}

#[test]
fn what_cannot_be_read_is_counted_and_said_and_ends_nothing() {
    let session = session("", "[\"a\"]");
    let live = session.live().expect("a live session");
    let mut reader = Reader::new(live, &session.clients, "test", None).expect("a reader");
    let mut frame = Frame::default();
    let lines = [
        "timestamp,a",
        "1970-01-01 00:00:01,1",
        "rubbish",
        "1970-01-01 00:00:02,two",
        "{\"time",
        "\u{fffd}\u{0}",
        "1970-01-01 00:00:03,3",
    ];
    let mut notes = Vec::new();
    for line in lines {
        reader.line(line.as_bytes(), Duration::ZERO).expect("the header is right");
        while reader.take(Duration::ZERO, false, &mut frame).is_some() {
            notes.append(&mut frame.notes);
        }
    }
    assert_eq!(reader.trouble().unreadable, 4);
    assert_eq!(notes.len(), 1);
    assert_eq!((notes[0].rows, notes[0].what), (4, NoteKind::Unreadable));
    assert_eq!(frame.time.as_second(), 3);
}

#[test]
fn a_header_that_lacks_a_column_is_an_error_before_the_first_row_and_none_after_it() {
    let session = session("", "[\"pressure\"]");
    let live = session.live().expect("a live session");
    let mut reader = Reader::new(live, &session.clients, "test", None).expect("a reader");
    let error = reader.line(b"timestamp,presure", Duration::ZERO).expect_err("no such column");
    let text = error.to_string();
    assert!(text.contains("test:1") && text.contains("the nearest is \"presure\""), "{text}");
    // The source was restarted with a renamed tag: the run goes on, and the tag is missing.
    let lines = [
        "timestamp,pressure",
        "1970-01-01 00:00:01,1",
        "timestamp,presure",
        "1970-01-01 00:00:02,2",
        "timestamp;pressure",
        "1970-01-01 00:00:03;3,5",
    ];
    let (found, _) = frames(&session, &lines);
    assert_eq!(format!("{found:?}"), "[(1, NewRun, [1.0]), (2, Next, [NaN]), (3, Next, [3.5])]");
}
