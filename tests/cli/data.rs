//! Every kind of data, read through the program: the built-in plants, what `make` writes, and the
//! real and standard data sets.

use std::fs;
use std::path::Path;

use crate::{headwater, shared};

fn stdout(args: &[&str]) -> String {
    // `check` says more where models are kept. None ever are in this folder.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-models");
    let output = headwater().env("HEADWATER_CACHE", cache).args(args).output();
    let output = output.expect("the program runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {complaint}");
    let answer = String::from_utf8(output.stdout).expect("the answer is text");
    // What preparing takes depends on the machine.
    let is_estimate = |line: &&str| line.starts_with("preparing   needs about ");
    let estimates = answer.lines().filter(is_estimate).count();
    assert_eq!(estimates, usize::from(args[0] == "check"), "{answer}");
    answer.split_inclusive('\n').filter(|line| !is_estimate(line)).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

#[test]
fn every_shipped_session_is_listed_and_understood() {
    insta::assert_snapshot!(stdout(&["sessions"]));
}

#[test]
fn the_attack_day_is_checked_whole_with_its_twenty_attacks() {
    insta::assert_snapshot!(stdout(&["check", "plant-attack-day", "--full"]));
}

#[test]
fn the_twins_are_checked_whole_with_their_anomalies() {
    insta::assert_snapshot!(stdout(&["check", "twin", "--full"]));
}

#[test]
fn missing_hai_files_are_named_with_the_place_they_are_published() {
    let output = headwater()
        .current_dir(std::env::temp_dir())
        .args(["check", "hai-23.05-aug-12", "--data", "nowhere"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_plant_that_was_written_is_read_back_as_hai_and_as_a_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = text(folder.path());
    let said = stdout(&["make", "plant", "--seed", "1", "--hours", "2", "--attacks", "--out", out]);
    assert!(said.contains("S101"), "{said}");
    let session = |source: &str, clients: &str| {
        format!(
            "Session(about: \"written\", source: {source}, {clients} ranges: (\n\
             fit: (files: [\"plant.csv\"], until: \"+30m\"),\n\
             calibration: (files: [\"plant.csv\"], from: \"+30m\", until: \"+1h\"),\n\
             replay: (files: [\"plant.csv\"])))"
        )
    };
    let hai = session("Hai(version: \"22.04\", data: \".\")", "");
    let table = session(
        "Table(data: \".\", time: (column: \"timestamp\"))",
        "clients: [(name: \"P1\", columns: [\"P1_*\"]), (name: \"P2\", columns: [\"P2_*\"])], \
         labels: Column(name: \"Attack\"),",
    );
    for (name, session) in [("hai", hai), ("table", table)] {
        let path = folder.path().join(format!("{name}.ron"));
        fs::write(&path, session).expect("the session can be written");
        let answer = stdout(&["check", text(&path), "--full"]);
        assert!(answer.contains("7200 frames of 1 s"), "{answer}");
        assert!(answer.contains("1 in the replay range"), "the attack is found again: {answer}");
    }
}

/// The root of a clone of the HAI repository holds one folder a release.
#[test]
fn the_root_of_a_clone_of_the_data_set_is_a_data_folder() {
    let clone = tempfile::tempdir().expect("a temporary folder");
    let (out, release) = (clone.path().join("written"), clone.path().join("hai-22.04"));
    stdout(&["make", "plant", "--hours", "1", "--out", text(&out)]);
    fs::create_dir(&release).expect("a folder can be made");
    for name in ["train1.csv", "train2.csv", "test1.csv"] {
        fs::copy(out.join("plant.csv"), release.join(name)).expect("the day can be copied");
    }
    let answer = stdout(&["check", "hai-22.04", "--data", text(clone.path())]);
    assert!(answer.contains("in the replay range"), "{answer}");
}

/// A file of HAI 23.05 with the values of `rows` over and over, at these times.
fn file_of_hai(path: &Path, header: &str, rows: &[&str], times: impl Iterator<Item = String>) {
    let lines = times.zip(rows.iter().cycle()).map(|(time, values)| format!("{time},{values}\n"));
    let text: String = std::iter::once(format!("{header}\n")).chain(lines).collect();
    fs::write(path, text).expect("the clone can be written");
}

/// Seconds from midnight of a day of August 2022.
fn in_august(day: u32, seconds: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    seconds
        .map(move |s| format!("2022-08-{day:02} {:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60))
}

/// The paper's day has eight attacks on the boiler, and the rest of the second file 38.
#[test]
fn a_clone_of_hai_23_05_holds_the_eight_attacks_of_the_paper_and_the_38_others() {
    let clone = tempfile::tempdir().expect("a temporary folder");
    let (out, release) = (clone.path().join("written"), clone.path().join("hai-23.05"));
    stdout(&["make", "plant", "--hours", "0.5", "--out", text(&out)]);
    fs::create_dir(&release).expect("a folder can be made");
    let plant = fs::read_to_string(out.join("plant.csv")).expect("the half hour was written");
    let mut lines = plant.lines();
    let header = lines.next().expect("a header");
    let rows: Vec<&str> =
        lines.map(|line| line.split_once(',').expect("time and values").1).collect();
    let file = |name: &str, times: Box<dyn Iterator<Item = String>>| {
        file_of_hai(&release.join(name), header, &rows, times);
    };
    // Both sessions learn from the first file: one from 10,000 steps, the other from 16 hours.
    let train = in_august(5, 0..11_000).chain(in_august(5, 16 * 3600..17 * 3600));
    file("hai-train1.csv", Box::new(train));
    file("hai-test1.csv", Box::new(in_august(12, 16 * 3600..17 * 3600)));
    file("hai-test2.csv", Box::new(in_august(17, 0..3600)));
    let found = |session: &str| {
        let answer = stdout(&["check", session, "--data", text(clone.path())]);
        let events = answer.lines().find(|line| line.starts_with("events"));
        events.unwrap_or_else(|| panic!("no events: {answer}")).to_owned()
    };
    let papers = found("hai-23.05-aug-12-paper");
    assert!(papers.ends_with("in the replay range: 8 P1"), "{papers}");
    assert!(papers.contains(" 8 of "), "{papers}");
    let others = found("hai-23.05-test2");
    assert!(others.contains(" 38 in the replay range: "), "{others}");
}

#[test]
fn what_make_writes_is_the_same_bytes_for_the_same_seed() {
    let written = |what: &str, seed: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = text(folder.path());
        let hours: &[&str] = if what == "plant" { &["--hours", "0.5"] } else { &[] };
        let args = [&["make", what, "--seed", seed, "--out", out][..], hours].concat();
        stdout(&args);
        let mut files: Vec<_> = fs::read_dir(folder.path())
            .expect("the folder was written")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        assert_eq!(files.len(), 2, "data and truth, nothing half written: {files:?}");
        files.into_iter().map(|f| fs::read(f).expect("readable")).collect::<Vec<_>>()
    };
    for what in ["plant", "twin"] {
        assert_eq!(written(what, "3"), written(what, "3"), "{what}");
        assert_ne!(written(what, "3")[0], written(what, "4")[0], "{what}");
    }
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn tennessee_eastman_is_read_whole() {
    let data = shared("data/tep");
    let answer = stdout(&["check", "tep", "--full", "--data", text(&data)]);
    insta::assert_snapshot!(answer.replace(text(&data), "[data]"));
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn batadal_is_read_whole() {
    let data = shared("data/batadal");
    let answer = stdout(&["check", "batadal", "--full", "--data", text(&data)]);
    insta::assert_snapshot!(answer.replace(text(&data), "[data]"));
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn a_real_hour_of_hai_is_read_whole() {
    let data = shared("data/hai");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("hour.ron");
    let file = "files: [\"hai-20.07-train1-first3498s.csv.gz\"]";
    fs::write(
        &path,
        format!(
            "Session(about: \"a real hour\", source: Hai(version: \"20.07\", data: \".\"), ranges: (\n\
             fit: ({file}, until: \"+30m\"), calibration: ({file}, from: \"+30m\"), replay: ({file})))"
        ),
    )
    .expect("the session can be written");
    let answer = stdout(&["check", text(&path), "--full", "--data", text(&data)]);
    insta::assert_snapshot!(answer.replace(text(&data), "[data]"));
}
