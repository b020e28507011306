//! Rows with wrong values and wrong time stamps: none disables a sensor, none costs the rows after
//! it, and every row that is not used is counted and said.

mod clients;

use std::fs;
use std::process::Output;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tempfile::TempDir;

use crate::headwater;

/// Rows of the live file.
const ROWS: usize = 1500;

/// Two clients with two sensors each: 900 nominal rows, and 1500 live rows that a test may
/// spoil, each as its cells.
struct Plant {
    folder: TempDir,
    nominal: Vec<Vec<String>>,
    live: Vec<Vec<String>>,
}

/// Smooth waves that differ from sensor to sensor, with three digits, as a historian writes them.
pub(crate) fn row(stamp: Timestamp, t: usize) -> Vec<String> {
    let noise = |k: usize| ((t * 7919 + k * 104_729) % 997) as f64 / 997.0;
    let wave = |k: usize| {
        let period = [37.0, 53.0, 71.0, 97.0][k];
        20.0 + 5.0 * (t as f64 / period).sin() + noise(k)
    };
    let stamp = stamp.strftime("%Y-%m-%d %H:%M:%S").to_string();
    std::iter::once(stamp).chain((0..4).map(|k| format!("{:.3}", wave(k)))).collect()
}

pub(crate) fn whole(n: usize) -> i64 {
    i64::try_from(n).expect("a small number")
}

pub(crate) fn begin() -> Timestamp {
    "2024-10-27T00:00:00Z".parse().expect("a time")
}

impl Plant {
    /// A row every `period_s` seconds.
    fn new(period_s: i64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |t: usize| SignedDuration::from_secs(period_s * whole(t));
        let live = (0..ROWS).map(|t| row(begin() + at(t), t + 5000)).collect();
        let nominal = (0..900).map(|t| row(begin() - at(900 - t), t)).collect();
        let plant = Self { folder, nominal, live };
        plant.write("nominal.csv", &plant.nominal);
        let nominal = "files: [\"nominal.csv\"]";
        let session = format!(
            "Session(about: \"a table\", source: Table(data: \".\", time: (column: \"time\")), \
             clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
             sampling: (decimate: Every(1)), seed: 1, \
             model: (proprietary: Linear, federation: Batched(rounds: 1)), \
             ranges: (fit: ({nominal}, until: \"+600 steps\"), \
             calibration: ({nominal}, from: \"+600 steps\"), replay: (files: [\"live.csv\"])))"
        );
        fs::write(plant.folder.path().join("plant.ron"), session).expect("writable");
        plant
    }

    fn write(&self, name: &str, rows: &[Vec<String>]) {
        let lines: Vec<String> = rows.iter().map(|cells| cells.join(",")).collect();
        let text = format!("time,a1,a2,b1,b2\n{}\n", lines.join("\n"));
        fs::write(self.folder.path().join(name), text).expect("writable");
    }

    fn headwater(&self, args: &[&str]) -> Output {
        self.write("live.csv", &self.live);
        headwater()
            .current_dir(self.folder.path())
            .env("HEADWATER_CACHE", self.folder.path().join("cache"))
            .args(args)
            .output()
            .expect("the program runs")
    }

    fn said(&self, args: &[&str]) -> String {
        let output = self.headwater(args);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {complaint}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The facts of a run.
    fn run(&self) -> Vec<Value> {
        let lines = self.said(&["run", "plant.ron", "--json"]);
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    }

    fn check(&self) -> String {
        self.said(&["check", "plant.ron", "--full"])
    }
}

fn summary(facts: &[Value]) -> &Value {
    facts.last().expect("a summary")
}

/// What is wrong with the data, each as client and words.
fn quality(facts: &[Value]) -> Vec<(Option<&str>, &str)> {
    let facts = facts.iter().filter(|fact| fact["fact"] == "quality");
    facts.map(|fact| (fact["client"].as_str(), fact["what"].as_str().expect("words"))).collect()
}

/// Facts about rows that were left out or clocks that moved.
fn about_rows(facts: &[Value]) -> Vec<&str> {
    let of_rows = |what: &&str| what.contains("left out") || what.contains("clock of the data");
    quality(facts).into_iter().map(|(_, what)| what).filter(of_rows).collect()
}

fn unused(facts: &[Value]) -> &Value {
    &summary(facts)["unused_rows"]
}

#[test]
fn clean_rows_are_all_used_and_all_sensors_watched() {
    let plant = Plant::new(1);
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], ROWS);
    assert!(unused(&facts).is_null() && summary(&facts)["not_watched"].is_null());
    assert!(about_rows(&facts).is_empty());
    let check = plant.check();
    assert!(check.ends_with("ok: every row was read\n"), "{check}");
    assert!(!check.contains("not watched"), "{check}");
}

/// Asserts that a sensor of A with wild values is still watched, and said to be out of range.
fn assert_is_watched(plant: &Plant, what: &str) {
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], ROWS);
    assert!(summary(&facts)["not_watched"].is_null(), "{what}: {}", summary(&facts));
    let said = quality(&facts);
    assert!(!said.iter().any(|(_, what)| what.contains("without")), "{what}: {said:?}");
    assert!(said.contains(&(Some("A"), "range")), "{what}: {said:?}");
    assert!(!said.contains(&(Some("B"), "range")), "{what}: {said:?}");
    for opened in facts.iter().filter(|fact| fact["fact"] == "opened") {
        assert_ne!(opened["root"], "B", "{what}: the wrong client is named");
    }
    let train = plant.said(&["train", "plant.ron"]);
    assert!(!train.contains("without") && train.matches("2 sensors").count() == 2, "{train}");
    assert!(!plant.check().contains("not watched"), "{what}");
}

