//! Time cells as instants.

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::number::Numbers;
use crate::session::mark::civil;
use crate::session::{self, TimeColumn, TimeFormat};
use crate::stream::StreamError;

/// Reads the clock of a source. Knows nothing of order, gaps or runs.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    format: Format,
    /// The clock that shows the civil time in the cells.
    wall: session::Clock,
}

#[derive(Debug, Clone)]
enum Format {
    Auto,
    Pattern(String),
    Seconds(Timestamp),
    Rows(Timestamp),
}

impl Clock {
    /// The clock that a session describes, where all files have the same.
    pub(crate) fn new(time: &TimeColumn) -> Result<Self, StreamError> {
        Self::of(time, &time.format)
    }

    /// The clock of a file whose times are written in this format.
    pub(crate) fn of(time: &TimeColumn, format: &TimeFormat) -> Result<Self, StreamError> {
        let wall = session::Clock::ahead_of_utc(time.utc_offset_h)
            .map_err(|why| StreamError::Setting(format!("`utc_offset_h`: {why}")))?;
        let mut clock = Self { format: Format::Auto, wall };
        let since = |text: &str| {
            clock.auto(text).ok_or_else(|| {
                StreamError::Setting(format!(
                    "`since`: expected a time such as \"2022-08-12 16:00:00\", found {text:?}"
                ))
            })
        };
        clock.format = match format {
            TimeFormat::Auto => Format::Auto,
            TimeFormat::Pattern(pattern) => {
                // Writing any time with a pattern shows whether the pattern itself makes sense.
                let any = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
                BrokenDownTime::from(&any).to_string(pattern).map_err(|e| {
                    StreamError::Setting(format!("the time pattern {pattern:?} is wrong: {e}"))
                })?;
                Format::Pattern(pattern.clone())
            }
            TimeFormat::Seconds { since: text } => Format::Seconds(since(text)?),
            TimeFormat::Rows { since: text } => Format::Rows(since(text)?),
            TimeFormat::Detect(_) | TimeFormat::PerFile(_) => {
                let what = "the time formats of several files cannot stand inside each other";
                return Err(StreamError::Setting(what.into()));
            }
        };
        Ok(clock)
    }

    /// Civil time of a data set that is taken as UTC, in any common notation.
    pub(crate) fn utc() -> Self {
        Self { format: Format::Auto, wall: session::Clock::UTC }
    }

    /// Where rows count as time, the instant of row 0; `None` where a cell says the time.
    pub(crate) fn first_row(&self) -> Option<Timestamp> {
        match self.format {
            Format::Rows(first) => Some(first),
            _ => None,
        }
    }

    /// The instant that a (bare) cell means.
    pub(crate) fn read(
        &self,
        cell: &[u8],
        numbers: &Numbers,
        decimal_comma: bool,
    ) -> Option<Timestamp> {
        match &self.format {
            Format::Auto => self.auto(std::str::from_utf8(cell).ok()?),
            Format::Pattern(pattern) => {
                let parts = BrokenDownTime::parse(pattern, cell).ok()?;
                match parts.offset() {
                    Some(_) => parts.to_timestamp().ok(),
                    None => self.instant(parts.to_datetime().ok()?),
                }
            }
            Format::Seconds(since) => {
                let seconds = numbers.read(cell, decimal_comma)?;
                since.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
            }
            Format::Rows(_) => None,
        }
    }

    /// The instant that a person means who writes about this data: in a common notation, or as the
    /// data itself does.
    pub(crate) fn read_event(&self, text: &str) -> Option<Timestamp> {
        self.auto(text).or_else(|| self.read(text.trim().as_bytes(), &Numbers::default(), false))
    }

    /// What a time cell should look like.
    pub(crate) fn expected(&self) -> String {
        match &self.format {
            Format::Pattern(pattern) => format!("a time written as {pattern:?}"),
            Format::Seconds(_) => "a number of seconds".into(),
            Format::Auto | Format::Rows(_) => "a time such as \"2022-08-12 16:00:00\"".into(),
        }
    }

