//! A filter remembers: one sample moves the state it arrives at and, fading, all later ones.
//!
//! The paper's per-step claim leaves this out. With contraction γ < 1 a change of one sample
//! moves the k-th later state by at most γᵏ times what it moved the first. The squares of those
//! moves add up to a finite factor on the cost of a Gaussian release (×5.3 at γ = 0.9, ×50 at
//! γ = 0.99). A flag has no such grading: until the move is too small to matter it can turn the
//! flag, and every answer about it counts in full.

use serde::{Deserialize, Serialize};

use super::PrivacyError;

/// How far one sample reaches into later releases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FilterMemory {
    /// γ: the share of a change that is still there one step later.
    contraction: f64,
    /// The largest first move, in units of the sensitivity that clipping allows (≥ 1).
    first_move: f64,
    /// The move, in the same units, below which a flag is taken not to turn any more.
    resolution: f64,
}

impl FilterMemory {
    /// A model without memory: a sample moves only the releases of its own step.
    pub const NONE: Self = Self { contraction: 0.0, first_move: 1.0, resolution: 1.0 };

    /// A filter with contraction `contraction` in [0, 1), first move `first_move` ≥ 1 in units of
    /// the clipped sensitivity, and flags that no move below `resolution` turns.
    pub fn new(contraction: f64, first_move: f64, resolution: f64) -> Result<Self, PrivacyError> {
        let wrong = |what, expected, found| Err(PrivacyError::Setting { what, expected, found });
        if !(0.0..1.0).contains(&contraction) {
            return wrong("contraction of the filter", "at least 0 and below 1", contraction);
        }
        if !(first_move.is_finite() && first_move >= 1.0) {
            return wrong("first move of the filter", "at least 1", first_move);
        }
        if !(resolution > 0.0 && resolution <= 1.0) {
            return wrong("resolution of a flag", "above 0 and at most 1", resolution);
        }
        Ok(Self { contraction, first_move, resolution })
    }

    /// The same, checked again: what is read from a file went through no constructor.
    pub fn checked(self) -> Result<Self, PrivacyError> {
        Self::new(self.contraction, self.first_move, self.resolution)
    }

    /// Σ min(1, r γᵏ)²: the factor on ρ = μ²/2 of one sample's Gaussian releases, 1/(1 − γ²) when
    /// the first move is within the clipping bound.
    #[must_use]
    pub fn squared(&self) -> f64 {
        self.sum(2)
    }

    /// Σ min(1, r γᵏ): the factor on the sensitivity of a sum over time, such as a CUSUM.
    #[must_use]
    pub fn summed(&self) -> f64 {
        self.sum(1)
    }

    /// How many later symbols of a stream one sample can still turn.
    #[must_use]
    pub fn later_symbols(&self) -> u64 {
        self.steps_until(self.resolution)
    }

    /// Clipping hides all of a move beyond its bound, so the first steps count one each, and the
    /// rest is a geometric series.
    fn sum(&self, power: i32) -> f64 {
        let full = self.steps_until(1.0);
        let rest = self.first_move * self.contraction.powf(full as f64);
        full as f64 + rest.powi(power) / (1.0 - self.contraction.powi(power))
    }

    /// The first step at which the move is at most `size`.
    fn steps_until(&self, size: f64) -> u64 {
        if self.first_move <= size {
            return 0;
        }
        if self.contraction == 0.0 {
            return 1;
        }
        // A whole number of steps must not become one more by the last digit of a logarithm.
        ((size / self.first_move).ln() / self.contraction.ln() - 1e-9).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_factors_of_the_literature_come_out() {
        let factor = |gamma| FilterMemory::new(gamma, 1.0, 0.1).unwrap().squared();
        assert!((factor(0.9) - 5.263_157_894_736_842).abs() < 1e-9);
        assert!((factor(0.99) - 50.251_256).abs() < 1e-4);
        assert!((FilterMemory::NONE.squared() - 1.0).abs() < 1e-15);
        assert_eq!(FilterMemory::NONE.later_symbols(), 0);
    }

    #[test]
    fn a_filter_that_never_forgets_is_refused() {
        assert!(FilterMemory::new(1.0, 1.0, 0.1).is_err());
        assert!(FilterMemory::new(0.5, 0.5, 0.1).is_err());
        assert!(FilterMemory::new(0.5, 1.0, 0.0).is_err());
    }

    proptest! {
        #[test]
        fn the_closed_form_is_the_sum(gamma in 0.0_f64..0.99, first in 1.0_f64..50.0) {
            let memory = FilterMemory::new(gamma, first, 0.01).unwrap();
            let moves = |k: i32| (first * gamma.powi(k)).min(1.0);
            for (power, found) in [(1, memory.summed()), (2, memory.squared())] {
                let sum: f64 = (0..5000).map(|k| moves(k).powi(power)).sum();
                prop_assert!((found / sum - 1.0).abs() < 1e-6, "{found} for {sum}");
            }
            let later = memory.later_symbols();
            prop_assert!(first * gamma.powf(later as f64) <= 0.01 * (1.0 + 1e-6));
        }
    }
}
