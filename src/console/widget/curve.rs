//! Losses falling over decades: a filled curve on a logarithmic scale, with the ends of the scale.
//!
//! ```text
//!  0.96 ┤█▄
//!       ┤███▆▂▂
//!  0.05 ┤███████▆▅▃▃▂▂▁
//! ```
//!
//! A column shows the largest loss of its rounds, so that a round that went wrong is not averaged
//! away.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::level::fill;
use crate::console::glyph::BLOCKS;
use crate::console::theme::Theme;

const STEPS: usize = BLOCKS.len();
/// Losses below this are drawn as this.
const LEAST: f64 = 1e-12;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Curve<'a> {
    pub losses: &'a [f64],
    pub theme: &'a Theme,
}

impl Curve<'_> {
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        let Some((low, high)) = ends(self.losses) else { return };
        let (low, span) = (log(low), (log(high) - log(low)).max(1e-9));
        let steps = usize::from(area.height) * STEPS;
        for (x, loss) in (area.left()..area.right()).zip(columns(self.losses, area.width)) {
            let Some(loss) = loss else { continue };
            let place = ((log(loss) - low) / span).clamp(0.0, 1.0);
            let filled = 1 + (place * (steps.max(1) - 1) as f64).round() as usize;
            fill(filled, self.theme.trend, Rect { x, width: 1, ..area }, buffer);
        }
    }
}

pub(crate) fn ends(losses: &[f64]) -> Option<(f64, f64)> {
    let finite = losses.iter().copied().filter(|loss| loss.is_finite());
    finite.fold(None, |ends, loss| match ends {
        None => Some((loss, loss)),
        Some((low, high)) => Some((f64::min(low, loss), f64::max(high, loss))),
    })
}

/// The largest finite loss of each of `width` columns; fewer columns where there are fewer losses.
fn columns(losses: &[f64], width: u16) -> impl Iterator<Item = Option<f64>> + '_ {
    let columns = usize::from(width).min(losses.len());
    (0..columns).map(move |c| {
        let from = c * losses.len() / columns;
        let to = ((c + 1) * losses.len() / columns).max(from + 1);
        ends(&losses[from..to]).map(|(_, high)| high)
    })
}

fn log(loss: f64) -> f64 {
    loss.max(LEAST).ln()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::console::theme::{Choice, Terminal};
    use crate::console::widget::drawn;

    fn rows(losses: &[f64], width: u16, height: u16) -> Vec<String> {
        let theme = Theme::new(Choice::Mono, Terminal::default());
        let curve = Curve { losses, theme: &theme };
        drawn::rows(width, height, |area, buffer| curve.draw(area, buffer))
    }

    #[test]
    fn a_loss_that_falls_by_decades_falls_evenly() {
        assert_eq!(rows(&[100.0, 10.0, 1.0], 4, 2), ["█▁  ", "██▁ "]);
    }

    #[test]
    fn a_round_that_went_wrong_is_not_averaged_away() {
        let mut losses = vec![0.1; 100];
        losses[57] = 10.0;
        assert_eq!(rows(&losses, 10, 1), ["▁▁▁▁▁█▁▁▁▁"]);
    }

    proptest! {
        #[test]
        fn any_losses_can_be_drawn(
            losses in prop::collection::vec(any::<f64>(), 0..300), w in 0_u16..40, h in 0_u16..6,
        ) {
            rows(&losses, w, h);
        }
    }
}
