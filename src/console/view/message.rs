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

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::losses::{chart, short};
use super::pen::{self, cut, heading, put, width, wrapped};
use crate::console::app::{Model, Stage};
use crate::console::clock::length;
use crate::console::text::{clean, clean_lines};
use crate::console::theme::Theme;
use crate::console::widget::gauge::Share;

/// Draws what is going on into `area`.
pub(crate) fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    match &model.stage {
        Stage::Preparing if area.height >= 8 => preparing(model, theme, area, buffer),
        Stage::Preparing => {
            let doing = model.course.latest.as_ref().map_or(String::new(), |t| clean(&t.doing));
            let heading = format!("preparing {} …", model.name);
            words(&heading, &[doing], theme.strong, theme, area, buffer);
        }
        Stage::Reading | Stage::Playing => {
            let heading = "waiting for the first measurement …";
            words(heading, &[], theme.strong, theme, area, buffer);
        }
        Stage::Ended => {
            words("this stream holds no measurement", &[], theme.strong, theme, area, buffer);
        }
        Stage::Failed(error) => {
            let why = clean_lines(&error.to_string());
            words("FAILED", &why, theme.failure, theme, area, buffer);
        }
    }
}

/// Words in the middle.
fn words(
    heading: &str,
    lines: &[String],
    style: ratatui::style::Style,
    theme: &Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let lines: Vec<String> =
        lines.iter().flat_map(|line| wrapped(line, area.width.saturating_sub(4))).collect();
    let height = 1 + lines.len() as u16;
    let top = area.height.saturating_sub(height) / 2;
    let centred = |text: &str| area.width.saturating_sub(width(text)) / 2;
    let heading = cut(heading, area.width);
    put(buffer, area, centred(&heading), top, &heading, style);
    for (row, line) in lines.iter().enumerate() {
        put(buffer, area, centred(line), top + 1 + row as u16, line, theme.text);
    }
}

/// What is being done, how far it is, how long it will take, and every loss on its way down.
fn preparing(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let course = &model.course;
    let mut rest =
        Rect { x: area.x.saturating_add(1), width: area.width.saturating_sub(2), ..area };
    pen::take(&mut rest, u16::from(area.height >= 20));
    let row = pen::take(&mut rest, 1);
    put(buffer, row, 0, 0, &cut(&format!("preparing {} …", model.name), row.width), theme.strong);
    let Some(training) = &course.latest else {
        let text = "nominal data is being read; a built-in plant is simulated first";
        for (y, text) in (0..rest.height).zip(wrapped(text, rest.width)) {
            put(buffer, rest, 0, y, &text, theme.text);
        }
        return;
    };
    let row = pen::take(&mut rest, 1);
    put(buffer, row, 0, 0, &cut(&clean(&training.doing), row.width), theme.text);
    let row = pen::take(&mut rest, 1);
    if let Some((done, all)) = training.steps.filter(|(_, all)| *all > 0) {
        let bar = Rect { width: row.width.min(40), ..row };
        Share { spent: done as f64 / all as f64, next: 0.0, theme }.draw(bar, buffer);
        let left = training.left().map_or(String::new(), |left| {
            let left = jiff::SignedDuration::try_from(left).unwrap_or_default();
            format!("   {} left", length(left))
        });
        let bytes = training
            .bytes
            .map_or(String::new(), |bytes| format!("   {:.1} MB exchanged", bytes as f64 / 1e6));
        let text = format!("{done} of {all}{left}{bytes}");
        put(buffer, row, bar.width + 2, 0, &text, theme.text);
    }
    let Some(learned) = &course.learned else { return };
    let curves = learned.losses.iter().zip(&course.curves);
    let fit = usize::from(rest.height / 3).clamp(1, learned.losses.len().max(1));
    let height = (rest.height / fit as u16).min(10);
    for ((name, loss), curve) in curves.take(fit) {
        let mut rows = pen::take(&mut rest, height);
        let name = format!("{} loss", clean(name));
        let last = short(*loss);
        let parts = [(name.as_str(), theme.strong), (last.as_str(), theme.text)];
        heading(buffer, pen::take(&mut rows, 1), &parts, theme);
        chart(curve, rows, theme, buffer);
    }
}
