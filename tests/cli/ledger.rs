//! `headwater run --ledger` and `headwater ledger`: what is written can be verified, and what was
//! tampered with is pointed at.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use headwater::test_api::{new_ledger_key, sha256};
use serde_json::Value;
use tempfile::TempDir;

use super::started::Started;
use crate::headwater;

const PRIVATE: &str = "Session(about: \"a short day\", source: Plant(history_h: 1, hours: 1), \
    sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    model: (federation: Online(passes: 1)), privacy: (epsilon_flag: 2.0 MORE))";

pub(crate) fn place(more: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = PRIVATE.replace(" MORE", more);
    fs::write(folder.path().join("private.ron"), text).expect("the session can be written");
    folder
}

/// Runs the program; its answer, its complaint and its exit code.
pub(crate) fn run(folder: &Path, args: &[&str]) -> (String, String, i32) {
    let output = headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .env("HEADWATER_CONFIG", folder.join("config"))
        .env("HEADWATER_LEDGERS", folder.join("ledgers"))
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
    let objects = lines.lines().map(|line| serde_json::from_str(line).expect("an object"));
    objects.filter(|object: &Value| !object["client"].is_null()).collect()
}

/// The head that the summary of a run says.
fn head(folder: &Path) -> Value {
    let args = ["run", "private.ron", "--until", "+20m", "--ledger", "ledger", "--json"];
    let (lines, complaint, code) = run(folder, &args);
    assert_eq!(code, 0, "{complaint}");
    let summary: Value =
        serde_json::from_str(lines.lines().last().expect("a summary")).expect("one");
    summary["ledger"].clone()
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
    assert!(words.contains("signed with key") && words.contains("the key of this machine"));
    assert!(
        words.ends_with("only a head that was kept elsewhere can show: --head HEX\n"),
        "{words}"
    );
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
    let count = lines.len() - 2;
    let unsigned = format!("the last {count} entries are not signed: lines are missing at the end");
    assert!(complaint(&cut).contains(&unsigned));
    assert!(complaint(&text[..text.len() - 9]).contains("the last line was cut short"));
    assert!(complaint("").contains("the ledger is empty"));
    let (_, gone, code) = run(folder.path(), &["ledger", "nowhere"]);
    assert!(code == 1 && gone.contains("nowhere"), "{gone}");
}

#[test]
fn a_dropped_last_run_is_noticed_with_the_head_that_was_printed() {
    let folder = place("");
    let first = head(folder.path());
    let file = folder.path().join("ledger");
    let one = fs::read_to_string(&file).expect("a ledger");
    let (words, _, _) =
        run(folder.path(), &["run", "private.ron", "--until", "+20m", "--ledger", "ledger"]);
    let line = words.lines().find(|line| line.starts_with("ledger head ")).expect("a head");
    let second = line.split([' ', ',']).nth(2).expect("its digits");
    let both = fs::read_to_string(&file).expect("a ledger");
    let verified = |head: &str| run(folder.path(), &["ledger", "ledger", "--head", head]);
    let (words, complaint, code) = verified(second);
    assert_eq!(code, 0, "{complaint}");
    assert!(words.ends_with("it ends at the head that was given\n"), "{words}");
    let (words, _, code) = verified(first["head"].as_str().expect("digits"));
    let at = first["entries"].as_u64().expect("a number");
    let follow = format!("the head that was given is in it, after {at} entries; ");
    assert!(code == 0 && words.contains(&follow), "{words}");
    assert!(both.starts_with(&one), "nothing that is recorded changes");

    fs::write(&file, &one).expect("the last run can be dropped");
    let (_, complaint, code) = verified(second);
    assert!(code == 1 && complaint.contains("lines are missing at its end"), "{complaint}");
    let (_, _, code) = run(folder.path(), &["ledger", "ledger"]);
    assert_eq!(code, 0, "without the head nobody can know");
    let (_, complaint, code) = verified("not a head");
    assert!(code == 2 && complaint.contains("64 hexadecimal digits"), "{complaint}");
}