#[test]
fn one_wild_value_does_not_disable_its_sensor() {
    let mut plant = Plant::new(1);
    plant.live[400][1] = "1e10".into();
    assert_is_watched(&plant, "1e10 once");
}

#[test]
fn twenty_rows_of_the_smallest_integer_do_not_disable_their_sensor() {
    let mut plant = Plant::new(1);
    for row in &mut plant.live[400..420] {
        row[1] = "-2147483648".into();
    }
    assert_is_watched(&plant, "-2147483648 twenty times");
}

#[test]
fn a_row_in_which_every_sensor_of_a_client_is_wild_stops_nothing() {
    let mut plant = Plant::new(1);
    plant.live[400][1] = "1e10".into();
    plant.live[400][2] = "-1e10".into();
    assert_is_watched(&plant, "all sensors of A");
    // And of both.
    plant.live[400][3] = "1e10".into();
    plant.live[400][4] = "1e10".into();
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], ROWS);
    assert!(summary(&facts)["not_watched"].is_null());
}

#[test]
fn every_command_says_which_sensors_are_not_watched_and_why() {
    let mut plant = Plant::new(1);
    for row in &mut plant.live {
        row[2] = row[1].clone();
    }
    let nominal = fs::read_to_string(plant.folder.path().join("nominal.csv")).expect("written");
    let doubled: Vec<Vec<String>> = nominal
        .lines()
        .skip(1)
        .map(|line| {
            let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            cells[2] = cells[1].clone();
            cells[4] = "7".into();
            cells
        })
        .collect();
    plant.write("nominal.csv", &doubled);
    let facts = plant.run();
    // A constant is watched by its value.
    let expected = serde_json::json!([{"client": "A", "sensor": "a2", "why": "repeats a1"}]);
    assert_eq!(summary(&facts)["not_watched"], expected);
    let words = plant.said(&["run", "plant.ron"]);
    assert!(words.contains("A is watched without a2 (repeats a1)"), "{words}");
    let check = plant.check();
    assert!(check.contains("not watched A          a2: repeats a1"), "{check}");
    assert!(check.contains("by value    B          b2: at most one false alarm in"), "{check}");
    let train = plant.said(&["train", "plant.ron"]);
    assert!(train.contains("without a2: repeats a1"), "{train}");
}

#[test]
fn a_row_stamped_2099_costs_itself_and_nothing_else() {
    let mut plant = Plant::new(1);
    for (row, line) in [(0, 2), (500, 502), (ROWS - 1, ROWS + 1)] {
        let right = std::mem::replace(&mut plant.live[row][0], "2099-01-01 00:00:00".into());
        let facts = plant.run();
        assert_eq!(summary(&facts)["steps"], ROWS - 1, "row {row}");
        assert_eq!(unused(&facts)["rows"], 1);
        assert_eq!(unused(&facts)["wrong_stamp"], 1);
        let what = format!(
            "time stamp does not fit the rows around it, row left out (live.csv line {line})"
        );
        assert_eq!(about_rows(&facts), [what]);
        assert!(summary(&facts)["until"].as_str().expect("a time").starts_with("2024-10-27"));
        let check = plant.check();
        assert!(check.contains("1499 frames of 1 s"), "{check}");
        assert!(check.contains("1 × time stamp does not fit the rows around it"), "{check}");
        assert!(check.ends_with("ok: every row was read; 1 row is not used, see above\n"));
        plant.live[row][0] = right;
    }
}

