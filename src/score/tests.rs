mod files;

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::alarms::{AlarmFile, read as read_alarms};
use super::error::ScoreError;
use super::report::Report;
use super::truth::read as read_truth;
use super::*;
use crate::session::Span;

const TAIL: Span = Span { seconds: 300.0 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_660_320_000 + second).expect("a time of our century")
}

fn event(id: &str, start: i64, end: i64, origins: &[&str]) -> Event {
    Event {
        id: id.into(),
        start: at(start),
        end: at(end),
        origins: origins.iter().map(ToString::to_string).collect(),
        affected: Vec::new(),
        sensors: Vec::new(),
        what: String::new(),
    }
}

fn alarm(opened: i64, root: &str) -> Alarm {
    Alarm::new(at(opened), (!root.is_empty()).then(|| root.into()))
}

fn day() -> Watched {
    Watched::Spans(vec![(at(0), at(86_400))])
}

#[test]
fn each_kind_of_answer_is_counted_where_it_belongs() {
    let events = [
        event("right", 1000, 1100, &["P1"]),
        event("wrong", 3000, 3100, &["P1"]),
        event("unnamed", 5000, 5100, &["P2"]),
        event("missed", 7000, 7100, &["P2"]),
        event("doubtful", 9000, 9100, &[]),
        event("either", 11_000, 11_100, &["P2", "P3"]),
    ];
    let alarms = [
        alarm(1010, "P1"),
        alarm(1050, "P2"),
        alarm(3030, "P3"),
        alarm(5400, ""),
        alarm(9020, "P1"),
        alarm(11_400, "P3"),
        alarm(20_000, "P1"),
    ];
    let score = Score::of(&events, &alarms, &day(), 300.0);
    let mut score = serde_json::to_value(score).expect("a score is plain");
    let fields = score.as_object_mut().expect("an object");
    let events = fields.remove("events").expect("each event");
    let verdicts: Vec<&str> =
        events.as_array().expect("a list").iter().filter_map(|e| e["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["right", "wrong", "unnamed", "missed", "doubtful", "right"]);
    let quiet = fields.remove("quiet_days").and_then(|days| days.as_f64()).expect("a number");
    assert!((quiet - (1.0 - 6.0 * 400.0 / 86_400.0)).abs() < 1e-6, "{quiet}");
    let course = json!({"at_alarm": 2, "after_5_steps": 2, "at_close": 2, "with_source": 2});
    assert_eq!(fields.remove("roots"), Some(course));
    assert_eq!(fields.remove("repeats"), Some(json!(1)));
    assert_eq!(fields["effects"]["precision"], json!(null), "the truth knows of no effect");
    fields.remove("effects");
    assert_eq!(
        score,
        json!({
            "labelled": 6, "detected": 5, "root_right": 2, "root_wrong": 1, "root_unknown": 2,
            "false_alarms": 1, "days": 1.0, "delay_s": {"median": 30.0, "p95": 400.0},
            "ac1": 0.4, "mrr": 0.4,
        })
    );
}

#[test]
fn the_first_sensor_of_a_right_root_is_counted_where_the_truth_knows_it() {
    let known = |id: &str, start: i64, sensors: &[&str]| Event {
        sensors: sensors.iter().map(ToString::to_string).collect(),
        ..event(id, start, start + 100, &["P1"])
    };
    let says = |opened: i64, root: &str, sensor: &str| {
        let mut alarm = alarm(opened, root);
        let another = "P9".to_owned();
        alarm.course.take_sensor(Some(&another), Some("of a root that was corrected".into()));
        for sensor in [sensor, "later"] {
            alarm.course.take_sensor(alarm.root.as_ref(), Some(sensor.into()));
        }
        alarm
    };
    let events = [
        known("right", 1000, &["valve", "pressure"]),
        known("wrong sensor", 3000, &["valve"]),
        known("wrong root", 5000, &["valve"]),
        known("not known", 7000, &[]),
        known("not said", 9000, &["valve"]),
    ];
    let alarms = [
        says(1010, "P1", "pressure"),
        says(3010, "P1", "level"),
        says(5010, "P2", "valve"),
        says(7010, "P1", "valve"),
        alarm(9010, "P1"),
    ];
    let score = Score::of(&events, &alarms, &day(), 300.0);
    assert_eq!(score.sensors, Some(SensorScore { known: 2, right: 1 }));
    let rows: Vec<Option<bool>> = score.events.iter().map(|row| row.sensor_right).collect();
    assert_eq!(rows, [Some(true), Some(false), None, None, None]);
    assert_eq!(Score::of(&events[3..], &alarms[3..], &day(), 300.0).sensors, None);
}

#[test]
fn gaps_are_not_watched() {
    let pieces = Watched::Spans(vec![(at(0), at(600)), (at(43_200), at(43_800))]);
    let within = Watched::Within { from: at(0), until: at(43_800), days: 1200.0 / 86_400.0 };
    let events = [event("seen", 100, 200, &["P1"]), event("in the gap", 9000, 9100, &["P1"])];
    let (known, told) = (
        Score::of(&events, &[alarm(110, "P1")], &pieces, 300.0),
        Score::of(&events[..1], &[alarm(110, "P1")], &within, 300.0),
    );
    assert!((known.days - 1200.0 / 86_400.0).abs() < 1e-12, "{known:?}");
    assert_eq!((known.labelled, known.detected), (1, 1));
    assert!((told.days - known.days).abs() < 1e-12, "{told:?}");
}

#[test]
fn a_normal_day_has_a_score_without_shares() {
    let score = Score::of(&[], &[alarm(50, "P1")], &day(), 300.0);
    assert_eq!((score.labelled, score.false_alarms, score.ac1), (0, 1, None));
    let text = serde_json::to_string(&score).expect("a score is plain");
    assert!(text.contains(r#""delay_s":{"median":null,"p95":null},"ac1":null,"mrr":null"#));
    assert_eq!(serde_json::from_str::<Score>(&text).expect("it reads back"), score);
}

#[test]
fn an_event_outside_the_watch_is_not_held_against_anybody() {
    let events = [event("before", -500, -100, &["P1"]), event("after", 90_000, 90_100, &["P1"])];
    let score = Score::of(&events, &[alarm(60, "P1")], &day(), 300.0);
    assert_eq!((score.labelled, score.detected, score.false_alarms), (0, 0, 0));
    let everything = Score::of(&events, &[alarm(60, "P1")], &Watched::Days(2.0), 300.0);
    assert_eq!((everything.labelled, everything.detected, everything.days), (2, 1, 2.0));
}

#[test]
fn the_posterior_ranks_what_was_not_named() {
    let events = [event("A1", 1000, 1100, &["P3"])];
    let mut named = alarm(1010, "P1");
    named.posterior = [("P1", 0.5), ("P2", 0.1), ("P3", 0.4)].map(|(n, p)| (n.into(), p)).into();
    let score = Score::of(&events, &[named], &day(), 300.0);
    assert_eq!((score.root_wrong, score.ac1, score.mrr), (1, Some(0.0), Some(0.5)));
}

#[test]
fn overlapping_watches_are_not_counted_twice() {
    let watched = Watched::Spans(vec![(at(0), at(600)), (at(300), at(900)), (at(1000), at(1100))]);
    let events = [event("A1", 100, 200, &["P1"])];
    let judgement = Judgement::new(&events, &[], &watched, 300.0);
    assert!((judgement.watched_s - 1000.0).abs() < 1e-9);
    assert!((judgement.nominal_s - 600.0).abs() < 1e-5);
}

#[test]
fn a_rate_of_false_alarms_counts_only_time_without_events() {
    // A day of which an event and its tail take six hours; two alarms are false.
    let events = [event("A1", 0, 21_300, &["P1"])];
    let alarms = [alarm(10, "P1"), alarm(30_000, "P1"), alarm(60_000, "P2")];
    let file = AlarmFile {
        alarms: alarms.to_vec(),
        watched: Some(Watched::Spans(vec![(at(0), at(86_400))])),
        closings: false,
        cut_at_line: None,
    };
    let report = Report::new(&events, &file, Span { seconds: 300.0 });
    assert_eq!((report.score.false_alarms, report.score.days), (2, 1.0));
    assert!((report.score.quiet_days - 0.75).abs() < 1e-9, "{:?}", report.score);
    let rate = report.false_alarms_per_day.expect("a rate");
    assert!((rate - 2.0 / 0.75).abs() < 1e-6, "{rate}");
    let text = report.to_string();
    assert!(text.contains("in 0.75 quiet days of 1.00: 2.67 a day"), "{text}");
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let names = ["P1", "P2", "P3"];
    let origins = prop::collection::vec(prop::sample::select(names.to_vec()), 0..3);
    prop::collection::vec((0i64..80_000, 0i64..2000, origins), 0..8).prop_map(|list| {
        list.iter().map(|(start, length, o)| event("A", *start, start + length, o)).collect()
    })
}

fn alarms() -> impl Strategy<Value = Vec<Alarm>> {
    let root = prop::sample::select(vec!["", "P1", "P2", "P3"]);
    let posterior = prop::collection::vec(0.0f64..1.0, 3);
    // Few distinct times, so that alarms of the same instant are common.
    prop::collection::vec((0i64..800, root, posterior), 0..20).prop_map(|list| {
        list.into_iter()
            .map(|(opened, root, weights)| {
                let mut alarm = alarm(opened * 100, root);
                alarm.posterior =
                    ["P1", "P2", "P3"].map(String::from).into_iter().zip(weights).collect();
                alarm
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn a_score_adds_up_and_does_not_depend_on_the_order_of_alarms(
        events in events(),
        alarms in alarms().prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
    ) {
        let score = Score::of(&events, &alarms.0, &day(), 300.0);
        prop_assert_eq!(&score, &Score::of(&events, &alarms.1, &day(), 300.0));
        prop_assert_eq!(score.detected, score.root_right + score.root_wrong + score.root_unknown);
        prop_assert!(score.detected <= score.labelled);
        for share in [score.ac1, score.mrr].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&share));
        }
        prop_assert!(score.ac1 <= score.mrr);
    }

    #[test]
    fn another_alarm_never_costs_a_detection(
        events in events(), alarms in alarms(), more in 0i64..80_000,
    ) {
        let before = Score::of(&events, &alarms, &day(), 300.0);
        let mut longer = alarms;
        longer.push(alarm(more, "P1"));
        let after = Score::of(&events, &longer, &day(), 300.0);
        prop_assert!(after.detected >= before.detected);
        prop_assert!(after.false_alarms >= before.false_alarms);
    }

    #[test]
    fn any_text_is_a_file_or_an_error(text in "\\PC*") {
        let files = files::Files::new();
        let path = files.write("any", &text);
        let _ = read_truth(&path);
        let _ = read_alarms(&path);
    }
}

#[test]
fn a_root_is_judged_at_the_alarm_five_steps_later_and_at_the_end() {
    let mut course = course::Course::new(Some("P2".to_owned()));
    let p = |n: usize| format!("P{n}");
    course.take(Some(&p(2)), Some(100), true);
    course.take(Some(&p(3)), Some(105), false);
    course.take(Some(&p(1)), Some(160), false);
    assert_eq!((course.root_at_alarm, course.root_after_5), (Some(p(2)), Some(p(3))));
}

#[test]
fn effects_are_scored_where_the_truth_knows_who_is_affected() {
    let mut known = event("known", 1000, 1100, &["P1"]);
    known.affected = vec!["P2".to_owned(), "P3".to_owned()];
    let events = [known, event("unknown", 5000, 5100, &["P1"])];
    let mut first = alarm(1010, "P1");
    first.effects = vec!["P2".to_owned(), "P4".to_owned()];
    first.course.take_effects(first.effects.clone().iter(), at(1030));
    let mut second = alarm(5010, "P1");
    second.effects = vec!["P9".to_owned()];
    let score = Score::of(&events, &[first, second], &day(), 300.0);
    assert_eq!((score.effects.precision, score.effects.recall), (Some(0.5), Some(0.5)));
    assert_eq!(score.effects.delay_s.median, Some(30.0));
}
