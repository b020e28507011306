//! The last lines of the log, the newest first.
//!
//! ```text
//! ── log ────────────────────────────────────
//!  10:41:00  P3 effect, joined #7 at +180 s
//!  10:38:00  #7 opened, root P1
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::pen::{Canvas, span};
use super::scene::Scene;
use crate::console::text::clean;
use crate::console::theme::State;
use crate::incident::{Event, Incident, What};

pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    if area.height < 2 {
        return;
    }
    let theme = scene.theme;
    let all = scene.watched.map_or(0, |watched| watched.log.len());
    let lines = format!("{all} {}", if all == 1 { "line" } else { "lines" });
    let rest = canvas.panel(area, [span("log", theme.strong), span(lines, theme.label)]);
    self::lines(scene, rest, canvas);
}

/// The lines alone, as many as fit into `area`.
pub(crate) fn lines(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let look = scene.model.look;
    let entries = scene.watched.into_iter().flat_map(|watched| watched.log.iter().rev());
    let entries = entries.filter(|entry| look.is_none_or(|look| entry.time <= look));
    for (y, entry) in (0..area.height).zip(entries) {
        canvas.line(area, 1, y, &self::line(scene, entry));
    }
}

pub(crate) fn line(scene: &Scene, entry: &Event) -> Line<'static> {
    let theme = scene.theme;
    let (glyph, style) = sign(scene, entry);
    let who = entry.who.as_ref().map_or(String::new(), |who| format!("{}: ", clean(who)));
    let why = entry.why.as_ref().map_or(String::new(), |why| format!("  because {}", clean(why)));
    let words = scene.watched.map_or_else(String::new, |w| w.words(entry, scene.names()));
    let text = format!("{who}{}{why}", clean(&words));
    Line::from_iter([
        span(format!("{} ", scene.model.clock.time(entry.time)), theme.label),
        span(format!("{glyph} "), style),
        span(text, if entry.who.is_some() { theme.text } else { style }),
    ])
}

fn sign(scene: &Scene, entry: &Event) -> (&'static str, Style) {
    let theme = scene.theme;
    // What is over no longer asks for attention.
    let incident = entry.incident().and_then(|number| scene.incident(number));
    let root = if incident.is_some_and(Incident::is_open) { theme.root } else { theme.text };
    match &entry.what {
        What::Opened { root: Some(_), .. }
        | What::RootMoved { to: Some(_), .. }
        | What::WentOn { .. }
        | What::Rose { .. } => ("▲", root),
        What::Opened { root: None, .. } | What::RootMoved { to: None, .. } => ("△", root),
        What::FirstOut { disagrees: true, .. } => ("▴", theme.single),
        What::FirstOut { .. } => ("▴", theme.text),
        What::Joined { .. } => (theme.mark(State::Effect).glyph, theme.text),
        What::Left { .. } => ("◆", theme.single),
        What::Quality { .. } | What::SensorFault { .. } | What::Noted { .. } => {
            ("?", theme.missing)
        }
        What::Flood { .. } | What::FlagFlood { .. } => ("!", theme.single),
        What::TableVerdict { .. } => ("?", theme.text),
        What::RootFinal { .. } | What::WasShelved { .. } | What::Stands { .. } => (" ", theme.text),
        What::Closed { .. } | What::QualityOver { .. } | What::FloodOver => (" ", theme.label),
        What::Did(_) => ("*", theme.strong),
    }
}
