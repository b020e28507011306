//! What a setting costs and what it buys, in the figures a person chooses by.

use super::PrivacyError;
use super::cusum::FlagCusum;
use super::gaussian::{SigmaRule, Standing};
use super::mechanism::{Clip, Gaussian};
use super::response::Response;
use super::special::ln_binomial_pmf;

/// What an ε per state or gradient means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NumberPrice {
    /// The most that one sample can move the release.
    pub(crate) sensitivity: f64,
    /// The noise on every component.
    pub(crate) sigma: f64,
    /// The noise against the largest value that clipping lets through.
    pub(crate) noise_to_bound: f64,
    /// Whether the rule's claim holds at all.
    pub(crate) standing: Standing,
}

impl NumberPrice {
    /// The price of (ε, δ) by `rule` under `clip`.
    pub(crate) fn of(
        clip: Clip,
        rule: SigmaRule,
        epsilon: f64,
        delta: f64,
    ) -> Result<Self, PrivacyError> {
        let mechanism = Gaussian::new(clip, rule, epsilon, delta)?;
        let (Clip::Box { bound, .. } | Clip::Ball { bound }) = clip;
        Ok(Self {
            sensitivity: mechanism.sensitivity(),
            sigma: mechanism.sigma(),
            noise_to_bound: mechanism.sigma() / bound,
            standing: rule.standing(epsilon, delta),
        })
    }
}

/// What an ε per flag means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlagPrice {
    /// The chance that a flag is told truly.
    pub(crate) truth: f64,
    /// The chance that it is turned.
    pub(crate) flip: f64,
    /// The test that keeps false alarms as rare as wanted.
    pub(crate) cusum: Option<FlagCusum>,
    /// ε spent, by adding up, until a true alarm.
    pub(crate) epsilon_to_detect: Option<f64>,
    /// What a quiet client seems to say.
    pub(crate) quiet: QuietPair,
}

impl FlagPrice {
    /// The price of `epsilon` per flag when false alarms are to be `arl0` flags apart.
    pub(crate) fn of(epsilon: f64, arl0: f64) -> Result<Self, PrivacyError> {
        let response = Response::binary(epsilon)?;
        let cusum = FlagCusum::on_response(&response, arl0);
        Ok(Self {
            truth: response.truth(),
            flip: response.flip(),
            cusum,
            epsilon_to_detect: cusum.map(|c| c.arl1 * epsilon),
            quiet: QuietPair::of(&response, &response),
        })
    }
}

/// The chances of the four pairs `(Z_c, Z_a)` that a client with both flags at 0 is heard to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QuietPair {
    /// (0, 0), the truth.
    pub(crate) neither: f64,
    /// (1, 0).
    pub(crate) only_c: f64,
    /// (0, 1).
    pub(crate) only_a: f64,
    /// (1, 1), which the paper's table reads as a root cause.
    pub(crate) both: f64,
}

impl QuietPair {
    /// The chances when `Z_c` and `Z_a` are told by these two.
    pub(crate) fn of(c: &Response, a: &Response) -> Self {
        Self {
            neither: c.truth() * a.truth(),
            only_c: c.flip() * a.truth(),
            only_a: c.truth() * a.flip(),
            both: c.flip() * a.flip(),
        }
    }
}

/// More answers than this are not asked for.
const MOST_VOTES: u64 = 1_000_001;

/// How many answers a majority vote needs to be wrong at most with probability `error`: an odd
/// number. `None` when a million do not suffice.
pub(crate) fn votes_needed(response: &Response, error: f64) -> Option<u64> {
    let wrong = |votes: u64| -> f64 {
        (votes / 2 + 1..=votes)
            .map(|lies| ln_binomial_pmf(votes, lies, response.flip(), response.truth()).exp())
            .take_while(|p| *p > 1e-18 * error)
            .sum()
    };
    // An odd number 2n + 1 of votes errs less the larger n is.
    let (mut low, mut high) = (0, MOST_VOTES / 2);
    if wrong(2 * high + 1) > error {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if wrong(2 * middle + 1) <= error { high = middle } else { low = middle + 1 }
    }
    Some(2 * low + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_epsilon_buys_delay_and_nothing_else() {
        let delays: Vec<f64> = [4.0, 2.0, 1.0, 0.5]
            .iter()
            .map(|e| FlagPrice::of(*e, 604_800.0).unwrap().cusum.unwrap().arl1)
            .collect();
        assert!(delays.is_sorted(), "{delays:?}");
    }

    #[test]
    fn the_four_pairs_are_all_there_is() {
        let pair = QuietPair::of(&Response::binary(0.7).unwrap(), &Response::binary(2.0).unwrap());
        let total = pair.neither + pair.only_c + pair.only_a + pair.both;
        assert!((total - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_price_in_noise_says_when_its_rule_is_false() {
        let clip = Clip::Box { bound: 5.0, dimension: 2 };
        let price = NumberPrice::of(clip, SigmaRule::Classic, 10.0, 1e-5).unwrap();
        assert!(matches!(price.standing, Standing::False { .. }));
        let price = NumberPrice::of(clip, SigmaRule::Analytic, 1.0, 1e-5).unwrap();
        assert!((price.noise_to_bound - 2.0 * 2.0_f64.sqrt() * 3.7306).abs() < 0.01);
        assert!(NumberPrice::of(clip, SigmaRule::Analytic, 0.0, 1e-5).is_err());
    }
}
