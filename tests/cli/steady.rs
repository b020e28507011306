//! What a run says does not depend on how it is run: its speed, a pause, the number of threads, or
//! whether its models were made just now.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::run::timeless;
use crate::started::Started;

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

/// `headwater run short.ron --json`.
fn command(folder: &Path, speed: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command
        .args(["run", "short.ron", "--json", "--speed", speed])
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
    let mut facts = timeless(&text);
    facts.retain(|line| !line.contains("\"training\""));
    facts
}

fn run(folder: &Path, speed: &str) -> Vec<String> {
    said(&command(folder, speed).output().expect("the program runs"))
}

#[test]
fn facts_are_the_same_bytes_fresh_or_kept_at_any_speed_and_through_a_pause() {
    let folder = place();
    let fresh = run(folder.path(), "max");
    assert!(fresh.iter().any(|line| line.contains("\"opened\"")), "{fresh:?}");
    assert_eq!(fresh, run(folder.path(), "max"), "kept models");
    assert_eq!(fresh, run(folder.path(), "4000"), "a quick replay");
    let slow = Started::by(&mut command(folder.path(), "3000"));
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
    // Models are made anew each time, on so many threads: ours, and those of the libraries.
    let on = |threads: &str| {
        let folder = place();
        let mut command = command(folder.path(), "max");
        command.env("HEADWATER_THREADS", threads).env("RAYON_NUM_THREADS", threads);
        said(&command.output().expect("the program runs"))
    };
    let alone = on("1");
    assert!(alone.iter().any(|line| line.contains("\"opened\"")), "{alone:?}");
    assert_eq!(alone, on("3"));
}
