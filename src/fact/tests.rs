use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::score::metrics::delay::Delays;
use crate::score::{self, EffectScore, EventRow, RootCourse};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_660_290_000 + second).expect("a small second is an instant")
}

fn incident() -> Incident {
    let p = |name: &str, p: f64| (name.to_owned(), Number::or_zero(p));
    Incident {
        incident: 7,
        time: at(20),
        step: 42,
        root: Some("P2".to_owned()),
        posterior: Posterior(vec![p("P3", 0.0), p("P2", 0.975), p("P1", 0.025)]),
        candidates: Vec::new(),
        first_out: Some("P1".to_owned()),
        effects: vec![Effect {
            client: "P1".to_owned(),
            time: at(-5),
            delay_s: Number::or_zero(-5.0),
            verdict: Verdict::PropagatedEffect,
            via: None,
        }],
        mode: Mode::Evidence,
        priority: Priority::P1,
        disagree: true,
        verdict: Verdict::RootCause,
        would_now_say: None,
        silent_source: None,
        continued: 0,
        stands: false,
        suspended: false,
        why: None,
        sensors: Vec::new(),
        faults: Vec::new(),
        file: None,
        run: None,
    }
}

fn found() -> EventRow {
    EventRow {
        id: "S101".to_owned(),
        start: at(0),
        end: at(9),
        origins: vec!["P1".to_owned()],
        detected: true,
        delay_s: Some(20.0),
        root: Some("P1".to_owned()),
        right: Some(true),
        verdict: score::Verdict::Right,
        root_at_alarm: Some("P2".to_owned()),
        root_after_5: Some("P1".to_owned()),
        silent_source: None,
        sensor: None,
        sensor_right: None,
        incidents: 1,
    }
}

fn score() -> Score {
    Score {
        labelled: 20,
        detected: 19,
        root_right: 18,
        root_wrong: 1,
        root_unknown: 0,
        false_alarms: 1,
        days: 1.0,
        quiet_days: 0.75,
        delay_s: Delays { median: Some(20.0), p95: None },
        ac1: Some(0.9),
        mrr: None,
        roots: RootCourse { at_alarm: 17, after_5_steps: 18, at_close: 18, with_source: 18 },
        effects: EffectScore::default(),
        sensors: None,
        repeats: 2,
        events: vec![found()],
    }
}

// It is a list of every fact: its length is their number.
#[allow(clippy::too_many_lines)]
fn one_of_each() -> Vec<Fact> {
    let p1 = || "P1".to_owned();
    let second_thought = Incident {
        root: None,
        first_out: None,
        effects: Vec::new(),
        mode: Mode::Paper,
        priority: Priority::P2,
        disagree: false,
        verdict: Verdict::Unknown,
        would_now_say: Some(p1()),
        why: Some("root P2 → ?".to_owned()),
        ..incident()
    };
    let over = Incident { why: Some("persistent change".to_owned()), ..incident() };
    let score = score();
    let summary = Summary {
        unused_rows: UnusedRows::default(),
        unused_nominal_rows: UnusedRows::default(),
        not_watched: Vec::new(),
        session: "plant-attack-day".to_owned(),
        mode: Mode::Evidence,
        seed: Some(1),
        clients: 3,
        steps: 17_280,
        incidents: 20,
        wall_s: Number::new(12.5),
        steps_per_s: Number::new(1382.4),
        score: Some(score),
        verdicts: None,
        from: Some(at(0)),
        until: Some(at(86_400)),
        randomness: None,
        suspended: Vec::new(),
        latency_ms: None,
        ledger: None,
    };
    let unlabelled = Summary {
        score: None,
        from: None,
        until: None,
        seed: None,
        mode: Mode::Paper,
        verdicts: Some(TableCounts::default()),
        ..summary.clone()
    };
    let (from, to) = (Value::Number(Number::or_zero(1.05)), Value::Unset);
    vec![
        Fact::Training(Training {
            round: 3,
            rounds: 118,
            server_loss: Number::new(0.0512),
            client_loss: Number::new(f64::NAN),
        }),
        Fact::Calibrated(Calibrated {
            client: p1(),
            tau_c: Number::new(7.25),
            tau_a: Number::new(f64::INFINITY),
            arl0_target: Number::new(86_400.0),
            alarm_steps: Number::new(2.5),
            not_judged_steps: Some(40),
        }),
        Fact::Opened(incident()),
        Fact::Updated(second_thought),
        Fact::Closed(over),
        Fact::Verdict(TableEpisode {
            verdict: "imperfect_training".to_owned(),
            time: at(60),
            until: at(65),
            steps: 2,
            clients: vec![p1()],
            file: None,
            run: None,
        }),
        Fact::Setting(Setting { what: "tau_c".to_owned(), from, to, time: at(1) }),
        Fact::Setting(Setting {
            what: "mode".to_owned(),
            from: Value::Text("paper".to_owned()),
            to: Value::Switch(true),
            time: at(2),
        }),
        Fact::Ledger(Ledger {
            client: p1(),
            epsilon: Number::new(1.5),
            delta: Number::new(1e-5),
            releases: 118,
            ..Ledger::default()
        }),
        Fact::Quality(Quality {
            client: Some(p1()),
            time: at(3),
            what: "gap".to_owned(),
            seconds: Number::new(30.0),
            file: Some("b.csv".to_owned()),
            run: Some("2".to_owned()),
        }),
        Fact::Quality(Quality {
            client: None,
            time: at(4),
            what: "clock jump".to_owned(),
            seconds: None,
            file: None,
            run: None,
        }),
        Fact::Summary(Box::new(summary)),
        Fact::Summary(Box::new(unlabelled)),
    ]
}

#[test]
fn every_fact_is_one_line_with_its_fields_in_order() {
    let lines: Vec<String> = one_of_each().iter().map(Fact::to_line).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn every_fact_can_be_read_back() {
    for fact in one_of_each() {
        let line = fact.to_line();
        assert!(!line.contains('\n'));
        assert!(line.starts_with("{\"fact\":\""), "{line}");
        assert_eq!(Fact::from_line(&line).expect("a line that was written"), fact);
    }
}

proptest! {
    #[test]
    fn no_number_is_ever_nan_or_infinite(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let ledger = Ledger {
            client: "P1".to_owned(),
            epsilon: Number::new(value),
            delta: Number::new(-value),
            releases: 0,
            ..Ledger::default()
        };
        let line = Fact::Ledger(ledger.clone()).to_line();
        prop_assert!(!line.contains("NaN") && !line.contains("inf"));
        prop_assert_eq!(ledger.epsilon.is_some(), value.is_finite());
        prop_assert!(Fact::from_line(&line).is_ok());
    }
}