#[test]
fn stamps_that_are_all_equal_are_one_frame_and_every_other_row_is_counted() {
    let mut plant = Plant::new(1);
    for row in &mut plant.live {
        row[0] = "2024-10-27 00:00:00".into();
    }
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], 1);
    assert_eq!(unused(&facts)["duplicate_stamp"], ROWS - 1);
    let what = "duplicate time stamp, 1499 rows left out (live.csv from line 3)";
    assert_eq!(about_rows(&facts), [what]);
    let words = plant.said(&["run", "plant.ron"]);
    let line = "1499 rows of the data not used: 1499 × duplicate time stamp\n";
    assert!(words.contains(line), "{words}");
    let check = plant.check();
    assert!(check.contains("1499 × duplicate time stamp, row left out"), "{check}");
    assert!(check.contains("1499 rows are not used"), "{check}");
}

#[test]
fn stamps_in_reverse_are_one_frame_and_every_other_row_is_counted() {
    let mut plant = Plant::new(1);
    plant.live.reverse();
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], 1);
    assert_eq!(unused(&facts)["backward_stamp"], ROWS - 1);
    let what = "time stamp runs backward, 1499 rows left out (live.csv from line 3)";
    assert_eq!(about_rows(&facts), [what]);
    assert!(plant.check().contains("1499 × time stamp runs backward, row left out"));
}

#[test]
fn the_repeated_hour_at_the_end_of_summer_time_is_followed_and_said() {
    let mut plant = Plant::new(60);
    // From 03:00 on the clock of the wall shows an hour less.
    for (minute, row) in plant.live.iter_mut().enumerate().skip(180) {
        let shown = begin() + SignedDuration::from_mins(whole(minute) - 60);
        row[0] = shown.strftime("%Y-%m-%d %H:%M:%S").to_string();
    }
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], ROWS, "no row is lost");
    assert!(unused(&facts).is_null());
    let what = "the clock of the data moved from 2024-10-27T02:59:00Z to 2024-10-27T02:00:00Z \
                (-3540 s), its rows are used (live.csv line 182)";
    assert_eq!(about_rows(&facts), [what]);
    assert!(!quality(&facts).iter().any(|(_, what)| what.contains("gap")));
    assert!(plant.check().contains("the clock of the data moved from 2024-10-27T02:59:00Z"));
}

#[test]
fn an_hour_that_is_too_short_to_tell_is_left_out_and_each_of_its_rows_counted() {
    let mut plant = Plant::new(600);
    for (row, cells) in plant.live.iter_mut().enumerate().skip(18) {
        let shown = begin() + SignedDuration::from_mins(10 * (whole(row) - 6));
        cells[0] = shown.strftime("%Y-%m-%d %H:%M:%S").to_string();
    }
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], ROWS - 6);
    assert_eq!(
        (&unused(&facts)["rows"], &unused(&facts)["backward_stamp"]),
        (&6.into(), &5.into())
    );
}

#[test]
fn rows_left_out_all_along_are_two_lines_and_not_hundreds_at_any_speed() {
    let mut plant = Plant::new(1);
    plant.live = plant.live.iter().flat_map(|row| [row.clone(), row.clone()]).collect();
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], ROWS);
    assert_eq!(unused(&facts)["duplicate_stamp"], ROWS);
    let all = "duplicate time stamp, 1500 rows left out in all (live.csv lines 3 to 3001)";
    let first = "duplicate time stamp, row left out (live.csv line 3)";
    assert_eq!(about_rows(&facts), [first, all]);
    let paced = plant.said(&["run", "plant.ron", "--json", "--speed", "2000"]);
    let paced: Vec<Value> =
        paced.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(about_rows(&paced), about_rows(&facts));
}

