//! A quantity against its limit: τ for a distance, 1 for evidence.
//!
//! ```text
//!  one row:            ▂▂▂▃▂▄▇▇▇??▃     the limit is ▄, the full height twice the limit
//!  two rows:           ▁▁▁▁▁▁▃▇▇▁▁▁▁    the limit is the thin line between the rows:
//!                      ▂▂▃▂▅███???▃     whatever stands higher in the upper row is above it, and bright
//! ```
//!
//! The uppermost row is never full, so that a bar does not touch the trend above it.
//!
//! A column shows the largest value of its stretch of time. `?` is missing, nothing is outside.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::sign;
use crate::console::glyph::{BLOCKS, MISSING};
use crate::console::theme::Theme;
use crate::history::Bucket;

const STEPS: usize = BLOCKS.len();

#[derive(Debug)]
pub(crate) struct Level<'a> {
    pub columns: &'a [Bucket],
    /// What must not be passed; without it the full height is the largest value of all.
    pub limit: Option<f32>,
    pub over: Style,
    pub theme: &'a Theme,
}

impl Level<'_> {
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        let all = usize::from(area.height) * STEPS;
        let largest = match self.limit {
            Some(limit) => limit,
            None => self.columns.iter().fold(0.0, |top: f32, bucket| match bucket {
                Bucket::Values { high, .. } => top.max(*high),
                Bucket::Outside | Bucket::Missing => top,
            }),
        };
        // The limit lies between two rows only where their number is even.
        let split = self.limit.is_some() && area.height > 1 && area.height.is_multiple_of(2);
        let above = if split { area.height / 2 } else { 0 };
        for (column, bucket) in area.columns().zip(self.columns) {
            match *bucket {
                Bucket::Outside => {}
                Bucket::Missing => {
                    sign(buffer, column.x, column.bottom() - 1, MISSING, self.theme.missing);
                }
                Bucket::Values { high, whole, .. } => {
                    let times = ratio(high, largest);
                    let filled = match self.limit {
                        // The last eighth stays free between two trends.
                        Some(_) => steps(times, all).min(all.saturating_sub(1)),
                        None => ((times * all as f32).ceil() as usize).clamp(1, all.max(1)),
                    };
                    // Being above the limit is shown first, a hole next.
                    let style = match whole {
                        _ if self.limit.is_some() && times > 1.0 => self.over,
                        true if split => self.theme.frame,
                        true => self.theme.trend,
                        false => self.theme.missing,
                    };
                    // Only what is above the limit is bright, where there is a row for it.
                    let below =
                        Rect { y: column.y + above, height: column.height - above, ..column };
                    let most = usize::from(below.height) * STEPS;
                    let bright = above > 0 && times > 1.0 && whole;
                    fill(
                        filled.min(most),
                        if bright { self.theme.frame } else { style },
                        below,
                        buffer,
                    );
                    fill(
                        filled.saturating_sub(most),
                        style,
                        Rect { height: above, ..column },
                        buffer,
                    );
                }
            }
            if above > 0 && *bucket != Bucket::Outside {
                let y = column.y + above - 1;
                if buffer[(column.x, y)].symbol() == " " {
                    sign(buffer, column.x, y, LINE, self.theme.frame);
                }
            }
        }
    }
}

/// The thin line at the limit.
const LINE: &str = BLOCKS[0];
/// Eighths of a row that what is above the limit takes at least: more than the line.
const ABOVE: usize = 2;

/// Fills `steps` eighths of a row, from the bottom of a column up.
pub(super) fn fill(steps: usize, style: Style, column: Rect, buffer: &mut Buffer) {
    let mut left = steps;
    for y in (column.top()..column.bottom()).rev() {
        let Some(top) = left.min(STEPS).checked_sub(1) else { break };
        sign(buffer, column.x, y, BLOCKS[top], style);
        left = left.saturating_sub(STEPS);
    }
}

/// `value` in limits; 0 where the limit is no limit.
pub(crate) fn ratio(value: f32, limit: f32) -> f32 {
    let ratio = value / limit;
    if ratio.is_nan() || limit <= 0.0 { 0.0 } else { ratio.max(0.0) }
}

/// Steps of `all` that a bar of `ratio` limits takes: half of them at the limit, never more below
/// it, never fewer above it, and at least one, so that a value is not taken for none.
fn steps(ratio: f32, all: usize) -> usize {
    let half = all / 2;
    if ratio > 1.0 {
        let above = ((ratio - 1.0) * half as f32).ceil() as usize;
        // In one row there is no other line to distinguish it from.
        let least = if all > STEPS { ABOVE } else { 1 };
        half + above.clamp(least.min(all - half), (all - half).max(1))
    } else {
        ((ratio * half as f32).round() as usize).clamp(1, half.max(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::console::theme::{Terminal, ThemeChoice};
    use crate::console::widget::drawn;

    fn value(high: f32) -> Bucket {
        Bucket::Values { low: 0.0, high, whole: true }
    }

    fn rows(columns: &[Bucket], limit: f32, height: u16) -> Vec<String> {
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        drawn::rows(columns.len() as u16, height, |area, buffer| {
            Level { columns, limit: Some(limit), over: theme.over, theme: &theme }
                .draw(area, buffer);
        })
    }

    #[test]
    fn in_one_row_the_limit_stands_at_half_the_height() {
        let columns = [value(0.0), value(1.0), value(2.0), value(2.01), value(4.0), value(9.0)];
        assert_eq!(rows(&columns, 2.0, 1), ["▁▂▄▅▇▇"]);
    }

    #[test]
    fn in_two_rows_the_limit_is_the_line_between_them() {
        let columns =
            [value(0.5), value(1.0), value(1.01), value(2.5), Bucket::Missing, Bucket::Outside];
        assert_eq!(rows(&columns, 1.0, 2), ["▁▁▂▇▁ ", "▄███? "]);
    }

    #[test]
    fn without_a_limit_the_largest_value_fills_the_height() {
        let columns = [value(1.0), value(4.0), value(0.0)];
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        let level = Level { columns: &columns, limit: None, over: theme.over, theme: &theme };
        assert_eq!(drawn::rows(3, 1, |a, b| level.draw(a, b)), ["▂█▁"]);
    }

    #[test]
    fn a_limit_that_says_nothing_is_never_passed() {
        for limit in [f32::INFINITY, f32::NAN, 0.0, -1.0] {
            assert_eq!(rows(&[value(5.0)], limit, 2), ["▁", "▁"]);
        }
    }

    proptest! {
        #[test]
        fn the_upper_half_is_empty_exactly_while_all_is_well(
            high in 0.0_f32..1e6, limit in 1e-3_f32..1e3, half in 1_u16..4,
        ) {
            let rows = rows(&[value(high)], limit, 2 * half);
            let upper = &rows[..usize::from(half)];
            let empty = |row: &String| row == " " || row == LINE;
            prop_assert_eq!(upper.iter().all(empty), ratio(high, limit) <= 1.0);
        }
    }
}
