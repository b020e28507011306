//! The four releases: made up small here, real where pieces of them are at hand.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::attacks::attacks;
use super::tags::{tag, tags};
use super::*;
use crate::session::HaiSensors;
use crate::shared;
use crate::stream::table::testing::{Folder, client, drain, frames, gz};
use crate::stream::{Continuity, NoteKind};

fn source(version: Version) -> HaiSource {
    HaiSource { version: version.name().into(), data: String::new(), sensors: HaiSensors::Kept }
}

fn open(
    source: &HaiSource,
    folder: &Folder,
    files: &[&str],
    clients: &[ClientSettings],
) -> Result<HaiStream, StreamError> {
    let files: Vec<String> = files.iter().map(ToString::to_string).collect();
    HaiStream::open(source, folder.path(), &files, clients)
}

fn time(text: &str) -> Timestamp {
    Clock::utc().read_event(text).expect("a time")
}

/// The time of a row: one a second.
fn after(start: &str, row: usize) -> Timestamp {
    time(start) + SignedDuration::from_secs_f64(row as f64)
}

/// What column `column` of a made-up file holds in row `row`.
fn value(row: usize, column: usize) -> f64 {
    row as f64 + column as f64 / 100.0
}

/// A file of a release: its own header names, a row per second, labels where it keeps them.
fn made(version: Version, start: &str, rows: usize, attacked: impl Fn(usize) -> bool) -> String {
    let (time_column, delimiter, labels): (_, _, &[&str]) = match version {
        Version::V2007 => ("time", ";", &["attack", "attack_P1", "attack_P2", "attack_P3"]),
        Version::V2103 => ("time", ",", &["attack", "attack_P1", "attack_P2", "attack_P3"]),
        Version::V2204 => ("timestamp", ",", &["Attack"]),
        Version::V2305 => ("timestamp", ",", &[]),
    };
    let headers: Vec<&str> = tags(version).filter_map(|tag| tag.header(version)).collect();
    let mut lines = vec![[&[time_column], headers.as_slice(), labels].concat().join(delimiter)];
    for row in 0..rows {
        let stamp = after(start, row).strftime("%Y-%m-%d %H:%M:%S").to_string();
        let cells = (0..headers.len()).map(|column| value(row, column).to_string());
        let label = if attacked(row) { "1" } else { "0" };
        let labels = labels.iter().map(|_| label.to_owned());
        lines.push(
            std::iter::once(stamp).chain(cells).chain(labels).collect::<Vec<_>>().join(delimiter),
        );
    }
    lines.join("\n") + "\n"
}

/// A file of labels as `label-test2.csv` is: no seconds, CRLF.
fn labels(start: &str, rows: usize, attacked: impl Fn(usize) -> bool) -> String {
    let mut text = "timestamp,label\r\n".to_owned();
    for row in 0..rows {
        let stamp = after(start, row).strftime("%Y-%m-%d %-H:%M");
        write!(text, "{stamp},{}\r\n", u8::from(attacked(row))).expect("memory takes all");
    }
    text
}

fn file_name(version: Version) -> &'static str {
    match version {
        Version::V2007 => "test1.csv.gz",
        Version::V2103 | Version::V2204 => "test1.csv",
        Version::V2305 => "hai-test1.csv",
    }
}

fn packed(version: Version, text: String) -> Vec<u8> {
    if version == Version::V2007 { gz(text) } else { text.into_bytes() }
}

