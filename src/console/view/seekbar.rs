//! The day: how far it has come, where it was silent, which part of it is on the screen.
//!
//! ```text
//!  00:00 ──────?──────────━━━━━━━┃································ 24:00
//! ```

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{put, width};
use super::scene::Scene;
use crate::console::app::Model;
use crate::console::mouse::{Hit, Target};
use crate::history::Column;

/// Draws the bar into the first row of `area`.
pub fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let (model, theme, measured) = (scene.model, scene.theme, scene.measured);
    let Some(first) = measured.history.first() else { return };
    let (start, end) = model.day.ends(model.clock, first, scene.newest);
    let (left, right) = labels(model, start, end);
    let from = put(buffer, area, 1, 0, &left, theme.label) + 1;
    let to = area.width.saturating_sub(width(&right) + 2);
    put(buffer, area, to + 1, 0, &right, theme.label);
    let cells = to.saturating_sub(from);
    if cells == 0 {
        return;
    }
    let bar = Rect { x: area.x.saturating_add(from), width: cells, ..area };
    hits.push(Hit { area: bar.intersection(area), target: Target::Seek { start, end } });
    let length = end.duration_since(start);
    let edge = |cell: u16| {
        start + length.checked_mul(i32::from(cell)).map_or(length, |l| l / i32::from(cells))
    };
    let shown = (scene.window.start(0), scene.window.start(i64::from(scene.columns())));
    for cell in 0..cells {
        let (from_time, until) = (edge(cell), edge(cell + 1));
        let (mut glyph, mut style) = match measured.history.column(from_time, until) {
            Column::Outside => ("·", theme.frame),
            Column::Gap => ("?", theme.missing),
            Column::Rows { .. } if from_time < shown.1 && until > shown.0 => ("━", theme.text),
            Column::Rows { .. } => ("─", theme.frame),
        };
        if model.truth_shown && measured.truth.between(from_time, until).next().is_some() {
            (glyph, style) = ("▲", theme.truth);
        }
        let holds = |time: Timestamp| from_time <= time && time < until;
        if holds(scene.newest) || (cell + 1 == cells && scene.newest >= until) {
            (glyph, style) = ("┃", theme.strong);
        }
        if model.look.is_some_and(holds) {
            (glyph, style) = ("┃", theme.cursor);
        }
        put(buffer, area, from + cell, 0, glyph, style);
    }
}

/// The hours at both ends, or the days when there are several.
fn labels(model: &Model, start: Timestamp, end: Timestamp) -> (String, String) {
    let clock = model.clock;
    if end.duration_since(start).as_hours() > 24 {
        return (clock.day(start), clock.day(end));
    }
    let end = match clock.minute(end) {
        midnight if midnight == "00:00" => "24:00".to_owned(),
        minute => minute,
    };
    (clock.minute(start), end)
}
