//! The help over everything else, made from the table of actions.
//!
//! ```text
//!  help   / searches  esc closes  pgdn scrolls           seeded
//! ── time ────────────────────── ── incidents ─────────────────
//!   space        pause, go on      a            acknowledge
//! ── signs ─────────────────────────────────────────────────────
//!   ▲ ROOT       it began here
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};

use super::pen::{cut, put, width};
use super::top::SEEDED;
use crate::console::action::{Binding, TABLE, Topic};
use crate::console::app::Model;
use crate::console::theme::{State, Theme};

/// Cells of the keys, and of a whole column of the help.
const KEYS: u16 = 11;
const COLUMN: u16 = 40;

/// What the signs of a trend and a grid mean.
const LEGEND: [(&str, &str); 12] = [
    ("▂▃▄▆█", "against a limit, at ▄"),
    ("two rows", "the limit is between"),
    ("· c a #", "no flag, Z_c, Z_a, both"),
    ("1 to 9", "grade of the symbol sent"),
    ("?", "missing: no value came"),
    ("↑ ↓ ↕", "beyond its scale"),
    ("┃", "now; reversed: looked at"),
    ("S/b", "evidence: alarm from 1 on"),
    ("r_c r_a", "residual: own, with others"),
    ("τ", "threshold of a distance"),
    ("ε δ", "less is more private"),
    ("-", "a flag that would be gone"),
];

/// Draws the help over `area`, scrolled by `skip` lines as far as there is need.
pub(crate) fn draw(model: &Model, skip: usize, area: Rect, buffer: &mut Buffer) {
    let theme = &model.theme;
    Clear.render(area, buffer);
    let bar = Rect { height: area.height.min(1), ..area };
    buffer.set_style(bar, theme.cursor);
    let search = crate::console::text::clean(&model.search);
    let title = if search.is_empty() {
        "help   / searches   esc closes   pgdn scrolls".to_owned()
    } else {
        format!("help   searched for {search}   esc closes")
    };
    let mut room = area.width.saturating_sub(1);
    if model.seeded {
        let fits = |mark: &&str| width(&title) + 2 + width(mark) < room;
        let mark = SEEDED.into_iter().find(fits).unwrap_or(SEEDED[1]);
        room = room.saturating_sub(width(mark) + 2);
        put(buffer, area, room + 2, 0, mark, theme.cursor);
    }
    put(buffer, area, 1, 0, &cut(&title, room), theme.cursor);
    let body = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area };
    let count = usize::from((area.width / COLUMN).clamp(1, 4));
    let columns = shared(sections(model, theme), count);
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let skip = skip.min(longest.saturating_sub(usize::from(body.height)));
    let cells = body.width / count as u16;
    for (at, column) in columns.iter().enumerate() {
        let part = Rect {
            x: body.x.saturating_add(at as u16 * cells),
            width: if at + 1 < count { cells.saturating_sub(1) } else { body.width },
            ..body
        }
        .intersection(body);
        for (row, entry) in column.iter().skip(skip).take(usize::from(body.height)).enumerate() {
            entry.draw(theme, part, row as u16, buffer);
        }
    }
}

/// A line of the help.
#[derive(Debug, Clone)]
enum Entry {
    Heading(&'static str),
    Row(String, String, Style),
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
            Entry::Row(keys, what, style) => {
                let x = write(buffer, 2, keys, *style).max(KEYS + 2) + 1;
                write(buffer, x, &cut(what, area.width.saturating_sub(x)), theme.text);
            }
        }
    }

    fn says(&self, search: &str) -> bool {
        match self {
            Entry::Heading(_) => false,
            Entry::Row(keys, what, _) => {
                keys.to_lowercase().contains(search) || what.to_lowercase().contains(search)
            }
        }
    }
}

/// Every topic with its rows, and the signs; only rows that are searched for.
fn sections(model: &Model, theme: &Theme) -> Vec<Vec<Entry>> {
    let search = model.search.to_lowercase();
    let topics = Topic::ALL.into_iter().map(|topic| {
        let rows = TABLE.iter().filter(|binding| binding.topic == topic);
        section(topic.heading(), rows.map(|binding| row(model, binding)).collect())
    });
    let signs = [section("verdicts", verdicts(theme)), section("signs", legend(theme))];
    topics
        .chain(signs)
        .map(|mut section| {
            if !search.is_empty() {
                section.retain(|entry| matches!(entry, Entry::Heading(_)) || entry.says(&search));
            }
            section
        })
        .filter(|section| section.len() > 1)
        .collect()
}

fn section(heading: &'static str, rows: Vec<Entry>) -> Vec<Entry> {
    [Entry::Heading(heading)].into_iter().chain(rows).collect()
}

fn row(model: &Model, binding: &Binding) -> Entry {
    let keys = model.keymap.keys(binding.action);
    let keys: Vec<String> = keys.iter().map(|chord| model.theme.key(*chord)).collect();
    Entry::Row(keys.join(" "), binding.what.to_owned(), model.theme.strong)
}

fn verdicts(theme: &Theme) -> Vec<Entry> {
    let told = [
        (State::Root, "it began here"),
        (State::RootUnseen, "the same, not acked yet"),
        (State::Unknown, "began at one of several"),
        (State::Effect, "only feels it; is silent"),
        (State::Single, "nobody else feels it"),
        (State::Returned, "over before it was acked"),
        (State::Latched, "a change that stays"),
        (State::Shelved, "silenced for a time"),
        (State::OutOfService, "until it is put back"),
        (State::Missing, "nothing comes from it"),
    ];
    told.into_iter()
        .map(|(state, what)| {
            let mark = theme.mark(state);
            Entry::Row(format!("{} {}", mark.glyph, mark.word), what.to_owned(), mark.style)
        })
        .collect()
}

fn legend(theme: &Theme) -> Vec<Entry> {
    let rows = LEGEND.into_iter();
    rows.map(|(sign, what)| Entry::Row(sign.to_owned(), what.to_owned(), theme.strong)).collect()
}

/// Sections shared out among columns, in their order, so that no column is much longer than it must
/// be.
fn shared(sections: Vec<Vec<Entry>>, count: usize) -> Vec<Vec<Entry>> {
    let fits = |height: usize| {
        let mut columns = 1;
        let mut used = 0;
        for section in &sections {
            if used > 0 && used + section.len() > height {
                columns += 1;
                used = 0;
            }
            used += section.len();
        }
        columns <= count
    };
    let all: usize = sections.iter().map(Vec::len).sum();
    let height = (1..=all).find(|height| fits(*height)).unwrap_or(all);
    let mut columns: Vec<Vec<Entry>> = vec![Vec::new()];
    for section in sections {
        let last = columns.len() - 1;
        if !columns[last].is_empty() && columns[last].len() + section.len() > height {
            columns.push(section);
        } else {
            columns[last].extend(section);
        }
    }
    columns
}
