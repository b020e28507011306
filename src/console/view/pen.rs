//! Writing into a part of the screen without ever leaving it.
//!
//! ratatui's `Layout`, `Line`, `Span` and `Block` are used as they are. Its `Paragraph` does not return the
//! lines that it breaks, which panels need to divide their room, and its `Table` cuts cells without an
//! ellipsis: hence [`wrapped`] and [`Canvas::cut`].

use std::borrow::Cow;
use std::mem;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Widget};

use crate::console::glyph::NONE;
use crate::console::mouse::{Hit, Target};
use crate::console::theme::Theme;
use crate::console::widget::heat;

/// Cells that `text` takes.
pub(crate) fn width(text: &str) -> u16 {
    Span::raw(text).width().min(usize::from(u16::MAX)) as u16
}

/// `text` in at most `room` cells, with an ellipsis where it was cut.
pub(crate) fn cut(text: &str, room: u16) -> Cow<'_, str> {
    if width(text) <= room {
        return text.into();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept) >= room {
            kept.pop();
            break;
        }
    }
    if room > 0 {
        kept.push('…');
    }
    kept.into()
}

/// The first of these texts that fits into `room` cells as a whole.
pub(crate) fn fitting(texts: impl IntoIterator<Item = String>, room: u16) -> Option<String> {
    texts.into_iter().find(|text| width(text) <= room)
}

/// The lines of `area` from row `y` on, at most `height` of them.
pub(crate) fn part(area: Rect, y: u16, height: u16) -> Rect {
    let y = y.min(area.height);
    Rect { y: area.y.saturating_add(y), height: height.min(area.height - y), ..area }
}

/// Cuts the first `height` rows off `area`.
pub(crate) fn take(area: &mut Rect, height: u16) -> Rect {
    let taken = part(*area, 0, height);
    *area = part(*area, height, u16::MAX);
    taken
}

/// Cuts the last `height` rows off `area`.
pub(crate) fn take_last(area: &mut Rect, height: u16) -> Rect {
    let height = height.min(area.height);
    area.height -= height;
    Rect { y: area.bottom(), height, ..*area }
}

/// The part of `area` that begins at column `x`, at most `width` cells wide.
pub(crate) fn columns(area: Rect, x: u16, width: u16) -> Rect {
    Rect { x: area.x.saturating_add(x), width, ..area }.intersection(area)
}

/// A picture being drawn: its cells, and what the mouse can do to them.
pub(crate) struct Canvas<'b> {
    pub buffer: &'b mut Buffer,
    pub theme: &'b Theme,
    pub hits: Vec<Hit>,
}

