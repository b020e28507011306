//! Writing into a part of the screen without ever leaving it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

/// Cells that `text` takes.
#[must_use]
pub fn width(text: &str) -> u16 {
    Span::raw(text).width().min(usize::from(u16::MAX)) as u16
}

/// Writes `text` at column `x`, row `y` of `area`, cut where the area ends; returns the column after
/// it.
pub fn put(buffer: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
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
pub fn put_right(buffer: &mut Buffer, area: Rect, end: u16, y: u16, text: &str, style: Style) {
    put(buffer, area, end.saturating_sub(width(text)), y, text, style);
}

/// `text` in at most `room` cells, with an ellipsis where it was cut.
#[must_use]
pub fn cut(text: &str, room: u16) -> String {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
