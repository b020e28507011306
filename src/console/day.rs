//! The stretch of time that the seek bar stands for.

use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
use crate::session::{Session, Source, mark};

/// Hours that a bar may span before it counts in days.
const HOURS: [i64; 5] = [1, 2, 6, 12, 24];

/// The stretch of time that the session announces, where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    announced: Option<(Timestamp, Timestamp)>,
}

impl Day {
    /// What the session announces: the built-in plant knows the length of its day.
    pub(crate) fn of(session: &Session, clock: Clock) -> Self {
        let Source::Plant(plant) = &session.source else { return Self { announced: None } };
        let announced = || {
            let start = clock.instant(mark::civil(&plant.start)?)?;
            let length = SignedDuration::try_from_secs_f64(plant.hours * 3600.0).ok()?;
            Some((start, start.checked_add(length).ok()?)).filter(|(start, end)| start < end)
        };
        Self { announced: announced() }
    }

    /// Both ends of the bar when data from `first` to `last` is known. Without an announcement it
    /// begins at a full hour and grows in few, large steps.
    pub(crate) fn ends(
        &self,
        clock: Clock,
        first: Timestamp,
        last: Timestamp,
    ) -> (Timestamp, Timestamp) {
        if let Some((start, end)) = self.announced
            && start <= first
            && last <= end
        {
            return (start, end);
        }
        let after = |start: Timestamp, hours: i64| {
            start.checked_add(SignedDuration::from_hours(hours)).unwrap_or(Timestamp::MAX)
        };
        let past_hour = clock.civil_second(first).rem_euclid(3600);
        let start =
            first.checked_sub(SignedDuration::from_secs(past_hour)).unwrap_or(Timestamp::MIN);
        let hours = last.duration_since(start).as_hours() + 1;
        let span = HOURS.into_iter().find(|span| hours <= *span);
        (start, after(start, span.unwrap_or((hours + 23) / 24 * 24)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::console::tests::fixture;

    proptest! {
        #[test]
        fn the_bar_always_holds_the_data(first in 0_i64..10_000_000, length in 0_i64..10_000_000) {
            let session = fixture::table_session();
            let clock = Clock::of(&session);
            let at = |s| Timestamp::from_second(s).expect("a small second is an instant");
            let (start, end) = Day::of(&session, clock).ends(clock, at(first), at(first + length));
            prop_assert!(start <= at(first) && at(first + length) < end);
        }
    }
}
