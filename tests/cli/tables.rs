//! Tables of every shape, through the program.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::headwater;

/// Rows `from..to` of two clients with two sensors each, with the label of each row: noise, and in
/// rows 6300 to 6500 a step of the first client's sensors.
pub(crate) fn rows(from: u32, to: u32) -> Vec<(u32, [f64; 4], bool)> {
    let mut state = 0x2545_F491_u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut rows = Vec::new();
    for t in 0..to {
        let cells = [(); 4].map(|()| (0..12).map(|_| uniform()).sum::<f64>() - 6.0);
        let is_event = (6300..=6500).contains(&t);
        let step = if is_event { 20.0 } else { 0.0 };
        rows.push((t, [cells[0] + step, cells[1] + step, cells[2], cells[3]], is_event));
    }
    rows.split_off(from as usize)
}

const NAMES: [&str; 4] = ["a1", "a2", "b1", "b2"];

pub(crate) fn wide(from: u32, to: u32) -> String {
    let mut text = String::from("time,a1,a2,b1,b2,label\n");
    for (t, [a1, a2, b1, b2], label) in rows(from, to) {
        let label = u8::from(label);
        writeln!(text, "{t},{a1},{a2},{b1},{b2},{label}").expect("a text takes everything");
    }
    text
}

fn long(from: u32, to: u32) -> String {
    let mut text = String::from("time,tag,value\n");
    for (t, cells, label) in rows(from, to) {
        for (name, cell) in NAMES.iter().zip(cells) {
            writeln!(text, "{t},{name},{cell}").expect("a text takes everything");
        }
        writeln!(text, "{t},label,{}", u8::from(label)).expect("a text takes everything");
    }
    text
}

