//! Formulas that nothing releases by: the paper's theorems under their own names, looser bounds of
//! composition, and what a listener could compute. The reference values have them, and tests compare
//! them with what is used.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::composition::rdp_epsilon_at;
use super::gaussian::{self, strength};
use super::response::Response;
use super::special::{erfcx, ln_binomial_pmf, normal_cdf};
use crate::session::privacy::Sigma::Classic;

/// How a Rényi bound becomes an (ε, δ) one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Canonne, Kamath and Steinke (2020), proposition 12: the best for one order.
    Cks,
    /// Mironov (2017), proposition 3: the first, looser.
    Mironov,
}

/// The best ε at δ over given orders.
pub(crate) fn rdp_epsilon(
    orders: &[f64],
    rdp: impl Fn(f64) -> f64,
    delta: f64,
    conversion: Conversion,
) -> f64 {
    let at = |alpha: f64| match conversion {
        Conversion::Cks => rdp_epsilon_at(alpha, rdp(alpha), delta),
        Conversion::Mironov => (rdp(alpha) - delta.ln() / (alpha - 1.0)).max(0.0),
    };
    orders.iter().map(|&alpha| at(alpha)).fold(f64::INFINITY, f64::min)
}

/// Advanced composition of Dwork, Rothblum and Vadhan (2010) for `count` Gaussian releases, half
/// of δ for the slack: kept to show how far it is off.
pub(crate) fn advanced_gaussian_epsilon(mu: f64, count: u64, delta: f64) -> f64 {
    let n = count as f64;
    let each = gaussian::epsilon(mu, 0.5 * delta / n);
    each * (2.0 * n * (2.0 / delta).ln()).sqrt() + n * each * each.exp_m1()
}

/// Kairouz, Oh and Viswanath (2015), theorem 3.4, for `count` ε-private releases: the closed form
/// in ln(1/δ), as other accountants show it, or basic composition where that is less.
pub(crate) fn kov_epsilon(epsilon: f64, count: u64, delta: f64) -> f64 {
    let n = count as f64;
    let drift = n * epsilon * (0.5 * epsilon).tanh();
    (drift + epsilon * (-2.0 * n * delta.ln()).sqrt()).min(n * epsilon)
}

/// Bun and Steinke's bound for `count` ε-private releases, each (ε²/2)-zCDP, or basic
/// composition where that is less.
pub(crate) fn zcdp_response_epsilon(epsilon: f64, count: u64, delta: f64) -> f64 {
    let n = count as f64;
    gaussian::zcdp_epsilon(0.5 * n * epsilon * epsilon, delta).min(n * epsilon)
}

/// The noise multiplier σ/Δ with which `releases` releases together cost (ε, δ).
pub(crate) fn noise_multiplier(total_epsilon: f64, delta: f64, releases: u64) -> f64 {
    (releases as f64).sqrt() / strength(total_epsilon, delta)
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

/// Φ⁻¹. Probabilities outside (0, 1) give ∓∞.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    // ln Φ is concave and the start lies left of the root, so Newton climbs to it monotonically.
    let ln_p = p.ln();
    let mut z = -(-2.0 * ln_p).sqrt();
    for _ in 0..50 {
        let scaled = erfcx(-z * FRAC_1_SQRT_2);
        let ln_cdf = (0.5 * scaled).ln() - 0.5 * z * z;
        let slope = (2.0 / PI).sqrt() / scaled;
        let step = (ln_p - ln_cdf) / slope;
        z += step;
        if step.abs() <= 1e-15 * z.abs().max(1.0) {
            break;
        }
    }
    z.min(0.0)
}

/// `Δ_c` of theorem 7.1: `‖ΔK‖(L_h C_x + sup‖r‖)`.
pub(crate) fn sensitivity_c(gain: f64, lipschitz_h: f64, bound_x: f64, bound_r: f64) -> f64 {
    gain * (lipschitz_h * bound_x + bound_r)
}

/// `Δ_a` of theorem 7.1: `L_f C_x + L_θ sup‖y‖`.
pub(crate) fn sensitivity_a(
    lipschitz_f: f64,
    bound_x: f64,
    lipschitz_phi: f64,
    bound_y: f64,
) -> f64 {
    lipschitz_f * bound_x + lipschitz_phi * bound_y
}

