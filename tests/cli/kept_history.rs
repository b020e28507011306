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

/// Lines whose clock is this many seconds off.
fn off(rows: std::ops::Range<usize>, seconds: impl Fn(usize) -> i64) -> String {
    let time = |t: usize| begin() + SignedDuration::from_secs(whole(t) + seconds(t));
    let lines = rows.map(|t| row(time(t), t).join(",") + "\n");
    "timestamp,a1,a2,b1,b2\n".to_owned() + &lines.collect::<String>()
}

/// Clock moves of the nominal data, the steps, and what is said about the quality of the data.
fn told(output: &Output) -> (Value, Value, String) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let facts = String::from_utf8_lossy(&output.stdout);
    let summary = facts.lines().last().expect("a summary");
    let mut summary: Value = serde_json::from_str(summary).expect("an object");
    let quality = facts.lines().filter(|line| line.contains("\"quality\"")).collect::<String>();
    let moves = summary["unused_nominal_rows"]["clock_moves"].take();
    (moves, summary["steps"].take(), quality)
}

#[test]
fn a_clock_that_moves_while_a_live_source_is_learned_from_is_told_at_every_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    session(folder, "history: Learned");
    // Half a minute back after five minutes, and again after ten.
    let back = |t: usize| -30 * whole(t / 300).min(2);
    for (rows, steps) in [(0..1500, 600), (1500..1600, 100)] {
        // The next start learns nothing, and says the same.
        let (moves, taken, quality) = told(&run(folder, off(rows, back)));
        assert_eq!((moves, taken), (2.into(), steps.into()));
        let first =
            "moved 2 times, first from 2024-10-27T00:05:00Z to 2024-10-27T00:04:30Z (-30 s)";
        assert!(quality.contains(&format!("the clock of the nominal data {first}")), "{quality}");
    }
}

#[test]
fn a_clock_that_jumps_ahead_while_a_live_source_is_learned_from_does_not_end_the_learning() {
    // While models are fitted, while alarms are calibrated, and there and back.
    let jumps: [&dyn Fn(usize) -> i64; 3] =
        [&|t| if t < 300 { 0 } else { 3600 }, &|t| if t < 700 { 0 } else { 3600 }, &|t| {
            if (300..500).contains(&t) { 3600 } else { 0 }
        }];
    for (history, (jump, clock)) in ["history: Learned", "history: First", "history: Learned"]
        .iter()
        .zip(jumps.iter().enumerate())
    {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        session(folder, history);
        let (moves, steps, quality) = told(&run(folder, off(0..1500, clock)));
        let times = if jump == 2 { 2 } else { 1 };
        assert_eq!((moves, steps), (times.into(), 600.into()), "{history}, jump {jump}");
        assert!(quality.contains("the clock of the nominal data moved"), "{quality}");
        assert!(quality.contains("(+3600 s); its rows are used"), "{quality}");
    }
}

#[test]
fn the_time_between_two_starts_does_not_count_as_learned() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    session(folder, "history: Learned");
    let later = |t: usize| if t < 300 { 0 } else { 5 * 3600 };
    let output = run(folder, off(0..300, later));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("ended after 5 min of history, and 15 min are needed"), "{said}");
    // Five hours later.
    let (_, steps, _) = told(&run(folder, off(300..1500, later)));
    assert_eq!(steps, 600);
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
