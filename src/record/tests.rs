use std::fs;
use std::path::Path;

use jiff::Timestamp;

use super::batch::AboutTable;
use super::recorder::Limits;
use super::*;
use crate::fact::{Fact, Number, Setting, Value};
use crate::site::LocalView;
use crate::stream::{Continuity, Label};
use crate::wire::{Content, Logged, Memory, Wire as _, testing};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_660_290_000 + second).expect("a small second is an instant")
}

fn mark(step: i64) -> StepMark {
    StepMark { time: at(5 * step), continuity: Continuity::Next, label: Label::Normal }
}

fn setting(step: i64) -> Fact {
    let to = Value::Number(Number::or_zero(step as f64));
    Fact::Setting(Setting { what: "vote".to_owned(), from: Value::Unset, to, time: at(5 * step) })
}

/// Records so many steps of two clients with a message of each, and a fact every hundred steps.
fn record(file: &Path, steps: i64, limits: Limits) -> Vec<String> {
    let mut recorder = Recorder::create(file, limits, Holds::Both).expect("a new file");
    recorder.about(AboutTable::Both, "mode", "\"Evidence\"");
    let mut wire = Logged::new(Box::new(Memory::default()), recorder.carrier_log());
    let mut lines = Vec::new();
    let mut notices = Vec::new();
    for step in 1..=steps {
        for client in 0..2 {
            let content = Content::Symbol { own: (step % 4) as u8, beside: None, raised: false };
            wire.send(testing::outgoing(client, step as u64, content)).expect("in memory");
        }
        while wire.receive().is_some() {}
        let mut seen = [Seen::default(); 2];
        seen[0].local.d_c = step as f32;
        seen[1].server.level = Some((step % 4) as u8);
        recorder.step(mark(step), StepNote::default(), seen.into_iter());
        if step % 100 == 0 {
            lines.push(setting(step).to_line());
            recorder.facts(&[setting(step)]);
        }
        notices.extend(recorder.flush_if_large().expect("the disk is there"));
    }
    recorder.finish().expect("the disk is there");
    lines.extend(notices);
    lines
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

#[test]
fn what_was_recorded_is_read_again() {
    let folder = folder();
    let file = folder.path().join("a.hwrec");
    let lines = record(&file, 1300, Limits::default());
    let recording = Recording::open(&file).expect("a recording");
    assert!(recording.ended().expect("readable").is_some());
    let facts: Vec<String> =
        recording.facts().expect("readable").into_iter().map(|fact| fact.line).collect();
    assert_eq!(facts, lines);
    let steps = recording.steps().expect("readable");
    assert_eq!(steps, (1..=1300).map(mark).collect::<Vec<_>>());
    let residuals = recording.residuals(0).expect("readable");
    assert!(
        residuals.len() == 1300
            && residuals.iter().zip(1_u16..).all(|(r, n)| (r.d_c - f32::from(n)).abs() < 1e-6)
    );
    let levels: Vec<_> =
        recording.decisions(1).expect("readable").iter().map(|[server, _]| server.level).collect();
    assert_eq!(levels[..4], [Some(1), Some(2), Some(3), Some(0)]);
    let log = recording.messages().expect("readable");
    let messages = crate::wire::Entries::of(&log)
        .filter(|entry| matches!(entry.as_ref().expect("a log"), crate::wire::Crossed::Up(_)));
    assert_eq!(messages.count(), 2600);
    // The file stands alone.
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
}

#[test]
fn a_file_that_is_there_is_never_replaced_and_one_that_is_written_is_said_to_be() {
    let folder = folder();
    let file = folder.path().join("a.hwrec");
    let recorder = Recorder::create(&file, Limits::default(), Holds::Both).expect("a new file");
    let taken = Recorder::create(&file, Limits::default(), Holds::Both).expect_err("it is written");
    assert!(taken.to_string().ends_with("another run is recording to it"), "{taken}");
    recorder.finish().expect("the disk is there");
    let there = Recorder::create(&file, Limits::default(), Holds::Both).expect_err("it is there");
    assert!(there.to_string().contains("never replaces"), "{there}");
    let nowhere =
        Recorder::create(&folder.path().join("b/c.hwrec"), Limits::default(), Holds::Both);
    assert!(nowhere.expect_err("no such folder").to_string().contains("c.hwrec"));
}

#[test]
fn a_file_that_grows_too_large_loses_its_oldest_steps_and_says_so() {
    let folder = folder();
    let file = folder.path().join("a.hwrec");
    let said = record(&file, 60_000, Limits { file_bytes: 400_000 });
    let recording = Recording::open(&file).expect("a recording");
    let kept_from = recording.kept_from().expect("readable");
    assert!(kept_from > 1, "{said:?}");
    let steps = recording.steps().expect("readable");
    assert!(!steps.is_empty() && steps.len() < 60_000);
    assert_eq!(steps.last(), Some(&mark(60_000)));
    assert_eq!(
        steps.first(),
        Some(&mark(i64::try_from(kept_from).expect("a small number"))),
        "steps keep their numbers"
    );
    assert_eq!(recording.facts().expect("readable").len(), 600);
    assert!(said.iter().any(|line| line.contains("as large as it may be")), "{said:?}");
    // What sites showed goes before messages do.
    let residuals = recording.residuals(0).expect("readable");
    assert_eq!(residuals.len(), steps.len());
    assert!(residuals[0].d_c.is_nan() && !residuals[steps.len() - 1].d_c.is_nan());
    let missing = recording.missing().expect("readable");
    assert!(missing.len() == 2 && missing[1].contains("steps and messages before"), "{missing:?}");
}

#[test]
fn a_file_of_the_version_before_is_brought_up_to_date_and_read() {
    let folder = folder();
    let file = folder.path().join("a.hwrec");
    record(&file, 600, Limits::default());
    let db = rusqlite::Connection::open(&file).expect("a database");
    db.execute_batch(
        "DROP TABLE site_truth; DROP TABLE site_models; DROP TABLE site_messages; \
         PRAGMA user_version = 1",
    )
    .expect("as version 1 was");
    drop(db);
    let recording = Recording::open(&file).expect("an older recording");
    assert_eq!(recording.residuals(0).expect("readable").len(), 600);
    assert_eq!(recording.truths(0).expect("readable"), []);
    assert_eq!(recording.model(batch::ModelTable::Site, "models").expect("readable"), None);
    let version: i64 = rusqlite::Connection::open(&file)
        .and_then(|db| db.pragma_query_value(None, "user_version", |row| row.get(0)))
        .expect("a database");
    assert_eq!(version, 3);
}

#[test]
fn a_newer_file_and_another_database_are_refused_in_words() {
    let folder = folder();
    let file = folder.path().join("a.hwrec");
    record(&file, 10, Limits::default());
    let change = |name: &str, value: i64| {
        let db = rusqlite::Connection::open(&file).expect("a database");
        db.pragma_update(None, name, value).expect("can be set");
    };
    change("user_version", 99);
    let newer = Recording::open(&file).expect_err("of tomorrow").to_string();
    assert!(newer.contains("version 99") && newer.contains("up to 3"), "{newer}");
    change("user_version", 0);
    assert!(Recording::open(&file).expect_err("no version").to_string().contains("damaged"));
    change("application_id", 7);
    let other = Recording::open(&file).expect_err("of somebody else").to_string();
    assert!(other.ends_with("not a recording of headwater"), "{other}");
    let text = folder.path().join("b.hwrec");
    fs::write(&text, "Session(about: \"\")").expect("written");
    assert!(Recording::open(&text).expect_err("a session").to_string().contains("not a recording"));
    let nothing = Recording::open(&folder.path().join("none")).expect_err("nothing there");
    assert!(nothing.to_string().contains("none"), "{nothing}");
}

/// Everything that can be read of a file, or the first error.
fn read_all(file: &Path) -> Result<usize, RecordError> {
    let recording = Recording::open(file)?;
    recording.ended()?;
    let _ = recording.session();
    recording.events()?;
    recording.incidents()?;
    recording.ledger()?;
    recording.notes()?;
    recording.frames(3)?;
    let log = recording.messages()?;
    let _ = crate::wire::RecordedWire::new(log);
    recording.decisions(1)?;
    Ok(recording.facts()?.len() + recording.steps()?.len() + recording.residuals(0)?.len())
}

#[test]
fn cut_and_changed_files_give_errors_in_words_and_never_a_panic() {
    let folder = folder();
    let sound = folder.path().join("a.hwrec");
    record(&sound, 700, Limits::default());
    let bytes = fs::read(&sound).expect("readable");
    let whole = read_all(&sound).expect("sound");
    let broken = folder.path().join("b.hwrec");
    let mut refused = 0;
    for part in 0..24 {
        fs::write(&broken, &bytes[..bytes.len() * part / 24]).expect("written");
        let error = read_all(&broken).expect_err("a part of a recording");
        assert!(error.to_string().contains("b.hwrec"), "{error}");
        refused += 1;
    }
    assert_eq!(refused, 24);
    let mut noticed = 0;
    for n in 0..300_usize {
        let mut bytes = bytes.clone();
        let at = n.wrapping_mul(2_654_435_761) % bytes.len();
        bytes[at] ^= 1 << (n % 8);
        fs::write(&broken, &bytes).expect("written");
        match read_all(&broken) {
            // The byte stands where nothing is stored.
            Ok(found) => assert_eq!(found, whole),
            Err(error) => {
                assert!(error.to_string().contains("b.hwrec"), "{error}");
                noticed += 1;
            }
        }
    }
    // Most of a short file is room that SQLite keeps free.
    assert!(noticed > 30, "{noticed} of 300 changes were noticed");
}

#[test]
fn a_site_that_was_away_leaves_numbers_of_steps_out_and_they_are_found_again() {
    let folder = folder();
    let file = folder.path().join("site.hwrec");
    let mut recorder =
        Recorder::create(&file, Limits::default(), Holds::Site(1)).expect("a new file");
    recorder.about(AboutTable::Both, "clients", "[\"A\",\"B\"]");
    let mut seen = Seen::default();
    for step in (3_i64..=5).chain(2000..=3500) {
        recorder.go_on_at(step as u64).expect("the disk is there");
        seen.local.d_c = step as f32;
        recorder.step(mark(step), StepNote::default(), std::iter::once(seen));
        let message = testing::outgoing(1, step as u64, Content::Flags { z_c: true, z_a: false });
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        recorder.carrier_log().sent(&bytes);
        recorder.flush_if_large().expect("the disk is there");
    }
    recorder.finish().expect("the disk is there");
    let recording = Recording::open(&file).expect("a recording");
    let steps = recording.numbered_steps().expect("readable");
    let numbers: Vec<u64> = steps.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (3..=5).chain(2000..=3500).collect::<Vec<_>>());
    let marks: Vec<StepMark> = steps.into_iter().map(|(_, mark)| mark).collect();
    assert_eq!(marks, (3..=5).chain(2000..=3500).map(mark).collect::<Vec<_>>());
    let residuals = recording.residuals(1).expect("readable");
    let same = |(number, seen): (&u64, &LocalView)| (seen.d_c - *number as f32).abs() < 1e-6;
    assert!(residuals.len() == numbers.len() && numbers.iter().zip(&residuals).all(same));
    assert!(recording.missing().expect("readable").is_empty(), "nothing was removed");
    let log = recording.messages().expect("readable");
    assert_eq!(crate::wire::Entries::of(&log).count(), numbers.len());
    let only = recording.needs_server().expect_err("it has no verdicts").to_string();
    assert!(only.contains("a recording of site B alone"), "{only}");
}
