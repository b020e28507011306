//! What a run says does not depend on how it is run: its speed, a pause, the number of threads, or
//! whether its models were made just now.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Two hours of normal operation and a day of 96 minutes, in blocks of ten seconds: no model is
/// delivered for these, so all of them are made here.
const SESSION: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 2, hours: 1.6), sampling: (decimate: Every(10)), model: (epochs: 1, \
    federation: Batched(rounds: 8)), thresholds: (arl0: \"4h\"))";

fn place() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("short.ron"), SESSION).expect("the session can be written");
    folder
}

/// `headwater run short.ron --json`, started by `first` where that is given.
fn command(folder: &Path, first: &[&str], speed: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_headwater");
    let mut words: Vec<&str> = first.to_vec();
    words.extend([program, "run", "short.ron", "--json", "--speed", speed]);
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The facts but for training, which only a first run tells, and the summary's two figures that
/// depend on the machine.
fn said(output: &std::process::Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).expect("the answer is text");
    let timeless = |line: &str| {
        let mut fact: Value = serde_json::from_str(line).expect("a line is an object");
        if fact["fact"] != "summary" {
            return line.to_owned();
        }
        let fields = fact.as_object_mut().expect("an object");
        assert!(fields.remove("wall_s").is_some() && fields.remove("steps_per_s").is_some());
        fact.to_string()
    };
    text.lines().filter(|line| !line.contains("\"training\"")).map(timeless).collect()
}

fn run(folder: &Path, first: &[&str], speed: &str) -> Vec<String> {
    said(&command(folder, first, speed).output().expect("the program runs"))
}

#[test]
fn facts_are_the_same_bytes_fresh_or_kept_at_any_speed_and_through_a_pause() {
    let folder = place();
    let fresh = run(folder.path(), &[], "max");
    assert!(fresh.iter().any(|line| line.contains("\"opened\"")), "{fresh:?}");
    assert_eq!(fresh, run(folder.path(), &[], "max"), "kept models");
    assert_eq!(fresh, run(folder.path(), &[], "4000"), "a quick replay");
    let slow = command(folder.path(), &[], "3000").spawn().expect("the program runs");
    let id = slow.id().to_string();
    for signal in ["-STOP", "-CONT"] {
        sleep(Duration::from_millis(500));
        let sent = Command::new("kill").args([signal, &id]).status().expect("signals can be sent");
        assert!(sent.success(), "the run ended before it could be paused");
    }
    assert_eq!(fresh, said(&slow.wait_with_output().expect("it ends")), "a pause");
}

#[test]
fn facts_are_the_same_bytes_on_one_thread_and_on_several() {
    // What the program sees as its processors is what it makes threads for.
    let one = ["taskset", "--cpu-list", "0"];
    let there = Command::new(one[0]).args(&one[1..]).arg("true").status();
    if !there.is_ok_and(|status| status.success()) {
        eprintln!("\n*** NOT TESTED: a run cannot be kept to one processor here ***\n");
        return;
    }
    let (alone, several) = (place(), place());
    assert_eq!(run(alone.path(), &one, "max"), run(several.path(), &[], "max"));
}