impl Canvas<'_> {
    pub(crate) fn hit(&mut self, area: Rect, target: Target) {
        self.hits.push(Hit { area, target });
    }

    /// Writes `text` at column `x`, row `y` of `area`; returns the column after it. What does not fit
    /// is left out.
    pub(crate) fn put(&mut self, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
        let inside = area.intersection(self.buffer.area);
        let (left, top) = (area.x.saturating_add(x), area.y.saturating_add(y));
        if !inside.contains(Position::new(left, top)) {
            return x;
        }
        let room = usize::from(inside.right() - left);
        let (end, _) = self.buffer.set_stringn(left, top, text, room, style);
        end - area.x
    }

    /// The same with an ellipsis where `text` does not fit.
    pub(crate) fn cut(&mut self, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
        self.put(area, x, y, &cut(text, area.width.saturating_sub(x)), style)
    }

    /// Writes `text` so that it ends before column `end`.
    pub(crate) fn right(&mut self, area: Rect, end: u16, y: u16, text: &str, style: Style) {
        self.put(area, end.saturating_sub(width(text)), y, text, style);
    }

    /// Writes a line of spans from column `x` of row `y` on, with an ellipsis where one does not fit.
    pub(crate) fn line(&mut self, area: Rect, x: u16, y: u16, line: &Line) -> u16 {
        line.iter()
            .fold(x, |x, span| self.cut(area, x, y, &span.content, line.style.patch(span.style)))
    }

    /// Writes `text` from column 1 on, wrapped, as far as `area` has rows.
    pub(crate) fn paragraph(&mut self, area: Rect, text: &str, style: Style) {
        for (y, line) in (0..area.height).zip(wrapped(text, area.width.saturating_sub(2))) {
            self.cut(area, 1, y, &line, style);
        }
    }

    /// A rule over `area` with a title in it; returns what is left below.
    pub(crate) fn panel<'a>(
        &mut self,
        area: Rect,
        title: impl IntoIterator<Item = Span<'a>>,
    ) -> Rect {
        let theme = self.theme;
        let mut x = self.put(area, 0, 0, "── ", theme.frame);
        for span in title {
            let room = area.width.saturating_sub(x + 1);
            x = self.put(area, x, 0, &cut(&span.content, room), span.style);
            x = self.put(area, x, 0, " ", theme.frame);
        }
        let rule = Block::new().borders(Borders::TOP).border_style(theme.frame);
        rule.render(columns(part(area, 0, 1), x, area.width), self.buffer);
        part(area, 1, u16::MAX)
    }

    /// A cell of a matrix, `cells` wide, that ends before column `end` of `row`.
    pub(crate) fn matrix_cell(&mut self, row: Rect, end: u16, cells: u16, cell: MatrixCell) {
        let (theme, start) = (self.theme, end.saturating_sub(cells));
        match cell {
            MatrixCell::Own => self.right(row, end, 0, "\\", theme.frame),
            MatrixCell::Nothing => self.right(row, end, 0, NONE, theme.frame),
            MatrixCell::Declared => self.right(row, end, 0, "d", theme.text),
            MatrixCell::Strength(strength, style) => {
                if strength < 0.0 {
                    self.put(row, start.saturating_sub(1), 0, "-", style);
                }
                heat::draw(strength.abs(), style, columns(row, start, cells), self.buffer);
            }
        }
    }

    /// Splits `area` in two side by side, with a rule between them where there is room for one.
    pub(crate) fn beside(&mut self, area: Rect, left: u16) -> [Rect; 2] {
        let split = [Constraint::Length(left), Constraint::Length(1), Constraint::Fill(1)];
        let [left, rule, right] = Layout::horizontal(split).areas(area);
        let border = Block::new().borders(Borders::LEFT).border_style(self.theme.frame);
        border.render(rule, self.buffer);
        [left, right]
    }

    /// Draws sections below each other, scrolled by `skip` lines as far as there is need; returns how
    /// many lines are left below.
    pub(crate) fn sections(&mut self, sections: &[Section], skip: usize, area: Rect) -> usize {
        let strong = self.theme.strong;
        let shown = sections.iter().filter(|section| !section.lines.is_empty());
        let all: usize = shown.clone().map(|section| 1 + section.lines.len()).sum();
        let skip = skip.min(all.saturating_sub(area.height.into()));
        let rows = shown.flat_map(|section| {
            [Err(&section.title)].into_iter().chain(section.lines.iter().map(Ok))
        });
        for (y, row) in (0..area.height).zip(rows.skip(skip)) {
            match row {
                Ok(line) => _ = self.line(area, 1, y, line),
                Err(title) => _ = self.panel(part(area, y, 1), [span(title, strong)]),
            }
        }
        all.saturating_sub(skip + usize::from(area.height))
    }
}

/// What stands in a cell of a matrix: of a row with itself, or how strong, from -1 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MatrixCell {
    Own,
    Nothing,
    Declared,
    Strength(f64, Style),
}
pub(crate) struct Section {
    pub title: String,
    pub lines: Vec<Line<'static>>,
}

pub(crate) fn span<'a>(text: impl Into<Cow<'a, str>>, style: Style) -> Span<'a> {
    Span::styled(text, style)
}

