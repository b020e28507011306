//! Tables as people and programs write them, well and badly.

use super::testing::{Folder, client, drain, frames, gz, open, read, seconds, source, values};
use super::*;
use crate::session::{Delimiter, EventSettings, Runs, TimeFormat};
use crate::stream::{Continuity, Label, Note, NoteKind};

const PLAIN: &str = "t,a,b\n0,1.5,2\n1,2.5,3\n2,3.5,4\n";

#[test]
fn delimiters_line_ends_quotes_blanks_and_compression_do_not_change_a_frame() {
    let (expected, error) = read(&source(), PLAIN);
    assert_eq!(error, "");
    assert_eq!(values(&expected), [[1.5, 2.0], [2.5, 3.0], [3.5, 4.0]]);
    assert_eq!(seconds(&expected), [0.0, 1.0, 2.0]);
    let continuity: Vec<_> = expected.iter().map(|f| f.continuity).collect();
    assert_eq!(continuity, [Continuity::NewRun, Continuity::Next, Continuity::Next]);
    let halves = PLAIN.split_at(20);
    for content in [
        PLAIN.replace(',', ";").into_bytes(),
        PLAIN.replace(',', "\t").into_bytes(),
        PLAIN.replace(',', ";").replace('.', ",").into_bytes(),
        PLAIN.replace('\n', "\r\n").into_bytes(),
        PLAIN.replace('\n', "\n\n").into_bytes(),
        PLAIN.replace('\n', "\r").into_bytes(),
        gz(PLAIN.replace('\n', "\r")),
        PLAIN.replace(',', ", ").into_bytes(),
        PLAIN.trim_end().into(),
        format!("\u{feff}{PLAIN}").into_bytes(),
        PLAIN.replace("a,b", " \"a\" ,\"b\"").replace("1.5", "\"1.5\"").into_bytes(),
        gz(PLAIN),
        [gz(halves.0), gz(halves.1)].concat(),
    ] {
        let (found, error) = read(&source(), &content);
        assert_eq!(error, "", "{:?}", String::from_utf8_lossy(&content));
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(&content));
    }
}

#[test]
fn a_named_delimiter_is_not_guessed() {
    let semicolons = TableSource { delimiter: Delimiter::Semicolon, ..source() };
    let (found, error) = read(&semicolons, "t;a,b,c\n0;1,5\n");
    assert_eq!((error.as_str(), values(&found)), ("", vec![vec![1.5]]));
}

#[test]
fn missing_and_infinite_cells_are_missing_and_nothing_else_is() {
    let text = "t,a,b\n0,,NaN\n1,inf,-inf\n2,Bad Input,n/a\n3,0,-0\n";
    let (found, error) = read(&source(), text);
    assert_eq!(error, "");
    assert!(found[..3].iter().flat_map(|f| &f.values).all(|v| v.is_nan()));
    assert_eq!(found[3].values, [0.0, 0.0]);
}

#[test]
fn text_in_a_monitored_cell_is_an_error_with_file_line_column_and_tag() {
    let (found, error) = read(&source(), "t,a,b\n0,1,2\n\n1,1,ON\n2,1,2\n");
    assert_eq!(found.len(), 1);
    assert_eq!(
        error,
        "t.csv:4:3: b: expected a number (a word for \"missing\" can be added to `missing`), \
         found \"ON\""
    );
}

#[test]
fn columns_that_nobody_watches_are_not_understood_and_need_not_be() {
    let folder = Folder::with("t.csv", b"t,note,a\n0,all \xe9 well,1\n1,\"two, words\",2\n");
    let files = ["t.csv".to_owned()];
    let clients = [client("A", &["a"])];
    let stream =
        TableStream::open(&source(), folder.path(), &files, &clients, &Labels::Source, None);
    let found = frames(&mut stream.expect("a table"));
    assert_eq!(values(&found), [[1.0], [2.0]]);
}

#[test]
fn a_ragged_row_says_how_many_cells_were_expected_and_found() {
    let (found, error) = read(&source(), "t,a,b\n0,1,2\n1,1\n2,1,2\n");
    assert_eq!((found.len(), error.as_str()), (1, "t.csv:3: expected 3 cells, found 2"));
    let (_, error) = read(&source(), "t,a,b\n0,1,2,3");
    assert_eq!(error, "t.csv:2: expected 3 cells, found 4");
}

