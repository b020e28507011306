//! `headwater run --ledger` and `headwater ledger`: what is written can be verified, and what was
//! tampered with is pointed at.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::headwater;

const PRIVATE: &str = "Session(about: \"a short day\", source: Plant(history_h: 1, hours: 1), \
    sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    model: (federation: Online(passes: 1)), privacy: (epsilon_flag: 2.0 MORE))";

fn place(more: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = PRIVATE.replace(" MORE", more);
    fs::write(folder.path().join("private.ron"), text).expect("the session can be written");
    folder
}

/// Runs the program; its answer, its complaint and its exit code.
fn run(folder: &Path, args: &[&str]) -> (String, String, i32) {
    let output = headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .args(args)
        .output()
        .expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code().expect("an exit code"))
}

fn watch(folder: &Path, more: &[&str]) -> Vec<Value> {
    let mut args = vec!["run", "private.ron", "--until", "+20m", "--ledger", "ledger", "--json"];
    args.extend(more);
    let (lines, complaint, code) = run(folder, &args);
    assert_eq!(code, 0, "{complaint}");
    let facts = lines.lines().map(|line| serde_json::from_str(line).expect("an object"));
    facts.filter(|fact: &Value| fact["fact"] == "ledger").collect()
}

fn spent(folder: &Path) -> Vec<Value> {
    let (lines, complaint, code) = run(folder, &["ledger", "ledger", "--json"]);
    assert_eq!(code, 0, "{complaint}");
    lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn a_ledger_says_what_the_run_said_and_a_second_run_goes_on_with_it() {
    let folder = place(", epsilon_c: 4, epsilon_a: 4");
    let facts = watch(folder.path(), &[]);
    let accounts = spent(folder.path());
    assert_eq!(accounts.len(), 3);
    for (account, fact) in accounts.iter().zip(&facts) {
        assert_eq!(account["client"], fact["client"]);
        assert_eq!(account["randomness"], "seeded: not private");
        let scopes: Vec<&Value> = account["spent"].as_array().expect("scopes").iter().collect();
        assert_eq!(scopes.len(), 5);
        let costs: Vec<f64> = scopes.iter().filter_map(|s| s["epsilon"].as_f64()).collect();
        assert!(costs.len() == 5 && costs.is_sorted(), "{account}");
        assert!(scopes.iter().all(|s| s["basic"].as_f64() >= s["epsilon"].as_f64()));
        let lifetime = scopes[4]["releases"].as_u64();
        let trained = account["training"]["releases"].as_u64().expect("a training");
        assert_eq!(lifetime, fact["releases"].as_u64().map(|live| live + trained));
        assert!(fact["epsilon"].as_f64() < scopes[4]["epsilon"].as_f64());
    }
    watch(folder.path(), &[]);
    let again = spent(folder.path());
    for (account, again) in accounts.iter().zip(&again) {
        assert_eq!(account["training"], again["training"], "models are trained once");
        let live = |account: &Value| {
            let all = account["spent"][4]["releases"].as_u64().expect("releases");
            all - account["training"]["releases"].as_u64().expect("releases")
        };
        assert_eq!(2 * live(account), live(again));
    }
    let (words, _, code) = run(folder.path(), &["ledger", "ledger"]);
    assert_eq!(code, 0);
    assert!(
        words.contains("the whole history") && words.contains("randomised response"),
        "{words}"
    );
    assert!(words.ends_with("every line holds: nothing was changed, added, moved or left out\n"));
}

#[test]
fn what_was_tampered_with_is_pointed_at() {
    let folder = place("");
    watch(folder.path(), &[]);
    let file = folder.path().join("ledger");
    let text = fs::read_to_string(&file).expect("a ledger");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let complaint = |text: &str| {
        fs::write(&file, text).expect("written");
        let (answer, complaint, code) = run(folder.path(), &["ledger", "ledger"]);
        assert_eq!((answer.as_str(), code), ("", 1));
        complaint
    };
    let cheaper = text.replacen("\"epsilon\":2.0", "\"epsilon\":1.0", 1);
    let line = 1 + lines.iter().position(|l| l.contains("\"epsilon\":2.0")).expect("a release");
    assert!(complaint(&cheaper).contains(&format!("line {line}: its text was changed")));
    let removed: String =
        lines.iter().enumerate().filter(|(i, _)| *i != 20).map(|(_, l)| *l).collect();
    assert!(complaint(&removed).contains("it does not follow the line before"));
    let cut = lines[..lines.len() - 1].concat();
    assert!(complaint(&cut).contains("is not closed: lines are missing at its end"));
    assert!(complaint(&text[..text.len() - 9]).contains("the last line was cut short"));
    assert!(complaint("").contains("the ledger is empty"));
    let (_, gone, code) = run(folder.path(), &["ledger", "nowhere"]);
    assert!(code == 1 && gone.contains("nowhere"), "{gone}");
}

#[test]
fn a_budget_ends_or_slows_down_what_it_does_not_cover() {
    // What every client released, and whether its models were seen to forget a sample.
    let releases = |more: &str| {
        let folder = place(&format!(", {more}"));
        let facts = watch(folder.path(), &[]);
        let told = |fact: &Value| {
            let forgets = !fact["memory"]["contraction"].is_null();
            (forgets, fact["releases"].as_u64().expect("releases"))
        };
        facts.iter().map(told).collect::<Vec<(bool, u64)>>()
    };
    // 240 steps of which 40 settle, twelve a minute: ε 16 is fewer than twelve symbols of ε 2.
    let stopped = releases("budget: (epsilon: 16, over: Minute, at_zero: Stop)");
    assert!(stopped.iter().all(|(_, n)| (1..12).contains(n)), "{stopped:?}");
    let slower = releases("budget: (epsilon: 16, over: Minute, at_zero: Slower)");
    for ((forgets, stopped), (_, slower)) in stopped.iter().zip(&slower) {
        // Where nothing is forgotten a minute is as long as the run, and nothing leaves it.
        assert!(if *forgets { slower > stopped } else { slower == stopped }, "{stopped} {slower}");
    }
    // Saving makes the same budget last, wherever something is forgotten.
    let thrifty = releases("thrift: Window(12), budget: (epsilon: 16, over: Minute)");
    for (forgets, n) in &thrifty {
        assert!(if *forgets { *n == 200 / 12 } else { (1..200 / 12).contains(n) }, "{thrifty:?}");
    }
}

/// Two stations of two sensors each, one sample a second.
fn table(folder: &Path) {
    let mut text = "time,a1,a2,b1,b2\n".to_owned();
    let mut state = 1_u64;
    let mut noise = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    for t in 0..1500_i32 {
        let wave = (f64::from(t) / 40.0).sin();
        let row = [wave, 2.0 - wave, 5.0 * wave, 0.3].map(|v| v + 0.2 * noise());
        let clock = format!("2026-03-01 00:{:02}:{:02}", t / 60, t % 60);
        let line = format!("{clock},{:.4},{:.4},{:.4},{:.4}\n", row[0], row[1], row[2], row[3]);
        text.push_str(&line);
    }
    fs::write(folder.join("data.csv"), text).expect("the data can be written");
    let session = "Session(about: \"two stations\", source: Table(data: \".\", \
        time: (column: \"time\")), clients: [(name: \"A\", columns: [\"a*\"]), \
        (name: \"B\", columns: [\"b*\"])], ranges: (fit: (files: [\"data.csv\"], until: \"+10m\"), \
        calibration: (files: [\"data.csv\"], from: \"+10m\", until: \"+20m\"), \
        replay: (files: [\"data.csv\"], from: \"+20m\")), sampling: (decimate: Every(1)), \
        model: (epochs: 1, federation: Online(passes: 1)), \
        privacy: (epsilon_c: 4, epsilon_a: 4, epsilon_flag: 2))";
    fs::write(folder.join("stations.ron"), session).expect("the session can be written");
}

#[test]
fn noise_about_files_is_the_operating_system_s_and_a_seed_makes_it_repeatable() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    table(folder.path());
    let facts = |ledger: &str, more: &[&str]| -> Vec<Value> {
        let mut args = vec!["run", "stations.ron", "--ledger", ledger, "--json"];
        args.extend(more);
        let (lines, complaint, code) = run(folder.path(), &args);
        assert_eq!(code, 0, "{complaint}");
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    };
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a ledger");

    let live = facts("live", &[]);
    let summary = live.last().expect("a summary");
    assert_eq!(
        (&summary["seed"], &summary["randomness"]),
        (&Value::Null, &"operating system".into())
    );
    assert!(!text("live").contains("seeded"), "training and run alike");
    let (words, _, _) = run(folder.path(), &["run", "stations.ron"]);
    assert!(words.contains("noise: operating system") && !words.contains("seed"), "{words}");
    fs::remove_dir_all(folder.path().join("cache")).expect("models can be forgotten");
    facts("again", &[]);
    assert!(text("live") != text("again"), "another training draws other noise");

    let seeded = facts("one", &["--seed", "5"]);
    let summary = seeded.last().expect("a summary");
    assert_eq!(
        (&summary["seed"], &summary["randomness"]),
        (&5.into(), &"seeded: not private".into())
    );
    assert!(!text("one").contains("operating system"));
    facts("two", &["--seed", "5"]);
    assert!(text("one") == text("two"), "the same seed tells the same");
    let (words, _, _) = run(folder.path(), &["check", "stations.ron", "--seed", "5"]);
    assert!(words.contains("seed 5 (seeded: not private)") && words.contains("65 %"), "{words}");
}
