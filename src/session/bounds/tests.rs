use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::session::{Session, SessionError};

/// Every choice that holds a number stands in one of these.
const ALL_NUMBERS: [&str; 6] = [
    "Session(about: \"x\", source: Plant(), sampling: (period_s: 1, decimate: Every(5)), \
     thresholds: (tau_c: Percentile(95), tau_a: Value(3), vote: (k: 3, n: 5)), \
     privacy: (epsilon_c: 1, epsilon_a: 1, epsilon_g: 1, epsilon_flag: 1, epsilon_flag_a: 1, \
     contraction: 0.5, send: Window(6), budget: (epsilon: 4, over: Hour, at_zero: AlarmsOnly(reserve: 1))), \
     record: (most_mb: 64), limits: (memory_gb: 4, preparation_h: 1))",
    "Session(about: \"x\", source: Twin(), model: (federation: Batched(rounds: 4)), \
     thresholds: (tau_c: Value(3), tau_a: Percentile(95)), \
     privacy: (epsilon_flag: 1, send: Memoised(permanent: 2)))",
    "Session(about: \"x\", source: Twin(), model: (federation: Online(passes: 4)))",
    "Session(about: \"x\", source: Table(data: \"d\", time: (column: \"t\")), \
     clients: [(name: \"A\", columns: [\"a\"])], labels: Column(name: \"l\", unlabelled: [-1.0]), \
     ranges: (fit: (files: [\"a\"]), calibration: (files: [\"b\"]), replay: (files: [\"c\"])))",
    "Session(about: \"x\", source: Live(input: Stdin), clients: [(name: \"A\", columns: [\"a\"])], \
     ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\")))",
    "Session(about: \"x\", source: Live(input: OpcUa(url: \"opc.tcp://plc\")), \
     clients: [(name: \"A\", columns: [\"a\"])], \
     ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\")))",
];

fn parse(text: &str) -> Result<Session, SessionError> {
    Session::parse("test.ron", Path::new(""), text)
}

/// Key and choice of every number in `value`; names of choices stand in no key.
fn numbers(value: &Value, key: &str, choice: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Number(_) => found.push((key.to_owned(), choice.to_owned())),
        Value::Object(parts) => {
            for (name, part) in parts {
                if name.starts_with(char::is_uppercase) {
                    let choice = if part.is_number() { name } else { "" };
                    numbers(part, key, choice, found);
                } else {
                    let dot = if key.is_empty() { "" } else { "." };
                    numbers(part, &format!("{key}{dot}{name}"), "", found);
                }
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| numbers(part, key, choice, found)),
        _ => {}
    }
}

#[test]
fn every_number_of_a_session_has_a_bound_and_every_bound_is_of_a_number() {
    let mut found = Vec::new();
    for text in ALL_NUMBERS {
        let session = parse(text).expect("a sound session");
        let value = serde_json::to_value(&session).expect("a session is JSON");
        numbers(&value, "", "", &mut found);
    }
    for (key, choice) in found.iter().filter(|(key, _)| key != "seed") {
        assert!(bound(key, choice).is_some(), "{key} {choice} has no bound");
    }
    // Lengths of time are written with their unit, as text.
    let spans = ["thresholds.arl0", "replay.tail"];
    for bound in BOUNDS.iter().filter(|bound| !spans.contains(&bound.key)) {
        let known = |(key, choice): &(String, String)| key == bound.key && choice == bound.choice;
        assert!(found.iter().any(known), "{} {} is no number", bound.key, bound.choice);
    }
}

const RANGES: &str = "ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", \
    until: \"+2h\"), replay: (from: \"+2h\"))";

