//! The labels of an axis of time.
//!
//! ```text
//!  30 s a column           10:15     10:20     10:25     10:30
//! ```
//!
//! `30 s/col, Z re-judged` says that flags of the past are shown by the threshold that stands now, and
//! not as they were sent.

use std::ops::Range;

use jiff::SignedDuration;
use ratatui::layout::Rect;

use super::pen::{Canvas, columns, width};
use super::scene::{Axis, Scene};
use crate::console::clock::round_length;
use crate::console::watched::Watched;

/// Seconds between two labels.
const TICKS: [i64; 13] =
    [10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000];

/// The cells that a label needs with room around it.
fn room(tick: i64) -> i64 {
    if tick < 60 { 11 } else { 9 }
}

/// Draws the labels into the first row of `area`, and the length of a column before them.
pub(crate) fn draw(scene: &Scene, axis: &Axis, area: Rect, canvas: &mut Canvas) {
    let margin = columns(area, 0, axis.margin);
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
        canvas.put(margin, 1, 0, &words, scene.theme.label);
    }
    labels(scene, axis, &(0..0), area, canvas);
}

/// Draws the labels alone, without those that would reach into the `taken` columns.
pub(crate) fn labels(
    scene: &Scene,
    axis: &Axis,
    taken: &Range<u16>,
    area: Rect,
    canvas: &mut Canvas,
) {
    let (theme, window, clock) = (scene.theme, axis.window, scene.model.clock);
    let fits = |tick: &i64| tick / window.column_s() >= room(*tick);
    let Some(tick) = TICKS.into_iter().find(fits) else { return };
    for column in 0..axis.columns {
        // Where clock and columns are not in step, a tick may fall inside a column.
        let start = window.start(i64::from(column));
        let until_tick = (-clock.civil_second(start)).rem_euclid(tick);
        let fits = i64::from(axis.columns - column) >= room(tick) - 4;
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
            canvas.put(area, axis.margin + column, 0, &label, theme.label);
        }
    }
}
