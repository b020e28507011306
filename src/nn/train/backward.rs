//! Loss and gradient of a filter over a batch of windows, by hand.
//!
//! Per step (paper, eq. 1): x = f(x̂; h, c), r = y − h(x), x̂ = x + K r. The loss is the mean of r²
//! without the first steps of a window, in which the filter only finds its state; K is a constant.
//! [`graph`](super::graph) says the same in candle: tests hold the two together. This pass exists
//! because candle spends most of a narrow network's time between its operations.

use super::gain::Block;
use super::lanes::{LANES, Lane, ZERO, accumulate, add_outer, add_transposed};
use super::optimise::WARM_UP;
use super::window::{Batch, clip};
use crate::nn::weights::{FilterWeights, LstmFc, Mlp};

/// What the way back needs of one step.
#[derive(Debug, Clone, Default)]
struct Record {
    x_hat_before: Vec<Lane>,
    h_before: Vec<Lane>,
    c_before: Vec<Lane>,
    gates: Vec<Lane>,
    h: Vec<Lane>,
    tanh_c: Vec<Lane>,
    x: Vec<Lane>,
    hidden: Vec<Lane>,
    slope: Vec<Lane>,
    gain: Vec<Lane>,
    /// y − ŷ in the loss; zero where it is not counted.
    counted: Vec<Lane>,
}

impl Record {
    fn before(&mut self, block: &Block) {
        self.x_hat_before.clone_from(&block.x_hat);
        self.h_before.clone_from(&block.h);
        self.c_before.clone_from(&block.c);
    }

    fn after(&mut self, block: &Block) {
        self.gates.clone_from(&block.gates);
        self.h.clone_from(&block.h);
        self.tanh_c.clone_from(&block.tanh_c);
        self.x.clone_from(&block.x);
        self.hidden.clone_from(&block.hidden);
        self.slope.clone_from(&block.slope);
        self.gain.clone_from(&block.gain);
    }
}

/// Sums of the gradient, one per weight and window of a block: they are added over windows only
/// once, in a fixed order.
#[derive(Debug)]
struct Sums {
    weight_ih: Vec<Lane>,
    weight_hh: Vec<Lane>,
    bias: Vec<Lane>,
    fc_weight: Vec<Lane>,
    fc_bias: Vec<Lane>,
    weight_1: Vec<Lane>,
    bias_1: Vec<Lane>,
    weight_2: Vec<Lane>,
    bias_2: Vec<Lane>,
}

impl Sums {
    fn new(w: &FilterWeights) -> Self {
        let (f, h) = (&w.transition, &w.measurement);
        let zeros = |like: &[f32]| vec![ZERO; like.len()];
        Self {
            weight_ih: zeros(&f.weight_ih),
            weight_hh: zeros(&f.weight_hh),
            bias: zeros(&f.bias_ih),
            fc_weight: zeros(&f.fc_weight),
            fc_bias: zeros(&f.fc_bias),
            weight_1: zeros(&h.weight_1),
            bias_1: zeros(&h.bias_1),
            weight_2: zeros(&h.weight_2),
            bias_2: zeros(&h.bias_2),
        }
    }

    fn into_gradient(self, w: &FilterWeights, scale: f32) -> FilterWeights {
        let total = |sums: &[Lane]| sums.iter().map(|s| scale * s.iter().sum::<f32>()).collect();
        let bias: Vec<f32> = total(&self.bias);
        FilterWeights {
            transition: LstmFc {
                weight_ih: total(&self.weight_ih),
                weight_hh: total(&self.weight_hh),
                // Both biases enter the gates in the same way.
                bias_ih: bias.clone(),
                bias_hh: bias,
                fc_weight: total(&self.fc_weight),
                fc_bias: total(&self.fc_bias),
                ..w.transition
            },
            measurement: Mlp {
                weight_1: total(&self.weight_1),
                bias_1: total(&self.bias_1),
                weight_2: total(&self.weight_2),
                bias_2: total(&self.bias_2),
                ..w.measurement
            },
            loadings: w.loadings.clone(),
            q: w.q,
            r: w.r,
        }
    }
}

/// The loss on `batch` and its gradient, which has the type of the weights.
pub(crate) fn gradient(weights: &FilterWeights, batch: &Batch) -> (f64, FilterWeights) {
    let mut records = vec![Record::default(); batch.steps];
    let mut sums = Sums::new(weights);
    let mut adjoint = Adjoint::new(weights);
    let mut block = Block::new(weights);
    let (mut loss, mut measured) = (0.0, 0usize);
    for first in (0..batch.windows).step_by(LANES) {
        block.restart();
        let (square, count) = forward(&mut block, batch, first, &mut records);
        loss += square;
        measured += count;
        adjoint.restart();
        for record in records.iter().rev() {
            adjoint.back(weights, record, &mut sums);
        }
    }
    let n = measured.max(1) as f64;
    // d(r²)/dŷ = −2 r; the factor is left out of every step and stands here once.
    (loss / n, sums.into_gradient(weights, (-2.0 / n) as f32))
}

