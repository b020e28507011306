//! Sessions with one thing wrong each: what `headwater check` answers.

use std::fs;

use crate::headwater;

/// What the program says about a session with this text.
fn complaint(text: &str) -> String {
    complaint_about(text.as_bytes())
}

fn complaint_about(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("broken.ron"), bytes).expect("the session can be written");
    let output = headwater()
        .current_dir(folder.path())
        .args(["check", "broken.ron"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1), "a broken session is a failure said in words");
    assert!(output.stdout.is_empty() || !output.stderr.is_empty());
    String::from_utf8(output.stderr).expect("complaints are text")
}

/// A session on a table `data.csv` with columns time, a1, a2, b1.
fn table(body: &str) -> String {
    format!(
        "Session(\n    about: \"a table\",\n    source: Table(data: \".\", time: (column: \"time\")),\n{body}\n)\n"
    )
}

/// What the program says about a session on a table with this content.
fn complaint_with_data(session: &str, data: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("broken.ron"), session).expect("the session can be written");
    fs::write(folder.path().join("data.csv"), data).expect("the data can be written");
    let output = headwater()
        .current_dir(folder.path())
        .args(["check", "broken.ron"])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).expect("complaints are text")
}

const RANGES: &str = "    ranges: (\n        fit: (files: [\"data.csv\"], until: \"+1h\"),\n        calibration: (files: [\"data.csv\"], from: \"+1h\"),\n        replay: (files: [\"data.csv\"]),\n    ),";
const CLIENTS: &str =
    "    clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b1\"])],";

fn with_data(data: &str) -> String {
    complaint_with_data(&table(&format!("{CLIENTS}\n{RANGES}")), data)
}

#[test]
fn a_name_that_would_change_the_terminal_or_fill_the_screen_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("s.ron");
    let session = |name: &str| {
        format!(
            "Session(about: \"s\", source: Table(data: \".\", time: (column: \"t\")), \
             clients: [(name: \"{name}\", columns: [\"a\"])])"
        )
    };
    for name in ["A\\u{1b}[31m", "A\\u{7}", &"A".repeat(65), "A B", ""] {
        std::fs::write(&file, session(name)).expect("written");
        let output = headwater().arg("check").arg(&file).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name:?}: {said}");
        assert!(said.contains("clients[0].name: expected a short name"), "{name:?}: {said}");
    }
}

#[test]
fn a_byte_order_mark_in_front_of_a_session_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("s.ron");
    let text = "\u{feff}Session(about: \"s\", source: Twin(clients: 2))";
    std::fs::write(&file, text).expect("written");
    let output = headwater().arg("check").arg(&file).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_misspelt_key_is_answered_with_the_nearest_known_one() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    thresolds: (tau_c: Value(3)),\n)"
    ));
}

#[test]
fn a_misspelt_key_inside_a_part_is_pointed_at() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day, histroy_h: 4),\n)"
    ));
}

#[test]
fn an_unknown_choice_lists_the_known_ones() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    mode: Evidenz,\n)"
    ));
}

#[test]
fn an_unknown_symbol_lists_the_known_ones() {
    let said = complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    privacy: (symbol: TwoBits),\n)",
    );
    assert!(said.contains("broken.ron:4:"), "{said}");
    assert!(said.contains("Graded, OneBit"), "{said}");
}

#[test]
fn a_missing_key_is_named() {
    insta::assert_snapshot!(complaint("Session(\n    source: Plant(attacks: Day),\n)"));
}

#[test]
fn a_key_given_twice_is_named() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    about: \"y\",\n    source: Plant(attacks: Day),\n)"
    ));
}

#[test]
fn a_bracket_that_is_never_closed_is_pointed_at() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day,\n"
    ));
}

#[test]
fn text_where_a_number_belongs_is_pointed_at() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(hours: \"a day\"),\n)"
    ));
}

#[test]
fn a_time_nobody_can_read_says_how_to_write_one() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    ranges: (fit: (until: \"eight o'clock\")),\n)"
    ));
}

#[test]
fn a_day_that_does_not_exist_is_pointed_at() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(start: \"2022-02-30 00:00:00\"),\n    ranges: (fit: (until: \"+8h\"), calibration: (from: \"+8h\")),\n)"
    ));
}

#[test]
fn an_unknown_attack_lists_the_known_ones() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Only([\"S101\", \"S999\"])),\n    ranges: (fit: (until: \"+8h\"), calibration: (from: \"+8h\")),\n)"
    ));
}

