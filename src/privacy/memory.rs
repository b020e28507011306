//! A filter remembers: one sample moves the state it arrives at and, fading, all later ones.
//!
//! The paper's per-step claim leaves this out. With contraction γ < 1 a change of one sample
//! moves the k-th later state by at most γᵏ times what it moved the first. The squares of those
//! moves add up to a finite factor on the cost of a Gaussian release (×5.3 at γ = 0.9, ×50 at
//! γ = 0.99). A flag has no such grading: until the move is too small to matter it can turn the
//! flag, and every answer about it counts in full.
//!
//! Where a contraction comes from is said with it. Measured, it covers every move that was seen when
//! a client's own models ran twice over nominal data, with one sample changed as far as it goes: a
//! measurement, and no proof for data unlike that. Where what was seen does not fade the memory is
//! endless, and one sample costs what everything costs.

use serde::{Deserialize, Serialize};

use super::PrivacyError;

/// How far one sample reaches into later releases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct FilterMemory {
    /// γ: the share of a change that is still there one step later; 1 is endless.
    contraction: f64,
    /// The largest first move, in units of the sensitivity that clipping allows (≥ 1).
    first_move: f64,
    /// The move, in the same units, below which a flag is taken not to turn any more.
    resolution: f64,
    /// Steps after which symbols still look back at a state: what comes behind the filter has a
    /// memory of its own.
    #[serde(default)]
    lags: u64,
    /// Steps from one symbol to the next.
    #[serde(default = "one")]
    stride: u64,
    #[serde(default)]
    known: Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Known {
    /// The session says so.
    #[default]
    Declared,
    /// From the client's own models, on nominal data.
    Measured,
    /// Neither: a usual value is taken.
    Assumed,
}

impl Known {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Measured => "measured",
            Self::Assumed => "assumed",
        }
    }
}

fn one() -> u64 {
    1
}

/// Moves below this share of the largest are rounding.
const FLOOR: f64 = 1e-3;

/// A filter has forgotten when this share of the largest move is left.
const FORGOTTEN: f64 = 1e-2;

impl FilterMemory {
    /// A model without memory: a sample moves only the releases of its own step.
    pub(crate) const NONE: Self = Self {
        contraction: 0.0,
        first_move: 1.0,
        resolution: 1.0,
        lags: 0,
        stride: 1,
        known: Known::Declared,
    };

    /// A filter that was seen not to forget.
    pub(crate) const ENDLESS: Self =
        Self { contraction: 1.0, known: Known::Measured, ..Self::NONE };

    /// A filter with contraction `contraction` in [0, 1), first move `first_move` ≥ 1 in units of
    /// the clipped sensitivity, and flags that no move below `resolution` turns.
    pub(crate) fn new(
        contraction: f64,
        first_move: f64,
        resolution: f64,
    ) -> Result<Self, PrivacyError> {
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
        Ok(Self { contraction, first_move, resolution, ..Self::NONE })
    }

    /// The cheapest memory that covers every measured move: `moves[k]` is the largest seen `k` steps
    /// after the sample, in units of the largest of all. Endless where they do not fade.
    pub(crate) fn covering(moves: &[f64], resolution: f64) -> Result<Self, PrivacyError> {
        let late = &moves[moves.len() - moves.len() / 4..];
        if late.is_empty() || !late.iter().all(|left| *left <= FORGOTTEN) {
            return Ok(Self::ENDLESS);
        }
        let seen = || (0_i32..).zip(moves).filter(|(_, size)| **size > FLOOR);
        let cost = |memory: &Self| memory.squared() * (1 + memory.later_symbols()) as f64;
        let mut best: Option<Self> = None;
        for percent in 1..200_u32 {
            let contraction = f64::from(percent) / 200.0;
            let first = seen().map(|(k, size)| size / contraction.powi(k)).fold(1.0, f64::max);
            if !first.is_finite() {
                continue;
            }
            let memory = Self::new(contraction, first, resolution)?;
            if best.is_none_or(|best| cost(&memory) < cost(&best)) {
                best = Some(memory);
            }
        }
        Ok(best.map_or(Self::ENDLESS, |best| Self { known: Known::Measured, ..best }))
    }

    /// The same for symbols that look back `lags` steps and leave once in `stride` steps.
    pub(crate) fn behind(self, lags: u64, stride: u64) -> Self {
        Self { lags, stride: stride.max(1), ..self }
    }

