//! `headwater study` as a person or a program uses it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::{headwater, shared};

#[test]
fn an_unknown_study_is_refused_with_the_name_that_was_probably_meant() {
    let output = headwater().args(["study", "detecton"]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("did you mean `detection`?"), "{complaint}");
    assert!(complaint.contains("threshold") && complaint.contains("batadal"), "{complaint}");
}

#[test]
fn without_a_name_the_studies_are_listed() {
    let output = headwater().arg("study").output().expect("the program runs");
    assert!(output.status.success());
    let list = String::from_utf8_lossy(&output.stdout);
    for name in ["detection", "threshold", "plant", "hai", "tep", "batadal", "overview", "all"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
}

#[test]
fn a_study_of_data_that_is_not_here_says_where_it_can_be_had() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let output = headwater()
        .args(["study", "batadal", "--data"])
        .arg(folder.path())
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("batadal needs data that is not here"), "{complaint}");
    assert!(complaint.contains("BATADAL_dataset03.csv") && complaint.contains("https://"));
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn a_study_is_one_json_object_and_the_same_from_the_cache_and_draws_for_both_themes() {
    let data = shared("data");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let pictures = folder.path().join("pictures");
    let study = || {
        let output = headwater()
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .args(["study", "batadal", "--json", "--data"])
            .arg(&data)
            .arg("--svg")
            .arg(&pictures)
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let text = study();
    assert_eq!(text.lines().count(), 1);
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["study"], "batadal");
    let rows = report["rows"].as_array().expect("rows");
    let methods: Vec<&str> = rows.iter().filter_map(|row| row["method"].as_str()).collect();
    assert_eq!(methods[..4], ["evidence", "paper-95", "paper-99.5", "paper-99-vote"]);
    assert!(methods[4..].contains(&"centralised oracle, flags at 95 %"), "{methods:?}");
    for (k, row) in rows.iter().enumerate() {
        assert_eq!((&row["family"], &row["seeds"]), (&"batadal".into(), &1.into()));
        if k >= 4 {
            assert!(row.get("arl0").is_some() && row.get("arl1").is_some(), "{row}");
            continue;
        }
        for figure in ["precision", "recall", "f1", "arl0", "arl1", "delay", "attribution"] {
            assert!(row.get(figure).is_some(), "{figure} is missing in {row}");
        }
    }
    assert_eq!(study(), text, "from the cache");
    let mut drawn: Vec<String> = std::fs::read_dir(&pictures)
        .expect("the folder was made")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    drawn.sort();
    assert_eq!(drawn, ["batadal-accuracy-batadal-dark.svg", "batadal-accuracy-batadal-light.svg"]);
}

/// The list of deviations is what a user comes for; the effects that are not known yet take hours.
#[test]
fn the_deviations_are_listed_before_any_of_them_is_measured() {
    let cache = tempfile::tempdir().expect("a folder for the test");
    let mut study = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["study", "deviations"])
        .env("HEADWATER_CACHE", cache.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let lines = BufReader::new(study.stdout.take().expect("a pipe")).lines();
    let list: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.contains("jobs are to be done now"))
        .collect();
    study.kill().expect("it is still measuring");
    study.wait().expect("it ends");
    let list = list.join("\n");
    for part in ["Every deviation from the paper", "no effect on figures", "not run"] {
        assert!(list.contains(part), "{part}: {list}");
    }
}
