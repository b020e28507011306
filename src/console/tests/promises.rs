//! What the screen promises: where colour is, what words stand where, which pictures are curves.

use std::sync::Arc;

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::plant::{ATTACK, Desk};
use super::screen;
use crate::console::glyph::BLOCKS;
use crate::console::theme::{Depth, Terminal, Theme, ThemeChoice};
use crate::console::view::view;
use crate::engine::prepare::Prepared;
use crate::privacy::{Provenance, Spend, Trained, What};

/// A desk some steps after its first incident opened.
fn alarmed() -> Desk {
    let mut desk = Desk::attacked(1);
    for _ in 0..ATTACK {
        let has_any = desk.console.model.figures().is_some_and(|figures| figures.open > 0);
        if has_any {
            desk.steps(12);
            return desk;
        }
        desk.steps(1);
    }
    panic!("the attack is never found");
}

#[test]
fn a_trend_is_in_colour_only_while_nobody_has_acknowledged_its_root() {
    let mut desk = alarmed();
    let terminal = Terminal { depth: Depth::Bits24, light: Some(false), ascii: false };
    desk.console.model.theme = Theme::new(ThemeChoice::Dark, terminal);
    let coloured = |desk: &Desk| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 40));
        view(&desk.console.model, &mut buffer);
        let over = desk.console.model.theme.over.fg;
        let is_bar = |symbol: &str| BLOCKS.contains(&symbol);
        buffer.content.iter().filter(|c| is_bar(c.symbol()) && Some(c.fg) == over).count()
    };
    assert!(coloured(&desk) > 0, "somebody has to look");
    desk.keys("a");
    assert_eq!(coloured(&desk), 0, "{}", desk.said());
}

#[test]
fn a_lane_says_what_is_the_matter_since_when_and_what_each_trend_is() {
    let desk = alarmed();
    let picture = screen(&desk.console, 120, 40);
    for words in ["ROOT #1", "not acknowledged", "since ", "evidence", "own model", "with others"] {
        assert!(picture.contains(words), "{words}:\n{picture}");
    }
}

#[test]
fn the_first_line_keeps_its_words_while_nothing_changes() {
    let mut desk = Desk::attacked(20);
    let mut lines = std::collections::BTreeSet::new();
    for _ in 0..20 {
        desk.steps(1);
        let picture = screen(&desk.console, 120, 40);
        let line = picture.lines().next().unwrap_or_default();
        lines.insert(line.replace(|c: char| c.is_ascii_digit(), "0"));
    }
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn the_last_lines_of_the_log_and_what_is_spent_are_on_a_screen_of_80_by_24() {
    let desk = alarmed();
    let picture = screen(&desk.console, 80, 24);
    assert!(picture.contains("ε spent unprotected"), "{picture}");
    let log = ["opened, root", "joined #1", "root P1 confirmed", "alarmed first"];
    assert!(log.iter().any(|words| picture.contains(words)), "{picture}");
}

#[test]
fn losses_and_sensors_are_curves_of_dots() {
    let mut desk = alarmed();
    let has_dots = |text: &str| text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
    desk.keys("5");
    assert!(has_dots(&screen(&desk.console, 120, 40)), "the losses");
    desk.keys("2");
    assert!(has_dots(&screen(&desk.console, 250, 80)), "the sensors");
}

#[test]
fn a_loss_says_what_noise_is_in_it_and_a_bare_one_says_nothing_of_noise() {
    let mut desk = alarmed();
    let shown = |desk: &mut Desk| {
        let overview = screen(&desk.keys("1").console, 200, 60);
        [overview, screen(&desk.keys("5").console, 120, 40)]
    };
    for picture in shown(&mut desk) {
        assert!(picture.contains("mean "), "{picture}");
        let noised =
            ["noise of ε 6 in it", "with noise of ε"].iter().any(|words| picture.contains(words));
        assert!(!noised, "{picture}");
    }
    let model = &mut desk.console.model;
    let mut prepared = Prepared::clone(model.prepared.as_ref().expect("models"));
    let trained = |what| Trained {
        training: String::new(),
        what,
        spend: Spend::Gaussian { sensitivity: 1.0, sigma: 1.0 },
        count: 1,
        samples: 1,
        rounds: 1,
        until: Timestamp::UNIX_EPOCH,
        randomness: Provenance::Seeded,
    };
    prepared.spent.clients = vec![[What::AugmentedState, What::Gradient].map(trained).to_vec()];
    model.prepared = Some(Arc::new(prepared));
    (model.subject.privacy.epsilon_a, model.subject.privacy.epsilon_g) = (Some(6.0), Some(3.0));
    let [overview, training] = shown(&mut desk);
    let heading = overview.lines().find(|line| line.contains("server loss")).unwrap_or_default();
    assert!(heading.contains("noise of ε 6 in it"), "{overview}");
    assert!(training.contains("x_a with noise of ε 6"), "{training}");
    assert!(training.contains("Gradients come back with noise of ε 3."), "{training}");
}

#[test]
fn on_a_large_screen_views_with_trends_reach_its_lower_end() {
    let mut desk = alarmed();
    for (name, key) in [("influence", "3"), ("privacy", "6")] {
        desk.keys(key);
        for (width, height) in [(200, 60), (250, 80)] {
            let picture = screen(&desk.console, width, height);
            let rows = picture.lines().rev().skip(1);
            let blank = |row: &&str| row.trim_matches([' ', '│']).is_empty();
            let below = rows.take_while(blank).count();
            assert!(below <= usize::from(height) / 5, "{name}: {below} rows below\n{picture}");
        }
    }
}
