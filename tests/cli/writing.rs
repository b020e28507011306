//! What is written by order: nothing is replaced unasked, and an interrupt leaves nothing half done.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::headwater;
use crate::started::Started;

fn make(folder: &Path, more: &[&str]) -> Output {
    headwater()
        .args(["make", "plant", "--hours", "0.1", "--out"])
        .arg(folder)
        .args(more)
        .output()
        .expect("the program runs")
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn make_does_not_replace_files_without_force_and_names_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("notes.txt"), "mine").expect("written");
    assert_eq!(make(folder.path(), &[]).status.code(), Some(0), "another file is in nobody's way");
    let table = folder.path().join("plant.csv");
    fs::write(&table, "precious").expect("written");

    let refused = make(folder.path(), &[]);
    assert_eq!(refused.status.code(), Some(1));
    let said = complaint(&refused);
    assert!(said.contains("plant.csv and plant-truth.json: --force replaces them"), "{said}");
    assert_eq!(fs::read(&table).expect("there"), b"precious");

    let forced = make(folder.path(), &["--force"]);
    assert_eq!(forced.status.code(), Some(0), "{}", complaint(&forced));
    assert!(fs::read(&table).expect("there").starts_with(b"timestamp"));
    assert_eq!(names(folder.path()), ["notes.txt", "plant-truth.json", "plant.csv"]);
}

#[test]
fn train_does_not_replace_a_file_without_force() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("own.model");
    fs::write(&model, "precious").expect("written");
    let refused = headwater()
        .env("HEADWATER_CACHE", folder.path().join("cache"))
        .args(["train", "twin", "--out"])
        .arg(&model)
        .output()
        .expect("the program runs");
    assert_eq!(refused.status.code(), Some(1));
    let said = complaint(&refused);
    assert!(said.contains("own.model is there already: --force replaces it"), "{said}");
    assert_eq!(fs::read(&model).expect("there"), b"precious");
}

#[test]
fn train_with_force_replaces_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A linear front end and one epoch: made in a moment.
    let session = "Session(about: \"short\", source: Plant(history_h: 1, hours: 0.5), sampling: \
        (decimate: Every(10)), model: (proprietary: Linear, epochs: 1))";
    fs::write(folder.path().join("short.ron"), session).expect("written");
    fs::write(folder.path().join("own.model"), "old").expect("written");
    let forced = headwater()
        .current_dir(folder.path())
        .args(["train", "short.ron", "--proprietary", "--out", "own.model", "--force"])
        .env("HEADWATER_CACHE", folder.path().join("cache"))
        .output()
        .expect("the program runs");
    assert_eq!(forced.status.code(), Some(0), "{}", complaint(&forced));
    assert_ne!(fs::read(folder.path().join("own.model")).expect("there"), b"old");
    assert!(names(folder.path()).iter().all(|name| !name.ends_with(".partial")));
}

/// Starts the program without waiting for it.
#[cfg(unix)]
fn start(folder: &Path, args: &[&str]) -> Started {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("HEADWATER_CACHE", folder.join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Started::by(&mut command)
}

/// Waits until `is_so`, which must happen before the program ends.
#[cfg(unix)]
fn wait_until(child: &mut Child, is_so: impl Fn() -> bool) {
    while !is_so() {
        let ended = child.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the program ended before the work was seen");
        sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().expect("signals can be sent");
    assert!(sent.success(), "the program ended before it could be interrupted");
}

/// Whether part of a table is on the disk already.
#[cfg(unix)]
fn is_writing(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let length = entry.metadata().map_or(0, |found| found.len());
        name.starts_with(".plant.csv.") && name.ends_with(".partial") && length > 0
    })
}

/// More than anybody waits for, and less than fills a disk where a signal is ignored.
#[cfg(unix)]
const LONG: [&str; 6] = ["make", "plant", "--hours", "2000", "--out", "out"];

#[test]
#[cfg(unix)]
fn an_interrupted_make_leaves_no_partial_file_and_says_what_remains() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("out");
        let mut child = start(folder.path(), &LONG);
        wait_until(&mut child, || is_writing(&out));
        send(signal, &child);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{signal}");
        let said = complaint(&output);
        assert!(said.contains("no file was written"), "{signal}: {said}");
        assert!(!out.exists(), "{signal}: a folder made for the files goes with them");
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_make_leaves_the_files_of_an_earlier_run_and_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("made");
    fs::write(out.join("plant.csv"), "precious").expect("written");
    let mut child = start(folder.path(), &[&LONG[..], &["--force"]].concat());
    wait_until(&mut child, || is_writing(&out));
    send("-INT", &child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let said = complaint(&output);
    assert!(said.contains("the earlier plant.csv remains in out"), "{said}");
    assert_eq!(names(&out), ["plant.csv"]);
    assert_eq!(fs::read(out.join("plant.csv")).expect("there"), b"precious");
}

