//! The Gaussian mechanism itself: clip to a public bound, snap to a public grid, add exact noise.
//!
//! The order matters. Clipping happens on the grid's integers, so the sensitivity is that of
//! integers and no rounding can exceed it; the noise is an integer too, so the sum is exact. It
//! knows public bounds, and takes none from the data.

use super::PrivacyError;
use super::randomness::Randomness;
use super::release::{Estimate, Guarded, Numbers, Spend};
use super::sampler::{MAX_SCALE, rounded_normal};
use crate::session::privacy::Sigma;

/// The grid has this many steps, as a power of two, over one clipping range.
const GRID_BITS: i32 = 16;

/// A public bound on what is noised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Clip {
    /// Every one of `dimension` components in [−bound, bound]: Δ = 2·bound·√dimension.
    Box {
        /// Bound on a component.
        bound: f64,
        dimension: usize,
    },
    /// Euclidean norm at most `bound`, whatever the dimension: Δ = 2·bound.
    Ball {
        /// Bound on the norm.
        bound: f64,
    },
}

impl Clip {
    fn bound(self) -> f64 {
        match self {
            Self::Box { bound, .. } | Self::Ball { bound } => bound,
        }
    }
}

/// Noise for one kind of release.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gaussian {
    clip: Clip,
    /// The grid's step, a power of two: every multiple that can occur is exact in a double.
    step: f64,
    /// The clipping bound in steps, rounded down.
    reach: i64,
    /// σ in steps, rounded up: the noise is never less than asked for.
    scale: u64,
}

/// σ by the least noise that gives (ε, δ) to what is clipped so: what states and gradients get.
pub(crate) fn sigma_used(clip: Clip, epsilon: f64, delta: f64) -> Result<f64, PrivacyError> {
    Ok(Gaussian::new(clip, Sigma::Analytic, epsilon, delta)?.sigma())
}

impl Gaussian {
    /// The mechanism that is (ε, δ)-private by `rule` for one release.
    pub(crate) fn new(
        clip: Clip,
        rule: Sigma,
        epsilon: f64,
        delta: f64,
    ) -> Result<Self, PrivacyError> {
        if !(epsilon.is_finite() && epsilon > 0.0) {
            return Err(PrivacyError::Setting {
                what: "ε of a Gaussian release",
                expected: "a number above 0",
                found: epsilon,
            });
        }
        if !(delta > 0.0 && delta < 1.0) {
            return Err(PrivacyError::Setting {
                what: "δ of a Gaussian release",
                expected: "a number between 0 and 1",
                found: delta,
            });
        }
        let (step, reach) = grid(clip)?;
        Self::with_sigma(clip, rule.sigma(sensitivity(clip, step, reach), epsilon, delta))
    }

    /// The mechanism with noise of standard deviation `sigma`.
    pub(crate) fn with_sigma(clip: Clip, sigma: f64) -> Result<Self, PrivacyError> {
        let (step, reach) = grid(clip)?;
        let scale = (sigma / step).ceil();
        if !(scale >= 1.0 && scale <= MAX_SCALE as f64) {
            return Err(PrivacyError::Setting {
                what: "σ of a Gaussian release",
                expected: "between 2^-16 and 2^24 clipping ranges",
                found: sigma,
            });
        }
        Ok(Self { clip, step, reach, scale: scale as u64 })
    }

    /// Δ: the most by which two releases' true values can differ, in Euclidean norm.
    pub(crate) fn sensitivity(&self) -> f64 {
        sensitivity(self.clip, self.step, self.reach)
    }

    /// σ as it is drawn.
    pub(crate) fn sigma(&self) -> f64 {
        self.scale as f64 * self.step
    }

    /// The step of the grid on which every released number lies.
    #[cfg(test)]
    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    pub(crate) fn spend(&self) -> Spend {
        Spend::Gaussian { sensitivity: self.sensitivity(), sigma: self.sigma() }
    }

    /// The noised form of `estimate`.
    pub(crate) fn noised(
        &self,
        estimate: &Estimate<'_>,
        random: &mut Randomness,
    ) -> Result<Guarded<Numbers>, PrivacyError> {
        let mut values = Vec::with_capacity(estimate.values().len());
        for n in self.clipped(estimate.values())? {
            // |n| < 2^17 and noise stays far below 2^46, so the sum is an exact double.
            values.push((n + rounded_normal(self.scale, random)?) as f64 * self.step);
        }
        Ok(Guarded::new(Numbers::new(values), self.spend(), random.provenance()))
    }

    /// `values` in grid steps, inside the clipping bound.
    fn clipped(&self, values: &[f64]) -> Result<Vec<i64>, PrivacyError> {
        if let Some(place) = values.iter().position(|x| !x.is_finite()) {
            return Err(PrivacyError::NotFinite { place });
        }
        match self.clip {
            Clip::Box { dimension, .. } if values.len() != dimension => {
                Err(PrivacyError::Dimension { expected: dimension, found: values.len() })
            }
            Clip::Box { .. } => Ok(values
                .iter()
                .map(|x| ((x / self.step).round() as i64).clamp(-self.reach, self.reach))
                .collect()),
            Clip::Ball { bound } => Ok(self.in_ball(values, bound)),
        }
    }

