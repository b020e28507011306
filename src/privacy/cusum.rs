//! Run lengths of a CUSUM over randomised answers: how long until a false alarm, how long until
//! a true one. Exact, as absorption times of a Markov chain (Brook and Evans 1972).

use super::response::Response;

/// The mean number of flags until a walk on 0, 1, … reaches `threshold`, when each flag raises
/// it by one with probability `up` and otherwise lowers it by one, never below 0.
///
/// The time from i to i + 1 is h(i) = (1 + down·h(i − 1))/up: a sum of positive terms, so no
/// digit is lost however long the run.
pub(crate) fn flag_run_length(up: f64, threshold: u32) -> f64 {
    let down = 1.0 - up;
    let (mut climb, mut total) = (0.0, 0.0);
    for _ in 0..threshold {
        climb = (1.0 + down * climb) / up;
        total += climb;
    }
    total
}

/// The mean number of symbols until the sum of their scores, never below 0, reaches `threshold`.
/// `scores` holds each score with its probability.
///
/// States are eliminated one by one as by Grassmann, Taksar and Heyman (1985): additions,
/// products and quotients of positive numbers only.
pub(crate) fn score_run_length(scores: &[(i32, f64)], threshold: u32) -> f64 {
    let n = threshold as usize;
    if n == 0 {
        return 0.0;
    }
    // A row of n for each state.
    let mut step = vec![0.0_f64; n * n];
    let mut alarm = vec![0.0_f64; n];
    let mut time = vec![1.0_f64; n];
    for (from, row) in step.chunks_exact_mut(n).enumerate() {
        for &(score, p) in scores {
            let size = score.unsigned_abs() as usize;
            let to = if score < 0 { from.saturating_sub(size) } else { from + size };
            if to < n {
                row[to] += p;
            } else {
                alarm[from] += p;
            }
        }
    }
    // No score leads further than this, and eliminating a state leads nobody further either.
    let down = scores.iter().map(|(score, _)| score.saturating_neg().max(0)).max().unwrap_or(0);
    let up = scores.iter().map(|(score, _)| (*score).max(0)).max().unwrap_or(0);
    for last in (1..n).rev() {
        let lowest = last.saturating_sub(down as usize);
        let nearest = last.saturating_sub(up as usize);
        let (earlier, rest) = step.split_at_mut(last * n);
        let row = &rest[..n];
        let leaving = alarm[last] + row[lowest..last].iter().sum::<f64>();
        for (from, other) in earlier.chunks_exact_mut(n).enumerate().skip(nearest) {
            let share = other[last] / leaving;
            if share > 0.0 {
                for (other, via) in other[lowest..last].iter_mut().zip(&row[lowest..last]) {
                    *other += share * via;
                }
                alarm[from] += share * alarm[last];
                time[from] += share * time[last];
            }
        }
    }
    time[0] / alarm[0]
}

/// A CUSUM on binary answers and how it behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlagCusum {
    /// It raises an alarm after so many more ones than zeros.
    pub(crate) threshold: u32,
    /// Mean number of flags between false alarms.
    pub(crate) arl0: f64,
    /// Mean number of flags until a true alarm.
    pub(crate) arl1: f64,
}

/// No threshold above this is looked for.
const HIGHEST: u32 = 100_000;

impl FlagCusum {
    /// The lowest threshold whose false alarms are at least `arl0` flags apart, when a quiet
    /// client's answer is 1 with probability `quiet` and a faulty one's with `faulty`. `None`
    /// when the answers say too little for any threshold to do it.
    pub(crate) fn design(quiet: f64, faulty: f64, arl0: f64) -> Option<Self> {
        let down = 1.0 - quiet;
        let (mut climb, mut total, mut threshold) = (0.0, 0.0, 0);
        while total < arl0 {
            if threshold == HIGHEST || quiet <= 0.0 {
                return None;
            }
            climb = (1.0 + down * climb) / quiet;
            total += climb;
            threshold += 1;
        }
        Some(Self { threshold, arl0: total, arl1: flag_run_length(faulty, threshold) })
    }
}

/// A CUSUM on graded symbols: log-likelihood ratios rounded to a grid, so that its run lengths
/// are exact for what is really computed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SymbolCusum {
    /// The score of each symbol.
    pub(crate) scores: Vec<i32>,
    /// It raises an alarm when the scores sum up to this.
    pub(crate) threshold: u32,
    /// Mean number of symbols between false alarms.
    pub(crate) arl0: f64,
    /// Mean number of symbols until a true alarm.
    pub(crate) arl1: f64,
}

/// Grid steps per unit of log-likelihood ratio that are tried: a small ε leaves over ratios that a
/// coarse grid rounds away, and a large one makes a fine grid longer than can be solved.
const SCORE_STEPS: [f64; 4] = [4.0, 8.0, 16.0, 32.0];

/// The largest chain that is solved: it takes milliseconds.
const MOST_STATES: u32 = 256;

