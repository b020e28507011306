//! The Gaussian mechanism's arithmetic: what μ = Δ/σ costs, and how much noise an (ε, δ) needs.
//!
//! One release with sensitivity Δ and noise σ is exactly μ-Gaussian-differentially private with
//! μ = Δ/σ, and that curve is all there is to know about it (Dong, Roth, Su 2022). T releases
//! compose, exactly, to √(Σμ²). It knows neither data nor clients.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::special::{erf, erfcx_each, falling_root, normal_cdf_of};
use crate::session::privacy::Sigma;

/// ln δ at which a release of strength `mu` is (ε, δ)-private, for any real ε.
///
/// Balle and Wang (2018), theorem 8: δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). Both terms share the
/// factor e^{−a²/2}, a = ε/μ − μ/2; taking it out leaves nothing that can under- or overflow.
pub(crate) fn ln_delta(mu: f64, epsilon: f64) -> f64 {
    let [ln_delta] = ln_deltas(mu, [epsilon]);
    ln_delta
}

/// ln δ at several ε.
fn ln_deltas<const N: usize>(mu: f64, epsilons: [f64; N]) -> [f64; N] {
    if mu == 0.0 {
        // Two equal distributions: δ = (1 − e^ε)₊.
        let alone = |e: f64| if e < 0.0 { (-e.exp_m1()).ln() } else { f64::NEG_INFINITY };
        return epsilons.map(alone);
    }
    let a = epsilons.map(|epsilon| epsilon / mu - 0.5 * mu);
    let b = epsilons.map(|epsilon| epsilon / mu + 0.5 * mu);
    let scaled = |z: [f64; N]| erfcx_each(z.map(|z| z.abs() * FRAC_1_SQRT_2));
    let (scaled_a, scaled_b) = (scaled(a), scaled(b));
    std::array::from_fn(|i| {
        let (a, b, epsilon) = (a[i], b[i], epsilons[i]);
        if b < 0.0 {
            // Deep in negative ε both probabilities are near one; only sums over mixtures come here.
            let there = epsilon.exp() * normal_cdf_of(-b, scaled_b[i]);
            return (normal_cdf_of(-a, scaled_a[i]) - there).ln();
        }
        if a >= 0.0 {
            (0.5 * (scaled_a[i] - scaled_b[i])).ln() - 0.5 * a * a
        } else {
            let there = 0.5 * (-0.5 * a * a).exp() * scaled_b[i];
            (normal_cdf_of(-a, scaled_a[i]) - there).ln()
        }
    })
}

/// δ at which a release of strength `mu` is (ε, δ)-private.
pub(crate) fn delta(mu: f64, epsilon: f64) -> f64 {
    ln_delta(mu, epsilon).exp()
}

/// δ at several ε: the same bits as one by one, in a fraction of the time.
pub(super) fn deltas<const N: usize>(mu: f64, epsilons: [f64; N]) -> [f64; N] {
    ln_deltas(mu, epsilons).map(f64::exp)
}

/// The least ε for which releases of total strength `mu` are (ε, δ)-private.
pub(crate) fn epsilon(mu: f64, delta: f64) -> f64 {
    if mu.is_infinite() {
        return f64::INFINITY;
    }
    // δ(0) is the total variation distance.
    if erf(0.5 * mu * FRAC_1_SQRT_2) <= delta {
        return 0.0;
    }
    let ln_target = delta.ln();
    let high = zcdp_epsilon(0.5 * mu * mu, delta);
    falling_root(0.0, high, |epsilon| ln_delta(mu, epsilon) - ln_target)
}

/// The greatest μ that is (ε, δ)-private: the analytic Gaussian mechanism has σ = Δ/μ.
pub(crate) fn strength(epsilon: f64, delta: f64) -> f64 {
    // zCDP at ρ = μ²/2 already meets (ε, δ); its μ starts the bracket from the private side.
    let ln_inverse = -delta.ln();
    let low = SQRT_2 * ((ln_inverse + epsilon).sqrt() - ln_inverse.sqrt());
    let mut high = 2.0 * low;
    let ln_target = delta.ln();
    while ln_delta(high, epsilon) < ln_target {
        high *= 2.0;
    }
    // Searched downwards in −μ so that the end returned is the one with δ not above its target.
    -falling_root(-high, -low, |minus_mu| ln_delta(-minus_mu, epsilon) - ln_target)
}

/// ε of a ρ-zCDP mechanism by Bun and Steinke (2016), proposition 1.3.
pub(crate) fn zcdp_epsilon(rho: f64, delta: f64) -> f64 {
    rho + 2.0 * (-rho * delta.ln()).sqrt()
}

