//! Long tables as historians write them, well and badly.

use std::fmt::Write as _;

use super::testing::{Folder, client, drain, frames, open, read, seconds, source, values};
use super::*;
use crate::session::{Runs, TimeFormat};
use crate::stream::{Continuity, Label, NoteKind};

fn long() -> TableSource {
    let shape = Shape::Long { tag: "tag".into(), value: "value".into(), tags: Vec::new() };
    TableSource { shape, ..source() }
}

fn with_tags(tags: &[&str]) -> TableSource {
    let tags = tags.iter().map(ToString::to_string).collect();
    TableSource {
        shape: Shape::Long { tag: "tag".into(), value: "value".into(), tags },
        ..source()
    }
}

fn is(value: f64, expected: Option<f64>) -> bool {
    expected.map_or(value.is_nan(), |expected| value.to_bits() == expected.to_bits())
}

#[test]
fn rows_of_one_instant_become_a_frame_and_tags_without_a_row_are_missing() {
    let text = "t,tag,value\n0,b,2\n0,a,1.5\n1,a,2.5\n2.0,a,Bad\n2,b,4\n5,b,5\n";
    let (found, error) = read(&long(), text);
    assert_eq!(error, "");
    assert_eq!(seconds(&found), [0.0, 1.0, 2.0, 5.0]);
    assert!(matches!(found[3].continuity, Continuity::Gap { .. }));
    let expected =
        [[Some(1.5), Some(2.0)], [Some(2.5), None], [None, Some(4.0)], [None, Some(5.0)]];
    for (values, expected) in values(&found).iter().zip(expected) {
        assert!(values.iter().zip(expected).all(|(v, e)| is(*v, e)), "{values:?}");
    }
    assert!(found.iter().all(|frame| frame.notes.is_empty()));
}

#[test]
fn a_second_value_of_a_tag_is_left_out_and_noted_with_its_line() {
    let text = "t,tag,value\n0,a,1\n0,b,2\n0,a,9\n0,a,8\n1,a,3\n1,b,4\n";
    let (found, error) = read(&long(), text);
    assert_eq!((error.as_str(), values(&found)), ("", vec![vec![1.0, 2.0], vec![3.0, 4.0]]));
    let notes: Vec<_> = found[0].notes.iter().map(|n| (n.what, n.line, n.rows)).collect();
    assert_eq!(notes, [(NoteKind::DuplicateTag, 4, 2)]);
}

#[test]
fn a_table_that_goes_back_in_time_for_good_is_refused_with_its_line() {
    let mut text = "t,tag,value\n".to_owned();
    for tag in ["a", "b"] {
        for second in 0..40 {
            let _ = writeln!(text, "{second},{tag},1");
        }
    }
    let (found, error) = read(&long(), text);
    assert_eq!(found.len(), 39);
    assert!(error.starts_with("t.csv:62: the time goes back"), "{error}");
    assert!(error.contains("must be in the order of time"), "{error}");
}

#[test]
fn one_row_of_a_long_table_with_a_wrong_time_costs_itself_and_nothing_else() {
    let text = |wrong: (i64, &str), at: i64| {
        let mut text = "t,tag,value\n".to_owned();
        for second in 100..160 {
            for tag in ["a", "b"] {
                let time = if (second, tag) == (at, wrong.1) { wrong.0 } else { second };
                let _ = writeln!(text, "{time},{tag},1");
            }
        }
        text
    };
    // Years ahead, years back, and a straggler; the first or the second row of its instant.
    for time in [4_000_000_000, -1_000_000_000, 127] {
        for tag in ["a", "b"] {
            let (found, error) = read(&long(), text((time, tag), 130));
            assert_eq!((found.len(), &error[..]), (60, ""), "{time} {tag}");
            let left_out: u64 = found.iter().flat_map(|frame| &frame.notes).map(|n| n.rows).sum();
            assert_eq!(left_out, 1, "{time} {tag}");
            let lacking = found.iter().filter(|frame| frame.values.iter().any(|v| v.is_nan()));
            assert_eq!(lacking.count(), 1, "{time} {tag}");
        }
    }
}

