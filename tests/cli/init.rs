//! `headwater init`: sessions for tables that nobody has described.

use std::fs;

use super::{headwater, shared};

/// The session that is proposed for a file or folder of ../shared/data, checked.
fn proposed(source: &str) -> String {
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
    fs::read_to_string(&file).expect("it was written")
}

#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
#[test]
fn sessions_are_proposed_for_every_kind_of_table_and_pass_the_check() {
    let tep = proposed("tep");
    assert!(tep.contains("GROUP:") && tep.contains("run_column: \"run\""), "{tep}");
    let batadal = proposed("batadal");
    assert!(batadal.contains("format: Pattern(\"%d/%m/%y %H\")"), "{batadal}");
    assert!(batadal.contains("labels: Column(name: \"ATT_FLAG\", unlabelled: [-999.0])"));
    let lathe = proposed("causrca");
    assert!(lathe.contains("name: \"MPA\"") && lathe.contains("runs: PerFile"), "{lathe}");
}

#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
#[test]
fn clients_and_set_points_of_hai_are_known_exactly() {
    let hai = proposed("hai/hai-20.07-train1-first3498s.csv.gz");
    for part in ["name: \"P1\", title: \"boiler\"", "name: \"P2\"", "name: \"P3\""] {
        assert!(hai.contains(part), "{hai}");
    }
    let inputs = hai.lines().find(|line| line.contains("inputs:")).expect("set points");
    assert!(inputs.contains("\"P1_B2016\"") && !hai.contains("name: \"P4\""), "{hai}");
    proposed("hai/hai-20.07-train1-every100s.csv.gz");
    proposed("hai/hai-21.03-fragments-zscored.csv.gz");
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