#[test]
fn a_budget_that_cannot_be_kept_says_what_it_lacks() {
    let text = |privacy: &str| {
        complaint(&format!(
            "Session(\n    about: \"x\",\n    source: Plant(),\n    privacy: ({privacy}),\n)"
        ))
    };
    for (privacy, expected) in [
        ("budget: (epsilon: 4)", "a budget needs epsilon_flag"),
        ("epsilon_flag: 1, budget: (epsilon: 0)", "expected 1e-6 to 1000000000, found 0"),
        ("epsilon_flag: 1, budget: (epsilon: 4, over: Lifetime)", "needs epsilon_c and epsilon_a"),
        (
            "epsilon_flag: 1, budget: (epsilon: 4, over: Hour, at_zero: AlarmsOnly(reserve: 9))",
            "expected a part of the budget of 4, found 9",
        ),
        ("send: Window(6)", "saving needs a price: set epsilon_flag"),
        ("epsilon_flag: 1, send: Window(0)", "expected 1 to 100000 steps, found 0"),
        ("epsilon_flag: 1, send: Sometimes", "Sometimes"),
        ("contraction: 1", "expected at least 0 and less than 1, found 1"),
        ("sigma: Gauss", "Classic"),
    ] {
        let complaint = text(privacy);
        assert!(complaint.contains(expected), "{privacy}: {complaint}");
        assert!(complaint.contains("broken.ron:4:"), "{privacy}: {complaint}");
    }
}

#[test]
fn a_time_that_is_too_long_is_pointed_at_with_the_longest_possible_one() {
    let most = "36525d, found";
    for (line, expected) in [
        ("ranges: (fit: (until: \"+1e19s\"))", format!("distance from the start up to +{most}")),
        ("ranges: (replay: (from: \"+1e30h\"))", format!("distance from the start up to +{most}")),
        ("replay: (from: \"+1e19s\")", format!("distance from the start up to +{most}")),
        ("replay: (tail: \"1e30d\")", format!("length of time up to {most}")),
        ("thresholds: (arl0: \"1e19s\")", format!("length of time up to {most}")),
        ("sampling: (period_s: 1e19)", "expected 0.001 to 3155760000 seconds".into()),
    ] {
        let said = complaint(&format!(
            "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    {line},\n)"
        ));
        assert!(said.contains(&expected), "{line}: {said}");
        assert!(said.contains("broken.ron:4:"), "{line}: {said}");
    }
    for key in ["hours", "history_h"] {
        let said =
            complaint(&format!("Session(\n    about: \"x\",\n    source: Plant({key}: 1e30),\n)"));
        assert!(said.contains("broken.ron:3:"), "{said}");
        assert!(said.contains("8784 hours, found 1e30"), "{said}");
    }
}

#[test]
fn a_size_that_no_machine_has_is_refused_with_its_bound_before_anything_is_allocated() {
    for (line, expected) in [
        ("model: (transition_width: 18446744073709551615)", "expected 1 to 1024 units, found 1.8"),
        ("model: (states: 1000000)", "expected 1 to 256 states, found 1000000"),
        ("model: (states: 3000)", "expected 1 to 256 states, found 3000"),
        ("model: (states: -1)", "expected 1 to 256 states, found -1"),
        ("model: (epochs: 1000000)", "expected 1 to 10000 passes, found 1000000"),
        ("model: (epochs: 1e30)", "expected 1 to 10000 passes, found 1e30"),
        ("model: (q: NaN)", "expected 1e-9 to 1000000000, found NaN"),
        ("ranges: (fit: (until: \"+18446744073709551615 steps\"))", "up to +10000000000 steps"),
    ] {
        let said = complaint(&format!(
            "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    {line},\n)"
        ));
        assert!(said.contains(expected), "{line}: {said}");
        assert!(said.contains("broken.ron:4:"), "{line}: {said}");
    }
}

#[test]
fn what_nobody_would_wait_for_is_refused_with_an_estimate_before_it_begins() {
    let text = "Session(\n    about: \"x\",\n    source: Twin(clients: 1024),\n    \
                model: (epochs: 10000),\n    limits: (memory_gb: 1000),\n)\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("large.ron"), text).expect("the session can be written");
    for command in ["check", "train", "run", "open"] {
        let output = headwater()
            .current_dir(folder.path())
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .args([command, "large.ron"])
            .output()
            .expect("the program runs");
        let said = String::from_utf8(output.stderr).expect("complaints are text");
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("preparing this session needs about"), "{command}: {said}");
        assert!(said.contains("limits: (preparation_h: …)"), "{command}: {said}");
    }
}

