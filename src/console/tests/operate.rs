//! What an operator does, key by key, over a real run.

use std::time::Duration;

use super::plant::{Desk, FIRST_ATTACK, STEPS, ready, session};
use crate::console::app::{Effect, Focus, Screen, Stage};
use crate::console::feed::{self, Report, Wish};
use crate::console::pace::{Pace, Speed};
use crate::engine::run::knob::Turn;
use crate::incident::{Action, AlarmState, Order, What};
use crate::session::{Mark, Mode};

/// The first attack of the day is over; its incident is on the list.
fn after_the_first_attack() -> Desk {
    Desk::after(FIRST_ATTACK)
}

fn state(desk: &Desk, incident: u64) -> AlarmState {
    let watched = desk.console.model.watched.as_ref().expect("opened");
    watched.incident(incident).expect("known").alarm.state
}

fn last_entry(desk: &Desk) -> What {
    let watched = desk.console.model.watched.as_ref().expect("opened");
    watched.log.last().expect("something happened").what.clone()
}

#[test]
fn an_incident_is_opened_seen_noted_and_all_of_it_can_be_undone() {
    let mut desk = after_the_first_attack();
    let incident = desk.console.model.chosen_incident().expect("an attack").number;
    desk.keys("<enter>");
    assert_eq!(desk.console.model.screen, Screen::Incident(incident));
    let before = state(&desk, incident);
    assert!(matches!(before, AlarmState::Unacknowledged | AlarmState::Returned));
    desk.keys("a");
    assert!(matches!(state(&desk, incident), AlarmState::Acknowledged | AlarmState::Normal));
    assert!(desk.said().contains("acknowledged"), "{}", desk.said());
    desk.keys("nvalve stuck<enter>");
    let note = |desk: &Desk| {
        let watched = desk.console.model.watched.as_ref().expect("opened");
        watched.incident(incident).expect("known").note.clone()
    };
    assert_eq!(note(&desk), "valve stuck");
    desk.keys("uu");
    assert_eq!((note(&desk), state(&desk, incident)), (String::new(), before));
    desk.keys("<c-r>");
    assert!(matches!(last_entry(&desk), What::Did(Action::Undo { .. })));
    desk.keys("<esc>");
    assert_eq!(desk.console.model.screen, Screen::Overview);
}

#[test]
fn looking_back_and_forth_never_disturbs_the_engine() {
    let mut desk = after_the_first_attack();
    let newest = desk.clock();
    desk.keys("<left><left>HHzZ<home>ma");
    let start = desk.moment();
    desk.keys("<end>'a");
    assert_eq!(desk.moment(), start);
    desk.keys("g10:00<esc>g+5m<enter>");
    assert_eq!(desk.moment().duration_since(start).as_secs(), 300);
    desk.keys("g01:25<enter>");
    assert_eq!(desk.clock(), "01:25:00");
    desk.keys("g-90s<enter>");
    assert_eq!(desk.clock(), "01:23:30");
    desk.keys("g#1<enter>");
    let watched = desk.console.model.watched.as_ref().expect("opened");
    assert_eq!(desk.moment(), watched.incident(1).expect("an attack").onset);
    desk.keys("gend<enter>");
    assert_eq!(desk.clock(), newest);
    assert!(desk.wishes().is_empty(), "{:?}", desk.wishes());
}

#[test]
fn what_lies_ahead_is_run_to() {
    let mut desk = Desk::after(20);
    desk.keys("g01:25<enter>");
    assert!(matches!(desk.wishes()[..], [Wish::RunTo(_)]));
    assert!(desk.clock().as_str() >= "01:25:00" && desk.clock().as_str() < "01:25:10");
    assert_eq!(desk.console.model.seeking, None, "it has been reached");
    let mut over = Desk::over(FIRST_ATTACK);
    over.keys("g23:00<enter>");
    let prompt = over.console.model.prompt.as_ref().expect("the line stays to be put right");
    assert_eq!(prompt.error.as_deref(), Some("there is no more data"));
}

#[test]
fn nonsense_is_answered_calmly_and_can_be_put_right() {
    let mut desk = Desk::after(10);
    desk.keys("gsoon<enter>");
    let prompt = desk.console.model.prompt.as_ref().expect("still asking");
    assert!(prompt.error.as_ref().is_some_and(|why| why.contains("10:38")));
    desk.keys("<backspace><backspace><backspace><backspace>start<enter>");
    assert!(desk.console.model.prompt.is_none());
    desk.keys("'b");
    assert!(desk.said().contains("no mark"));
}

