//! What operators do, and how it is taken back.

use super::*;
use crate::fact::{Number, Value};

fn number(value: f64) -> Value {
    Value::Number(Number::or_zero(value))
}

#[test]
fn acknowledging_is_not_clearing() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    assert_eq!(scene.state(1), AlarmState::Acknowledged);
    assert!(scene.incident(1).is_open());
}

#[test]
fn shelving_is_timed_and_comes_back_asking() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::Shelve { incident: 1, seconds: 600 });
    scene.steps(59);
    assert_eq!(scene.state(1), AlarmState::Shelved);
    assert_eq!(scene.desk.figures().shelved, 1);
    scene.step();
    assert_eq!(scene.state(1), AlarmState::Unacknowledged);
    assert!(scene.log().contains(&"#1 was shelved".to_owned()));
}

#[test]
fn silence_is_no_acknowledgement() {
    let mut scene = Scene::fault_at_p1();
    scene.over(Closing::Quiet).step();
    assert_eq!(scene.state(1), AlarmState::Returned);
    scene.done(OperatorAction::Shelve { incident: 1, seconds: 600 });
    scene.done(OperatorAction::Unshelve { incident: 1 });
    assert_eq!(scene.state(1), AlarmState::Returned, "nobody has seen it yet");
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    assert_eq!(scene.state(1), AlarmState::Normal);
}

#[test]
fn taking_a_client_out_does_not_touch_what_is_over() {
    let mut scene = Scene::fault_at_p1();
    scene.over(Closing::Quiet).step();
    scene.done(OperatorAction::TakeOut { client: P1 });
    assert_eq!(scene.state(1), AlarmState::Returned);
    assert_eq!(scene.desk.figures().returned, 1);
}

#[test]
fn what_was_unseen_when_its_client_was_taken_out_is_unseen_when_it_is_put_back() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::TakeOut { client: P1 });
    assert_eq!(scene.state(1), AlarmState::OutOfService);
    scene.over(Closing::Quiet).step();
    scene.done(OperatorAction::PutBack { client: P1 });
    assert_eq!(scene.state(1), AlarmState::Returned);
}

#[test]
fn what_a_shelved_client_raises_next_is_shelved_too() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::Shelve { incident: 1, seconds: 600 });
    scene.over(Closing::Quiet).step();
    scene.quiet(P1).step();
    let second = scene.second();
    scene.raise(P1, second).decide(2, second, Some(P1)).step();
    assert_eq!(scene.state(2), AlarmState::Shelved);
    assert_eq!(scene.desk.figures().standing, 0);
    scene.done(OperatorAction::Unshelve { incident: 2 });
    assert_eq!(scene.state(2), AlarmState::Unacknowledged);
}

#[test]
fn an_incident_that_ends_on_the_shelf_comes_back_unseen() {
    let mut scene = Scene::fault_at_p1();
    scene.done(OperatorAction::Shelve { incident: 1, seconds: 60 });
    scene.over(Closing::Quiet).step();
    assert_eq!(scene.state(1), AlarmState::Shelved);
    scene.steps(6);
    assert_eq!(scene.state(1), AlarmState::Returned);
}

#[test]
fn nothing_is_shelved_for_ever_or_for_no_time() {
    let mut scene = Scene::fault_at_p1();
    for seconds in [0, 24 * 3600 + 1] {
        let refused = scene.act(OperatorAction::Shelve { incident: 1, seconds });
        assert_eq!(refused, Err(Refusal::ShelfTime));
    }
}

#[test]
fn a_client_out_of_service_alarms_nobody_until_it_is_back() {
    let mut scene = Scene::new();
    scene.done(OperatorAction::TakeOut { client: P1 });
    scene.raise(P1, 10).decide(1, 10, Some(P1)).steps(3);
    assert_eq!(scene.state(1), AlarmState::OutOfService);
    assert_eq!(scene.desk.figures().alarms_10min, 0);
    scene.done(OperatorAction::PutBack { client: P1 });
    assert_eq!(scene.state(1), AlarmState::Unacknowledged);
}

#[test]
fn a_root_that_moves_away_from_a_client_out_of_service_asks() {
    let mut scene = Scene::new();
    scene.done(OperatorAction::TakeOut { client: P1 });
    scene.raise(P2, 10).decide(1, 10, Some(P1)).step();
    scene.decide(1, 10, Some(P2)).step();
    assert_eq!(scene.state(1), AlarmState::Unacknowledged);
}

#[test]
fn accepting_closes_and_the_decision_may_follow_later() {
    let mut scene = Scene::fault_at_p1();
    let receipt = scene.act(OperatorAction::Accept { incident: 1 }).expect("open");
    assert!(lines(&receipt.facts).contains("accepted as new normal"));
    assert_eq!(scene.state(1), AlarmState::Normal);
    assert!(scene.step().is_empty(), "the decision has not heard of it yet");
    assert!(scene.over(Closing::Accepted).step().is_empty());
    assert_eq!(scene.desk.incidents().len(), 1);
}