/// Runs the filter over the windows from `first` on; the sum and number of counted r².
fn forward(block: &mut Block, batch: &Batch, first: usize, records: &mut [Record]) -> (f64, usize) {
    let sensors = batch.sensors;
    let used = LANES.min(batch.windows - first);
    let mut y = vec![[f32::NAN; LANES]; sensors];
    let (mut sum, mut count) = (0.0, 0);
    for (t, record) in records.iter_mut().enumerate() {
        let rows = &batch.values[(t * batch.windows + first) * sensors..][..used * sensors];
        for (l, row) in rows.chunks_exact(sensors).enumerate() {
            row.iter().zip(&mut y).for_each(|(v, y)| y[l] = clip(*v));
        }
        record.before(block);
        block.step(&y);
        record.after(block);
        record.counted.clear();
        record.counted.resize(sensors, ZERO);
        if t < WARM_UP {
            continue;
        }
        for (l, row) in rows.chunks_exact(sensors).enumerate() {
            for ((v, r), predicted) in row.iter().zip(&mut record.counted).zip(&block.predicted) {
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

    fn back(&mut self, w: &FilterWeights, record: &Record, sums: &mut Sums) {
        self.update(record);
        self.measurement(w, record, sums);
        self.transition(w, record, sums);
    }

    /// x̂ = x + K (y − ŷ), and the loss at ŷ.
    fn update(&mut self, record: &Record) {
        let sensors = self.y_hat.len();
        self.x.clone_from(&self.x_hat);
        self.y_hat.clone_from(&record.counted);
        for (row, adjoint) in record.gain.chunks_exact(sensors).zip(&self.x_hat) {
            for (k, y_hat) in row.iter().zip(&mut self.y_hat) {
                for l in 0..LANES {
                    y_hat[l] -= k[l] * adjoint[l];
                }
            }
        }
    }

    /// ŷ = W₂ selu(W₁ x + b₁) + b₂ (+ C x).
    fn measurement(&mut self, w: &FilterWeights, record: &Record, sums: &mut Sums) {
        let mlp = &w.measurement;
        add_outer(&mut sums.weight_2, &self.y_hat, &record.hidden);
        add_all(&mut sums.bias_2, &self.y_hat);
        self.hidden.fill(ZERO);
        add_transposed(&mlp.weight_2, &self.y_hat, &mut self.hidden);
        for (adjoint, slope) in self.hidden.iter_mut().zip(&record.slope) {
            for l in 0..LANES {
                adjoint[l] *= slope[l];
            }
        }
        add_outer(&mut sums.weight_1, &self.hidden, &record.x);
        add_all(&mut sums.bias_1, &self.hidden);
        add_transposed(&mlp.weight_1, &self.hidden, &mut self.x);
        if let Some(loadings) = &w.loadings {
            add_transposed(loadings, &self.y_hat, &mut self.x);
        }
    }

    /// x = W h' + b (+ x̂), h' and c' from the gates of (x̂, h, c).
    fn transition(&mut self, w: &FilterWeights, record: &Record, sums: &mut Sums) {
        let lstm = &w.transition;
        let n = lstm.width;
        add_outer(&mut sums.fc_weight, &self.x, &record.h);
        add_all(&mut sums.fc_bias, &self.x);
        add_transposed(&lstm.fc_weight, &self.x, &mut self.h);
        for j in 0..n {
            for l in 0..LANES {
                let gate = |k: usize| record.gates[k * n + j][l];
                let (i, f, g, o) = (gate(0), gate(1), gate(2), gate(3));
                let tanh_c = record.tanh_c[j][l];
                let h = self.h[j][l];
                let c = self.c[j][l] + h * o * (1.0 - tanh_c * tanh_c);
                self.gates[j][l] = c * g * i * (1.0 - i);
                self.gates[n + j][l] = c * record.c_before[j][l] * f * (1.0 - f);
                self.gates[2 * n + j][l] = c * i * (1.0 - g * g);
                self.gates[3 * n + j][l] = h * tanh_c * o * (1.0 - o);
                self.c[j][l] = c * f;
            }
        }
        add_outer(&mut sums.weight_ih, &self.gates, &record.x_hat_before);
        add_outer(&mut sums.weight_hh, &self.gates, &record.h_before);
        add_all(&mut sums.bias, &self.gates);
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

fn add_all(sums: &mut [Lane], values: &[Lane]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        accumulate(sum, 1.0, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::network::FilterNetwork;
    use crate::nn::train::adam::Parameters as _;
    use crate::nn::train::test_support::{batch, small_filter};
    use crate::nn::train::{filter, graph};
    use candle_core::Device;

    #[test]
    fn loss_and_gradient_are_those_of_candle() {
        for residual in [false, true] {
            let (weights, batch) = (small_filter(3, residual, 2), batch(3));
            let (loss, ours) = gradient(&weights, &batch);
            let (candle_loss, theirs) = graph::filter_gradient(&weights, &batch).unwrap();
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
                let network = FilterNetwork::from_weights(w, &Device::Cpu, false).unwrap();
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
}