#[test]
fn a_number_before_a_motion_repeats_it_and_by_itself_chooses_a_screen() {
    let mut desk = after_the_first_attack();
    let newest = desk.moment();
    let column = desk.console.model.column_s();
    desk.keys("5<left>");
    assert_eq!(newest.duration_since(desk.moment()).as_secs(), 5 * column);
    assert_eq!(desk.console.model.screen, Screen::Overview);
    desk.keys("12<right>");
    assert_eq!(desk.console.model.look, None);
    desk.keys("3<down><enter>");
    assert_eq!(desk.console.model.screen, Screen::Client, "3 and down is a screen and a row");
    assert_eq!(desk.console.model.chosen, 1);
    desk.keys("<esc>");
    assert_eq!(desk.console.model.screen, Screen::Influence);
    desk.keys("2");
    desk.pass(Duration::from_secs(1));
    desk.keys("<left>");
    assert_eq!(desk.console.model.screen, Screen::Client, "after a rest it was no number");
    assert_eq!(newest.duration_since(desk.moment()).as_secs(), column);
}

#[test]
fn incidents_are_stepped_through_in_time() {
    let mut desk = Desk::after(STEPS);
    let count = desk.console.model.listed().count();
    assert!(count >= 2, "{count} incidents");
    desk.keys(",");
    let last = desk.console.model.chosen_incident().expect("one").number;
    let there = desk.moment();
    desk.keys(",");
    assert!(desk.moment() < there);
    desk.keys(".");
    assert_eq!(desk.console.model.chosen_incident().expect("one").number, last);
    desk.keys("<enter>");
    assert_eq!(desk.console.model.screen, Screen::Incident(last));
    desk.keys(",");
    assert_eq!(desk.console.model.screen, Screen::Incident(last - 1));
}

#[test]
fn a_stretch_of_the_past_is_played_over_and_over_without_the_engine() {
    let mut desk = after_the_first_attack();
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
    let mut desk = after_the_first_attack();
    let onset = desk.console.model.chosen_incident().expect("an attack").onset;
    desk.keys("p");
    assert_eq!(onset.duration_since(desk.moment()).as_secs(), 60);
    desk.pass(Duration::from_secs(3600));
    assert_eq!((desk.console.model.look, desk.console.model.wake_in()), (None, None));
}

#[test]
fn a_knob_on_trial_shows_its_consequences_and_changes_nothing_until_enter() {
    let mut desk = Desk::over(FIRST_ATTACK);
    let standing = desk.watch.standing();
    desk.keys(":mode paper<enter>");
    assert_eq!(
        desk.console.model.knobs().iter().filter(|t| **t == Turn::Mode(Mode::Paper)).count(),
        1
    );
    desk.keys("+");
    let tuning = desk.console.model.tuning.as_ref().expect("a knob on trial");
    assert!(matches!(tuning.trial, Turn::TauC(None, Some(_))) && tuning.has_moved());
    assert!(tuning.ghost().is_some_and(|ghost| ghost.len() == 3));
    let words = tuning.words(0);
    assert!(words.contains("alarms") && words.contains("false"), "{words}");
    assert_eq!(desk.console.model.focus(), Focus::Knobs);
    desk.keys("<esc>");
    assert_eq!(desk.console.model.tuning, None);
    assert_eq!(desk.watch.standing().thresholds, standing.thresholds, "it was left");
    desk.keys("++<enter>");
    assert_ne!(desk.watch.standing().thresholds, standing.thresholds, "it was set");
    assert!(desk.said().contains("tau_c"), "{}", desk.said());
    desk.keys("u");
    assert_eq!(desk.watch.standing().thresholds, standing.thresholds, "and undone");
    desk.keys("<c-r>");
    assert_ne!(desk.watch.standing().thresholds, standing.thresholds, "and done again");
}

#[test]
fn while_the_engine_is_busy_one_question_waits_and_the_last_value_is_asked_for() {
    let mut desk = Desk::over(FIRST_ATTACK);
    desk.busy_keys("+++++");
    let asked =
        |desk: &Desk| desk.wishes().iter().filter(|wish| matches!(wish, Wish::WhatIf(_))).count();
    assert_eq!(asked(&desk), 1);
    desk.serve();
    assert_eq!(asked(&desk), 2);
    let tuning = desk.console.model.tuning.as_ref().expect("a knob on trial");
    assert!(tuning.answer().is_some());
}

