//! Values whose stamps do not fit the clock so far: wrong stamps, late ones, or a clock that moved.
//!
//! They are kept until it is known which. Nothing that belongs to a clock that moved is lost.

use std::collections::VecDeque;
use std::time::Duration;

use super::assembler::{Counts, OpenRow, Piece, believed};

/// Rows far away that agree with each other and are believed.
const FAR_ROWS: usize = 2;
/// Rows in the recent past that agree with each other and are believed: late values come in bursts.
const NEAR_ROWS: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    rows: VecDeque<OpenRow>,
    /// Pieces that are late by a little, and pieces that are far away.
    late: u64,
    far: u64,
    /// They are far away, not late by a little.
    is_far: bool,
}

impl Elsewhere {
    /// Keeps a piece of a row, which has a number here and one by its stamp. One that does not follow
    /// the others takes their place, and they are counted as late or wrongly stamped.
    pub(super) fn add(
        &mut self,
        [slot, stamped]: [i64; 2],
        is_far: bool,
        piece: Piece<'_>,
        width: usize,
        arrived: Duration,
        counts: &mut Counts,
    ) {
        let follows = self.rows.back().is_some_and(|row| (row.slot..=row.slot + 2).contains(&slot));
        if !self.rows.is_empty() && !follows {
            let (late, wrong) = self.give_up();
            (counts.late, counts.wrong_stamp) = (counts.late + late, counts.wrong_stamp + wrong);
        }
        self.is_far = if self.rows.is_empty() { is_far } else { self.is_far && is_far };
        if self.rows.back().is_none_or(|row| row.slot != slot) {
            let (values, answered) = (vec![f64::NAN; width], vec![false; width]);
            let since = arrived;
            let row = OpenRow { slot, stamped, since, values, answered, whole: false };
            self.rows.push_back(row);
        }
        let Some(row) = self.rows.back_mut() else { return };
        let is_doubled = match piece {
            Piece::Value(tag, ..) => row.answered[tag],
            Piece::Row(_) => row.whole,
        };
        if is_doubled {
            counts.doubled += 1;
            return;
        }
        *(if is_far { &mut self.far } else { &mut self.late }) += 1;
        match piece {
            Piece::Value(tag, value, quality) => {
                // It is counted as late or wrongly stamped, or not at all.
                row.values[tag] = believed(value, quality, &mut Counts::default());
                row.answered[tag] = true;
            }
            Piece::Row(values) => {
                row.values.copy_from_slice(values);
                row.answered.fill(true);
                row.whole = true;
            }
        }
    }

    /// Whether enough rows agree with each other.
    pub(super) fn is_believed(&self) -> bool {
        self.rows.len() >= if self.is_far { FAR_ROWS } else { NEAR_ROWS }
    }

    pub(super) fn first(&self) -> Option<i64> {
        self.rows.front().map(|row| row.slot)
    }

    pub(super) fn move_by(&mut self, slots: i64) {
        for row in &mut self.rows {
            row.slot += slots;
        }
    }

    /// The next row of the clock that is believed.
    pub(super) fn take(&mut self) -> Option<OpenRow> {
        let row = self.rows.pop_front();
        if self.rows.is_empty() {
            (self.late, self.far) = (0, 0);
        }
        row
    }

    /// Forgets what is kept; how many pieces were late, and how many had a wrong stamp.
    pub(super) fn give_up(&mut self) -> (u64, u64) {
        self.rows.clear();
        (std::mem::take(&mut self.late), std::mem::take(&mut self.far))
    }
}
