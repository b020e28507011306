//! A place in time, as a person writes it in a session: a civil time or a distance from the start.

use std::cmp::Ordering;
use std::fmt;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Clock;
use super::bounds::MOST_STEPS;
use super::settings::Span;

/// A place in a stream: "2022-08-12 16:00:00", "+8h" or "+4000 steps".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Mark {
    /// A civil time of the data's own clock.
    At(DateTime),
    /// So many seconds after the first frame.
    After(f64),
    /// So many frames after the first.
    Step(u64),
}

impl Mark {
    /// Whether a frame stands at the mark or after it. The frame at `time` is number `step` of a
    /// stream whose frame number 0 is at `first`; `clock` is the clock of the data.
    ///
    /// Ranges, `run --until`, the place where playing begins and pictures all ask here: a mark
    /// means one place of a stream.
    pub(crate) fn is_reached(
        self,
        clock: Clock,
        first: Timestamp,
        step: u64,
        time: Timestamp,
    ) -> bool {
        self.compare(clock, first, step, time) != Ordering::Less
    }

    /// Whether a frame stands after the mark and not at it.
    pub(crate) fn is_passed(
        self,
        clock: Clock,
        first: Timestamp,
        step: u64,
        time: Timestamp,
    ) -> bool {
        self.compare(clock, first, step, time) == Ordering::Greater
    }

    /// How the frame's place compares with the mark.
    fn compare(self, clock: Clock, first: Timestamp, step: u64, time: Timestamp) -> Ordering {
        match self {
            // Civil times are compared: each instant has one, but at the end of the calendar a
            // civil time has no instant.
            Mark::At(civil) => clock.civil(time).cmp(&civil),
            // A distance that no duration can hold lies after every frame.
            Mark::After(seconds) => SignedDuration::try_from_secs_f64(seconds)
                .map_or(Ordering::Less, |distance| time.duration_since(first).cmp(&distance)),
            Mark::Step(steps) => step.cmp(&steps),
        }
    }
}

/// Reads civil time as people write it: `T` or blank, `-` or `/`, seconds optional, or `yyyyMMdd`.
pub(crate) fn civil(text: &str) -> Option<DateTime> {
    let text = text.trim();
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (date, time.trim_start()),
        None => (text, "00:00:00"),
    };
    let (year, month, day) = if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) {
        (&date[..4], &date[4..6], &date[6..])
    } else {
        let mut parts = date.split(['-', '/']);
        let found = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || found.0.len() != 4 {
            return None;
        }
        found
    };
    let mut parts = time.split(':');
    let hour = parts.next()?;
    let minute = parts.next().unwrap_or("0");
    let (second, nanos) = match parts.next() {
        None => (0, 0),
        Some(text) => seconds(text)?,
    };
    if parts.next().is_some() {
        return None;
    }
    DateTime::new(
        digits(year)?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        second,
        nanos,
    )
    .ok()
}

/// A part of a time. What does not fit is no time: it must not wrap into one.
fn small(text: &str) -> Option<i8> {
    digits(text)?.try_into().ok()
}

fn digits(text: &str) -> Option<i16> {
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn seconds(text: &str) -> Option<(i8, i32)> {
    match text.split_once('.') {
        None => Some((small(text)?, 0)),
        Some((whole, part)) => {
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let part = &part[..part.len().min(9)];
            let nanos: i32 = part.parse().ok()?;
            Some((small(whole)?, nanos * 10_i32.pow(9 - part.len() as u32)))
        }
    }
}

impl TryFrom<String> for Mark {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected a time such as \"2022-08-12 16:00:00\", or a distance from the start \
                 such as \"+8h\" or \"+4000 steps\", found {text:?}"
            )
        };
        let Some(distance) = text.strip_prefix('+') else {
            return civil(&text).map(Mark::At).ok_or_else(wrong);
        };
        if let Some(steps) = distance.strip_suffix("steps") {
            let steps: u64 = steps.trim().parse().map_err(|_| wrong())?;
            if steps > MOST_STEPS {
                return Err(format!(
                    "expected a distance from the start up to +{MOST_STEPS} steps, found {text:?}"
                ));
            }
            return Ok(Mark::Step(steps));
        }
        let span = Span::of_any_length(distance).ok_or_else(wrong)?;
        if span.is_too_long() {
            let longest = Mark::After(Span::LONGEST.seconds);
            return Err(format!(
                "expected a distance from the start up to {longest}, found {text:?}"
            ));
        }
        Ok(Mark::After(span.seconds))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::At(time) => write!(f, "{}", time.strftime("%Y-%m-%d %H:%M:%S")),
            Mark::After(seconds) => {
                write!(f, "+{}", String::from(Span { seconds: *seconds }))
            }
            Mark::Step(steps) => write!(f, "+{steps} steps"),
        }
    }
}

