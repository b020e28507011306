//! A place in time, as a person writes it in a session: a civil time or a distance from the start.

use std::fmt;

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

use super::settings::Span;

/// A place in a stream: "2022-08-12 16:00:00", "+8h" or "+4000 steps".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Mark {
    /// A civil time of the data's own clock.
    At(DateTime),
    /// So many seconds after the first frame.
    After(f64),
    /// So many frames after the first.
    Step(u64),
}

/// Reads civil time as people write it: `T` or blank, `-` or `/`, seconds optional, or `yyyyMMdd`.
#[must_use]
pub fn civil(text: &str) -> Option<DateTime> {
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
            return steps.trim().parse().map(Mark::Step).map_err(|_| wrong());
        }
        Span::try_from(distance.to_owned()).map(|s| Mark::After(s.seconds)).map_err(|_| wrong())
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

    proptest! {
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
