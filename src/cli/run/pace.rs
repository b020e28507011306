//! Data time against the wall clock.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// No single wait is longer, so that a wish to stop is heard.
const NAP: Duration = Duration::from_millis(50);

/// Data seconds per second of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    /// As fast as it goes.
    Max,
    /// This many.
    Times(f64),
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

/// Holds steps back until their time has come.
pub(super) struct Pace {
    speed: Speed,
    begun: Option<(Instant, Timestamp)>,
}

impl Pace {
    pub fn new(speed: Speed) -> Self {
        Self { speed, begun: None }
    }

    /// Waits until the step at `time` is due, or until `stop`.
    pub fn wait(&mut self, time: Timestamp, stop: &AtomicBool) {
        let Speed::Times(times) = self.speed else { return };
        let (begun, first) = *self.begun.get_or_insert_with(|| (Instant::now(), time));
        let elapsed_s = time.duration_since(first).as_secs_f64().max(0.0) / times;
        let Ok(due) = Duration::try_from_secs_f64(elapsed_s) else { return };
        while let Some(left) = due.checked_sub(begun.elapsed())
            && !left.is_zero()
            && !stop.load(Ordering::Relaxed)
        {
            std::thread::sleep(left.min(NAP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn a_speed_is_max_or_a_number_above_0() {
        assert_eq!("max".parse(), Ok(Speed::Max));
        assert_eq!("60".parse(), Ok(Speed::Times(60.0)));
        for nonsense in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(nonsense.parse::<Speed>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn steps_are_held_back_to_their_time_and_a_wish_to_stop_ends_the_wait() {
        let stop = AtomicBool::new(false);
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let mut pace = Pace::new(Speed::Times(1000.0));
        let begun = Instant::now();
        pace.wait(at(100), &stop);
        pace.wait(at(130), &stop);
        assert!(begun.elapsed() >= Duration::from_millis(30));
        stop.store(true, Ordering::Relaxed);
        pace.wait(at(1_000_000), &stop);
    }
}
