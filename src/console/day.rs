//! The stretch of time that the seek bar stands for.

use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
use crate::session::{Mark, Session, Source, mark};
use crate::stream::twin::slices;

/// Minutes that a bar may span before it counts in days, while the end of the data is not known.
const MINUTES: [i64; 7] = [10, 30, 60, 120, 360, 720, 1440];

/// The stretch of time that the session announces, where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    announced: Option<(Timestamp, Timestamp)>,
}

/// The stretch of time that a bar shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub start: Timestamp,
    pub end: Timestamp,
    /// The data ends there; otherwise its end is not known.
    pub end_is_known: bool,
}

impl Day {
    /// What the session announces: the built-in plants know the length of their data, and so does a
    /// session that names both ends.
    pub(crate) fn of(session: &Session, clock: Clock) -> Self {
        let replay = &session.ranges.replay;
        let announced = || {
            let (start, before_s, seconds) = match &session.source {
                // Its history comes before the day.
                Source::Plant(plant) => {
                    let before_s = plant.history_h * 3600.0;
                    (mark::civil(&plant.start)?, before_s, before_s + plant.hours * 3600.0)
                }
                Source::Twin(twin) => (mark::civil(&twin.start)?, 0.0, slices(twin).steps() as f64),
                Source::Live(_) => return None,
                Source::Table(_) | Source::Hai(_) => match (replay.from?, replay.until?) {
                    (Mark::At(from), Mark::At(_)) => (from, 0.0, 0.0),
                    _ => return None,
                },
            };
            let before = SignedDuration::try_from_secs_f64(before_s).ok()?;
            let start = clock.instant(start)?.checked_sub(before).ok()?;
            let after = |seconds: f64| {
                start.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
            };
            // The built-in plants have a row a second.
            let place = |mark: Mark| match mark {
                Mark::At(civil) => clock.instant(civil),
                Mark::After(seconds) => after(seconds),
                Mark::Step(steps) => after(steps as f64),
            };
            let from = replay.from.and_then(place).unwrap_or(start);
            let until = replay.until.and_then(place).or_else(|| after(seconds))?;
            Some((from, until)).filter(|(from, until)| from < until)
        };
        Self { announced: announced() }
    }

    /// What the bar shows when data from `first` to `last` is known: all of the data. While nobody
    /// knows where it ends, the bar grows in few, large steps; `ended` data ends at `last`.
    pub(crate) fn stretch(&self, first: Timestamp, last: Timestamp, ended: bool) -> Stretch {
        if let Some((start, end)) = self.announced
            && start <= first
            && last <= end
        {
            return Stretch { start, end, end_is_known: true };
        }
        if ended && first < last {
            return Stretch { start: first, end: last, end_is_known: true };
        }
        let minutes = last.duration_since(first).as_mins() + 1;
        let span = MINUTES.into_iter().find(|span| minutes <= *span);
        let span = SignedDuration::from_mins(span.unwrap_or((minutes + 1439) / 1440 * 1440));
        let end = first.checked_add(span).unwrap_or(Timestamp::MAX);
        Stretch { start: first, end, end_is_known: false }
    }

    /// Seconds from the beginning of the data to its end, as far as that is known.
    pub(crate) fn seconds(&self, first: Timestamp, last: Timestamp) -> i64 {
        let Stretch { start, end, end_is_known } = self.stretch(first, last, false);
        let end = if end_is_known { end } else { last };
        end.duration_since(start).as_secs()
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
            let at = |s| Timestamp::from_second(s).expect("a small second is an instant");
            let day = Day::of(&session, Clock::of(&session));
            let shown = day.stretch(at(first), at(first + length), false);
            prop_assert!(shown.start <= at(first) && at(first + length) < shown.end);
            prop_assert!(!shown.end_is_known);
            let over = day.stretch(at(first), at(first + length), true);
            prop_assert!(length == 0 || (over.start, over.end) == (at(first), at(first + length)));
        }
    }

    #[test]
    fn the_bar_of_the_built_in_day_is_the_day() {
        let session = Session::open("plant-attack-day").expect("a shipped session");
        let clock = Clock::of(&session);
        let (start, end) = Day::of(&session, clock).announced.expect("its length is known");
        assert_eq!(clock.date_time(start), "2022-08-12 00:00:00");
        assert_eq!(end.duration_since(start).as_hours(), 24);
    }

    #[test]
    fn the_bar_of_a_short_synthetic_plant_spans_its_data_and_no_more() {
        let session = Session::open("twin").expect("a shipped session");
        let clock = Clock::of(&session);
        let (start, end) = Day::of(&session, clock).announced.expect("its length is known");
        let steps = end.duration_since(start).as_secs();
        let Source::Twin(twin) = &session.source else { panic!("a twin") };
        let all = i64::try_from(slices(twin).steps()).expect("a number of steps");
        assert!(steps > 0 && steps <= all, "{steps} s");
        let shown = Day::of(&session, clock).stretch(start, start, false);
        assert_eq!((shown.start, shown.end, shown.end_is_known), (start, end, true));
    }
}
