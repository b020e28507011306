//! Columnar history with gaps: the extremes of any channel over any stretch of time in a few look-ups.
//!
//! It knows instants and numbers, and nothing of plants or screens. Rows stand in the order of time.
//! Where the source sent nothing there is no row; where one channel had no value there is a NaN. Neither
//! is ever given out as a value.

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

mod pyramid;

use pyramid::Pyramid;

/// A row that is not later than the one before it. The history is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{time} is not later than {last}")]
pub(crate) struct NotLater {
    /// The row refused.
    pub time: Timestamp,
    /// The last one kept.
    pub last: Timestamp,
}

/// What the history holds of a stretch of time, for all channels alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Column {
    /// Before the first row or after the last.
    Outside,
    /// Inside the history, and the source sent nothing.
    Gap,
    /// These rows; `whole` when none is missing between them.
    Rows {
        rows: Range<usize>,
        /// Whether they are all that belong there.
        whole: bool,
    },
}

/// What the history holds of a stretch of time for one channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bucket {
    /// Before the first row or after the last.
    Outside,
    /// There should be a value, and there is none.
    Missing,
    /// The smallest and the largest value.
    Values {
        /// Smallest.
        low: f32,
        /// Largest.
        high: f32,
        /// Whether every expected value is there.
        whole: bool,
    },
}

impl Bucket {
    /// Two neighbouring stretches taken as one.
    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Bucket::Outside, one) | (one, Bucket::Outside) => one,
            (Bucket::Missing, Bucket::Missing) => Bucket::Missing,
            (Bucket::Missing, Bucket::Values { low, high, .. })
            | (Bucket::Values { low, high, .. }, Bucket::Missing) => {
                Bucket::Values { low, high, whole: false }
            }
            (
                Bucket::Values { low, high, whole },
                Bucket::Values { low: l, high: h, whole: all },
            ) => Bucket::Values { low: low.min(l), high: high.max(h), whole: whole && all },
        }
    }
}

/// The history of all channels of a stream on one axis of time.
#[derive(Debug, Clone)]
pub(crate) struct History {
    period: SignedDuration,
    times: Vec<Timestamp>,
    channels: Vec<Pyramid>,
}

impl History {
    /// An empty history of `channels` channels whose rows are `period_s` seconds apart.
    ///
    /// A period that is no length of time (zero, negative, not finite) counts as one second.
    pub(crate) fn new(period_s: f64, channels: usize) -> Self {
        let period = SignedDuration::try_from_secs_f64(period_s)
            .ok()
            .filter(SignedDuration::is_positive)
            .unwrap_or(SignedDuration::from_secs(1));
        Self { period, times: Vec::new(), channels: vec![Pyramid::default(); channels] }
    }

