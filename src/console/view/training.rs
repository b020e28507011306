//! How the models were made: losses falling, rounds, bytes, and whether it had settled.
//!
//! ```text
//! ── training  17280 rounds  41.2 MB exchanged ───────────────────
//! ── server loss  0.9613 → 0.0512 ────────────────────────────────
//!  0.96 ┤█▄▂
//!  0.05 ┤█████▆▅▃▃▂▂▁▁
//! ── P1 loss  1.2041 → 0.3310 ────────────────────────────────────
//!  1.20 ┤█▇▅▃▂▁
//! ── what it says ────────────────────────────────────────────────
//!  The server's loss fell by 1 % over the last tenth: it has settled.
//! ```

use ratatui::layout::Rect;

use super::losses::{chart, course, gradient_noise, mean, panel, server, target_noise};
use super::pen::{self, Canvas, span, wrapped};
use super::scene::Scene;
use crate::federation::History;

/// A change of the loss over the last tenth of training below which it counts as settled.
const SETTLED: f64 = 0.02;

pub(crate) fn draw(scene: &Scene, skip: usize, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let Some(history) = scene.history() else {
        let rest = canvas.panel(area, [span("training", theme.strong)]);
        let words =
            "How these models were made is not kept with them. headwater train makes new ones.";
        canvas.paragraph(rest, words, theme.label);
        return;
    };
    let each = history.bytes as f64 / history.rounds.max(1) as f64;
    let mut title = vec![
        span("training", theme.strong),
        span(format!("{} rounds", history.rounds), theme.text),
        span(format!("{} exchanged", bytes(history.bytes as f64)), theme.text),
        span(format!("{} a round", bytes(each)), theme.label),
        span("bright: the running mean", theme.label),
    ];
    if scene.model.prepared.as_ref().is_some_and(|prepared| prepared.stopped) {
        title.push(span("STOPPED EARLY", theme.single));
    }
    let mut rest = canvas.panel(area, title);
    let sentences = words(scene, history);
    let lines: Vec<String> =
        sentences.iter().flat_map(|s| wrapped(s, area.width.saturating_sub(2))).collect();
    let words_rows = (lines.len() as u16 + 1).min(rest.height / 3);
    let below = pen::take_last(&mut rest, words_rows);
    charts(scene, history, skip, rest, canvas);
    let below = canvas.panel(below, [span("what it says", theme.strong)]);
    for (y, text) in (0..below.height).zip(lines) {
        canvas.cut(below, 1, y, &text, theme.text);
    }
}

/// The server's loss above, each client's below it, as high as there is room.
fn charts(scene: &Scene, history: &History, skip: usize, area: Rect, canvas: &mut Canvas) {
    let clients = history.reached.first().map_or(0, |word| word.client_loss.len());
    let mut rest = area;
    let wanted = if clients == 0 { area.height } else { (area.height / 3).max(3) };
    loss("server loss", &server(history), pen::take(&mut rest, wanted), canvas);
    let fit = usize::from(rest.height / 3).clamp(1, clients.max(1));
    let height = rest.height / fit as u16;
    let skip = skip.min(clients.saturating_sub(fit));
    for client in (0..clients).skip(skip).take(fit) {
        let losses: Vec<f64> = history
            .reached
            .iter()
            .filter_map(|word| word.client_loss.get(client).copied())
            .collect();
        let name = format!("{} loss", scene.name(client));
        loss(&name, &losses, pen::take(&mut rest, height), canvas);
    }
}

fn loss(name: &str, losses: &[f64], area: Rect, canvas: &mut Canvas) {
    let course = course(losses).map_or_else(String::new, |course| format!("mean {course}"));
    let rest = panel(name, span(course, canvas.theme.label), area, canvas);
    chart(losses, rest, canvas);
}

fn words(scene: &Scene, history: &History) -> Vec<String> {
    let server = server(history);
    let noise = target_noise(scene);
    let mut said = Vec::new();
    if let Some(change) = last_tenth(&server) {
        let percent = 100.0 * change.abs();
        said.push(if change > SETTLED {
            format!("The server's mean loss still fell by {percent:.1} % over the last tenth: longer training may help.")
        } else if change < -SETTLED {
            format!("The server's mean loss rose by {percent:.1} % over the last tenth: it learns against noise, or its step is too large.")
        } else if noise.is_some() {
            format!("The server's mean loss changed by {percent:.1} % over the last tenth: it has settled, or the noise hides the rest.")
        } else {
            format!("The server's mean loss changed by {percent:.1} % over the last tenth: it has settled.")
        });
    }
    if let Some(epsilon) = noise {
        said.push(format!(
            "Clients send their states x_a with noise of ε {epsilon}, and the server's loss is measured \
             against them: it cannot fall below that noise, however well the server learns."
        ));
    }
    if let Some(epsilon) = gradient_noise(scene) {
        said.push(format!("Gradients come back with noise of ε {epsilon}."));
    }
    said.push(
        "The server learns how clients' states depend on each other; each client learns to correct \
         its own states by the gradients that come back. No measurement leaves its client."
            .to_owned(),
    );
    if let Some(prepared) = &scene.model.prepared {
        said.push(match prepared.every {
            1 => "Every sample is a step.".to_owned(),
            every => format!("Every {every} samples make one step."),
        });
    }
    said
}

/// By how much the mean loss fell from the tenth before the last to the last, as a share.
fn last_tenth(losses: &[f64]) -> Option<f64> {
    let tenth = losses.len() / 10;
    let last = mean(&losses[losses.len() - tenth..])?;
    let before = mean(&losses[losses.len() - 2 * tenth..losses.len() - tenth])?;
    Some((before - last) / before.abs().max(1e-12)).filter(|change| change.is_finite())
}

fn bytes(n: f64) -> String {
    match n {
        ..1e3 => format!("{n:.0} B"),
        ..1e6 => format!("{:.1} kB", n / 1e3),
        ..1e9 => format!("{:.1} MB", n / 1e6),
        _ => format!("{:.1} GB", n / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tenth_tells_falling_from_settled() {
        let falling: Vec<f64> = (0..100).map(|n| 100.0 - f64::from(n)).collect();
        assert!(last_tenth(&falling).is_some_and(|change| change > SETTLED));
        assert_eq!(last_tenth(&[1.0; 100]), Some(0.0));
        assert_eq!(last_tenth(&[1.0; 5]), None);
    }

    #[test]
    fn bytes_are_said_in_their_unit() {
        assert_eq!([12.0, 4_200.0, 41_200_000.0].map(bytes), ["12 B", "4.2 kB", "41.2 MB"]);
    }
}
