//! What an operator does, key by key, over a real run.

use std::time::Duration;

use jiff::SignedDuration;

use super::plant::{ATTACK, Desk, attack_session, options};
use crate::console::app::{Effect, Focus, Msg, Screen, Stage};
use crate::engine::handle::{Command, EngineEvent};
use crate::engine::knob::{Knob, KnobValue, Turn};
use crate::engine::pace::{Pace, Speed};
use crate::engine::{self, Handle};
use crate::fact::Priority;
use crate::incident::{AlarmState, OperatorAction, Order, What};
use crate::session::{Mark, Mode, Vote};

fn state(desk: &Desk, incident: u64) -> AlarmState {
    let watched = desk.console.model.watched.as_ref().expect("opened");
    watched.incident(incident).expect("known").alarm.state
}

fn note(desk: &Desk, incident: u64) -> String {
    let watched = desk.console.model.watched.as_ref().expect("opened");
    watched.incident(incident).expect("known").note.clone()
}

fn last_entry(desk: &Desk) -> What {
    let watched = desk.console.model.watched.as_ref().expect("opened");
    watched.log.last().expect("something happened").what.clone()
}

fn chosen(desk: &Desk) -> u64 {
    desk.console.model.chosen_incident().expect("an attack is an incident").number
}

fn typed(desk: &Desk) -> String {
    desk.console.model.prompt.as_ref().expect("typing").line.text().to_owned()
}

#[test]
fn looking_back_and_forth_never_disturbs_the_engine() {
    let mut desk = Desk::looking();
    let newest = desk.clock();
    desk.keys("<left><left>HHzZ<home>ma");
    let start = desk.moment();
    assert_eq!(desk.clock(), "01:20:00");
    desk.keys("<end>'a");
    assert_eq!(desk.moment(), start);
    desk.keys("g10:00<esc>g+5m<enter>");
    assert_eq!(desk.moment().duration_since(start).as_secs(), 300);
    desk.keys("g01:25<enter>");
    assert_eq!(desk.clock(), "01:25:00");
    desk.keys("g-90s<enter>");
    assert_eq!(desk.clock(), "01:23:30");
    desk.keys("g01:00<enter>");
    assert_eq!(desk.moment(), start);
    assert!(desk.said().contains("the data begins at"), "{}", desk.said());
    desk.keys("g#1<enter>");
    let watched = desk.console.model.watched.as_ref().expect("opened");
    assert_eq!(desk.moment(), watched.incident(1).expect("an attack").onset);
    desk.keys("gend<enter>");
    assert_eq!(desk.clock(), newest);
    assert!(desk.wishes().is_empty(), "{:?}", desk.wishes());
}

#[test]
fn new_data_does_not_move_whoever_looks_back() {
    let mut desk = Desk::looking_after(60);
    desk.keys("g01:22<enter>");
    desk.hear_from(60);
    assert_eq!(desk.clock(), "01:22:00");
    assert!(desk.console.model.listed().next().is_none(), "that was before the attack");
    desk.keys("<end>");
    assert!(desk.console.model.listed().next().is_some());
}

#[test]
fn nonsense_is_answered_calmly_and_can_be_put_right() {
    let mut desk = Desk::looking_after(10);
    desk.keys("gsoon<enter>");
    let prompt = desk.console.model.prompt.as_ref().expect("still asking");
    assert!(prompt.error.as_ref().is_some_and(|why| why.contains("10:38")));
    desk.keys("<backspace><backspace><backspace><backspace>start<enter>");
    assert!(desk.console.model.prompt.is_none());
    desk.keys("'");
    assert!(desk.said().contains("no mark"));
    desk.keys("mz'b");
    assert!(desk.said().contains("no mark 'b"), "{}", desk.said());
}

