//! What several ε-private releases cost together: exactly, and by every named bound.
//!
//! Randomised response composes to a binomial privacy loss, and by Kairouz, Oh and Viswanath
//! (2015) no ε-private mechanism composes worse; so the binomial figure is exact for binary
//! answers and an upper bound for k-ary ones and for anything else that is ε-private.

use super::gaussian;
use super::special::{falling_root, ln_binomial_pmf, ln_cosh};

/// The loss of `count` binary answers of `epsilon` each: (count − 2·lies)·ε with binomial lies.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Binomial {
    epsilon: f64,
    count: u64,
    truth: f64,
    lie: f64,
}

/// A sum above this is not completed: the outcome lies far beyond the bulk.
const BEYOND: f64 = 1e250;

/// The sums over all outcomes with at most `lies` lies, relative to the last outcome's own
/// probability: (under the truth, under its neighbour).
struct Tail {
    ln_pmf: f64,
    here: f64,
    there: f64,
}

impl Binomial {
    fn new(epsilon: f64, count: u64) -> Self {
        let lie = 1.0 / (1.0 + epsilon.exp());
        Self { epsilon, count, truth: 1.0 / (1.0 + (-epsilon).exp()), lie }
    }

    fn loss(&self, lies: u64) -> f64 {
        (self.count as f64 - 2.0 * lies as f64) * self.epsilon
    }

    /// The sums of a [`Tail`], term by term, down to the first term that adds nothing. O(√count):
    /// terms fall away geometrically once the binomial's bulk is behind.
    fn sums(&self, lies: u64) -> impl Iterator<Item = (f64, f64)> {
        let count = self.count;
        let (up, down) = (self.epsilon.exp(), (-self.epsilon).exp());
        let (mut term_here, mut term_there) = (1.0, 1.0);
        let (mut here, mut there) = (1.0, 1.0);
        let mut over = false;
        (1..=lies).rev().map_while(move |j| {
            if over {
                return None;
            }
            let ratio = j as f64 / (count - j + 1) as f64;
            term_here *= ratio * up;
            term_there *= ratio * down;
            here += term_here;
            there += term_there;
            over = here > BEYOND || (ratio * up < 1.0 && term_here < 1e-18 * here);
            Some((here, there))
        })
    }

    /// `None` when the last outcome is so far beyond the bulk that nearly all probability lies
    /// before it.
    fn tail(&self, lies: u64) -> Option<Tail> {
        let (here, there) = self.sums(lies).last().unwrap_or((1.0, 1.0));
        if here > BEYOND {
            return None;
        }
        let ln_pmf = ln_binomial_pmf(self.count, lies, self.lie, self.truth);
        Some(Tail { ln_pmf, here, there })
    }

    /// ε at δ. Between two neighbouring losses δ(ε) = A − e^ε B, so only the right pair of
    /// losses has to be searched for; the rest is closed form.
    fn epsilon_at(&self, delta: f64) -> f64 {
        // δ at the loss just below that of `lies`: at most `lies` lies contribute.
        let reached = |lies: u64| {
            self.tail(lies).is_none_or(|tail| {
                let excess = tail.here - (-2.0 * self.epsilon).exp() * tail.there;
                tail.ln_pmf + excess.ln() >= delta.ln()
            })
        };
        let (mut low, mut high) = (0, self.count / 2);
        if !reached(high) {
            return 0.0;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if reached(middle) { high = middle } else { low = middle + 1 }
        }
        // Without a tail δ is as good as one, and the loss itself is the cautious answer.
        let excess = self
            .tail(low)
            .map_or(0.0, |tail| ((tail.here - delta * (-tail.ln_pmf).exp()) / tail.there).ln());
        (self.loss(low) + excess).max(0.0)
    }

    /// The outcomes that matter, as (loss, probability). What is left out on either side is
    /// less than 10⁻¹⁶ of δ in probability.
    fn outcomes(&self, ln_delta: f64) -> Vec<(f64, f64)> {
        let mode = ((self.count as f64 * self.lie) as u64).min(self.count);
        let floor = ln_delta - 46.0;
        let outcome =
            |lies| (self.loss(lies), ln_binomial_pmf(self.count, lies, self.lie, self.truth));
        let enough = |(_, ln_p): &(f64, f64)| *ln_p > floor;
        let fewer = (0..=mode).rev().map(outcome).take_while(enough);
        let more = (mode + 1..=self.count).map(outcome).take_while(enough);
        fewer.chain(more).map(|(loss, ln_p)| (loss, ln_p.exp())).collect()
    }

