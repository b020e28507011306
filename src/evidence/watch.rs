//! What the silence of a client says whose private watch speaks for it.
//!
//! Such a client sends nothing until a noised sum of scores passes a noised threshold. How probable
//! that is at a step depends on whether something is wrong: rarely when nothing is (counted in
//! calibration), soon when the fault is its own (played through with symbols of the root-cause
//! hypothesis). Steps are taken as alike, so a step without an alarm says ln (1 − h)/(1 − h_N) and
//! an alarm ln h/h_N, where h is the chance of an alarm at a step.

use super::likelihood::Hypotheses;
use super::symbol::{Grading, MOST_LEVELS};
use crate::privacy::{Randomness, Release, Releaser, SparseVectorParams, Symbol};
use crate::session::SendPolicy;

/// Armings that are played through, and the longest that one of them lasts.
const PLAYED: u32 = 100;
const LONGEST: u32 = 200;

/// Log-likelihood ratios of silence and of an alarm, for a root cause and for who feels one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Odds {
    quiet: (f64, f64),
    raised: (f64, f64),
}

impl Odds {
    /// The odds of a client whose watch was `raised.0` times raised in `raised.1` calibration steps.
    pub(crate) fn new(
        grading: &Grading,
        hypotheses: &Hypotheses,
        params: &SparseVectorParams,
        raised: (u64, u64),
    ) -> Self {
        // As if one more arming had lasted as long as it was designed to.
        let nominal = (raised.0 as f64 + 1.0) / (raised.1 as f64 + params.quiet_steps.max(1.0));
        let nominal = nominal.clamp(1e-9, 0.5);
        let hazard = |a: f64| played(grading, hypotheses, params, a).max(nominal).min(0.999);
        let (rc, pe) = (hazard(hypotheses.root_cause), hazard(hypotheses.propagated_effect));
        let w = hypotheses.affected;
        let felt = |ratio: f64| (1.0 - w + w * ratio).ln();
        let quiet = |h: f64| (1.0 - h) / (1.0 - nominal);
        Self {
            quiet: (quiet(rc).ln(), felt(quiet(pe))),
            raised: ((rc / nominal).ln(), felt(pe / nominal)),
        }
    }

    /// (λ^RC, λ^PE) of a silent step.
    pub(crate) fn quiet(&self) -> (f64, f64) {
        self.quiet
    }

    /// (λ^RC, λ^PE) of an alarm, besides what its symbol says.
    pub(crate) fn raised(&self) -> (f64, f64) {
        self.raised
    }
}

/// What a step's level adds to the watched sum: its log-likelihood ratio by the nominal shares that
/// the grading promises, cut and scaled to ±1 so that an ordinary step takes off as much as any can
/// add.
pub(crate) fn score(grading: &Grading, hypotheses: &Hypotheses) -> [f64; MOST_LEVELS] {
    let nominal = grading.level_probabilities(1.0);
    let root = grading.level_probabilities(hypotheses.root_cause);
    let ratio = |level: usize| (root[level] / nominal[level]).ln();
    let unit = ratio(0).abs().max(f64::MIN_POSITIVE);
    let mut scores = [0.0; MOST_LEVELS];
    for (level, score) in scores.iter_mut().enumerate().take(grading.levels()) {
        *score = (ratio(level) / unit).clamp(-1.0, 1.0);
    }
    scores
}

/// The chance of an alarm at a step, when levels follow Beta(a, 1) p-values.
fn played(grading: &Grading, hypotheses: &Hypotheses, params: &SparseVectorParams, a: f64) -> f64 {
    let scores = score(grading, hypotheses);
    let levels = grading.level_probabilities(a);
    let once = SparseVectorParams { burst: 1, ..*params };
    let levels_sent = grading.levels() as u8;
    // Nothing is learned from these numbers about anybody: the seed may be known.
    let mut draw = Randomness::seeded(0x0DD5, 0);
    let (mut alarms, mut looks) = (0_u32, 0_u32);
    for armed in 0..PLAYED {
        let random = Randomness::seeded(0x0DD5, 1 + u64::from(armed));
        let releaser = Releaser::new(None, levels_sent, SendPolicy::WhileRaised, once, random);
        let Ok(mut releaser) = releaser else { return 0.0 };
        for _ in 0..LONGEST {
            looks += 1;
            let level = drawn(&levels, &mut draw);
            if let Release::Raised(_) = releaser.rehearse(Symbol(level as u8), scores[level]) {
                alarms += 1;
                break;
            }
        }
    }
    f64::from(alarms) / f64::from(looks.max(1))
}

fn drawn(levels: &[f64], random: &mut Randomness) -> usize {
    let p = random.below(1 << 53).unwrap_or(0) as f64 / (1_u64 << 53) as f64;
    let mut sum = 0.0;
    for (level, share) in levels.iter().enumerate() {
        sum += share;
        if p < sum {
            return level;
        }
    }
    levels.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_between_minus_one_and_one_and_rise_with_the_level() {
        let scores = score(&Grading::five_levels(), &Hypotheses::default());
        assert!(scores[..5].is_sorted() && (scores[0] + 1.0).abs() < 1e-12, "{scores:?}");
        assert!((scores[4] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_dearer_watch_is_raised_sooner() {
        let (grading, hypotheses) = (Grading::five_levels(), Hypotheses::default());
        let hazard = |epsilon| {
            let params = SparseVectorParams { epsilon, burst: 5, quiet_steps: 3000.0 };
            played(&grading, &hypotheses, &params, hypotheses.root_cause)
        };
        let hazards = [hazard(2.0), hazard(8.0), hazard(30.0)];
        assert!(hazards.is_sorted() && hazards[0] > 0.0 && hazards[2] < 0.6, "{hazards:?}");
    }

    #[test]
    fn who_never_watches_says_nothing_by_silence() {
        assert_eq!(Odds::default().quiet(), (0.0, 0.0));
        assert_eq!(Odds::default().raised(), (0.0, 0.0));
    }
}
