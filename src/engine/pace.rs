//! How fast data time runs against the wall clock.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Speeds that keys step through, in data seconds per second.
const LADDER: [f64; 13] =
    [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
/// A replay that fell further behind than this (a suspended process, a slow terminal) goes on from
/// where it is instead of rushing through what was missed.
const PATIENCE: Duration = Duration::from_millis(250);
/// No single wait lasts longer than this.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Data seconds per second of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    Times(f64),
    /// As many as can be read.
    Max,
}

impl Speed {
    /// The speed a session asks for; nonsense counts as real time, infinity as all there is.
    pub(crate) fn new(times: f64) -> Self {
        if times == f64::INFINITY {
            Self::Max
        } else if times > 0.0 {
            Self::Times(times)
        } else {
            Self::Times(1.0)
        }
    }

    pub(crate) fn faster(self) -> Self {
        match self {
            Self::Times(now) => {
                LADDER.into_iter().find(|step| *step > now).map_or(Self::Max, Self::Times)
            }
            Self::Max => Self::Max,
        }
    }

    pub(crate) fn slower(self) -> Self {
        let below = |limit: f64| LADDER.into_iter().rev().find(|step| *step < limit);
        match self {
            Self::Times(now) => Self::Times(below(now).unwrap_or(now.min(LADDER[0]))),
            Self::Max => Self::Times(LADDER[LADDER.len() - 1]),
        }
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse::<f64>() {
            Ok(times) if times.is_finite() && times > 0.0 => Ok(Self::Times(times)),
            _ => Err("expected \"max\" or a number above 0".into()),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "{times}x"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// How the replay goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// How fast when it goes.
    pub(crate) speed: Speed,
    pub(crate) paused: bool,
}

/// Turns distances in data time into instants of the wall clock.
#[derive(Debug)]
pub(crate) struct Pacer {
    speed: Speed,
    last: Instant,
}

impl Pacer {
    /// Starts counting at `now`.
    pub(crate) fn new(speed: Speed, now: Instant) -> Self {
        Self { speed, last: now }
    }

    /// Another speed from `now` on.
    pub(crate) fn set(&mut self, speed: Speed, now: Instant) {
        *self = Self::new(speed, now);
    }

    /// When a frame that is `data_s` seconds later than the one before it is due; `longest` is the
    /// longest time to wait for it.
    pub(crate) fn due(&self, data_s: f64, longest: Duration, now: Instant) -> Instant {
        match self.speed {
            Speed::Max => now,
            Speed::Times(times) => {
                let wait = Duration::try_from_secs_f64(data_s / times).unwrap_or(Duration::ZERO);
                self.last + wait.min(longest).min(LONGEST_WAIT)
            }
        }
    }

    /// The frame that was due at `due` is shown at `now`.
    pub(crate) fn shown(&mut self, due: Instant, now: Instant) {
        self.last = if now.saturating_duration_since(due) > PATIENCE { now } else { due };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_reach_every_speed_and_stop_at_both_ends() {
        let mut speed = Speed::new(60.0);
        for _ in 0..40 {
            speed = speed.slower();
        }
        assert_eq!(speed, Speed::Times(0.25));
        let mut seen = vec![speed.to_string()];
        while speed != Speed::Max {
            speed = speed.faster();
            seen.push(speed.to_string());
        }
        assert_eq!(
            seen.join(" "),
            "0.25x 0.5x 1x 2x 5x 10x 30x 60x 120x 300x 600x 1800x 3600x max"
        );
        assert_eq!(Speed::Max.faster(), Speed::Max);
        assert_eq!(Speed::Max.slower(), Speed::Times(3600.0));
    }

    #[test]
    fn a_speed_is_max_or_a_number_above_0() {
        assert_eq!("max".parse(), Ok(Speed::Max));
        assert_eq!("60".parse(), Ok(Speed::Times(60.0)));
        for nonsense in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(nonsense.parse::<Speed>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_session_cannot_ask_for_a_speed_that_stands_still() {
        for nonsense in [0.0, -1.0, f64::NAN] {
            assert_eq!(Speed::new(nonsense), Speed::Times(1.0));
        }
        assert_eq!(Speed::new(f64::INFINITY), Speed::Max);
    }

    #[test]
    fn frames_keep_their_distance_whatever_the_jitter() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Speed::Times(10.0), start);
        for n in 1..=50 {
            let late = start + Duration::from_millis(100 * n + 7 * (n % 3));
            let due = pacer.due(1.0, Duration::MAX, late);
            assert_eq!(due, start + Duration::from_millis(100 * n));
            pacer.shown(due, late);
        }
    }

    #[test]
    fn a_hole_in_the_data_is_not_waited_through() {
        let start = Instant::now();
        let pacer = Pacer::new(Speed::Times(1.0), start);
        assert_eq!(
            pacer.due(86_400.0, Duration::from_secs(1), start),
            start + Duration::from_secs(1)
        );
    }

    #[test]
    fn after_a_long_stop_the_replay_goes_on_and_does_not_rush() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Speed::Times(60.0), start);
        let much_later = start + Duration::from_mins(10);
        pacer.shown(pacer.due(1.0, Duration::MAX, much_later), much_later);
        assert!(pacer.due(1.0, Duration::MAX, much_later) > much_later);
    }
}
