//! Root causes in data that is not our own: pieces of a real testbed, a water network whose live data
//! is coarser than its nominal data, a client that is no longer what it was calibrated as.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{headwater, shared};

/// The facts of a run with nothing kept from another.
fn facts(session: &str, data: Option<&Path>) -> Vec<Value> {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let mut command = headwater();
    command.env("HEADWATER_CACHE", cache.path()).args(["run", session, "--json"]);
    if let Some(data) = data {
        command.arg("--data").arg(data);
    }
    let output = command.output().expect("the program runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{session}: {complaint}");
    let lines = String::from_utf8(output.stdout).expect("the answer is text");
    lines.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

fn score(facts: &[Value]) -> &Value {
    &facts.last().expect("a summary")["score"]
}

/// What was said about the data of a client.
fn said_of<'a>(facts: &'a [Value], client: &str) -> Vec<&'a str> {
    let of_client = |fact: &&Value| fact["fact"] == "quality" && fact["client"] == client;
    facts.iter().filter(of_client).filter_map(|fact| fact["what"].as_str()).collect()
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn three_real_attacks_are_seen_and_named_and_a_thin_calibration_is_said() {
    let data = shared("data/hai");
    let facts = facts("hai-21.03-fragments", Some(&data));
    let score = score(&facts);
    let figures = ["labelled", "detected", "root_right"].map(|figure| score[figure].as_u64());
    assert_eq!(figures, [Some(3); 3], "{score}");
    let said = said_of(&facts, "P1");
    assert!(said.contains(&"out of calibration"), "{said:?}");
    assert!(said.iter().any(|what| what.starts_with("calibrated on 80 steps")), "{said:?}");
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
fn attacks_on_a_water_network_are_found_although_live_data_is_coarser_than_nominal() {
    let data = shared("data/batadal");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("batadal.ron");
    let shipped = include_str!("../../sessions/batadal.ron");
    // A linear front end and a short training: made in a moment.
    let quick = "model: (proprietary: OwnLag, epochs: 1, federation: Batched(rounds: 5)),\n    \
                 thresholds";
    let session = shipped.replace("thresholds", quick);
    fs::write(&path, session).expect("the session can be written");
    let facts = facts(path.to_str().expect("a plain name"), Some(&data));
    let score = score(&facts);
    assert!(score["root_right"].as_u64() >= Some(6), "{score}");
    assert!(score["false_alarms"].as_u64() <= Some(12), "{score}");
    let said = said_of(&facts, "S1_T1");
    assert!(!said.contains(&"stuck"), "coarse is not stuck: {said:?}");
    assert!(said.iter().any(|what| what.starts_with("without P_J280: too coarse")), "{said:?}");
}

/// Two clients of two sensors each; from `restless_from` on the first one's noise is larger.
fn noise(rows: u32, restless_from: u32) -> String {
    let mut state = 0x2545_F491_u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut text = String::from("time,a1,a2,b1,b2\n");
    for t in 0..rows {
        let mut draw = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let wider = if t >= restless_from { 1.6 } else { 1.0 };
        let cells = [wider * draw(), wider * draw(), draw(), draw()];
        write!(text, "{t}").expect("a text takes everything");
        for cell in &cells {
            write!(text, ",{cell}").expect("a text takes everything");
        }
        text.push('\n');
    }
    text
}

#[test]
fn a_client_that_is_restless_all_day_is_said_to_be_out_of_calibration_and_the_other_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("noise.csv"), noise(9000, 6000)).expect("written");
    let session = "Session(about: \"noise\", source: Table(data: \".\", \
        time: (column: \"time\", format: Seconds(since: \"2026-01-01 00:00:00\"))), \
        clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
        ranges: (fit: (files: [\"noise.csv\"], until: \"+3000 steps\"), \
        calibration: (files: [\"noise.csv\"], from: \"+3000 steps\", until: \"+6000 steps\"), \
        replay: (files: [\"noise.csv\"], from: \"+6000 steps\")), \
        sampling: (decimate: Every(1)), thresholds: (arl0: \"2900s\"), \
        model: (proprietary: Linear, epochs: 1, federation: Batched(rounds: 1)))";
    let path = folder.path().join("noise.ron");
    fs::write(&path, session).expect("written");
    let facts = facts(path.to_str().expect("a plain name"), None);
    assert!(said_of(&facts, "A").contains(&"out of calibration"), "{facts:?}");
    assert_eq!(said_of(&facts, "B"), Vec::<&str>::new());
}
