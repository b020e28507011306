//! The bottom line: what works here and now.
//!
//! ```text
//!  space pause  ← → look back  + - speed  tab client  enter open  t truth  ? help  q quit
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{put, width};
use crate::console::action::{Hint, TABLE};
use crate::console::app::Model;
use crate::console::theme::Theme;

/// Draws the line into the first row of `area`.
pub fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut hints: Vec<Hint> =
        TABLE.iter().filter(|row| model.offers(row.action)).filter_map(|row| row.hint).collect();
    let cells = |hints: &[Hint]| -> u16 {
        hints.iter().map(|hint| width(hint.keys) + width(hint.what) + 3).sum()
    };
    while cells(&hints) > area.width
        && let Some(last) = (0..hints.len()).max_by_key(|at| hints[*at].rank)
    {
        hints.remove(last);
    }
    let mut x = 1;
    for hint in hints {
        x = put(buffer, area, x, 0, hint.keys, theme.strong) + 1;
        x = put(buffer, area, x, 0, hint.what, theme.label) + 2;
    }
}
