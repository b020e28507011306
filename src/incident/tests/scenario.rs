//! Each rule of grouping, by hand.

use super::*;
use crate::fact::Priority;

#[test]
fn a_flag_alone_is_no_alarm() {
    let mut scene = Scene::new();
    assert!(scene.raise(P1, 10).steps(10).is_empty());
    assert!(scene.desk.incidents().is_empty());
    assert_eq!(scene.desk.figures().flags_10min, 1);
}

#[test]
fn one_root_with_two_effects_is_one_incident() {
    let mut scene = Scene::fault_at_p1();
    scene.raise(P3, 60).steps(3);
    assert_eq!(scene.desk.incidents().len(), 1);
    let incident = scene.incident(1);
    assert_eq!(incident.root, Some(P1));
    assert_eq!(clients(incident.effects()), [P2, P3]);
    let delays: Vec<f64> = incident.effects().map(|m| incident.delay_s(m)).collect();
    assert_eq!(delays, [20.0, 50.0]);
    assert_eq!(scene.desk.client_state(P2), AlarmState::SuppressedByDesign);
    assert_eq!(scene.desk.figures().grouped, 2);
    assert_eq!(scene.desk.figures().grouping(), "3 flags → 1 incident");
}

#[test]
fn a_client_raised_long_before_or_after_is_no_effect() {
    let mut scene = Scene::new();
    scene.steps(100);
    scene.raise(P2, 100).raise(P1, 1000).decide(1, 1000, Some(P1)).steps(2);
    assert_eq!(clients(scene.incident(1).effects()), Vec::<usize>::new());
    scene.steps(80);
    scene.raise(P3, 1800).step();
    assert_eq!(clients(scene.incident(1).effects()), Vec::<usize>::new());
}

#[test]
fn effects_come_in_cascades() {
    let mut scene = Scene::fault_at_p1();
    scene.steps(60);
    scene.raise(P3, 600).steps(60);
    scene.raise(P4, 1150).step();
    assert_eq!(clients(scene.incident(1).effects()), [P2, P3, P4]);
}

#[test]
fn first_out_is_shown_beside_the_root_and_disagrees() {
    let mut scene = Scene::new();
    scene.raise(P2, 10).raise(P1, 20).decide(1, 20, Some(P1));
    let facts = scene.step();
    let incident = scene.incident(1);
    assert_eq!((incident.root, incident.first_out.map(|f| f.client)), (Some(P1), Some(P2)));
    assert!(incident.disagrees());
    let Fact::Opened(opened) = &facts[0] else { panic!("{facts:?}") };
    assert!(opened.disagree);
    assert!((opened.effects[0].delay_s.get() + 10.0).abs() < 1e-9);
    assert!(scene.log().contains(&"#1 P2 alarmed first, DISAGREES with root".to_owned()));
}

#[test]
fn first_out_stays_when_its_evidence_is_gone() {
    let mut scene = Scene::new();
    scene.raise(P2, 10).raise(P1, 20).decide(1, 20, Some(P1)).step();
    scene.quiet(P2).steps(3);
    assert_eq!(scene.incident(1).first_out.map(|f| f.client), Some(P2));
}

#[test]
fn a_tie_is_no_disagreement() {
    let mut scene = Scene::new();
    scene.raise(P1, 10).raise(P2, 10).decide(1, 10, Some(P2)).step();
    assert!(!scene.incident(1).disagrees());
}

#[test]
fn a_late_correction_keeps_number_and_history_and_asks_again() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    scene.decide(1, 10, Some(P2));
    let facts = scene.step();
    let incident = scene.incident(1);
    assert_eq!((incident.number, incident.root), (1, Some(P2)));
    assert_eq!(clients(incident.effects()), [P1]);
    assert_eq!(incident.corrections[0].from, Some(P1));
    assert_eq!(scene.state(1), AlarmState::Unacknowledged);
    assert!(scene.log().contains(&"#1 root P1 → P2".to_owned()));
    assert!(lines(&facts).contains("root P1 → P2"));
}

#[test]
fn after_five_steps_the_root_is_final_and_later_evidence_is_only_shown() {
    let mut scene = Scene::fault_at_p1();
    scene.steps(5);
    assert!(scene.incident(1).frozen);
    scene.decide(1, 10, Some(P2)).steps(3);
    let incident = scene.incident(1);
    assert_eq!(incident.root, Some(P1));
    assert_eq!(incident.second_thought(), Some(P2));
    assert!(incident.corrections.is_empty());
}

