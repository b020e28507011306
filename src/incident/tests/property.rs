//! Any steps and any orders: what must always hold.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::fact::{Number, Value};

#[derive(Debug, Clone)]
enum Event {
    /// One step after the client changes.
    Raise(usize, i64, bool),
    Quiet(usize),
    /// The decision's episode, with whatever numbers.
    Decide(u64, Option<usize>, [f64; 4], bool),
    Over(Closing),
    Spoil(QualityNote),
    Do(OperatorAction),
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.0..1.0, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)]
}

fn action() -> impl Strategy<Value = OperatorAction> {
    let incident = 0u64..5;
    prop_oneof![
        4 => incident.clone().prop_map(|incident| OperatorAction::Acknowledge { incident }),
        2 => (incident.clone(), 0u32..200)
            .prop_map(|(incident, seconds)| OperatorAction::Shelve { incident, seconds }),
        1 => incident.clone().prop_map(|incident| OperatorAction::Unshelve { incident }),
        1 => (0usize..5).prop_map(|client| OperatorAction::TakeOut { client }),
        2 => (0usize..5).prop_map(|client| OperatorAction::PutBack { client }),
        1 => incident.clone().prop_map(|incident| OperatorAction::Note { incident, text: "seen".into() }),
        1 => incident.clone().prop_map(|incident| OperatorAction::Accept { incident }),
        2 => (incident, 0usize..5)
            .prop_map(|(incident, root)| OperatorAction::Correct { incident, root }),
        1 => (0i32..3).prop_map(|to| {
            OperatorAction::Set { what: "tau_c".into(), to: Value::Number(Number::or_zero(to.into())) }
        }),
        3 => (1u64..40).prop_map(|entry| OperatorAction::Undo { entry }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let closing = prop_oneof![
        Just(Closing::Quiet),
        Just(Closing::PersistentChange),
        Just(Closing::Unreliable),
        Just(Closing::Accepted),
    ];
    let posterior = [share(), share(), share(), share()];
    let root = proptest::option::of(0usize..5);
    let client = proptest::option::of(0usize..5);
    prop_oneof![
        4 => (0usize..4, 0i64..900, any::<bool>()).prop_map(|(c, ago, own)| Event::Raise(c, ago, own)),
        3 => (0usize..4).prop_map(Event::Quiet),
        4 => (1u64..4, root, posterior, any::<bool>())
            .prop_map(|(e, root, p, frozen)| Event::Decide(e, root, p, frozen)),
        2 => closing.prop_map(Event::Over),
        1 => (client, share()).prop_map(|(client, seconds)| {
            Event::Spoil(QualityNote { client, what: QualityKind::Gap { seconds } })
        }),
        5 => action().prop_map(Event::Do),
    ]
}

fn play(scene: &mut Scene, event: &Event) -> Vec<Fact> {
    scene.quality.clear();
    match event.clone() {
        Event::Raise(client, ago, own) => {
            let onset = scene.second() - ago;
            scene.raise(client, onset).clients[client].own_fault = own;
        }
        Event::Quiet(client) => {
            scene.quiet(client);
        }
        Event::Decide(episode, root, posterior, frozen) => {
            let second = scene.second();
            scene.decide(episode, second, root).believe(posterior);
            if let Some(outcome) = &mut scene.outcome {
                outcome.disturbance.frozen = frozen;
            }
        }
        Event::Over(why) => {
            scene.over(why);
        }
        Event::Spoil(note) => scene.quality.push(note),
        Event::Do(action) => return scene.act(action).map(|r| r.facts).unwrap_or_default(),
    }
    scene.step()
}

fn started() -> Scene {
    let mut scene = Scene::new();
    scene.desk.declare("tau_c", Value::Unset);
    scene
}

/// What an undoing must bring back: everything an operator sees, but not the history.
fn seen(desk: &Annunciator) -> impl PartialEq + std::fmt::Debug + use<> {
    let incidents: Vec<Incident> = desk
        .incidents()
        .iter()
        .cloned()
        .map(|incident| Incident { corrections: Vec::new(), ..incident })
        .collect();
    let states: Vec<AlarmState> = (0..4).map(|client| desk.client_state(client)).collect();
    (incidents, states, desk.figures(), desk.setting("tau_c").cloned())
}

fn check(desk: &Annunciator) {
    let mut members = BTreeSet::new();
    let mut roots = BTreeSet::new();
    for (place, incident) in desk.incidents().iter().enumerate() {
        assert_eq!(incident.number, place as u64 + 1);
        let state = incident.alarm.state;
        assert_eq!(state == AlarmState::Shelved, incident.alarm.shelved_until.is_some());
        if matches!(state, AlarmState::Unacknowledged | AlarmState::Acknowledged) {
            assert!(incident.is_open(), "{incident:?}");
        }
        if matches!(state, AlarmState::Normal | AlarmState::Returned | AlarmState::Latched) {
            assert!(!incident.is_open(), "{incident:?}");
        }
        assert!(incident.members.is_sorted_by_key(|m| (m.onset, m.client)));
    }
    for incident in desk.open_incidents() {
        assert!(incident.is_open());
        assert!(incident.root.is_none_or(|root| roots.insert(root)), "one incident per root");
        assert!(incident.root.is_none_or(|root| incident.member(root).is_some()));
        for member in &incident.members {
            assert!(members.insert(member.client), "one incident per client");
        }
    }
    let figures = desk.figures();
    let open = desk.incidents().iter().filter(|i| i.is_open()).count();
    let listed = desk.incidents().iter().filter(|i| i.is_listed()).count();
    assert_eq!(figures.open, open);
    assert_eq!(desk.listed_incidents().count(), listed);
    assert!(figures.standing <= figures.open);
    assert!(figures.unacknowledged <= figures.standing);
    assert!(figures.grouped <= members.len());
    assert!((0.0..=1.0).contains(&figures.flood_share));
    let today = figures.today;
    assert_eq!(today.p1 + today.p2, desk.incidents().len(), "all is of one day");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_happens_everything_is_consistent(
        events in proptest::collection::vec(event(), 1..80)
    ) {
        let mut scene = started();
        let (mut log, mut opened, mut open) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for event in &events {
            for fact in play(&mut scene, event) {
                prop_assert!(Fact::from_line(&fact.to_line()).is_ok());
                match fact {
                    Fact::Opened(said) => {
                        prop_assert!(opened.insert(said.incident), "a number is used once");
                        open.insert(said.incident);
                    }
                    Fact::Updated(said) => {
                        prop_assert!(opened.contains(&said.incident));
                        if said.why.as_deref() == Some("open again") {
                            open.insert(said.incident);
                        }
                    }
                    Fact::Closed(said) => prop_assert!(open.remove(&said.incident)),
                    _ => {}
                }
            }
            let entries = scene.desk.log().events();
            prop_assert!(entries.starts_with(&log), "the log only grows");
            log = entries.to_vec();
            check(&scene.desk);
            let are_open: BTreeSet<u64> = scene.desk.open_incidents().map(|i| i.number).collect();
            prop_assert_eq!(&are_open, &open, "facts tell what is open");
        }
    }

    #[test]
    fn the_same_steps_and_orders_give_the_same_facts(
        events in proptest::collection::vec(event(), 1..40)
    ) {
        let run = || {
            let mut scene = started();
            let facts: Vec<Fact> = events.iter().flat_map(|e| play(&mut scene, e)).collect();
            (lines(&facts), scene.log())
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn undoing_at_once_restores_everything_and_redoing_does_it_again(
        events in proptest::collection::vec(event(), 1..60),
        action in action(),
    ) {
        let mut scene = started();
        for event in &events {
            play(&mut scene, event);
        }
        let before = seen(&scene.desk);
        if let Ok(receipt) = scene.act(action) {
            let after = seen(&scene.desk);
            let undo = scene.act(OperatorAction::Undo { entry: receipt.entry }).expect("just done");
            prop_assert!(seen(&scene.desk) == before);
            scene.act(OperatorAction::Undo { entry: undo.entry }).expect("just undone");
            prop_assert!(seen(&scene.desk) == after);
            check(&scene.desk);
        }
    }
}