#[test]
fn a_row_that_a_stopped_writer_left_unfinished_is_left_out_and_noted() {
    for end in ["2,3", "2", "2,3.5,-1e", "2,x"] {
        let folder = Folder::with("a.csv", format!("t,a,b\n0,1,2\n1,1,2\n{end}"));
        folder.write("b.csv", "t,a,b\n5,7,8\n");
        let mut stream = open(&source(), &folder, &["a.csv", "b.csv"], &Labels::Source).unwrap();
        let found = frames(&mut stream);
        assert_eq!(seconds(&found), [0.0, 1.0, 5.0], "{end}");
        let note = Note { place: "a.csv".into(), line: 4, rows: 1, what: NoteKind::TruncatedRow };
        assert_eq!(found[2].notes, [note], "{end}");
    }
}

#[test]
fn what_was_left_out_after_the_last_frame_comes_with_the_end() {
    let folder = Folder::with("t.csv", "t,a\n0,1\n1");
    let mut stream = open(&source(), &folder, &["t.csv"], &Labels::Source).unwrap();
    let mut frame = Frame::default();
    assert!(stream.next(&mut frame).unwrap() && frame.notes.is_empty());
    assert!(!stream.next(&mut frame).unwrap());
    assert_eq!(frame.notes.len(), 1);
}

#[test]
fn damaged_gzip_gives_the_frames_before_the_damage_and_then_says_the_line() {
    let lines: Vec<String> =
        (0..20_000).map(|i| format!("{i},{},{}", i * 7 % 13, i * 11 % 17)).collect();
    let whole = gz(format!("t,a,b\n{}\n", lines.join("\n")));
    let (all, _) = read(&source(), &whole);
    let (found, error) = read(&source(), &whole[..whole.len() / 2]);
    assert!(found.len() > 1000 && found.len() < 20_000, "{} frames", found.len());
    assert_eq!(found, all[..found.len()]);
    let line = format!("t.csv:{}: the compressed data is damaged or ends early", found.len() + 2);
    assert!(error.starts_with(&line), "{error}");
    let mut corrupt = whole.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 40].fill(0xa5);
    let (found, error) = read(&source(), &corrupt);
    assert!(!error.is_empty() && found.len() < 20_000, "{error}");
}

#[test]
fn repeated_and_backward_stamps_are_left_out_and_holes_are_gaps() {
    let text = "t,a\n0,0\n1,1\n1,9\n1,9\n0,9\n2,2\n3.4,3\n10,4\n";
    let (found, error) = read(&source(), text);
    assert_eq!(error, "");
    assert_eq!(values(&found), [[0.0], [1.0], [2.0], [3.0], [4.0]]);
    let note = |line, rows, what| Note { place: "t.csv".into(), line, rows, what };
    assert_eq!(
        found[2].notes,
        [note(4, 2, NoteKind::DuplicateStamp), note(6, 1, NoteKind::BackwardStamp)]
    );
    assert!(found[3].notes.is_empty());
    assert_eq!(found[3].continuity, Continuity::Next, "jitter is no gap");
    assert!(
        matches!(found[4].continuity, Continuity::Gap { seconds } if (seconds - 5.6).abs() < 1e-9)
    );
}

#[test]
fn files_are_read_by_the_names_of_their_columns() {
    let folder = Folder::with("a.csv", "t,a,b\n0,1,2\n");
    folder.write("b.csv", "extra;b ; a;t\n9;4;3;1\n");
    let mut stream = open(&source(), &folder, &["?.csv"], &Labels::Source).unwrap();
    assert_eq!(values(&frames(&mut stream)), [[1.0, 2.0], [3.0, 4.0]]);
}

#[test]
fn a_header_that_does_not_fit_fails_at_once_in_whichever_file_it_is() {
    let folder = Folder::with("a.csv", "t,a,b\n0,1,2\n");
    folder.write("b.csv", "t,a,bb\n1,1,2\n");
    folder.write("c.csv", "time,a,b\n1,1,2\n");
    folder.write("d.csv", "t,a,b,a\n1,1,2,3\n");
    let refused = |file: &str| {
        let error = open(&source(), &folder, &["a.csv", file], &Labels::Source).err();
        error.expect("does not fit").to_string()
    };
    assert!(refused("b.csv").ends_with("b.csv:1: no column \"b\"; the nearest is \"bb\""));
    assert!(refused("c.csv").contains("c.csv:1: no time column \"t\""));
    assert!(refused("d.csv").ends_with("d.csv:1: there are two columns \"a\""));
}

