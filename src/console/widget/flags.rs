//! The flags or symbols of a client over time, a cell a column.
//!
//! ```text
//!  flags:             ····▀▀███▄▄??··      · none, ▀ only Z_c, ▄ only Z_a, █ both, ? nothing came
//!  in ASCII:          ....cc###aa??..      letters instead of halves
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
    /// Draws it into the last row of `area`: Z_c is the upper half of a cell, Z_a the lower one.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        for (column, said) in area.columns().zip(self.columns) {
            let (x, y) = (column.x, column.bottom().saturating_sub(1));
            match *said {
                FlagCell::Outside => {}
                FlagCell::Missing => sign(buffer, x, y, MISSING, self.theme.missing),
                FlagCell::Grade(grade) => self.put(grade_sign(grade), false, x, y, buffer),
                FlagCell::Flags { stands, trial } => {
                    let sign = halves(trial.unwrap_or(stands), self.theme.terminal.ascii);
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

/// Both flags in one cell.
fn halves(flags: Flags, ascii: bool) -> &'static str {
    match (flags.z_c, flags.z_a) {
        _ if ascii => sign_of(flags),
        (true, true) => "█",
        (true, false) => "▀",
        (false, true) => "▄",
        (false, false) => NONE,
    }
}

/// Both flags as a letter.
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
    use crate::console::theme::{Terminal, ThemeChoice};
    use crate::console::widget::drawn;
    use crate::history::Bucket;

    fn rows(columns: &[FlagCell], height: u16) -> Vec<String> {
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
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
        assert_eq!(rows(&all, 1), ["·▀▄█? 3"]);
        assert_eq!(rows(&all, 2), ["       ", "·▀▄█? 3"]);
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
        assert_eq!(rows(&columns, 1), ["-▀▀█"]);
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