#[test]
fn a_value_can_be_typed_and_nonsense_is_refused() {
    let mut desk = after_the_first_attack();
    desk.keys("6<enter>soon<enter>");
    let prompt = desk.console.model.prompt.as_ref().expect("still asking");
    assert!(prompt.error.is_some());
    for _ in 0..4 {
        desk.keys("<backspace>");
    }
    desk.keys("4h<enter>");
    let tuning = desk.console.model.tuning.as_ref().expect("on trial");
    assert_eq!(tuning.trial, Turn::Arl0(14_400.0));
    desk.keys("<enter>");
    assert_eq!(desk.console.model.knobs()[2], Turn::Arl0(14_400.0));
}

#[test]
fn epsilon_is_asked_about_and_counts_from_the_next_step_on() {
    let mut desk = after_the_first_attack();
    desk.keys(":epsilon_flag 2<enter>");
    let question = desk.console.model.question.clone().expect("it asks");
    let text = question.text(&desk.console.model.names);
    assert!(text.contains("from step 145 on"), "{text}");
    desk.keys("n");
    assert!(desk.wishes().is_empty());
    desk.keys(":epsilon_flag 2<enter>y");
    assert!(desk.said().contains("epsilon_flag"), "{}", desk.said());
}

#[test]
fn shelving_asks_for_how_long_and_can_be_ended() {
    let mut desk = after_the_first_attack();
    let incident = desk.console.model.chosen_incident().expect("an attack").number;
    desk.keys("s2");
    assert_eq!(state(&desk, incident), AlarmState::Shelved);
    desk.keys("S");
    assert_ne!(state(&desk, incident), AlarmState::Shelved);
    desk.keys("s4");
    assert!(desk.console.model.prompt.is_some());
    desk.keys("30m<enter>");
    assert_eq!(last_entry(&desk), What::Did(Action::Shelve { incident, seconds: 1800 }));
}

#[test]
fn a_client_is_taken_out_of_service_only_after_a_question() {
    let mut desk = after_the_first_attack();
    desk.keys("2x<esc>");
    assert!(desk.wishes().is_empty());
    desk.keys("xy");
    assert_eq!(desk.watch.standing().clients[0], AlarmState::OutOfService);
    desk.keys("x");
    assert_ne!(desk.watch.standing().clients[0], AlarmState::OutOfService);
}

#[test]
fn what_the_engine_refuses_is_said_and_changes_nothing() {
    let mut desk = Desk::over(FIRST_ATTACK);
    desk.keys("a");
    let log = desk.console.model.watched.as_ref().expect("opened").log.len();
    desk.keys("4a");
    assert!(desk.console.model.remark.as_ref().is_some_and(|remark| remark.bad), "{}", desk.said());
    assert_eq!(desk.console.model.watched.as_ref().expect("opened").log.len(), log);
}

#[test]
fn the_log_is_filtered_while_it_is_typed() {
    let mut desk = Desk::over(FIRST_ATTACK);
    desk.keys("7");
    let all = desk.console.model.entries().len();
    desk.keys("/client:P1");
    let some = desk.console.model.entries().len();
    assert!(some > 0 && some < all, "{some} of {all}");
    desk.keys("<enter><down><down><enter>");
    assert!(matches!(desk.console.model.screen, Screen::Incident(_)));
    desk.keys("<esc>");
    assert_eq!(desk.console.model.screen, Screen::Log);
    desk.keys("<esc>");
    assert_eq!(desk.console.model.entries().len(), all, "esc takes the filter away first");
    desk.keys("<esc>");
    assert_eq!(desk.console.model.screen, Screen::Overview);
}

#[test]
fn the_command_line_completes_remembers_and_acts() {
    let mut desk = after_the_first_attack();
    desk.keys(":them<tab>");
    let typed = |desk: &Desk| {
        let prompt = desk.console.model.prompt.as_ref().expect("typing");
        prompt.line.text().to_owned()
    };
    assert_eq!(typed(&desk), "theme ");
    desk.keys("<tab><tab>");
    assert_eq!(typed(&desk), "theme dark");
    desk.keys("<enter>:<up>");
    assert_eq!(typed(&desk), "theme dark");
    desk.keys("<esc>:speed 30<enter>");
    assert_eq!(desk.console.model.pace.speed, Speed::Times(30.0));
    desk.keys(":quit<enter>");
    assert!(desk.console.has_quit());
}

#[test]
fn another_session_is_opened_after_a_question() {
    let mut desk = after_the_first_attack();
    desk.keys(":open twin<enter>y");
    assert_eq!(desk.console.effects.last(), Some(&Effect::Open("twin".into())));
}