    /// Seconds between two rows when nothing is missing.
    pub(crate) fn period(&self) -> SignedDuration {
        self.period
    }

    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// The first row's instant.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.times.first().copied()
    }

    /// The last row's instant.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.times.last().copied()
    }

    /// Appends a row. Channels that `values` has no finite number for are missing in it.
    pub(crate) fn push(&mut self, time: Timestamp, values: &[f64]) -> Result<(), NotLater> {
        if let Some(last) = self.last().filter(|last| time <= *last) {
            return Err(NotLater { time, last });
        }
        self.times.push(time);
        for (at, channel) in self.channels.iter_mut().enumerate() {
            channel.push(values.get(at).map_or(f32::NAN, |value| *value as f32));
        }
        Ok(())
    }

    /// A history of the same instants with other channels: `values` is asked for every row in turn
    /// and fills one value a channel. NaN is missing.
    #[must_use]
    pub(crate) fn beside(
        &self,
        channels: usize,
        mut values: impl FnMut(usize, &mut [f64]),
    ) -> Self {
        let mut other = Self {
            period: self.period,
            times: self.times.clone(),
            channels: vec![Pyramid::default(); channels],
        };
        let mut row = vec![f64::NAN; channels];
        for at in 0..self.times.len() {
            values(at, &mut row);
            for (channel, value) in other.channels.iter_mut().zip(&row) {
                channel.push(*value as f32);
            }
        }
        other
    }

    /// The value of `channel` in the last row at or before `time`, unless it is missing there or
    /// `time` lies in a gap.
    pub(crate) fn value_at(&self, channel: usize, time: Timestamp) -> Option<f32> {
        let row = self.times.partition_point(|t| *t <= time).checked_sub(1)?;
        let within = match self.times.get(row + 1) {
            Some(next) => !self.is_gap(self.times[row], *next) || time == self.times[row],
            None => time.duration_since(self.times[row]) <= self.tolerance(),
        };
        let value = self.channels.get(channel)?.value(row)?;
        (within && value.is_finite()).then_some(value)
    }

    /// The value of `channel` in `row`; NaN where it is missing.
    pub(crate) fn value(&self, channel: usize, row: usize) -> Option<f32> {
        self.channels.get(channel)?.value(row)
    }

    /// What there is in `from..until`, for any channel. Costs two binary searches.
    pub(crate) fn column(&self, from: Timestamp, until: Timestamp) -> Column {
        let (Some(first), Some(last)) = (self.first(), self.last()) else { return Column::Outside };
        let start = self.times.partition_point(|t| *t < from);
        let end = start + self.times[start..].partition_point(|t| *t < until);
        if start < end {
            return Column::Rows {
                rows: start..end,
                whole: self.is_whole(start, end, from, until),
            };
        }
        if until <= first || from > last || start == 0 || start == self.times.len() {
            return Column::Outside;
        }
        // Narrower than a period: the row before still holds, unless a gap has begun.
        if self.is_gap(self.times[start - 1], self.times[start]) {
            Column::Gap
        } else {
            Column::Rows { rows: start - 1..start, whole: true }
        }
    }

    /// What `channel` shows in `column`.
    pub(crate) fn bucket(&self, channel: usize, column: &Column) -> Bucket {
        let (rows, whole) = match column {
            Column::Outside => return Bucket::Outside,
            Column::Gap => return Bucket::Missing,
            Column::Rows { rows, whole } => (rows, *whole),
        };
        let Some(pyramid) = self.channels.get(channel) else { return Bucket::Missing };
        let extent = pyramid.extent(rows.clone());
        if extent.known == 0 {
            return Bucket::Missing;
        }
        let whole = whole && extent.known == rows.len();
        Bucket::Values { low: extent.low, high: extent.high, whole }
    }

    /// Time stamps jitter: half a period more than expected is not yet a gap.
    fn tolerance(&self) -> SignedDuration {
        self.period + self.period / 2
    }

    fn is_gap(&self, before: Timestamp, after: Timestamp) -> bool {
        after.duration_since(before) > self.tolerance()
    }

    /// Whether rows `start..end` are all that belong into `from..until`, judged by their number and
    /// by their distance to the rows around them.
    fn is_whole(&self, start: usize, end: usize, from: Timestamp, until: Timestamp) -> bool {
        let (first, last) = (self.times[start], self.times[end - 1]);
        let inside = last.duration_since(first).as_secs_f64() / self.period.as_secs_f64();
        let complete = inside < (end - start) as f64 - 0.5;
        let hole_before = start > 0
            && self.is_gap(self.times[start - 1], first)
            && first.duration_since(from) >= self.period;
        let hole_after = self.times.get(end).is_some_and(|next| {
            self.is_gap(last, *next) && until.duration_since(last) > self.tolerance()
        });
        complete && !hole_before && !hole_after
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small second is an instant")
    }

    /// One row a second, `None` where the source is silent, NaN where the channel is.
    fn history(rows: &[Option<f64>]) -> History {
        let mut history = History::new(1.0, 1);
        for (second, row) in (0..).zip(rows) {
            if let Some(value) = row {
                history.push(at(second), &[*value]).expect("seconds grow");
            }
        }
        history
    }

    fn look(history: &History, from: i64, until: i64) -> Bucket {
        history.bucket(0, &history.column(at(from), at(until)))
    }

    fn rows() -> impl Strategy<Value = Vec<Option<f64>>> {
        let row = prop_oneof![
            6 => (-1e6..1e6_f64).prop_map(Some),
            1 => Just(Some(f64::NAN)),
            2 => Just(None),
        ];
        prop::collection::vec(row, 0..400)
    }

    #[test]
    fn a_gap_is_missing_and_not_a_zero() {
        let history = history(&[Some(1.0), Some(2.0), None, None, None, Some(3.0)]);
        assert_eq!(look(&history, 2, 4), Bucket::Missing);
        assert_eq!(look(&history, 0, 2), Bucket::Values { low: 1.0, high: 2.0, whole: true });
        assert_eq!(look(&history, 0, 6), Bucket::Values { low: 1.0, high: 3.0, whole: false });
        assert_eq!(look(&history, 1, 4), Bucket::Values { low: 2.0, high: 2.0, whole: false });
        assert_eq!(look(&history, 6, 9), Bucket::Outside);
        assert_eq!(history.value_at(0, at(3)), None);
        assert_eq!(history.value_at(0, at(1)), Some(2.0));
    }

    #[test]
    fn a_column_narrower_than_the_period_holds_the_last_value() {
        let mut history = History::new(60.0, 1);
        history.push(at(0), &[1.0]).expect("first");
        history.push(at(60), &[2.0]).expect("later");
        assert_eq!(look(&history, 20, 30), Bucket::Values { low: 1.0, high: 1.0, whole: true });
    }

    #[test]
    fn a_row_that_is_not_later_is_refused_and_changes_nothing() {
        let mut history = history(&[Some(1.0), Some(2.0)]);
        assert_eq!(history.push(at(1), &[9.0]), Err(NotLater { time: at(1), last: at(1) }));
        assert_eq!(history.len(), 2);
        assert_eq!(history.value_at(0, at(1)), Some(2.0));
    }

    #[test]
    fn a_period_that_is_no_length_of_time_counts_as_a_second() {
        for period in [0.0, -3.0, f64::NAN, f64::INFINITY] {
            assert_eq!(History::new(period, 1).period(), SignedDuration::from_secs(1));
        }
    }

    proptest! {
        #[test]
        fn a_bucket_is_what_a_look_at_every_row_would_say(
            rows in rows(), from in -5_i64..400, width in 1_i64..200,
        ) {
            let history = history(&rows);
            let until = from + width;
            let known: Vec<f32> = (0..).zip(&rows)
                .filter(|(second, _)| (from..until).contains(second))
                .filter_map(|(_, row)| row.filter(|v| v.is_finite()))
                .map(|v| v as f32)
                .collect();
            match look(&history, from, until) {
                Bucket::Values { low, high, .. } if !known.is_empty() => {
                    let least = known.iter().copied().min_by(f32::total_cmp);
                    let greatest = known.iter().copied().max_by(f32::total_cmp);
                    prop_assert_eq!((Some(low), Some(high)), (least, greatest));
                }
                Bucket::Values { .. } => prop_assert!(false, "values where there are none"),
                // Outside is before the first row or after the last; between them no value is missing.
                other => {
                    let ends = history.first().zip(history.last());
                    let outside = ends.is_none_or(|(first, last)| at(until) <= first || at(from) > last);
                    let expected = if outside { Bucket::Outside } else { Bucket::Missing };
                    prop_assert_eq!((other, known.is_empty()), (expected, true));
                }
            }
        }

        #[test]
        fn a_hole_inside_a_bucket_is_never_called_whole(
            rows in rows(), from in 0_i64..400, width in 1_i64..200,
        ) {
            let history = history(&rows);
            let until = from + width;
            let (Some(first), Some(last)) = (history.first(), history.last()) else { return Ok(()) };
            let known_stretch =
                from.max(first.as_second())..until.min(last.as_second() + 1);
            let hole = known_stretch.clone().any(|second| {
                rows[second as usize].is_none_or(|v| !v.is_finite())
            });
            if let Bucket::Values { whole, .. } = look(&history, from, until) {
                prop_assert_eq!(whole, !hole, "{:?}", known_stretch);
            }
        }

        #[test]
        fn joined_halves_are_the_whole(rows in rows(), from in 0_i64..400, half in 1_i64..90) {
            let history = history(&rows);
            let joined = look(&history, from, from + half)
                .join(look(&history, from + half, from + 2 * half));
            prop_assert_eq!(joined, look(&history, from, from + 2 * half));
        }
    }
}
