use super::*;
use crate::study::catalogue;

fn row(pairs: &[(&str, Value)]) -> Row {
    Row::of(pairs)
}

fn report(study: &str, rows: Vec<Row>) -> Report {
    Report { study: study.into(), rows, ..Report::default() }
}

fn cells(overview: &Report, figure: &str) -> [Value; 2] {
    let row = overview.rows.iter().find(|row| row.get("figure") == Some(&figure.into()));
    let row = row.expect("a line of this figure");
    ["at_papers_settings", "at_our_settings"].map(|name| row.get(name).cloned().unwrap_or_default())
}

#[test]
fn a_line_is_made_of_the_rows_of_its_study_and_says_what_was_not_run() {
    let flips = |p_c: f64, p_a: f64, recall: f64| {
        row(&[
            ("family", "A2".into()),
            ("p_c", p_c.into()),
            ("p_a", p_a.into()),
            ("inside_recall", recall.into()),
        ])
    };
    let noise = |sigma: f64, loss: Value| {
        row(&[
            ("family", "A2".into()),
            ("direction", "states up".into()),
            ("sigma", sigma.into()),
            ("server_loss", loss),
            ("client_loss", 1.0.into()),
        ])
    };
    let flags = row(&[
        ("family", "A2-paper".into()),
        ("method", "federated, flags at 95 %".into()),
        ("arl0", Value::Null),
        ("arl0_at_least", 300.0.into()),
        ("arl1", 1.26.into()),
    ]);
    let reports = [
        report("detection", vec![flags]),
        report(
            "privacy",
            vec![
                noise(0.0, 1.0.into()),
                noise(0.1, 1.9.into()),
                noise(1.0, Value::Null),
                noise(10.0, 1.0.into()),
                flips(0.55, 1.0, 0.8),
                flips(1.0, 1.0, 0.9),
                flips(1.0, 0.55, 0.4),
            ],
        ),
    ];
    let overview = overview(&reports);
    assert_eq!(overview.rows.len(), lines().count());
    let arl = cells(&overview, "ARL0 / ARL1 of the framework, steps");
    assert_eq!(arl, [Value::from(">300.0 / 1.3"), Value::Null]);
    let states = cells(&overview, "σ with L_s / L_a at most doubled, states");
    assert_eq!(states[1], "0.1 / 10", "a loss that diverged ends what is stable");
    assert_eq!(
        cells(&overview, "recall inside anomalies, p_a from 1 to the least")[1],
        "0.90 → 0.40"
    );
    assert_eq!(cells(&overview, "the same, p_c from 1 to the least")[1], "0.90 → 0.80");
    assert!(overview.tables[0].lines.iter().any(|line| line.contains(&Cell::words(ABSENT))));
}

#[test]
fn every_table_and_figure_has_a_line_of_a_study_that_all_runs() {
    for of in [
        "Table 2", "Table 3", "Table 4", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7",
    ] {
        assert!(SECTIONS.iter().any(|section| section.of == of), "{of}");
    }
    let known =
        |section: &Section| catalogue::find(section.study).is_some_and(|study| !study.repeats());
    assert!(SECTIONS.iter().all(known));
    assert!(lines().all(|(_, line)| !(line.printed)().is_empty()));
}

#[test]
fn a_flag_a_minute_is_shown_in_both_readings_where_a_step_is_a_second() {
    let flags = |family: &str, method: &str, arl0: f64| {
        row(&[
            ("family", family.into()),
            ("method", format!("{method}, flags at 95 %").into()),
            ("arl0", arl0.into()),
            ("arl1", 0.5.into()),
        ])
    };
    let day = |method: &str, a_day: f64| {
        row(&[
            ("family", "plant-paper".into()),
            ("method", method.into()),
            ("false_alarms_per_day", a_day.into()),
        ])
    };
    let mut rows = Vec::new();
    for (r, reading) in ["with any flag", "of mostly flags"].into_iter().enumerate() {
        let models = ["only proprietary model", "federated", "centralised oracle"];
        rows.extend(models.into_iter().enumerate().map(|(m, model)| {
            let method = format!("{model}, of training, a minute {reading}");
            flags("plant-paper", &method, (3 * r + m + 1) as f64)
        }));
    }
    rows.extend([
        flags("plant-paper", "federated", 0.2),
        flags("plant-paper", "federated, a minute with any flag", 1.3),
        flags("plant-paper", "federated, a minute of mostly flags", 40.0),
        flags("plant", "federated", 0.9),
        day("evidence", 1.25),
        day("paper-95", 7000.4),
        day("paper-99.5", 2000.0),
    ]);
    let overview = overview(&[report("plant", rows)]);
    let steps = cells(&overview, "plant, 95 %: ARL0 / ARL1 of flags, min");
    assert_eq!(steps, [Value::from("0.2 / 0.5"), Value::from("0.9 / 0.5")]);
    let minutes = cells(&overview, "a flag a minute: of any step; of most steps");
    assert_eq!(minutes, [Value::from("1.3 / 0.5; 40.0 / 0.5"), Value::from("0.9 / 0.5 (steps)")]);
    let figure = "ARL0 in training rows: proprietary / framework / oracle";
    let training = cells(&overview, figure);
    assert_eq!(training, [Value::from("1.0 / 2.0 / 3.0; 4.0 / 5.0 / 6.0"), Value::Null]);
    let line = lines().find(|(_, line)| line.figure == figure).expect("its line").1;
    assert_eq!((line.printed)(), "71.0 / 131.0 / 89.0");
    let alarms = cells(&overview, "false alarms a day, 95 % / 99.5 % / evidence");
    assert_eq!(alarms, [Value::from("7000 / 2000 / 1.2"), Value::Null]);
}

#[test]
fn root_causes_of_flags_by_the_minute_stand_beside_those_of_steps() {
    let line = |family: &str, method: &str, accuracy: f64| {
        row(&[
            ("family", family.into()),
            ("method", method.into()),
            ("rca_accuracy", accuracy.into()),
            ("delay", 1.25.into()),
            ("false_alarms_per_day", (1000.0 * accuracy).into()),
        ])
    };
    let rows = vec![
        line("plant-paper", "paper-95", 0.5),
        line("plant-paper", "paper-95-any-minute", 0.25),
        line("plant-paper", "paper-95-most-minute", 0.75),
        line("plant-attack-day", "paper-95", 1.0),
    ];
    let overview = overview(&[report("plant", rows)]);
    let roots = cells(&overview, "plant, 95 %: the same, a flag a minute: any step; most steps");
    let minutes = "25 % / 1.2 min; 75 % / 1.2 min";
    assert_eq!(roots, [Value::from(minutes), Value::from("100 % / 1.2 min (steps)")]);
    let alarms = cells(&overview, "the same of a flag a minute, 95 %: any step; most steps");
    assert_eq!(alarms, [Value::from("250; 750"), Value::from("1000 (steps)")]);
}

#[test]
fn what_has_one_setting_is_as_ours_at_the_paper_s() {
    let oracle = row(&[
        ("family", "A2".into()),
        ("method", "centralised oracle, flags at 95 %".into()),
        ("arl0", 17.0.into()),
        ("arl1", 0.0.into()),
    ]);
    let overview = overview(&[report("detection", vec![oracle])]);
    let of_oracle = cells(&overview, "the same of the oracle");
    assert_eq!(of_oracle, [Value::from("as ours"), Value::from("17.0 / 0.00")]);
}
