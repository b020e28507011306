//! The losses as candle graphs: what the oracle and the end-to-end predictor learn from, and the
//! definition that the hand-written [`backward`](super::backward) pass is checked against.

use candle_core::{DType, Device, Result, Tensor};

use super::optimise::WARM_UP;
use super::window::{Batch, clip};
use crate::nn::network::{FilterNetwork, LstmNetwork};

/// Measurements enter inside ±this many standard deviations.
const BOUND: f32 = 5.0;

/// Mean r² of a filter with the given gains, one windows × P × D per step.
pub(crate) fn filter_loss(
    network: &FilterNetwork,
    batch: &Batch,
    gains: Vec<Vec<f32>>,
) -> Result<Tensor> {
    let (windows, sensors) = (batch.windows, batch.sensors);
    // A missing measurement has a gain of zero, so any number may stand for it here.
    let clipped: Vec<f32> =
        batch.values.iter().map(|y| if y.is_finite() { clip(*y, BOUND) } else { 0.0 }).collect();
    let mut state = network.zero_state(windows)?;
    let states = gains.first().map_or(0, |k| k.len() / (windows * sensors));
    let mut x_hat = Tensor::zeros((windows, states), DType::F32, &Device::Cpu)?;
    let mut predicted = Vec::with_capacity(batch.steps);
    for (k, y) in gains.into_iter().zip(clipped.chunks_exact(windows * sensors)) {
        let (x, next) = network.transition(&x_hat, &state)?;
        let y_hat = network.measurement(&x)?;
        let k = Tensor::from_vec(k, (windows, states, sensors), &Device::Cpu)?;
        let r = (Tensor::from_slice(y, (windows, sensors), &Device::Cpu)? - &y_hat)?;
        x_hat = (x + k.matmul(&r.unsqueeze(2)?)?.squeeze(2)?)?;
        state = next;
        predicted.push(y_hat);
    }
    mean_square(batch, &predicted)
}

/// Mean square of what an end-to-end predictor leaves over.
pub(crate) fn predictor_loss(network: &LstmNetwork, batch: &Batch) -> Result<Tensor> {
    mean_square(batch, &predictions(network, batch)?)
}

/// ŷ of every step, each windows × sensors; that of the first, which has no past, is zero.
pub(crate) fn predictions(network: &LstmNetwork, batch: &Batch) -> Result<Vec<Tensor>> {
    let shape = (batch.windows, batch.sensors);
    let mut state = network.zero_state(batch.windows)?;
    let mut predicted = Vec::with_capacity(batch.steps);
    let mut last = Tensor::zeros(shape, DType::F32, &Device::Cpu)?;
    for row in batch.values.chunks_exact(batch.windows * batch.sensors) {
        let input = fill(row, shape, &last)?;
        predicted.push(last);
        (last, state) = network.step(&input, &state)?;
    }
    Ok(predicted)
}

/// The measured values, clipped, with what is missing taken from `predicted`.
fn fill(row: &[f32], shape: (usize, usize), predicted: &Tensor) -> Result<Tensor> {
    let measured: Vec<f32> =
        row.iter().map(|y| if y.is_finite() { clip(*y, BOUND) } else { 0.0 }).collect();
    let measured = Tensor::from_vec(measured, shape, &Device::Cpu)?;
    if row.iter().all(|y| y.is_finite()) {
        return Ok(measured);
    }
    let missing: Vec<f32> = row.iter().map(|y| f32::from(u8::from(!y.is_finite()))).collect();
    measured + (predicted * Tensor::from_vec(missing, shape, &Device::Cpu)?)?
}

/// Mean of (y − ŷ)² over what was measured after the warm-up; zero when nothing was.
pub(super) fn mean_square(batch: &Batch, predicted: &[Tensor]) -> Result<Tensor> {
    let Batch { steps, windows, sensors, .. } = *batch;
    let shape = (steps - WARM_UP, windows, sensors);
    let predicted = Tensor::stack(&predicted[WARM_UP..], 0)?;
    let values = &batch.values[WARM_UP * windows * sensors..];
    let measured = values.iter().filter(|y| y.is_finite()).count();
    let y: Vec<f32> = values.iter().map(|y| if y.is_finite() { *y } else { 0.0 }).collect();
    let mut r = (Tensor::from_vec(y, shape, &Device::Cpu)? - predicted)?;
    if measured < values.len() {
        let mask: Vec<f32> = values.iter().map(|y| f32::from(u8::from(y.is_finite()))).collect();
        r = (r * Tensor::from_vec(mask, shape, &Device::Cpu)?)?;
    }
    r.sqr()?.sum_all()? / measured.max(1) as f64
}
