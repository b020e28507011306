//! The labels of an axis of time.
//!
//! ```text
//!  30 s a column           10:15     10:20     10:25     10:30
//! ```
//!
//! Where flags of the past are shown as the threshold that stands now has them, and not as they were
//! sent, it is said here: `30 s/col, Z re-judged`.

use std::ops::Range;

use jiff::SignedDuration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{put, width};
use super::scene::{Axis, Scene};
use crate::console::clock::round_length;
use crate::console::watched::Watched;

/// Seconds between two labels, and the cells that a label needs with room around it.
const TICKS: [(i64, i64); 13] = [
    (10, 11),
    (30, 11),
    (60, 9),
    (300, 9),
    (600, 9),
    (1800, 9),
    (3600, 9),
    (10_800, 9),
    (21_600, 9),
    (43_200, 9),
    (86_400, 9),
    (604_800, 9),
    (2_592_000, 9),
];

/// Draws the labels into the first row of `area`, and the length of a column before them.
pub(crate) fn draw(scene: &Scene, axis: &Axis, area: Rect, buffer: &mut Buffer) {
    let margin = Rect { width: axis.margin.min(area.width), ..area };
    let column = round_length(axis.window.column_s());
    let words = match scene.watched.and_then(Watched::judged_until) {
        Some(until) if until >= axis.window.start(0) => {
            let time = scene.model.clock.time(until);
            vec![
                format!("{column}/col, Z re-judged to {time}"),
                format!("{column}/col, Z re-judged"),
                "Z re-judged".to_owned(),
            ]
        }
        _ => vec![format!("{column} a column"), format!("{column}/col"), column],
    };
    if let Some(words) = words.into_iter().find(|words| width(words) + 1 < margin.width) {
        put(buffer, margin, 1, 0, &words, scene.theme.label);
    }
    labels(scene, axis, area, buffer);
}

/// Draws the labels alone.
pub(crate) fn labels(scene: &Scene, axis: &Axis, area: Rect, buffer: &mut Buffer) {
    labels_beside(scene, axis, &(0..0), area, buffer);
}

/// The same without those that would reach into the `taken` columns.
pub(crate) fn labels_beside(
    scene: &Scene,
    axis: &Axis,
    taken: &Range<u16>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (theme, window, clock) = (scene.theme, axis.window, scene.model.clock);
    let Some((tick, room)) =
        TICKS.into_iter().find(|(tick, room)| tick / window.column_s() >= *room)
    else {
        return;
    };
    for column in 0..axis.columns {
        // Where clock and columns are not in step, a tick may fall inside a column.
        let start = window.start(i64::from(column));
        let until_tick = (-clock.civil_second(start)).rem_euclid(tick);
        let fits = i64::from(axis.columns - column) >= room - 4;
        if until_tick >= window.column_s() || !fits {
            continue;
        }
        let at = start.checked_add(SignedDuration::from_secs(until_tick)).unwrap_or(start);
        let label = match tick {
            ..60 => clock.time(at),
            60..86_400 => clock.minute(at),
            _ => clock.day(at),
        };
        if column + width(&label) < taken.start || column >= taken.end || taken.is_empty() {
            put(buffer, area, axis.margin + column, 0, &label, theme.label);
        }
    }
}