#[test]
fn bad_tags_and_bad_cells_are_refused_with_file_line_and_column() {
    let refused = |rows: &str| read(&long(), format!("t,tag,value\n0,a,1\n0,b,1\n{rows}\n")).1;
    assert_eq!(refused("1, ,2"), "t.csv:4:2: tag: expected a tag, found \"\"");
    let error = refused("1,a,2\n1,b,high");
    assert!(error.starts_with("t.csv:5:3: b: expected a number"), "{error}");
    assert!(error.ends_with("found \"high\""), "{error}");
    assert!(refused("noon,a,2").starts_with("t.csv:4:1: t: expected a number of seconds"));
    assert!(refused("1,a").starts_with("t.csv:4: expected 3 cells, found 2"));
}

#[test]
fn columns_that_are_not_there_are_named() {
    let refused = |text: &str| read(&long(), text).1;
    assert!(refused("t,tags,value\n0,a,1\n").contains("no tag column \"tag\"; the nearest is"));
    assert!(refused("t,tag,val\n0,a,1\n").contains("no value column \"value\""));
    assert!(refused("when,tag,value\n0,a,1\n").contains("no time column \"t\""));
    let folder = Folder::with("t.csv", "t,tag,value\n0,flow,1\n");
    let files = ["t.csv".to_owned()];
    let clients = [client("P1", &["flaw"])];
    let error = TableStream::open(&long(), folder.path(), &files, &clients, &Labels::Source, None);
    let error = error.err().expect("no such tag").to_string();
    assert!(error.contains("\"flaw\"") && error.contains("the nearest is \"flow\""), "{error}");
}

#[test]
fn a_watched_tag_that_comes_late_is_refused_and_one_that_nobody_watches_is_passed_over() {
    let text = "t,tag,value\n0,a,1\n1,a,2\n1,late,3\n";
    let refused = read(&with_tags(&["a"]), text).1;
    assert!(refused.starts_with("t.csv:4: the tag \"late\" belongs to a client"), "{refused}");
    let folder = Folder::with("t.csv", text);
    let files = ["t.csv".to_owned()];
    let clients = [client("P1", &["a"])];
    let source = with_tags(&["a"]);
    let stream = TableStream::open(&source, folder.path(), &files, &clients, &Labels::Source, None);
    assert_eq!(values(&frames(&mut stream.unwrap())), [[1.0], [2.0]]);
    let (found, error) = read(&with_tags(&["a", "late", "never"]), text);
    assert_eq!(error, "");
    assert!(found[0].values[1].is_nan() && is(found[1].values[1], Some(3.0)));
    assert!(found.iter().all(|frame| frame.values[2].is_nan()), "named, and never there");
}

#[test]
fn a_last_row_that_was_never_finished_is_left_out_and_its_instant_stays() {
    for end in ["1,b", "1,b,1e", "1,b,4e-"] {
        let (found, error) = read(&long(), format!("t,tag,value\n0,a,1\n0,b,2\n1,a,3\n{end}"));
        assert_eq!(error, "", "{end}");
        assert!(is(found[1].values[0], Some(3.0)) && found[1].values[1].is_nan(), "{end}");
        let notes: Vec<_> = found[1].notes.iter().map(|n| (n.what, n.line)).collect();
        assert_eq!(notes, [(NoteKind::TruncatedRow, 5)], "{end}");
    }
}

#[test]
fn labels_are_a_tag_and_a_run_column_begins_runs() {
    let text = "t,tag,value,r\n0,a,1,1\n0,y,0,1\n1,a,2,1\n1,y,1,1\n0,a,3,2\n0,y,0,2\n";
    let folder = Folder::with("t.csv", text);
    let source = TableSource { run_column: Some("r".into()), ..long() };
    let labels = Labels::Column { name: "y".into(), unlabelled: vec![], origins: vec![] };
    let mut stream = open(&source, &folder, &["t.csv"], &labels).unwrap();
    let found = frames(&mut stream);
    assert_eq!(values(&found), [[1.0], [2.0], [3.0]]);
    assert_eq!(found[1].label, Label::Anomalous { event: Some(0) });
    assert_eq!(found[2].continuity, Continuity::NewRun);
    let runs: Vec<_> = found.iter().map(|f| f.place.run.as_deref()).collect();
    assert_eq!(runs, [Some("1"), Some("1"), Some("2")]);
    assert_eq!(found[0].place.file, None, "there is one file");
}