impl From<Mark> for String {
    fn from(mark: Mark) -> String {
        mark.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_way_of_writing_one_instant_means_the_same() {
        let expected = jiff::civil::date(2019, 9, 26).at(13, 0, 0, 0);
        for text in [
            "2019-09-26 13:00:00",
            "2019-09-26T13:00:00",
            "2019/09/26 13:00",
            "20190926 13:00:00",
            "2019-9-26 13:00",
            " 2019-09-26 13:00:00.000 ",
        ] {
            assert_eq!(civil(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_no_time() {
        for text in ["2019-09-26 256:00", "2019-09-26 13:300", "2019-09-26 13:00:00.12345678é"] {
            assert_eq!(civil(text), None, "{text}");
        }
    }

    #[test]
    fn a_distance_of_more_than_a_hundred_years_is_refused_with_the_limit() {
        assert_eq!(Mark::try_from("+36525d".to_owned()), Ok(Mark::After(3_155_760_000.0)));
        for text in ["+36526d", "+1e19s", "+1e30h", "+1e308d"] {
            let why = Mark::try_from(text.to_owned()).expect_err("too far");
            assert_eq!(
                why,
                format!("expected a distance from the start up to +36525d, found {text:?}")
            );
        }
    }

    #[test]
    fn a_mark_that_no_frame_can_reach_is_compared_without_a_panic() {
        for seconds in [1e19, 1e30, f64::MAX, f64::INFINITY, f64::NAN] {
            let mark = Mark::After(seconds);
            let (first, last) = (Timestamp::MIN, Timestamp::MAX);
            assert!(!mark.is_reached(Clock::UTC, first, u64::MAX, last), "{seconds}");
        }
        let end = Mark::At(DateTime::MAX);
        assert!(!end.is_reached(Clock::UTC, Timestamp::MIN, 0, Timestamp::MAX));
    }

    #[test]
    fn a_mark_is_reached_at_its_own_frame_and_passed_at_the_next() {
        let at = |second| Timestamp::from_second(second).expect("a small second is an instant");
        let nine = Clock::ahead_of_utc(9.0).expect("a real offset");
        // Nine in the morning of the first day of 1970 in Korea is midnight UTC.
        let noon = Mark::At(jiff::civil::date(1970, 1, 1).at(12, 0, 0, 0));
        for (mark, frame) in [(Mark::Step(3), 3_i64), (Mark::After(3.0), 3), (noon, 3 * 3600)] {
            for (offset, reached, passed) in [(-1, false, false), (0, true, false), (1, true, true)]
            {
                let step = frame + offset;
                let place = (step.cast_unsigned(), at(step));
                assert_eq!(mark.is_reached(nine, at(0), place.0, place.1), reached, "{mark}");
                assert_eq!(mark.is_passed(nine, at(0), place.0, place.1), passed, "{mark}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_civil_time_means_the_instant_at_which_the_clock_of_the_data_shows_it(
            quarters in -48_i32..=56, second in -4_000_000_000_i64..4_000_000_000,
            late in -100_000_i64..100_000,
        ) {
            let hours = f64::from(quarters) / 4.0;
            let clock = Clock::ahead_of_utc(hours).expect("a real offset");
            let marked = Timestamp::from_second(second).expect("a second of these centuries");
            let time = Timestamp::from_second(second + late).expect("a second of these centuries");
            let utc = jiff::tz::Offset::UTC.to_datetime(marked);
            let shown = utc.checked_add(SignedDuration::from_secs(i64::from(quarters) * 900));
            let mark = Mark::At(shown.expect("a time of these centuries"));
            prop_assert_eq!(mark.is_reached(clock, Timestamp::MIN, 0, time), late >= 0);
            prop_assert_eq!(mark.is_passed(clock, Timestamp::MIN, 0, time), late > 0);
        }

        #[test]
        fn any_text_is_a_mark_or_an_error_and_a_mark_survives_a_round_trip(text in "\\PC*") {
            if let Ok(mark) = Mark::try_from(text) {
                let again = Mark::try_from(mark.to_string());
                if !matches!(mark, Mark::At(t) if t.subsec_nanosecond() != 0) {
                    prop_assert_eq!(again, Ok(mark));
                }
            }
        }

        #[test]
        fn a_distance_is_read_as_written(n in 0u64..100_000) {
            prop_assert_eq!(Mark::try_from(format!("+{n} steps")), Ok(Mark::Step(n)));
            prop_assert_eq!(Mark::try_from(format!("+{n}h")), Ok(Mark::After(n as f64 * 3600.0)));
        }
    }
}