#[test]
fn a_dropped_client_is_noticed_and_named() {
    let folder = place("");
    head(folder.path());
    let file = folder.path().join("ledger");
    let text = fs::read_to_string(&file).expect("a ledger");
    let of_p2 = |line: &&str| line.contains("\"client\":\"P2\",\"entry\"");
    assert!(text.lines().filter(of_p2).count() > 100);
    let rest: String = text.split_inclusive('\n').filter(|line| !of_p2(line)).collect();
    fs::write(&file, rest).expect("written");
    let (_, complaint, code) = run(folder.path(), &["ledger", "ledger"]);
    assert!(code == 1 && complaint.contains("lines of P2 are missing before it"), "{complaint}");
    let args = ["run", "private.ron", "--until", "+20m", "--ledger", "ledger"];
    let (_, complaint, code) = run(folder.path(), &args);
    assert!(code == 1 && complaint.contains("it cannot be continued"), "{complaint}");
}

/// The entries of a ledger with a cheaper ε in each, all hashes computed anew.
fn cheapened(entries: &[&str]) -> String {
    let mut heads: std::collections::HashMap<String, String> = std::collections::HashMap::new();
    let mut text = String::new();
    for line in entries {
        let value: Value = serde_json::from_str(line).expect("an object");
        let client = value["client"].as_str().expect("a name").to_owned();
        // After `{"hash":"…",`, and after `"prev":"…`.
        let body = &line[75..];
        let old = &body[8..72];
        let head = heads.entry(client).or_insert_with(|| "0".repeat(64));
        let body = body.replacen(old, head, 1).replace("\"epsilon\":2.0", "\"epsilon\":1.0");
        *head = sha256(body.as_bytes());
        let _ = writeln!(text, "{{\"hash\":\"{head}\",{body}");
    }
    text
}

#[test]
fn hashes_computed_anew_do_not_pass_without_the_key() {
    let folder = place("");
    let known = head(folder.path());
    let file = folder.path().join("ledger");
    let text = fs::read_to_string(&file).expect("a ledger");
    let lines: Vec<&str> = text.lines().collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    assert!(first.contains(known["key"].as_str().expect("a key")), "the header names the key");
    let entries = cheapened(&lines[1..lines.len() - 1]);
    assert!(entries.contains("\"epsilon\":1.0") && !entries.contains("\"epsilon\":2.0"));
    // The last line, made to cover the changed entries; only its signature cannot be made.
    let covered = sha256(format!("{first}\n{entries}").as_bytes());
    let marks = ["{\"signature\":\"", "\",\"seal\":\""].map(str::len);
    let signature = &last[marks[0]..][..128];
    let body = &last[marks[0] + 128 + marks[1] + 64 + 2..];
    let value: Value = serde_json::from_str(&format!("{{{body}")).expect("an object");
    let old = value["digest"].as_str().expect("digits");
    let mut body = body.replace(old, &covered);
    for client in value["clients"].as_array().expect("clients") {
        let name = client["client"].as_str().expect("a name");
        let mine = |line: &&str| line.contains(&format!("\"client\":\"{name}\",\"entry\""));
        let end = entries.lines().rfind(mine).expect("a line");
        body = body.replace(client["head"].as_str().expect("digits"), &end[9..73]);
    }
    let seal = sha256(body.as_bytes());
    let forged = format!("{{\"signature\":\"{signature}\",\"seal\":\"{seal}\",{body}\n");
    fs::write(&file, format!("{first}\n{entries}{forged}")).expect("written");
    let (_, complaint, code) = run(folder.path(), &["ledger", "ledger"]);
    assert!(code == 1 && complaint.contains("its signature does not fit"), "{complaint}");
}

