//! The stretch of time on the screen: columns of equal length, anchored to the clock.
//!
//! Because columns do not slide with each sample, a picture changes only where something happened.

use std::ops::RangeInclusive;

use jiff::Timestamp;

/// Seconds a column may last.
pub(crate) const ZOOMS: [i64; 12] = [1, 2, 5, 10, 30, 60, 300, 900, 1800, 3600, 14_400, 86_400];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    column_s: i64,
    /// Number of the rightmost column, counted from the epoch.
    right: i64,
    columns: i64,
}

impl Window {
    /// `columns` columns of `column_s` seconds that show `moment`, a moment of `data`. To its right
    /// stands as much as there is, but no more than a quarter of the window unless there is nothing
    /// to show at its left.
    pub(crate) fn around(
        moment: Timestamp,
        data: RangeInclusive<Timestamp>,
        column_s: i64,
        columns: u16,
    ) -> Self {
        let number = |time: Timestamp| time.as_second().div_euclid(column_s);
        let columns = i64::from(columns);
        let wanted = (number(moment) + columns / 4).max(number(*data.start()) + columns - 1);
        let right = wanted.min(number(*data.end()));
        Self { column_s, right, columns }
    }

    pub(crate) fn column_s(&self) -> i64 {
        self.column_s
    }

    /// First instant of column `at`, which may lie beyond the window.
    pub(crate) fn start(&self, at: i64) -> Timestamp {
        let number = self.right - self.columns + 1 + at;
        let second = number.saturating_mul(self.column_s);
        Timestamp::from_second(second).unwrap_or(if second < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        })
    }

    /// The edges of all half columns, from left to right: one more than there are halves.
    pub(crate) fn half_edges(&self) -> Vec<Timestamp> {
        let halves = (0..self.columns).flat_map(|at| {
            let (start, end) = (self.start(at), self.start(at + 1));
            [start, start + end.duration_since(start) / 2]
        });
        halves.chain([self.start(self.columns)]).collect()
    }

    pub(crate) fn column_of(&self, time: Timestamp) -> Option<u16> {
        let number = time.as_second().div_euclid(self.column_s);
        let at = number - (self.right - self.columns + 1);
        (0..self.columns).contains(&at).then_some(at as u16)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small second is an instant")
    }

    proptest! {
        #[test]
        fn the_moment_is_always_in_the_window(
            last in 0_i64..1_000_000, back in 0_i64..500_000, before in 0_i64..500_000,
            zoom in 0_usize..12, columns in 1_u16..300,
        ) {
            let moment = at(last - back);
            let first = at(last - back - before);
            let window = Window::around(moment, first..=at(last), ZOOMS[zoom], columns);
            let column = window.column_of(moment).expect("the moment is shown");
            let edges = window.half_edges();
            prop_assert_eq!(edges.len(), 2 * usize::from(columns) + 1);
            prop_assert!(edges.is_sorted());
            prop_assert!(edges[2 * usize::from(column)] <= moment);
            prop_assert!(moment < edges[2 * usize::from(column) + 2]);
        }

        #[test]
        fn a_window_moves_by_whole_columns(second in 0_i64..100_000) {
            let a = Window::around(at(second), at(0)..=at(second), 30, 80);
            let b = Window::around(at(second + 1), at(0)..=at(second + 1), 30, 80);
            prop_assert_eq!(a == b, second.div_euclid(30) == (second + 1).div_euclid(30));
        }
    }

    #[test]
    fn the_ends_of_time_do_not_break_it() {
        for moment in [Timestamp::MIN, Timestamp::MAX] {
            let window = Window::around(moment, Timestamp::MIN..=Timestamp::MAX, 86_400, 250);
            assert!(window.half_edges().is_sorted());
        }
    }

    #[test]
    fn at_the_start_the_window_is_full() {
        let window = Window::around(at(0), at(0)..=at(100_000), 10, 80);
        assert_eq!(window.column_of(at(0)), Some(0));
        let window = Window::around(at(0), at(0)..=at(95), 10, 80);
        assert_eq!(window.column_of(at(95)), Some(79));
    }
}
