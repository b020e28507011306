//! A cell of a matrix of strengths.
//!
//! ```text
//!  ░░2  ▒▒4  ▓▓6  ██9        the darker the stronger; the digit is tenths
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::sign;
use crate::console::glyph::SHADES;

/// Draws `strength`, from 0 to 1, into `area`: shades with the digit of its tenths at the end.
pub(crate) fn draw(strength: f64, style: Style, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.is_empty() || strength.is_nan() {
        return;
    }
    let tenths = (strength.clamp(0.0, 1.0) * 10.0 + 1e-9) as usize;
    let shade = SHADES[(tenths * SHADES.len() / 10).min(SHADES.len() - 1)];
    for x in area.left()..area.right() - 1 {
        sign(buffer, x, area.y, shade, style);
    }
    let digit = char::from_digit(tenths.min(9) as u32, 10).unwrap_or('?');
    sign(buffer, area.right() - 1, area.y, digit.encode_utf8(&mut [0; 4]), style);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::widget::drawn;

    #[test]
    fn the_stronger_the_darker() {
        let drawn = |strength: f64| {
            drawn::rows(3, 1, |area, buffer| draw(strength, Style::new(), area, buffer)).concat()
        };
        let all: Vec<String> = [0.0, 0.2, 0.3, 0.5, 0.8, 1.0, 7.0].map(drawn).to_vec();
        assert_eq!(all, ["░░0", "░░2", "▒▒3", "▓▓5", "██8", "██9", "██9"]);
        assert_eq!(drawn(f64::NAN), "   ");
    }
}
