//! Defects that were found by new users, each as the keys that showed it.

use std::time::Duration;

use super::plant::{ATTACK, Desk};
use super::screen;
use crate::console::app::{Effect, Question, Screen, Stage};
use crate::console::sessions;
use crate::engine::handle::Command;
use crate::engine::knob::{Knob, KnobValue};
use crate::incident::{AlarmState, OperatorAction, What};
use crate::session::Tau;

fn orders(desk: &Desk) -> usize {
    desk.wishes().iter().filter(|wish| matches!(wish, Command::Order(_))).count()
}

#[test]
fn a_digit_is_a_view_and_never_a_number() {
    let mut desk = Desk::attacked(ATTACK + 60);
    let (newest, column) = (desk.moment(), desk.console.model.column_s());
    desk.keys("41<left>");
    assert_eq!(desk.console.model.screen, Screen::Overview);
    assert_eq!(newest.duration_since(desk.moment()).as_secs(), column);
    desk.keys("21+");
    assert_eq!(desk.console.model.screen, Screen::Overview);
    assert_eq!(desk.console.model.wake_in(), None, "nothing waits for more digits");
}

#[test]
fn a_typed_setting_has_the_unit_that_is_shown_and_goes_on_trial() {
    let mut desk = Desk::attacked(20);
    desk.keys(":tau_c 97.5<enter>");
    let trial = desk.console.model.tuning.as_ref().map(|tuning| tuning.trial);
    assert_eq!(trial, Some(Knob::TauC(None).at(Some(Tau::Percentile(97.5)))));
    assert_eq!(orders(&desk), 0, "{}", desk.said());
    desk.keys("<esc>:arl0 8<enter>");
    let trial = desk.console.model.tuning.as_ref().map(|tuning| tuning.trial);
    assert_eq!(trial, Some(Knob::Arl0.at(8.0 * 86_400.0)), "days are shown");
    desk.keys("<esc>");
    assert_eq!(orders(&desk), 0);
    desk.keys(":arl0 4h because it is quiet<enter><enter>");
    assert!(desk.console.model.knobs().contains(&Knob::Arl0.at(14_400.0)), "{}", desk.said());
    let why = desk.console.model.watched.as_ref().and_then(|w| w.log.last()?.why.clone());
    assert_eq!(why.as_deref(), Some("it is quiet"));
}

#[test]
fn enter_is_no_answer_to_a_question() {
    let mut desk = Desk::attacked(ATTACK - 10);
    desk.keys("2x<enter><enter>");
    assert!(desk.console.model.question.is_some(), "it still stands");
    assert_eq!(orders(&desk), 0);
    desk.keys("<esc>:epsilon_flag 2<enter><enter><enter>");
    assert_eq!(orders(&desk), 0, "what is given away needs a yes");
    desk.keys("y");
    assert_eq!(orders(&desk), 1);
}

#[test]
fn a_moment_looked_back_at_reads_as_it_was_known_then() {
    let mut desk = Desk::attacked(ATTACK + 60);
    let incident = desk.console.model.chosen_incident().expect("an attack").clone();
    let root = incident.root.expect("named");
    desk.keys(",");
    assert_eq!(desk.moment(), incident.onset, "{}", desk.said());
    let verdict = desk.console.model.verdict(root).expect("it is known by now");
    assert!(verdict.found > desk.moment(), "it was found later");
    let picture = screen(&desk.console, 120, 40);
    let later = format!("(ROOT #{})", incident.number);
    assert!(picture.contains(&later), "what was learned later stands in brackets:\n{picture}");
    let figures = desk.console.model.figures().expect("steps were taken");
    assert_eq!((figures.open, figures.unacknowledged), (0, 0), "nothing was known yet");
    // At the opening it was open and nobody had seen it; acknowledging it now changes nothing then.
    let opened = desk.console.model.clock.time(incident.opened);
    desk.keys(&format!("g{opened}<enter>"));
    let states = |desk: &Desk| -> Vec<(u64, AlarmState)> {
        desk.console.model.listed().map(|i| (i.number, i.alarm.state)).collect()
    };
    let (then, figures) = (states(&desk), desk.console.model.figures());
    assert!(then.contains(&(incident.number, AlarmState::Unacknowledged)), "{then:?}");
    assert!(figures.as_ref().is_some_and(|figures| figures.open == 1));
    desk.keys("a");
    assert_eq!(orders(&desk), 1, "{}", desk.said());
    assert_eq!((states(&desk), desk.console.model.figures()), (then, figures));
    assert!(screen(&desk.console, 120, 40).contains("(now "), "what became of it is said");
    // The sensors that deviated most are those of then.
    desk.console.model.chosen = root;
    desk.keys("2");
    assert!(screen(&desk.console, 120, 40).contains("Look first at"), "{}", desk.clock());
}

