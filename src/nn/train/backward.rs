//! Loss and gradient of a filter over a batch of windows, by hand.
//!
//! Per step (paper, eq. 1): x = f(x̂; h, c), r = y − h(x), x̂ = x + K r. The loss is the mean of r²
//! without the first steps of a window, in which the filter only finds its state; K is a constant.
//! [`graph`](super::graph) says the same in candle: tests hold the two together. This pass exists
//! because candle spends most of a narrow network's time between its operations.

use super::gain::{Block, Trace};
use super::lanes::{LANES, Lane, ZERO, accumulate, add_outer, add_transposed};
#[cfg(test)]
use super::optimise::WARM_UP;
use super::window::{Batch, clip};
use crate::nn::cell::{Cell, Plain};
use crate::nn::weights::{FilterWeights, Parameters as _};

/// What the way back needs of one step.
#[derive(Debug, Clone)]
struct Record {
    trace: Trace,
    /// y − ŷ in the loss; zero where it is not counted.
    counted: Vec<Lane>,
}

/// Sums of the gradient, one per weight and window of a block, in the order of the weights' tensors:
/// they are added over windows only once, in a fixed order. Both biases of the gates share the sums of
/// the first, as they enter the gates in the same way.
type Sums = [Vec<Lane>; 10];

fn gradient_of(weights: &FilterWeights, sums: &Sums, scale: f32) -> FilterWeights {
    let mut gradient = weights.clone();
    for (values, sums) in gradient.slices_mut().into_iter().zip(sums) {
        *values = sums.iter().map(|s| scale * s.iter().sum::<f32>()).collect();
    }
    gradient.transition.bias_hh = gradient.transition.bias_ih.clone();
    gradient
}

/// The loss on `batch` without its warm-up, and its gradient.
#[cfg(test)]
pub(crate) fn gradient(weights: &FilterWeights, batch: &Batch) -> (f64, FilterWeights) {
    gradient_from(weights, batch, WARM_UP)
}

/// The loss on `batch` over the steps of a window from `warm_up` on, and its gradient, which has the type
/// of the weights.
pub(crate) fn gradient_from(
    weights: &FilterWeights,
    batch: &Batch,
    warm_up: usize,
) -> (f64, FilterWeights) {
    let record = Record { trace: Trace::new(weights), counted: vec![ZERO; batch.sensors] };
    let mut records = vec![record; batch.steps];
    let slices = weights.slices();
    let mut sums: Sums = std::array::from_fn(|k| vec![ZERO; slices[k].len()]);
    let mut adjoint = Adjoint::new(weights);
    let mut block = Block::new(weights);
    let (mut loss, mut measured) = (0.0, 0usize);
    for first in (0..batch.windows).step_by(LANES) {
        block.restart();
        let (square, count) = forward(&mut block, batch, first, warm_up, &mut records);
        loss += square;
        measured += count;
        adjoint.restart();
        block.isa.vectorise(
            #[inline(always)]
            || {
                for record in records.iter().rev() {
                    adjoint.back(weights, record, &mut sums);
                }
            },
        );
    }
    let n = measured.max(1) as f64;
    // d(r²)/dŷ = −2 r; the factor is left out of every step and stands here once.
    (loss / n, gradient_of(weights, &sums, (-2.0 / n) as f32))
}

/// Runs the filter over the windows from `first` on; the sum and number of counted r².
fn forward(
    block: &mut Block,
    batch: &Batch,
    first: usize,
    warm_up: usize,
    records: &mut [Record],
) -> (f64, usize) {
    let bound = block.conduct().update_clip;
    let sensors = batch.sensors;
    let used = LANES.min(batch.windows - first);
    let mut y = vec![[f32::NAN; LANES]; sensors];
    let (mut sum, mut count) = (0.0, 0);
    for (t, record) in records.iter_mut().enumerate() {
        let rows = &batch.values[(t * batch.windows + first) * sensors..][..used * sensors];
        for (l, row) in rows.chunks_exact(sensors).enumerate() {
            row.iter().zip(&mut y).for_each(|(v, y)| y[l] = clip(*v, bound));
        }
        block.step(&y, &mut record.trace);
        record.counted.fill(ZERO);
        if t < warm_up {
            continue;
        }
        for (l, row) in rows.chunks_exact(sensors).enumerate() {
            for ((v, r), predicted) in
                row.iter().zip(&mut record.counted).zip(&record.trace.predicted)
            {
                if v.is_finite() {
                    r[l] = v - predicted[l];
                    sum += f64::from(r[l]).powi(2);
                    count += 1;
                }
            }
        }
    }
    (sum, count)
}

