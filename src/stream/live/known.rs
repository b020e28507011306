//! Which values of the past have come: one that comes again is doubled, not one of a clock that went
//! back.
//!
//! A broker sends again what was not acknowledged when a connection was lost, and a server's history
//! overlaps with what it has sent. That may be thousands of rows.

/// Values that are remembered at most, over all tags: 4 MiB.
const VALUES: usize = 1 << 20;
/// Rows that are remembered at least, and at most.
const ROWS: std::ops::RangeInclusive<usize> = 128..=65_536;
/// The mark of a value that has not come, and of one that came and cannot be used.
const NONE: u32 = 0;
const BAD: u32 = 1;

/// A table by the number of the row: a row takes the place of one that is much older.
#[derive(Debug)]
pub(super) struct Known {
    rows: Vec<i64>,
    /// A mark a value, row by row.
    marks: Vec<u32>,
    width: usize,
}

impl Known {
    pub(super) fn new(width: usize) -> Self {
        let rows = (VALUES / width.max(1)).clamp(*ROWS.start(), *ROWS.end());
        Self { rows: vec![i64::MIN; rows], marks: vec![NONE; rows * width], width }
    }

    fn place(&self, row: i64) -> usize {
        row.rem_euclid(self.rows.len().cast_signed() as i64) as usize
    }

    /// Remembers a row: its number by the stamps of the source, and the values that came.
    pub(super) fn remember(&mut self, row: i64, values: &[f64], came: &[bool]) {
        let place = self.place(row);
        self.rows[place] = row;
        let marks = &mut self.marks[place * self.width..][..self.width];
        for (mark, (value, came)) in marks.iter_mut().zip(values.iter().zip(came)) {
            *mark = if *came { mark_of(*value) } else { NONE };
        }
    }

    fn marks(&self, row: i64) -> Option<&[u32]> {
        let place = self.place(row);
        (self.rows[place] == row).then(|| &self.marks[place * self.width..][..self.width])
    }

    /// Whether this very value came before. One that cannot be used is known where any came.
    pub(super) fn has(&self, row: i64, tag: usize, value: f64) -> bool {
        let mark = self.marks(row).map_or(NONE, |marks| marks[tag]);
        mark != NONE && (value.is_nan() || mark == mark_of(value))
    }

    /// Whether all values of a row came before.
    pub(super) fn has_row(&self, row: i64, values: &[f64]) -> bool {
        self.marks(row).is_some_and(|marks| {
            let mut there = marks.iter().zip(values).filter(|(_, value)| value.is_finite());
            there.all(|(mark, value)| *mark == mark_of(*value))
        })
    }
}

/// A short form of a value: two different values have the same one in four thousand million.
fn mark_of(value: f64) -> u32 {
    if value.is_nan() {
        return BAD;
    }
    let mixed = value.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as u32).max(BAD + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_under_its_own_row_and_tag_only() {
        let mut known = Known::new(2);
        known.remember(-5, &[1.5, f64::NAN], &[true, false]);
        assert!(known.has(-5, 0, 1.5) && known.has(-5, 0, f64::NAN));
        assert!(!known.has(-5, 0, 1.25) && !known.has(-4, 0, 1.5));
        assert!(!known.has(-5, 1, 1.5) && !known.has(-5, 1, f64::NAN), "it never came");
        assert!(known.has_row(-5, &[1.5, f64::NAN]) && !known.has_row(-5, &[1.5, 0.0]));
    }

    #[test]
    fn old_rows_make_room_for_new_ones() {
        let mut known = Known::new(1);
        for row in 0..100_000_i64 {
            known.remember(row, &[row as f64], &[true]);
        }
        assert!(known.has(99_999, 0, 99_999.0) && known.has(40_000, 0, 40_000.0));
        assert!(!known.has(30_000, 0, 30_000.0));
        // However many tags there are, the table stays small.
        assert_eq!(Known::new(100_000).rows.len(), 128);
    }
}
