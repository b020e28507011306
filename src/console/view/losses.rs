//! The server's loss in training, in a panel of the overview.
//!
//! ```text
//! ── server loss  mean 0.9613 → 0.0512  noise of ε 6 in it ──
//!  0.96 ┤⢣⡀
//!       ┤⠀⠑⠢⠤⣀⣀
//!  0.05 ┤⠀⠀⠀⠀⠀⠉⠑⠢⠤
//! ```
//!
//! Every loss is dim, the running mean bright. Where x_a was sent with noise, the heading says so: a
//! loss that is measured against noised states cannot fall below their noise.

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::pen::{Canvas, columns, fitting, span};
use super::scene::Scene;
use crate::console::widget::curve::{Curve, ends};
use crate::federation::History;
use crate::privacy::{Spend, What};

const SCALE: u16 = 9;

pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let label = scene.theme.label;
    let Some(history) = scene.history() else {
        let rest = panel("server loss", span("not known", label), area, canvas);
        canvas.put(rest, 1, 0, "how these models were trained is not kept", label);
        return;
    };
    let losses = server(history);
    let course = course(&losses).map_or_else(String::new, |course| format!("mean {course}"));
    let noise = target_noise(scene).map_or_else(String::new, |e| format!("noise of ε {e} in it"));
    let rounds = format!("{} rounds", history.rounds);
    // A rule on both sides of the words.
    let room = area.width.saturating_sub(18);
    let words = fitting(
        [format!("{course}  {noise}  {rounds}"), format!("{course}  {noise}"), course],
        room,
    );
    let words = words.unwrap_or_default();
    let rest = panel("server loss", span(words.trim_end().to_owned(), label), area, canvas);
    chart(&losses, rest, canvas);
}

/// ε of the noise on x_a, which the server's loss is measured against; none where it was sent without.
pub(crate) fn target_noise(scene: &Scene) -> Option<f64> {
    scene.model.subject.privacy.epsilon_a.filter(|_| is_noised(scene, What::AugmentedState))
}

/// The same of the gradients that clients learned from.
pub(crate) fn gradient_noise(scene: &Scene) -> Option<f64> {
    scene.model.subject.privacy.epsilon_g.filter(|_| is_noised(scene, What::Gradient))
}

/// Whether the training of these models sent `what` with noise.
fn is_noised(scene: &Scene, what: What) -> bool {
    let prepared = scene.model.prepared.as_ref();
    let sent = prepared.into_iter().flat_map(|prepared| prepared.spent.clients.iter().flatten());
    sent.into_iter().any(|sent| sent.what == what && sent.spend != Spend::Clear)
}

/// From which mean to which: one loss is mostly chance, so the ends are means over a tenth.
pub(crate) fn course(losses: &[f64]) -> Option<String> {
    let tenth = losses.len().div_ceil(10);
    let first = mean(&losses[..tenth])?;
    let last = mean(&losses[losses.len() - tenth..])?;
    Some(format!("{} → {}", short(first), short(last)))
}

pub(crate) fn mean(losses: &[f64]) -> Option<f64> {
    (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64)
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
