//! The day: how far it has come, where it was silent, what happened, which part is on the screen.
//!
//! ```text
//!  00:00 ──────?──◆───────━━▲━━━━┃································ 24:00
//! ```
//!
//! Dots are data to come. Where nobody knows when the data ends, what is to come is left empty, and
//! no time stands at the right end.

use jiff::Timestamp;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Canvas, columns, width};
use super::scene::Scene;
use super::status::state_of;
use crate::console::app::{Model, Stage};
use crate::console::day::Stretch;
use crate::console::mouse::Target;
use crate::history::Column;

/// A labelled attack: a letter, so that it is not taken for an incident where there is no colour. An
/// incident that was found there covers it.
const TRUTH: &str = "T";

pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let (model, theme, measured) = (scene.model, scene.theme, scene.measured);
    let Some(first) = measured.history.first() else { return };
    let ended = matches!(model.stage, Stage::Ended);
    let stretch = model.day.stretch(first, scene.newest, ended);
    let (start, end) = (stretch.start, stretch.end);
    let (left, right) = labels(model, &stretch);
    let from = canvas.put(area, 1, 0, &left, theme.label) + 1;
    let to = area.width.saturating_sub(width(&right) + 2);
    canvas.put(area, to + 1, 0, &right, theme.label);
    let cells = to.saturating_sub(from);
    if cells == 0 {
        return;
    }
    canvas.hit(columns(area, from, cells), Target::Seek { start, end });
    let length = end.duration_since(start);
    let edge = |cell: u16| {
        start + length.checked_mul(i32::from(cell)).map_or(length, |l| l / i32::from(cells))
    };
    // Views differ in their columns; about two thirds of the screen are time in all of them.
    let shown = scene.axis(0, area.width - area.width / 3).ends();
    let place = |time: Timestamp| {
        let share = time.duration_since(start).as_secs_f64() / length.as_secs_f64();
        ((share * f64::from(cells)) as i64).clamp(0, i64::from(cells) - 1) as u16
    };
    for cell in 0..cells {
        let (from_time, until) = (edge(cell), edge(cell + 1));
        let on_screen = from_time < shown.1 && until > shown.0;
        let (mut glyph, mut style) = match measured.history.column(from_time, until) {
            Column::Outside if from_time > scene.newest && !stretch.end_is_known => {
                (" ", theme.frame)
            }
            // The engine begins where the session says: before that there is nothing to come.
            Column::Outside if until <= first => (" ", theme.frame),
            Column::Outside if ended => (" ", theme.frame),
            Column::Outside => ("·", theme.frame),
            Column::Gap => ("?", theme.missing),
            Column::Rows { .. } if on_screen => ("━", theme.text),
            Column::Rows { .. } => ("─", theme.frame),
        };
        if model.truth_shown && measured.truth.between(from_time, until).next().is_some() {
            (glyph, style) = (TRUTH, theme.truth);
        }
        canvas.put(area, from + cell, 0, glyph, style);
    }
    for (time, glyph, style) in marks(scene) {
        canvas.put(area, from + place(time), 0, glyph, style);
    }
    canvas.put(area, from + place(scene.newest), 0, "┃", theme.strong);
    if let Some(look) = model.look {
        canvas.put(area, from + place(look), 0, "┃", theme.cursor);
    }
}

/// Incidents, marks and the ends of a loop; what comes later lies on top.
fn marks(scene: &Scene) -> Vec<(Timestamp, &'static str, Style)> {
    let theme = scene.theme;
    let mut marks = Vec::new();
    let incidents = scene.watched.map_or(&[][..], |watched| &watched.incidents);
    // Those that want an answer last, so that nothing hides them.
    let mut order: Vec<_> = incidents.iter().collect();
    order.sort_by_key(|incident| (incident.is_listed(), incident.number));
    for incident in order {
        let mark = theme.mark(state_of(incident));
        let style = if incident.is_listed() { mark.style } else { theme.text };
        marks.push((incident.onset, mark.glyph, style));
    }
    if let Some(tuning) = &scene.model.tuning {
        marks.extend(tuning.gone_alarms().map(|(time, _)| (time, "▿", theme.ghost)));
        marks.extend(tuning.new_alarms().map(|(time, _)| (time, "▵", theme.ghost)));
    }
    marks.extend(scene.model.marks.values().map(|time| (*time, "'", theme.strong)));
    let ends = scene.model.between.iter().zip(["[", "]"]);
    marks.extend(ends.filter_map(|(time, glyph)| Some(((*time)?, glyph, theme.strong))));
    marks
}

/// The hours at both ends, the days when there are several, seconds where it is a matter of minutes.
fn labels(model: &Model, shown: &Stretch) -> (String, String) {
    let (clock, length) = (model.clock, shown.end.duration_since(shown.start));
    let label = |time: Timestamp| match length.as_secs() {
        86_401.. => clock.day(time),
        3601.. => clock.minute(time),
        _ => clock.time(time),
    };
    let end = match label(shown.end) {
        _ if !shown.end_is_known => "…".to_owned(),
        midnight if midnight == "00:00" => "24:00".to_owned(),
        end => end,
    };
    (label(shown.start), end)
}