    /// How many outcomes there may be to sum over.
    fn spread(&self) -> f64 {
        (self.count as f64 * self.truth * self.lie).sqrt()
    }
}

/// The exact ε at δ of `count` binary randomised responses of `epsilon` each.
pub(crate) fn response_epsilon(epsilon: f64, count: u64, delta: f64) -> f64 {
    if count == 0 { 0.0 } else { Binomial::new(epsilon, count).epsilon_at(delta) }
}

/// Beyond this standard deviation of the number of lies the exact mixture is not summed: the
/// Rényi bound then lies within a few percent of it and costs nothing.
const WIDEST_MIXTURE: f64 = 250.0;

/// Outcomes of a mixture that are summed at a time.
const AT_ONCE: usize = 4;

/// The exact ε at δ of Gaussian releases of total strength `mu` together with `count` binary
/// responses of `epsilon` each, or `None` when there are too many to sum.
///
/// Given the loss L of the responses, what is left is the Gaussian curve at ε − L; so
/// `δ(ε) = Σ P(L)·δ_μ(ε − L)`.
pub(crate) fn mixed_epsilon(mu: f64, epsilon: f64, count: u64, delta: f64) -> Option<f64> {
    let binomial = Binomial::new(epsilon, count);
    if binomial.spread() > WIDEST_MIXTURE {
        return None;
    }
    let outcomes = binomial.outcomes(delta.ln());
    // Fourteen standard deviations of the Gaussian loss above its mean: e^{−98} and less is left.
    let reach = mu * (14.0 + 0.5 * mu);
    let ln_delta = |total: f64| {
        let mut sum = 0.0;
        for some in outcomes.chunks(AT_ONCE) {
            // The last few are filled up, and what fills is not added.
            let rest: [f64; AT_ONCE] =
                std::array::from_fn(|i| total - some.get(i).unwrap_or(&some[0]).0);
            if rest.iter().any(|rest| *rest < reach) {
                let deltas = gaussian::deltas(mu, rest);
                for ((_, p), (delta, rest)) in some.iter().zip(deltas.iter().zip(rest)) {
                    sum += if rest < reach { p * delta } else { 0.0 };
                }
            }
        }
        sum.ln()
    };
    let low = gaussian::epsilon(mu, delta).max(binomial.epsilon_at(delta));
    let high = gaussian::epsilon(mu, delta) + epsilon * count as f64;
    Some(falling_root(low, high, |total| ln_delta(total) - delta.ln()))
}

/// The Rényi divergence of order `alpha` of one binary response (Mironov 2017, proposition 5),
/// in a form that keeps its digits for small ε, for orders near one, and for large αε.
pub(crate) fn response_rdp(epsilon: f64, alpha: f64) -> f64 {
    let (a, b) = ((alpha - 0.5) * epsilon, 0.5 * epsilon);
    let numerator = if alpha * epsilon > 100.0 {
        ln_cosh(a) - ln_cosh(b)
    } else {
        let product = (0.5 * alpha * epsilon).sinh() * (0.5 * (alpha - 1.0) * epsilon).sinh();
        (2.0 * product / b.cosh()).ln_1p()
    };
    numerator / (alpha - 1.0)
}

/// The Rényi divergence of order `alpha` of one Gaussian release of strength `mu`.
pub(crate) fn gaussian_rdp(mu: f64, alpha: f64) -> f64 {
    0.5 * alpha * mu * mu
}

/// ε at δ of a mechanism whose Rényi divergence of order `alpha` is `rdp`: Canonne, Kamath and Steinke
/// (2020), proposition 12, the best for one order.
pub(crate) fn rdp_epsilon_at(alpha: f64, rdp: f64, delta: f64) -> f64 {
    (rdp + (-1.0 / alpha).ln_1p() - (delta * alpha).ln() / (alpha - 1.0)).max(0.0)
}

/// The best ε at δ over all orders: a coarse look over fourteen decades of α − 1, then a golden
/// section around the best. Every order gives a true bound, so no search error can break it.
pub(crate) fn best_rdp_epsilon(rdp: impl Fn(f64) -> f64, delta: f64) -> f64 {
    let at = |x: f64| {
        let alpha = 1.0 + x.exp();
        rdp_epsilon_at(alpha, rdp(alpha), delta)
    };
    let coarse = |i: i32| -18.0 + 0.4 * f64::from(i);
    let start = (0..=85).map(coarse).min_by(|a, b| at(*a).total_cmp(&at(*b))).unwrap_or(0.0);
    let (mut low, mut high) = (start - 0.4, start + 0.4);
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    let mut best = at(start);
    for _ in 0..40 {
        let (x, y) = (high - ratio * (high - low), low + ratio * (high - low));
        let (f, g) = (at(x), at(y));
        best = best.min(f).min(g);
        if f < g { high = y } else { low = x }
    }
    best
}

