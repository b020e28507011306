//! What else can be opened.
//!
//! ```text
//! ── sessions  enter opens ──────────────────────────────────────
//! ▸plant-attack-day   built in   24 h with twenty attacks …
//!  hai-22.04          no data    …
//! ── recordings ─────────────────────────────────────────────────
//!  none yet
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{self, cut, heading, part, put, width, wrapped};
use crate::console::app::Model;
use crate::console::mouse::{Hit, Target};
use crate::console::sessions::Data;
use crate::console::theme::Theme;

/// Draws the list into `area`, around the chosen session.
pub(crate) fn draw(
    model: &Model,
    theme: &Theme,
    area: Rect,
    buffer: &mut Buffer,
    hits: &mut Vec<Hit>,
) {
    let mut rest = area;
    let here = format!("open now: {}", model.name);
    let parts =
        [("sessions", theme.strong), (here.as_str(), theme.text), ("enter opens", theme.label)];
    heading(buffer, pen::take(&mut rest, 1), &parts, theme);
    if model.sessions.is_empty() {
        put(buffer, rest, 1, 0, "looking for sessions …", theme.label);
        return;
    }
    let below = (rest.height >= 8).then(|| pen::take_last(&mut rest, 4));
    let name = model.sessions.iter().map(|s| width(&s.name)).max().unwrap_or(0).clamp(8, 28);
    let rows = usize::from(rest.height).max(1);
    let first = model.session.saturating_sub(rows / 2);
    let first = first.min(model.sessions.len().saturating_sub(rows));
    for (y, (at, session)) in (0..rest.height).zip(model.sessions.iter().enumerate().skip(first)) {
        let row = part(rest, y, 1);
        hits.push(Hit { area: row, target: Target::Session(at) });
        let chosen = at == model.session;
        put(buffer, row, 0, 0, if chosen { "▸" } else { " " }, theme.strong);
        let style = if chosen { theme.cursor } else { theme.text };
        put(buffer, row, 1, 0, &cut(&crate::console::text::clean(&session.name), name), style);
        let (word, style) = match session.data {
            Data::BuiltIn => ("built in", theme.label),
            Data::AtHand => ("data there", theme.text),
            Data::Absent => ("? no data", theme.missing),
            Data::Wrong(_) => ("wrong", theme.failure),
        };
        put(buffer, row, name + 3, 0, word, style);
        let about = match &session.data {
            Data::Wrong(why) => why,
            _ => &session.about,
        };
        let x = name + 15;
        put(buffer, row, x, 0, &cut(about, row.width.saturating_sub(x)), theme.label);
    }
    if let Some(mut below) = below {
        let about = model.sessions.get(model.session).map_or("", |session| session.about.as_str());
        heading(buffer, pen::take(&mut below, 1), &[("chosen", theme.strong)], theme);
        for (y, text) in (0..below.height).zip(wrapped(about, below.width.saturating_sub(2))) {
            put(buffer, below, 1, y, &text, theme.text);
        }
    }
}
