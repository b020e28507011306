//! Losses falling over decades, on a logarithmic scale, with their running mean.
//!
//! ```text
//!  one row:    █▇▅▃▂▂▁▁       filled
//!  more rows:  ⢣⡀             every half column from its least to its largest loss, dim;
//!              ⠀⠑⠢⠤⣀⣀⡠⠤⣀      the running mean bright
//! ```
//!
//! A column shows the largest loss of its rounds, so that a round that went wrong is not averaged
//! away.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::dots::{Before, Dots, Layer, running_mean};
use super::level::fill;
use crate::console::glyph::BLOCKS;
use crate::console::theme::Theme;

const STEPS: usize = BLOCKS.len();
/// Losses below this are drawn as this.
const LEAST: f64 = 1e-12;
/// The running mean is over this part of all losses.
const MEAN_OF: usize = 16;

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
        let place = |loss: f64| ((log(loss) - low) / span).clamp(0.0, 1.0);
        if area.height > 1 {
            return self.dots(place, area, buffer);
        }
        for (x, ends) in (area.left()..area.right())
            .zip(columns(self.losses, usize::from(area.width).min(self.losses.len())))
        {
            let Some((_, loss)) = ends else { continue };
            let filled = 1 + (place(loss) * (STEPS - 1) as f64).round() as usize;
            fill(filled, self.theme.trend, Rect { x, width: 1, ..area }, buffer);
        }
    }

    fn dots(&self, place: impl Fn(f64) -> f64, area: Rect, buffer: &mut Buffer) {
        let mut dots = Dots::new(area);
        let top = dots.levels() - 1;
        let level = |loss: f64| (place(loss) * top as f64).round() as usize;
        let (wide, all) = (2 * usize::from(area.width), self.losses.len());
        // What nearly fills the width fills it; a short beginning stays short.
        let wide = if 2 * all >= wide { wide } else { all };
        let mut before = Before::None;
        for (x, ends) in columns(self.losses, wide).enumerate() {
            match ends {
                Some((low, high)) => {
                    dots.line(Layer::Values, x, (level(low), level(high)), &mut before);
                }
                None => before = None,
            }
        }
        // On this scale the mean of the logarithms is the middle.
        let logs = self.losses.iter().map(|loss| loss.is_finite().then(|| log(*loss)));
        let means = running_mean(&logs.collect::<Vec<_>>(), self.losses.len() / MEAN_OF);
        let mut before = Before::None;
        for (x, (_, end)) in stretches(means.len(), wide).enumerate() {
            match means[end - 1].map(|mean| level(mean.exp())) {
                Some(level) => dots.line(Layer::Mean, x, (level, level), &mut before),
                None => before = None,
            }
        }
        dots.draw(buffer, |_, layer| match layer {
            Layer::Values => self.theme.frame,
            Layer::Mean => self.theme.strong,
        });
    }
}

pub(crate) fn ends(losses: &[f64]) -> Option<(f64, f64)> {
    let finite = losses.iter().copied().filter(|loss| loss.is_finite());
    finite.fold(None, |ends, loss| match ends {
        None => Some((loss, loss)),
        Some((low, high)) => Some((f64::min(low, loss), f64::max(high, loss))),
    })
}

/// The least and the largest finite loss of each of `wide` columns.
fn columns(losses: &[f64], wide: usize) -> impl Iterator<Item = Option<(f64, f64)>> + '_ {
    stretches(losses.len(), wide).map(|(from, to)| ends(&losses[from..to]))
}

/// Where each of `wide` columns begins and ends among `all` losses.
fn stretches(all: usize, wide: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..if all == 0 { 0 } else { wide }).map(move |c| {
        let from = c * all / wide;
        (from, ((c + 1) * all / wide).max(from + 1))
    })
}

fn log(loss: f64) -> f64 {
    loss.max(LEAST).ln()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::console::theme::{Terminal, ThemeChoice};
    use crate::console::widget::drawn;

    fn rows(losses: &[f64], width: u16, height: u16) -> Vec<String> {
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        let curve = Curve { losses, theme: &theme };
        drawn::rows(width, height, |area, buffer| curve.draw(area, buffer))
    }

    #[test]
    fn a_loss_that_falls_by_decades_falls_evenly() {
        assert_eq!(rows(&[100.0, 10.0, 1.0], 4, 2), ["⢱   ", " ⡇  "]);
        assert_eq!(rows(&[100.0, 10.0, 1.0], 4, 1), ["█▅▁ "]);
    }

    #[test]
    fn the_running_mean_is_bright_and_lies_within_the_losses() {
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        let losses: Vec<f64> = (0..400).map(|n| if n % 2 == 0 { 100.0 } else { 1.0 }).collect();
        let area = Rect::new(0, 0, 20, 4);
        let mut buffer = Buffer::empty(area);
        Curve { losses: &losses, theme: &theme }.draw(area, &mut buffer);
        let is_bright =
            |x: u16, y: u16| buffer[(x, y)].style().add_modifier == theme.strong.add_modifier;
        // All columns go from the least to the largest loss; the mean is in the middle.
        for x in 2..20 {
            let bright: Vec<u16> = (0..4).filter(|y| is_bright(x, *y)).collect();
            assert!(bright.iter().all(|y| (1..=2).contains(y)) && !bright.is_empty(), "{bright:?}");
        }
    }

    #[test]
    fn losses_that_nearly_fill_the_width_fill_it() {
        let losses: Vec<f64> = (1..=30).map(f64::from).collect();
        let last = |width| rows(&losses, width, 2)[0].chars().last();
        assert_ne!(last(20), Some(' '));
        assert_eq!(last(40), Some(' '), "a short beginning stays short");
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