#[test]
fn a_ledger_of_another_key_is_not_taken_for_one_of_this_machine() {
    let folder = place("");
    let known = head(folder.path());
    let (other, public) = new_ledger_key().expect("a key");
    let key = folder.path().join("config/ledger.key");
    fs::write(&key, other).expect("another key");
    let (_, complaint, code) = run(folder.path(), &["ledger", "ledger"]);
    assert!(code == 1 && complaint.contains(&format!("expected {public}")), "{complaint}");
    let args = ["run", "private.ron", "--until", "+20m", "--ledger", "ledger"];
    let (_, complaint, code) = run(folder.path(), &args);
    assert!(code == 1 && complaint.contains("bring the key back from its backup"), "{complaint}");
    let public = known["key"].as_str().expect("a key");
    let (words, _, code) = run(folder.path(), &["ledger", "ledger", "--key", public]);
    assert!(code == 0 && words.contains("the key that was given"), "{words}");
    fs::remove_file(&key).expect("removed");
    let (words, _, code) = run(folder.path(), &["ledger", "ledger"]);
    assert!(code == 0 && words.contains("whose key that is cannot be known here"), "{words}");
}

#[test]
fn a_torn_last_line_is_noted_and_the_ledger_goes_on() {
    let folder = place("");
    head(folder.path());
    let file = folder.path().join("ledger");
    let text = fs::read_to_string(&file).expect("a ledger");
    let half = "{\"hash\":\"0123456789abcdef";
    fs::write(&file, format!("{text}{half}")).expect("written");
    let args = ["run", "private.ron", "--until", "+20m", "--ledger", "ledger"];
    let (_, complaint, code) = run(folder.path(), &args);
    assert_eq!(code, 0, "{complaint}");
    assert!(complaint.contains("its last line was cut short"), "{complaint}");
    let after = fs::read_to_string(&file).expect("a ledger");
    let added = after.strip_prefix(&text).expect("nothing already recorded is lost");
    let note: Value = serde_json::from_str(added.lines().next().expect("a note")).expect("one");
    assert_eq!(note["found"]["torn"]["text"], half);
    let (_, complaint, code) = run(folder.path(), &["ledger", "ledger"]);
    assert_eq!(code, 0, "{complaint}");
}

#[test]
fn a_second_writer_is_refused_and_a_killed_run_is_continued() {
    let folder = place("");
    let path = folder.path();
    let mut slow = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"));
    slow.current_dir(path)
        .env("HEADWATER_CACHE", path.join("cache"))
        .env("HEADWATER_CONFIG", path.join("config"))
        .args(["run", "private.ron", "--speed", "60", "--ledger", "ledger", "--json"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut first = Started::by(&mut slow);
    // Until it has released something: then it certainly writes.
    let released = || {
        let text = fs::read_to_string(path.join("ledger")).unwrap_or_default();
        text.lines().filter(|line| line.contains("\"released\"")).count()
    };
    while released() < 4 {
        assert!(first.try_wait().expect("a child").is_none(), "it is still running");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let args = ["run", "private.ron", "--until", "+20m", "--ledger", "ledger"];
    let (_, complaint, code) = run(path, &args);
    assert!(code == 1 && complaint.contains("another run is writing to it"), "{complaint}");
    let (words, complaint, code) = run(path, &["ledger", "ledger"]);
    assert_eq!(code, 0, "{complaint}");
    assert!(words.contains("a run is writing to it"), "{words}");
    drop(first);
    let (_, complaint, code) = run(path, &["ledger", "ledger"]);
    assert!(code == 1 && complaint.contains("are not signed"), "{complaint}");
    let (_, complaint, code) = run(path, &args);
    assert_eq!(code, 0, "{complaint}");
    assert!(complaint.contains("entries were not signed"), "{complaint}");
    let (_, complaint, code) = run(path, &["ledger", "ledger"]);
    assert_eq!(code, 0, "{complaint}");
}

#[cfg(unix)]
#[test]
fn ledger_and_key_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = place("");
    let file = folder.path().join("ledger");
    fs::write(&file, "").expect("an empty file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("open to all");
    head(folder.path());
    for kept in [file, folder.path().join("config/ledger.key")] {
        let mode = fs::metadata(&kept).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", kept.display());
    }
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
    let thrifty = releases("send: Window(12), budget: (epsilon: 16, over: Minute)");
    for (forgets, n) in &thrifty {
        assert!(if *forgets { *n == 200 / 12 } else { (1..200 / 12).contains(n) }, "{thrifty:?}");
    }
}

/// Two stations of two sensors each, one sample a second.
pub(crate) fn table(folder: &Path) {
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