/// Derivatives of the loss on the way back through a window.
#[derive(Debug)]
struct Adjoint {
    x_hat: Vec<Lane>,
    h: Vec<Lane>,
    c: Vec<Lane>,
    x: Vec<Lane>,
    y_hat: Vec<Lane>,
    hidden: Vec<Lane>,
    gates: Vec<Lane>,
}

impl Adjoint {
    fn new(w: &FilterWeights) -> Self {
        let n = w.transition.width;
        Self {
            x_hat: vec![ZERO; w.states()],
            h: vec![ZERO; n],
            c: vec![ZERO; n],
            x: vec![ZERO; w.states()],
            y_hat: vec![ZERO; w.sensors()],
            hidden: vec![ZERO; w.measurement.width],
            gates: vec![ZERO; 4 * n],
        }
    }

    /// Nothing after the end of a window depends on it.
    fn restart(&mut self) {
        self.x_hat.fill(ZERO);
        self.h.fill(ZERO);
        self.c.fill(ZERO);
    }

    #[inline(always)]
    fn back(&mut self, w: &FilterWeights, record: &Record, sums: &mut Sums) {
        self.update(record);
        self.measurement(w, record, sums);
        self.transition(w, record, sums);
        if !w.conduct.has_memory {
            self.h.fill(ZERO);
            self.c.fill(ZERO);
        }
    }

    /// x̂ = x + K (y − ŷ), and the loss at ŷ.
    #[inline(always)]
    fn update(&mut self, record: &Record) {
        let sensors = self.y_hat.len();
        self.x.clone_from(&self.x_hat);
        self.y_hat.clone_from(&record.counted);
        for (row, adjoint) in record.trace.gain.chunks_exact(sensors).zip(&self.x_hat) {
            for (k, y_hat) in row.iter().zip(&mut self.y_hat) {
                for l in 0..LANES {
                    y_hat[l] -= k[l] * adjoint[l];
                }
            }
        }
    }

    /// ŷ = W₂ selu(W₁ x + b₁) + b₂ (+ C x).
    #[inline(always)]
    fn measurement(&mut self, w: &FilterWeights, record: &Record, sums: &mut Sums) {
        let (mlp, trace) = (&w.measurement, &record.trace);
        let [.., weight_1, bias_1, weight_2, bias_2] = sums;
        add_outer(weight_2, &self.y_hat, &trace.hidden);
        add_all(bias_2, &self.y_hat);
        self.hidden.fill(ZERO);
        add_transposed(&mlp.weight_2, &self.y_hat, &mut self.hidden);
        for (adjoint, slope) in self.hidden.iter_mut().zip(&trace.slope) {
            for l in 0..LANES {
                adjoint[l] *= slope[l];
            }
        }
        add_outer(weight_1, &self.hidden, &trace.x);
        add_all(bias_1, &self.hidden);
        add_transposed(&mlp.weight_1, &self.hidden, &mut self.x);
        if let Some(loadings) = &w.loadings {
            add_transposed(loadings, &self.y_hat, &mut self.x);
        }
    }

    /// x = W h' + b (+ x̂), h' and c' from the gates of (x̂, h, c).
    #[inline(always)]
    fn transition(&mut self, w: &FilterWeights, record: &Record, sums: &mut Sums) {
        let (lstm, trace) = (&w.transition, &record.trace);
        let n = lstm.width;
        let [weight_ih, weight_hh, bias, _, fc_weight, fc_bias, ..] = sums;
        add_outer(fc_weight, &self.x, &trace.h);
        add_all(fc_bias, &self.x);
        add_transposed(&lstm.fc_weight, &self.x, &mut self.h);
        for j in 0..n {
            for l in 0..LANES {
                let gate = |k: usize| trace.gates[k * n + j][l];
                let (i, f, g, o) = (gate(0), gate(1), gate(2), gate(3));
                let cell = Cell { i, f, g, o, tanh_c: trace.tanh_c[j][l] };
                let (dz, dc) = cell.back(Plain, trace.c_before[j][l], self.h[j][l], self.c[j][l]);
                for (k, dz) in dz.into_iter().enumerate() {
                    self.gates[k * n + j][l] = dz;
                }
                self.c[j][l] = dc;
            }
        }
        add_outer(weight_ih, &self.gates, &trace.x_hat_before);
        add_outer(weight_hh, &self.gates, &trace.h_before);
        add_all(bias, &self.gates);
        self.h.fill(ZERO);
        add_transposed(&lstm.weight_hh, &self.gates, &mut self.h);
        if w.loadings.is_some() {
            self.x_hat.clone_from(&self.x);
        } else {
            self.x_hat.fill(ZERO);
        }
        add_transposed(&lstm.weight_ih, &self.gates, &mut self.x_hat);
    }
}

