//! Curves in braille dots: two columns and four rows of dots a cell, and a running mean above them.
//!
//! ```text
//!  ⠢⡀⢀⠔⠢⢄        the values are drawn dim, their running mean bright
//!  ⠀⠈⠁⠀⠀⠀⠑
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::sign;

/// Dots of a braille cell, from the bottom up, in its left and its right half.
const DOTS: [[u8; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];

/// What a dot belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Values,
    Mean,
}

/// The dots of one area.
#[derive(Debug)]
pub(super) struct Dots {
    area: Rect,
    /// Values and mean of every cell, row by row.
    cells: Vec<[u8; 2]>,
}

/// Where a line was in the column to the left: its lowest and its highest dot.
pub(super) type Before = Option<(usize, usize)>;

impl Dots {
    pub(super) fn new(area: Rect) -> Self {
        let cells = usize::from(area.width) * usize::from(area.height);
        Self { area, cells: vec![[0; 2]; cells] }
    }

    /// Dots from the bottom to the top.
    pub(super) fn levels(&self) -> usize {
        usize::from(self.area.height) * DOTS[0].len()
    }

    /// The next piece of a line, from one level to another in the dot column `x`. A line that jumped
    /// is drawn through, so that it stays one line.
    pub(super) fn line(
        &mut self,
        layer: Layer,
        x: usize,
        span: (usize, usize),
        before: &mut Before,
    ) {
        let (from, to) = match *before {
            Some((_, top)) if top < span.0 => (top + 1, span.1),
            Some((bottom, _)) if bottom > span.1 => (span.0, bottom - 1),
            _ => span,
        };
        *before = Some(span);
        let (width, height) = (usize::from(self.area.width), usize::from(self.area.height));
        for dot in from..=to.min(self.levels().saturating_sub(1)) {
            let (row, in_row) = (dot / DOTS[0].len(), dot % DOTS[0].len());
            let cell = height.checked_sub(1 + row).map(|row| row * width + x / 2);
            if let Some(cell) = cell.filter(|_| x / 2 < width) {
                self.cells[cell][layer as usize] |= DOTS[x % 2][in_row];
            }
        }
    }

    /// Draws all dots; `style` says how those of a column look, with the mean in the cell or without.
    pub(super) fn draw(&self, buffer: &mut Buffer, style: impl Fn(u16, Layer) -> Style) {
        for (at, [values, mean]) in self.cells.iter().enumerate() {
            let dots = values | mean;
            if dots == 0 {
                continue;
            }
            let (column, row) =
                (at % usize::from(self.area.width), at / usize::from(self.area.width));
            let layer = if *mean == 0 { Layer::Values } else { Layer::Mean };
            let glyph = char::from_u32(0x2800 + u32::from(dots)).unwrap_or('?');
            let (x, y) = (self.area.x + column as u16, self.area.y + row as u16);
            sign(buffer, x, y, glyph.encode_utf8(&mut [0; 4]), style(column as u16, layer));
        }
    }
}

/// The mean of the last `of` values at every place; what is not known is left out, and where nothing
/// is known there is no mean.
pub(super) fn running_mean(values: &[Option<f64>], of: usize) -> Vec<Option<f64>> {
    let (mut sum, mut known) = (0.0, 0_usize);
    let mut means = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        if let Some(value) = value {
            (sum, known) = (sum + value, known + 1);
        }
        if let Some(gone) = at.checked_sub(of.max(1)).and_then(|gone| values[gone]) {
            (sum, known) = (sum - gone, known - 1);
        }
        means.push(value.and((known > 0).then(|| sum / known as f64)));
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_mean_follows_the_last_values_and_skips_what_is_missing() {
        let values = [Some(2.0), Some(4.0), None, Some(6.0), Some(8.0)];
        let means = running_mean(&values, 2);
        assert_eq!(means, [Some(2.0), Some(3.0), None, Some(6.0), Some(7.0)]);
    }

    #[test]
    fn a_cell_with_the_mean_in_it_is_drawn_as_the_mean() {
        let area = Rect::new(0, 0, 2, 1);
        let mut dots = Dots::new(area);
        dots.line(Layer::Values, 0, (0, 3), &mut None);
        dots.line(Layer::Values, 2, (0, 0), &mut None);
        dots.line(Layer::Mean, 2, (3, 3), &mut None);
        let mut buffer = Buffer::empty(area);
        dots.draw(&mut buffer, |_, layer| match layer {
            Layer::Values => Style::new(),
            Layer::Mean => Style::new().add_modifier(ratatui::style::Modifier::BOLD),
        });
        let bold = |x: u16| buffer[(x, 0)].modifier.contains(ratatui::style::Modifier::BOLD);
        assert_eq!((buffer[(0, 0)].symbol(), bold(0)), ("⡇", false));
        assert_eq!((buffer[(1, 0)].symbol(), bold(1)), ("⡁", true));
    }
}
