//! `headwater run`: the contract of its lines, whatever the speed and in both modes.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{headwater, score};

/// Three hours of normal operation and two hours of a day with one attack on the boiler.
const SHORT: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")))";

/// A place of its own: nothing that another run has kept is found there.
fn place() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("short.ron"), SHORT).expect("the session can be written");
    folder
}

fn run(folder: &Path, args: &[&str]) -> String {
    let output = headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .arg("run")
        .args(args)
        .output()
        .expect("the program runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {complaint}");
    assert!(output.stderr.is_empty(), "no progress where nobody watches: {complaint}");
    String::from_utf8(output.stdout).expect("the answer is text")
}

fn facts(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

fn named<'a>(facts: &'a [Value], word: &str) -> Vec<&'a Value> {
    facts.iter().filter(|fact| fact["fact"] == word).collect()
}

/// The lines without the two figures that depend on the machine.
pub(crate) fn timeless(lines: &str) -> Vec<String> {
    let without = |line: &str| {
        let mut fact: Value = serde_json::from_str(line).expect("a line is an object");
        if fact["fact"] != "summary" {
            return line.to_owned();
        }
        let fields = fact.as_object_mut().expect("an object");
        assert!(fields.remove("wall_s").is_some() && fields.remove("steps_per_s").is_some());
        fact.to_string()
    };
    lines.lines().map(without).collect()
}

/// Asserts that the fields of a line stand in this order.
fn in_order(line: &str, fields: &[&str]) {
    let places: Vec<usize> = fields
        .iter()
        .map(|field| {
            line.find(&format!("\"{field}\":")).unwrap_or_else(|| panic!("{field}: {line}"))
        })
        .collect();
    assert!(places.is_sorted(), "{fields:?} in {line}");
}

fn time(value: &Value) -> jiff::Timestamp {
    value.as_str().expect("a text").parse().expect("RFC 3339")
}

#[test]
fn the_lines_of_a_short_day_keep_the_contract() {
    let folder = place();
    let lines = run(folder.path(), &["short.ron", "--json"]);
    for line in lines.lines() {
        let fields: &[&str] = match serde_json::from_str::<Value>(line).expect("an object")["fact"]
            .as_str()
            .expect("a word")
        {
            "training" => &["fact", "round", "rounds", "server_loss", "client_loss"],
            "calibrated" => &["fact", "client", "tau_c", "tau_a", "arl0_target"],
            "opened" | "updated" | "closed" => &[
                "fact",
                "incident",
                "time",
                "step",
                "root",
                "posterior",
                "first_out",
                "effects",
                "mode",
            ],
            "ledger" => &["fact", "client", "epsilon", "delta", "releases"],
            "quality" => &["fact", "client", "time", "what"],
            "summary" => &[
                "fact",
                "session",
                "mode",
                "seed",
                "clients",
                "steps",
                "incidents",
                "wall_s",
                "steps_per_s",
                "score",
                "from",
                "until",
            ],
            other => panic!("not in the contract: {other}"),
        };
        assert!(line.starts_with("{\"fact\":"), "{line}");
        in_order(line, fields);
    }

    let facts = facts(&lines);
    let words: Vec<&str> = facts.iter().filter_map(|fact| fact["fact"].as_str()).collect();
    assert_eq!(words[0], "training", "nothing was kept, so models learn");
    let rank = |word: &str| match word {
        "training" => 0,
        "calibrated" => 1,
        "ledger" => 3,
        "summary" => 4,
        _ => 2,
    };
    assert!(words.iter().map(|word| rank(word)).is_sorted(), "{words:?}");
    assert_eq!(named(&facts, "calibrated").len(), 3);
    assert_eq!(named(&facts, "ledger").len(), 3);
    let times: Vec<_> =
        facts.iter().filter(|f| f.get("time").is_some()).map(|f| time(&f["time"])).collect();
    assert!(times.is_sorted(), "facts come in the order of their time");

    let summary = facts.last().expect("a summary");
    assert_eq!(summary["session"], "short");
    assert_eq!((&summary["mode"], &summary["seed"]), (&"evidence".into(), &1.into()));
    assert_eq!((&summary["clients"], &summary["steps"]), (&3.into(), &1440.into()));
    assert_eq!(summary["incidents"], named(&facts, "opened").len());
    assert_eq!(named(&facts, "closed").len(), named(&facts, "opened").len(), "all are closed");
    let score = &summary["score"];
    assert_eq!((&score["labelled"], &score["root_right"]), (&1.into(), &1.into()), "{score}");

    let again = run(folder.path(), &["short.ron", "--json"]);
    let training = "\"fact\":\"training\"";
    assert!(!again.contains(training), "models are kept");
    let trained = timeless(&lines).into_iter().filter(|line| !line.contains(training));
    assert_eq!(timeless(&again), trained.collect::<Vec<_>>(), "kept models say the same");
}

#[test]
fn facts_do_not_depend_on_the_speed() {
    for mode in ["evidence", "paper"] {
        let at = |speed: &str| {
            let folder = place();
            let args = ["short.ron", "--mode", mode, "--until", "+95m", "--speed", speed, "--json"];
            timeless(&run(folder.path(), &args))
        };
        let whole = at("max");
        assert!(whole.iter().any(|line| line.contains("\"opened\"")), "{mode}");
        assert_eq!(whole, at("5000"), "{mode}");
    }
}

