//! A knob between its ends.
//!
//! ```text
//!  ├────────●────○────┤      ● as it stands, ○ as it would be
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sign;
use crate::console::theme::Theme;

/// A knob between its ends; places are shares of the way from the lower to the upper one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauge<'a> {
    pub at: f64,
    pub trial: Option<f64>,
    pub held: bool,
    pub theme: &'a Theme,
}

impl Gauge<'_> {
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.width < 3 || area.height == 0 {
            return;
        }
        let place = |share: f64| area.x + 1 + cell(share, area.width - 2);
        let (stands, trial) = (place(self.at), self.trial.map(place));
        let last = area.width - 1;
        // A mark has its own style alone: cells are drawn once.
        for at in (0..=last).filter(|at| ![Some(stands), trial].contains(&Some(area.x + at))) {
            let glyph = match at {
                0 => "├",
                at if at == last => "┤",
                _ => "─",
            };
            sign(buffer, area.x + at, area.y, glyph, self.theme.frame);
        }
        let style = if self.held { self.theme.label } else { self.theme.strong };
        if trial != Some(stands) {
            sign(buffer, stands, area.y, "●", style);
        }
        if let Some(trial) = trial {
            sign(buffer, trial, area.y, "○", self.theme.cursor);
        }
    }
}

/// The cell of `cells` that a share of the way falls on.
fn cell(share: f64, cells: u16) -> u16 {
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    ((share * f64::from(cells)) as u16).min(cells.saturating_sub(1))
}

/// Where `value` stands between two ends, by the logarithm: ε and times span decades.
pub(crate) fn logarithmic(value: f64, low: f64, high: f64) -> f64 {
    ((value / low).ln() / (high / low).ln()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::console::theme::{Terminal, ThemeChoice};
    use crate::console::widget::drawn;

    fn knob(at: f64, trial: Option<f64>, width: u16) -> String {
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        let knob = Gauge { at, trial, held: true, theme: &theme };
        drawn::rows(width, 1, |area, buffer| knob.draw(area, buffer)).concat()
    }

    #[test]
    fn a_knob_stands_between_its_ends() {
        assert_eq!(knob(0.0, None, 7), "├●────┤");
        assert_eq!(knob(1.0, Some(0.0), 7), "├○───●┤");
        assert_eq!(knob(f64::NAN, None, 2), "  ");
    }

    proptest! {
        #[test]
        fn a_knob_is_always_to_be_seen(at in any::<f64>(), width in 3_u16..60) {
            prop_assert!(knob(at, None, width).contains('●'));
        }
    }
}
