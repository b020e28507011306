//! One sensor against time, on its fixed scale.
//!
//! ```text
//!  one row:   ▃▃▄▄▅▃▂▂??▂▃▄↑↑▄▃      height is the middle between a column's least and greatest value
//!  more rows: ⡠⠤⠒⠒⠊⠉⠑⠢⣀ ??  ⡠⠊↑       every half column is filled from its least to its greatest
//! ```
//!
//! `?` is missing, an arrow is beyond the scale, nothing is not yet or no longer known.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::sign;
use crate::console::glyph::BLOCKS;
use crate::console::scale::{Place, Scale};
use crate::console::theme::Theme;
use crate::history::Bucket;

/// Dots of a braille cell, from the bottom up, in its left and its right half.
const DOTS: [[u8; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];
const DOTS_PER_ROW: u16 = 4;

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
        let mut before = None;
        for (x, halves) in area.columns().zip(self.halves.chunks(2)) {
            let (top, bottom) = (x.y, x.bottom() - 1);
            let column = halves.iter().copied().reduce(Bucket::join).unwrap_or(Bucket::Outside);
            let Bucket::Values { low, high, whole } = column else {
                before = None;
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
            } else {
                self.braille(halves, x, style, &mut before, buffer);
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

    /// Fills the dots of one column. `before` is the span of dots of the half to the left; a line
    /// that jumped is drawn through, so that it stays one line.
    fn braille(
        &self,
        halves: &[Bucket],
        column: Rect,
        style: Style,
        before: &mut Option<(usize, usize)>,
        buffer: &mut Buffer,
    ) {
        let dots = usize::from(column.height * DOTS_PER_ROW);
        let mut cells = vec![0_u8; usize::from(column.height)];
        for (half, bucket) in halves.iter().enumerate().take(2) {
            let Bucket::Values { low, high, .. } = *bucket else {
                *before = None;
                continue;
            };
            let span =
                (level(self.height(low.into()), dots), level(self.height(high.into()), dots));
            let (from, to) = match *before {
                Some((_, top)) if top < span.0 => (top + 1, span.1),
                Some((bottom, _)) if bottom > span.1 => (span.0, bottom - 1),
                _ => span,
            };
            for dot in from..=to {
                let row = cells.len() - 1 - dot / usize::from(DOTS_PER_ROW);
                cells[row] |= DOTS[half][dot % usize::from(DOTS_PER_ROW)];
            }
            *before = Some(span);
        }
        for (row, dots) in cells.into_iter().enumerate().filter(|(_, dots)| *dots != 0) {
            let glyph = char::from_u32(0x2800 + u32::from(dots)).unwrap_or('?');
            sign(buffer, column.x, column.y + row as u16, glyph.encode_utf8(&mut [0; 4]), style);
        }
    }
}

/// The step of `steps` that a height from 0 to 1 falls on.
fn level(height: f64, steps: usize) -> usize {
    ((height * steps as f64) as usize).min(steps - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::{Choice, Terminal};

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
        let theme = Theme::new(Choice::Mono, Terminal::default());
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
    fn a_gap_breaks_the_line() {
        let halves =
            [value(0.0), value(0.0), Bucket::Missing, Bucket::Missing, value(100.0), value(100.0)];
        assert_eq!(drawn(&halves, 3, 2), ["  ⠒", "⠤? "]);
    }
}