#[test]
fn one_session_with_canonical_names_fits_all_releases() {
    let watched = ["P1_B2016", "P2_VIBTR01", "P2_VIBTR04", "P2_AutoSD", "P2_VT01", "P3_LIT01"];
    for version in Version::ALL {
        let text = made(version, "2022-01-01 00:00:00", 3, |_| false);
        let folder = Folder::with(file_name(version), packed(version, text));
        let clients = [client("X", &watched[..5]), client("Y", &watched[5..])];
        let stream = open(&source(version), &folder, &["*test1*"], &clients);
        let mut stream = stream.unwrap_or_else(|e| panic!("{}: {e}", version.name()));
        let names: Vec<String> = stream
            .layout()
            .clients
            .iter()
            .flat_map(|c| &c.sensors)
            .map(|s| s.name.clone())
            .collect();
        assert_eq!(names, watched, "{}", version.name());
        assert_eq!(stream.layout().clients[0].sensors[0].unit, "bar");
        let place = |name| tags(version).position(|tag| tag.name == name).expect("a known tag");
        for (row, frame) in frames(&mut stream).iter().enumerate() {
            let expected: Vec<f64> = watched.iter().map(|name| value(row, place(*name))).collect();
            assert_eq!(frame.values, expected, "{}", version.name());
        }
    }
}

#[test]
fn without_clients_the_processes_watch_their_physical_sensors_or_everything() {
    for (version, kept, all) in [
        (Version::V2007, [11, 6, 1], [31, 12, 5]),
        (Version::V2103, [11, 7, 3], [38, 22, 7]),
        (Version::V2204, [12, 6, 3], [44, 24, 7]),
        (Version::V2305, [12, 6, 3], [44, 24, 7]),
    ] {
        let text = made(version, "2022-01-01 00:00:00", 1, |_| false);
        let folder = Folder::with(file_name(version), packed(version, text));
        for (sensors, expected) in [(HaiSensors::Kept, kept), (HaiSensors::All, all)] {
            let source = HaiSource { sensors, ..source(version) };
            let stream = open(&source, &folder, &["*test1*"], &[]).expect("a release");
            let found: Vec<usize> =
                stream.layout().clients.iter().map(|c| c.sensors.len()).collect();
            assert_eq!(found, expected, "{} {sensors:?}", version.name());
        }
    }
}

#[test]
fn labels_in_columns_find_their_attack_and_make_its_times_exact() {
    // In each release: attack, first row, first attacked row.
    for (version, id, from, first, rows) in [
        (Version::V2007, "A101", "2019-10-29 13:39:00", 75, 371),
        (Version::V2103, "A101", "2020-07-07 15:34:50", 21, 192),
        (Version::V2204, "A101", "2021-07-10 05:41:12", 10, 191),
    ] {
        let attacked = |row| (first..first + rows).contains(&row);
        let text = made(version, from, first + rows + 30, attacked);
        let folder = Folder::with(file_name(version), packed(version, text));
        let mut stream = open(&source(version), &folder, &["test1.csv"], &[]).expect("a release");
        let listed = stream.events().len();
        assert_eq!(listed, attacks(version).filter(|a| a.file == "test1").count());
        let found = frames(&mut stream);
        let inside = Label::Anomalous { event: Some(0) };
        let labels: Vec<bool> = found.iter().map(|f| f.label == inside).collect();
        assert_eq!(labels.iter().filter(|l| **l).count(), rows);
        assert!(found.iter().all(|f| f.label == inside || f.label == Label::Normal));
        assert_eq!(stream.events().len(), listed);
        let event = &stream.events()[0];
        assert_eq!((event.id.as_str(), event.origins.as_slice()), (id, &["P1".to_owned()][..]));
        assert_eq!(event.start, found[first].time, "{}", version.name());
        assert_eq!(event.end, found[first + rows - 1].time, "{}", version.name());
    }
}

/// The second attack of `hai-test2.csv` in the list: 03:37, 131 s.
fn second_test(label_rows: usize) -> (Folder, impl Fn(usize) -> bool + Copy) {
    let attacked = |row: usize| (37..37 + 132).contains(&row);
    let folder = Folder::new();
    let from = "2022-08-17 03:36:41";
    folder.write("hai-test2.csv", made(Version::V2305, from, 300, |_| false));
    folder.write("label-test2.csv.gz", gz(labels(from, label_rows, attacked)));
    (folder, attacked)
}