#[inline(always)]
fn add_all(sums: &mut [Lane], values: &[Lane]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        accumulate(sum, 1.0, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::network::FilterNetwork;
    use crate::nn::train::test_support::{batch, small_filter};
    use crate::nn::train::trainer::Trainer;
    use crate::nn::train::{filter, graph};

    #[test]
    fn loss_and_gradient_are_those_of_candle() {
        for residual in [false, true] {
            let (weights, batch) = (small_filter(3, residual, 2), batch(3));
            let (loss, ours) = gradient(&weights, &batch);
            let trainer = Trainer::adam(weights.clone(), 1e-3).unwrap();
            let network = FilterNetwork::new(weights.config(), &trainer.builder()).unwrap();
            let gains = filter::gains(&weights, &batch);
            let candle_loss = graph::filter_loss(&network, &batch, gains).unwrap();
            let theirs = trainer.gradient(&candle_loss.backward().unwrap()).unwrap();
            let candle_loss = f64::from(candle_loss.to_scalar::<f32>().unwrap());
            assert!((loss - candle_loss).abs() < 1e-5 * candle_loss, "{loss} {candle_loss}");
            let size: f32 =
                theirs.slices().into_iter().flatten().map(|g| g * g).sum::<f32>().sqrt();
            for (a, b) in ours.slices().into_iter().zip(theirs.slices()) {
                for (a, b) in a.iter().zip(b) {
                    assert!((a - b).abs() < 1e-5 * size, "{a} {b} (norm {size})");
                }
            }
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss_at_a_constant_gain() {
        for residual in [false, true] {
            let (weights, batch) = (small_filter(3, residual, 2), batch(3));
            let (_, gradient) = gradient(&weights, &batch);
            let gains = filter::gains(&weights, &batch);
            let loss = |w: &FilterWeights| {
                let network = FilterNetwork::running(w).unwrap();
                let loss = graph::filter_loss(&network, &batch, gains.clone()).unwrap();
                f64::from(loss.to_scalar::<f32>().unwrap())
            };
            let slices = gradient.slices();
            for (k, slice) in slices.iter().enumerate() {
                for i in [0, slice.len() / 2, slice.len() - 1] {
                    let at = |step: f32| {
                        let mut moved = weights.clone();
                        moved.slices_mut()[k][i] += step;
                        loss(&moved)
                    };
                    let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
                    let exact = f64::from(slice[i]);
                    assert!((slope - exact).abs() < 2e-3, "weight {k}[{i}]: {slope} {exact}");
                }
            }
        }
    }

    #[test]
    fn windows_do_not_touch_each_other() {
        let (weights, batch) = (small_filter(3, true, 2), batch(3));
        let (together, _) = gradient(&weights, &batch);
        let (mut sum, mut counted) = (0.0, 0);
        for window in 0..batch.windows {
            let values = batch.values.chunks_exact(3).skip(window).step_by(batch.windows);
            let values: Vec<f32> = values.flatten().copied().collect();
            let n = values[3 * WARM_UP..].iter().filter(|v| v.is_finite()).count();
            let one = Batch { windows: 1, values, ..batch };
            sum += gradient(&weights, &one).0 * n as f64;
            counted += n;
        }
        assert!((sum / counted as f64 - together).abs() < 1e-9);
    }

    #[test]
    fn without_memory_the_gradient_stays_the_slope_of_the_loss() {
        let mut weights = small_filter(3, false, 2);
        weights.conduct.has_memory = false;
        // With so much noise the gain is nearly zero, and nothing of the loss flows through it.
        weights.r = 1e6;
        let batch = batch(3);
        let (_, slopes) = gradient(&weights, &batch);
        for (k, slice) in slopes.slices().iter().enumerate() {
            for i in [0, slice.len() / 2, slice.len() - 1] {
                let at = |step: f32| {
                    let mut moved = weights.clone();
                    moved.slices_mut()[k][i] += step;
                    gradient(&moved, &batch).0
                };
                let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
                let exact = f64::from(slice[i]);
                assert!((slope - exact).abs() < 2e-3, "weight {k}[{i}]: {slope} {exact}");
            }
        }
        assert!(slopes.transition.weight_hh.iter().all(|g| *g == 0.0), "nothing is remembered");
    }

    #[test]
    fn the_whole_window_is_in_the_loss_only_when_asked_for() {
        let (weights, batch) = (small_filter(3, false, 2), batch(3));
        let usual = gradient(&weights, &batch);
        assert_eq!(gradient_from(&weights, &batch, WARM_UP), usual);
        assert_ne!(gradient_from(&weights, &batch, 0), usual);
    }
}
