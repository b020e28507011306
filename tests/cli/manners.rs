//! What the program says about itself, and pictures without a terminal.

use std::fs;
use std::path::Path;

use crate::{headwater, score};

const SHORT: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"))";

fn said(folder: &Path, args: &[&str]) -> String {
    let output = headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .env("HEADWATER_CONFIG", folder.join("config"))
        .args(args)
        .output()
        .expect("the program runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {complaint}");
    String::from_utf8(output.stdout).expect("the answer is text")
}

#[test]
fn the_manual_shows_the_keys_as_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = said(folder.path(), &["keys"]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide/manual.md");
    assert!(
        fs::read_to_string(file).expect("a manual").contains(&table),
        "put the answer of `headwater keys` into src/guide/manual.md:\n{table}"
    );
}

#[test]
fn the_name_of_a_session_where_a_command_belongs_is_answered_with_the_command() {
    let output = headwater().arg("twin").output().expect("the program runs");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("headwater open twin"), "{complaint}");
}

#[test]
fn the_example_of_keys_is_a_file_of_keys() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let before = said(folder.path(), &["keys"]);
    fs::create_dir(folder.path().join("config")).expect("a folder");
    let file = folder.path().join("config/keys.ron");
    fs::write(&file, said(folder.path(), &["keys", "--ron"])).expect("the file can be written");
    assert_eq!(said(folder.path(), &["keys"]), before);
    fs::write(&file, "{\"quit\": [\"e\"]}").expect("the file can be written");
    assert!(said(folder.path(), &["keys"]).contains("| `e` | quit |"));
    fs::write(&file, "{\"quit\": [\"?\"]}").expect("the file can be written");
    let output = headwater()
        .env("HEADWATER_CONFIG", folder.path().join("config"))
        .arg("keys")
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("keys.ron:1:11: \"?\" was the last key of \"help\""), "{complaint}");
}

#[test]
fn every_shell_has_completions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = said(folder.path(), &["completions", shell]);
        assert!(script.contains("screen") && script.contains("sessions"), "{shell}");
    }
}

#[test]
fn the_manual_page_names_every_command_and_every_key() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // What roff would take for its own is escaped in it.
    let page = said(folder.path(), &["man"]).replace("\\*(Aq", "'").replace('\\', "");
    assert!(page.starts_with(".ie") || page.starts_with(".TH"), "{page}");
    for words in ["COMMANDS", "KEYS", "EXIT STATUS", "headwater screen", "HEADWATER_CONFIG"] {
        assert!(page.contains(words), "{words}:\n{page}");
    }
    for row in said(folder.path(), &["keys"]).lines().skip(2) {
        let what = row.trim_end_matches(" |").rsplit("| ").next().expect("three columns");
        assert!(page.contains(what), "{what}");
    }
}

#[test]
fn without_a_terminal_the_console_is_the_plain_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("short.ron"), SHORT).expect("the session can be written");
    let timeless = |text: String| -> Vec<String> {
        // Only the first run trains, and the wall clock is never the same.
        let lines = text.lines().filter(|l| !l.starts_with("training") && !l.contains("a second)"));
        lines.map(str::to_owned).collect()
    };
    let opened = timeless(said(folder.path(), &["open", "short.ron"]));
    assert!(opened.len() > 3, "{opened:?}");
    assert_eq!(opened, timeless(said(folder.path(), &["run", "short.ron"])));
}

#[test]
fn a_picture_is_the_same_every_time_in_every_format() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("short.ron"), SHORT).expect("the session can be written");
    let screen = |more: &[&str]| {
        let args = ["screen", "short.ron", "--at", "+1h", "--size", "120x30"];
        said(folder.path(), &[&args, more].concat())
    };
    let text = screen(&[]);
    assert_eq!(text.lines().count(), 30, "{text}");
    assert!(text.contains("P1") && text.contains("short"), "{text}");
    assert_eq!(screen(&[]), text);
    let ansi = screen(&["--format", "ansi"]);
    assert!(ansi.contains("\x1b[0;1m"), "{ansi}");
    let svg = screen(&["--format", "svg", "--theme", "paper"]);
    assert!(svg.starts_with("<svg ") && svg.contains("#e4e4e4"), "{svg}");
    assert!(screen(&["--ascii"]).is_ascii());
    assert_ne!(screen(&["--view", "client"]), text);
    // The day begins at midnight.
    let at = ["screen", "short.ron", "--at", "01:00", "--size", "120x30"];
    assert_eq!(said(folder.path(), &at), text);
}

#[test]
fn a_picture_that_cannot_be_is_refused_in_words() {
    for args in [
        ["--size", "0x5"],
        ["--size", "wide"],
        ["--view", "nothing"],
        ["--at", "noon"],
        ["--at", "+1e19s"],
    ] {
        let output = headwater()
            .args(["screen", "plant-normal"])
            .args(args)
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_said_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = headwater()
        .current_dir(folder.path())
        .args(["score", "--truth", "nofile", "--alarms", "nofile"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.starts_with("headwater: nofile: "), "{complaint}");
    assert_eq!(complaint.matches("os error").count(), 1, "{complaint}");
}

#[test]
fn the_facts_of_a_run_that_was_stopped_are_scored_with_a_warning() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let facts = "{\"fact\":\"opened\",\"incident\":1,\"time\":\"2022-08-12T16:00:10Z\",\
                 \"root\":\"P1\"}\n{\"fact\":\"clos";
    let truth = "start,end,origin\n2022-08-12 16:00:00,2022-08-12 16:01:00,P1\n";
    let output = score(folder.path(), facts, truth);
    assert_eq!(output.status.code(), Some(0));
    let warning = String::from_utf8_lossy(&output.stderr);
    assert!(warning.starts_with("headwater: facts.jsonl:2: WARNING"), "{warning}");
    let score = String::from_utf8_lossy(&output.stdout);
    assert!(score.contains("\"root_right\":1") && score.contains("\"cut_at_line\":2"), "{score}");
}