#[test]
fn incidents_are_stepped_through_in_time_and_opened() {
    let mut desk = Desk::looking();
    let count = desk.console.model.listed().count() as u64;
    desk.keys(",");
    let last = chosen(&desk);
    let onset = desk.console.model.chosen_incident().map(|incident| incident.onset);
    assert_eq!(Some(desk.moment()), onset, "at its start");
    for _ in 0..count {
        desk.keys(",");
    }
    assert_eq!(desk.said(), "no earlier incident");
    for _ in 0..count {
        desk.keys(".");
    }
    assert_eq!(chosen(&desk), last);
    desk.keys("<end><enter>");
    assert!(matches!(desk.console.model.screen, Screen::Incident(_)));
    desk.keys("<enter>");
    let root = desk.console.model.chosen_incident().and_then(|incident| incident.root);
    assert_eq!(desk.console.model.screen, Screen::Client);
    assert_eq!(Some(desk.console.model.chosen), root.or(Some(0)));
    desk.keys("<esc><esc>");
    assert_eq!(desk.console.model.screen, Screen::Overview);
}

#[test]
fn a_stretch_of_the_past_is_played_over_and_over_without_the_engine() {
    let mut desk = Desk::looking();
    assert_eq!(desk.console.model.wake_in(), None, "nothing moves by itself");
    desk.keys("g01:25<enter>Ag01:26<enter>B");
    assert_eq!(desk.clock(), "01:25:00");
    assert!(desk.console.model.wake_in().is_some());
    desk.pass(Duration::from_secs(3));
    assert_eq!(desk.clock(), "01:25:30", "ten data seconds per second");
    desk.pass(Duration::from_secs(4));
    assert_eq!(desk.clock(), "01:25:00", "round again");
    desk.keys("<space>");
    desk.pass(Duration::from_secs(3));
    assert_eq!(desk.clock(), "01:25:00", "what moves on the screen is what is stopped");
    desk.keys("<space>A");
    assert_eq!(desk.console.model.wake_in(), None);
    assert!(desk.wishes().is_empty(), "{:?}", desk.wishes());
}

#[test]
fn an_incident_is_played_again_into_the_newest_data() {
    let mut desk = Desk::looking();
    let onset = desk.console.model.chosen_incident().expect("an attack").onset;
    desk.keys("p");
    assert_eq!(onset.duration_since(desk.moment()).as_secs(), 60);
    desk.pass(Duration::from_hours(1));
    assert_eq!((desk.console.model.look, desk.console.model.wake_in()), (None, None));
}

#[test]
fn the_log_is_filtered_while_it_is_typed() {
    let mut desk = Desk::looking();
    desk.keys("7");
    let all = desk.console.model.entries().len();
    desk.keys("/client:P1");
    let some = desk.console.model.entries().len();
    assert!(some > 0 && some < all, "{some} of {all}");
    desk.keys("<enter><down><enter>");
    assert!(matches!(desk.console.model.screen, Screen::Incident(_)));
    desk.keys("<esc>");
    assert_eq!(desk.console.model.screen, Screen::Log);
    desk.keys("<esc>");
    assert_eq!(desk.console.model.screen, Screen::Log, "esc takes the filter away first");
    assert!(desk.console.model.filter.is_empty());
    desk.keys("<esc>");
    assert_eq!(desk.console.model.screen, Screen::Overview);
}

#[test]
fn the_help_can_be_searched() {
    let mut desk = Desk::looking_after(10);
    desk.keys("?/shelve<enter>");
    assert_eq!((desk.console.model.help, desk.console.model.search.as_str()), (Some(0), "shelve"));
    desk.keys("<esc>");
    assert_eq!((desk.console.model.help, desk.console.model.search.as_str()), (None, ""));
}

