//! Where rows stand in time: gaps, repeated and backward stamps, runs placed one after the other.

use jiff::{SignedDuration, Timestamp};

use crate::stream::{Continuity, NoteKind};

/// The time of a stream so far. Frames leave it in strictly growing time.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    period: SignedDuration,
    /// Time of the last frame.
    last: Option<Timestamp>,
    /// What the present run is moved by, so that it begins after the run before it.
    shift: SignedDuration,
}

/// What becomes of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Placed {
    /// A frame.
    Frame { time: Timestamp, continuity: Continuity, shift: SignedDuration },
    /// Nothing.
    LeftOut(NoteKind),
}

impl Timeline {
    /// An empty timeline.
    pub fn new(period: SignedDuration) -> Self {
        Self { period, last: None, shift: SignedDuration::ZERO }
    }

    /// Regular distance of two rows.
    pub fn period(&self) -> SignedDuration {
        self.period
    }

    /// Time of the last frame.
    pub fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Where a row with this stamp stands; `None` beyond the end of time. Nothing is remembered
    /// until [`Timeline::advance`].
    pub fn place(&self, stamp: Timestamp, new_run: bool) -> Option<Placed> {
        let Some(last) = self.last else {
            let (time, shift) = (stamp, SignedDuration::ZERO);
            return Some(Placed::Frame { time, continuity: Continuity::NewRun, shift });
        };
        if new_run {
            // A run that begins later by its own clock keeps it: what is known about it is often
            // known by that clock.
            let time = if stamp > last { stamp } else { last.checked_add(self.period).ok()? };
            let shift = time.duration_since(stamp);
            return Some(Placed::Frame { time, continuity: Continuity::NewRun, shift });
        }
        let time = stamp.checked_add(self.shift).ok()?;
        if time == last {
            return Some(Placed::LeftOut(NoteKind::DuplicateStamp));
        }
        if time < last {
            return Some(Placed::LeftOut(NoteKind::BackwardStamp));
        }
        let hole = time.duration_since(last).as_secs_f64() - self.period.as_secs_f64();
        // Clocks of loggers jitter: half a period more is still the next row.
        let continuity = if hole > 0.5 * self.period.as_secs_f64() {
            Continuity::Gap { seconds: hole }
        } else {
            Continuity::Next
        };
        Some(Placed::Frame { time, continuity, shift: self.shift })
    }

    /// Remembers a frame that was handed out.
    pub fn advance(&mut self, time: Timestamp, shift: SignedDuration) {
        self.last = Some(time);
        self.shift = shift;
    }
}

/// The usual distance of these stamps: the most frequent positive difference, the smallest of
/// several; `None` when no stamp is later than the one before.
pub(crate) fn usual_step(stamps: &[Timestamp]) -> Option<SignedDuration> {
    let mut steps: Vec<i64> = stamps
        .windows(2)
        .filter_map(|pair| {
            // To the microsecond: seconds written as decimals differ in the last digits.
            let step = pair[1].duration_since(pair[0]) + SignedDuration::from_nanos(500);
            i64::try_from(step.as_micros()).ok()
        })
        .filter(|micros| *micros > 0)
        .collect();
    steps.sort_unstable();
    let mut best = (0, None);
    for same in steps.chunk_by(|a, b| a == b) {
        if same.len() > best.0 {
            best = (same.len(), Some(SignedDuration::from_micros(same[0])));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn walk(rows: &[(i64, bool)]) -> Vec<(i64, Continuity)> {
        let mut timeline = Timeline::new(SignedDuration::from_secs(60));
        let mut frames = Vec::new();
        for &(stamp, new_run) in rows {
            match timeline.place(at(stamp), new_run) {
                Some(Placed::Frame { time, continuity, shift }) => {
                    timeline.advance(time, shift);
                    frames.push((time.as_second(), continuity));
                }
                Some(Placed::LeftOut(_)) | None => {}
            }
        }
        frames
    }

    #[test]
    fn a_run_whose_clock_restarts_begins_one_period_after_the_run_before() {
        use Continuity::{Gap, NewRun, Next};
        let frames =
            walk(&[(60, true), (120, false), (60, true), (120, false), (300, false), (9000, true)]);
        let expected = [
            (60, NewRun),
            (120, Next),
            (180, NewRun),
            (240, Next),
            (420, Gap { seconds: 120.0 }),
            (9000, NewRun),
        ];
        assert_eq!(frames, expected);
    }

    #[test]
    fn the_usual_step_is_the_most_frequent_one() {
        let stamps = [0, 60, 120, 180, 175, 3600, 3660].map(at);
        assert_eq!(usual_step(&stamps), Some(SignedDuration::from_secs(60)));
        assert_eq!(usual_step(&[at(5), at(5), at(1)]), None);
        assert_eq!(usual_step(&[]), None);
    }

    proptest! {
        #[test]
        fn time_never_goes_backward_whatever_the_stamps(
            rows in prop::collection::vec((-500_i64..500, any::<bool>()), 0..60),
        ) {
            let frames = walk(&rows);
            prop_assert!(frames.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
