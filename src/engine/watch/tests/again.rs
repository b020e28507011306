//! Sending the run again under other settings: what it gives, and what it costs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::lasting::watch_over_with;
use super::*;
use crate::session::Tau;
use crate::site::again::AgainError;
use crate::wire::{Direction, Encoded, Memory, Message, ToSite, Wire};

#[test]
fn in_a_seeded_run_another_epsilon_on_trial_gives_what_a_run_with_it_gives() {
    for mode in [Mode::Evidence, Mode::Paper] {
        let (session, prepared) = &*PREPARED;
        let with = |epsilon| {
            let mut session = session.clone();
            session.mode = mode;
            session.privacy.epsilon_flag = epsilon;
            let mut watch = open(&session, prepared);
            steps(&mut watch, 1500);
            watch
        };
        let (plain, noised) = (with(None), with(Some(4.0)));
        let tried = plain.what_if(Knob::EpsilonFlag.at(Some(4.0))).expect("a seeded run is free");
        assert_eq!((tried.alarms, tried.score), (noised.so_far().alarms, noised.so_far().score));
        assert_ne!(tried.alarms, 0, "{mode:?}");
        let releases = |watch: &Watch| ledger(watch).live().releases;
        let again = plain.what_if(Knob::EpsilonFlag.at(Some(0.1))).expect("a seeded run is free");
        assert_ne!(again.alarms, tried.alarms, "{mode:?}: noise has an effect");
        assert_eq!(releases(&plain), releases(&with(None)), "nothing was entered");
    }
}

#[test]
fn with_real_noise_a_trial_that_sends_again_must_be_agreed_to_and_is_paid_for() {
    let (mut watch, _folder) = watch_over_with(&[(0, 900..960, 0.0, 6.0)], |session| {
        session.mode = Mode::Paper;
        session.privacy.epsilon_flag = Some(4.0);
    });
    steps(&mut watch, 1000);
    let tau = Knob::TauC(None).at(Some(Tau::Percentile(99.9)));
    let spent = |watch: &Watch| ledger(watch).live().releases;
    let before = spent(&watch);
    let refused = watch.what_if(tau).expect_err("the sites would send their flags again");
    assert_eq!(refused, NoAnswer::Again(AgainError::Costs { releases: 1000 }));
    assert!(
        watch.what_if(Knob::Vote.at(Some(Vote { k: 3, n: 5 }))).is_ok(),
        "the server's own affair"
    );
    assert_eq!(spent(&watch), before, "asking costs nothing");
    let paid = watch.run.what_if_paid(tau).expect("agreed");
    assert_eq!(paid.thresholds.len(), 3);
    // Two flags a step once the filter has settled, and the same again.
    assert_eq!(spent(&watch), 2 * before);
}

#[test]
fn with_real_noise_the_other_method_is_paid_for_too_also_after_epsilon_changed() {
    let (mut watch, _folder) = watch_over_with(&[(0, 900..960, 0.0, 6.0)], |session| {
        session.privacy.epsilon_flag = Some(4.0);
    });
    steps(&mut watch, 500);
    let other = Knob::Mode.at(Mode::Paper);
    let costs = |releases| Err(NoAnswer::Again(AgainError::Costs { releases }));
    assert_eq!(watch.what_if(other), costs(500), "its flags were only rehearsed");
    let before = ledger(&watch).live().releases;
    watch.run.what_if_paid(other).expect("agreed");
    assert!(ledger(&watch).live().releases > before + 800, "two flags a step");
    watch.act(set("epsilon_flag", Value::Unset), &mut News::default()).expect("noise may end");
    steps(&mut watch, 100);
    assert_eq!(watch.what_if(other), costs(600), "what was sent with noise is still protected");
    assert!(watch.what_if(Knob::Arl0.at(3600.0)).is_ok(), "the server's own affair");
}

#[test]
fn after_a_change_of_epsilon_every_symbol_is_read_by_the_epsilon_it_was_sent_with() {
    let (session, prepared) = &*PREPARED;
    for (first, then) in [(None, number(4.0)), (Some(4.0), Value::Unset)] {
        let mut session = session.clone();
        session.privacy.epsilon_flag = first;
        let mut watch = open(&session, prepared);
        steps(&mut watch, 900);
        watch.act(set("epsilon_flag", then), &mut News::default()).expect("it may change");
        steps(&mut watch, 900);
        let said: Vec<_> =
            watch.run.annunciator().incidents().iter().map(|incident| incident.opened).collect();
        assert!(!said.is_empty(), "the morning has attacks");
        let standing = watch.run.turned(Knob::Arl0);
        let again = watch.what_if(standing).expect("a seeded run is free");
        let opened: Vec<_> = again.opened.iter().map(|(time, _)| *time).collect();
        assert_eq!(opened, said, "the same settings give what was said");
        assert_eq!(watch.so_far().alarms, said.len());
    }
}

