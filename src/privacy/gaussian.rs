//! The Gaussian mechanism's arithmetic: what μ = Δ/σ costs, and how much noise an (ε, δ) needs.
//!
//! One release with sensitivity Δ and noise σ is exactly μ-Gaussian-differentially private with
//! μ = Δ/σ, and that curve is all there is to know about it (Dong, Roth, Su 2022). T releases
//! compose, exactly, to √(Σμ²). It knows neither data nor clients.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use serde::{Deserialize, Serialize};

use super::special::{erf, erfcx, falling_root, normal_cdf};

/// ln δ at which a release of strength `mu` is (ε, δ)-private, for any real ε.
///
/// Balle and Wang (2018), theorem 8: δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). Both terms share the
/// factor e^{−a²/2}, a = ε/μ − μ/2; taking it out leaves nothing that can under- or overflow.
pub(crate) fn ln_delta(mu: f64, epsilon: f64) -> f64 {
    if mu == 0.0 {
        // Two equal distributions: δ = (1 − e^ε)₊.
        return if epsilon < 0.0 { (-epsilon.exp_m1()).ln() } else { f64::NEG_INFINITY };
    }
    let (a, b) = (epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu);
    if b < 0.0 {
        // Deep in negative ε both probabilities are near one; only sums over mixtures come here.
        return (normal_cdf(-a) - epsilon.exp() * normal_cdf(-b)).ln();
    }
    if a >= 0.0 {
        let difference = erfcx(a * FRAC_1_SQRT_2) - erfcx(b * FRAC_1_SQRT_2);
        (0.5 * difference).ln() - 0.5 * a * a
    } else {
        (normal_cdf(-a) - 0.5 * (-0.5 * a * a).exp() * erfcx(b * FRAC_1_SQRT_2)).ln()
    }
}

/// δ at which a release of strength `mu` is (ε, δ)-private.
pub(crate) fn delta(mu: f64, epsilon: f64) -> f64 {
    ln_delta(mu, epsilon).exp()
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

/// The noise multiplier σ/Δ with which `releases` releases together cost (ε, δ).
pub(crate) fn noise_multiplier(total_epsilon: f64, delta: f64, releases: u64) -> f64 {
    (releases as f64).sqrt() / strength(total_epsilon, delta)
}

/// How σ is found from (ε, δ).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum SigmaRule {
    /// The least noise that gives (ε, δ), for every ε > 0 (Balle and Wang 2018).
    #[default]
    Analytic,
    /// Δ√(2 ln(1.25/δ))/ε, as the paper has it. Proved for ε < 1 only, and false for large ε.
    Classic,
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

impl SigmaRule {
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

/// The paper's bounds and noise scales under its own names.
///
/// They use suprema of residuals and measurements. A bound taken from the data is itself a
/// release of the data, so every argument here must be a public constant that is enforced by
/// clipping; the mechanisms of this module never take one from what they noise.
pub(crate) mod theorem {
    use super::SigmaRule::Classic;

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_classic_rule_says_where_it_is_unproved_and_where_it_is_false() {
        assert_eq!(SigmaRule::Classic.standing(0.5, 1e-5), Standing::Proved);
        assert!(matches!(SigmaRule::Classic.standing(1.0, 1e-5), Standing::Unproved { .. }));
        let Standing::False { delta } = SigmaRule::Classic.standing(10.0, 1e-5) else {
            panic!("the classic bound is false at ε = 10");
        };
        assert!((delta / 2.27e-5 - 1.0).abs() < 0.01, "δ {delta}");
        assert_eq!(SigmaRule::Analytic.standing(10.0, 1e-5), Standing::Proved);
    }

    #[test]
    fn theorem_7_1_is_the_classic_rule_at_twice_the_papers_sensitivity() {
        let sensitivity = theorem::sensitivity_c(0.5, 2.0, 3.0, 4.0);
        assert!((sensitivity - 5.0).abs() < 1e-12);
        let sigma = theorem::sigma_7_1(sensitivity, 0.5, 1e-5);
        assert!((sigma - 2.0 * 5.0 * (2.0 * 1.25e5_f64.ln()).sqrt() / 0.5).abs() < 1e-9);
        assert!((theorem::sensitivity_a(0.9, 3.0, 0.1, 5.0) - 3.2).abs() < 1e-12);
        let (epsilon, delta) = theorem::total((1.0, 1e-5), (2.0, 1e-6));
        assert!((epsilon - 3.0).abs() < 1e-12 && (delta - 1.1e-5).abs() < 1e-18);
    }

    #[test]
    fn theorem_7_2_has_the_sensitivity_of_two_vectors_in_one_ball() {
        let ours = SigmaRule::Classic.sigma(2.0 * 1.5, 0.7, 1e-6);
        assert!((theorem::sigma_7_2(1.5, 0.7, 1e-6) - ours).abs() < 1e-12);
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
