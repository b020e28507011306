//! The flags or symbols of a client over time, a cell a column.
//!
//! ```text
//!  one row, flags:    ····cc###aa??··      · none, c only Z_c, a only Z_a, # both, ? nothing came
//!  two rows, flags:   ····cccccc··??··     Z_c above,
//!                     ······aaaaa??··      Z_a below
//!  symbols:           ····1123321··        grades from calm to certain
//! ```
//!
//! A column shows the most alarming of its stretch of time. With a threshold
//! on trial a cell shows what it would be, in the ghost's style where that differs; `-` is a flag
//! that would be gone.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::sign;
use crate::console::glyph::{MISSING, NONE};
use crate::console::theme::Theme;
use crate::console::watched::FlagCell;
use crate::evidence::threshold::Flags;

#[derive(Debug)]
pub(crate) struct FlagGrid<'a> {
    pub columns: &'a [FlagCell],
    /// The style of a raised flag or a grade.
    pub raised: Style,
    pub theme: &'a Theme,
}

impl FlagGrid<'_> {
    /// Draws it into one row, or into two with Z_c above Z_a.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        let split = area.height > 1;
        for (column, said) in area.columns().zip(self.columns) {
            let (x, y) = (column.x, column.y);
            match *said {
                FlagCell::Outside => {}
                FlagCell::Missing => {
                    let rows = if split { 2 } else { 1 };
                    (y..y + rows).for_each(|y| sign(buffer, x, y, MISSING, self.theme.missing));
                }
                FlagCell::Grade(grade) => self.put(grade_sign(grade), false, x, y, buffer),
                FlagCell::Flags { stands, trial } if split => {
                    let would_be = trial.unwrap_or(stands);
                    let upper = one("c", stands.z_c, would_be.z_c);
                    let lower = one("a", stands.z_a, would_be.z_a);
                    self.put(upper, stands.z_c != would_be.z_c, x, y, buffer);
                    self.put(lower, stands.z_a != would_be.z_a, x, y + 1, buffer);
                }
                FlagCell::Flags { stands, trial } => {
                    let sign = sign_of(trial.unwrap_or(stands));
                    let gone = trial.is_some() && sign == NONE;
                    self.put(if gone { GONE } else { sign }, trial.is_some(), x, y, buffer);
                }
            }
        }
    }

    fn put(&self, glyph: &'static str, ghost: bool, x: u16, y: u16, buffer: &mut Buffer) {
        let style = match glyph {
            _ if ghost => self.theme.ghost,
            NONE => self.theme.frame,
            _ => self.raised,
        };
        sign(buffer, x, y, glyph, style);
    }
}

const GONE: &str = "-";

fn one(letter: &'static str, stands: bool, would_be: bool) -> &'static str {
    match (stands, would_be) {
        (_, true) => letter,
        (true, false) => GONE,
        (false, false) => NONE,
    }
}

pub(crate) fn sign_of(flags: Flags) -> &'static str {
    match (flags.z_c, flags.z_a) {
        (true, true) => "#",
        (true, false) => "c",
        (false, true) => "a",
        (false, false) => NONE,
    }
}

fn grade_sign(grade: u8) -> &'static str {
    const GRADES: [&str; 10] = [NONE, "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    GRADES[usize::from(grade.min(9))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::{Choice, Terminal};
    use crate::console::widget::drawn;
    use crate::history::Bucket;

    fn rows(columns: &[FlagCell], height: u16) -> Vec<String> {
        let theme = Theme::new(Choice::Mono, Terminal::default());
        drawn::rows(columns.len() as u16, height, |area, buffer| {
            FlagGrid { columns, raised: theme.over, theme: &theme }.draw(area, buffer);
        })
    }

    fn stands(c: bool, a: bool) -> FlagCell {
        FlagCell::Flags { stands: Flags::new(c, a), trial: None }
    }

    #[test]
    fn every_pair_has_a_sign_of_its_own() {
        let all = [
            stands(false, false),
            stands(true, false),
            stands(false, true),
            stands(true, true),
            FlagCell::Missing,
            FlagCell::Outside,
            FlagCell::Grade(3),
        ];
        assert_eq!(rows(&all, 1), ["·ca#? 3"]);
        assert_eq!(rows(&all, 2), ["·c·c? 3", "··aa?  "]);
    }

    #[test]
    fn a_threshold_on_trial_shows_what_would_come_and_what_would_go() {
        let (on, off) = (stands(true, false), stands(false, false));
        let columns = [
            stands(true, false).on_trial(off),
            stands(false, false).on_trial(on),
            stands(true, false).on_trial(on),
            stands(true, true).on_trial(FlagCell::Missing),
        ];
        assert_eq!(rows(&columns, 1), ["-cc#"]);
        assert!(matches!(columns[2], FlagCell::Flags { trial: None, .. }), "nothing would change");
    }

    #[test]
    fn of_several_grades_the_highest_is_said() {
        assert_eq!(
            FlagCell::grade(Bucket::Values { low: 0.0, high: 2.0, whole: true }),
            FlagCell::Grade(2)
        );
    }
}
