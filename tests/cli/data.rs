//! Every kind of data, read through the program: the built-in plants, what `make` writes, and the
//! real and standard data sets.

use std::fs;
use std::path::Path;

use crate::{headwater, shared};

fn stdout(args: &[&str]) -> String {
    let output = headwater().args(args).output().expect("the program runs");
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
