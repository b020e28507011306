//! Every kind of sensor fault in tables of either shape: the run says what is wrong and whose it is.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::headwater;

/// Rows of the live file, and those at which a sensor of A is at fault.
const ROWS: usize = 900;
const AT_FAULT: std::ops::Range<usize> = 400..520;

/// Smooth waves with three digits, as a historian writes them.
fn cells(t: usize) -> [String; 4] {
    let noise = |k: usize| ((t * 7919 + k * 104_729) % 997) as f64 / 997.0;
    let periods = [37.0, 53.0, 71.0, 97.0];
    [0, 1, 2, 3].map(|k| format!("{:.3}", 20.0 + 5.0 * (t as f64 / periods[k]).sin() + noise(k)))
}

/// Writes rows `from..`, as the shape has them. A row that is none is missing.
fn write(file: &Path, long: bool, from: usize, rows: &[Option<[String; 4]>]) {
    let mut text = String::from(if long { "time,tag,value\n" } else { "time,a1,a2,b1,b2\n" });
    for (t, cells) in rows.iter().enumerate() {
        let Some(cells) = cells else { continue };
        let t = from + t;
        let stamp = format!("2026-01-01 {:02}:{:02}:{:02}", t / 3600, t / 60 % 60, t % 60);
        if long {
            for (tag, cell) in ["a1", "a2", "b1", "b2"].iter().zip(cells) {
                text += &format!("{stamp},{tag},{cell}\n");
            }
        } else {
            text += &format!("{stamp},{}\n", cells.join(","));
        }
    }
    fs::write(file, text).expect("written");
}

/// The facts of a run with this fault, or what it said instead.
fn run(
    folder: &Path,
    long: bool,
    fault: impl Fn(usize) -> Option<String>,
) -> Result<Vec<Value>, String> {
    let nominal: Vec<_> = (0..900).map(|t| Some(cells(t))).collect();
    let live: Vec<_> = (0..ROWS)
        .map(|t| {
            let mut cells = cells(t + 5000);
            if AT_FAULT.contains(&t) {
                cells[0] = fault(t)?;
            }
            Some(cells)
        })
        .collect();
    write(&folder.join("nominal.csv"), long, 0, &nominal);
    write(&folder.join("live.csv"), long, 3600, &live);
    let shape = if long { ", shape: Long(tag: \"tag\", value: \"value\")" } else { "" };
    let session = format!(
        "Session(about: \"a table\", source: Table(data: \".\", time: (column: \"time\"){shape}), \
         clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
         sampling: (decimate: Every(1)), seed: 1, \
         model: (proprietary: Linear, federation: Batched(rounds: 1)), \
         ranges: (fit: (files: [\"nominal.csv\"], until: \"+600 steps\"), \
         calibration: (files: [\"nominal.csv\"], from: \"+600 steps\"), \
         replay: (files: [\"live.csv\"])))"
    );
    fs::write(folder.join("plant.ron"), session).expect("written");
    let output = headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .args(["run", "plant.ron", "--json"])
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => {
            let facts = String::from_utf8(output.stdout).expect("text");
            Ok(facts.lines().map(|line| serde_json::from_str(line).expect("an object")).collect())
        }
        Some(1) => Err(said),
        code => panic!("{code:?}: {said}"),
    }
}

#[test]
fn every_kind_of_sensor_fault_in_a_table_is_told_and_its_client_named() {
    let mut runs = 0;
    for long in [false, true] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (fault, cell, word) in [
            ("no number", "NaN", "gap"),
            ("empty", "", "gap"),
            ("infinite", "inf", "gap"),
            ("stuck", "21.500", "stuck"),
            ("out of range", "60.0", "range"),
            ("wild", "-2147483648", "range"),
        ] {
            let what = format!("{fault}, {}", if long { "long" } else { "wide" });
            let facts = run(folder.path(), long, |_| Some(cell.to_owned()));
            let facts = facts.unwrap_or_else(|said| panic!("{what}: {said}"));
            assert_eq!(facts.last().expect("a summary")["steps"], ROWS, "{what}");
            let told = |client: &str| {
                let is_told = |fact: &&Value| {
                    fact["fact"] == "quality" && fact["client"] == client && fact["what"] == word
                };
                facts.iter().filter(is_told).count()
            };
            assert!(told("A") > 0 && told("B") == 0, "{what}: {facts:#?}");
            runs += 1;
        }
        let facts = run(folder.path(), long, |_| None).expect("a gap is no error");
        let is_gap = |fact: &Value| {
            fact["what"] == "gap" && fact["seconds"].as_f64() == Some(AT_FAULT.len() as f64)
        };
        assert!(
            facts
                .iter()
                .any(|fact| fact["fact"] == "quality" && fact["client"].is_null() && is_gap(fact))
        );
        let said = run(folder.path(), long, |_| Some("ERR".to_owned())).expect_err("no number");
        let line = if long { 4 * AT_FAULT.start + 2 } else { AT_FAULT.start + 2 };
        assert!(said.contains(&format!("live.csv:{line}:")) && said.contains("a1"), "{said}");
        runs += 2;
    }
    println!("{runs} tables with faulty sensors: 8 kinds, 2 shapes");
}
