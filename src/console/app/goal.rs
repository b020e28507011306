//! Places in time as an operator types them: `10:38`, `+5m`, `#7`, `'a`, `end`.

use jiff::civil::{DateTime, Time};

use crate::session::{Span, mark};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    Clock(Time),
    At(DateTime),
    By(i64),
    Incident(u64),
    Mark(char),
    Start,
    End,
}

/// Shown where something else was typed.
pub(crate) const EXPECTED: &str = "a time such as 10:38, +5m, -30s, #7, 'a, start or end";

impl Goal {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        match text {
            "start" | "home" => return Some(Self::Start),
            "end" | "live" | "now" => return Some(Self::End),
            _ => {}
        }
        if let Some(number) = text.strip_prefix('#') {
            return number.parse().ok().map(Self::Incident);
        }
        if let Some(name) = text.strip_prefix('\'') {
            let mut letters = name.chars();
            let mark = letters.next().filter(|c| is_mark(*c))?;
            return letters.next().is_none().then_some(Self::Mark(mark));
        }
        if let Some(later) = text.strip_prefix('+') {
            return seconds(later).map(Self::By);
        }
        if let Some(earlier) = text.strip_prefix(['-', '−']) {
            return seconds(earlier).map(|s| Self::By(-s));
        }
        clock(text).map(Self::Clock).or_else(|| mark::civil(text).map(Self::At))
    }
}

pub(crate) fn is_mark(c: char) -> bool {
    c.is_ascii_alphabetic()
}

/// `10:38` or `10:38:20`.
pub(crate) fn clock(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let mut part = || {
        let text = parts.next()?;
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<i8>().ok()).flatten()
    };
    let (hour, minute) = (part()?, part()?);
    let second = if text.matches(':').count() > 1 { part()? } else { 0 };
    (text.matches(':').count() <= 2).then(|| Time::new(hour, minute, second, 0).ok()).flatten()
}

/// A length of time: `90`, `30s`, `5m`, `1h`, `1h30m`.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0_f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let after = after.trim_start();
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        sum += number
            * match unit.trim() {
                "" | "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = after;
    }
    (sum <= Span::LONGEST.seconds).then_some(sum.round() as i64)
}

#[cfg(test)]
mod tests {
    use jiff::civil::{date, time};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_read_as_people_type_them() {
        let read = Goal::read;
        assert_eq!(read("10:38"), Some(Goal::Clock(time(10, 38, 0, 0))));
        assert_eq!(read(" 9:05:20 "), Some(Goal::Clock(time(9, 5, 20, 0))));
        assert_eq!(read("2022-08-12 10:38"), Some(Goal::At(date(2022, 8, 12).at(10, 38, 0, 0))));
        assert_eq!(read("+5m"), Some(Goal::By(300)));
        assert_eq!(read("-30s"), Some(Goal::By(-30)));
        assert_eq!(read("+1h30m"), Some(Goal::By(5400)));
        assert_eq!(read("-90"), Some(Goal::By(-90)));
        assert_eq!(read("#7"), Some(Goal::Incident(7)));
        assert_eq!(read("'a"), Some(Goal::Mark('a')));
        assert_eq!(read("end"), Some(Goal::End));
        assert_eq!(read("start"), Some(Goal::Start));
    }

    #[test]
    fn what_is_no_place_is_none() {
        for text in ["", "10", "25:00", "10:61", "1:2:3:4", "+", "+5x", "#", "#x", "'", "'ab", "'1"]
        {
            assert_eq!(Goal::read(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_place_or_none(text in "\\PC{0,20}") {
            let _ = Goal::read(&text);
        }
    }
}
