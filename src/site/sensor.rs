//! Is a sensor itself at fault? Flat lines, gaps and impossible values, judged by what each sensor
//! did when all was well; and which sensors deviate most.
//!
//! It sees one client's measurements in whatever unit it was fitted in, and must not leave it.

use serde::{Deserialize, Serialize};

/// What is wrong with a sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum SensorFault {
    /// The same value for longer than it ever stays.
    FlatLine,
    /// No value for several steps.
    Gap,
    /// Far outside anything it showed.
    OutOfRange,
}

impl std::fmt::Display for SensorFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FlatLine => "flat line",
            Self::Gap => "no value",
            Self::OutOfRange => "out of range",
        })
    }
}

/// What one sensor does when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct SensorHabit {
    /// A run of equal values this long is a flat line; none when it may stand still for ever.
    pub(crate) flat_after: Option<u32>,
    /// Lowest and highest plausible value.
    pub(crate) range: (f64, f64),
}

/// No run shorter than this is a flat line.
const SHORTEST_FLAT: u32 = 4;
/// A flat line is this many times as long as the longest nominal run.
const FLAT_FACTOR: u32 = 3;
/// A sensor that nominally stands still for longer than this is never called flat.
const RESTLESS: u32 = 20;
/// One nominal run in so many steps may look like a flat line.
const FLAT_ARL: f64 = 1e7;
/// Steps without a value that make a gap.
const GAP_STEPS: u32 = 5;
/// How far outside its nominal range a value may lie, in widths of that range.
const MARGIN: f64 = 1.0;

/// A flat line repeats the very same number; anything near it is a measurement.
fn repeats(value: f64, last: f64) -> bool {
    value.to_bits() == last.to_bits()
}

/// Learns one sensor's habit from nominal values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HabitFit {
    last: f64,
    run: u32,
    longest: u32,
    repeats: u64,
    steps: u64,
    range: (f64, f64),
}

impl Default for HabitFit {
    fn default() -> Self {
        Self {
            last: f64::NAN,
            run: 0,
            longest: 0,
            repeats: 0,
            steps: 0,
            range: (f64::INFINITY, f64::NEG_INFINITY),
        }
    }
}

impl HabitFit {
    /// One more nominal value.
    pub(crate) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.run = if repeats(value, self.last) { self.run + 1 } else { 1 };
        self.repeats += u64::from(self.run > 1);
        self.steps += 1;
        self.longest = self.longest.max(self.run);
        self.last = value;
        self.range = (self.range.0.min(value), self.range.1.max(value));
    }

    pub(crate) fn habit(&self) -> SensorHabit {
        let width = self.range.1 - self.range.0;
        let range = if width.is_finite() {
            (self.range.0 - MARGIN * width, self.range.1 + MARGIN * width)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        SensorHabit { flat_after: self.flat_after(), range }
    }

    fn flat_after(&self) -> Option<u32> {
        if self.steps < 100 || self.longest > RESTLESS {
            return None;
        }
        // Runs of a quantised sensor are geometric: P(run of L) = ρ^(L−1).
        let rho = (self.repeats as f64 + 0.5) / (self.steps as f64 + 1.0);
        let rare = 1.0 + (FLAT_ARL.ln() / -rho.ln()).ceil();
        Some((rare as u32).max(FLAT_FACTOR * self.longest).max(SHORTEST_FLAT))
    }
}

/// Watches the sensors of one client.
#[derive(Debug, Clone)]
pub(crate) struct SensorWatch {
    habits: Vec<SensorHabit>,
    last: Vec<f64>,
    same: Vec<u32>,
    absent: Vec<u32>,
    faults: Vec<Option<SensorFault>>,
}

impl SensorWatch {
    /// A watch over sensors with these habits.
    pub(crate) fn new(habits: Vec<SensorHabit>) -> Self {
        let n = habits.len();
        Self {
            habits,
            last: vec![f64::NAN; n],
            same: vec![0; n],
            absent: vec![0; n],
            faults: vec![None; n],
        }
    }

    /// One step; missing is NaN.
    pub(crate) fn step(&mut self, values: impl IntoIterator<Item = f64>) {
        for (i, value) in values.into_iter().take(self.habits.len()).enumerate() {
            self.faults[i] = if value.is_finite() {
                self.absent[i] = 0;
                self.same[i] =
                    if repeats(value, self.last[i]) { self.same[i].saturating_add(1) } else { 1 };
                self.last[i] = value;
                self.habits[i].judge(value, self.same[i])
            } else {
                self.absent[i] = self.absent[i].saturating_add(1);
                (self.absent[i] >= GAP_STEPS).then_some(SensorFault::Gap)
            };
        }
    }

