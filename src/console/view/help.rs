//! The help over everything else, made from the table of actions.
//!
//! ```text
//!  help   / searches  esc closes  pgdn scrolls           seeded
//! ── time ────────────────────── ── incidents ─────────────────
//!   space        pause, go on      a            acknowledge
//! ── signs ─────────────────────────────────────────────────────
//!   ▲ ROOT       it began here
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};

use super::pen::{Canvas, columns, cut, part, span, width};
use super::top::SEEDED;
use crate::console::action::{Binding, TABLE, Topic};
use crate::console::app::Model;
use crate::console::theme::{State, Theme};

/// Cells of the keys, and of a whole column of the help.
const KEYS: u16 = 11;
const COLUMN: u16 = 40;
/// What stands for no flag, Z_c, Z_a and both; and on a terminal that knows only ASCII.
const FLAGS: &str = "· ▀ ▄ █";
const FLAGS_ASCII: &str = "· c a #";
const LEGEND: [(&str, &str); 14] = [
    ("▂▃▄▆█", "against a limit, at ▄"),
    ("two rows", "the limit is between"),
    (FLAGS, "no flag, Z_c, Z_a, both"),
    ("1 to 9", "grade of the symbol sent"),
    ("?", "missing: no value came"),
    ("↑ ↓ ↕", "beyond its scale"),
    ("┃", "now; reversed: looked at"),
    ("S/b", "evidence: alarm from 1 on"),
    ("r_c r_a", "residual: own, with others"),
    ("τ", "threshold of a distance"),
    ("ε δ", "less is more private"),
    ("-", "a flag that would be gone"),
    ("▵ ▿", "alarm on trial: new, gone"),
    ("T", "an attack, where shown (t)"),
];

/// Draws the help over `area`, scrolled by `skip` lines as far as there is need.
pub(crate) fn draw(model: &Model, skip: usize, area: Rect, canvas: &mut Canvas) {
    let theme = &model.theme;
    Clear.render(area, canvas.buffer);
    canvas.buffer.set_style(part(area, 0, 1), theme.cursor);
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
        canvas.put(area, room + 2, 0, mark, theme.cursor);
    }
    canvas.put(area, 1, 0, &cut(&title, room), theme.cursor);
    let body = part(area, 1, u16::MAX);
    let count = usize::from((area.width / COLUMN).clamp(1, 4));
    let all = shared(sections(model, theme), count);
    let longest = all.iter().map(Vec::len).max().unwrap_or(0);
    let skip = skip.min(longest.saturating_sub(usize::from(body.height)));
    let cells = body.width / count as u16;
    for (at, column) in all.iter().enumerate() {
        let width = if at + 1 < count { cells.saturating_sub(1) } else { body.width };
        let area = columns(body, at as u16 * cells, width);
        for (y, entry) in (0..body.height).zip(column.iter().skip(skip)) {
            entry.draw(part(area, y, 1), canvas);
        }
    }
}
#[derive(Debug, Clone)]
enum HelpLine {
    Heading(&'static str),
    Row(String, String, Style),
}

impl HelpLine {
    fn draw(&self, area: Rect, canvas: &mut Canvas) {
        let theme = canvas.theme;
        match self {
            HelpLine::Heading(text) => _ = canvas.panel(area, [span(*text, theme.strong)]),
            HelpLine::Row(keys, what, style) => {
                let x = canvas.put(area, 2, 0, keys, *style).max(KEYS + 2) + 1;
                canvas.cut(area, x, 0, what, theme.text);
            }
        }
    }

    fn contains(&self, search: &str) -> bool {
        match self {
            HelpLine::Heading(_) => false,
            HelpLine::Row(keys, what, _) => {
                keys.to_lowercase().contains(search) || what.to_lowercase().contains(search)
            }
        }
    }
}

/// Every topic with its rows, and the signs; only rows that are searched for.
fn sections(model: &Model, theme: &Theme) -> Vec<Vec<HelpLine>> {
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
                section.retain(|entry| {
                    matches!(entry, HelpLine::Heading(_)) || entry.contains(&search)
                });
            }
            section
        })
        .filter(|section| section.len() > 1)
        .collect()
}

fn section(heading: &'static str, rows: Vec<HelpLine>) -> Vec<HelpLine> {
    [HelpLine::Heading(heading)].into_iter().chain(rows).collect()
}

fn row(model: &Model, binding: &Binding) -> HelpLine {
    let keys = model.keymap.keys(binding.action);
    let keys: Vec<String> = keys.iter().map(|chord| model.theme.key(*chord)).collect();
    HelpLine::Row(keys.join(" "), binding.what.to_owned(), model.theme.strong)
}

fn verdicts(theme: &Theme) -> Vec<HelpLine> {
    let told = [
        (State::Root, "it began here"),
        (State::RootUnseen, "the same, not ack. yet"),
        (State::Unknown, "began at one of several"),
        (State::Effect, "follows a root; no alarm"),
        (State::Single, "no other is affected"),
        (State::Returned, "returned, not ack."),
        (State::Latched, "a change that stays"),
        (State::Shelved, "silenced for a time"),
        (State::OutOfService, "until it is put back"),
        (State::NotJudged, "data is not judged yet"),
        (State::Missing, "sends no data"),
    ];
    told.into_iter()
        .map(|(state, what)| {
            let mark = theme.mark(state);
            HelpLine::Row(format!("{} {}", mark.glyph, mark.word), what.to_owned(), mark.style)
        })
        .collect()
}

fn legend(theme: &Theme) -> Vec<HelpLine> {
    let sign = |sign| if sign == FLAGS && theme.terminal.ascii { FLAGS_ASCII } else { sign };
    let row = |(of, what): (&'static str, &str)| {
        HelpLine::Row(sign(of).to_owned(), what.to_owned(), theme.strong)
    };
    LEGEND.into_iter().map(row).collect()
}

/// Sections shared out among columns, in their order, so that no column is much longer than it must
/// be.
fn shared(sections: Vec<Vec<HelpLine>>, count: usize) -> Vec<Vec<HelpLine>> {
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
    let mut columns: Vec<Vec<HelpLine>> = vec![Vec::new()];
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
