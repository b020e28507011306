//! Writing into a part of the screen without ever leaving it.

use std::mem;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::console::theme::Theme;

/// Cells that `text` takes.
pub(crate) fn width(text: &str) -> u16 {
    Span::raw(text).width().min(usize::from(u16::MAX)) as u16
}

/// Writes `text` at column `x`, row `y` of `area`, cut where the area ends; returns the column after
/// it.
pub(crate) fn put(
    buffer: &mut Buffer,
    area: Rect,
    x: u16,
    y: u16,
    text: &str,
    style: Style,
) -> u16 {
    let inside = area.intersection(buffer.area);
    let (left, top) = (area.x.saturating_add(x), area.y.saturating_add(y));
    if inside.is_empty()
        || !(inside.left()..inside.right()).contains(&left)
        || !(inside.top()..inside.bottom()).contains(&top)
    {
        return x;
    }
    let room = usize::from(inside.right() - left);
    let (end, _) = buffer.set_stringn(left, top, text, room, style);
    end - area.x
}

/// The same, ending at column `end`.
pub(crate) fn put_right(
    buffer: &mut Buffer,
    area: Rect,
    end: u16,
    y: u16,
    text: &str,
    style: Style,
) {
    put(buffer, area, end.saturating_sub(width(text)), y, text, style);
}

/// `text` in at most `room` cells, with an ellipsis where it was cut.
pub(crate) fn cut(text: &str, room: u16) -> String {
    if width(text) <= room {
        return text.to_owned();
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
    kept
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

/// Splits `area` in two side by side, with a rule between them where there is room for one.
pub(crate) fn beside(buffer: &mut Buffer, area: Rect, left: u16, theme: &Theme) -> (Rect, Rect) {
    let left = left.min(area.width);
    let rule = u16::from(left < area.width);
    for y in 0..area.height {
        put(buffer, area, left, y, "│", theme.frame);
    }
    let right =
        Rect { x: area.x.saturating_add(left + rule), width: area.width - left - rule, ..area };
    (Rect { width: left, ..area }, right)
}

/// A rule over the first row of `area` with a heading in it, and a word at its right end.
pub(crate) fn heading(buffer: &mut Buffer, area: Rect, parts: &[(&str, Style)], theme: &Theme) {
    let mut x = 0;
    x = put(buffer, area, x, 0, "── ", theme.frame);
    for (text, style) in parts {
        let room = area.width.saturating_sub(x + 1);
        x = put(buffer, area, x, 0, &cut(text, room), *style);
        x = put(buffer, area, x, 0, " ", theme.frame);
    }
    for x in x..area.width {
        put(buffer, area, x, 0, "─", theme.frame);
    }
}

/// Pieces one after the other in row `y`, each with its style, cut at the right edge.
pub(crate) fn line(
    buffer: &mut Buffer,
    area: Rect,
    x: u16,
    y: u16,
    pieces: &[(String, Style)],
) -> u16 {
    pieces.iter().fold(x, |x, (text, style)| {
        let room = area.width.saturating_sub(x);
        put(buffer, area, x, y, &cut(text, room), *style)
    })
}

/// Pieces that fit into `room` cells as a whole, in their order; the first `kept` stay in any case.
pub(crate) fn whole(pieces: Vec<(String, Style)>, kept: usize, room: u16) -> Vec<(String, Style)> {
    let mut used = 0_u16;
    let mut fits = |(at, (text, _)): &(usize, (String, Style))| {
        let end = used.saturating_add(width(text));
        let fits = *at < kept || end <= room;
        used = if fits { end } else { used };
        fits
    };
    pieces.into_iter().enumerate().filter(|piece| fits(piece)).map(|(_, piece)| piece).collect()
}

/// `text` broken between words where it can be, and inside them where it must be.
pub(crate) fn wrapped(text: &str, room: u16) -> Vec<String> {
    let room = room.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for mut word in text.split(' ') {
        let needed = width(&line).saturating_add(1).saturating_add(width(word));
        if !line.is_empty() && needed > room {
            lines.push(mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // Only a word at the start of a line can still be too long.
        while width(word) > room {
            let (fits, rest) = word.split_at(bytes_within(word, room));
            lines.push(fits.to_owned());
            word = rest;
        }
        line.push_str(word);
    }
    lines.push(line);
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

    #[test]
    fn long_words_are_broken_and_nothing_is_lost() {
        assert_eq!(
            wrapped("not found in /some/long/folder", 12),
            ["not found in", "/some/long/f", "older"]
        );
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
            let pieces: Vec<_> = texts.iter().map(|text| (text.clone(), Style::new())).collect();
            let shown = whole(pieces.clone(), kept, room);
            prop_assert!(shown.iter().all(|piece| pieces.contains(piece)));
            let all: u16 = shown.iter().map(|(text, _)| width(text)).sum();
            let least: u16 = pieces.iter().take(kept).map(|(text, _)| width(text)).sum();
            prop_assert!(all <= room.max(least));
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
            let mut buffer = Buffer::empty(whole);
            put(&mut buffer, area, at.0, at.1, &text, Style::new());
            for position in whole.positions().filter(|p| !area.contains(*p)) {
                prop_assert_eq!(buffer[position].symbol(), " ");
            }
        }
    }
}