#[test]
fn a_file_in_the_wrong_order_is_refused_and_not_dropped() {
    let folder = Folder::with("a.csv", "t,a\n5,1\n6,2\n");
    folder.write("b.csv", "t,a\n1,1\n2,2\n");
    let mut stream = open(&source(), &folder, &["a.csv", "b.csv"], &Labels::Source).unwrap();
    let (found, error) = drain(&mut stream);
    assert_eq!(found.len(), 2);
    let error = error.expect("a file in the wrong order").to_string();
    assert!(error.contains("b.csv: every row is older"), "{error}");
}

#[test]
fn separate_runs_are_placed_one_after_the_other() {
    let folder = Folder::with("a.csv", "t,a,r\n60,1,1\n120,2,1\n60,3,2\n120,4,2\n");
    folder.write("b.csv", "t,a,r\n60,5,2\n120,6,2\n");
    let runs = TableSource { runs: Runs::PerFile, run_column: Some("r".into()), ..source() };
    let mut stream = open(&runs, &folder, &["*.csv"], &Labels::Source).unwrap();
    let found = frames(&mut stream);
    assert_eq!(seconds(&found), [60.0, 120.0, 180.0, 240.0, 300.0, 360.0]);
    let new: Vec<bool> = found.iter().map(|f| f.continuity == Continuity::NewRun).collect();
    assert_eq!(new, [true, false, true, false, true, false]);
    assert_eq!(found[0].values.len(), 1, "a pattern takes in neither time nor run");
}

#[test]
fn rows_can_count_as_time() {
    let rows = TableSource {
        time: crate::session::TimeColumn {
            column: "t".into(),
            format: TimeFormat::Rows { since: "1970-01-01 00:01".into() },
            utc_offset_h: 0.0,
        },
        ..source()
    };
    let folder = Folder::with("a.csv", "t,a\n,1\n,2\n");
    folder.write("b.csv", "a\n3\n");
    let files = ["a.csv".to_owned(), "b.csv".into()];
    let clients = [client("A", &["*"])];
    let labels = Labels::Source;
    let open = TableStream::open(&rows, folder.path(), &files, &clients, &labels, Some(10.0));
    let found = frames(&mut open.expect("a table"));
    assert_eq!(seconds(&found), [60.0, 70.0, 80.0]);
    assert!(found[1..].iter().all(|f| f.continuity == Continuity::Next));
}

#[test]
fn the_period_is_given_or_found() {
    let folder = Folder::with("a.csv", "t,a\n0,1\n");
    folder.write("b.csv", "t,a\n60,1\n120,1\n180,1\n400,1\n");
    let stream = open(&source(), &folder, &["a.csv", "b.csv"], &Labels::Source).unwrap();
    assert!((stream.layout().period_s - 60.0).abs() < 1e-12);
    for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-12] {
        let files = ["a.csv".to_owned()];
        let clients = [client("A", &["*"])];
        let labels = Labels::Source;
        let open =
            TableStream::open(&source(), folder.path(), &files, &clients, &labels, Some(nonsense));
        assert!(matches!(open.err(), Some(StreamError::Setting(_))), "{nonsense}");
    }
}

fn column(origins: &[(&str, &str)]) -> Labels {
    Labels::Column {
        name: "y".into(),
        unlabelled: vec![-999.0],
        origins: origins.iter().map(|(p, c)| ((*p).to_owned(), (*c).to_owned())).collect(),
    }
}

