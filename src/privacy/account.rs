//! Releases counted by their settings, and what they cost together.
//!
//! A [`Tally`] grows with the number of settings ever used, not with the number of releases: a
//! day of four releases a second is four counters.

use std::cell::RefCell;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::composition::{best_rdp_epsilon, mixed_epsilon, response_epsilon, response_rdp};
use super::gaussian;
use super::memory::FilterMemory;
use super::release::{Spend, near};

/// So many composed ε are remembered.
const REMEMBERED: usize = 32;

thread_local! {
    /// The ε that were composed last, the newest first. A ledger asks for the same ones at every hour, and
    /// so do clients that send alike.
    static LAST: RefCell<VecDeque<Known>> = const { RefCell::new(VecDeque::new()) };
}

/// An ε that was composed before.
struct Known {
    tally: Tally,
    /// The bits of δ.
    delta: u64,
    epsilon: (f64, Bound),
}

/// How many releases were made with which settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tally(Vec<(Spend, u64)>);

/// What a tally costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Composed {
    /// ε at the stated δ, by `bound`.
    pub(crate) epsilon: f64,
    /// ε at the same δ by adding up, for comparison.
    pub(crate) basic: f64,
    /// ρ of zero-concentrated privacy.
    pub(crate) rho: f64,
    pub(crate) releases: u64,
    /// Which theorem gives `epsilon`.
    pub(crate) bound: Bound,
}

/// The theorem behind a composed ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bound {
    Nothing,
    /// Gaussians of any σ: exact, by the sum of (Δ/σ)².
    ExactGaussian,
    /// Randomised response at one ε: exact for binary answers, an upper bound for k-ary ones.
    ExactBinomial,
    /// Gaussians and responses at one ε: exact, the binomial mixture of Gaussian curves.
    ExactMixture,
    /// Responses at several ε, or too many for the exact mixture: the sum of Rényi divergences
    /// at the best order (Canonne, Kamath, Steinke), or plain addition where that is less.
    Renyi,
    /// Something was sent in the clear.
    Unbounded,
}

impl Bound {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Nothing => "nothing released",
            Self::ExactGaussian => "exact (Gaussian)",
            Self::ExactBinomial => "exact (binomial)",
            Self::ExactMixture => "exact (mixture)",
            Self::Renyi => "at most (Rényi)",
            Self::Unbounded => "sent in the clear",
        }
    }
}

impl Tally {
    /// No release at all.
    pub(crate) const NOTHING: Self = Self(Vec::new());

    pub(crate) fn of(spend: Spend, count: u64) -> Self {
        let mut tally = Self::default();
        tally.add(spend, count);
        tally
    }