    /// Scaled into the ball and truncated towards zero, which cannot lengthen a vector. The
    /// scale is a rounded number, so the integers themselves are checked, and shortened by the
    /// one step that may be too much.
    fn in_ball(&self, values: &[f64], bound: f64) -> Vec<i64> {
        let largest = values.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        if largest == 0.0 {
            return vec![0; values.len()];
        }
        let norm = largest * values.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt();
        let shrink = if norm > bound { bound / largest / (norm / largest) } else { 1.0 };
        let mut steps: Vec<i64> =
            values.iter().map(|x| (x * shrink / self.step).trunc() as i64).collect();
        let limit = i128::from(self.reach).pow(2);
        while steps.iter().map(|&n| i128::from(n).pow(2)).sum::<i128>() > limit {
            if let Some(longest) = steps.iter_mut().max_by_key(|n| n.abs()) {
                *longest -= longest.signum();
            }
        }
        steps
    }
}

/// The step and the clipping bound in steps.
fn grid(clip: Clip) -> Result<(f64, i64), PrivacyError> {
    let bound = clip.bound();
    if !(bound.is_finite() && bound > 1e-100 && bound < 1e100) {
        return Err(PrivacyError::Setting {
            what: "clipping bound",
            expected: "a number above 0",
            found: bound,
        });
    }
    let step = 2.0_f64.powi((2.0 * bound).log2().floor() as i32 - GRID_BITS);
    Ok((step, (bound / step).floor() as i64))
}

fn sensitivity(clip: Clip, step: f64, reach: i64) -> f64 {
    let range = 2.0 * reach as f64 * step;
    match clip {
        Clip::Box { dimension, .. } => range * (dimension as f64).sqrt(),
        Clip::Ball { .. } => range,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(bound: f64, dimension: usize) -> Gaussian {
        let clip = Clip::Box { bound, dimension };
        Gaussian::new(clip, Sigma::Analytic, 1.0, 1e-5).unwrap()
    }

    #[test]
    fn a_state_clipped_at_five_has_the_sensitivity_of_its_box() {
        let mechanism = state(5.0, 2);
        assert!((mechanism.sensitivity() - 10.0 * 2.0_f64.sqrt()).abs() < 1e-9);
        let wanted = Sigma::Analytic.sigma(mechanism.sensitivity(), 1.0, 1e-5);
        assert!(mechanism.sigma() >= wanted && mechanism.sigma() <= wanted + mechanism.step());
    }

    #[test]
    fn released_numbers_lie_on_the_grid() {
        let mechanism = state(3.0, 3);
        let mut random = Randomness::seeded(1, 0);
        for _ in 0..100 {
            let values = [0.123_456_789, -2.5, 1e9];
            let noised = mechanism.noised(&Estimate::of_state(&values), &mut random).unwrap();
            for x in noised.value.as_slice() {
                assert!((x / mechanism.step()).fract() == 0.0, "{x} is off the grid");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_is_refused_with_its_place() {
        let mechanism = state(5.0, 2);
        let mut random = Randomness::seeded(1, 0);
        let broken = Estimate::of_state(&[0.0, f64::NAN]);
        assert!(matches!(
            mechanism.noised(&broken, &mut random),
            Err(PrivacyError::NotFinite { place: 1 })
        ));
        let long = Estimate::of_state(&[0.0; 3]);
        assert!(matches!(
            mechanism.noised(&long, &mut random),
            Err(PrivacyError::Dimension { expected: 2, found: 3 })
        ));
    }

    #[test]
    fn settings_that_would_break_the_arithmetic_are_refused() {
        let clip = Clip::Ball { bound: 1.0 };
        assert!(Gaussian::new(clip, Sigma::Analytic, -1.0, 1e-5).is_err());
        assert!(Gaussian::new(clip, Sigma::Analytic, 1.0, 0.0).is_err());
        assert!(Gaussian::with_sigma(clip, 1e9).is_err());
        assert!(Gaussian::with_sigma(clip, f64::NAN).is_err());
        assert!(Gaussian::with_sigma(Clip::Ball { bound: f64::INFINITY }, 1.0).is_err());
    }

    proptest! {
        #[test]
        fn a_clipped_gradient_is_never_longer_than_its_bound(
            values in proptest::collection::vec(-1e6_f64..1e6, 1..40), bound in 1e-3_f64..1e3,
        ) {
            let mechanism = Gaussian::with_sigma(Clip::Ball { bound }, bound).unwrap();
            let steps = mechanism.clipped(&values).unwrap();
            let squares: f64 = steps.iter().map(|&n| (n as f64 * mechanism.step).powi(2)).sum();
            prop_assert!(squares.sqrt() <= bound);
            prop_assert!(2.0 * squares.sqrt() <= mechanism.sensitivity());
        }

        #[test]
        fn a_value_inside_its_bound_is_moved_by_less_than_a_step(x in -5.0_f64..5.0) {
            let mechanism = state(5.0, 1);
            let steps = mechanism.clipped(&[x]).unwrap();
            prop_assert!((steps[0] as f64 * mechanism.step - x).abs() <= mechanism.step);
        }
    }
}