#[test]
fn files_of_a_long_table_go_on_where_the_one_before_ends() {
    let folder = Folder::with("a.csv", "t,tag,value\n0,a,1\n0,b,2\n1,a,3\n");
    folder.write("b.csv", "value;tag;t\n9;b;1\n5;b;2\n");
    let mut stream = open(&long(), &folder, &["?.csv"], &Labels::Source).unwrap();
    let (found, error) = drain(&mut stream);
    assert!(error.is_none());
    assert_eq!(seconds(&found), [0.0, 1.0, 2.0]);
    let notes: Vec<_> = found[2].notes.iter().map(|n| (n.what, n.line)).collect();
    assert_eq!(notes, [(NoteKind::DuplicateStamp, 2)], "an instant is not split over files");
    let files: Vec<_> = found.iter().map(|f| f.place.file.as_deref()).collect();
    assert_eq!(files, [Some("a.csv"), Some("a.csv"), Some("b.csv")]);
}

#[test]
fn every_frame_knows_its_file_and_its_run_where_there_are_several() {
    let folder = Folder::with("a.csv", "t,a\n0,1\n1,2\n");
    folder.write("b.csv", "t,a\n0,3\n");
    let runs = TableSource { runs: Runs::PerFile, ..source() };
    let found = frames(&mut open(&runs, &folder, &["?.csv"], &Labels::Source).unwrap());
    let places: Vec<_> =
        found.iter().map(|f| (f.place.file.as_deref(), f.place.run.as_deref())).collect();
    let (a, b) = ((Some("a.csv"), Some("1")), (Some("b.csv"), Some("2")));
    assert_eq!(places, [a, a, b]);
    let alone = frames(&mut open(&runs, &folder, &["a.csv"], &Labels::Source).unwrap());
    assert!(alone.iter().all(|frame| frame.place == crate::stream::Place::default()));
}

fn formats(format: TimeFormat) -> TableSource {
    let mut source = source();
    source.time.format = format;
    source
}

fn day_first() -> TimeFormat {
    TimeFormat::Pattern("%d/%m/%Y %H:%M".into())
}

fn month_first() -> TimeFormat {
    TimeFormat::Pattern("%m/%d/%Y %H:%M".into())
}

#[test]
fn each_file_may_write_its_times_in_its_own_format() {
    let folder = Folder::with("a.csv", "t,a\n13/01/2020 00:00,1\n13/01/2020 00:01,2\n");
    folder.write("b.csv", "t,a\n2020-01-13 00:02,3\n2020-01-13 00:03,4\n");
    let named =
        TimeFormat::PerFile(vec![("a*".into(), day_first()), ("*".into(), TimeFormat::Auto)]);
    for format in [TimeFormat::Detect(vec![TimeFormat::Auto, month_first(), day_first()]), named] {
        let source = formats(format);
        let found = frames(&mut open(&source, &folder, &["?.csv"], &Labels::Source).unwrap());
        assert_eq!(values(&found), [[1.0], [2.0], [3.0], [4.0]]);
        assert!(found[1..].iter().all(|f| f.continuity == Continuity::Next));
        assert_eq!(found[0].time.to_string(), "2020-01-13T00:00:00Z");
        let told = time_formats(&source, folder.path(), &["?.csv".into()]).unwrap();
        let auto = ("b.csv".to_owned(), "a common notation".to_owned());
        assert_eq!(told, [("a.csv".to_owned(), "\"%d/%m/%Y %H:%M\"".to_owned()), auto]);
    }
}

#[test]
fn a_time_format_that_cannot_be_told_is_refused_and_not_guessed() {
    let refused = |format: TimeFormat, text: &str| read(&formats(format), text).1;
    let either = || TimeFormat::Detect(vec![day_first(), month_first()]);
    let doubtful = refused(either(), "t,a\n03/03/2020 00:00,1\n04/03/2020 00:00,2\n");
    assert!(doubtful.starts_with("t.csv:3: the time \"04/03/2020 00:00\""), "{doubtful}");
    assert!(doubtful.contains("PerFile"), "{doubtful}");
    let neither = refused(either(), "t,a\n03/03/2020 00:00,1\nnoon,2\n");
    assert!(neither.starts_with("t.csv:3:1: t: expected a time in one format"), "{neither}");
    let unnamed = refused(TimeFormat::PerFile(vec![("a*".into(), day_first())]), "t,a\n");
    assert!(unnamed.contains("t.csv: `PerFile` names no time format"), "{unnamed}");
    // What a later row decides is decided.
    let (found, error) = read(&formats(either()), "t,a\n04/03/2020 00:00,1\n25/03/2020 00:00,2\n");
    assert_eq!((error.as_str(), found.len()), ("", 2));
    assert_eq!(found[0].time.to_string(), "2020-03-04T00:00:00Z");
}