    pub(crate) fn add(&mut self, spend: Spend, count: u64) {
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| known.same_setting(&spend)) {
            Some((_, n)) => *n = n.saturating_add(count),
            None => self.0.push((spend, count)),
        }
    }

    /// Counts all that `other` counts.
    pub(crate) fn merge(&mut self, other: &Self) {
        for &(spend, count) in &other.0 {
            self.add(spend, count);
        }
    }

    /// Uncounts all that `other` counts, which must have been counted before.
    pub(crate) fn remove(&mut self, other: &Self) {
        for (spend, count) in &other.0 {
            if let Some((_, n)) = self.0.iter_mut().find(|(known, _)| known.same_setting(spend)) {
                *n = n.saturating_sub(*count);
            }
        }
        self.0.retain(|(_, n)| *n > 0);
    }

    /// This and `other` together.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.merge(other);
        both
    }

    /// What of it was sent with noise.
    pub(crate) fn noised(&self) -> Self {
        Self(self.0.iter().filter(|(spend, _)| *spend != Spend::Clear).copied().collect())
    }

    /// `factor` times as many releases of every kind, rounded up.
    pub(crate) fn times(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|&(s, n)| (s, (n as f64 * factor).ceil() as u64)).collect())
    }

    pub(crate) fn releases(&self) -> u64 {
        self.0.iter().map(|(_, n)| n).sum()
    }

    /// Whether every count is at most that of `other`: then it cannot cost more.
    pub(crate) fn within(&self, other: &Self) -> bool {
        self.0
            .iter()
            .all(|(spend, n)| other.0.iter().any(|(known, m)| known.same_setting(spend) && n <= m))
    }

    /// The settings and their counts, oldest setting first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Spend, u64)> + '_ {
        self.0.iter().copied()
    }

    /// What the releases of one sample go on costing through the filter's memory: the later
    /// releases that the same sample still moves, as far as they go beyond the first.
    pub(crate) fn echo(&self, memory: &FilterMemory) -> Self {
        let mut echo = Self::default();
        for &(spend, count) in &self.0 {
            match spend {
                Spend::Gaussian { sensitivity, sigma } => {
                    let later = (memory.squared() - 1.0).max(0.0).sqrt();
                    if later > 0.0 {
                        let sensitivity = sensitivity * later;
                        echo.add(Spend::Gaussian { sensitivity, sigma }, count);
                    }
                }
                // An arming is priced for a change of one step's score; a sample that moves later
                // steps too changes more of them.
                Spend::Response { .. } | Spend::AboveThreshold { .. } => {
                    echo.add(spend, count.saturating_mul(memory.later_symbols()));
                }
                // It cannot cost more.
                Spend::Clear => {}
            }
        }
        echo
    }

    /// ρ of zero-concentrated privacy: additive, and cheap enough to look at on every release.
    pub(crate) fn rho(&self) -> f64 {
        self.0.iter().map(|(spend, n)| spend.rho() * *n as f64).sum()
    }

    /// Whether it costs more by ρ; where neither is protected, whether it is sent more often.
    pub(crate) fn is_costlier_than(&self, other: &Self) -> bool {
        let (own, others) = (self.rho(), other.rho());
        own > others || (own.is_infinite() && self.releases() > other.releases())
    }

    /// √(Σ(Δ/σ)²) over the Gaussian releases.
    fn strength(&self) -> f64 {
        self.0
            .iter()
            .filter_map(|(spend, n)| spend.strength().map(|mu| mu * mu * *n as f64))
            .sum::<f64>()
            .sqrt()
    }

    /// The ε-private releases, by ε: answers over different alphabets compose by ε alone.
    fn pure(&self) -> Vec<(f64, u64)> {
        let mut groups: Vec<(f64, u64)> = Vec::new();
        for (spend, n) in &self.0 {
            let Some(epsilon) = spend.pure_epsilon() else { continue };
            match groups.iter_mut().find(|(e, _)| near(*e, epsilon)) {
                Some((_, m)) => *m += n,
                None => groups.push((epsilon, *n)),
            }
        }
        groups
    }

    /// Basic composition: ε of each release, added up, δ shared equally among the Gaussian ones.
    pub(crate) fn basic(&self, delta: f64) -> f64 {
        let gaussians: u64 =
            self.0.iter().filter(|(s, _)| s.strength().is_some()).map(|(_, n)| n).sum();
        self.0
            .iter()
            .map(|(spend, n)| {
                let each = match spend.strength() {
                    Some(mu) => gaussian::epsilon(mu, delta / gaussians as f64),
                    None => spend.pure_epsilon().unwrap_or(f64::INFINITY),
                };
                each * *n as f64
            })
            .sum()
    }

    /// What it all costs at δ. Settings may have been chosen in view of earlier releases: Rényi
    /// divergences add up under such choices as well (Feldman and Zrnic 2021), and so do the
    /// squares of Gaussian strengths (Smith and Thakurta 2022).
    pub(crate) fn composed(&self, delta: f64) -> Composed {
        let (epsilon, bound) = self.epsilon(delta);
        Composed {
            epsilon,
            basic: self.basic(delta),
            rho: self.rho(),
            releases: self.releases(),
            bound,
        }
    }

    /// ε at δ and the theorem that gives it.
    pub(crate) fn epsilon(&self, delta: f64) -> (f64, Bound) {
        let known = |last: &VecDeque<Known>| {
            let mut last = last.iter();
            let same = last.find(|known| known.delta == delta.to_bits() && known.tally == *self);
            same.map(|known| known.epsilon)
        };
        if let Some(epsilon) = LAST.with_borrow(known) {
            return epsilon;
        }
        let epsilon = self.compose(delta);
        LAST.with_borrow_mut(|last| {
            last.truncate(REMEMBERED - 1);
            last.push_front(Known { tally: self.clone(), delta: delta.to_bits(), epsilon });
        });
        epsilon
    }

    fn compose(&self, delta: f64) -> (f64, Bound) {
        let mu = self.strength();
        match (mu > 0.0, self.pure().as_slice()) {
            (false, []) => (0.0, Bound::Nothing),
            (_, groups) if groups.iter().any(|(e, _)| e.is_infinite()) => {
                (f64::INFINITY, Bound::Unbounded)
            }
            (true, []) => (gaussian::epsilon(mu, delta), Bound::ExactGaussian),
            (false, &[(epsilon, n)]) => (response_epsilon(epsilon, n, delta), Bound::ExactBinomial),
            (true, &[(epsilon, n)]) => match mixed_epsilon(mu, epsilon, n, delta) {
                Some(total) => (total, Bound::ExactMixture),
                None => (renyi(mu, &[(epsilon, n)], delta), Bound::Renyi),
            },
            (_, groups) => (renyi(mu, groups, delta), Bound::Renyi),
        }
    }
}

