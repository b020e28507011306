//! The server's loss in training, in a panel of the overview.
//!
//! ```text
//! ── server loss  round 118  0.0512 ──────
//!  0.96 ┤█▄▂
//!       ┤███▆▂▂▁
//!  0.05 ┤███████▆▅▃▃▂▂▁▁
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{self, heading, put, put_right};
use super::scene::Scene;
use crate::console::theme::Theme;
use crate::console::widget::curve::{Curve, ends};
use crate::federation::History;

/// Cells of the scale before a curve.
const SCALE: u16 = 9;

/// Draws the panel into `area`.
pub(crate) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    let mut rest = area;
    let history = scene.history();
    let said = history.map_or_else(|| "not known".to_owned(), told);
    let parts = [("server loss", theme.strong), (said.as_str(), theme.label)];
    heading(buffer, pen::take(&mut rest, 1), &parts, theme);
    if let Some(history) = history {
        let losses: Vec<f64> = history.reached.iter().map(|word| word.server_loss).collect();
        chart(&losses, rest, theme, buffer);
    } else {
        let words = "these models were made earlier, and how is not known";
        put(buffer, rest, 1, 0, words, theme.label);
    }
}

/// Rounds and the last loss.
fn told(history: &History) -> String {
    let last = history.reached.last().map_or(String::new(), |l| format!("  {:.4}", l.server_loss));
    format!("round {}{last}", history.rounds)
}

/// Draws losses with the ends of their scale.
pub(crate) fn chart(losses: &[f64], area: Rect, theme: &Theme, buffer: &mut Buffer) {
    let Some((low, high)) = ends(losses) else {
        put(buffer, area, 1, 0, "no loss yet", theme.label);
        return;
    };
    for y in 0..area.height {
        put(buffer, area, SCALE - 1, y, "┤", theme.frame);
    }
    put_right(buffer, area, SCALE - 2, 0, &short(high), theme.label);
    if area.height > 1 {
        put_right(buffer, area, SCALE - 2, area.height - 1, &short(low), theme.label);
    }
    let curve = Rect {
        x: area.x.saturating_add(SCALE),
        width: area.width.saturating_sub(SCALE + 1),
        ..area
    };
    Curve { losses, ends: None, theme }.draw(curve.intersection(area), buffer);
}

/// A loss in six cells.
pub(crate) fn short(loss: f64) -> String {
    match loss.abs() {
        0.001..10.0 => format!("{loss:.4}"),
        10.0..99_999.0 => format!("{loss:.1}"),
        0.0 => "0".into(),
        _ => format!("{loss:.0e}"),
    }
}