#[test]
fn the_command_line_completes_remembers_and_acts() {
    let mut desk = Desk::looking();
    desk.keys(":them<tab>");
    assert_eq!(typed(&desk), "theme ");
    desk.keys("<tab><tab>");
    assert_eq!(typed(&desk), "theme dark");
    desk.keys("<enter>:<up>");
    assert_eq!(typed(&desk), "theme dark");
    desk.keys("<esc>:speed 30<enter>");
    assert_eq!(desk.console.model.pace.speed, Speed::Times(30.0));
    desk.keys(":open twin<enter>y");
    assert_eq!(desk.console.effects.last(), Some(&Effect::Open("twin".into())));
    desk.console.tell(Msg::Paste("ignored: nothing is being typed".into()));
    desk.keys(":");
    desk.console.tell(Msg::Paste("quit\u{1b}".into()));
    desk.keys("<backspace><enter>y");
    assert!(desk.console.has_quit());
}

#[test]
fn the_bell_rings_once_for_every_new_p1_and_only_if_asked_to() {
    let rings = |keys: &str| {
        let mut desk = Desk::looking_after(10);
        desk.keys(keys);
        desk.hear_from(10);
        let urgent = desk.console.model.listed().filter(|i| i.priority == Priority::P1).count();
        (desk.console.effects.iter().filter(|effect| **effect == Effect::Bell).count(), urgent)
    };
    assert_eq!(rings("o").0, 0);
    let (rung, urgent) = rings("b");
    assert_eq!(rung, urgent);
}

#[test]
fn what_the_clipboard_gets_is_what_is_chosen() {
    let mut desk = Desk::looking();
    let mut copied = |keys: &str| {
        desk.console.keys(keys);
        match desk.console.effects.last() {
            Some(Effect::Copy(text)) => text.clone(),
            other => panic!("{keys} copied nothing but {other:?}"),
        }
    };
    assert!(copied("y").starts_with('#'), "an incident");
    assert!(copied("2y").starts_with("P1\t"), "a client");
    assert!(copied("6y").starts_with("arl0 "), "a knob");
    assert!(copied("7y").starts_with("2022-08-12 01:"), "a line of the log");
    for keys in ["1y", "2y", "4y", "7y"] {
        let text = copied(keys);
        assert!(text.ends_with("\nseeded: not private\n"), "{keys}: {text}");
    }
}

#[test]
fn an_operator_sees_notes_shelves_silences_and_undoes() {
    let mut desk = Desk::attacked(ATTACK - 10);
    let incident = chosen(&desk);
    desk.keys("<enter>");
    assert_eq!(desk.console.model.screen, Screen::Incident(incident));
    let before = state(&desk, incident);
    assert!(matches!(before, AlarmState::Unacknowledged | AlarmState::Returned));
    desk.keys("a");
    assert!(matches!(state(&desk, incident), AlarmState::Acknowledged | AlarmState::Normal));
    assert!(desk.said().contains("acknowledged"), "{}", desk.said());
    let log = desk.console.model.watched.as_ref().expect("opened").log.len();
    desk.keys("a");
    assert!(desk.console.model.remark.as_ref().is_some_and(|remark| remark.bad), "refused");
    assert_eq!(desk.console.model.watched.as_ref().expect("opened").log.len(), log);
    desk.keys("nvalve stuck<enter>");
    assert_eq!(note(&desk, incident), "valve stuck");
    desk.keys("uu");
    assert_eq!((note(&desk, incident), state(&desk, incident)), (String::new(), before));
    desk.keys("<c-r>");
    assert!(matches!(last_entry(&desk), What::Did(OperatorAction::Undo { .. })));
    assert_ne!(state(&desk, incident), before, "done again");
    desk.keys("us2");
    assert_eq!(state(&desk, incident), AlarmState::Shelved);
    desk.keys("u");
    assert_ne!(state(&desk, incident), AlarmState::Shelved);
    desk.keys("s4");
    assert!(desk.console.model.prompt.is_some());
    desk.keys("30m<enter>");
    assert_eq!(last_entry(&desk), What::Did(OperatorAction::Shelve { incident, seconds: 1800 }));
    desk.keys("S");
    assert_ne!(state(&desk, incident), AlarmState::Shelved);
    let orders = desk.wishes().len();
    desk.keys("2x<esc>N<esc>");
    assert_eq!(desk.wishes().len(), orders, "what was asked was left");
    desk.keys("xy");
    assert_eq!(desk.watch().snapshot().clients[0], AlarmState::OutOfService);
    desk.keys("x");
    assert_ne!(desk.watch().snapshot().clients[0], AlarmState::OutOfService);
}

