//! The help over everything else, made from the table of actions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};

use super::pen::put;
use crate::console::action::{Binding, TABLE, Topic};
use crate::console::app::Model;
use crate::console::theme::Theme;

/// Cells of the keys, and of a whole column of the help.
const KEYS: usize = 13;
const COLUMN: u16 = 41;

/// What the glyphs of the screen mean.
const LEGEND: [(&str, &str); 6] = [
    ("?", "missing: no value came"),
    ("↑ ↓ ↕", "beyond its scale"),
    ("┃", "now; reversed: looked at"),
    ("▲", "truth: it began here"),
    ("↳", "truth: it is felt here"),
    ("◆", "truth: origin not known"),
];

/// Draws the help over `area`, scrolled by `skip` lines as far as there is need.
pub fn draw(model: &Model, skip: usize, area: Rect, buffer: &mut Buffer) {
    let theme = &model.theme;
    Clear.render(area, buffer);
    let bar = Rect { height: area.height.min(1), ..area };
    buffer.set_style(bar, theme.cursor);
    put(buffer, area, 1, 0, "help   esc closes, pgdn scrolls", theme.cursor);
    let body = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area };
    let columns: Vec<Vec<Entry>> = if area.width >= 2 * COLUMN - 2 {
        let right = [topic(model, Topic::Views), topic(model, Topic::Program), legend()];
        vec![topic(model, Topic::Time), right.concat()]
    } else {
        vec![Topic::ALL.into_iter().flat_map(|t| topic(model, t)).chain(legend()).collect()]
    };
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let skip = skip.min(longest.saturating_sub(usize::from(body.height)));
    for (at, column) in columns.iter().enumerate() {
        let part = Rect {
            x: body.x.saturating_add(at as u16 * (COLUMN - 1)),
            width: if at + 1 < columns.len() { COLUMN - 2 } else { body.width },
            ..body
        };
        for (row, entry) in column.iter().skip(skip).take(usize::from(body.height)).enumerate() {
            entry.draw(theme, part.intersection(body), row as u16, buffer);
        }
    }
}

/// A line of the help.
#[derive(Debug, Clone)]
enum Entry {
    Heading(&'static str),
    Row(String, &'static str),
}

impl Entry {
    fn draw(&self, theme: &Theme, area: Rect, row: u16, buffer: &mut Buffer) {
        let write = |buffer: &mut Buffer, x, text: &str, style: Style| {
            put(buffer, area, x, row, text, style)
        };
        match self {
            Entry::Heading(text) => {
                let x = write(buffer, 0, "── ", theme.frame);
                let x = write(buffer, x, text, theme.strong);
                let rest = usize::from(area.width.saturating_sub(x + 1));
                write(buffer, x, &format!(" {}", "─".repeat(rest)), theme.frame);
            }
            Entry::Row(keys, what) => {
                let x = write(buffer, 2, &format!("{keys:KEYS$} "), theme.strong);
                write(buffer, x, what, theme.text);
            }
        }
    }
}

fn topic(model: &Model, topic: Topic) -> Vec<Entry> {
    let row = |binding: &Binding| {
        let keys = model.keymap.keys(binding.action);
        let keys: Vec<String> = keys.iter().map(|chord| model.theme.key(*chord)).collect();
        Entry::Row(keys.join(" "), binding.what)
    };
    let rows = TABLE.iter().filter(|binding| binding.topic == topic).map(row);
    [Entry::Heading(topic.heading())].into_iter().chain(rows).collect()
}

fn legend() -> Vec<Entry> {
    let rows = LEGEND.into_iter().map(|(glyph, what)| Entry::Row(glyph.to_owned(), what));
    [Entry::Heading("signs")].into_iter().chain(rows).collect()
}
