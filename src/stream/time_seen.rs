//! How much time the rows of a source cover: a clock that jumps and a source that is away add nothing.
//!
//! It knows times of rows only. What is learned from a live source is measured by it, so that a wrong clock
//! does not end the learning.

use jiff::{SignedDuration, Timestamp};

/// Rows that are further apart do not follow each other, unless two periods are longer.
const FAR: SignedDuration = SignedDuration::from_mins(1);

/// The time that rows have covered so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeSeen {
    period: SignedDuration,
    last: Option<Timestamp>,
    /// The time between rows that do not follow each other.
    away: SignedDuration,
}

impl TimeSeen {
    /// For rows this far apart.
    pub(crate) fn new(period_s: f64) -> Self {
        let period = SignedDuration::try_from_secs_f64(period_s).unwrap_or_default();
        Self { period, last: None, away: SignedDuration::ZERO }
    }

    /// The time of the next row, as if every row had followed the one before it.
    pub(crate) fn take(&mut self, time: Timestamp) -> Timestamp {
        let distance = self.last.map_or(self.period, |last| time.duration_since(last));
        if distance > FAR.max(self.period.saturating_mul(2)) || distance.is_negative() {
            self.away = self.away.saturating_add(distance).saturating_sub(self.period);
        }
        self.last = Some(time);
        time.checked_sub(self.away).unwrap_or(time)
    }

    /// The same for a row that is only looked at.
    pub(crate) fn at(mut self, time: Timestamp) -> Timestamp {
        self.take(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_between_rows_that_follow_each_other_counts() {
        let time = |second| Timestamp::from_second(second).expect("an instant");
        let mut seen = TimeSeen::new(10.0);
        // A lost row, an hour ahead, then back to where the clock was.
        let stamps = [100, 110, 130, 3740, 3750, 160, 170];
        let seen: Vec<i64> = stamps.iter().map(|s| seen.take(time(*s)).as_second()).collect();
        assert_eq!(seen, [100, 110, 130, 140, 150, 160, 170]);
        // Rows may be hours apart.
        let mut hourly = TimeSeen::new(3600.0);
        assert_eq!([0, 3600, 10_800].map(|s| hourly.take(time(s)).as_second()), [0, 3600, 10_800]);
    }
}