/// Spans that fit into `room` cells as a whole, in their order; the first `kept` stay in any case.
pub(crate) fn whole(spans: Vec<Span<'static>>, kept: usize, room: u16) -> Line<'static> {
    let mut used = 0_u16;
    let mut fits = |(at, span): &(usize, Span)| {
        let end = used.saturating_add(width(&span.content));
        let fits = *at < kept || end <= room;
        used = if fits { end } else { used };
        fits
    };
    spans.into_iter().enumerate().filter(|span| fits(span)).map(|(_, span)| span).collect()
}

/// `text` broken between words where it can be, and inside them where it must be.
pub(crate) fn wrapped(text: &str, room: u16) -> Vec<String> {
    indented(text, "", room)
}

/// The same with `indent` before every line but the first.
pub(crate) fn indented(text: &str, indent: &str, room: u16) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let room_of = |lines: &[String]| {
        let taken = if lines.is_empty() { 0 } else { width(indent) };
        room.saturating_sub(taken).max(1)
    };
    for mut word in text.split(' ') {
        let needed = width(&line).saturating_add(1).saturating_add(width(word));
        if !line.is_empty() && needed > room_of(&lines) {
            lines.push(mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // Only a word at the start of a line can still be too long.
        while width(word) > room_of(&lines) {
            let (fits, rest) = word.split_at(bytes_within(word, room_of(&lines)));
            lines.push(fits.to_owned());
            word = rest;
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, indent));
    lines
}

/// Bytes of `word` that fit into `room` cells: at least one character, so that breaking ends.
fn bytes_within(word: &str, room: u16) -> usize {
    let ends = word.char_indices().map(|(at, c)| at + c.len_utf8());
    let least = word.chars().next().map_or(0, char::len_utf8);
    ends.take_while(|end| width(&word[..*end]) <= room).last().unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::console::theme::{Terminal, ThemeChoice};

    #[test]
    fn long_words_are_broken_and_nothing_is_lost() {
        assert_eq!(
            wrapped("not found in /some/long/folder", 12),
            ["not found in", "/some/long/f", "older"]
        );
    }

    #[test]
    fn a_long_line_is_shown_whole_in_as_many_rows_as_it_needs() {
        let wrapped = |line: &str, room: u16| indented(line, "  ", room);
        assert_eq!(wrapped("opened #1", 20), ["opened #1"]);
        assert_eq!(wrapped("", 20), [""]);
        assert_eq!(wrapped("C has joined the run", 12), ["C has joined", "  the run"]);
        assert_eq!(wrapped("abcdefghijklm", 8), ["abcdefgh", "  ijklm"]);
        let line =
            "10:38  C asks to join with another model, 00000000000000ab: no client is calibrated";
        for room in 5..40 {
            let rows = wrapped(line, room);
            assert!(rows.iter().all(|row| width(row) <= room), "{room}: {rows:?}");
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&rows.concat()), letters(line));
        }
    }

    proptest! {
        #[test]
        fn every_line_fits(text in "[a-z /]{0,80}", room in 1_u16..30) {
            let lines = wrapped(&text, room);
            prop_assert!(lines.iter().all(|line| width(line) <= room));
            let letters = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }

        #[test]
        fn parts_never_leave_the_whole(
            area in (0_u16..9, 0_u16..9, 0_u16..30, 0_u16..30), y in 0_u16..40, h in 0_u16..40,
        ) {
            let area = Rect::new(area.0, area.1, area.2, area.3);
            let (mut top, mut bottom) = (area, area);
            let cut = [part(area, y, h), take(&mut top, h), take_last(&mut bottom, h), top, bottom];
            for part in cut {
                prop_assert!(part.y >= area.y && part.bottom() <= area.bottom());
            }
        }

        #[test]
        fn pieces_are_whole_or_absent(
            texts in prop::collection::vec("[a-z]{1,9}", 0..9), kept in 0_usize..3, room in 0_u16..40,
        ) {
            let spans: Vec<_> = texts.iter().map(|text| span(text.clone(), Style::new())).collect();
            let shown = whole(spans.clone(), kept, room);
            prop_assert!(shown.iter().all(|span| spans.contains(span)));
            let least: usize = spans.iter().take(kept).map(Span::width).sum();
            prop_assert!(shown.width() <= usize::from(room).max(least));
        }

        #[test]
        fn a_cut_text_fits(text in "\\PC{0,30}", room in 0_u16..40) {
            prop_assert!(width(&cut(&text, room)) <= room);
        }

        #[test]
        fn a_pen_stays_in_its_area(
            area in (0_u16..30, 0_u16..12, 0_u16..30, 0_u16..12),
            at in (0_u16..40, 0_u16..40), text in "\\PC{0,30}",
        ) {
            let whole = Rect::new(0, 0, 20, 8);
            let area = Rect::new(area.0, area.1, area.2, area.3);
            let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
            let mut buffer = Buffer::empty(whole);
            let mut canvas = Canvas { buffer: &mut buffer, theme: &theme, hits: Vec::new() };
            canvas.put(area, at.0, at.1, &text, Style::new());
            for position in whole.positions().filter(|p| !area.contains(*p)) {
                prop_assert_eq!(buffer[position].symbol(), " ");
            }
        }
    }
}