#[test]
fn the_bell_rings_once_for_a_new_p1_and_only_if_asked_to() {
    let rings = |keys: &str| {
        let mut desk = Desk::after(10);
        desk.keys(keys);
        for _ in 0..14 {
            desk.steps(10);
        }
        let p1 = |i: &&crate::incident::Incident| i.priority == crate::fact::Priority::P1;
        let urgent = desk.console.model.listed().filter(p1).count();
        (desk.console.effects.iter().filter(|e| **e == Effect::Bell).count(), urgent)
    };
    assert_eq!(rings("1").0, 0);
    let (rung, urgent) = rings("b");
    assert_eq!(rung, urgent);
}

#[test]
fn clients_sort_by_severity_only_on_request() {
    let mut desk = after_the_first_attack();
    assert_eq!(desk.console.model.rows(), [0, 1, 2]);
    desk.keys("o");
    assert_eq!(desk.console.model.rows().len(), 3);
    assert!(desk.said().contains("severity"));
}

fn max() -> Pace {
    Pace { speed: Speed::Max, paused: false }
}

#[test]
fn a_feed_plays_a_session_to_its_end_keeps_every_frame_and_then_still_answers() {
    let mut feed = feed::spawn(&session(), max(), |_| Ok(ready())).expect("a thread");
    let mut desk = Desk::after(0);
    while !matches!(desk.console.model.stage, Stage::Ended) {
        desk.console.report(feed.reports.blocking_recv().expect("it does not die"));
    }
    let model = &desk.console.model;
    assert_eq!(model.measured.as_ref().map(|m| m.history.len()), Some(82 * 60));
    assert_eq!(model.watched.as_ref().map(|w| w.history.len()), Some(STEPS));
    assert_eq!(model.steps(), STEPS as u64);
    feed.wish(Wish::WhatIf(Turn::Arl0(600.0))).expect("room for a wish");
    assert!(matches!(feed.reports.blocking_recv(), Some(Report::Found(_))));
    let action = Action::Set { what: "arl0".into(), to: Turn::Arl0(600.0).value() };
    let order = Order { who: "eva".into(), action, why: None };
    feed.wish(Wish::Order(order)).expect("room for a wish");
    assert!(matches!(feed.reports.blocking_recv(), Some(Report::News(_))));
    assert!(matches!(feed.reports.blocking_recv(), Some(Report::Ordered(Ok(())))));
}

#[test]
fn a_feed_reads_ahead_to_where_playing_begins_stands_there_and_goes_step_by_step() {
    let mut session = session();
    session.replay.from = Some(Mark::After(120.0));
    let pace = Pace { speed: Speed::Times(1.0), paused: true };
    let mut feed = feed::spawn(&session, pace, |_| Ok(ready())).expect("a thread");
    let (mut frames, mut steps) = (0, 0);
    let mut next = |feed: &mut feed::Feed, until: usize| loop {
        match feed.reports.blocking_recv().expect("it does not die") {
            Report::News(bulletin) => {
                frames += bulletin.news.frames.len();
                steps += bulletin.news.times.len();
                if frames >= until {
                    return (frames, steps);
                }
            }
            Report::Playing => return (frames, steps),
            _ => {}
        }
    };
    assert_eq!(next(&mut feed, usize::MAX), (120, 24));
    feed.wish(Wish::Step).expect("room");
    assert_eq!(next(&mut feed, 125), (125, 25), "one step is five measurements");
    feed.wish(Wish::Step).expect("room");
    assert_eq!(next(&mut feed, 130), (130, 26));
}

#[test]
fn a_session_that_cannot_be_opened_fails_visibly() {
    let open = |_: feed::Tell| Err("no such data".into());
    let mut feed = feed::spawn(&session(), max(), open).expect("a thread");
    let mut desk = Desk::after(0);
    desk.console.report(feed.reports.blocking_recv().expect("it says so"));
    assert!(matches!(desk.console.model.stage, Stage::Failed(_)));
    assert!(feed.reports.blocking_recv().is_none());
}

#[test]
fn an_engine_that_panics_hangs_up_without_a_last_word() {
    let open = |_: feed::Tell| -> Result<feed::Ready, feed::OpenError> { panic!("on purpose") };
    let mut feed = feed::spawn(&session(), max(), open).expect("a thread");
    assert!(feed.reports.blocking_recv().is_none(), "the loop takes this for a failure");
}
