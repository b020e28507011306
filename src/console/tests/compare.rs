//! Two days under one cursor, and a recording that was run again.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::plant::{ATTACK, Desk};
use super::screen;
use crate::console::app::{Effect, Model};
use crate::console::compare::Both;
use crate::console::export::{self, Format};
use crate::console::key::Key;
use crate::engine::branch::Branch;
use crate::engine::handle::{Command, EngineEvent};
use crate::engine::knob::Knob;

/// The attack, and the same with a server that is content with a false alarm in 40 days.
fn both() -> Both {
    let a = Desk::looking().console.model;
    let calm = |session: &mut crate::session::Session| {
        session.thresholds.arl0.seconds = 40.0 * 86_400.0;
    };
    let b = Desk::attacked_where(ATTACK, calm).console.model;
    Both::of([a, b], ["monday".to_owned(), "monday arl0=40d".to_owned()])
}

fn press(both: &mut Both, code: KeyCode) -> bool {
    let key = KeyEvent::new(code, KeyModifiers::NONE);
    both.press(Key::pressed(key).expect("a press is a key"))
}

fn picture(both: &Both, columns: u16, rows: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    both.draw(&mut buffer);
    export::write(&buffer, Format::Text)
}

#[test]
fn the_picture_of_two_days_is_as_it_was_looked_at() {
    let mut both = both();
    for _ in 0..4 {
        press(&mut both, KeyCode::Left);
    }
    insta::assert_snapshot!("two_days_120x40", picture(&both, 120, 40));
    press(&mut both, KeyCode::Tab);
    insta::assert_snapshot!("two_days_80x24", picture(&both, 80, 24));
}

#[test]
fn two_days_are_shown_one_above_the_other_at_the_same_moment() {
    let mut both = both();
    for _ in 0..8 {
        assert!(!press(&mut both, KeyCode::Left));
    }
    let [a, b] = both.models().each_ref().map(Model::moment);
    assert_eq!(a, b, "one cursor");
    let text = picture(&both, 120, 40);
    assert!(text.contains("a: monday") && text.contains("b: monday arl0=40d"), "{text}");
    assert_eq!(text.matches("S/b evidence").count(), 2, "the lanes of both days: {text}");
    let small = picture(&both, 80, 24);
    assert!(small.contains("a: monday") && small.contains("b: monday"), "{small}");
    // The keys are for the other day, and the first one follows.
    assert!(!press(&mut both, KeyCode::Tab));
    assert!(!press(&mut both, KeyCode::Left));
    let [a, b] = both.models().each_ref().map(Model::moment);
    assert_eq!(a, b);
    // Nothing is changed here.
    assert!(!press(&mut both, KeyCode::Char('a')));
    assert!(picture(&both, 120, 40).contains("only looked at"));
    assert!(press(&mut both, KeyCode::Char('q')));
}

#[test]
fn a_knob_turned_in_a_recording_runs_it_again_from_the_moment_looked_at() {
    let mut desk = Desk::looking();
    desk.console.model.is_recording = true;
    desk.console.keys("<left><left>:arl0 40d<enter>");
    desk.console.effects.clear();
    desk.console.keys("<enter>");
    let from = desk.console.model.moment().expect("there is data");
    let turn = Knob::Arl0.at(40.0 * 86_400.0);
    let asked = [Effect::Command(Command::Branch { from, turn })];
    assert_eq!(desk.console.effects, asked);
    let old = desk.console.model.watched.as_ref().expect("open").incidents.clone();
    assert!(!old.is_empty(), "the attack was found");
    let mut new = old.clone();
    new[0].root = Some(2);
    let before = Knob::Arl0.at(8.0 * 3600.0);
    let branch = Branch { from, turn, before, old, new };
    assert_eq!(branch.pairs().len(), branch.old.len(), "each has its own beside it");
    desk.console.report(EngineEvent::Branched(Ok(Box::new(branch))));
    let text = screen(&desk.console, 120, 40);
    assert!(text.contains("as it was") && text.contains("with another root"), "{text}");
    desk.console.keys("q");
    assert!(!screen(&desk.console, 120, 40).contains("as it was"));
    assert!(!desk.console.has_quit());
    desk.console.report(EngineEvent::Branched(Err("the recording ends before that".to_owned())));
    assert!(screen(&desk.console, 120, 40).contains("the recording ends before that"));
}
