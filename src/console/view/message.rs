//! The screen while there is nothing measured to show: what is going on, and how training goes.
//!
//! ```text
//!                     preparing plant-attack-day …
//!   clients and server learn from each other, in rounds
//!   ██████████████████··················  4120 of 9216   12s left
//! ── server loss  0.0512 ─────────────────────────────
//!  0.96 ┤█▄▂
//!  0.05 ┤█████▆▅▃▃▂▂▁▁
//! ```

use ratatui::layout::{Margin, Rect};
use ratatui::style::Style;
use ratatui::text::Line;

use super::losses::{chart, panel, short};
use super::pen::{self, Canvas, cut, span, wrapped};
use crate::console::app::{Model, Stage};
use crate::console::clock::length;
use crate::console::glyph::NONE;
use crate::console::text::{clean, clean_lines};
use crate::engine::progress::Training;
const BAR: usize = 40;

pub(crate) fn draw(model: &Model, area: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    match &model.stage {
        Stage::Preparing if area.height >= 8 => preparing(model, area, canvas),
        Stage::Preparing => {
            let doing = model.course.latest.as_ref().map_or(String::new(), |t| clean(&t.doing));
            centred(&format!("preparing {} …", model.name), &[doing], theme.strong, area, canvas);
        }
        Stage::Reading | Stage::Playing => {
            centred("waiting for the first measurement …", &[], theme.strong, area, canvas);
        }
        Stage::Ended => {
            centred("this stream holds no measurement", &[], theme.strong, area, canvas);
        }
        Stage::Failed(error) => {
            let why = clean_lines(&error.to_string());
            centred("FAILED", &why, theme.failure, area, canvas);
        }
    }
}
fn centred(title: &str, lines: &[String], style: Style, area: Rect, canvas: &mut Canvas) {
    let room = area.width.saturating_sub(4);
    let lines = lines.iter().flat_map(|line| wrapped(line, room)).map(Line::from);
    let title = Line::styled(cut(title, area.width), style);
    let text: Vec<Line> = [title].into_iter().chain(lines).collect();
    let top = area.height.saturating_sub(text.len() as u16) / 2;
    for (y, line) in (top..).zip(&text) {
        canvas.line(area, area.width.saturating_sub(line.width() as u16) / 2, y, line);
    }
}

/// What is being done, how far it is, how long it will take, and every loss on its way down.
fn preparing(model: &Model, area: Rect, canvas: &mut Canvas) {
    let (theme, course) = (canvas.theme, &model.course);
    let mut rest = area.inner(Margin::new(1, 0));
    pen::take(&mut rest, u16::from(area.height >= 20));
    let title = format!("preparing {} …", model.name);
    canvas.cut(pen::take(&mut rest, 1), 0, 0, &title, theme.strong);
    let Some(training) = &course.latest else {
        let text = "nominal data is being read; a built-in plant is simulated first";
        for (y, text) in (0..rest.height).zip(wrapped(text, rest.width)) {
            canvas.put(rest, 0, y, &text, theme.text);
        }
        return;
    };
    for text in wrapped(&clean(&training.doing), rest.width) {
        canvas.put(pen::take(&mut rest, 1), 0, 0, &text, theme.text);
    }
    progress(training, pen::take(&mut rest, 1), canvas);
    let Some(learned) = &course.learned else { return };
    let curves = learned.losses.iter().zip(&course.curves);
    let fit = usize::from(rest.height / 3).clamp(1, learned.losses.len().max(1));
    let height = (rest.height / fit as u16).min(10);
    for ((name, loss), curve) in curves.take(fit) {
        let name = format!("{} loss", clean(name));
        let last = span(short(*loss), theme.text);
        let rows = panel(&name, last, pen::take(&mut rest, height), canvas);
        chart(curve, rows, canvas);
    }
}

/// A bar, steps done, time left and bytes exchanged.
fn progress(training: &Training, row: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    let Some((done, all)) = training.steps.filter(|(_, all)| *all > 0) else { return };
    let cells = BAR.min(row.width.into());
    let filled = (done as f64 / all as f64 * cells as f64).round() as usize;
    let left = training.left().map_or(String::new(), |left| {
        let left = jiff::SignedDuration::try_from(left).unwrap_or_default();
        format!("   {} left", length(left))
    });
    let bytes = training
        .bytes
        .map_or(String::new(), |bytes| format!("   {:.1} MB exchanged", bytes as f64 / 1e6));
    let x = canvas.put(row, 0, 0, &"█".repeat(filled.min(cells)), theme.trend);
    canvas.put(row, x, 0, &NONE.repeat(cells.saturating_sub(filled)), theme.frame);
    canvas.put(row, cells as u16 + 2, 0, &format!("{done} of {all}{left}{bytes}"), theme.text);
}