    /// The instant of a civil time. Databases write the end of the calendar where no time is known: it
    /// is a wrong stamp like any other, and no text that cannot be read.
    fn instant(&self, time: DateTime) -> Option<Timestamp> {
        let last_year = || (time.year() == DateTime::MAX.year()).then_some(Timestamp::MAX);
        self.wall.instant(time).or_else(last_year)
    }

    fn auto(&self, text: &str) -> Option<Timestamp> {
        match civil(text) {
            Some(time) => self.instant(time),
            // With a zone, it says itself how far it is from UTC.
            None => text.trim().parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(format: TimeFormat, utc_offset_h: f64) -> Clock {
        Clock::new(&TimeColumn { column: "t".into(), format, utc_offset_h }).expect("a good clock")
    }

    fn read(clock: &Clock, cell: &str) -> Option<String> {
        clock.read(cell.as_bytes(), &Numbers::default(), true).map(|t| t.to_string())
    }

    #[test]
    fn hai_batadal_and_rfc_3339_stamps_are_read() {
        let auto = clock(TimeFormat::Auto, 0.0);
        let expected = Some("2019-09-26T13:00:00Z".to_owned());
        for cell in [
            "2019-09-26 13:00:00",
            "20190926 13:00:00",
            "2019-09-26 13:00",
            "2019-09-26T13:00:00Z",
            "2019-09-26T22:00:00+09:00",
            "2019-09-26 13:00:00.000-00:00",
        ] {
            assert_eq!(read(&auto, cell), expected, "{cell}");
        }
        let batadal = clock(TimeFormat::Pattern("%d/%m/%y %H".into()), 0.0);
        assert_eq!(read(&batadal, "26/09/19 13"), expected);
        assert_eq!(read(&batadal, "26/09/19"), None);
        assert_eq!(read(&auto, "9999-12-31 23:59:59"), Some(Timestamp::MAX.to_string()));
        assert_eq!(batadal.read_event("2019-09-26 13:00"), batadal.read_event("26/09/19 13"));
    }

    #[test]
    fn an_offset_moves_civil_time_but_not_a_time_with_a_zone() {
        let korea = clock(TimeFormat::Auto, 9.0);
        assert_eq!(read(&korea, "2019-09-26 22:00:00").as_deref(), Some("2019-09-26T13:00:00Z"));
        assert_eq!(read(&korea, "2019-09-26T13:00:00Z").as_deref(), Some("2019-09-26T13:00:00Z"));
        let zoned = clock(TimeFormat::Pattern("%Y-%m-%d %H:%M %z".into()), 9.0);
        assert_eq!(read(&zoned, "2019-09-26 13:00 +0000").as_deref(), Some("2019-09-26T13:00:00Z"));
    }

    #[test]
    fn seconds_count_from_their_origin() {
        let seconds = clock(TimeFormat::Seconds { since: "2020-01-01 00:00".into() }, 0.0);
        assert_eq!(read(&seconds, "86400").as_deref(), Some("2020-01-02T00:00:00Z"));
        assert_eq!(read(&seconds, "0,5").as_deref(), Some("2020-01-01T00:00:00.5Z"));
        for cell in ["", "nan", "1e300", "noon"] {
            assert_eq!(read(&seconds, cell), None, "{cell}");
        }
    }

    #[test]
    fn a_clock_that_cannot_be_is_refused_in_words() {
        let refused = |format, utc_offset_h| {
            let column = TimeColumn { column: "t".into(), format, utc_offset_h };
            Clock::new(&column).expect_err("no such clock").to_string()
        };
        assert!(refused(TimeFormat::Pattern("%Q %!".into()), 0.0).contains("\"%Q %!\""));
        assert!(refused(TimeFormat::Rows { since: "noon".into() }, 0.0).contains("\"noon\""));
        for hours in [f64::NAN, 15.0, -13.0] {
            let why = session::Clock::ahead_of_utc(hours).expect_err("no such clock");
            assert!(refused(TimeFormat::Auto, hours).ends_with(&format!("`utc_offset_h`: {why}")));
        }
    }
}