#[test]
fn stretches_of_a_label_column_become_events_as_they_are_met() {
    let text =
        "t,a,y,r\n0,1,0,x\n1,1,1,x\n2,1,2,x\n3,1,-999,x\n4,1,1,x\n5,1,1,z\n6,1,,z\n7,1,0,z\n";
    let folder = Folder::with("day.csv.gz", gz(text));
    let runs = TableSource { run_column: Some("r".into()), ..source() };
    let mut stream =
        open(&runs, &folder, &["day.csv"], &column(&[("night*", "none"), ("day*", "all")]));
    assert!(stream.is_err(), "an origin must be a client");
    stream = open(&runs, &folder, &["day.csv"], &column(&[("day*", "all")]));
    let mut stream = stream.expect("a table");
    assert!(stream.events().is_empty());
    let found = frames(&mut stream);
    let labels: Vec<Label> = found.iter().map(|f| f.label).collect();
    let event = |i| Label::Anomalous { event: Some(i) };
    assert_eq!(
        labels,
        [
            Label::Normal,
            event(0),
            event(0),
            Label::Unlabelled,
            event(1),
            event(2),
            Label::Unlabelled,
            Label::Normal
        ]
    );
    let known: Vec<_> = stream
        .events()
        .iter()
        .map(|e| (e.id.as_str(), e.start.as_second(), e.end.as_second(), e.origins.len()))
        .collect();
    assert_eq!(known, [("day run x", 1, 2, 1), ("day run x (2)", 4, 4, 1), ("day run z", 5, 5, 1)]);
}

#[test]
fn listed_events_label_the_frames_between_their_ends() {
    let event = |start: &str, end: &str, origin: &str| EventSettings {
        id: "E".into(),
        start: start.into(),
        end: end.into(),
        origins: vec![origin.into()],
        what: "a test".into(),
    };
    let folder = Folder::with("t.csv", PLAIN);
    let open = |event| open(&source(), &folder, &["t.csv"], &Labels::Events(vec![event]));
    let good = event("1970-01-01 00:00:01", "1970-01-01T00:00:02Z", "all");
    let mut stream = open(good).expect("a table");
    assert_eq!(stream.events().len(), 1);
    let labels: Vec<Label> = frames(&mut stream).iter().map(|f| f.label).collect();
    let inside = Label::Anomalous { event: Some(0) };
    assert_eq!(labels, [Label::Normal, inside, inside]);
    for bad in [
        event("noon", "1970-01-01 00:00:02", "all"),
        event("1970-01-01 00:00:02", "1970-01-01 00:00:01", "all"),
        event("1970-01-01 00:00:01", "1970-01-01 00:00:02", "al"),
    ] {
        let error = open(bad).err().expect("a bad event").to_string();
        assert!(error.starts_with("event \"E\": "), "{error}");
    }
}

#[test]
fn a_file_of_events_is_read_with_its_own_columns_and_its_mistakes_have_lines() {
    let labels = Labels::EventFile {
        file: "events.csv".into(),
        start: "start".into(),
        end: "end".into(),
        origin: "where".into(),
        id: None,
    };
    let folder = Folder::with("t.csv", PLAIN);
    let with = |text: &str| {
        folder.write("events.csv", text);
        open(&source(), &folder, &["t.csv"], &labels)
    };
    let stream = with("start;end;where\n1;2;all\n1970-01-01 00:00:07;1970-01-01 00:00:08;\n");
    let mut stream = stream.expect("a table");
    let known: Vec<_> = stream.events().iter().map(|e| (e.id.as_str(), e.origins.len())).collect();
    assert_eq!(known, [("1", 1), ("2", 0)]);
    assert_eq!(frames(&mut stream)[2].label, Label::Anomalous { event: Some(0) });
    let refused = |text| with(text).err().expect("a mistake").to_string();
    assert!(refused("start,end,where\n1,2,all\n1,noon,all\n").contains("events.csv:3:2: end:"));
    assert!(refused("start,end,where\n1,2,none\n").contains("there is no client \"none\""));
    assert!(refused("start,end,where\n2,1,all\n").contains("events.csv:2: the event ends before"));
    assert!(refused("start,end,from\n1,2,all\n").contains("no origin column \"where\""));
    std::fs::remove_file(folder.path().join("events.csv")).expect("it was written");
    let error = open(&source(), &folder, &["t.csv"], &labels).err();
    assert!(matches!(error, Some(StreamError::MissingFiles { .. })));
}

#[test]
fn a_table_without_clients_or_files_is_refused_in_words() {
    let folder = Folder::with("t.csv", PLAIN);
    let files = ["t.csv".to_owned()];
    let open = |files: &[String]| {
        TableStream::open(&source(), folder.path(), files, &[], &Labels::Source, None)
            .err()
            .expect("nothing to read")
            .to_string()
    };
    assert!(open(&files).contains("clients"));
    assert!(open(&[]).contains("files"));
}
