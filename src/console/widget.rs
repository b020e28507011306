//! The pictures that views are made of. Each is a pure function of a few numbers and a theme, draws
//! into the area it is given and never beside it.
//!
//! | module | picture |
//! |---|---|
//! | [`level`] | a quantity against its limit, which stands at a fixed height |
//! | [`flags`] | (Z_c, Z_a) or graded symbols, a cell a column |
//! | [`gauge`] | a knob between its ends |
//! | [`curve`] | losses falling over decades, with their running mean |
//! | `dots` | curves in braille, for the two above and below |
//! | [`heat`] | a cell of a matrix of strengths |
//! | [`trend`] | a sensor against time, on its fixed scale |

pub(crate) mod curve;
mod dots;
pub(crate) mod flags;
pub(crate) mod gauge;
pub(crate) mod heat;
pub(crate) mod level;
pub(crate) mod trend;

use ratatui::buffer::Buffer;
use ratatui::style::Style;

/// Puts one sign into one cell; nothing where the picture has no such cell.
pub(crate) fn sign(buffer: &mut Buffer, x: u16, y: u16, glyph: &str, style: Style) {
    if let Some(cell) = buffer.cell_mut((x, y)) {
        cell.set_symbol(glyph).set_style(style);
    }
}

#[cfg(test)]
pub(crate) mod drawn {
    use ratatui::buffer::{Buffer, Cell};
    use ratatui::layout::Rect;

    /// The rows that `draw` makes of an empty picture.
    pub(crate) fn rows(
        width: u16,
        height: u16,
        draw: impl FnOnce(Rect, &mut Buffer),
    ) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw(area, &mut buffer);
        let rows = buffer.content().chunks(usize::from(width.max(1)));
        rows.map(|row| row.iter().map(Cell::symbol).collect()).collect()
    }
}