#[test]
fn rows_of_the_nominal_data_that_are_not_used_are_told_by_run_as_well() {
    let plant = Plant::new(1);
    let nominal = fs::read_to_string(plant.folder.path().join("nominal.csv")).expect("written");
    let mut lines: Vec<&str> = nominal.lines().collect();
    let (fit, calibration) = (lines[101], lines[801]);
    lines.insert(102, fit);
    lines.insert(803, calibration);
    lines.insert(804, calibration);
    fs::write(plant.folder.path().join("nominal.csv"), lines.join("\n")).expect("written");
    for again in [false, true] {
        let facts = plant.run();
        let unused = &summary(&facts)["unused_nominal_rows"];
        assert_eq!(unused["duplicate_stamp"], 3, "kept models know it too: {again}");
        let what = "3 rows of the nominal data not used: 3 × duplicate time stamp";
        assert!(quality(&facts).contains(&(None, what)), "{:?}", quality(&facts));
    }
    let words = plant.said(&["run", "plant.ron"]);
    assert!(words.contains("3 rows of the nominal data not used: 3 × duplicate"), "{words}");
    assert!(plant.check().contains("3 rows are not used"));
    let screen = plant.said(&["screen", "plant.ron", "--at", "+5m", "--size", "160x40"]);
    assert!(screen.contains("? 3 nominal rows left out"), "{screen}");
}

#[test]
fn nominal_rows_that_are_labelled_anomalous_and_a_nominal_clock_that_moves_are_told() {
    let plant = Plant::new(1);
    let file = plant.folder.path().join("plant.ron");
    let text = fs::read_to_string(&file).expect("written");
    // Row 100 to row 149 of the nominal data.
    let labels = "labels: Events([(id: \"1\", start: \"2024-10-26 23:46:40\", \
                  end: \"2024-10-26 23:47:29\")]), seed: 1";
    fs::write(&file, text.replace("seed: 1", labels)).expect("writable");
    // An hour back in the middle of the fit range.
    let mut nominal = plant.nominal.clone();
    for (t, row) in nominal.iter_mut().enumerate().take(300) {
        row[0] = (begin() + SignedDuration::from_secs(whole(t) - 900 + 3600)).to_string();
    }
    plant.write("nominal.csv", &nominal);
    let facts = plant.run();
    let unused = &summary(&facts)["unused_nominal_rows"];
    assert_eq!(unused["clock_moves"], 1, "{unused}");
    assert!(
        quality(&facts).iter().any(|(_, what)| what.contains("clock of the nominal data moved"))
    );
    plant.write("nominal.csv", &plant.nominal);
    let facts = plant.run();
    let unused = &summary(&facts)["unused_nominal_rows"];
    assert_eq!(unused["labelled_anomalous"], 50, "{unused}");
    let what =
        "50 rows of the nominal data are labelled anomalous, and what they show counts as normal";
    assert!(quality(&facts).contains(&(None, what)), "{:?}", quality(&facts));
}

#[test]
fn rows_that_a_historian_wrote_twice_are_left_out_and_the_clock_has_not_moved() {
    for repeated in [5, 20, 30, 200] {
        let mut plant = Plant::new(1);
        let again = plant.live[600 - repeated..600].to_vec();
        plant.live.splice(600..600, again);
        let facts = plant.run();
        assert_eq!(summary(&facts)["steps"], ROWS, "{repeated}: {}", unused(&facts));
        assert_eq!(unused(&facts)["duplicate_stamp"], repeated, "{}", unused(&facts));
        assert!(!about_rows(&facts).iter().any(|what| what.contains("clock of the data")));
    }
}

/// Writes the nominal rows with `wild` in some cells, each as row and cell.
fn with_wild_nominal(plant: &Plant, wild: &str, cells: &[(usize, usize)]) {
    let mut nominal = plant.nominal.clone();
    for (row, cell) in cells {
        nominal[*row][*cell] = wild.into();
    }
    plant.write("nominal.csv", &nominal);
}

