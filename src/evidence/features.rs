//! What regressions on states are made of: a state in its own standard deviations, and a few fixed
//! random nonlinear functions of it.

use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::base::rng;

/// Bound on a standardised state.
pub(crate) const LARGEST_Z: f64 = 5.0;
/// Bound on ε, what was new about a state, in its own standard deviations.
pub(crate) const LARGEST_EPSILON: f64 = 6.0;
/// Random nonlinear features of a state.
const HIDDEN: usize = 8;
/// The random features are a fixed part of the method, the same everywhere.
const FEATURE_SEED: u64 = 0x5EED;

/// Mean and inverse standard deviation, element by element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Standard {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

impl Standard {
    /// Of rows of `width` elements; missing ones are left out.
    pub(crate) fn fit<'a>(width: usize, rows: impl Iterator<Item = &'a [f32]>) -> Self {
        let mut n = vec![0.0f64; width];
        let mut mean = vec![0.0f64; width];
        let mut squares = vec![0.0f64; width];
        for row in rows {
            for (i, v) in row.iter().enumerate().filter(|(_, v)| v.is_finite()) {
                n[i] += 1.0;
                let step = f64::from(*v) - mean[i];
                mean[i] += step / n[i];
                squares[i] += step * (f64::from(*v) - mean[i]);
            }
        }
        let scale = squares.iter().zip(&n).map(|(s, n)| (s / n.max(1.0)).sqrt().max(1e-9).recip());
        Self { scale: scale.collect(), mean }
    }

    pub(crate) fn width(&self) -> usize {
        self.mean.len()
    }

    /// The variance of element `i`.
    pub(crate) fn variance(&self, i: usize) -> f64 {
        self.scale[i].powi(-2)
    }

    /// In standard deviations within ±`largest`; missing counts as the mean.
    pub(crate) fn apply(&self, i: usize, v: f32, largest: f64) -> f64 {
        bounded((f64::from(v) - self.mean[i]) * self.scale[i], largest)
    }
}

/// `v` within ±`largest`; not a number counts as 0.
pub(crate) fn bounded(v: f64, largest: f64) -> f64 {
    if v.is_nan() { 0.0 } else { v.clamp(-largest, largest) }
}

/// ψ(z) = [z, tanh(Wz + b)] with fixed random W, b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Features {
    states: usize,
    /// One row of weights per hidden feature.
    weight: Vec<f64>,
    bias: Vec<f64>,
}

impl Features {
    /// For states of so many components.
    pub(crate) fn new(states: usize) -> Self {
        let mut rng = rng::stream(FEATURE_SEED, 0);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let weight = (0..HIDDEN * states).map(|_| normal()).collect();
        let bias = (0..HIDDEN).map(|_| 0.7 * normal()).collect();
        Self { states, weight, bias }
    }

    /// Number of components of z.
    pub(crate) fn states(&self) -> usize {
        self.states
    }

    /// Number of features, z included.
    pub(crate) fn width(&self) -> usize {
        self.states + HIDDEN
    }

    /// Fills in what follows the z that `psi` begins with.
    pub(crate) fn complete(&self, psi: &mut [f64]) {
        let (z, hidden) = psi.split_at_mut(self.states);
        let rows = self.weight.chunks_exact(self.states.max(1));
        for ((out, row), b) in hidden.iter_mut().zip(rows).zip(&self.bias) {
            *out = (b + row.iter().zip(&*z).map(|(w, z)| w * z).sum::<f64>()).tanh();
        }
    }
}
