//! Data and models for the tests of training.

use ndarray::Array2;
use rand_distr::{Distribution as _, StandardNormal};

use super::window::{Batch, Windows};
use super::{Progress, sensors};
use crate::base::rng;
use crate::nn::weights::{Conduct, FilterWeights, LstmFc, Mlp};

/// A damped nonlinear oscillator with noise, seen by `sensors` standardised nonlinear sensors. All
/// seeds share one plant.
pub(crate) fn plant(rows: usize, sensors: usize, seed: u64) -> Array2<f32> {
    let mut mixing = rng::stream(42, 0);
    let mut mix = || -> f64 { StandardNormal.sample(&mut mixing) };
    let mix: Vec<(f64, f64)> = (0..sensors).map(|_| (mix(), mix())).collect();
    let mut noise = rng::stream(seed, 1);
    let mut noise = || -> f64 { StandardNormal.sample(&mut noise) };
    let (mut a, mut b) = (0.5f64, 0.0f64);
    let mut y = Array2::zeros((rows, sensors));
    for mut row in y.outer_iter_mut() {
        b += 0.2 * (-a - 0.1 * a.powi(3) - 0.2 * b) + 0.15 * noise();
        a += 0.2 * b;
        for (v, (p, q)) in row.iter_mut().zip(&mix) {
            let s: f64 = p * a + q * b;
            *v = (s.tanh() + 0.5 * s + 0.02 * noise()) as f32;
        }
    }
    let deviations = sensors::deviations(&y.view());
    for (mut column, deviation) in y.columns_mut().into_iter().zip(deviations) {
        let mean = column.mean().unwrap_or(0.0);
        column.mapv_inplace(|v| (v - mean) / deviation);
    }
    y
}

/// A filter of the paper's form with two states, or of residual form, with random weights.
pub(crate) fn small_filter(sensors: usize, residual: bool, seed: u64) -> FilterWeights {
    let mut rng = rng::stream(seed, 7);
    let states = if residual { sensors } else { 2 };
    FilterWeights {
        transition: LstmFc::init(states, 5, states, 1.0, &mut rng),
        measurement: Mlp::init(states, 6, sensors, 1.0, &mut rng),
        loadings: residual.then(|| sensors::loadings(&plant(500, sensors, 0).view())),
        q: 0.1,
        r: 0.1,
        conduct: Conduct::default(),
    }
}

/// Eleven windows of ten steps, with two holes, an outlier and a last block that is not full.
pub(crate) fn batch(sensors: usize) -> Batch {
    let mut rows = plant(20, sensors, 3);
    rows[[5, 0]] = f32::NAN;
    rows[[11, sensors - 1]] = f32::INFINITY;
    rows[[14, 0]] = 8.0;
    let windows = Windows::new(&rows.view(), 10);
    windows.batches(64).next().expect("eleven windows")
}

pub(crate) fn on(_: Progress) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}