#[test]
fn a_knob_on_trial_shows_its_consequences_and_changes_nothing_until_enter() {
    let mut desk = Desk::attacked(ATTACK - 10);
    desk.keys(":mode paper<enter><enter>");
    assert!(desk.console.model.knobs().contains(&Knob::Mode.at(Mode::Paper)), "{}", desk.said());
    let thresholds = |desk: &mut Desk| desk.watch().snapshot().thresholds;
    let before = thresholds(&mut desk);
    desk.keys("+");
    let tuning = desk.console.model.tuning.as_ref().expect("a knob on trial");
    assert!(tuning.trial.knob() == Knob::TauC(None) && tuning.has_moved());
    assert!(tuning.ghost().is_some_and(|ghost| ghost.len() == 3));
    let words = tuning.words(0);
    assert!(words.contains("alarms") && words.contains("false"), "{words}");
    assert_eq!(desk.console.model.focus(), Focus::Knobs);
    desk.keys("<esc>");
    assert_eq!(desk.console.model.tuning, None);
    assert_eq!(thresholds(&mut desk), before, "it was left");
    desk.keys("++<enter>");
    assert_ne!(thresholds(&mut desk), before, "it was set");
    assert!(desk.said().contains("tau_c"), "{}", desk.said());
    assert_eq!(desk.console.model.focus(), Focus::Incidents, "enter means incidents again");
    desk.keys("u");
    assert_eq!(thresholds(&mut desk), before, "and undone");
    assert!(desk.said().starts_with("undone: tau_c"), "{}", desk.said());
    desk.keys("<c-r>");
    assert_ne!(thresholds(&mut desk), before, "and done again");
    assert!(desk.said().starts_with("done again: tau_c"), "{}", desk.said());
    let set = thresholds(&mut desk);
    desk.keys("+u");
    assert_eq!(thresholds(&mut desk), set, "what was only tried is dropped, and nothing before it");
    assert!(desk.said().starts_with("dropped"), "{}", desk.said());

    let asked = |desk: &Desk| {
        desk.wishes().iter().filter(|wish| matches!(wish, Command::WhatIf(_))).count()
    };
    let questions = asked(&desk);
    desk.busy_keys("-----");
    assert_eq!(asked(&desk), questions + 1, "one is on its way while the engine is busy");
    desk.serve();
    assert!(asked(&desk) >= questions + 2, "the last value is asked for when it is not");
    assert!(desk.console.model.tuning.as_ref().is_some_and(|tuning| tuning.answer().is_some()));

    desk.keys("<esc>6");
    for _ in 0..30 {
        desk.keys("<down>");
    }
    desk.keys("<enter>soon<enter>");
    assert!(desk.console.model.prompt.as_ref().is_some_and(|prompt| prompt.error.is_some()));
    desk.keys("<backspace><backspace><backspace><backspace>4h<enter>");
    let trial = desk.console.model.tuning.as_ref().map(|tuning| tuning.trial);
    assert_eq!(trial, Some(Knob::Arl0.at(14_400.0)));
    desk.keys("<enter>");
    assert!(desk.console.model.knobs().contains(&Knob::Arl0.at(14_400.0)));

    let ordered =
        |desk: &Desk| desk.wishes().iter().filter(|wish| matches!(wish, Command::Order(_))).count();
    let orders = ordered(&desk);
    desk.keys(":epsilon_flag 2<enter><enter>");
    let question = desk.console.model.question.clone().expect("it asks");
    let text = question.text(&desk.console.model.names);
    assert!(text.contains(&format!("from step {} on", ATTACK - 10 + 1)), "{text}");
    desk.keys("n");
    assert_eq!(ordered(&desk), orders);
    desk.keys(":epsilon_flag 2<enter><enter>y");
    assert!(desk.said().contains("epsilon_flag"), "{}", desk.said());
}

