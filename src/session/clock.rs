//! The clock on the plant's wall: civil time of the data and the instants it means.
//!
//! Sessions, files and operators write civil time without a zone. Frames carry instants. Every
//! conversion between the two is made here, so that one civil time means one instant everywhere.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::bounds::HOURS_AHEAD;
use super::{Session, Source};

/// A fixed distance from UTC. Data time is read and shown by it and by no other clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    offset: Offset,
}

impl Clock {
    pub(crate) const UTC: Self = Self { offset: Offset::UTC };

    /// A clock that is `hours` ahead of UTC; an error says which hours are possible.
    pub(crate) fn ahead_of_utc(hours: f64) -> Result<Self, String> {
        Some(hours)
            .filter(|hours| HOURS_AHEAD.holds(*hours))
            .and_then(|hours| Offset::from_seconds((hours * 3600.0).round() as i32).ok())
            .map(|offset| Self { offset })
            .ok_or_else(|| format!("expected {HOURS_AHEAD}, found {hours}"))
    }

    /// The clock of a session's data.
    pub(crate) fn of(session: &Session) -> Self {
        match &session.source {
            // Validation refuses every other number of hours, and so does the reader of the table.
            Source::Table(table) => {
                Self::ahead_of_utc(table.time.utc_offset_h).unwrap_or(Self::UTC)
            }
            Source::Live(live) => Self::ahead_of_utc(live.time.utc_offset_h).unwrap_or(Self::UTC),
            Source::Plant(_) | Source::Twin(_) | Source::Hai(_) => Self::UTC,
        }
    }

    /// Civil time of an instant.
    pub(crate) fn civil(self, time: Timestamp) -> DateTime {
        self.offset.to_datetime(time)
    }

    /// The instant of a civil time; `None` at the ends of the calendar.
    pub(crate) fn instant(self, civil: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(civil).ok()
    }

    /// `2022-08-12 10:42:20`
    pub(crate) fn date_time(self, time: Timestamp) -> String {
        self.civil(time).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// `10:42:20`
    pub(crate) fn time(self, time: Timestamp) -> String {
        self.civil(time).strftime("%H:%M:%S").to_string()
    }

    /// `10:42`
    pub(crate) fn minute(self, time: Timestamp) -> String {
        self.civil(time).strftime("%H:%M").to_string()
    }

    /// `08-12`
    pub(crate) fn day(self, time: Timestamp) -> String {
        self.civil(time).strftime("%m-%d").to_string()
    }

    /// Seconds since the civil epoch, so that whole hours of this clock are multiples of 3600.
    pub(crate) fn civil_second(self, time: Timestamp) -> i64 {
        time.as_second() + i64::from(self.offset.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_offsets_are_clocks_and_others_are_refused_with_the_limits() {
        for hours in [-12.0, -3.5, 0.0, 5.75, 9.0, 14.0] {
            let clock = Clock::ahead_of_utc(hours).expect("a real offset");
            let civil = clock.civil_second(Timestamp::UNIX_EPOCH);
            assert_eq!(civil, (hours * 3600.0) as i64, "{hours}");
        }
        for hours in [-12.01, 14.01, 26.0, f64::NAN, f64::INFINITY, 1e30] {
            let why = Clock::ahead_of_utc(hours).expect_err("no such clock");
            assert_eq!(why, format!("expected -12 to 14 hours ahead of UTC, found {hours}"));
        }
    }
}