#[test]
fn what_happened_before_stays_what_it_was_when_a_client_is_taken_out() {
    let mut desk = Desk::attacked(ATTACK + 60);
    let incident = desk.console.model.chosen_incident().expect("an attack").clone();
    let root = incident.root.expect("named");
    desk.console.model.chosen = root;
    desk.keys("2xy");
    assert!(matches!(
        desk.console.model.watched.as_ref().and_then(|w| w.log.last()).map(|e| e.what.clone()),
        Some(What::Did(OperatorAction::TakeOut { .. }))
    ));
    let opened = desk.console.model.clock.time(incident.opened);
    desk.keys(&format!("1g{opened}<enter>"));
    assert!(!screen(&desk.console, 120, 40).contains("out of service"), "then it was in service");
}

#[test]
fn zooming_out_stops_where_all_of_the_data_is_seen() {
    let mut desk = Desk::looking();
    desk.keys("ZZZZZZZZZZZZ");
    let (first, last) = {
        let history = &desk.console.model.measured.as_ref().expect("opened").history;
        (history.first().expect("data"), history.last().expect("data"))
    };
    let column = desk.console.model.column_s();
    let whole = desk.console.model.day.seconds(first, last);
    assert!(column * 48 >= whole && column * 48 < 8 * whole, "{column} s a column for {whole} s");
    assert_eq!(desk.said(), "all of the data is on the screen");
}

#[test]
fn space_plays_from_the_moment_looked_at_and_says_so() {
    let mut desk = Desk::looking();
    desk.keys("<home><space>");
    let start = desk.moment();
    desk.pass(Duration::from_secs(2));
    assert_eq!(desk.moment().duration_since(start).as_secs(), 20, "ten data seconds a second");
    assert!(screen(&desk.console, 120, 40).contains("AGAIN 10x"));
    desk.keys("<space>");
    desk.pass(Duration::from_secs(2));
    assert_eq!(desk.moment().duration_since(start).as_secs(), 20);
    assert!(screen(&desk.console, 120, 40).contains("PAUSED"));
    desk.keys("<esc>g01:25<enter>Ag01:26<enter>B");
    assert!(screen(&desk.console, 120, 40).contains("LOOP 10x"));
    assert!(desk.wishes().is_empty(), "{:?}", desk.wishes());
}

#[test]
fn after_the_end_keys_of_the_replay_move_the_past_or_say_why_not() {
    let mut desk = Desk::attacked(60);
    desk.end();
    assert!(matches!(desk.console.model.stage, Stage::Ended));
    for key in ["<space>", ">", "[", "]"] {
        desk.keys(key);
        assert!(desk.said().contains("the data is over"), "{key}: {}", desk.said());
    }
    desk.keys("<home>");
    let start = desk.moment();
    desk.keys(">");
    assert_eq!(desk.moment().duration_since(start).as_secs(), 5, "one step of the engine");
    assert!(desk.wishes().is_empty(), "{:?}", desk.wishes());
}

#[test]
fn a_session_without_data_is_not_left_for() {
    let why = sessions::with_data("hai-22.04").err().expect("its files are not here");
    assert!(!why.is_empty());
    assert!(sessions::with_data("no such session").is_err());
    assert!(sessions::with_data("twin").is_ok());
    let mut desk = Desk::looking();
    desk.keys(":open hai-22.04<enter>");
    assert_eq!(desk.console.model.question, None, "there is nothing to ask");
    assert!(desk.said().contains("this one goes on"), "{}", desk.said());
    desk.keys(":open twin<enter>");
    assert_eq!(desk.console.model.question, Some(Question::Open("twin".into())));
    desk.keys("n");
    assert!(!desk.console.effects.iter().any(|effect| matches!(effect, Effect::Open(_))));
}