#[test]
fn a_wild_value_in_nominal_data_does_not_blind_its_sensor_and_is_told() {
    let mut plant = Plant::new(1);
    for row in &mut plant.live[800..1000] {
        row[1] = format!("{:.3}", row[1].parse::<f64>().expect("a number") + 40.0);
    }
    // In the fit range, for twenty rows, and in the calibration range.
    let twenty: Vec<(usize, usize)> = (300..320).map(|row| (row, 1)).collect();
    for (wild, cells) in
        [("1e10", &[(300, 1)][..]), ("-2147483648", &twenty[..]), ("1e300", &[(700, 1)][..])]
    {
        with_wild_nominal(&plant, wild, cells);
        let facts = plant.run();
        let said = quality(&facts);
        assert!(said.contains(&(Some("A"), "range")), "{wild}: {said:?}");
        let opened = facts.iter().find(|fact| fact["fact"] == "opened");
        assert_eq!(opened.expect("the fault is found")["root"], "A", "{wild}");
        assert_eq!(summary(&facts)["unused_nominal_rows"]["wild_values"], cells.len(), "{wild}");
        assert!(said.iter().any(|(_, what)| what.contains("of the nominal data taken out")));
    }
    let told = "1 wild value of the nominal data taken out";
    let words = plant.said(&["run", "plant.ron"]);
    assert!(words.contains(told), "{words}");
    let check = plant.check();
    assert!(
        check.contains("wild values A          a1: 1 taken out of the nominal data"),
        "{check}"
    );
    let screen = plant.said(&["screen", "plant.ron", "--at", "+5m", "--size", "160x40"]);
    assert!(screen.contains("? 1 wild nominal value"), "{screen}");
}

#[test]
fn sensors_that_are_wild_in_one_nominal_row_do_not_repeat_each_other() {
    let plant = Plant::new(1);
    with_wild_nominal(&plant, "1e10", &[(300, 1), (300, 2), (300, 3), (300, 4)]);
    let facts = plant.run();
    assert!(summary(&facts)["not_watched"].is_null(), "{}", summary(&facts));
    assert_eq!(summary(&facts)["unused_nominal_rows"]["wild_values"], 4);
}

#[test]
fn a_live_value_beyond_every_float_of_the_model_is_told_and_not_taken_as_missing() {
    let mut plant = Plant::new(1);
    plant.live[400][1] = "-1e308".into();
    assert!(quality(&plant.run()).contains(&(Some("A"), "range")));
}

#[test]
fn a_stamp_at_the_end_of_the_calendar_costs_its_row_and_nothing_else() {
    let mut plant = Plant::new(1);
    plant.live[700][0] = "9999-12-31 23:59:59".into();
    let facts = plant.run();
    assert_eq!(summary(&facts)["steps"], ROWS - 1);
    assert_eq!(unused(&facts)["wrong_stamp"], 1);
}

/// What a command that fails says.
fn complaint(plant: &Plant, args: &[&str]) -> String {
    let output = plant.headwater(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn rows_of_another_period_than_that_of_the_models_are_refused() {
    let mut plant = Plant::new(1);
    for (row, cells) in plant.live.iter_mut().enumerate() {
        let shown = begin() + SignedDuration::from_secs(5 * whole(row));
        cells[0] = shown.strftime("%Y-%m-%d %H:%M:%S").to_string();
    }
    let what = "the replay range has a row every 5 s and the fit range one every 1 s";
    for command in [&["run", "plant.ron"][..], &["check", "plant.ron"], &["train", "plant.ron"]] {
        let said = complaint(&plant, command);
        assert!(said.contains(what), "{command:?}: {said}");
    }
}

#[test]
fn a_period_that_the_rows_contradict_is_refused() {
    let plant = Plant::new(1);
    let file = plant.folder.path().join("plant.ron");
    let session = fs::read_to_string(&file).expect("the session");
    for (period, is_right) in [("1000000", false), ("0.1", false), ("1.01", true)] {
        let sampling = format!("sampling: (period_s: {period}, ");
        fs::write(&file, session.replace("sampling: (", &sampling)).expect("written");
        let output = plant.headwater(&["check", "plant.ron"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_right, "{period}: {said}");
        let what = format!("a row comes every {period} s, but in nominal.csv one comes every 1 s");
        assert!(is_right || said.contains(&what), "{said}");
    }
}

#[test]
fn a_range_without_a_row_that_can_be_used_is_an_error_that_counts_its_rows() {
    let mut plant = Plant::new(1);
    plant.live.clear();
    let said = complaint(&plant, &["run", "plant.ron"]);
    assert!(said.contains("the replay range holds no data"), "{said}");
    let mut reversed = plant.nominal.clone();
    reversed.reverse();
    plant.write("nominal.csv", &reversed);
    let said = complaint(&plant, &["run", "plant.ron"]);
    assert!(
        said.contains("899 rows of the data not used: 899 × time stamp runs backward"),
        "{said}"
    );
}
