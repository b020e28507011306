//! Real files of two public benchmarks, read whole.

use std::collections::BTreeMap;
use std::path::Path;

use super::testing::{client, frames};
use super::*;
use crate::session::source::missing_words;
use crate::session::{Delimiter, Runs, TimeColumn, TimeFormat};
use crate::shared;
use crate::stream::{Continuity, Label};

fn table(column: &str, format: TimeFormat) -> TableSource {
    TableSource {
        data: String::new(),
        delimiter: Delimiter::Auto,
        time: TimeColumn { column: column.into(), format, utc_offset_h: 0.0 },
        shape: Shape::Wide,
        missing: missing_words(),
        runs: Runs::Joined,
        run_column: None,
        published: None,
    }
}

/// Rows of a small CSV file as maps from header to cell.
fn records(path: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(path)
        .expect("a readable file")
        .deserialize()
        .map(|row| row.expect("a row"))
        .collect()
}

/// Clients as a file with a column for the name and one for the client has them.
fn clients(path: &Path, name: &str) -> Vec<ClientSettings> {
    let mut clients: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in records(path) {
        clients.entry(row["client"].clone()).or_default().push(row[name].clone());
    }
    let columns =
        |names: &[String]| client("", &names.iter().map(String::as_str).collect::<Vec<_>>());
    clients.into_iter().map(|(name, names)| ClientSettings { name, ..columns(&names) }).collect()
}

