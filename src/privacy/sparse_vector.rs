//! A private local watch (the sparse vector technique): silent until a noised CUSUM of scores passes a
//! noised threshold. It must not know what the scores mean.

use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::memory::FilterMemory;
use super::randomness::Randomness;
use super::release::{Guarded, Spend};
use super::sampler::discrete_laplace;

/// A private watch over scores between −1 and 1: what it costs and how calm it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct SparseVectorParams {
    /// ε of one arming.
    pub(crate) epsilon: f64,
    /// Symbols that follow when it is raised.
    pub(crate) burst: u64,
    /// Steps between two times that noise alone raises it.
    pub(crate) quiet_steps: f64,
}

impl SparseVectorParams {
    /// The sum of scores near which it is raised.
    ///
    /// The noise of a look has scale 8/ε, that of the threshold half of it; the difference of the
    /// two exceeds T with probability (4 e^{−T/s} − e^{−2T/s})/6 where s = 8/ε, so T = s ln(2R/3)
    /// lets noise alone pass once in R looks.
    pub(crate) fn threshold(&self) -> f64 {
        8.0 / self.epsilon * (2.0 / 3.0 * self.quiet_steps).ln().max(1.0)
    }

    /// The watch that keeps to it.
    pub(crate) fn watch(&self) -> Result<Watch, PrivacyError> {
        Watch::new(self.epsilon, 1.0, 0.0, self.threshold(), &FilterMemory::NONE)
    }
}

/// Settings of a private local watch: a CUSUM of a clipped score, on a grid, against a threshold.
///
/// To be silent until a statistic is high would reveal, by the silence, that it was low. Here both
/// the threshold and every look at the statistic are noised (above-threshold; Dwork and Roth
/// 2014, theorem 3.23): however many steps stay below, they and the one that does not cost ε
/// together. One sample moves the CUSUM by at most the range of its clipped score at all later
/// times, because S ↦ max(0, S + x) never widens a difference; a filter's memory multiplies that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Watch {
    epsilon: f64,
    /// The score's bound, in grid steps.
    reach: i64,
    /// Taken off every score, in grid steps.
    drift: i64,
    threshold: i64,
    /// The most one sample can move the CUSUM, in grid steps.
    sensitivity: u64,
    grid: f64,
}

/// Grid steps per score bound.
const SCORE_STEPS: f64 = 1024.0;

impl Watch {
    /// A watch of ε per arming over scores clipped to ±`bound`, with `drift` taken off each and
    /// an alarm near `threshold`.
    pub(crate) fn new(
        epsilon: f64,
        bound: f64,
        drift: f64,
        threshold: f64,
        memory: &FilterMemory,
    ) -> Result<Self, PrivacyError> {
        let wrong = |what, expected, found| Err(PrivacyError::Setting { what, expected, found });
        if !(epsilon >= 1e-3 && epsilon.is_finite()) {
            return wrong("ε of a watch", "at least 0.001", epsilon);
        }
        if !(bound.is_finite() && bound > 0.0) {
            return wrong("bound of a score", "a number above 0", bound);
        }
        if !(drift >= 0.0 && drift < bound) {
            return wrong("drift of a watch", "at least 0 and below the bound", drift);
        }
        if !(threshold > 0.0 && threshold < 1e6 * bound) {
            return wrong("threshold of a watch", "above 0 and below a million bounds", threshold);
        }
        let grid = bound / SCORE_STEPS;
        let sensitivity = (2.0 * SCORE_STEPS * memory.summed()).ceil();
        if sensitivity * 4.0 / epsilon > super::sampler::MAX_SCALE as f64 {
            return wrong("memory of a watched filter", "a shorter one", memory.summed());
        }
        Ok(Self {
            epsilon,
            reach: SCORE_STEPS as i64,
            drift: (drift / grid).round() as i64,
            threshold: (threshold / grid).round() as i64,
            sensitivity: sensitivity as u64,
            grid,
        })
    }

    /// Arms the watch. The armed watch is of use only once a ledger has taken its price.
    pub(crate) fn arm(&self, random: &mut Randomness) -> Result<Guarded<Armed>, PrivacyError> {
        self.rearm(0, random)
    }

    fn rearm(&self, sum: i64, random: &mut Randomness) -> Result<Guarded<Armed>, PrivacyError> {
        let noise = discrete_laplace(self.scale(2.0), random)?;
        let armed = Armed { watch: *self, sum, threshold: self.threshold + noise };
        let spend = Spend::AboveThreshold { epsilon: self.epsilon };
        Ok(Guarded::new(armed, spend, random.provenance()))
    }