/// `σ_c` or `σ_a` of theorem 7.1, from `Δ_c` or `Δ_a`: 2Δ√(2 ln(1.25/δ))/ε.
pub(crate) fn sigma_7_1(sensitivity: f64, epsilon: f64, delta: f64) -> f64 {
    Classic.sigma(2.0 * sensitivity, epsilon, delta)
}

/// `σ_g` of theorem 7.2: `2C_g√(2 ln(1.25/δ))/ε`.
pub(crate) fn sigma_7_2(clip: f64, epsilon: f64, delta: f64) -> f64 {
    Classic.sigma(2.0 * clip, epsilon, delta)
}

/// `p_c` or `p_a` of theorem 7.3: e^ε/(1 + e^ε).
pub(crate) fn truth_7_3(epsilon: f64) -> f64 {
    1.0 / (1.0 + (-epsilon).exp())
}

/// The budget of one time step: `ε = ε_c + ε_a` and `δ = δ_c + δ_a` (basic composition).
pub(crate) fn total(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    (first.0 + second.0, first.1 + second.1)
}

/// The channel matrix: row `told` holds the chances of every answer when `told` is true.
pub(crate) fn channel(response: &Response) -> Vec<Vec<f64>> {
    let (truth, lie) = (response.truth(), response.each_lie());
    let symbols = response.symbols();
    let row =
        |told| (0..symbols).map(move |heard| if told == heard { truth } else { lie }).collect();
    (0..symbols).map(row).collect()
}

/// The unbiased estimate of a symbol's true share from its share among the answers.
pub(crate) fn debias(response: &Response, share: f64) -> f64 {
    (share - response.each_lie()) / (response.truth() - response.each_lie())
}

/// The variance that one answer adds to [`debias`] when the answers' share is `share`.
pub(crate) fn debias_variance(response: &Response, share: f64) -> f64 {
    share * (1.0 - share) / (response.truth() - response.each_lie()).powi(2)
}

/// ε of an answer by `second` about an answer by `first`.
pub(crate) fn after(second: &Response, first: &Response) -> f64 {
    let truth = first.truth() * second.truth() + first.flip() * second.each_lie();
    let lie = (1.0 - truth) / f64::from(second.symbols() - 1);
    (truth / lie).ln()
}

#[test]
fn theorem_7_1_is_the_classic_rule_at_twice_the_papers_sensitivity() {
    let sensitivity = sensitivity_c(0.5, 2.0, 3.0, 4.0);
    assert!((sensitivity - 5.0).abs() < 1e-12);
    let sigma = sigma_7_1(sensitivity, 0.5, 1e-5);
    assert!((sigma - 2.0 * 5.0 * (2.0 * 1.25e5_f64.ln()).sqrt() / 0.5).abs() < 1e-9);
    assert!((sensitivity_a(0.9, 3.0, 0.1, 5.0) - 3.2).abs() < 1e-12);
    let (epsilon, delta) = total((1.0, 1e-5), (2.0, 1e-6));
    assert!((epsilon - 3.0).abs() < 1e-12 && (delta - 1.1e-5).abs() < 1e-18);
}

#[test]
fn theorem_7_2_has_the_sensitivity_of_two_vectors_in_one_ball() {
    let ours = Classic.sigma(2.0 * 1.5, 0.7, 1e-6);
    assert!((sigma_7_2(1.5, 0.7, 1e-6) - ours).abs() < 1e-12);
}

#[test]
fn the_normal_quantile_is_right_far_into_the_tail() {
    for (p, z) in [
        (1e-300, -37.047_096_299_361_2),
        (1e-20, -9.262_340_089_798_407),
        (1e-9, -5.997_807_015_007_686_5),
        (1e-5, -4.264_890_793_922_825),
        (0.01, -2.326_347_874_040_841),
        (0.3, -0.524_400_512_708_040_8),
        (0.75, 0.674_489_750_196_081_7),
        (0.999, 3.090_232_306_167_813),
    ] {
        assert!((normal_quantile(p) - z).abs() <= 1e-13 * z.abs(), "{p}");
        assert!((normal_cdf(z) - p).abs() <= 1e-12 * p, "{z}");
    }
    assert!(normal_quantile(0.5).abs() < 1e-15);
}