impl SymbolCusum {
    /// The test with the shortest delay, of those whose false alarms are at least `arl0` symbols apart,
    /// for symbols distributed as `quiet` or `faulty` before they go through `response`. `None` when
    /// no threshold of a size that can be solved does it.
    pub(crate) fn design(
        response: &Response,
        quiet: &[f64],
        faulty: &[f64],
        arl0: f64,
    ) -> Option<Self> {
        let (quiet, faulty) = (response.answers(quiet), response.answers(faulty));
        // A grid that is twice as fine has a threshold about twice as high.
        let (mut best, mut near): (Option<Self>, u32) = (None, 1);
        for steps in SCORE_STEPS {
            let next = Self::on(steps, &quiet, &faulty, arl0, near);
            near = next.as_ref().map_or(MOST_STATES, |next| 2 * next.threshold);
            let is_soonest = |next: &Self| best.as_ref().is_none_or(|best| next.arl1 < best.arl1);
            best = next.filter(is_soonest).or(best);
        }
        best
    }

    /// The lowest threshold on one grid, which is probably `near` there.
    fn on(steps: f64, quiet: &[f64], faulty: &[f64], arl0: f64, near: u32) -> Option<Self> {
        let scores: Vec<i32> =
            quiet.iter().zip(faulty).map(|(q, f)| (steps * (f / q).ln()).round() as i32).collect();
        let run = |shares: &[f64], threshold| {
            let steps: Vec<_> = scores.iter().copied().zip(shares.iter().copied()).collect();
            score_run_length(&steps, threshold)
        };
        if scores.iter().all(|s| *s <= 0) {
            return None;
        }
        // Long chains take long. From `near` on, upwards or downwards in growing steps.
        let (mut low, mut high) = (1, near.min(MOST_STATES));
        let (mut found, mut step) = (run(quiet, high), 1);
        while found < arl0 {
            if high >= MOST_STATES {
                return None;
            }
            (low, high) = (high + 1, (high + step).min(MOST_STATES));
            (found, step) = (run(quiet, high), 2 * step);
        }
        let mut is_below = low > 1;
        while low < high {
            let middle =
                if is_below { low + (high - low) / 2 } else { high.saturating_sub(step).max(low) };
            let length = run(quiet, middle);
            if length >= arl0 {
                (high, found, step) = (middle, length, 2 * step);
            } else {
                (low, is_below) = (middle + 1, true);
            }
        }
        let arl1 = run(faulty, low);
        Some(Self { scores, threshold: low, arl0: found, arl1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::randomness::Randomness;
    use proptest::prelude::*;

    #[test]
    fn answers_that_say_nothing_have_no_threshold() {
        assert_eq!(FlagCusum::design(0.0, 1.0, 100.0), None);
        let response = Response::new(1.0, 3).unwrap();
        let flat = [1.0 / 3.0; 3];
        assert_eq!(SymbolCusum::design(&response, &flat, &flat, 100.0), None);
    }

    #[test]
    fn graded_symbols_are_told_sooner_than_flags_at_an_easy_epsilon() {
        let response = Response::new(4.0, 3).unwrap();
        let design =
            SymbolCusum::design(&response, &[0.9, 0.08, 0.02], &[0.2, 0.3, 0.5], 3600.0).unwrap();
        assert!(design.arl0 >= 3600.0 && design.arl1 < 15.0, "{design:?}");
        assert!(design.scores[0] < 0 && design.scores[2] > design.scores[1]);
    }

    #[test]
    fn the_threshold_is_the_lowest_whose_false_alarms_are_far_enough_apart() {
        for epsilon in [0.5, 1.0, 2.0, 4.0, 8.0] {
            let response = Response::new(epsilon, 3).unwrap();
            let (quiet, faulty) = ([0.9, 0.08, 0.02], [0.2, 0.3, 0.5]);
            for arl0 in [2.0, 50.0, 3600.0, 1e6] {
                let Some(found) = SymbolCusum::design(&response, &quiet, &faulty, arl0) else {
                    continue;
                };
                let heard = response.answers(&quiet);
                let steps: Vec<_> = found.scores.iter().copied().zip(heard).collect();
                assert!(score_run_length(&steps, found.threshold) >= arl0, "ε {epsilon}, {arl0}");
                assert!(
                    score_run_length(&steps, found.threshold - 1) < arl0,
                    "ε {epsilon}, {arl0}"
                );
            }
        }
    }

    #[test]
    fn the_chain_agrees_with_simulation() {
        let mut random = Randomness::seeded(21, 0);
        let response = Response::binary(1.0).unwrap();
        let design = FlagCusum::design(response.flip(), response.truth(), 200.0).unwrap();
        let runs = 20_000;
        let mut squares = 0.0;
        let mut total = 0.0;
        for _ in 0..runs {
            let (mut sum, mut length) = (0, 0.0);
            while sum < design.threshold {
                let one = response.answer(0, &mut random).unwrap() == 1;
                sum = if one { sum + 1 } else { sum.saturating_sub(1) };
                length += 1.0;
            }
            total += length;
            squares += length * length;
        }
        let n = f64::from(runs);
        let mean = total / n;
        let error = ((squares / n - mean * mean) / n).sqrt();
        assert!((mean - design.arl0).abs() < 5.0 * error, "{mean} ± {error}, {}", design.arl0);
    }

    proptest! {
        #[test]
        fn the_walk_and_the_chain_are_one(up in 0.05_f64..0.95, threshold in 1_u32..25) {
            let walk = flag_run_length(up, threshold);
            let chain = score_run_length(&[(1, up), (-1, 1.0 - up)], threshold);
            prop_assert!((walk / chain - 1.0).abs() < 1e-10, "{walk} {chain}");
        }
    }
}