fn count(frames: &[Frame], label: fn(&Label) -> bool) -> usize {
    frames.iter().filter(|f| label(&f.label)).count()
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn every_run_of_tennessee_eastman_is_read_with_its_fault_and_its_origin() {
    let folder = shared::path("data/tep");
    let mut source = table("time_s", TimeFormat::Seconds { since: "2026-01-01 00:00".into() });
    source.runs = Runs::PerFile;
    source.run_column = Some("run".into());
    let clients = clients(&folder.join("tep_columns.csv"), "name");
    assert_eq!(clients.len(), 5);
    let origins: Vec<(String, String)> = records(&folder.join("tep_faults.csv"))
        .iter()
        .take(15)
        .map(|row| {
            let fault: u32 = row["idv"].parse().expect("a number");
            (format!("tep_idv{fault:02}_*"), row["origin_client"].clone())
        })
        .collect();
    let labels = Labels::Column {
        name: "fault_active".into(),
        unlabelled: vec![],
        origins: origins.clone(),
    };
    let open = |pattern: &str| {
        let files = [pattern.to_owned()];
        TableStream::open(&source, &folder, &files, &clients, &labels, None).expect("a table")
    };

    let mut normal = open("tep_normal72h*");
    assert_eq!(frames(&mut normal).len(), 4320);
    assert!(normal.events().is_empty());

    let mut faults = open("tep_idv*");
    assert!((faults.layout().period_s - 60.0).abs() < 1e-12);
    assert_eq!(faults.layout().width(), 53);
    let found = frames(&mut faults);
    assert_eq!(found.len(), 16 * 2 * 1440);
    assert_eq!(count(&found, |l| matches!(l, Label::Anomalous { .. })), 15 * 2 * 961);
    assert!(found.iter().flat_map(|f| &f.values).all(|v| v.is_finite()));
    for (i, frame) in found.iter().enumerate() {
        let first = i % 1440 == 0;
        assert_eq!(frame.continuity == Continuity::NewRun, first, "frame {i}");
        let passed = frame.time.duration_since(found[0].time).as_secs();
        assert_eq!(u64::try_from(passed), Ok(60 * i as u64), "frame {i}");
    }
    assert_eq!(faults.events().len(), 30);
    for (i, event) in faults.events().iter().enumerate() {
        let (fault, run) = (1 + i / 2, 1 + i % 2);
        assert_eq!(event.id, format!("tep_idv{fault:02}_60s run {run}"));
        assert_eq!(event.origins, [origins[fault - 1].1.clone()]);
        assert_eq!(event.end.duration_since(event.start).as_secs(), 960 * 60);
    }
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn batadal_is_read_whole_with_its_seven_attacks() {
    let folder = shared::path("data/batadal");
    let source = table("DATETIME", TimeFormat::Pattern("%d/%m/%y %H".into()));
    let clients = clients(&folder.join("clients.csv"), "column");
    assert_eq!(clients.len(), 6);
    let events = Labels::EventFile {
        file: "events.csv".into(),
        start: "start".into(),
        end: "end".into(),
        origin: "origin_client".into(),
        id: Some("attack_id".into()),
    };
    let open = |file: &str, labels: &Labels| {
        let files = [file.to_owned()];
        TableStream::open(&source, &folder, &files, &clients, labels, None).expect("a table")
    };
    let whole = |file, labels: &Labels, rows| {
        let mut stream = open(file, labels);
        assert!((stream.layout().period_s - 3600.0).abs() < 1e-9);
        assert_eq!(stream.layout().width(), 43);
        let found = frames(&mut stream);
        assert_eq!(found.len(), rows);
        assert!(found.iter().flat_map(|f| &f.values).all(|v| v.is_finite()));
        assert!(found[1..].iter().all(|f| f.continuity == Continuity::Next));
        (found, stream)
    };

    let (normal, _) = whole("BATADAL_dataset03.csv", &Labels::Source, 8761);
    assert_eq!(normal[0].time.to_string(), "2014-01-06T00:00:00Z");
    assert_eq!(count(&normal, |l| *l == Label::Unlabelled), 8761);

    let (attacked, stream) = whole("BATADAL_dataset04*", &events, 4177);
    assert_eq!(stream.events().len(), 7);
    assert_eq!(stream.events()[4].origins, ["S3_T4"]);
    let hours: i64 =
        stream.events().iter().map(|e| e.end.duration_since(e.start).as_hours() + 1).sum();
    let labelled = count(&attacked, |l| matches!(l, Label::Anomalous { .. }));
    assert_eq!(i64::try_from(labelled), Ok(hours));

    let column =
        Labels::Column { name: "ATT_FLAG".into(), unlabelled: vec![-999.0], origins: Vec::new() };
    let (flagged, stream) = whole("BATADAL_dataset04*", &column, 4177);
    assert_eq!(count(&flagged, |l| matches!(l, Label::Anomalous { .. })), 219);
    assert_eq!(count(&flagged, |l| *l == Label::Unlabelled), 3958);
    assert!(!stream.events().is_empty());
}

/// The z-scored pieces of HAI 21.03 have no time in most rows and stand in fragments, so they are a
/// table whose rows count as time, a run per fragment.
#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn fragments_of_hai_are_runs_of_a_table_without_time() {
    let folder = shared::path("data/hai");
    let mut source = table("time", TimeFormat::Rows { since: "2020-07-07 15:00".into() });
    source.run_column = Some("fragment".into());
    let clients = ["P1", "P2", "P3"].map(|name| client(name, &[&format!("{name}_*")]));
    let labels = Labels::Column {
        name: "attack".into(),
        unlabelled: vec![],
        origins: vec![("*".into(), "P1".into())],
    };
    let files = ["hai-21.03-fragments-zscored.csv.gz".to_owned()];
    let stream = TableStream::open(&source, &folder, &files, &clients, &labels, None);
    let mut stream = stream.expect("a table");
    let found = frames(&mut stream);
    assert_eq!(found.len(), 2420);
    assert_eq!(stream.layout().width(), 67);
    assert_eq!(found.iter().filter(|f| f.continuity == Continuity::NewRun).count(), 35);
    assert_eq!(count(&found, |l| matches!(l, Label::Anomalous { .. })), 430);
    assert_eq!(stream.events().len(), 5);
    let first = &stream.events()[0];
    assert_eq!(first.end.duration_since(first.start).as_secs(), 191, "A101 has 192 rows");
}