/// What is known about the (ε, δ) that a rule claims.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Standing {
    /// A theorem covers it.
    Proved,
    /// No theorem covers it, but the noise happens to suffice: the δ really given is below.
    Unproved {
        /// The δ really given at the claimed ε.
        delta: f64,
    },
    /// The claim is false: the δ really given is larger.
    False {
        /// The δ really given at the claimed ε.
        delta: f64,
    },
}

impl Standing {
    /// Whether the paper's formula for σ holds at a setting, in words; none where it does.
    pub(crate) fn caveat(self, delta: f64) -> Option<String> {
        match self {
            Self::Proved => None,
            Self::Unproved { .. } => Some(
                "the classic formula is proved for ε below 1 only; here it happens to hold"
                    .to_owned(),
            ),
            Self::False { delta: given } => Some(format!(
                "the classic formula is false here: it promises δ {delta:e} and gives {given:.2e}"
            )),
        }
    }
}

impl Sigma {
    /// σ for a query of L2 sensitivity `sensitivity`.
    pub(crate) fn sigma(self, sensitivity: f64, epsilon: f64, delta: f64) -> f64 {
        match self {
            Self::Analytic => sensitivity / strength(epsilon, delta),
            Self::Classic => sensitivity * (2.0 * (1.25 / delta).ln()).sqrt() / epsilon,
        }
    }

    /// Whether the rule's claim holds at (ε, δ). The classic rule is unproved from ε = 1 on and
    /// breaks its own δ from ε ≈ 7.5 (δ = 10⁻³) to ε ≈ 9.6 (δ = 10⁻⁹) on.
    pub(crate) fn standing(self, epsilon: f64, delta: f64) -> Standing {
        if self == Self::Analytic {
            return Standing::Proved;
        }
        let given = self::delta(1.0 / self.sigma(1.0, epsilon, delta), epsilon);
        if given > delta {
            Standing::False { delta: given }
        } else if epsilon < 1.0 {
            Standing::Proved
        } else {
            Standing::Unproved { delta: given }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_classic_rule_says_where_it_is_unproved_and_where_it_is_false() {
        assert_eq!(Sigma::Classic.standing(0.5, 1e-5), Standing::Proved);
        assert!(matches!(Sigma::Classic.standing(1.0, 1e-5), Standing::Unproved { .. }));
        let Standing::False { delta } = Sigma::Classic.standing(10.0, 1e-5) else {
            panic!("the classic bound is false at ε = 10");
        };
        assert!((delta / 2.27e-5 - 1.0).abs() < 0.01, "δ {delta}");
        assert_eq!(Sigma::Analytic.standing(10.0, 1e-5), Standing::Proved);
        let caveat = |epsilon| Sigma::Classic.standing(epsilon, 1e-5).caveat(1e-5);
        assert_eq!(caveat(0.5), None);
        assert!(caveat(2.0).unwrap().contains("proved for ε below 1"));
        assert!(caveat(10.0).unwrap().contains("false here"));
    }

    #[test]
    fn no_release_costs_nothing_and_no_noise_costs_everything() {
        assert!(epsilon(0.0, 1e-5) == 0.0);
        assert!(epsilon(f64::INFINITY, 1e-5).is_infinite());
        assert!(delta(0.0, 0.1) == 0.0);
    }

    proptest! {
        #[test]
        fn strength_and_epsilon_are_each_others_inverse(
            epsilon in 0.01_f64..50.0, ln_delta in -30.0_f64..-2.0,
        ) {
            let delta = ln_delta.exp();
            let back = super::epsilon(strength(epsilon, delta), delta);
            prop_assert!((back / epsilon - 1.0).abs() < 1e-8, "{epsilon} came back as {back}");
        }

        #[test]
        fn bigger_sigma_never_costs_more(
            sigma in 0.01_f64..1e4, factor in 1.0_f64..10.0, ln_delta in -30.0_f64..-2.0,
        ) {
            let delta = ln_delta.exp();
            let (small, large) = (epsilon(1.0 / sigma, delta), epsilon(1.0 / (sigma * factor), delta));
            prop_assert!(large <= small * (1.0 + 1e-9), "σ {sigma}: {small}, times {factor}: {large}");
        }

        #[test]
        fn the_epsilon_returned_meets_its_delta(mu in 1e-4_f64..300.0, ln_delta in -30.0_f64..-2.0) {
            let epsilon = super::epsilon(mu, ln_delta.exp());
            prop_assert!(super::ln_delta(mu, epsilon) <= ln_delta + 1e-9);
        }
    }
}