#[test]
fn when_a_setting_counts_is_said_alike_before_and_in_the_question() {
    let mut desk = Desk::attacked(20);
    desk.keys(":epsilon_c 4<enter>");
    let words = desk.console.model.tuning.as_ref().expect("on trial").words(20);
    assert!(words.contains("from the next training on"), "{words}");
    desk.keys("<enter>");
    let question = desk.console.model.question.as_ref().expect("it asks");
    let text = question.text(&desk.console.model.names);
    assert!(text.contains("from the next training on"), "{text}");
}

#[test]
fn a_knob_at_its_end_says_so() {
    let mut desk = Desk::attacked(20);
    desk.keys("6<down><down>");
    let chosen = desk.console.model.chosen_knob().expect("a knob");
    assert_eq!(chosen, Knob::EpsilonFlag.at(KnobValue::None));
    desk.keys("+");
    assert!(desk.said().contains("no further up"), "{}", desk.said());
    assert!(desk.console.model.tuning.is_none(), "nothing is on trial");
}

#[test]
fn what_decides_heads_the_knobs_and_the_rest_is_said_to_decide_nothing() {
    let mut desk = Desk::attacked(20);
    let first = desk.console.model.offered_knobs().next().map(|turn| turn.knob);
    assert_eq!(first, Some(Knob::Arl0));
    desk.keys("6");
    assert!(screen(&desk.console, 120, 60).contains("evidence decides, not τ"));
}

#[test]
fn a_budget_in_a_session_without_noise_brings_noise_with_it() {
    let mut desk = Desk::attacked(20);
    desk.keys(":budget 500<enter><enter>");
    let question = desk.console.model.question.as_ref().expect("it asks");
    let text = question.text(&desk.console.model.names);
    assert!(text.contains("needs noise: ε flags 4 from step"), "{text}");
    desk.keys("y");
    let model = &desk.console.model;
    assert_eq!(model.setting(Knob::Budget), Some(Knob::Budget.at(Some(500.0))), "{}", desk.said());
    assert_eq!(model.setting(Knob::EpsilonFlag), Some(Knob::EpsilonFlag.at(Some(4.0))));
    desk.keys("6");
    let picture = screen(&desk.console, 160, 50);
    assert!(picture.contains("budget 500 for any day"), "{picture}");
    assert!(picture.contains("counts what is sent with noise"), "{picture}");
}

#[test]
fn all_that_ask_are_acknowledged_at_once() {
    let mut desk = Desk::attacked(ATTACK + 60);
    let asking = |desk: &Desk| {
        let model = &desk.console.model;
        let listed = model.listed().filter_map(|i| model.present(i.number));
        listed.filter(|i| i.alarm.state.wants_acknowledgement()).count()
    };
    assert!(asking(&desk) > 0);
    desk.keys("<c-a>");
    assert_eq!(asking(&desk), 0, "{}", desk.said());
    desk.keys("<c-a>");
    assert!(desk.said().contains("nothing asks"), "{}", desk.said());
}

#[test]
fn the_truth_stands_beside_each_incident_and_its_score_at_the_end() {
    let mut desk = Desk::attacked(ATTACK + 60);
    desk.keys("t");
    let picture = screen(&desk.console, 160, 50);
    assert!(picture.contains("root right") || picture.contains("root wrong"), "{picture}");
}

#[test]
fn a_close_up_has_short_columns_and_goes_back() {
    let mut desk = Desk::attacked(ATTACK + 60);
    let before = desk.console.model.column_s();
    desk.keys("v");
    assert_eq!(desk.console.model.column_s(), 5);
    desk.keys("v");
    assert_eq!(desk.console.model.column_s(), before);
}

#[test]
fn an_empty_command_line_offers_everything() {
    let mut desk = Desk::attacked(20);
    desk.keys(":<tab>");
    let prompt = desk.console.model.prompt.as_ref().expect("typing");
    assert!(prompt.offers.len() > 40, "{:?}", prompt.offers);
}