#[test]
fn labels_in_a_file_are_joined_row_by_row() {
    let (folder, attacked) = second_test(300);
    let mut stream = open(&source(Version::V2305), &folder, &["*test2*"], &[]).expect("a release");
    assert_eq!(stream.events().len(), 38);
    assert_eq!(stream.events()[1].start, time("2022-08-17 03:37"));
    let found = frames(&mut stream);
    for (row, frame) in found.iter().enumerate() {
        assert_eq!(frame.label == Label::Anomalous { event: Some(1) }, attacked(row), "row {row}");
    }
    let event = &stream.events()[1];
    assert_eq!((event.id.as_str(), event.start), ("A202", time("2022-08-17 03:37:18")));
    let rows = event.end.duration_since(event.start).as_secs() + 1;
    assert_eq!(rows, 131 + 1, "as many rows as seconds, and one");
}

#[test]
fn rows_that_are_left_out_keep_labels_in_step() {
    let (folder, attacked) = second_test(300);
    let text = std::fs::read_to_string(folder.path().join("hai-test2.csv")).expect("written");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[11] = lines[10];
    folder.write("hai-test2.csv", lines.join("\n") + "\n");
    let mut stream =
        open(&source(Version::V2305), &folder, &["hai-test2.csv"], &[]).expect("a release");
    let found = frames(&mut stream);
    assert_eq!(found.len(), 299);
    assert_eq!(found[10].notes[0].what, NoteKind::DuplicateStamp);
    let labelled = found.iter().filter(|f| f.label != Label::Normal).count();
    assert_eq!(labelled, (0..300).filter(|row| attacked(*row)).count());
    assert_eq!(stream.events()[1].start, time("2022-08-17 03:37:18"));
}

