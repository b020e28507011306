//! Every screen at every size, in every theme: whatever screens there are.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::plant::Desk;
use super::views::ALL_SCREENS;
use crate::console::app::{Model, SCREENS};
use crate::console::theme::{Depth, Terminal, Theme, ThemeChoice};
use crate::console::view::view;

/// Steps to a morning with one incident over and another open.
const DURING: usize = 1082;

fn draw(model: &Model, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    view(model, &mut buffer);
    buffer
}

#[test]
fn every_screen_has_a_picture_in_the_tests() {
    for screen in SCREENS {
        let name = screen.row().name;
        assert!(ALL_SCREENS.iter().any(|(known, _)| *known == name), "{name} is not drawn");
    }
}

#[test]
fn no_screen_panics_at_any_size_and_ascii_is_ascii() {
    let mut desk = Desk::after(DURING);
    for screen in SCREENS {
        desk.console.model.choose_screen(screen);
        for width in 1..=24 {
            for height in 1..=6 {
                draw(&desk.console.model, width, height);
            }
        }
    }
    let model = RefCell::new(&mut desk.console.model);
    let mut runner = TestRunner::new(Config::with_cases(400));
    let sizes = (1_u16..=250, 1_u16..=80);
    let looks = (prop::sample::select(ThemeChoice::ALL.to_vec()), any::<bool>());
    let screens = (prop::sample::select(SCREENS.to_vec()), any::<bool>(), 0_usize..40);
    let outcome = runner.run(
        &(sizes, looks, screens),
        |((width, height), (choice, ascii), (screen, truth, scroll))| {
            let mut model = model.borrow_mut();
            model.choose_screen(screen);
            model.scroll = scroll;
            model.truth_shown = truth;
            let terminal = Terminal { depth: Depth::Bits24, light: None, ascii };
            model.theme = Theme::new(choice, terminal);
            let buffer = draw(&model, width, height);
            let wild = |symbol: &str| symbol.chars().any(char::is_control);
            prop_assert!(!buffer.content.iter().any(|cell| wild(cell.symbol())));
            prop_assert!(!ascii || buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
            Ok(())
        },
    );
    outcome.expect("every picture can be drawn");
}
