//! The sequence of events, the newest first, with a filter.
//!
//! ```text
//! ── log  filter client:P1  12 of 48 lines  today P1 2  P2 5  P3 1 ──
//!  10:41:00 ↳ P3 effect, joined #7 at +180 s
//! ▸10:38:00 ▲ #7 opened, root P1
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::incidents::figures;
use super::pen::{self, heading, line, part, put};
use super::scene::Scene;
use super::tail;
use crate::console::mouse::{Hit, Target};

/// Draws the log into `area`, around the chosen line.
pub(crate) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let theme = scene.theme;
    let mut rest = area;
    let entries = scene.model.entries();
    let all = scene.watched.map_or(0, |watched| watched.log.len());
    title(scene, entries.len(), all, pen::take(&mut rest, 1), buffer);
    if entries.is_empty() {
        let words = if all == 0 {
            "nothing has happened yet"
        } else {
            "no line fits the filter; esc clears it"
        };
        put(buffer, rest, 1, 0, words, theme.label);
        return;
    }
    let chosen = scene.model.chosen_entry().map(|entry| entry.number);
    let at = entries.iter().position(|entry| Some(entry.number) == chosen).unwrap_or(0);
    let rows = usize::from(rest.height).max(1);
    // The chosen line stands in the middle, unless an end of the list is nearer.
    let first = at.saturating_sub(rows / 2).min(entries.len().saturating_sub(rows));
    for (y, entry) in (0..rest.height).zip(entries.iter().skip(first)) {
        let row = part(rest, y, 1);
        hits.push(Hit { area: row, target: Target::Entry(entry.number) });
        line(buffer, row, 1, 0, &tail::pieces(scene, entry));
        if Some(entry.number) == chosen {
            put(buffer, row, 0, 0, "▸", theme.strong);
            buffer.set_style(Rect { width: 9.min(row.width), ..row }, theme.cursor);
        }
    }
}

fn title(scene: &Scene, shown: usize, all: usize, area: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    let filter = &scene.model.filter;
    let mut parts: Vec<(String, Style)> = vec![("log".into(), theme.strong)];
    if filter.is_empty() {
        let noun = if all == 1 { "line" } else { "lines" };
        parts.push((format!("{all} {noun}"), theme.label));
    } else {
        parts
            .push((format!("filter {}", crate::console::text::clean(filter.text())), theme.cursor));
        parts.push((format!("{shown} of {all} lines"), theme.label));
    }
    let figures = figures(scene);
    let today = figures.today;
    let total = (today.p1 + today.p2 + today.p3).max(1);
    let share = |n: usize| (200 * n + total) / (2 * total);
    parts.push((
        format!(
            "today priority 1: {} ({} %)  2: {} ({} %)  3: {} ({} %)",
            today.p1,
            share(today.p1),
            today.p2,
            share(today.p2),
            today.p3,
            share(today.p3)
        ),
        theme.text,
    ));
    if figures.flood_share > 0.0 {
        parts.push((
            format!("in flood {:.1} % of the time", 100.0 * figures.flood_share),
            theme.single,
        ));
    }
    let parts: Vec<(&str, Style)> = parts.iter().map(|(t, s)| (t.as_str(), *s)).collect();
    heading(buffer, area, &parts, theme);
}
