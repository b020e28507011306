//! The server's loss in training, in a panel of the overview.
//!
//! ```text
//! ── server loss  round 118  0.0512 ──────
//!  0.96 ┤█▄▂
//!       ┤███▆▂▂▁
//!  0.05 ┤███████▆▅▃▃▂▂▁▁
//! ```

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::pen::{Canvas, columns, span};
use super::scene::Scene;
use crate::console::widget::curve::{Curve, ends};
use crate::federation::History;
const SCALE: u16 = 9;

pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let label = scene.theme.label;
    let Some(history) = scene.history() else {
        let rest = panel("server loss", span("not known", label), area, canvas);
        canvas.put(rest, 1, 0, "these models were made earlier, and how is not known", label);
        return;
    };
    let losses = server(history);
    let last = losses.last().map_or(String::new(), |loss| format!("  {loss:.4}"));
    let words = span(format!("round {}{last}", history.rounds), label);
    let rest = panel("server loss", words, area, canvas);
    chart(&losses, rest, canvas);
}
pub(crate) fn server(history: &History) -> Vec<f64> {
    history.reached.iter().map(|word| word.server_loss).collect()
}

/// A rule that names a loss, and a few words about it; returns what is left below.
pub(crate) fn panel(name: &str, words: Span, area: Rect, canvas: &mut Canvas) -> Rect {
    canvas.panel(area, [span(name, canvas.theme.strong), words])
}
pub(crate) fn chart(losses: &[f64], area: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    let Some((low, high)) = ends(losses) else {
        canvas.put(area, 1, 0, "no loss yet", theme.label);
        return;
    };
    for y in 0..area.height {
        canvas.put(area, SCALE - 1, y, "┤", theme.frame);
    }
    canvas.right(area, SCALE - 2, 0, &short(high), theme.label);
    if area.height > 1 {
        canvas.right(area, SCALE - 2, area.height - 1, &short(low), theme.label);
    }
    let curve = columns(area, SCALE, area.width.saturating_sub(SCALE + 1));
    Curve { losses, theme }.draw(curve, canvas.buffer);
}

pub(crate) fn short(loss: f64) -> String {
    match loss.abs() {
        0.001..10.0 => format!("{loss:.4}"),
        10.0..99_999.0 => format!("{loss:.1}"),
        0.0 => "0".into(),
        _ => format!("{loss:.0e}"),
    }
}
