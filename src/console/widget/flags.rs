//! What a client said at every moment, a cell a column.
//!
//! ```text
//!  one row, flags:    ····cc###aa??··      · none, c only Z_c, a only Z_a, # both, ? nothing came
//!  two rows, flags:   ····cccccc··??··     Z_c above,
//!                     ······aaaaa??··      Z_a below
//!  symbols:           ····1123321··        grades from calm to certain
//! ```
//!
//! Of all that was said in a column's stretch of time the most alarming is shown. With a threshold
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
use crate::history::Bucket;

/// What one column says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// Before the first step or after the last.
    Outside,
    /// It should have been said, and was not.
    Missing,
    /// A pair of flags, and what it would be under the threshold on trial.
    Flags {
        /// By the thresholds that stand.
        stands: Flags,
        /// As they would be, where that differs.
        trial: Option<Flags>,
    },
    Grade(u8),
}

impl Said {
    /// Flags as they stand.
    pub(crate) fn flags(stands: FlagCell) -> Self {
        match stands {
            FlagCell::Outside => Self::Outside,
            FlagCell::Missing => Self::Missing,
            FlagCell::Flags { z_c, z_a } => {
                Self::Flags { stands: Flags::new(z_c, z_a), trial: None }
            }
        }
    }

    /// A symbol from the history of grades.
    pub(crate) fn grade(grade: Bucket) -> Self {
        match grade {
            Bucket::Outside => Self::Outside,
            Bucket::Missing => Self::Missing,
            Bucket::Values { high, .. } => Self::Grade(high.round().clamp(0.0, 9.0) as u8),
        }
    }

    /// The same with what a threshold on trial makes of it.
    pub(crate) fn on_trial(self, would_be: FlagCell) -> Self {
        match (self, would_be) {
            (Self::Flags { stands, .. }, FlagCell::Flags { z_c, z_a }) => {
                let trial = Some(Flags::new(z_c, z_a)).filter(|flags| *flags != stands);
                Self::Flags { stands, trial }
            }
            (other, _) => other,
        }
    }
}

/// What a client said, from left to right.
#[derive(Debug)]
pub(crate) struct FlagGrid<'a> {
    pub(crate) columns: &'a [Said],
    /// The style of what is said, as the client stands.
    pub(crate) said: Style,
    pub(crate) theme: &'a Theme,
}

impl FlagGrid<'_> {
    /// Draws it into one row, or into two with Z_c above Z_a.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        let split = area.height > 1;
        for (column, said) in area.columns().zip(self.columns) {
            let (x, y) = (column.x, column.y);
            match *said {
                Said::Outside => {}
                Said::Missing => {
                    let rows = if split { 2 } else { 1 };
                    (y..y + rows).for_each(|y| sign(buffer, x, y, MISSING, self.theme.missing));
                }
                Said::Grade(grade) => self.put(grade_sign(grade), false, x, y, buffer),
                Said::Flags { stands, trial } if split => {
                    let would_be = trial.unwrap_or(stands);
                    let upper = one("c", stands.z_c, would_be.z_c);
                    let lower = one("a", stands.z_a, would_be.z_a);
                    self.put(upper, stands.z_c != would_be.z_c, x, y, buffer);
                    self.put(lower, stands.z_a != would_be.z_a, x, y + 1, buffer);
                }
                Said::Flags { stands, trial } => {
                    self.put(both(stands, trial), trial.is_some(), x, y, buffer);
                }
            }
        }
    }

    fn put(&self, glyph: &'static str, ghost: bool, x: u16, y: u16, buffer: &mut Buffer) {
        let style = match glyph {
            _ if ghost => self.theme.ghost,
            NONE => self.theme.frame,
            _ => self.said,
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

fn both(stands: Flags, trial: Option<Flags>) -> &'static str {
    match trial.unwrap_or(stands) {
        Flags { z_c: true, z_a: true } => "#",
        Flags { z_c: true, .. } => "c",
        Flags { z_a: true, .. } => "a",
        Flags { .. } if trial.is_some() => GONE,
        Flags { .. } => NONE,
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

    fn rows(columns: &[Said], height: u16) -> Vec<String> {
        let theme = Theme::new(Choice::Mono, Terminal::default());
        drawn::rows(columns.len() as u16, height, |area, buffer| {
            FlagGrid { columns, said: theme.over, theme: &theme }.draw(area, buffer);
        })
    }

    fn stands(c: bool, a: bool) -> Said {
        Said::Flags { stands: Flags::new(c, a), trial: None }
    }

    #[test]
    fn every_pair_has_a_sign_of_its_own() {
        let all = [
            stands(false, false),
            stands(true, false),
            stands(false, true),
            stands(true, true),
            Said::Missing,
            Said::Outside,
            Said::Grade(3),
        ];
        assert_eq!(rows(&all, 1), ["·ca#? 3"]);
        assert_eq!(rows(&all, 2), ["·c·c? 3", "··aa?  "]);
    }

    #[test]
    fn a_threshold_on_trial_shows_what_would_come_and_what_would_go() {
        let on = FlagCell::Flags { z_c: true, z_a: false };
        let off = FlagCell::Flags { z_c: false, z_a: false };
        let columns = [
            stands(true, false).on_trial(off),
            stands(false, false).on_trial(on),
            stands(true, false).on_trial(on),
            stands(true, true).on_trial(FlagCell::Missing),
        ];
        assert_eq!(rows(&columns, 1), ["-cc#"]);
        assert!(matches!(columns[2], Said::Flags { trial: None, .. }), "nothing would change");
    }

    #[test]
    fn of_several_grades_the_highest_is_said() {
        assert_eq!(
            Said::grade(Bucket::Values { low: 0.0, high: 2.0, whole: true }),
            Said::Grade(2)
        );
    }
}
