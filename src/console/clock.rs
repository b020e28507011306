//! The clock on the plant's wall: instants as the people there read them.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use crate::session::{Session, Source};

/// A fixed distance from UTC. Data time is shown by it and by no other clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    offset: Offset,
}

impl Clock {
    /// The clock of a session's data.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        let hours = match &session.source {
            Source::Table(table) => table.time.utc_offset_h,
            Source::Plant(_) | Source::Twin(_) | Source::Hai(_) => 0.0,
        };
        Self { offset: Offset::from_seconds((hours * 3600.0) as i32).unwrap_or(Offset::UTC) }
    }

    /// Civil time of an instant.
    #[must_use]
    pub fn civil(self, time: Timestamp) -> DateTime {
        self.offset.to_datetime(time)
    }

    /// The instant of a civil time; `None` at the ends of all time.
    #[must_use]
    pub fn instant(self, civil: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(civil).ok()
    }

    /// `2022-08-12 10:42:20`
    #[must_use]
    pub fn date_time(self, time: Timestamp) -> String {
        self.civil(time).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// `10:42:20`
    #[must_use]
    pub fn time(self, time: Timestamp) -> String {
        self.civil(time).strftime("%H:%M:%S").to_string()
    }

    /// `10:42`
    #[must_use]
    pub fn minute(self, time: Timestamp) -> String {
        self.civil(time).strftime("%H:%M").to_string()
    }

    /// `08-12`
    #[must_use]
    pub fn day(self, time: Timestamp) -> String {
        self.civil(time).strftime("%m-%d").to_string()
    }

    /// Seconds since the civil epoch, so that whole hours of this clock are multiples of 3600.
    #[must_use]
    pub fn civil_second(self, time: Timestamp) -> i64 {
        time.as_second() + i64::from(self.offset.seconds())
    }
}

/// A length of time in at most two units: `45s`, `12m30s`, `3h05m`, `2d04h`.
#[must_use]
pub fn length(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().abs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A round length of time in one unit: `30 s`, `5 min`, `1 h`.
#[must_use]
pub fn round_length(seconds: i64) -> String {
    match seconds {
        86_400.. => format!("{} d", seconds / 86_400),
        3600.. => format!("{} h", seconds / 3600),
        60.. => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_said_in_two_units() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (750, "12m30s"), (11_100, "3h05m"), (187_200, "2d04h")]
        {
            assert_eq!(length(SignedDuration::from_secs(seconds)), text);
            assert_eq!(length(SignedDuration::from_secs(-seconds)), text);
        }
    }
}
