//! Budgets over a lifetime, and what a training enters in the ledger.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ledger::{place, run, table};

/// The stations with a budget for the whole history.
fn with_lifetime_budget(folder: &Path, epsilon: f64) {
    let file = folder.join("stations.ron");
    let text = fs::read_to_string(&file).expect("the session");
    let (before, _) = text.split_once("epsilon_flag: 2").expect("its privacy");
    let budget = format!("epsilon_flag: 2, budget: (epsilon: {epsilon:?}, over: Lifetime)))");
    fs::write(file, before.to_owned() + &budget).expect("written");
}

/// The only ledger that was kept without being asked for.
fn kept_by_itself(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder.join("ledgers")).expect("the folder of ledgers");
    let files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    file.clone()
}

#[test]
fn a_lifetime_budget_survives_a_restart_without_a_flag() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    table(path);
    let releases = |session: &str| -> (Vec<u64>, String) {
        let (lines, said, code) = run(path, &["run", session, "--json"]);
        assert_eq!(code, 0, "{said}");
        let facts = lines.lines().map(|line| serde_json::from_str(line).expect("an object"));
        let ledgers = facts.filter(|fact: &Value| fact["fact"] == "ledger");
        (ledgers.map(|fact| fact["releases"].as_u64().expect("releases")).collect(), said)
    };
    // What one whole run costs, by a budget that is never spent.
    with_lifetime_budget(path, 1e9);
    let (whole, said) = releases("stations.ron");
    let file = kept_by_itself(path);
    let counted = format!("{} counts what is spent, over all starts", file.display());
    assert!(said.contains(&counted), "{said}");
    let (lines, complaint, _) = run(path, &["ledger", file.to_str().expect("a name"), "--json"]);
    let account: Value =
        serde_json::from_str(lines.lines().next().expect(&complaint)).expect("one");
    let cost = account["spent"][4]["epsilon"].as_f64().expect("a cost");
    fs::remove_dir_all(path.join("ledgers")).expect("begun anew");

    with_lifetime_budget(path, cost - 0.5);
    let (first, _) = releases("stations.ron");
    assert!(first.iter().zip(&whole).all(|(n, all)| 0 < *n && n < all), "{first:?} of {whole:?}");
    let (second, _) = releases("stations.ron");
    assert_eq!(first, second, "what was spent before the restart is not spent again");
    fs::rename(path.join("stations.ron"), path.join("renamed.ron")).expect("renamed");
    let (renamed, _) = releases("renamed.ron");
    assert_eq!(first, renamed, "another name does not renew a budget");
    let (words, _, _) = run(path, &["check", "renamed.ron"]);
    assert!(words.contains("counted over all starts"), "{words}");
}

#[test]
fn a_ledger_that_was_emptied_does_not_begin_anew_in_silence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    table(path);
    with_lifetime_budget(path, 1e9);
    let begun = "it is empty: a new ledger begins, and what was spent before is not known";
    let (_, said, code) = run(path, &["run", "stations.ron", "--json"]);
    assert!(code == 0 && !said.contains(begun), "{said}");
    fs::write(kept_by_itself(path), "").expect("emptied");
    let (_, said, code) = run(path, &["run", "stations.ron", "--json"]);
    assert!(code == 0 && said.contains(begun), "{said}");
}

#[test]
fn a_seeded_run_keeps_no_ledger_by_itself_and_says_the_same_every_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    table(path);
    with_lifetime_budget(path, 1e9);
    let said = || {
        let (lines, complaint, code) = run(path, &["run", "stations.ron", "--seed", "5", "--json"]);
        assert_eq!(code, 0, "{complaint}");
        // The first run trains, and the summary says how long it took.
        let facts = lines.lines().filter(|line| !line.contains("\"fact\":\"training\""));
        let facts = facts.filter(|line| !line.contains("\"fact\":\"summary\""));
        facts.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(said(), said());
    assert!(!path.join("ledgers").exists());
}

/// The accounts of the only ledger that was kept without being asked for.
fn accounts(folder: &Path) -> Vec<Value> {
    let file = kept_by_itself(folder);
    let (lines, complaint, code) =
        run(folder, &["ledger", file.to_str().expect("a name"), "--json"]);
    assert_eq!(code, 0, "{complaint}");
    let objects = lines.lines().map(|line| serde_json::from_str(line).expect("an object"));
    objects.filter(|object: &Value| !object["client"].is_null()).collect()
}

#[test]
fn what_a_training_released_is_in_the_ledger_although_no_run_follows_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    table(path);
    with_lifetime_budget(path, 1e9);
    let (words, complaint, code) = run(path, &["train", "stations.ron"]);
    assert_eq!(code, 0, "{complaint}");
    assert!(words.contains("ledger head "), "{words}");
    let trained = accounts(path);
    assert_eq!(trained.len(), 2);
    for account in &trained {
        let released = account["training"]["releases"].as_u64().expect("releases");
        assert!(released > 0, "{account}");
        assert_eq!(account["spent"][4]["releases"], released, "and nothing else: {account}");
    }
    // Neither a second `train` nor the run that uses the models enters it again.
    let (_, complaint, code) = run(path, &["train", "stations.ron"]);
    assert_eq!(code, 0, "{complaint}");
    assert_eq!(accounts(path), trained);
    let (_, complaint, code) = run(path, &["run", "stations.ron", "--json"]);
    assert_eq!(code, 0, "{complaint}");
    for (after, before) in accounts(path).iter().zip(&trained) {
        assert_eq!(after["training"], before["training"], "models are trained once");
        assert!(after["spent"][4]["releases"].as_u64() > before["spent"][4]["releases"].as_u64());
    }
}

#[test]
fn what_a_training_that_diverges_had_released_is_in_the_ledger() {
    for command in ["train", "run"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        table(path);
        with_lifetime_budget(path, 1e9);
        let file = path.join("stations.ron");
        let text = fs::read_to_string(&file).expect("the session");
        let wild = "model: (epochs: 1, optimiser: Sgd, eta1: 1e6, eta3: 10, ";
        fs::write(&file, text.replace("model: (epochs: 1, ", wild)).expect("written");
        let (_, complaint, code) = run(path, &[command, "stations.ron"]);
        assert!(code == 1 && complaint.contains("the federation diverged"), "{complaint}");
        for account in accounts(path) {
            let released = account["training"]["releases"].as_u64().expect("releases");
            assert!(released > 0, "{command}: {account}");
        }
        // Each attempt draws other noise, and tells something new.
        let lifetime = || accounts(path)[0]["spent"][4]["releases"].as_u64().expect("releases");
        let once = lifetime();
        run(path, &[command, "stations.ron"]);
        assert!(lifetime() > once, "{command}");
    }
}

#[test]
fn a_training_does_not_begin_while_another_run_writes_the_ledger() {
    let folder = place("");
    let ledger = fs::File::create(folder.path().join("ledger")).expect("created");
    ledger.lock().expect("this file system has locks");
    let (_, complaint, code) = run(folder.path(), &["train", "private.ron", "--ledger", "ledger"]);
    assert!(code == 1 && complaint.contains("another run is writing to it"), "{complaint}");
    assert!(!folder.path().join("cache").exists(), "nothing was trained");
}