#[test]
fn a_vote_and_a_dead_band_are_knobs_like_any_other_where_flags_decide() {
    let mut desk = Desk::attacked(ATTACK - 10);
    let offered =
        |desk: &Desk| -> Vec<Knob> { desk.console.model.offered_knobs().map(Turn::knob).collect() };
    assert!(!offered(&desk).contains(&Knob::Vote) && !offered(&desk).contains(&Knob::Deadband));
    desk.keys(":mode paper<enter><enter>");
    assert_eq!(offered(&desk)[2..4], [Knob::Vote, Knob::Deadband]);
    desk.keys("6<down><down>++");
    let tuning = desk.console.model.tuning.as_ref().expect("a knob on trial");
    assert_eq!(tuning.trial, Knob::Vote.at(Some(Vote { k: 3, n: 5 })));
    assert!(tuning.words(0).contains("alarms"), "{}", tuning.words(0));
    desk.keys("<enter>");
    assert!(desk.said().contains("vote none → 3 of 5"), "{}", desk.said());
    desk.keys("6<down>--");
    let tuning = desk.console.model.tuning.as_ref().expect("a knob on trial");
    assert_eq!(tuning.trial, Knob::Deadband.at(0.9));
    assert!(tuning.words(0).contains("alarms"), "{}", tuning.words(0));
    desk.keys("<enter>");
    assert!(desk.console.model.knobs().contains(&Knob::Deadband.at(0.9)));
    desk.keys("uu");
    let back = [Knob::Vote.at(KnobValue::None), Knob::Deadband.at(1.0)];
    assert_eq!(desk.console.model.knobs()[2..4], back, "{}", desk.said());
    desk.keys(":vote 6 of 5<enter>");
    assert!(desk.console.model.prompt.as_ref().is_some_and(|prompt| prompt.error.is_some()));
}

#[test]
fn a_client_is_what_the_list_says_from_the_first_evidence_on() {
    let desk = Desk::looking();
    let watched = desk.console.model.watched.as_ref().expect("opened");
    let incident = watched.incident(1).expect("an attack");
    let root = incident.root.expect("named");
    assert!(incident.onset < incident.opened, "it takes a while to be sure");
    let before = incident.onset - SignedDuration::from_secs(1);
    for (moment, there) in [(before, false), (incident.onset, true), (incident.opened, true)] {
        assert_eq!(watched.begun_by(moment, None).any(|i| i.number == 1), there);
        assert_eq!(watched.verdict_at(root, moment).is_some(), there);
    }
}

#[test]
fn what_lies_ahead_is_run_to_and_a_run_that_is_over_still_takes_orders() {
    let mut desk = Desk::attacked(20);
    desk.keys("g01:25<enter>");
    assert!(matches!(desk.wishes()[..], [Command::RunTo(_)]));
    assert!(desk.clock().as_str() >= "01:25:00" && desk.clock().as_str() < "01:25:10");
    assert_eq!(desk.console.model.seeking, None, "it has been reached");
    desk.keys(">");
    assert!(desk.console.model.pace.paused);
    desk.steps(60);
    desk.end();
    desk.keys("g23:00<enter>");
    let prompt = desk.console.model.prompt.as_ref().expect("the line stays to be put right");
    assert_eq!(prompt.error.as_deref(), Some("there is no more data"));
    desk.keys("<esc>:arl0 1h<enter><enter>");
    assert!(desk.said().contains("arl0 1d → 1h"), "{}", desk.said());
}

fn max() -> Pace {
    Pace { speed: Speed::Max, paused: false }
}

