//! `headwater init`: sessions for tables that nobody has described.

use std::fs;

use serde_json::Value;

use super::{headwater, shared};

/// Whose models a proposed session is run with.
#[derive(Clone, Copy, PartialEq)]
enum Models {
    /// As it was proposed.
    Proposed,
    /// Those of linear regression, which take seconds instead of minutes to make.
    Linear,
}

/// The session that is proposed for a file or folder of ../shared/data, checked, and run to its end.
fn proposed(source: &str, models: Models) -> String {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("proposed.ron");
    let init = headwater()
        .arg("init")
        .arg(shared(&format!("data/{source}")))
        .arg("--out")
        .arg(&file)
        .output()
        .expect("the program runs");
    assert!(init.status.success(), "{source}: {}", String::from_utf8_lossy(&init.stderr));
    let check = headwater().arg("check").arg(&file).output().expect("the program runs");
    assert!(check.status.success(), "{source}: {}", String::from_utf8_lossy(&check.stderr));
    let text = fs::read_to_string(&file).expect("it was written");
    if models == Models::Linear {
        let linear =
            text.replace("    sampling:", "    model: (proprietary: Linear),\n    sampling:");
        assert_ne!(linear, text);
        fs::write(&file, linear).expect("it can be written");
    }
    let run = headwater()
        .env("HEADWATER_CACHE", folder.path().join("cache"))
        .args(["run", "--json", "--seed", "1"])
        .arg(&file)
        .output()
        .expect("the program runs");
    assert!(run.status.success(), "{source}: {}", String::from_utf8_lossy(&run.stderr));
    let facts = String::from_utf8_lossy(&run.stdout);
    let summary: Value = serde_json::from_str(facts.lines().last().expect("facts")).expect("JSON");
    let steps = summary["steps"].as_u64().expect("a number of steps");
    assert!(summary["fact"] == "summary" && steps > 100, "{source}: {summary}");
    println!("{source}: {steps} steps, {} incidents", summary["incidents"]);
    text
}

#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
#[test]
fn sessions_are_proposed_for_every_kind_of_table_and_run_to_their_end() {
    let tep = proposed("tep", Models::Linear);
    assert!(tep.contains("GROUP:") && tep.contains("run_column: \"run\""), "{tep}");
    let never = tep.lines().find(|line| line.contains("Never change")).expect("constants");
    assert!(never.contains("seed"), "the seed of a run is no measurement: {tep}");
    let batadal = proposed("batadal", Models::Linear);
    assert!(batadal.contains("format: Pattern(\"%d/%m/%y %H\")"), "{batadal}");
    assert!(batadal.contains("labels: Column(name: \"ATT_FLAG\", unlabelled: [-999.0])"));
    let lathe = proposed("causrca", Models::Linear);
    assert!(lathe.contains("name: \"MPA\"") && lathe.contains("runs: PerFile"), "{lathe}");
}

#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
#[test]
fn clients_and_set_points_of_hai_are_known_exactly() {
    let hai = proposed("hai/hai-20.07-train1-first3498s.csv.gz", Models::Proposed);
    for part in ["name: \"P1\", title: \"boiler\"", "name: \"P2\"", "name: \"P3\""] {
        assert!(hai.contains(part), "{hai}");
    }
    let inputs = hai.lines().find(|line| line.contains("inputs:")).expect("set points");
    assert!(inputs.contains("\"P1_B2016\"") && !hai.contains("name: \"P4\""), "{hai}");
    proposed("hai/hai-20.07-train1-every100s.csv.gz", Models::Linear);
    proposed("hai/hai-21.03-fragments-zscored.csv.gz", Models::Linear);
}

#[test]
fn what_is_no_table_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    fs::write(folder.path().join("list.csv"), "a,b\n1,2\n").expect("written");
    for (source, said) in [("nowhere", "there is no such file"), ("list.csv", "only 1 rows")] {
        let init = headwater()
            .current_dir(folder.path())
            .args(["init", source])
            .output()
            .expect("the program runs");
        assert_eq!(init.status.code(), Some(1));
        let words = String::from_utf8_lossy(&init.stderr);
        assert!(words.contains(said), "{words}");
    }
}
