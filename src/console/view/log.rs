//! The sequence of events, the newest first, with a filter.
//!
//! ```text
//! ── log  filter client:P1  12 of 48 lines  today 7 incidents: 2 of priority 1, 5 of priority 2 ──
//!  10:41:00 ↳ P3 effect, joined #7 at +180 s
//! ▸10:38:00 ▲ #7 opened, root P1
//! ```

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::pen::{Canvas, columns, part, span};
use super::scene::Scene;
use super::tail;
use crate::console::mouse::Target;
use crate::console::text::clean;
pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let entries = scene.model.entries();
    let all = scene.watched.map_or(0, |watched| watched.log.len());
    let rest = canvas.panel(area, title(scene, entries.len(), all));
    if entries.is_empty() {
        let words = if all == 0 {
            "nothing has happened yet"
        } else {
            "no line fits the filter; esc clears it"
        };
        canvas.put(rest, 1, 0, words, theme.label);
        return;
    }
    let chosen = scene.model.chosen_entry().map(|entry| entry.number);
    let at = entries.iter().position(|entry| Some(entry.number) == chosen).unwrap_or(0);
    let rows = usize::from(rest.height).max(1);
    // The chosen line stands in the middle, unless an end of the list is nearer.
    let first = at.saturating_sub(rows / 2).min(entries.len().saturating_sub(rows));
    for (y, entry) in (0..rest.height).zip(entries.iter().skip(first)) {
        let row = part(rest, y, 1);
        canvas.hit(row, Target::Entry(entry.number));
        canvas.line(row, 1, 0, &tail::line(scene, entry));
        if Some(entry.number) == chosen {
            canvas.put(row, 0, 0, "▸", theme.strong);
            canvas.buffer.set_style(columns(row, 0, 9), theme.cursor);
        }
    }
}

fn title(scene: &Scene, shown: usize, all: usize) -> Vec<Span<'static>> {
    let theme = scene.theme;
    let filter = &scene.model.filter;
    let mut title = vec![span("log", theme.strong)];
    if filter.is_empty() {
        let noun = if all == 1 { "line" } else { "lines" };
        title.push(span(format!("{all} {noun}"), theme.label));
    } else {
        title.push(span(format!("filter {}", clean(filter.text())), theme.cursor));
        title.push(span(format!("{shown} of {all} lines"), theme.label));
    }
    let figures = scene.figures();
    let today = figures.today;
    let noun = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let incidents = noun(today.p1 + today.p2, "incident");
    let (first, second) = (today.p1, today.p2);
    let by = format!("today {incidents}: {first} of priority 1, {second} of priority 2");
    title.push(span(by, theme.text));
    title.push(span(format!("and {} on data quality", noun(today.p3, "line")), theme.label));
    if figures.flood_share > 0.0 {
        let text = format!("in flood {:.1} % of the time", 100.0 * figures.flood_share);
        title.push(span(text, theme.single));
    }
    title
}