/// A session whose number under a key is written as `value`, on line 3.
fn with(bound: &Bound, value: &str) -> String {
    let key = bound.key;
    let last = key.rsplit('.').next().unwrap_or(key);
    let own = match (key, bound.choice) {
        ("source.history_h" | "source.hours" | "source.grid_feedback", _) => {
            return format!(
                "Session(about: \"x\", source: Plant(\n\n    {last}: {value}), {RANGES})"
            );
        }
        ("source.clients" | "source.delta", _) => {
            return format!("Session(about: \"x\", source: Twin(\n\n    {last}: {value}))");
        }
        ("source.time.utc_offset_h", _) => {
            let time = format!("time: (column: \"t\",\n\n    utc_offset_h: {value})");
            return ALL_NUMBERS[3].replace("time: (column: \"t\")", &time);
        }
        ("source.grid_s" | "source.lateness_s" | "source.hold_s", _) => {
            let input = format!("input: Stdin,\n\n    {last}: {value}");
            return ALL_NUMBERS[4].replace("input: Stdin", &input);
        }
        ("source.input.publishing_ms", _) => {
            let url = "url: \"opc.tcp://plc\"";
            return ALL_NUMBERS[5].replace(url, &format!("{url},\n\n    publishing_ms: {value}"));
        }
        ("labels.unlabelled", _) => {
            let label = format!("unlabelled: [\n\n    {value}]");
            return ALL_NUMBERS[3].replace("unlabelled: [-1.0]", &label);
        }
        ("model.federation.passes", _) => format!("model: (federation: Online(passes: {value}))"),
        ("model.federation.rounds", _) => format!("model: (federation: Batched(rounds: {value}))"),
        ("thresholds.vote.k", _) => format!("thresholds: (vote: (k: {value}, n: 1000))"),
        ("thresholds.vote.n", _) => format!("thresholds: (vote: (k: 1, n: {value}))"),
        ("thresholds.arl0" | "replay.tail", _) => {
            let (part, key) = key.split_once('.').expect("a key of a part");
            format!("{part}: ({key}: \"{value}s\")")
        }
        ("privacy.send", _) => {
            format!("privacy: (epsilon_flag: 1, send: Window({value}))")
        }
        ("privacy.send.permanent", _) => {
            format!("privacy: (epsilon_flag: 1, send: Memoised(permanent: {value}))")
        }
        ("privacy.watch.epsilon" | "privacy.watch.burst", _) => {
            format!("privacy: (watch: ({last}: {value}))")
        }
        ("privacy.budget.epsilon", _) => {
            format!("privacy: (epsilon_flag: 1, budget: (epsilon: {value}))")
        }
        ("privacy.budget.at_zero.reserve", _) => format!(
            "privacy: (epsilon_flag: 1, budget: (epsilon: 1e9, at_zero: AlarmsOnly(reserve: {value})))"
        ),
        (_, choice) => {
            let (part, key) = key.split_once('.').expect("a key of a part");
            if choice.is_empty() {
                format!("{part}: ({key}: {value})")
            } else {
                format!("{part}: ({key}: {choice}({value}))")
            }
        }
    };
    format!("Session(about: \"x\", source: Plant(),\n\n    {own})")
}

/// What a person or a program may write where a number belongs.
const EXTREMES: [&str; 19] = [
    "0",
    "-1",
    "-0.0",
    "1e30",
    "-1e30",
    "1e308",
    "1e999",
    "NaN",
    "inf",
    "-inf",
    "1e-300",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "-9223372036854775808",
    "1000000",
    "3000",
    "0x7fffffff",
    "1_000",
];

/// What is said is a refusal in words with the place of the number and its bound.
fn is_told(bound: &Bound, text: &str, why: &str) -> Result<(), String> {
    let place = why.starts_with("test.ron:3:");
    // Lengths of time have words of their own; a wrong word in a bracket has lost its key.
    let words = why.contains(&format!("expected {bound}, found")) || why.contains("length of time");
    if place && words { Ok(()) } else { Err(format!("{}: {text}\n{why}", bound.key)) }
}

#[test]
fn a_number_outside_its_bound_is_refused_with_its_place_and_its_bound() {
    let mut refused = 0;
    for bound in BOUNDS {
        for value in EXTREMES {
            let text = with(bound, value);
            if let Err(why) = parse(&text) {
                refused += 1;
                is_told(bound, &text, &why.to_string()).expect("a refusal in words");
            } else {
                let number: f64 = value.replace('_', "").parse().unwrap_or(f64::from(i32::MAX));
                assert!(bound.holds(number), "{} takes {value}", bound.key);
            }
        }
    }
    assert!(refused > BOUNDS.len() * 10, "{refused}");
}

#[test]
fn the_ends_of_every_bound_are_what_it_says() {
    for bound in BOUNDS {
        for (end, open) in [(bound.least, bound.open[0]), (bound.most, bound.open[1])] {
            let told = parse(&with(bound, &end.to_string()));
            assert_eq!(told.is_err(), open, "{} at {end}: {told:?}", bound.key);
        }
    }
}

proptest! {
    #[test]
    fn no_number_makes_the_reader_of_sessions_panic(
        at in 0..BOUNDS.len(), value in "-?[0-9]{1,40}(\\.[0-9]{0,9})?(e-?[0-9]{1,4})?",
    ) {
        let text = with(&BOUNDS[at], &value);
        if let Err(why) = parse(&text) {
            prop_assert_eq!(is_told(&BOUNDS[at], &text, &why.to_string()), Ok(()));
        }
    }
}
