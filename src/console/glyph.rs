//! The signs of the screen, and what stands for them where a terminal knows only ASCII.
//!
//! Views draw the signs below. On a terminal without them the finished picture is put into ASCII cell
//! by cell, so that no view can forget to: whatever has no counterpart becomes a question mark.

use ratatui::buffer::Buffer;

pub(crate) const ROOT: &str = "▲";
pub(crate) const UNKNOWN: &str = "△";
pub(crate) const EFFECT: &str = "↳";
pub(crate) const SINGLE: &str = "◆";
pub(crate) const RETURNED: &str = "▽";
pub(crate) const LATCHED: &str = "■";
pub(crate) const SHELVED: &str = "z";
pub(crate) const OUT: &str = "x";
pub(crate) const NOT_JUDGED: &str = "…";
pub(crate) const MISSING: &str = "?";
pub(crate) const CHOSEN: &str = "▸";
pub(crate) const NOW: &str = "┃";
pub(crate) const NONE: &str = "·";
pub(crate) const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
pub(crate) const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];

/// Sign and counterpart, each one cell wide.
#[rustfmt::skip]
const COUNTERPARTS: &[(&str, &str)] = &[
    (ROOT, "^"), (UNKNOWN, "A"), (EFFECT, "\\"), (SINGLE, "o"), (RETURNED, "v"), (LATCHED, "L"),
    (CHOSEN, ">"), (NOW, "|"), (NONE, "."),
    ("▁", "."), ("▂", ":"), ("▃", "-"), ("▄", "="), ("▅", "+"), ("▆", "*"), ("▇", "#"), ("█", "@"), ("▀", "c"),
    ("▵", "+"), ("▿", "_"), ("═", "="), ("╭", "+"), ("╮", "+"), ("╰", "+"), ("╯", "+"),
    ("▶", ">"), ("◀", "<"), ("┄", "."),
    ("░", "."), ("▒", ":"), ("▓", "#"),
    ("─", "-"), ("━", "="), ("│", "|"), ("┤", "|"), ("├", "|"), ("┬", "+"), ("┴", "+"), ("┼", "+"),
    ("┌", "+"), ("┐", "'"), ("└", "+"), ("┘", ","), ("●", "O"), ("○", "o"), ("▴", "^"),
    // High and low: a caret would be taken for a root.
    ("↑", "'"), ("↓", ","), ("↕", "!"), ("→", ">"), ("←", "<"),
    ("…", "~"), ("‥", ":"), ("–", "-"), ("—", "-"), ("×", "x"), ("±", "~"), ("≤", "<"), ("≥", ">"),
    ("≠", "#"), ("∞", "8"), ("√", "V"), ("°", "o"), ("µ", "u"), ("μ", "u"), ("τ", "t"), ("ε", "e"),
    ("δ", "d"), ("σ", "s"), ("φ", "f"), ("λ", "l"), ("ρ", "r"), ("χ", "X"), ("Δ", "D"),
    ("x\u{302}", "x"), ("²", "2"), ("³", "3"), ("\u{fffd}", "?"),
];

/// `sign` itself, or what stands for it in ASCII.
pub(crate) fn ascii(sign: &str) -> &str {
    if sign.is_ascii() {
        return sign;
    }
    if let Some(dots) = braille(sign) {
        return dots;
    }
    COUNTERPARTS.iter().find(|(known, _)| *known == sign).map_or("?", |(_, plain)| plain)
}

fn braille(sign: &str) -> Option<&'static str> {
    const UPPER: u32 = 0x01 | 0x02 | 0x08 | 0x10;
    let dots = u32::from(sign.chars().next()?).checked_sub(0x2800).filter(|dots| *dots < 0x100)?;
    Some(match (dots & UPPER != 0, dots & !UPPER != 0) {
        (false, false) => " ",
        (true, false) => "'",
        (false, true) => ".",
        (true, true) => ":",
    })
}

pub(crate) fn plain(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let plain = ascii(cell.symbol()).to_owned();
            cell.set_symbol(&plain);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn the_cursor_and_an_effect_differ_in_ascii() {
        assert_ne!(ascii(CHOSEN), ascii(EFFECT));
    }

    #[test]
    fn a_counterpart_is_one_printable_ascii_character() {
        for (sign, plain) in COUNTERPARTS {
            assert!(plain.len() == 1 && plain.bytes().all(|b| b.is_ascii_graphic()), "{sign}");
            assert_eq!(ascii(sign), *plain, "{sign} stands in the list twice");
        }
    }

    #[test]
    fn heights_and_strengths_stay_apart() {
        for scale in [BLOCKS.as_slice(), SHADES.as_slice()] {
            let plain: Vec<&str> = scale.iter().map(|sign| ascii(sign)).collect();
            for (at, sign) in plain.iter().enumerate() {
                assert!(!plain[..at].contains(sign), "{plain:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_picture_can_be_put_into_ascii(text in "\\PC{0,40}") {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 1));
            buffer.set_stringn(0, 0, text, 20, Style::new());
            plain(&mut buffer);
            prop_assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
        }
    }
}