#[test]
fn a_file_of_labels_that_is_too_short_or_too_long_is_named_with_both_counts() {
    for label_rows in [290, 310, 0] {
        let (folder, _) = second_test(label_rows);
        let stream = open(&source(Version::V2305), &folder, &["hai-test2.csv"], &[]);
        let (_, error) = drain(&mut stream.expect("a release"));
        match error {
            Some(StreamError::LabelRows { labels, label_rows: found, data, data_rows }) => {
                assert_eq!((found, data_rows), (label_rows as u64, 300));
                assert_eq!(files::name(&labels), "label-test2.csv.gz");
                assert_eq!(files::name(&data), "hai-test2.csv");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_file_of_labels_without_a_label_column_is_refused_at_once() {
    let (folder, _) = second_test(300);
    folder.write("label-test2.csv", "timestamp,flag\n");
    let error = open(&source(Version::V2305), &folder, &["hai-test2.csv"], &[]).err();
    let error = error.expect("a wrong header").to_string();
    assert!(error.contains("label-test2.csv:1: no label column \"label\""), "{error}");
}

#[test]
fn files_without_labels_are_told_by_what_is_known_of_them() {
    let version = Version::V2305;
    let from = "2022-08-12 16:25:00";
    let text = made(version, from, 300, |_| false);
    let folder = Folder::with("hai-train1.csv", &text);
    folder.write("hai-test1.csv", &text);
    folder.write("piece.csv", &text);
    let labels_of = |file: &str| {
        let mut stream = open(&source(version), &folder, &[file], &[]).expect("a release");
        let found = frames(&mut stream);
        found.iter().map(|f| f.label).collect::<Vec<_>>()
    };
    assert!(labels_of("hai-train1.csv").iter().all(|l| *l == Label::Normal));
    assert!(labels_of("piece.csv").iter().all(|l| *l == Label::Unlabelled));
    // A101: 16:25:04, 237 s.
    let listed = labels_of("hai-test1.csv");
    let inside = Label::Anomalous { event: Some(0) };
    assert_eq!(listed.iter().position(|l| *l == inside), Some(4));
    assert_eq!(listed.iter().filter(|l| **l == inside).count(), 238);
    assert_eq!(listed[4 + 238], Label::Normal);
}

#[test]
fn a_renamed_piece_finds_its_attacks_by_their_time() {
    let text = made(Version::V2204, "2021-07-10 05:42:00", 10, |_| true);
    let folder = Folder::with("piece.csv", text);
    let mut stream =
        open(&source(Version::V2204), &folder, &["piece.csv"], &[]).expect("a release");
    assert!(stream.events().is_empty());
    let found = frames(&mut stream);
    assert!(found.iter().all(|f| f.label == Label::Anomalous { event: Some(0) }));
    let event = &stream.events()[0];
    assert_eq!(event.id, "A101");
    // The piece does not show where the attack starts and ends, so the list still counts.
    assert_eq!(event.start, time("2021-07-10 05:41:22"));
    assert_eq!(event.end, time("2021-07-10 05:44:32"));
}

#[test]
fn an_attack_that_no_list_knows_is_an_event_without_an_origin() {
    let text = made(Version::V2204, "2021-07-10 01:00:00", 10, |row| row > 4);
    let folder = Folder::with("test1.csv", text);
    let mut stream =
        open(&source(Version::V2204), &folder, &["test1.csv"], &[]).expect("a release");
    let found = frames(&mut stream);
    assert_eq!(found[5].label, Label::Anomalous { event: Some(7) });
    assert_eq!(stream.events().len(), 8, "the seven of the file and this one");
    let unlisted = &stream.events()[7];
    assert_eq!((unlisted.start, unlisted.end), (found[5].time, found[9].time));
    assert!(unlisted.origins.is_empty());
}

#[test]
fn an_attack_starts_in_the_clients_that_watch_its_process() {
    let text = made(Version::V2204, "2021-07-10 01:00:00", 1, |_| false);
    let folder = Folder::with("test1.csv", text);
    let clients = [
        client("pressure", &["P1_PIT0?"]),
        client("level", &["P1_LIT01"]),
        client("turbine", &["P2_SIT01"]),
    ];
    let stream = open(&source(Version::V2204), &folder, &["test1.csv"], &clients);
    let stream = stream.expect("a release");
    assert_eq!(stream.events()[0].origins, ["pressure", "level"]);
    let water = stream.events().iter().find(|e| e.id == "A104").expect("an attack on P3");
    assert_eq!(water.origins, ["P3"], "nobody watches it");
}

#[test]
fn status_words_and_counts_are_numbers_like_others() {
    let version = Version::V2204;
    let text = made(version, "2021-07-10 01:00:00", 2, |_| false);
    let place = tags(version).position(|t| t.name == "P1_PIT01_HH").expect("a known tag");
    let cell = format!(",{},", value(1, place));
    let folder = Folder::with("test1.csv", text.replace(&cell, ",524320,"));
    let source = HaiSource { sensors: HaiSensors::All, ..source(version) };
    let mut stream = open(&source, &folder, &["test1.csv"], &[]).expect("a release");
    let found = frames(&mut stream);
    assert!(found[1].values.contains(&524_320.0));
}

#[test]
fn an_unknown_release_and_missing_files_are_answered_with_what_there_is() {
    let folder = Folder::new();
    let wrong = HaiSource { version: "22.4".into(), ..source(Version::V2204) };
    let error = open(&wrong, &folder, &["test1.csv"], &[]).err().expect("no release").to_string();
    assert_eq!(error, "expected a HAI release of 20.07, 21.03, 22.04, 23.05, found \"22.4\"");
    let error = open(&source(Version::V2204), &folder, &["test1.csv"], &[]).err();
    let error = error.expect("no file").to_string();
    assert!(error.contains("test1.csv") && error.contains(PUBLISHED), "{error}");
}

#[test]
fn no_header_of_any_release_means_two_tags() {
    for version in Version::ALL {
        for tag_here in tags(version) {
            let header = tag_here.header(version).expect("a tag of this release");
            assert_eq!(tag(header), Some(tag_here));
            assert_eq!(tag(tag_here.name), Some(tag_here));
        }
    }
}

#[test]
fn no_two_attacks_are_so_near_that_a_label_could_mean_either() {
    for version in Version::ALL {
        let mut all: Vec<_> = attacks(version).collect();
        all.sort_by_key(|a| a.start);
        for pair in all.windows(2) {
            assert!(pair[1].start.duration_since(pair[0].end()).as_secs() > 240, "{pair:?}");
        }
    }
}

fn records(path: &Path) -> Vec<BTreeMap<String, String>> {
    let rows = csv::Reader::from_path(path).expect("a readable file").into_deserialize();
    rows.map(|row| row.expect("a row")).collect()
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn the_shipped_tags_are_those_of_the_releases() {
    let path = shared::path("reference/hai/columns.csv");
    let mut counts = [0; 4];
    for row in records(&path) {
        let version = Version::named(&row["version"]).expect("a release");
        counts[version as usize] += 1;
        let tag = tag(&row["column"]).unwrap_or_else(|| panic!("{} is unknown", row["column"]));
        assert_eq!(tag.header(version), Some(row["column"].as_str()));
        if !row["manual_v4_name"].is_empty() {
            assert_eq!(tag.name, row["manual_v4_name"]);
        }
        assert_eq!((tag.process, tag.kind), (row["process"].as_str(), row["kind"].as_str()));
        assert_eq!(tag.is_kept(), row["kept_physical_sensor"] == "1", "{}", tag.name);
        // The manual's unit of this level is that of 20.07 only: later releases hold raw counts.
        if tag.name != "P3_LIT01" && !["Boolean", "-"].contains(&row["unit"].as_str()) {
            assert_eq!(tag.unit(version), row["unit"], "{}", tag.name);
        }
    }
    assert_eq!(counts, [59, 79, 86, 86]);
    assert_eq!(Version::ALL.map(|version| tags(version).count()), counts);
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn the_shipped_attacks_are_those_of_the_releases() {
    let path = shared::path("reference/hai/attacks.csv");
    let listed = records(&path);
    let shipped = Version::ALL.into_iter().flat_map(attacks);
    assert_eq!(Version::ALL.map(|version| attacks(version).count()), [38, 50, 58, 52]);
    assert_eq!(listed.len(), 198);
    for (row, attack) in listed.iter().zip(shipped) {
        let found = (attack.version.name(), attack.id, attack.file);
        assert_eq!(found, (row["version"].as_str(), row["id"].as_str(), row["file"].as_str()));
        assert_eq!(attack.start, time(&row["start"]));
        assert_eq!(attack.end(), time(&row["end"]));
        assert_eq!(attack.duration_s.to_string(), row["duration_s"]);
        assert_eq!(attack.processes.join("+"), row["processes"]);
    }
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn an_hour_of_the_real_20_07_is_read() {
    let folder = shared::path("data/hai");
    let files = ["hai-20.07-train1-first3498s.csv.gz".to_owned()];
    let mut stream =
        HaiStream::open(&source(Version::V2007), &folder, &files, &[]).expect("a release");
    assert!((stream.layout().period_s - 1.0).abs() < 1e-12);
    let found = frames(&mut stream);
    assert_eq!(found.len(), 3498);
    assert_eq!(found[0].time, time("2019-09-11 20:00:00"));
    assert!(found[1..].iter().all(|f| f.continuity == Continuity::Next));
    assert!(found.iter().all(|f| f.label == Label::Normal && f.notes.is_empty()));
    assert!(found.iter().flat_map(|f| &f.values).all(|v| v.is_finite()));
    let level = &stream.layout().clients[2].sensors[0];
    assert_eq!((level.name.as_str(), level.unit.as_str()), ("P3_LIT01", "%"));
    let row = found[0].row(stream.layout(), 2);
    assert_eq!(row.raw_sensors(), [28.9352]);
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn four_days_of_the_real_20_07_thinned_out_are_read() {
    let folder = shared::path("data/hai");
    let files = ["hai-20.07-train1-every100s.csv".to_owned()];
    let source = HaiSource { sensors: HaiSensors::All, ..source(Version::V2007) };
    let mut stream = HaiStream::open(&source, &folder, &files, &[]).expect("a release");
    assert!((stream.layout().period_s - 100.0).abs() < 1e-12);
    let found = frames(&mut stream);
    assert_eq!(found.len(), 3096);
    assert!(found.iter().all(|f| f.label == Label::Unlabelled));
    assert!(found.iter().flat_map(|f| &f.values).all(|v| v.is_finite()));
}

#[test]
fn every_kind_of_sensor_fault_in_every_release_is_read_as_it_is_or_refused_by_its_place() {
    let mut files = 0;
    for version in Version::ALL {
        let (sensor, start) = ("P1_B2016", "2022-01-01 00:00:00");
        let sound = made(version, start, 60, |_| false);
        let header = tag(sensor).and_then(|tag| tag.header(version)).expect("a known tag");
        let delimiter = if version == Version::V2007 { ";" } else { "," };
        let lines: Vec<&str> = sound.lines().collect();
        let column = lines[0].split(delimiter).position(|name| name == header).expect("a column");
        // The rows 20 to 29 with something else in that column.
        let with = |cell: &dyn Fn(usize) -> Option<String>| -> String {
            let mut text = lines[0].to_owned() + "\n";
            for (row, line) in lines[1..].iter().enumerate() {
                let mut cells: Vec<String> = line.split(delimiter).map(str::to_owned).collect();
                match (20..30).contains(&row).then(|| cell(row)) {
                    None => {}
                    Some(Some(cell)) => cells[column] = cell,
                    Some(None) => continue,
                }
                text += &(cells.join(delimiter) + "\n");
            }
            text
        };
        let read = |text: String| {
            let folder = Folder::with(file_name(version), packed(version, text));
            let clients = [client("X", &[sensor]), client("Y", &["P3_LIT01"])];
            let mut stream = open(&source(version), &folder, &["*test1*"], &clients)?;
            match drain(&mut stream) {
                (frames, None) => Ok(frames),
                (_, Some(error)) => Err(error),
            }
        };
        let own = value(20, column - 1).to_string();
        for (fault, cell, expected) in [
            ("no number", "NaN", f64::NAN),
            ("empty", "", f64::NAN),
            ("infinite", "inf", f64::NAN),
            ("stuck", own.as_str(), value(20, column - 1)),
            ("out of range", "1e4", 1e4),
            ("wild", "-2147483648", -2_147_483_648.0),
        ] {
            let what = format!("{}: {fault}", version.name());
            let frames =
                read(with(&|_| Some(cell.to_owned()))).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(frames.len(), 60, "{what}");
            for (row, frame) in frames.iter().enumerate() {
                let own = value(row, column - 1);
                let expected = if (20..30).contains(&row) { expected } else { own };
                let found = frame.values[0];
                assert!(
                    found == expected || found.is_nan() && expected.is_nan(),
                    "{what}: {found}"
                );
            }
            files += 1;
        }
        let frames = read(with(&|_| None)).expect("a gap is no error");
        let gap = Continuity::Gap { seconds: 10.0 };
        assert_eq!((frames.len(), frames[20].continuity), (50, gap), "{}", version.name());
        let why = read(with(&|_| Some("ERR".to_owned()))).expect_err("text is no number");
        let why = why.to_string();
        assert!(why.contains(":22:") && why.contains("\"ERR\""), "{}: {why}", version.name());
        files += 2;
    }
    println!("{files} HAI files with faulty sensors: 8 kinds, 4 releases");
}
