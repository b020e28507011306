//! The optimiser of the hand-written trainer: [`adam`] with the same bound on the whole gradient's norm
//! as the [`Trainer`](super::trainer::Trainer) on candle's optimisers.

use crate::nn::adam::{self, Scalar};
use crate::nn::weights::Parameters;

/// Bound on the norm of the gradient of all weights together.
pub(crate) const NORM: f64 = 1.0;

/// The optimiser's memory of one set of weights.
#[derive(Debug, Clone)]
pub(crate) struct Adam {
    learning_rate: f64,
    /// Whether gradients are scaled to a norm of at most [`NORM`].
    is_bounded: bool,
    step: i32,
    /// First and second moment of each weight.
    moments: Vec<(f32, f32)>,
}

impl Adam {
    /// For `weights` that have not been trained yet.
    pub(crate) fn new(weights: &impl Parameters, learning_rate: f64) -> Self {
        let count = weights.slices().iter().map(|s| s.len()).sum();
        Self { learning_rate, is_bounded: true, step: 0, moments: vec![(0.0, 0.0); count] }
    }

    /// Gradients keep their norm.
    pub(crate) fn unbounded(self) -> Self {
        Self { is_bounded: false, ..self }
    }

    /// One step against `gradient`, scaled to a norm of at most 1. Returns the norm before that,
    /// and changes nothing when it is not finite.
    pub(crate) fn step<W: Parameters>(&mut self, weights: &mut W, gradient: &W) -> f64 {
        let gradient = gradient.slices();
        let square: f64 =
            gradient.iter().flat_map(|s| s.iter()).map(|g| f64::from(*g).powi(2)).sum();
        let norm = square.sqrt();
        if !norm.is_finite() {
            return norm;
        }
        let scale = if self.is_bounded { (NORM / norm.max(NORM)) as f32 } else { 1.0 };
        self.step += 1;
        let rounding = Scalar::at(self.learning_rate, self.step);
        let gradient = gradient.into_iter().flatten();
        let weights = weights.slices_mut().into_iter().flatten();
        for ((w, g), (m, v)) in weights.zip(gradient).zip(&mut self.moments) {
            adam::step(rounding, w, (m, v), g * scale);
        }
        norm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use crate::nn::weights::Mlp;

    #[test]
    fn a_large_gradient_is_cut_and_a_broken_one_refused() {
        let mut weights = Mlp::init(2, 4, 1, 1.0, &mut rng::stream(3, 0));
        let before = weights.clone();
        let mut gradient = weights.clone();
        gradient.slices_mut().into_iter().flatten().for_each(|v| *v *= 1e6);
        let mut adam = Adam::new(&weights, 1e-2);
        assert!(adam.step(&mut weights, &gradient) > 1e5);
        let small: f64 = adam.moments.iter().map(|(m, _)| f64::from(*m).powi(2)).sum();
        assert!((small.sqrt() - 0.1).abs() < 1e-4, "(1 − β1) of a gradient of norm 1: {small}");
        assert_ne!(weights, before);
        let mut whole = Adam::new(&weights, 1e-2).unbounded();
        let norm = whole.step(&mut weights.clone(), &gradient);
        let kept: f64 = whole.moments.iter().map(|(m, _)| f64::from(*m).powi(2)).sum();
        assert!((kept.sqrt() / norm - 0.1).abs() < 1e-4, "(1 − β1) of the gradient: {kept}");
        gradient.bias_1[0] = f32::NAN;
        let before = weights.clone();
        assert!(adam.step(&mut weights, &gradient).is_nan());
        assert_eq!(weights, before);
    }
}