/// The ε of a binary answer that is true with probability `truth` ≥ ½: ln(p/(1 − p)).
pub(crate) fn epsilon_of_truth(truth: f64) -> f64 {
    truth.ln() - (-truth).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, summed without any of the shortcuts.
    fn delta_by_definition(epsilon: f64, count: u64, total: f64) -> f64 {
        let binomial = Binomial::new(epsilon, count);
        (0..=count)
            .map(|lies| {
                let p = ln_binomial_pmf(count, lies, binomial.lie, binomial.truth).exp();
                p * (-(total - binomial.loss(lies)).exp_m1()).max(0.0)
            })
            .sum()
    }

    #[test]
    fn a_mixture_without_responses_or_without_noise_is_the_pure_case() {
        let only_gaussian = mixed_epsilon(0.5, 1e-9, 1, 1e-5).unwrap();
        assert!((only_gaussian / gaussian::epsilon(0.5, 1e-5) - 1.0).abs() < 1e-6);
        let only_responses = mixed_epsilon(1e-7, 0.3, 100, 1e-5).unwrap();
        assert!((only_responses / response_epsilon(0.3, 100, 1e-5) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn the_exact_mixture_lies_between_its_parts_and_the_renyi_bound() {
        for (mu, epsilon, count) in [(1.0, 0.1, 1000), (3.0, 1.0, 60), (0.01, 2.0, 10_000)] {
            let exact = mixed_epsilon(mu, epsilon, count, 1e-5).unwrap();
            let bound = best_rdp_epsilon(
                |alpha| gaussian_rdp(mu, alpha) + count as f64 * response_rdp(epsilon, alpha),
                1e-5,
            );
            let parts = gaussian::epsilon(mu, 1e-5).max(response_epsilon(epsilon, count, 1e-5));
            assert!(parts <= exact && exact <= bound, "{parts} {exact} {bound}");
            assert!(bound < 1.12 * exact, "the Rényi bound {bound} is far from {exact}");
        }
    }

    #[test]
    fn the_renyi_divergence_of_a_response_is_continuous_over_its_two_forms() {
        let (below, above) = (response_rdp(1.0, 99.999_999), response_rdp(1.0, 100.000_001));
        assert!((below - above).abs() < 1e-8);
        // Its limit at order one is the Kullback-Leibler divergence ε·tanh(ε/2).
        assert!((response_rdp(0.7, 1.0 + 1e-9) - 0.7 * 0.35_f64.tanh()).abs() < 1e-8);
    }

    #[test]
    fn a_year_of_flags_every_second_is_composed_from_few_terms() {
        let count = 31_536_000_u64;
        let year = response_epsilon(0.1, count, 1e-6);
        assert!(year > 100_000.0 && year < 3_153_600.0, "ε {year}");
        let binomial = Binomial::new(0.1, count);
        let most = (50.0 * (count as f64).sqrt()) as usize;
        for thousandth in 0..=500 {
            let lies = count / 1000 * thousandth;
            let terms = binomial.sums(lies).count();
            assert!(terms <= most, "{terms} terms for {lies} lies");
        }
    }

    proptest! {
        #[test]
        fn the_closed_form_solves_the_definition(
            epsilon in 0.05_f64..3.0, count in 1_u64..400, ln_delta in -20.0_f64..-3.0,
        ) {
            let delta = ln_delta.exp();
            let total = response_epsilon(epsilon, count, delta);
            let around = 1e-9 * total.max(1.0);
            prop_assert!(delta_by_definition(epsilon, count, total + around) <= delta);
            if total > around {
                prop_assert!(delta_by_definition(epsilon, count, total - around) >= delta);
            }
        }

        #[test]
        fn composition_of_one_is_the_single_release(epsilon in 0.01_f64..10.0) {
            // Without slack in δ a single answer costs its own ε, and never more.
            let one = response_epsilon(epsilon, 1, 1e-12);
            prop_assert!(one <= epsilon && one > epsilon - 1e-9);
        }

        #[test]
        fn more_releases_never_cost_less(
            epsilon in 0.02_f64..4.0, count in 1_u64..3000, more in 1_u64..500,
        ) {
            let (few, many) = (
                response_epsilon(epsilon, count, 1e-6),
                response_epsilon(epsilon, count + more, 1e-6),
            );
            prop_assert!(many >= few * (1.0 - 1e-9), "{count}: {few}, {more} more: {many}");
        }
    }
}