    /// The same, known in another way.
    pub(crate) fn known_as(self, known: Known) -> Self {
        Self { known, ..self }
    }

    /// The same, checked again: what is read from a file went through no constructor.
    pub(crate) fn checked(self) -> Result<Self, PrivacyError> {
        let contraction = if self.is_endless() { 0.0 } else { self.contraction };
        Self::new(contraction, self.first_move, self.resolution)?;
        Ok(Self { stride: self.stride.max(1), ..self })
    }

    pub(crate) fn contraction(&self) -> f64 {
        self.contraction
    }

    pub(crate) fn known(&self) -> Known {
        self.known
    }

    /// Whether a sample is never forgotten: then it costs what everything costs.
    pub(crate) fn is_endless(&self) -> bool {
        self.contraction >= 1.0
    }

    /// Whether it remembers at least as long as `other`.
    pub(crate) fn outlasts(&self, other: &Self) -> bool {
        self.is_endless()
            || (!other.is_endless()
                && self.squared() >= other.squared()
                && self.later_symbols() >= other.later_symbols())
    }

    /// Σ min(1, r γᵏ)²: the factor on ρ = μ²/2 of one sample's Gaussian releases, 1/(1 − γ²) when
    /// the first move is within the clipping bound.
    pub(crate) fn squared(&self) -> f64 {
        self.sum(2)
    }

    /// Σ min(1, r γᵏ): the factor on the sensitivity of a sum over time, such as a CUSUM.
    pub(crate) fn summed(&self) -> f64 {
        self.sum(1)
    }

    /// How many steps later a sample can still turn a symbol.
    pub(crate) fn later_steps(&self) -> u64 {
        self.steps_until(self.resolution).saturating_add(self.lags)
    }

    /// How many later symbols of a stream one sample can still turn.
    pub(crate) fn later_symbols(&self) -> u64 {
        self.later_steps().div_ceil(self.stride)
    }

    /// Clipping hides all of a move beyond its bound, so the first steps count one each, and the
    /// rest is a geometric series.
    fn sum(&self, power: i32) -> f64 {
        if self.is_endless() {
            return f64::INFINITY;
        }
        let full = self.steps_until(1.0);
        let rest = self.first_move * self.contraction.powf(full as f64);
        full as f64 + rest.powi(power) / (1.0 - self.contraction.powi(power))
    }

    /// The first step at which the move is at most `size`.
    fn steps_until(&self, size: f64) -> u64 {
        if self.is_endless() {
            return u64::MAX;
        }
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

    #[test]
    fn a_measured_memory_covers_every_move_and_little_more() {
        let fading: Vec<f64> = (0..200).map(|k| 0.8_f64.powi(k)).collect();
        let memory = FilterMemory::covering(&fading, 0.1).unwrap();
        assert!((memory.contraction() - 0.8).abs() < 1e-9, "{memory:?}");
        assert_eq!((memory.later_symbols(), memory.known()), (11, Known::Measured));
        // A move that grows before it fades is covered as well, by a larger first move.
        let late: Vec<f64> =
            (0..200).map(|k| if k < 3 { 0.5 } else { 0.7_f64.powi(k - 3) }).collect();
        let memory = FilterMemory::covering(&late, 0.1).unwrap();
        let moves = |k: i32| memory.first_move * memory.contraction.powi(k);
        assert!((0..20).all(|k| moves(k) >= late[k as usize] - 1e-9), "{memory:?}");
        assert!((10..16).contains(&memory.later_symbols()), "{memory:?}");
    }

    #[test]
    fn what_does_not_fade_is_endless_and_said_to_be() {
        for moves in [vec![1.0; 100], vec![f64::NAN; 100], Vec::new()] {
            let memory = FilterMemory::covering(&moves, 0.1).unwrap();
            assert!(memory.is_endless() && memory.squared().is_infinite());
            assert!(memory.checked().is_ok() && memory.outlasts(&FilterMemory::NONE));
        }
    }

    #[test]
    fn what_looks_back_further_or_speaks_more_seldom_is_counted_so() {
        let memory = FilterMemory::new(0.9, 1.0, 0.1).unwrap();
        assert_eq!(memory.behind(5, 1).later_symbols(), 27);
        assert_eq!(memory.behind(5, 12).later_symbols(), 3);
        assert!((memory.behind(5, 12).squared() - memory.squared()).abs() < 1e-12);
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
