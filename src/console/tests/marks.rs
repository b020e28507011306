//! One meaning of a mark: ranges, the place where playing begins and pictures agree on its frame.

use std::fs;
use std::path::Path;

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::engine::handle::Moment;
use crate::engine::places::{From, StopAt};
use crate::session::{Mark, Session};
use crate::stream::{self, Frame, Part};

/// Rows of the table, ten seconds apart, from midnight of its own clock.
const ROWS: u32 = 60;

/// A table whose clock is `hours` ahead of UTC, written into `folder`.
fn session(folder: &Path, hours: f64) -> Session {
    let midnight = date(2022, 8, 12).at(0, 0, 0, 0);
    let row = |row: u32| {
        let time = midnight.saturating_add(SignedDuration::from_secs(10 * i64::from(row)));
        format!("{},{row}\n", time.strftime("%Y-%m-%d %H:%M:%S"))
    };
    let table: String = std::iter::once("time,a\n".to_owned()).chain((0..ROWS).map(row)).collect();
    fs::write(folder.join("day.csv"), table).expect("a writable folder");
    let text = format!(
        r#"Session(
            about: "a table",
            source: Table(data: ".", time: (column: "time", utc_offset_h: {hours})),
            clients: [(name: "A", columns: ["a"])],
            ranges: (
                fit: (files: ["day.csv"], until: "+1 steps"),
                calibration: (files: ["day.csv"], from: "+1 steps"),
                replay: (files: ["day.csv"]),
            ),
        )"#
    );
    Session::parse("table", folder, &text).expect("the test session is valid")
}

fn replayed(session: &Session) -> Vec<Timestamp> {
    let mut stream = stream::open(session, Part::Replay).expect("the table can be read");
    let mut frame = Frame::for_layout(stream.layout());
    let mut times = Vec::new();
    while stream.next(&mut frame).expect("the table has no bad rows") {
        times.push(frame.time);
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_mark_means_the_same_frame_everywhere_whatever_the_clock_of_the_data(
        quarters in -48_i32..=56, row in 0..ROWS,
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = session(folder.path(), f64::from(quarters) / 4.0);
        let all = replayed(&session);
        prop_assert_eq!(all.len(), ROWS as usize);
        let seconds = 10 * i64::from(row);
        let shown = date(2022, 8, 12).at(0, 0, 0, 0) + SignedDuration::from_secs(seconds);
        for mark in [Mark::At(shown), Mark::After(seconds as f64), Mark::Step(row.into())] {
            let row = row as usize;
            session.ranges.replay.from = Some(mark);
            prop_assert_eq!(&replayed(&session), &all[row..], "a range from {}", mark);
            session.ranges.replay.from = None;
            session.ranges.replay.until = Some(mark);
            prop_assert_eq!(&replayed(&session), &all[..row], "a range until {}", mark);
            session.ranges.replay.until = None;
            session.replay.from = Some(mark);
            let mut from = From::of(&session);
            let played = all.iter().position(|time| from.is_reached(*time));
            prop_assert_eq!(played, Some(row), "playing from {}", mark);
            let mut end = StopAt::new(&session, Moment::Mark(mark));
            let drawn = all.iter().filter(|time| end.holds(**time)).count();
            prop_assert_eq!(drawn, row + 1, "a picture at {} holds the frame at it", mark);
        }
    }
}
