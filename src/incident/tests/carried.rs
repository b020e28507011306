use super::super::carried::Carried;
use super::*;
use crate::fact::{Number, Value};

/// What a run leaves, as its file has it.
fn carried(scene: &Scene) -> Carried {
    let text = serde_json::to_string(&scene.desk.carry()).expect("it can be written");
    serde_json::from_str(&text).expect("it can be read")
}

/// The next run: its first step is an hour later.
fn restarted(before: &Carried) -> (Scene, String) {
    let mut scene = Scene::new();
    scene.step = 360;
    scene.step();
    let said = scene.desk.resume(before).to_line();
    (scene, said)
}

#[test]
fn answers_notes_and_shelves_are_there_again_after_a_restart() {
    let mut scene = Scene::fault_at_p1();
    scene.desk.declare("vote", Value::Unset);
    scene.done(OperatorAction::Note { incident: 1, text: "pump 2 is being changed".to_owned() });
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    scene.done(OperatorAction::TakeOut { client: P4 });
    let to = Value::Number(Number::or_zero(3.0));
    scene.done(OperatorAction::Set { what: "vote".to_owned(), to: to.clone() });
    let left = carried(&scene);
    assert!(!left.is_nothing());
    let [changed] = left.settings() else { panic!("one setting was changed: {left:?}") };
    assert_eq!((changed.what.as_str(), &changed.from, &changed.to), ("vote", &Value::Unset, &to));

    let (mut next, said) = restarted(&left);
    assert!(said.contains("1 incidents so far, 1 open then, 1 clients out of service"), "{said}");
    assert_eq!(next.incident(1).note, "pump 2 is being changed");
    assert_eq!(next.state(1), AlarmState::Normal, "it was acknowledged, and its run is over");
    assert_eq!(next.desk.client_state(P4), AlarmState::OutOfService);
    next.desk.enter_here();

    // The disturbance is still there: the same incident goes on, and asks nobody again.
    let onset = next.second();
    next.raise(P1, onset).decide(1, onset, Some(P1));
    let facts = lines(&next.step());
    assert!(!facts.contains("\"opened\"") && facts.contains("\"incident\":1"), "{facts}");
    assert_eq!(next.state(1), AlarmState::Acknowledged);
    // Another root is another incident, with a number of its own.
    next.over(Closing::Quiet).steps(2);
    next.quiet(P1);
    let onset = next.second();
    next.raise(P3, onset).decide(2, onset, Some(P3)).step();
    assert_eq!(next.incident(2).root, Some(P3));
    assert_eq!(next.state(2), AlarmState::Unacknowledged);
}

#[test]
fn what_nobody_has_seen_before_a_restart_still_asks_after_it() {
    let mut scene = Scene::fault_at_p1();
    let open = carried(&scene);
    scene.desk.end(Closing::EndOfRun);
    let ended = carried(&scene);
    for left in [open, ended] {
        let (mut next, said) = restarted(&left);
        assert!(said.contains("1 not acknowledged"), "{said}");
        assert_eq!(next.state(1), AlarmState::Returned);
        next.desk.enter_here();
        assert_eq!(next.state(1), AlarmState::Returned, "it is no history: nobody has seen it");
        next.done(OperatorAction::Acknowledge { incident: 1 });
        assert_eq!(next.state(1), AlarmState::Normal);
    }
}

#[test]
fn a_shelf_ends_at_its_time_whatever_is_restarted() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::Shelve { incident: 1, seconds: 2 * 3600 });
    let (mut next, said) = restarted(&carried(&scene));
    assert!(said.contains("1 shelved"), "{said}");
    assert_eq!(next.state(1), AlarmState::Shelved);
    next.steps(400);
    assert_eq!(next.state(1), AlarmState::Returned, "silence is no acknowledgement");
}

#[test]
fn what_is_found_again_after_more_than_an_hour_is_a_new_incident() {
    let scene = Scene::fault_at_p1();
    let (mut next, _) = restarted(&carried(&scene));
    next.steps(400);
    let onset = next.second();
    next.raise(P1, onset).decide(1, onset, Some(P1)).step();
    assert_eq!(next.incident(2).root, Some(P1));
}

#[test]
fn what_a_run_of_other_clients_left_is_refused_in_words() {
    let scene = Scene::fault_at_p1();
    let names = vec!["A".to_owned(), "B".to_owned()];
    let mut desk = Annunciator::new(names, Mode::Evidence, Rules::with_period(10.0), at(0));
    let said = desk.resume(&carried(&scene)).to_line();
    assert!(said.contains("other clients") && desk.incidents().is_empty(), "{said}");
}