fn renyi(mu: f64, groups: &[(f64, u64)], delta: f64) -> f64 {
    let rdp = |alpha: f64| {
        let responses: f64 = groups.iter().map(|&(e, n)| n as f64 * response_rdp(e, alpha)).sum();
        super::composition::gaussian_rdp(mu, alpha) + responses
    };
    let added: f64 = groups.iter().map(|&(e, n)| e * n as f64).sum();
    best_rdp_epsilon(rdp, delta).min(gaussian::epsilon(mu, delta) + added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FLAG: Spend = Spend::Response { epsilon: 0.5, symbols: 2 };
    const STATE: Spend = Spend::Gaussian { sensitivity: 14.0, sigma: 70.0 };

    #[test]
    fn an_epsilon_that_is_remembered_is_the_one_that_was_composed() {
        for _ in 0..2 {
            for n in 1..3 * REMEMBERED as u64 {
                let (flags, both) =
                    (Tally::of(FLAG, n), Tally::of(FLAG, 2).and(&Tally::of(STATE, n)));
                for (tally, delta) in [(&flags, 1e-5), (&flags, 1e-6), (&both, 1e-5)] {
                    assert_eq!(tally.epsilon(delta), tally.compose(delta), "{tally:?} at {delta}");
                }
            }
        }
    }

    fn any_spend() -> impl Strategy<Value = Spend> {
        prop_oneof![
            (0.1_f64..10.0, 1.0_f64..100.0)
                .prop_map(|(sensitivity, sigma)| Spend::Gaussian { sensitivity, sigma }),
            (0.05_f64..3.0, 2_u8..6)
                .prop_map(|(epsilon, symbols)| Spend::Response { epsilon, symbols }),
            (0.05_f64..3.0).prop_map(|epsilon| Spend::AboveThreshold { epsilon }),
        ]
    }

    #[test]
    fn the_bound_used_is_named() {
        let bound = |spends: &[Spend]| {
            let mut tally = Tally::default();
            for spend in spends {
                tally.add(*spend, 10);
            }
            tally.epsilon(1e-5).1
        };
        let other = Spend::Response { epsilon: 1.0, symbols: 2 };
        assert_eq!(bound(&[]), Bound::Nothing);
        assert_eq!(bound(&[STATE]), Bound::ExactGaussian);
        assert_eq!(bound(&[FLAG]), Bound::ExactBinomial);
        assert_eq!(bound(&[STATE, FLAG]), Bound::ExactMixture);
        assert_eq!(bound(&[FLAG, other]), Bound::Renyi);
        assert_eq!(bound(&[STATE, Spend::Clear]), Bound::Unbounded);
        assert!(Tally::of(Spend::Clear, 1).composed(1e-5).epsilon.is_infinite());
    }

    #[test]
    fn gaussians_of_different_noise_add_in_squares() {
        let mut tally = Tally::of(Spend::Gaussian { sensitivity: 3.0, sigma: 1.0 }, 1);
        tally.add(Spend::Gaussian { sensitivity: 8.0, sigma: 2.0 }, 1);
        let five = Tally::of(Spend::Gaussian { sensitivity: 5.0, sigma: 1.0 }, 1);
        let (a, b) = (tally.epsilon(1e-5).0, five.epsilon(1e-5).0);
        assert!((a / b - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_setting_read_back_from_text_is_the_same_setting() {
        let mut tally = Tally::of(FLAG, 5);
        tally.add(Spend::Response { epsilon: 0.5 * (1.0 + 4e-16), symbols: 2 }, 5);
        assert_eq!(tally.entries().count(), 1);
        assert_eq!(tally.releases(), 10);
    }

    #[test]
    fn two_flag_streams_cost_what_one_of_twice_the_length_costs() {
        let two = Tally::of(FLAG, 600).and(&Tally::of(FLAG, 600));
        assert_eq!(two.epsilon(1e-6), Tally::of(FLAG, 1200).epsilon(1e-6));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn one_more_release_of_any_kind_never_costs_less(
            spends in proptest::collection::vec((any_spend(), 1_u64..2000), 1..4),
            next in any_spend(),
        ) {
            let mut tally = Tally::default();
            for (spend, n) in &spends {
                tally.add(*spend, *n);
            }
            let before = tally.composed(1e-5);
            tally.add(next, 1);
            let after = tally.composed(1e-5);
            prop_assert!(after.epsilon >= before.epsilon * (1.0 - 1e-7), "{before:?} {after:?}");
            prop_assert!(after.basic >= before.basic * (1.0 - 1e-9));
            prop_assert!(after.rho >= before.rho);
        }

        #[test]
        fn composition_of_one_is_the_single_release(spend in any_spend()) {
            let one = Tally::of(spend, 1).composed(1e-9);
            prop_assert!(one.epsilon <= one.basic * (1.0 + 1e-12));
            prop_assert!(one.epsilon >= one.basic - 1e-6 * one.basic.max(1.0));
        }

        #[test]
        fn the_tight_figure_is_never_above_the_basic_one(
            spends in proptest::collection::vec((any_spend(), 1_u64..500), 1..4),
        ) {
            let mut tally = Tally::default();
            for (spend, n) in &spends {
                tally.add(*spend, *n);
            }
            let composed = tally.composed(1e-5);
            prop_assert!(composed.epsilon <= composed.basic * (1.0 + 1e-7), "{composed:?}");
        }
    }
}