pub(crate) fn session(source: &str, replay: &str) -> String {
    format!(
        "Session(about: \"steps\", source: Table(data: \".\", \
         time: (column: \"time\", format: Seconds(since: \"2026-01-01 00:00:00\")){source}), \
         clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
         labels: Column(name: \"label\", origins: [(\"*\", \"A\")]), \
         ranges: (fit: (files: [\"fit.csv\"], until: \"+3000 steps\"), \
         calibration: (files: [\"fit.csv\"], from: \"+3000 steps\"), \
         replay: (files: [{replay}])), \
         sampling: (decimate: Every(1)), thresholds: (arl0: \"2900s\"), \
         model: (proprietary: Linear, epochs: 1, federation: Batched(rounds: 1)))"
    )
}

/// The facts of `run --json` and the lines of `run`, the machine's own figures and training aside.
fn run(folder: &Path, session: &str) -> (Vec<Value>, String) {
    fs::write(folder.join("own.ron"), session).expect("written");
    let said = |args: &[&str]| {
        let output = headwater()
            .current_dir(folder)
            .env("HEADWATER_CACHE", folder.join("cache"))
            .args(["run", "own.ron"])
            .args(args)
            .output()
            .expect("the program runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{complaint}");
        String::from_utf8(output.stdout).expect("text")
    };
    let mut facts: Vec<Value> =
        said(&["--json"]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    facts.retain(|fact| fact["fact"] != "training");
    for fact in &mut facts {
        let fields = fact.as_object_mut().expect("an object");
        fields.remove("wall_s");
        fields.remove("steps_per_s");
    }
    (facts, said(&[]))
}

fn is_incident(fact: &Value) -> bool {
    ["opened", "updated", "closed"].iter().any(|word| fact["fact"] == *word)
}

#[test]
fn a_long_table_gives_the_facts_of_the_wide_table_it_was_made_from() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let replay = "\"day.csv\"";
    fs::write(folder.path().join("fit.csv"), wide(0, 6000)).expect("written");
    fs::write(folder.path().join("day.csv"), wide(6000, 7000)).expect("written");
    let (expected, _) = run(folder.path(), &session("", replay));
    assert!(expected.iter().any(|fact| fact["fact"] == "opened"), "{expected:?}");
    for fact in &expected {
        assert!(fact.get("file").is_none() && fact.get("run").is_none(), "one file: {fact}");
    }
    let score = &expected.last().expect("a summary")["score"];
    let event = &score["events"][0];
    assert_eq!((&event["detected"], &event["right"]), (&true.into(), &true.into()), "{score}");
    assert_eq!(event["start"], "2026-01-01T01:45:00Z");
    assert_eq!(event["end"], "2026-01-01T01:48:20Z");
    assert_eq!(event["origins"], serde_json::json!(["A"]));
    assert_eq!(event["root"], "A");
    assert!(event["delay_s"].is_number());
    let quiet = score["quiet_days"].as_f64().expect("a number");
    assert!((quiet - (1000.0 - 500.0) / 86_400.0).abs() < 5.0 / 86_400.0, "{score}");

    fs::write(folder.path().join("fit.csv"), long(0, 6000)).expect("written");
    fs::write(folder.path().join("day.csv"), long(6000, 7000)).expect("written");
    let source = ", shape: Long(tag: \"tag\", value: \"value\")";
    assert_eq!(run(folder.path(), &session(source, replay)).0, expected);
}

#[test]
fn facts_and_lines_name_the_file_and_the_run_where_there_are_several() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("fit.csv"), wide(0, 6000)).expect("written");
    fs::write(folder.path().join("day1.csv"), wide(6000, 6200)).expect("written");
    // The second file has a row twice, and ends in the middle of one.
    let mut second = wide(6200, 7000);
    let row = second.lines().nth(10).expect("a row").to_owned() + "\n";
    let at = second.find(&row).expect("it is there");
    second.insert_str(at, &row);
    second.push_str("7000,1");
    fs::write(folder.path().join("day2.csv"), second).expect("written");
    let session = session(", runs: PerFile", "\"day1.csv\", \"day2.csv\"");
    let (facts, lines) = run(folder.path(), &session);
    let incidents: Vec<&Value> = facts.iter().filter(|fact| is_incident(fact)).collect();
    assert!(!incidents.is_empty(), "{facts:?}");
    for fact in facts.iter().filter(|fact| is_incident(fact) || fact["fact"] == "quality") {
        assert!(fact["file"].is_string() && fact["run"].is_string(), "{fact}");
    }
    let left_out: Vec<&Value> = facts
        .iter()
        .filter(|fact| fact["what"].as_str().is_some_and(|what| what.contains("row left out")))
        .collect();
    assert_eq!(left_out.len(), 2, "{facts:?}");
    assert!(left_out.iter().all(|fact| fact["file"] == "day2.csv" && fact["run"] == "2"));
    let of_event = |fact: &&&Value| fact["root"] == "A";
    let named = incidents.iter().find(of_event).expect("the event is found");
    assert_eq!((&named["file"], &named["run"]), (&"day2.csv".into(), &"2".into()));
    assert!(lines.contains("[day2.csv, run 2]"), "{lines}");
}

#[test]
fn check_says_how_each_file_writes_its_times() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = |text: String, pattern: &str| -> String {
        let start: jiff::civil::DateTime = "2026-01-13T00:00:00".parse().expect("a time");
        let line = |line: &str| {
            let (time, rest) = line.split_once(',').expect("cells");
            match time.parse::<i64>() {
                Ok(second) => {
                    let time = start + jiff::SignedDuration::from_secs(second);
                    format!("{},{rest}\n", time.strftime(pattern))
                }
                Err(_) => format!("{line}\n"),
            }
        };
        text.lines().map(line).collect()
    };
    let european = "%d.%m.%Y %H:%M:%S";
    fs::write(folder.path().join("fit.csv"), clock(wide(0, 600), european)).expect("written");
    let iso = clock(wide(600, 700), "%Y-%m-%d %H:%M:%S").replace('\n', "\r");
    fs::write(folder.path().join("day.csv"), iso).expect("written");
    let session = session("", "\"day.csv\"")
        .replace(
            "Seconds(since: \"2026-01-01 00:00:00\")",
            "Detect([Auto, Pattern(\"%d.%m.%Y %H:%M:%S\")])",
        )
        .replace("3000", "300");
    fs::write(folder.path().join("own.ron"), session).expect("written");
    let output = headwater()
        .current_dir(folder.path())
        .args(["check", "own.ron", "--full"])
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("fit.csv: times are written as \"%d.%m.%Y %H:%M:%S\""), "{said}");
    assert!(said.contains("day.csv: times are written as a common notation"), "{said}");
    assert!(said.contains("2026-01-13T00:11:39Z  100 frames of 1 s"), "{said}");
}