/// How many messages of each kind have crossed.
type Counts = Arc<Mutex<BTreeMap<String, usize>>>;

/// A carrier of bytes, and what crosses it.
fn counting() -> (Box<dyn Wire>, Counts) {
    let counts = Counts::default();
    let counter = Arc::clone(&counts);
    let wire = Encoded::new(move |direction, bytes: &[u8]| {
        let kind = match direction {
            Direction::Up => format!("{:?}", Message::decode(bytes).expect("a message").content()),
            Direction::Down => format!("{:?}", ToSite::decode(bytes).expect("an order").order()),
        };
        let kind = kind.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
        *counter.lock().expect("one at a time").entry(kind).or_default() += 1;
    });
    (Box::new(wire), counts)
}

#[test]
fn a_server_that_begins_to_decide_knows_only_what_crossed_the_wire() {
    let (session, prepared) = &*PREPARED;
    let (wire, counts) = counting();
    let options = RunOptions { both: true, wire, ..RunOptions::new(Mode::Evidence) };
    let mut watch = Watch::open(session, prepared, options, true).expect("a built-in plant");
    steps(&mut watch, 1000);
    let crossed =
        |kind: &str| counts.lock().expect("one at a time").get(kind).copied().unwrap_or(0);
    assert_eq!((crossed("Flags"), crossed("Enrolment")), (0, 3), "flags are rehearsed");
    let symbols = crossed("Symbol");
    assert_eq!(symbols, 3 * (1000 - 40), "nothing while models find their state");
    let entered = ledger(&watch).live().releases;
    let rehearsed = watch.what_if(Knob::Mode.at(Mode::Paper)).expect("a seeded run");
    watch.act(set("mode", Value::Text("paper".into())), &mut News::default()).expect("both along");
    // Every step so far is sent and entered, and gives what was rehearsed.
    assert_eq!(crossed("Flags"), symbols);
    assert_eq!(ledger(&watch).live().releases, entered + 2 * symbols as u64 / 3);
    let now = watch.what_if(Knob::Mode.at(Mode::Paper)).expect("a seeded run");
    assert_eq!((now.alarms, now.score), (rehearsed.alarms, rehearsed.score));
    steps(&mut watch, 100);
    assert_eq!(crossed("Symbol"), symbols, "symbols are rehearsed from here on");
    assert!(crossed("Flags") > symbols);
}

#[test]
fn a_watched_run_with_orders_gives_the_same_facts_over_bytes_as_in_memory() {
    let (session, prepared) = &*PREPARED;
    let told = |wire: Box<dyn Wire>| {
        let mut session = session.clone();
        session.privacy.reveal_sensor = true;
        let options = RunOptions { both: true, wire, ..RunOptions::new(Mode::Evidence) };
        let mut watch = Watch::open(&session, prepared, options, true).expect("a built-in plant");
        let mut news = News::default();
        let mut accepted = false;
        for step in 0..2 * 720 {
            watch.step(&mut news).expect("a built-in plant");
            let open = watch.run().annunciator().incidents().iter().find(|i| i.is_open());
            let number = open.map(|incident| incident.number).filter(|_| step > 200 && !accepted);
            if let Some(number) = number {
                accepted = true;
                watch
                    .act(order(OperatorAction::Accept { incident: number }), &mut news)
                    .expect("open");
            }
            let mode = match step {
                100 => "paper",
                200 => "evidence",
                _ => continue,
            };
            watch.act(set("mode", Value::Text(mode.into())), &mut news).expect("both along");
        }
        watch.end(&mut news);
        assert!(accepted, "the morning has attacks");
        news.facts.iter().map(Fact::to_line).collect::<Vec<_>>()
    };
    let (wire, counts) = counting();
    assert_eq!(told(wire), told(Box::<Memory>::default()));
    let counts = counts.lock().expect("nobody sends any more");
    for kind in ["Symbol", "Flags", "Enrolment", "Sensors", "NameSensors", "TakeAsNormal"] {
        assert!(counts.get(kind).is_some_and(|count| *count > 0), "{kind}: {counts:?}");
    }
}
