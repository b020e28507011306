//! The history that a live session has learned, and a long table that arrives line by line.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use jiff::SignedDuration;
use serde_json::Value;

use crate::live::{program, run_with_input, wait_until};
use crate::started::Started;
use crate::wrong_rows::{begin, row, whole};

/// Learns from the first 15 minutes.
fn session(folder: &Path, source: &str) {
    let text = format!(
        "Session(about: \"live\", source: Live(input: Stdin, {source}), \
         clients: [(name: \"A\", columns: [\"a1\", \"a2\"]), (name: \"B\", columns: [\"b1\", \"b2\"])], \
         sampling: (decimate: Every(1)), seed: 1, \
         model: (proprietary: Linear, federation: Batched(rounds: 1)), \
         ranges: (fit: (until: \"+600s\"), calibration: (from: \"+600s\", until: \"+900s\")))"
    );
    fs::write(folder.join("live.ron"), text).expect("writable");
}

fn begin_run(folder: &Path) -> Started {
    let mut command = program(folder);
    command.current_dir(folder).args(["run", "live.ron", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Started::by(&mut command)
}

/// Runs the session on these lines from standard input.
fn run(folder: &Path, lines: String) -> Output {
    let mut command = program(folder);
    run_with_input(command.current_dir(folder).args(["run", "live.ron", "--json"]), lines)
}

fn cells(t: usize) -> Vec<String> {
    row(begin() + SignedDuration::from_secs(whole(t)), t)
}

fn wide(rows: std::ops::Range<usize>) -> String {
    let lines = rows.map(|t| cells(t).join(",") + "\n");
    "timestamp,a1,a2,b1,b2\n".to_owned() + &lines.collect::<String>()
}

/// A file of the history that was kept.
fn kept(folder: &Path, name: &str) -> PathBuf {
    let of = fs::read_dir(folder.join("live")).expect("a folder").next().expect("one session");
    of.expect("readable").path().join(name)
}

#[test]
fn a_damaged_history_of_a_live_source_is_not_learned_from_and_not_forgotten_in_silence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    session(folder, "history: Learned");
    assert!(run(folder, wide(0..960)).status.success());
    let rows = kept(folder, "history.rows");
    let sound = fs::read(&rows).expect("kept");
    let mut damaged = sound.clone();
    damaged[sound.len() / 2] ^= 1;
    for damaged in [damaged, sound[..sound.len() - 48].to_vec()] {
        fs::write(&rows, damaged).expect("damaged");
        // Models are made again, where there are any.
        let _ = fs::remove_dir_all(folder.join("cache"));
        let output = run(folder, wide(960..1020));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the history is damaged"), "{said}");
    }
    fs::write(&rows, sound).expect("repaired");
    assert!(run(folder, wide(960..1020)).status.success());
    fs::write(kept(folder, "history.json"), "{\"rows\":9").expect("damaged");
    let output = run(folder, wide(1020..1080));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("remove this file to learn anew"), "{said}");
}

#[test]
fn rows_gathered_so_far_are_not_thrown_away_where_they_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    session(folder, "history: Learned");
    // The source ends before enough was learned.
    assert!(!run(folder, wide(0..300)).status.success());
    let part = kept(folder, "history.part");
    let sound = fs::read(&part).expect("kept");
    fs::write(&part, &sound[1..]).expect("damaged");
    let output = run(folder, wide(300..960));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("remove this file to learn anew"), "{said}");
    assert_eq!(fs::read(&part).expect("still there"), sound[1..]);
    fs::write(&part, &sound).expect("repaired");
    let output = run(folder, wide(300..960));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_second_program_that_would_learn_the_same_live_session_says_that_it_is_in_use() {
    for history in ["history: Learned", "history: First"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        session(folder, history);
        let mut first = begin_run(folder);
        let mut rows = first.stdin.take().expect("its input");
        rows.write_all(wide(0..300).as_bytes()).expect("it reads");
        rows.flush().expect("it reads");
        wait_until("the first one", || {
            folder.join("live").exists()
                && fs::read_dir(folder.join("live")).expect("a folder").next().is_some()
                && kept(folder, "history.part").exists()
        });
        let second = run(folder, wide(0..960));
        let said = String::from_utf8_lossy(&second.stderr);
        assert_eq!(second.status.code(), Some(1), "{said}");
        let who = format!("live is in use: process {} learns", first.id());
        assert!(said.contains(&who), "{history}: {said}");
        assert!(said.contains("HEADWATER_LIVE"), "what can be done: {said}");
        // A killed program leaves no lock behind.
        first.kill().expect("it runs");
        first.wait().expect("it ends");
        let third = run(folder, wide(0..960));
        assert!(third.status.success(), "{}", String::from_utf8_lossy(&third.stderr));
    }
}

#[test]
fn a_clock_that_moves_while_a_live_source_is_learned_from_is_told_at_every_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    session(folder, "history: Learned");
    // Half a minute back after five minutes, and again after ten.
    let moved = |t: usize| whole(t) - 30 * whole(t / 300).min(2);
    let line = |t: usize| row(begin() + SignedDuration::from_secs(moved(t)), t).join(",") + "\n";
    let table = |rows: std::ops::Range<usize>| {
        "timestamp,a1,a2,b1,b2\n".to_owned() + &rows.map(line).collect::<String>()
    };
    let output = run(folder, table(0..1500));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let told = |output: &Output| {
        let facts = String::from_utf8_lossy(&output.stdout).into_owned();
        let summary = facts.lines().last().expect("a summary");
        let summary: Value = serde_json::from_str(summary).expect("an object");
        let quality = facts.lines().filter(|line| line.contains("\"quality\"")).collect::<String>();
        (summary["unused_nominal_rows"]["clock_moves"].clone(), quality)
    };
    let (moves, quality) = told(&output);
    assert_eq!(moves, 2, "{said}");
    assert!(quality.contains("the clock of the nominal data moved 2 times"), "{quality}");
    // The next start learns nothing, and says the same.
    let output = run(folder, table(1500..1600));
    assert_eq!(told(&output).0, 2, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_long_table_line_by_line_loses_no_tag_and_what_comes_last_is_counted_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    session(folder, "lateness_s: 3600, shape: Long(tag: \"tag\", value: \"v\")");
    let mut lines = "timestamp,tag,v\n".to_owned();
    for t in 0..1500 {
        let cells = cells(t);
        for (tag, value) in ["a1", "a2", "b1", "b2"].iter().zip(&cells[1..]) {
            let _ = writeln!(lines, "{},{tag},{value}", cells[0]);
        }
    }
    lines += "no line of the table\n";
    let output = run(folder, lines);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let facts = String::from_utf8(output.stdout).expect("text");
    let summary: Value =
        serde_json::from_str(facts.lines().last().expect("a summary")).expect("an object");
    let unused = &summary["unused_rows"];
    assert_eq!((&summary["steps"], &unused["rows"]), (&600.into(), &1.into()), "{summary}");
    assert_eq!(unused["truncated_row"], 1, "{summary}");
}