    /// factor·Δ/ε, rounded up: noise never less than the theorem asks for.
    fn scale(&self, factor: f64) -> u64 {
        (factor * self.sensitivity as f64 / self.epsilon).ceil() as u64
    }
}

/// A watch that has been paid for.
#[derive(Debug)]
pub(crate) struct Armed {
    watch: Watch,
    sum: i64,
    threshold: i64,
}

/// What an armed watch says about a step.
#[derive(Debug)]
pub(crate) enum Look {
    /// Still below; the watch goes on at no further cost.
    Quiet(Armed),
    /// Above: an alarm. The watch is used up.
    Raised(Spent),
}

/// A watch that has raised its alarm.
#[derive(Debug)]
pub(crate) struct Spent {
    watch: Watch,
    sum: i64,
}

impl Armed {
    /// Takes one step's score. A score that is not a number leaves the sum as it is.
    pub(crate) fn look(self, score: f64, random: &mut Randomness) -> Result<Look, PrivacyError> {
        let Self { watch, sum, threshold } = self;
        let sum = watch.accumulate(sum, score);
        let noise = discrete_laplace(watch.scale(4.0), random)?;
        Ok(if sum + noise >= threshold {
            Look::Raised(Spent { watch, sum })
        } else {
            Look::Quiet(Self { watch, sum, threshold })
        })
    }
}

impl Spent {
    /// Takes a step's score while the watch is not armed.
    pub(crate) fn follow(&mut self, score: f64) {
        self.sum = self.watch.accumulate(self.sum, score);
    }

    /// Arms the watch again, at its price.
    pub(crate) fn arm(self, random: &mut Randomness) -> Result<Guarded<Armed>, PrivacyError> {
        self.watch.rearm(self.sum, random)
    }
}

impl Watch {
    fn accumulate(&self, sum: i64, score: f64) -> i64 {
        if score.is_nan() {
            return sum;
        }
        let clipped = ((score / self.grid).round() as i64).clamp(-self.reach, self.reach);
        sum.saturating_add(clipped - self.drift).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests may spend without a ledger.
    fn paid(guarded: Guarded<Armed>) -> Armed {
        guarded.value
    }

    #[test]
    fn a_watch_is_quiet_in_quiet_and_raised_in_fault() {
        let watch = Watch::new(2.0, 3.0, 1.5, 120.0, &FilterMemory::NONE).unwrap();
        let mut random = Randomness::seeded(31, 0);
        let mut armed = paid(watch.arm(&mut random).unwrap());
        for _ in 0..2000 {
            armed = match armed.look(0.2, &mut random).unwrap() {
                Look::Quiet(armed) => armed,
                Look::Raised(_) => panic!("a false alarm"),
            };
        }
        let mut delay = 0;
        let mut spent = loop {
            delay += 1;
            match armed.look(9.0, &mut random).unwrap() {
                Look::Quiet(next) => armed = next,
                Look::Raised(spent) => break spent,
            }
        };
        assert!((20..=140).contains(&delay), "raised after {delay} steps");
        (0..200).for_each(|_| spent.follow(0.0));
        assert_eq!(spent.sum, 0);
        let again = spent.arm(&mut random).unwrap();
        assert_eq!(again.spend(), Spend::AboveThreshold { epsilon: 2.0 });
    }

    #[test]
    fn one_sample_moves_the_sum_by_at_most_its_sensitivity_ever_after() {
        let watch = Watch::new(1.0, 3.0, 0.5, 50.0, &FilterMemory::NONE).unwrap();
        let mut random = Randomness::seeded(32, 0);
        for _ in 0..50 {
            let (mut a, mut b) = (0, 0);
            for step in 0..200 {
                let score = random.below(1000).unwrap() as f64 / 100.0 - 5.0;
                a = watch.accumulate(a, score);
                b = watch.accumulate(b, if step == 20 { -score } else { score });
                assert!(a.abs_diff(b) <= watch.sensitivity);
            }
        }
        assert_eq!(watch.accumulate(7, f64::NAN), 7);
        assert!(watch.accumulate(7, f64::INFINITY) > 7);
    }

    #[test]
    fn settings_without_meaning_are_refused() {
        let none = &FilterMemory::NONE;
        assert!(Watch::new(0.0, 1.0, 0.1, 1.0, none).is_err());
        assert!(Watch::new(1.0, -1.0, 0.1, 1.0, none).is_err());
        assert!(Watch::new(1.0, 1.0, 2.0, 1.0, none).is_err());
        assert!(Watch::new(1.0, 1.0, 0.1, f64::NAN, none).is_err());
    }
}
