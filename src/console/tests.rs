//! The console as a whole: key macros, screens at several sizes, and a feed that plays.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks at the events that it is about")]

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::app::Screen;
use super::view::view;
use crate::engine::pace::Speed;
use fixture::{Console, playing, preparing};

mod compare;
mod everyday;
mod expected;
pub(crate) mod fixture;
mod judged;
mod live;
mod marks;
mod operate;
pub(crate) mod plant;
mod promises;
mod replay;
mod second;
mod seeded;
mod sizes;
mod views;

fn screen(console: &Console, width: u16, height: u16) -> String {
    let mut terminal =
        Terminal::new(TestBackend::new(width, height)).expect("a test backend always opens");
    terminal
        .draw(|frame| drop(view(&console.model, frame.buffer_mut())))
        .expect("a test backend never fails");
    let text = terminal.backend().to_string();
    let rows: Vec<&str> = text.lines().map(|row| row.trim_matches('"').trim_end()).collect();
    rows.join("\n")
}

#[test]
fn before_there_is_data_the_screen_says_so() {
    let mut console = preparing();
    insta::assert_snapshot!("preparing_80x24", screen(&console, 80, 24));
    console.fail();
    insta::assert_snapshot!("failed_80x24", screen(&console, 80, 24));
}

#[test]
fn a_failure_in_the_middle_keeps_what_came_before() {
    let mut console = playing();
    console.fail();
    let screen = screen(console.keys("2"), 120, 40);
    assert!(screen.contains("FAILED") && screen.contains("the data ends here: not found in"));
    assert!(screen.contains("FT01"));
}

#[test]
fn keys_open_and_close_one_level_at_a_time() {
    let mut console = playing();
    console.keys("t?<esc>");
    assert!(console.model.truth_shown && console.model.help.is_none());
    console.keys("<enter>?");
    assert_eq!(console.model.screen, Screen::Client);
    assert_eq!(console.model.help, Some(0));
    console.keys("q");
    assert_eq!(console.model.help, None);
    console.keys("q");
    assert_eq!(console.model.screen, Screen::Overview);
    assert!(!console.has_quit());
    console.keys("q");
    assert!(console.has_quit());
}

#[test]
fn control_c_quits_from_anywhere() {
    assert!(playing().keys("<enter>?<c-c>").has_quit());
    assert!(preparing().keys("<c-c>").has_quit());
}

#[test]
fn space_and_signs_set_the_pace() {
    let mut console = playing();
    console.keys("<space>");
    assert!(console.model.pace.paused);
    console.keys("<space>]][]");
    assert!(!console.model.pace.paused);
    assert_eq!(console.model.pace.speed, Speed::Times(300.0));
    assert_eq!(console.last_pace(), Some(console.model.pace));
}

#[test]
fn looking_back_does_not_disturb_the_stream() {
    let mut console = playing();
    let newest = console.model.newest();
    console.keys("<left>h");
    let looked = console.model.look.expect("looking back");
    assert_eq!(newest.map(|n| n.duration_since(looked).as_secs()), Some(60));
    console.play(90);
    assert_eq!(console.model.look, Some(looked), "new data does not move the look");
    assert!(console.model.newest() > newest);
    console.keys("<right>");
    assert!(console.model.look > Some(looked));
    console.keys("G");
    assert_eq!(console.model.look, None);
    console.keys("<home>");
    assert_eq!(console.model.look, console.first());
    console.keys("<end>");
    assert_eq!(console.model.moment(), console.model.newest());
    assert_eq!(console.last_pace(), None, "the feed was never told anything");
}

#[test]
fn clients_are_chosen_and_the_ends_hold() {
    let mut console = playing();
    console.keys("<down>jj");
    assert_eq!(console.model.chosen, 2);
    console.keys("k");
    assert_eq!(console.model.chosen, 1);
    console.keys("<up>kk");
    assert_eq!(console.model.chosen, 0);
}

#[test]
fn a_zoom_is_never_finer_than_the_data() {
    let mut console = playing();
    console.keys("zzzzzzzzzzzz");
    assert_eq!(console.model.column_s(), 1);
    console.keys("ZZZZZZZZZZZZZZZZ");
    assert_eq!(console.model.column_s(), 1800, "a day is on the screen");
}

#[test]
fn names_from_data_cannot_speak_to_the_terminal() {
    let console = fixture::hostile();
    for (width, height) in [(20, 5), (80, 24), (200, 60)] {
        let screen = screen(&console, width, height);
        assert!(!screen.chars().any(|c| c.is_control() && c != '\n'), "{screen:?}");
        assert!(!screen.contains('\u{202e}'));
    }
}

#[test]
fn the_same_model_makes_the_same_picture() {
    let console = playing();
    assert_eq!(screen(&console, 120, 40), screen(&console, 120, 40));
}

#[test]
fn a_row_out_of_order_is_counted_and_shown() {
    let mut console = playing();
    console.repeat_last_frame();
    assert!(screen(&console, 200, 60).contains("? 1 rows left out"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_view_panics_at_any_size(
        width in 1_u16..=250, height in 1_u16..=80,
        macros in "(t|\\?|j|h|H|z|Z|<enter>|<pgdn>|<home>| ){0,8}", stage in 0_usize..4,
    ) {
        let mut console = match stage {
            0 => preparing(),
            1 => fixture::hostile(),
            _ => playing(),
        };
        console.keys(&macros);
        screen(&console, width, height);
        if stage == 3 {
            console.fail();
            screen(&console, width, height);
        }
    }
}