#[test]
fn the_twins_run_by_the_published_method_and_by_evidence() {
    let folder = place();
    let paper = facts(&run(folder.path(), &["twin", "--until", "+3200 steps", "--json"]));
    let evidence = facts(&run(
        folder.path(),
        &["twin", "--until", "+3200 steps", "--mode", "evidence", "--json"],
    ));
    for (facts, mode) in [(&paper, "paper"), (&evidence, "evidence")] {
        let summary = facts.last().expect("a summary");
        assert_eq!((&summary["mode"], &summary["steps"]), (&mode.into(), &3200.into()));
        assert!(named(facts, "opened").iter().all(|opened| opened["mode"] == mode));
        assert!(summary["score"]["root_right"].as_u64() >= Some(1), "{summary}");
    }
    // Two flags a step against one symbol.
    let releases = |facts: &[Value]| named(facts, "ledger")[0]["releases"].as_u64();
    assert_eq!(releases(&paper), releases(&evidence).map(|n| 2 * n));
}

#[test]
fn a_budget_is_accounted_for() {
    let folder = place();
    let session = SHORT.replace("thresholds", "privacy: (epsilon_flag: 2.0), thresholds");
    fs::write(folder.path().join("private.ron"), session).expect("the session can be written");
    let facts = facts(&run(folder.path(), &["private.ron", "--until", "+30m", "--json"]));
    let ledger = named(&facts, "ledger")[0];
    let (epsilon, releases) = (ledger["epsilon"].as_f64(), ledger["releases"].as_f64());
    let (epsilon, releases) = (epsilon.expect("an ε"), releases.expect("releases"));
    assert!(epsilon > 2.0 && epsilon <= 2.0 * releases, "{ledger}");
    assert_eq!(ledger["delta"].as_f64(), Some(1e-5));
}

#[test]
fn without_json_the_day_is_told_in_words() {
    let folder = place();
    let words = run(folder.path(), &["short.ron"]);
    assert!(words.contains("opened   root P1"), "{words}");
    let end = words.rsplit("\n\n").next().expect("an end");
    assert!(
        end.starts_with("short, evidence mode, seed 1 (seeded: not private): 1440 steps"),
        "{end}"
    );
    assert!(end.contains("1 labelled event: 1 detected, root right 1"), "{end}");
    let before = run(folder.path(), &["short.ron", "--until", "2022-08-12 01:25:30"]);
    assert!(before.contains("missed                 S101 2022-08-12 01:25:04 in P1"), "{before}");
}

#[test]
fn the_score_of_the_lines_is_the_score_of_the_summary() {
    let folder = place();
    let lines = run(folder.path(), &["short.ron", "--json"]);
    let truth = "start,end,origin\n2022-08-12 01:25:04,2022-08-12 01:30:00,P1\n";
    let output = score(folder.path(), &lines, truth);
    let score: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let facts = facts(&lines);
    let summary = &facts.last().expect("a summary")["score"];
    for figure in ["labelled", "detected", "root_right", "days", "delay_s", "ac1", "mrr"] {
        assert_eq!(score[figure], summary[figure], "{figure}");
    }
}

/// Half an hour of two clients, a row a second from midnight of a clock nine hours ahead of UTC.
fn korean_table(folder: &Path) {
    let row = |second: u32| {
        let wave = |period: u32| f64::from(second * 7919 % period) / f64::from(period);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        format!(
            "2022-08-12 {hour:02}:{minute:02}:{:02},{:.3},{:.3},{:.3},{:.3}\n",
            second % 60,
            wave(97),
            wave(193),
            wave(389),
            wave(769),
        )
    };
    let table: String =
        std::iter::once("time,a1,a2,b1,b2\n".to_owned()).chain((0..1800).map(row)).collect();
    fs::write(folder.join("day.csv"), table).expect("the data can be written");
    let file = "files: [\"day.csv\"]";
    let session = format!(
        "Session(about: \"a table\", source: Table(data: \".\", \
         time: (column: \"time\", utc_offset_h: 9)), \
         clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
         sampling: (decimate: Every(1)), \
         model: (proprietary: Linear, federation: Batched(rounds: 1)), \
         ranges: (fit: ({file}, until: \"2022-08-12 00:10:00\"), \
         calibration: ({file}, from: \"2022-08-12 00:10:00\", until: \"2022-08-12 00:20:00\"), \
         replay: ({file}, from: \"2022-08-12 00:20:00\")))"
    );
    fs::write(folder.join("korea.ron"), session).expect("the session can be written");
}

#[test]
fn a_run_ends_at_the_time_that_the_clock_of_the_data_shows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    korean_table(folder.path());
    let until = ["korea.ron", "--until", "2022-08-12 00:25:00", "--json"];
    let facts = facts(&run(folder.path(), &until));
    let summary = facts.last().expect("a summary");
    assert_eq!(summary["steps"], 300, "{summary}");
    assert_eq!(time(&summary["from"]).to_string(), "2022-08-11T15:20:00Z");
    assert_eq!(time(&summary["until"]).to_string(), "2022-08-11T15:24:59Z");
}

#[test]
fn nonsense_is_wrong_usage() {
    for args in [
        ["--speed", "0"],
        ["--mode", "magic"],
        ["--until", "tomorrow"],
        ["--until", "+1e19s"],
        ["--until", "+1e30h"],
    ] {
        let output = headwater().args(["run", "twin"]).args(args).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}
