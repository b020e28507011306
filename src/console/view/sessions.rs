//! What else can be opened.
//!
//! ```text
//! ── sessions  enter opens ──────────────────────────────────────
//! ▸plant-attack-day   built in   24 h with twenty attacks …
//!  hai-22.04          no data    …
//! ── recordings ─────────────────────────────────────────────────
//!  none yet
//! ```

use ratatui::layout::Rect;

use super::pen::{self, Canvas, cut, part, span, width};
use crate::console::app::Model;
use crate::console::mouse::Target;
use crate::console::sessions::Data;
use crate::console::text::clean;

pub(crate) fn draw(model: &Model, area: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    let here = format!("open now: {}", model.name);
    let title = [("sessions", theme.strong), (&here, theme.text), ("enter opens", theme.label)];
    let mut rest = canvas.panel(area, title.map(|(text, style)| span(text, style)));
    if model.sessions.is_empty() {
        canvas.put(rest, 1, 0, "looking for sessions …", theme.label);
        return;
    }
    let below = (rest.height >= 8).then(|| pen::take_last(&mut rest, 4));
    let name = model.sessions.iter().map(|s| width(&s.name)).max().unwrap_or(0).clamp(8, 28);
    let rows = usize::from(rest.height).max(1);
    let first = model.session.saturating_sub(rows / 2);
    let first = first.min(model.sessions.len().saturating_sub(rows));
    for (y, (at, session)) in (0..rest.height).zip(model.sessions.iter().enumerate().skip(first)) {
        let row = part(rest, y, 1);
        canvas.hit(row, Target::Session(at));
        let chosen = at == model.session;
        canvas.put(row, 0, 0, if chosen { "▸" } else { " " }, theme.strong);
        let style = if chosen { theme.cursor } else { theme.text };
        canvas.put(row, 1, 0, &cut(&clean(&session.name), name), style);
        let (word, style) = match session.data {
            Data::BuiltIn => ("built in", theme.label),
            Data::Live => ("live", theme.text),
            Data::AtHand => ("data there", theme.text),
            Data::Absent => ("? no data", theme.missing),
            Data::Wrong(_) => ("wrong", theme.failure),
        };
        canvas.put(row, name + 3, 0, word, style);
        let about = if let Data::Wrong(why) = &session.data { why } else { &session.about };
        let x = name + 15;
        canvas.cut(row, x, 0, about, theme.label);
    }
    if let Some(below) = below {
        let about = model.sessions.get(model.session).map_or("", |session| session.about.as_str());
        let below = canvas.panel(below, [span("chosen", theme.strong)]);
        canvas.paragraph(below, about, theme.text);
    }
}