#[test]
#[cfg(unix)]
fn a_partial_file_of_a_killed_make_is_removed_by_the_next_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let mut child = start(folder.path(), &LONG);
    wait_until(&mut child, || is_writing(&out));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert!(is_writing(&out), "a killed program cannot tidy up");

    let next = make(&out, &[]);
    assert_eq!(next.status.code(), Some(0), "{}", complaint(&next));
    let said = complaint(&next);
    assert!(said.contains("left by a run that was killed"), "{said}");
    assert_eq!(names(&out), ["plant-truth.json", "plant.csv"]);
}

#[test]
fn a_partial_file_that_somebody_writes_is_not_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = ".plant.csv.4711-0.partial";
    let writer = File::create(folder.path().join(name)).expect("created");
    writer.lock().expect("this file system has locks");
    assert_eq!(make(folder.path(), &[]).status.code(), Some(0));
    assert_eq!(names(folder.path()), [name, "plant-truth.json", "plant.csv"]);
}

#[test]
fn partial_files_of_killed_runs_are_removed_from_the_cache_at_the_next_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = folder.path().join("cache");
    fs::create_dir_all(cache.join("studies")).expect("made");
    let stale = [".any.model.4711.partial", "studies/.any.json.4711-2.partial"];
    for name in stale {
        fs::write(cache.join(name), "half").expect("written");
    }
    fs::write(cache.join("kept.model"), "whole").expect("written");
    let listed =
        headwater().env("HEADWATER_CACHE", &cache).arg("study").output().expect("the program runs");
    assert!(listed.status.success());
    assert!(stale.iter().all(|name| !cache.join(name).exists()));
    assert_eq!(names(&cache), ["kept.model", "studies"]);
}

/// Whether the program catches SIGTERM: from then on it is up to it what the signal means.
#[cfg(target_os = "linux")]
fn catches_sigterm(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & (1 << 14) != 0)
}

#[test]
#[cfg(target_os = "linux")]
fn a_make_that_was_started_to_outlive_its_terminal_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_headwater")).args(LONG).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Started::by(&mut command);
    wait_until(&mut child, || is_writing(&out));
    send("-HUP", &child);
    sleep(Duration::from_millis(500));
    assert!(child.try_wait().expect("it can be asked").is_none(), "it goes on");
    send("-TERM", &child);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(!out.exists(), "no partial file");
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_a_study_within_seconds_and_says_that_it_is_incomplete() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut child = start(folder.path(), &["study", "threshold"]);
    let id = child.id();
    wait_until(&mut child, || catches_sigterm(id));
    sleep(Duration::from_secs(1));
    let begun = Instant::now();
    send("-INT", &child);
    let output = child.wait_with_output().expect("it ends");
    let took = begun.elapsed();
    let said = complaint(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted:"), "{said}");
    assert!(said.contains("what is finished is kept, and the same command goes on"), "{said}");
    // 2.5 s, and what a busy machine takes beyond.
    assert!(took < Duration::from_secs(10), "{took:?}");
    let studies = folder.path().join("cache/studies");
    assert!(!studies.exists() || names(&studies).iter().all(|n| !n.ends_with(".partial")));
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_study_exits_with_an_error_and_leaves_no_partial_file() {
    // SIGTERM alone, and SIGTERM while it waits for the present job after Ctrl-C.
    for signals in [&["-TERM"][..], &["-INT", "-TERM"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = start(folder.path(), &["study", "threshold"]);
        let id = child.id();
        wait_until(&mut child, || catches_sigterm(id));
        for signal in signals {
            send(signal, &child);
        }
        let output = child.wait_with_output().expect("it ends");
        let said = complaint(&output);
        assert_eq!(output.status.code(), Some(1), "{signals:?}: {said}");
        assert!(said.contains("interrupted:"), "{said}");
        assert!(said.contains("what is finished is kept, and the same command goes on"), "{said}");
        let studies = folder.path().join("cache/studies");
        assert!(!studies.exists() || names(&studies).iter().all(|n| !n.ends_with(".partial")));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn sigterm_ends_a_run_in_the_middle_of_work_that_takes_hours() {
    // Drawing this plant takes minutes, and nothing in it asks whether to stop.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let session = "Session(about: \"vast\", source: Twin(clients: 1024))";
    fs::write(folder.path().join("vast.ron"), session).expect("written");
    let mut child = start(folder.path(), &["run", "vast.ron"]);
    let id = child.id();
    wait_until(&mut child, || catches_sigterm(id));
    send("-TERM", &child);
    let output = child.wait_with_output().expect("it ends");
    let said = complaint(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("of SIGTERM, in the middle of its work"), "{said}");
}