#[test]
fn candidates_within_the_margin_leave_the_root_unknown() {
    let mut scene = Scene::new();
    scene.raise(P1, 10).raise(P2, 10).decide(1, 10, Some(P1)).believe([0.45, 0.5, 0.05, 0.0]);
    let facts = scene.step();
    let incident = scene.incident(1);
    assert_eq!((incident.root, incident.priority), (None, Priority::P2));
    assert_eq!(incident.candidates, [P2, P1]);
    assert!(lines(&facts).contains("\"root\":null"));
    scene.believe([0.05, 0.9, 0.05, 0.0]).decide(1, 10, Some(P2)).step();
    assert_eq!(scene.incident(1).root, Some(P2));
    assert!(scene.incident(1).candidates.is_empty());
}

#[test]
fn an_effect_that_stops_being_explained_becomes_an_incident_of_its_own() {
    let mut scene = Scene::fault_at_p1();
    scene.own_fault(P2).steps(2);
    assert_eq!(scene.desk.incidents().len(), 1, "it must hold for a while");
    scene.step();
    let own = scene.incident(2);
    assert_eq!((own.root, own.origin), (Some(P2), Origin::SplitFrom(1)));
    assert_eq!(own.priority, Priority::P2);
    assert_eq!(scene.state(2), AlarmState::Unacknowledged);
    assert_eq!(clients(scene.incident(1).effects()), Vec::<usize>::new());
    scene.quiet(P2).step();
    assert!(!scene.incident(2).is_open());
    assert!(scene.incident(1).is_open());
}

#[test]
fn an_anomaly_of_one_client_opens_once_it_outlives_the_propagation_window() {
    let mut scene = Scene::new();
    scene.raise(P4, 10).own_fault(P4).steps(61);
    assert!(scene.desk.incidents().is_empty());
    scene.step();
    let incident = scene.incident(1);
    assert_eq!((incident.root, incident.origin), (Some(P4), Origin::Single));
    assert_eq!(incident.priority, Priority::P2);
}

#[test]
fn a_verdict_on_a_client_that_was_alone_keeps_its_incident() {
    let mut scene = Scene::new();
    scene.raise(P4, 10).own_fault(P4).steps(62);
    scene.decide(1, 10, Some(P4)).step();
    assert_eq!(scene.desk.incidents().len(), 1);
    scene.over(Closing::Quiet).step();
    assert!(!scene.incident(1).is_open());
}

#[test]
fn two_incidents_that_turn_out_to_have_one_root_become_one() {
    let mut scene = Scene::new();
    scene.steps(3);
    scene.raise(P4, -900).own_fault(P4).step();
    scene.raise(P1, 40).decide(1, 40, Some(P1)).step();
    scene.decide(1, 40, Some(P4)).step();
    assert!(scene.incident(2).is_open());
    assert_eq!(scene.incident(2).root, Some(P4));
    let closed = scene.incident(1).closed.expect("the other one is over");
    assert_eq!(closed.why, Closing::Merged { into: 2 });
    assert_eq!(scene.state(1), AlarmState::Normal);
}

#[test]
fn effects_raise_the_priority_and_ask_again() {
    let mut scene = Scene::new();
    scene.raise(P1, 10).decide(1, 10, Some(P1)).step();
    assert_eq!(scene.incident(1).priority, Priority::P2);
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    scene.raise(P2, 20).step();
    assert_eq!(scene.incident(1).priority, Priority::P1);
    assert_eq!(scene.state(1), AlarmState::Unacknowledged);
}

#[test]
fn an_incident_leaves_the_list_only_when_over_and_acknowledged() {
    let mut scene = Scene::fault_at_p1();
    scene.over(Closing::Quiet).step();
    assert_eq!(scene.state(1), AlarmState::Returned);
    assert_eq!(scene.desk.listed_incidents().count(), 1);
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    assert_eq!(scene.state(1), AlarmState::Normal);
    assert_eq!(scene.desk.listed_incidents().count(), 0);
}

