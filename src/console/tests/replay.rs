//! A labelled day as it is replayed: its attacks, its score, where it is entered, and a knob that is
//! tried while an alarm is open.

use jiff::{SignedDuration, Timestamp};

use super::plant::{ATTACK, Desk, attack_session, options};
use super::screen;
use crate::console::still;
use crate::engine;
use crate::engine::handle::{Load, Moment, Options};
use crate::engine::knob::Knob;
use crate::incident::AlarmState;
use crate::session::Mark;
use crate::stream::Event;

/// Steps to 01:26:40: the attack of 01:24 has raised its alarm.
const ALARMED: usize = 80;

/// Steps to 02:05 of the morning: its first incident is over, the next is still to come.
const QUIET: usize = 1500;

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).expect("a time")
}

fn asking(desk: &Desk) -> usize {
    let model = &desk.console.model;
    let listed = model.listed().filter_map(|incident| model.present(incident.number));
    listed.filter(|incident| incident.alarm.state.wants_acknowledgement()).count()
}

fn arl0(desk: &Desk) -> Option<f64> {
    desk.console.model.setting(Knob::Arl0)?.to.number()
}

#[test]
fn next_and_previous_stop_at_an_attack_that_was_missed() {
    let start = Desk::looking_after(1).moment();
    let missed = Event {
        id: "S999".into(),
        start: later(start, 60),
        end: later(start, 90),
        origins: vec!["P2".into()],
        affected: Vec::new(),
        sensors: Vec::new(),
        what: "nothing was seen of it".into(),
    };
    let mut desk = Desk::looking_where_labelled(missed.clone());
    let onset = desk.console.model.listed().map(|i| i.onset).min().expect("an incident");
    desk.keys("<home>.");
    assert_eq!(desk.moment(), onset, "without the truth there are incidents only");
    desk.keys("<home>t.");
    assert_eq!(desk.moment(), missed.start);
    assert!(desk.said().starts_with("missed: S999 P2"), "{}", desk.said());
    desk.keys(".");
    assert_eq!(desk.moment(), onset);
    desk.keys(",");
    assert_eq!(desk.moment(), missed.start, "and back");
    desk.keys(",");
    assert!(desk.said().contains("no earlier incident"), "{}", desk.said());
}

#[test]
fn what_is_over_when_a_day_is_entered_is_history_and_what_is_open_is_not() {
    let mut over = Desk::after(QUIET);
    assert!(asking(&over) > 0, "what returned asks as long as nobody answers");
    assert!(over.console.model.listed().all(|i| !i.is_open()));
    over.enter();
    assert_eq!(asking(&over), 0);
    let picture = screen(&over.console, 120, 40);
    assert!(picture.contains("history, nothing to answer"), "{picture}");
    assert!(!picture.contains("not acknowledged"), "{picture}");

    let mut open = Desk::attacked(ALARMED);
    let before = asking(&open);
    assert!(before > 0 && open.console.model.listed().any(|i| i.is_open()));
    open.enter();
    assert_eq!(asking(&open), before, "an open incident still asks");
}

#[test]
fn a_labelled_day_ends_with_its_score() {
    let mut desk = Desk::attacked(ATTACK);
    assert!(!screen(&desk.console, 120, 40).contains("SCORE"), "it is not over");
    desk.end();
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let picture = screen(&desk.console, width, height);
        let score = picture.lines().find(|line| line.contains("SCORE")).unwrap_or_default();
        assert!(score.contains("1 of 1 attacks found"), "{width}: {picture}");
        assert!(score.contains("roots right"), "{width}: {score}");
    }
}

#[test]
fn a_knob_is_tried_while_an_alarm_opens_and_neither_disturbs_the_other() {
    let mut desk = Desk::attacked(ALARMED / 2);
    assert_eq!(asking(&desk), 0);
    let set = arl0(&desk);
    desk.keys(":arl0 1h<enter>");
    desk.steps(ALARMED / 2);
    assert!(asking(&desk) > 0, "an alarm opens during the trial");
    assert_eq!(arl0(&desk), set, "only on trial");
    let picture = screen(&desk.console, 120, 40);
    assert!(picture.contains("TRIAL") && picture.contains("not acknowledged"), "{picture}");
    desk.serve();
    let tuning = desk.console.model.tuning.as_ref().expect("still on trial");
    let before = tuning.answer().map(|tried| tried.before.alarms);
    assert_eq!(before, Some(1), "the alarm that opened is counted: {}", tuning.words(0));
    let number = desk.console.model.listed().map(|i| i.number).max().expect("an incident");
    let state = |desk: &Desk| desk.console.model.present(number).map(|i| i.alarm.state);
    desk.keys("a");
    assert_eq!(state(&desk), Some(AlarmState::Acknowledged), "{}", desk.said());
    assert!(desk.console.model.tuning.is_some(), "the trial goes on");
    desk.keys("<esc>");
    assert_eq!((arl0(&desk), state(&desk)), (set, Some(AlarmState::Acknowledged)));
    desk.keys(":arl0 1h<enter><enter>");
    assert_eq!(arl0(&desk), Some(3600.0), "{}", desk.said());
    assert!(desk.console.model.listed().any(|i| i.is_open()), "the incident stays open");
}

#[test]
fn a_picture_does_not_depend_on_how_steps_were_sent_together() {
    let pictures = [true, false].map(|batched| {
        let moment = Moment::Mark(Mark::After(400.0));
        let options = Options { stop_at: Some(moment), batched, ..options(still::FULL_SPEED) };
        let engine = engine::spawn(&attack_session(), options).expect("a thread");
        let mut desk = Desk::blank();
        still::run_to(&mut desk.console.model, engine).expect("it plays");
        desk.console.model.load = Load::default();
        let spent = desk.console.model.watched.as_ref().and_then(|w| w.snapshot.clone());
        (spent.map(|snapshot| (snapshot.steps, snapshot.spent)), desk)
    });
    assert_eq!(pictures[0].0, pictures[1].0);
    let [one, other] = pictures.map(|(_, desk)| screen(&desk.console, 200, 60));
    assert_eq!(one, other);
}
