//! One sensor against time, on its fixed scale.
//!
//! ```text
//!  one row:   ▃▃▄▄▅▃▂▂??▂▃▄↑↑▄▃      height is the middle between a column's least and greatest value
//!  more rows: ⡠⠤⠒⠒⠊⠉⠑⠢⣀ ??  ⡠⠊↑       every half column is filled from its least to its greatest,
//!                                      the running mean is bright
//! ```
//!
//! `?` is missing, an arrow is beyond the scale, nothing is not yet or no longer known.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::dots::{Before, Dots, Layer, running_mean};
use super::sign;
use crate::console::glyph::BLOCKS;
use crate::console::scale::{Place, Scale};
use crate::console::theme::Theme;
use crate::history::Bucket;

/// The running mean is over this part of what is drawn; a shorter picture has none.
const MEAN_OF: usize = 12;

/// One sensor's values, two buckets to a column of the screen.
#[derive(Debug)]
pub(crate) struct Trend<'a> {
    pub halves: &'a [Bucket],
    pub scale: &'a Scale,
    pub theme: &'a Theme,
}

impl Trend<'_> {
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return;
        }
        let theme = self.theme;
        if area.height > 1 {
            self.dots(area, buffer);
        }
        for (x, halves) in area.columns().zip(self.halves.chunks(2)) {
            let (top, bottom) = (x.y, x.bottom() - 1);
            let column = halves.iter().copied().reduce(Bucket::join).unwrap_or(Bucket::Outside);
            let Bucket::Values { low, high, whole } = column else {
                if column == Bucket::Missing {
                    sign(buffer, x.x, bottom, "?", theme.missing);
                }
                continue;
            };
            let (low, high) = (f64::from(low), f64::from(high));
            // A column with holes is drawn as far as it is known, in the style of what is missing.
            let style = if whole { theme.trend } else { theme.missing };
            if area.height == 1 {
                let place = self.height(f64::midpoint(low, high));
                sign(buffer, x.x, top, BLOCKS[level(place, 8)], style);
            }
            if self.scale.place(high) == Place::Above {
                sign(buffer, x.x, top, "↑", theme.beyond);
            } else if self.scale.place(low) == Place::Below {
                sign(buffer, x.x, bottom, "↓", theme.beyond);
            }
        }
    }

    fn height(&self, value: f64) -> f64 {
        match self.scale.place(value) {
            Place::Below => 0.0,
            Place::On(place) => place,
            Place::Above => 1.0,
        }
    }

    /// All columns as one line with its running mean. A column with holes is drawn as far as it is
    /// known, in the style of what is missing.
    fn dots(&self, area: Rect, buffer: &mut Buffer) {
        let mut dots = Dots::new(area);
        let levels = dots.levels();
        let height = |value: f64| level(self.height(value), levels);
        let wide = 2 * usize::from(area.width);
        let halves = &self.halves[..self.halves.len().min(wide)];
        let mut before = Before::None;
        for (x, half) in halves.iter().enumerate() {
            match *half {
                Bucket::Values { low, high, .. } => {
                    let span = (height(low.into()), height(high.into()));
                    dots.line(Layer::Values, x, span, &mut before);
                }
                Bucket::Missing | Bucket::Outside => before = None,
            }
        }
        let over = halves.len() / MEAN_OF;
        if over > 1 {
            let middle = |half: &Bucket| match *half {
                Bucket::Values { low, high, .. } => Some(f64::midpoint(low.into(), high.into())),
                Bucket::Missing | Bucket::Outside => None,
            };
            let means = running_mean(&halves.iter().map(middle).collect::<Vec<_>>(), over);
            let mut before = Before::None;
            for (x, mean) in means.into_iter().enumerate() {
                match mean.map(height) {
                    Some(level) => dots.line(Layer::Mean, x, (level, level), &mut before),
                    None => before = None,
                }
            }
        }
        let is_whole = |column: u16| {
            let column = halves.chunks(2).nth(column.into()).unwrap_or_default();
            let is_hole = |half: &Bucket| {
                matches!(half, Bucket::Missing | Bucket::Values { whole: false, .. })
            };
            !column.iter().any(is_hole)
        };
        dots.draw(buffer, |column, layer| match layer {
            _ if !is_whole(column) => self.theme.missing,
            Layer::Values if over > 1 => self.theme.frame,
            Layer::Values => self.theme.trend,
            Layer::Mean => self.theme.text,
        });
    }
}

/// The step of `steps` that a height from 0 to 1 falls on.
fn level(height: f64, steps: usize) -> usize {
    ((height * steps as f64) as usize).min(steps - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::{Terminal, ThemeChoice};

    fn scale() -> Scale {
        let mut scale = Scale::new(1.0);
        (0..3600).for_each(|n| scale.push(f64::from(n % 101)));
        scale
    }

    fn value(v: f32) -> Bucket {
        Bucket::Values { low: v, high: v, whole: true }
    }

    fn drawn(halves: &[Bucket], width: u16, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        let scale = scale();
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        Trend { halves, scale: &scale, theme: &theme }.draw(area, &mut buffer);
        buffer
            .content()
            .chunks(usize::from(width))
            .map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect())
            .collect()
    }

    #[test]
    fn one_row_tells_low_from_high_and_missing_from_zero() {
        let halves: Vec<Bucket> =
            [value(0.0), value(50.0), value(100.0), Bucket::Missing, value(900.0), value(-900.0)]
                .into_iter()
                .flat_map(|bucket| [bucket; 2])
                .chain([Bucket::Outside; 2])
                .collect();
        assert_eq!(drawn(&halves, 7, 1), ["▂▅▇?↑↓ "]);
    }

    #[test]
    fn several_rows_draw_one_line_through_a_jump() {
        let halves = [value(0.0), value(0.0), value(100.0), value(100.0)];
        assert_eq!(drawn(&halves, 2, 3), [" ⡤", " ⡇", "⠒⠁"]);
    }

    #[test]
    fn a_longer_picture_has_a_running_mean_that_stands_out() {
        let halves: Vec<Bucket> =
            (0..48).map(|n| value(if n % 2 == 0 { 0.0 } else { 100.0 })).collect();
        let area = Rect::new(0, 0, 24, 4);
        let mut buffer = Buffer::empty(area);
        let (scale, theme) = (scale(), Theme::new(ThemeChoice::Mono, Terminal::default()));
        Trend { halves: &halves, scale: &scale, theme: &theme }.draw(area, &mut buffer);
        let dim = |x: u16, y: u16| buffer[(x, y)].style().add_modifier == theme.frame.add_modifier;
        for x in 4..24 {
            assert!(dim(x, 0) && dim(x, 3), "the values reach from end to end");
            assert!((1..=2).any(|y| !dim(x, y)), "the mean is in the middle");
        }
    }

    #[test]
    fn a_gap_breaks_the_line() {
        let halves =
            [value(0.0), value(0.0), Bucket::Missing, Bucket::Missing, value(100.0), value(100.0)];
        assert_eq!(drawn(&halves, 3, 2), ["  ⠒", "⠤? "]);
    }
}