#[test]
fn a_change_that_stays_is_closed_and_latched_until_seen() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    let facts = scene.over(Closing::PersistentChange).step();
    assert_eq!(scene.state(1), AlarmState::Latched);
    assert!(lines(&facts).contains("\"why\":\"persistent change\""));
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    assert_eq!(scene.state(1), AlarmState::Normal);
}

#[test]
fn a_client_alone_that_never_ends_is_a_persistent_change_and_does_not_open_again() {
    let mut scene = Scene::new();
    scene.raise(P4, 10).own_fault(P4).steps(62 + 150);
    let closed = scene.incident(1).closed.expect("too old");
    assert_eq!(closed.why, Closing::PersistentChange);
    scene.steps(200);
    assert_eq!(scene.desk.incidents().len(), 1);
    scene.quiet(P4).step();
    let second = scene.second();
    scene.raise(P4, second).own_fault(P4).steps(62);
    assert_eq!(scene.desk.incidents().len(), 2);
}

#[test]
fn trouble_with_data_is_a_line_when_it_begins_and_when_it_ends() {
    let mut scene = Scene::new();
    scene.quality = vec![
        QualityNote { client: Some(P1), what: QualityKind::Stuck },
        QualityNote { client: None, what: QualityKind::ClockJump { seconds: -30.0 } },
        QualityNote { client: Some(9), what: QualityKind::Range },
    ];
    let facts = scene.steps(1);
    scene.quality.truncate(1);
    assert!(scene.steps(5).is_empty());
    scene.quality.clear();
    // Whether it moves again for good is known when it has moved for a while.
    assert!(scene.steps(59).is_empty());
    let over = scene.step();
    insta::assert_snapshot!(lines(&facts));
    assert!(lines(&over).contains(r#""client":"P1""#), "{over:?}");
    assert!(lines(&over).ends_with(r#""what":"sensors move again"}"#), "{over:?}");
    let expected = [
        "P1: a sensor stands still",
        "all clients: the clock jumped by -30 s",
        "all clients: the clock is steady again",
        "P1: sensors move again",
    ];
    assert_eq!(scene.log(), expected);
    assert_eq!(scene.desk.figures().today.p3, 2);
    assert_eq!(scene.desk.figures().alarms_10min, 0);
}

#[test]
fn a_value_at_the_edge_of_its_range_is_one_trouble_and_not_many() {
    let mut scene = Scene::new();
    let mut facts = Vec::new();
    for _ in 0..30 {
        scene.quality = vec![QualityNote { client: Some(P2), what: QualityKind::Range }];
        facts.extend(scene.step());
        scene.quality.clear();
        facts.extend(scene.steps(7));
    }
    assert_eq!(facts.len(), 1, "{facts:?}");
    facts.extend(scene.steps(60));
    let said: Vec<&str> = facts
        .iter()
        .map(|fact| match fact {
            Fact::Quality(quality) => quality.what.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(said, ["range", "values in range again"]);
    assert_eq!(scene.log(), ["P2: a value out of range", "P2: values in range again"]);
    assert_eq!(scene.desk.figures().today.p3, 1);
}

#[test]
fn how_far_a_client_is_believed_is_told_as_it_changes() {
    let mut scene = Scene::new();
    let mut facts = Vec::new();
    let mut stands = |what: Option<QualityKind>| {
        scene.quality =
            what.map(|what| QualityNote { client: Some(P1), what }).into_iter().collect();
        facts.extend(scene.steps(3));
    };
    stands(Some(QualityKind::OutOfCalibration));
    stands(Some(QualityKind::Unbelievable));
    stands(Some(QualityKind::OutOfCalibration));
    stands(None);
    let expected = [
        "P1: out of calibration",
        "P1: not to be believed: nothing like its calibration",
        "P1: out of calibration",
        "P1: as calibrated again",
    ];
    assert_eq!(scene.log(), expected);
    assert_eq!((facts.len(), scene.desk.figures().today.p3), (4, 3));
}

#[test]
fn what_is_noted_is_a_line_and_a_fact() {
    let mut scene = Scene::new();
    let fact = scene.desk.note(at(5), Some(P3), "calibrated on 80 steps");
    assert!(
        fact.to_line().contains(r#""client":"P3","time":"2022-08-12T07:40:05Z","what":"calib"#)
    );
    assert_eq!(scene.log(), ["P3: calibrated on 80 steps"]);
    scene.step();
    assert_eq!(scene.desk.figures().today.p3, 1);
}

#[test]
fn an_incident_says_which_of_its_members_has_a_sensor_at_fault() {
    let mut scene = Scene::new();
    let stuck = |client| QualityNote { client: Some(client), what: QualityKind::Stuck };
    scene.quality = vec![stuck(P1), stuck(P4)];
    scene.raise(P1, 10).decide(1, 10, Some(P1));
    let opened = lines(&scene.step());
    assert!(opened.contains(r#""why":"P1: a sensor stands still""#), "{opened}");
    assert!(opened.contains(r#""faults":[{"client":"P1","what":"stuck"}]"#), "{opened}");
    // Who joins later and is at fault says so then, and once.
    scene.raise(P4, 20);
    let joined = lines(&scene.steps(2));
    assert!(joined.contains("; P4: a sensor stands still"), "{joined}");
    assert_eq!(joined.matches("P4: a sensor stands still").count(), 1, "{joined}");
    assert!(scene.log().contains(&"#1 P1: a sensor stands still".to_owned()));
    assert_eq!(scene.incident(1).faults.len(), 2);
    // It is a fact of the incident, also when the sensor is well again.
    scene.quality.clear();
    scene.steps(70);
    let closed = lines(&scene.over(Closing::Quiet).step());
    assert!(closed.contains(r#""client":"P4","what":"stuck""#), "{closed}");
}

#[test]
fn a_rise_in_priority_is_not_taken_for_a_client() {
    let mut scene = Scene::new();
    scene.raise(P1, 10).decide(1, 10, Some(P1)).step();
    let facts = lines(&scene.raise(P3, 20).step());
    assert!(facts.contains("P3 joined at +10 s; now of priority 1\""), "{facts}");
}

#[test]
fn where_there_are_no_probabilities_the_named_root_is_certain() {
    let mut scene = Scene::new();
    scene.raise(P2, 10).decide(1, 10, Some(P2));
    scene.outcome.as_mut().expect("decided").disturbance.posterior.clear();
    assert!(lines(&scene.step()).contains(r#""root":"P2","posterior":{"P2":1.0}"#));
    let mut scene = Scene::new();
    scene.raise(P2, 10).decide(1, 10, None);
    scene.outcome.as_mut().expect("decided").disturbance.posterior.clear();
    assert!(lines(&scene.step()).contains(r#""root":null,"posterior":{}"#));
}

#[test]
fn a_flood_of_flags_is_told_as_the_incidents_it_became() {
    let mut scene = Scene::fault_at_p1();
    for _ in 0..5 {
        scene.quiet(P3).quiet(P4).step();
        let second = scene.second();
        scene.raise(P3, second).raise(P4, second).step();
    }
    let figures = scene.desk.figures();
    assert_eq!(figures.grouping(), "12 flags → 1 incident");
    assert!(figures.flag_flood && !figures.flood);
    assert_eq!(figures.chattering, [P3, P4]);
    assert!(scene.log().iter().any(|line| line.starts_with("FLOOD: 12 flags → 1 incident")));
}

#[test]
fn an_incident_that_is_open_for_a_day_is_stale() {
    let mut scene = Scene::fault_at_p1();
    scene.steps(8639);
    assert!(scene.desk.figures().stale.is_empty());
    scene.step();
    assert_eq!(scene.desk.figures().stale, [1]);
    assert_eq!(scene.desk.figures().standing, 1);
}

#[test]
fn the_facts_of_a_fault_from_beginning_to_end() {
    let mut scene = Scene::new();
    scene.raise(P1, 10).steps(2);
    let mut facts = scene.raise(P2, 20).decide(1, 10, Some(P1)).step();
    facts.extend(scene.decide(1, 10, Some(P2)).step());
    facts.extend(scene.raise(P3, 40).steps(6));
    facts.extend(scene.over(Closing::Quiet).step());
    insta::assert_snapshot!(lines(&facts));
    insta::assert_snapshot!(scene.log().join("\n"));
}

#[test]
fn the_end_of_a_run_closes_what_is_open() {
    let mut scene = Scene::fault_at_p1();
    let facts = scene.desk.end(Closing::EndOfRun);
    assert!(lines(&facts).contains("\"why\":\"end of run\""));
    assert_eq!(scene.desk.open_incidents().count(), 0);
}