#[test]
fn a_clock_that_no_plant_has_is_refused_with_the_real_ones() {
    let session = |hours: &str| {
        table(&format!("{CLIENTS}\n{RANGES}"))
            .replace("column: \"time\"", &format!("column: \"time\", utc_offset_h: {hours}"))
    };
    for hours in ["14.5", "-12.5", "26"] {
        let said = complaint(&session(hours));
        let expected = "source.time.utc_offset_h: expected -12 to 14 hours ahead of UTC, found";
        assert!(said.contains(&format!("{expected} {hours}")), "{said}");
        assert!(said.contains("broken.ron:3:"), "{said}");
    }
}

#[test]
fn an_unknown_hai_release_lists_the_known_ones() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Hai(version: \"23.5\", data: \"hai\"),\n    ranges: (\n        fit: (files: [\"a\"]),\n        calibration: (files: [\"b\"]),\n        replay: (files: [\"c\"]),\n    ),\n)"
    ));
}

#[test]
fn calibration_on_fitted_data_is_refused_with_its_reason() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    ranges: (\n        fit: (until: \"+8h\"),\n        calibration: (from: \"+4h\", until: \"+40h\"),\n    ),\n)"
    ));
}

#[test]
fn a_range_that_ends_before_it_starts_is_pointed_at() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    ranges: (\n        fit: (until: \"+8h\"),\n        calibration: (from: \"+40h\", until: \"+9h\"),\n    ),\n)"
    ));
}

#[test]
fn all_wrong_numbers_are_told_at_once() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Twin(clients: 1),\n    ranges: (fit: (until: \"+9 steps\"), calibration: (from: \"+9 steps\")),\n    model: (states: 0, window: 3),\n    thresholds: (tau_a: Percentile(101), vote: (k: 5, n: 3)),\n    privacy: (epsilon_flag: -1, delta: 2),\n    replay: (speed: 0),\n)"
    ));
}

#[test]
fn a_table_without_clients_says_what_a_client_looks_like() {
    insta::assert_snapshot!(complaint(&table(RANGES)));
}

#[test]
fn two_clients_of_one_name_are_refused() {
    insta::assert_snapshot!(complaint(&table(&format!(
        "    clients: [\n        (name: \"A\", columns: [\"a1\"]),\n        (name: \"A\", columns: [\"b1\"]),\n    ],\n{RANGES}"
    ))));
}

#[test]
fn an_event_of_an_unknown_client_is_pointed_at() {
    insta::assert_snapshot!(complaint(&table(&format!(
        "{CLIENTS}\n    labels: Events([\n        (id: \"1\", start: \"2020-01-01 00:00\", end: \"2020-01-01 01:00\", origins: [\"C\"]),\n        (id: \"2\", start: \"2020-01-02 00:00\", end: \"2020-01-01 01:00\"),\n    ]),\n{RANGES}"
    ))));
}

#[test]
fn a_declared_edge_to_nobody_is_pointed_at() {
    insta::assert_snapshot!(complaint(
        "Session(\n    about: \"x\",\n    source: Plant(attacks: Day),\n    ranges: (fit: (until: \"+8h\"), calibration: (from: \"+8h\")),\n    edges: [(\"P1\", \"P3\"), (\"P1\", \"P9\")],\n)"
    ));
}

#[test]
fn a_file_that_is_no_text_is_said_to_be_none() {
    insta::assert_snapshot!(complaint_about(b"Session(\n  about: \"\xff\xfe\",\n)"));
}

#[test]
fn missing_files_are_named_with_the_place_they_were_looked_for() {
    insta::assert_snapshot!(complaint(&table(&format!("{CLIENTS}\n{RANGES}"))));
}

#[test]
fn a_column_that_the_file_lacks_is_answered_with_the_nearest_one() {
    insta::assert_snapshot!(with_data("time,a1,a2,b2\n2020-01-01 00:00:00,1,2,3\n"));
}

#[test]
fn a_cell_that_is_no_number_is_named_by_line_column_and_tag() {
    insta::assert_snapshot!(with_data(
        "time,a1,a2,b1\n2020-01-01 00:00:00,1,2,3\n2020-01-01 00:00:01,1,two,3\n"
    ));
}

#[test]
fn a_row_with_too_few_cells_is_named_by_line() {
    insta::assert_snapshot!(with_data(
        "time,a1,a2,b1\n2020-01-01 00:00:00,1,2,3\n2020-01-01 00:00:01,1\n2020-01-01 00:00:02,1,2,3\n"
    ));
}

#[test]
fn a_session_nobody_has_is_answered_with_the_nearest_name() {
    let output = headwater().args(["check", "plant-attack-dy"]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr));
}