#[test]
fn an_engine_plays_a_session_to_its_end_keeps_every_frame_and_then_still_answers() {
    let mut engine = engine::spawn(&attack_session(), options(max())).expect("a thread");
    let mut desk = Desk::blank();
    while !matches!(desk.console.model.stage, Stage::Ended) {
        desk.console.report(engine.events.blocking_recv().expect("it does not die"));
    }
    let model = &desk.console.model;
    assert_eq!(model.measured.as_ref().map(|m| m.history.len()), Some(5 * ATTACK));
    assert_eq!(model.watched.as_ref().map(|w| w.history.len()), Some(ATTACK));
    assert_eq!(model.steps(), ATTACK as u64);
    engine.command(Command::WhatIf(Knob::Arl0.at(600.0))).expect("room for a command");
    assert!(matches!(engine.events.blocking_recv(), Some(EngineEvent::Tried(_))));
    let action = OperatorAction::Set { what: "arl0".into(), to: Knob::Arl0.at(600.0).value() };
    let order = Order { who: "eva".into(), action, why: None };
    engine.command(Command::Order(order)).expect("room for a command");
    assert!(matches!(engine.events.blocking_recv(), Some(EngineEvent::News(_))));
    assert!(matches!(engine.events.blocking_recv(), Some(EngineEvent::Ordered(Ok(())))));
}

#[test]
fn an_engine_reads_ahead_to_where_playing_begins_stands_there_and_goes_step_by_step() {
    let mut session = attack_session();
    session.replay.from = Some(Mark::After(120.0));
    let pace = Pace { speed: Speed::Times(1.0), paused: true };
    let mut engine = engine::spawn(&session, options(pace)).expect("a thread");
    let (mut frames, mut steps) = (0, 0);
    let mut next = |engine: &mut Handle, until: usize| loop {
        match engine.events.blocking_recv().expect("it does not die") {
            EngineEvent::News(bulletin) => {
                frames += bulletin.news.frames.len();
                steps += bulletin.news.times.len();
                if frames >= until && bulletin.news.times.last().is_some() {
                    return (frames, steps);
                }
            }
            EngineEvent::Playing => return (frames, steps),
            _ => {}
        }
    };
    assert_eq!(next(&mut engine, usize::MAX), (120, 24));
    engine.command(Command::Step).expect("room");
    assert_eq!(next(&mut engine, 125), (125, 25), "one step is five measurements");
    engine.command(Command::Step).expect("room");
    assert_eq!(next(&mut engine, 130), (130, 26));
}

#[test]
fn a_session_that_cannot_be_opened_fails_visibly() {
    let mut session = attack_session();
    // Its models are of other clients.
    session.clients = crate::stream::plant::default_clients();
    session.clients.pop();
    let mut engine = engine::spawn(&session, options(max())).expect("a thread");
    let mut desk = Desk::blank();
    desk.console.report(engine.events.blocking_recv().expect("it says so"));
    assert!(matches!(desk.console.model.stage, Stage::Failed(_)));
    assert!(engine.events.blocking_recv().is_none());
}

#[test]
fn a_trial_is_paid_for_by_a_command_and_only_when_there_is_one() {
    let mut desk = Desk::attacked(60);
    desk.keys(":pay<enter>");
    let prompt = desk.console.model.prompt.as_ref().expect("the line stays to be put right");
    assert_eq!(prompt.error.as_deref(), Some("no setting is on trial"));
    desk.keys("<esc>+:pay<enter>");
    let paid = |command: &&&Command| matches!(command, Command::WhatIfPaid(_));
    assert_eq!(desk.wishes().iter().filter(paid).count(), 1, "{:?}", desk.wishes());
}

#[test]
fn the_look_up_is_asked_for_no_new_normal() {
    let mut desk = Desk::attacked(ATTACK + 60);
    desk.keys(":mode paper<enter><enter>N");
    assert!(desk.said().contains("the look-up has no new normal"), "{}", desk.said());
    let orders = desk.wishes().len();
    desk.keys("y");
    assert_eq!(desk.wishes().len(), orders, "nothing was asked that could be answered");
}