#[test]
fn an_operator_may_correct_a_root_that_is_final() {
    let mut scene = Scene::fault_at_p1();
    let correct = || OperatorAction::Correct { incident: 1, root: P2 };
    assert_eq!(scene.act(correct()), Err(Refusal::NotFinal(1)));
    scene.steps(5);
    assert_eq!(
        scene.act(OperatorAction::Correct { incident: 1, root: P4 }),
        Err(Refusal::NoMember(1))
    );
    let entry = scene.done(correct());
    assert_eq!(scene.incident(1).root, Some(P2));
    scene.steps(3);
    assert_eq!(scene.incident(1).root, Some(P2), "a final root is not moved back by evidence");
    scene.done(OperatorAction::Undo { entry });
    assert_eq!(scene.incident(1).root, Some(P1));
    assert_eq!(scene.incident(1).corrections.len(), 2, "history is kept");
}

#[test]
fn a_setting_changes_with_its_old_value_and_changes_back() {
    let mut scene = Scene::new();
    scene.desk.declare("tau_c", number(1.05));
    let receipt =
        scene.act(OperatorAction::Set { what: "tau_c".into(), to: number(1.0) }).expect("known");
    let undone = scene.act(OperatorAction::Undo { entry: receipt.entry }).expect("just done");
    insta::assert_snapshot!(format!("{}\n{}", lines(&receipt.facts), lines(&undone.facts)));
    assert_eq!(scene.log(), ["tau_c 1.05 → 1", "entry 1 undone"]);
    assert_eq!(scene.desk.setting("tau_c"), Some(&number(1.05)));
    let unknown = scene.act(OperatorAction::Set { what: "tau".into(), to: number(1.0) });
    assert_eq!(unknown, Err(Refusal::NoSetting("tau".into())));
}

#[test]
fn undoing_is_an_entry_that_can_be_undone() {
    let mut scene = Scene::fault_at_p1();
    let entry = scene.done(OperatorAction::Note { incident: 1, text: "valve".into() });
    let undo = scene.done(OperatorAction::Undo { entry });
    assert_eq!(scene.incident(1).note, "");
    assert_eq!(scene.act(OperatorAction::Undo { entry }), Err(Refusal::AlreadyUndone(entry)));
    assert_eq!(scene.desk.log().last_undoable(), None);
    assert_eq!(scene.desk.log().last_redoable(), Some(undo));
    scene.done(OperatorAction::Undo { entry: undo });
    assert_eq!(scene.incident(1).note, "valve");
    assert_eq!(scene.desk.log().last_undoable(), Some(entry));
}

#[test]
fn what_has_changed_since_is_not_undone() {
    let mut scene = Scene::fault_at_p1();
    let entry = scene.done(OperatorAction::Acknowledge { incident: 1 });
    scene.over(Closing::Quiet).step();
    assert_eq!(scene.act(OperatorAction::Undo { entry }), Err(Refusal::Overtaken(entry)));
    let mut scene = Scene::fault_at_p1();
    let entry = scene.done(OperatorAction::Shelve { incident: 1, seconds: 600 });
    scene.over(Closing::Quiet).step();
    assert_eq!(scene.act(OperatorAction::Undo { entry }), Err(Refusal::Overtaken(entry)));
}

#[test]
fn an_acceptance_is_undone_unless_its_clients_have_gone_elsewhere() {
    let mut scene = Scene::fault_at_p1();
    let entry = scene.done(OperatorAction::Accept { incident: 1 });
    scene.done(OperatorAction::Undo { entry });
    assert!(scene.incident(1).is_open());
    assert_eq!(scene.state(1), AlarmState::Unacknowledged);
    let entry = scene.done(OperatorAction::Accept { incident: 1 });
    scene.decide(2, 10, Some(P1)).step();
    assert_eq!(scene.act(OperatorAction::Undo { entry }), Err(Refusal::Taken(2)));
}

#[test]
fn a_client_is_not_put_back_by_undoing_when_it_has_new_incidents() {
    let mut scene = Scene::new();
    let entry = scene.done(OperatorAction::TakeOut { client: P1 });
    scene.raise(P1, 10).decide(1, 10, Some(P1)).step();
    assert_eq!(scene.act(OperatorAction::Undo { entry }), Err(Refusal::Overtaken(entry)));
}

#[test]
fn what_does_not_exist_is_refused_in_words() {
    let mut scene = Scene::new();
    let refusal = scene.act(OperatorAction::Acknowledge { incident: 0 }).unwrap_err();
    assert_eq!(refusal.to_string(), "there is no incident #0");
    assert_eq!(scene.act(OperatorAction::TakeOut { client: 9 }), Err(Refusal::NoClient));
    assert_eq!(scene.act(OperatorAction::Undo { entry: 3 }), Err(Refusal::NotUndoable(3)));
    assert!(scene.desk.log().events().is_empty(), "a refusal leaves no trace");
}

#[test]
fn an_incident_without_a_root_asks_nobody_while_everybody_is_out_of_service() {
    let mut scene = Scene::new();
    let clients = scene.desk.names().len();
    for client in 0..clients {
        scene.done(OperatorAction::TakeOut { client });
    }
    scene.raise(P1, 10).decide(1, 10, None).step();
    assert_eq!(scene.state(1), AlarmState::OutOfService);
    scene.done(OperatorAction::PutBack { client: P2 });
    assert_eq!(scene.state(1), AlarmState::Unacknowledged);
    scene.done(OperatorAction::TakeOut { client: P2 });
    assert_eq!(scene.state(1), AlarmState::OutOfService);
}