    /// A new run: what was seen before does not count.
    pub(crate) fn reset(&mut self) {
        self.last.fill(f64::NAN);
        self.same.fill(0);
        self.absent.fill(0);
        self.faults.fill(None);
    }

    /// What is wrong with each sensor now.
    #[cfg(test)]
    pub(crate) fn faults(&self) -> &[Option<SensorFault>] {
        &self.faults
    }

    /// Whether any sensor has this fault now.
    pub(crate) fn any(&self, fault: SensorFault) -> bool {
        self.faults.contains(&Some(fault))
    }
}

impl SensorHabit {
    fn judge(&self, value: f64, same: u32) -> Option<SensorFault> {
        if self.flat_after.is_some_and(|limit| same >= limit) {
            Some(SensorFault::FlatLine)
        } else if value < self.range.0 || value > self.range.1 {
            Some(SensorFault::OutOfRange)
        } else {
            None
        }
    }
}

/// Which sensors deviate most, by the fading mean of their squared standardised residuals.
#[derive(Debug, Clone)]
pub(crate) struct SensorRanking {
    scores: Vec<f64>,
}

impl SensorRanking {
    /// Weight of the newest step.
    const NEWEST: f64 = 0.2;

    pub(crate) fn new(sensors: usize) -> Self {
        Self { scores: vec![0.0; sensors] }
    }

    /// One step of standardised residuals; a missing one changes nothing.
    pub(crate) fn step(&mut self, standardised: impl IntoIterator<Item = f64>) {
        for (score, r) in self.scores.iter_mut().zip(standardised) {
            if r.is_finite() {
                *score += Self::NEWEST * (r * r - *score);
            }
        }
    }

    /// Sensors from the most to the least deviating.
    pub(crate) fn ranked(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.scores.len()).collect();
        order.sort_by(|a, b| self.scores[*b].total_cmp(&self.scores[*a]));
        order
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // What is compared is picked or constructed, not computed.
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn habit(values: impl IntoIterator<Item = f64>) -> SensorHabit {
        let mut fit = HabitFit::default();
        values.into_iter().for_each(|v| fit.add(v));
        fit.habit()
    }

    fn wave(t: usize) -> f64 {
        (t as f64 * 0.37).sin()
    }

    #[test]
    fn a_sensor_that_never_repeats_is_flat_after_a_few_equal_values() {
        let mut watch = SensorWatch::new(vec![habit((0..2000).map(wave))]);
        let mut flat_at = None;
        for t in 0..40 {
            watch.step([wave(t.min(20))]);
            if watch.any(SensorFault::FlatLine) && flat_at.is_none() {
                flat_at = Some(t);
            }
        }
        assert_eq!(flat_at, Some(20 + SHORTEST_FLAT as usize - 1));
        watch.step([0.5]);
        assert_eq!(watch.faults(), [None]);
    }

    #[test]
    fn a_sensor_that_often_stands_still_is_never_called_flat() {
        let idle = (0..4000).map(|t| if t % 400 < 300 { 0.0 } else { wave(t) });
        assert_eq!(habit(idle).flat_after, None);
        assert_eq!(habit([1.0; 50]).flat_after, None, "too little is known of it");
    }

    #[test]
    fn missing_and_impossible_values_are_told_apart() {
        let mut watch = SensorWatch::new(vec![habit((0..2000).map(wave)); 2]);
        for t in 0..GAP_STEPS {
            watch.step([f64::NAN, 50.0 + f64::from(t)]);
        }
        assert_eq!(watch.faults(), [Some(SensorFault::Gap), Some(SensorFault::OutOfRange)]);
        watch.reset();
        assert_eq!(watch.faults(), [None, None]);
    }

    #[test]
    fn the_deviating_sensor_is_ranked_first() {
        let mut ranking = SensorRanking::new(3);
        for t in 0..50 {
            ranking.step([wave(t), 4.0 + wave(t), if t % 2 == 0 { f64::NAN } else { 1.0 }]);
        }
        assert_eq!(ranking.ranked()[0], 1);
    }

    proptest! {
        #[test]
        fn nominal_values_are_never_a_fault(
            values in prop::collection::vec((-50i32..50).prop_map(f64::from), 100..400),
        ) {
            let mut watch = SensorWatch::new(vec![habit(values.iter().copied())]);
            for v in values {
                watch.step([v]);
                prop_assert_eq!(watch.faults(), [None]);
            }
        }
    }
}
