//! The filter over eight windows side by side, with its gain from the weights as they are now.
//!
//! Training back-propagates through the filter but not through its gain (through K the gradient
//! norms reach tens of thousands, and nothing is gained). So the gain needs no graph, only plain
//! numbers, and the same pass serves training and the judging of a finished filter.
//!
//! Networks and Jacobians are f32 as in candle, the covariance is f64. Windows do not touch each
//! other, so how they are split over blocks changes no bit. It must not know what a loss is.

use super::lanes::{
    LANES, Lane, WIDE_ZERO, Wide, ZERO, accumulate, accumulate_product, affine, widen,
};
use crate::nn::cell::{Cell, Plain};
use crate::nn::kernel::isa::Isa;
use crate::nn::network::{SELU_ALPHA, SELU_LAMBDA};
use crate::nn::weights::{Conduct, FilterWeights, Mlp};

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// [`LANES`] filters with the same weights, each at its own point of its own window.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    weights: &'a FilterWeights,
    pub(super) isa: Isa,
    /// x̂, P.
    x_hat: Vec<Lane>,
    /// LSTM memory: deterministic side state, not part of the filter's state.
    h: Vec<Lane>,
    c: Vec<Lane>,
    /// dh'/dx at constant (h, c), width × P.
    dh: Vec<Lane>,
    /// P, P × P, symmetric.
    covariance: Vec<Wide>,
    f: Vec<Wide>,
    fp: Vec<Wide>,
    h_jacobian: Vec<Wide>,
    ph: Vec<Wide>,
}

/// One step of a [`Block`]: its result, and what the way back needs.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// x̂, h and c before the step.
    pub(crate) x_hat_before: Vec<Lane>,
    pub(crate) h_before: Vec<Lane>,
    pub(crate) c_before: Vec<Lane>,
    /// i, f, g, o, 4·width.
    pub(crate) gates: Vec<Lane>,
    pub(crate) h: Vec<Lane>,
    pub(crate) tanh_c: Vec<Lane>,
    /// x, P.
    pub(crate) x: Vec<Lane>,
    /// Hidden layer of `h_m`, and the derivative of SELU there.
    pub(crate) hidden: Vec<Lane>,
    pub(crate) slope: Vec<Lane>,
    /// ŷ, D.
    pub(crate) predicted: Vec<Lane>,
    /// K, P × D; zero in the column of a missing sensor.
    pub(crate) gain: Vec<Lane>,
}

impl Trace {
    pub(crate) fn new(weights: &FilterWeights) -> Self {
        let (p, d) = (weights.states(), weights.sensors());
        let (n, m) = (weights.transition.width, weights.measurement.width);
        let lanes = |count: usize| vec![ZERO; count];
        Self {
            x_hat_before: lanes(p),
            h_before: lanes(n),
            c_before: lanes(n),
            gates: lanes(4 * n),
            h: lanes(n),
            tanh_c: lanes(n),
            x: lanes(p),
            hidden: lanes(m),
            slope: lanes(m),
            predicted: lanes(d),
            gain: lanes(p * d),
        }
    }
}

impl<'a> Block<'a> {
    /// Filters at the start of a window: x̂ = 0, P = I, empty memory.
    pub(crate) fn new(weights: &'a FilterWeights) -> Self {
        let (p, d, n) = (weights.states(), weights.sensors(), weights.transition.width);
        let mut block = Self {
            weights,
            isa: Isa::detect(),
            x_hat: vec![ZERO; p],
            h: vec![ZERO; n],
            c: vec![ZERO; n],
            dh: vec![ZERO; n * p],
            covariance: vec![WIDE_ZERO; p * p],
            f: vec![WIDE_ZERO; p * p],
            fp: vec![WIDE_ZERO; p * p],
            h_jacobian: vec![WIDE_ZERO; d * p],
            ph: vec![WIDE_ZERO; p],
        };
        block.restart();
        block
    }

    /// Back to the start of a window.
    pub(crate) fn restart(&mut self) {
        let p = self.x_hat.len();
        self.x_hat.fill(ZERO);
        self.h.fill(ZERO);
        self.c.fill(ZERO);
        self.covariance.fill(WIDE_ZERO);
        for i in 0..p {
            self.covariance[i * p + i] = [1.0; LANES];
        }
    }

    /// Predict, linearise and update with `y` (D), where NaN is a missing measurement.
    pub(crate) fn step(&mut self, y: &[Lane], t: &mut Trace) {
        self.isa.vectorise(
            #[inline(always)]
            || self.step_inlined(y, t),
        );
    }

    #[inline(always)]
    fn step_inlined(&mut self, y: &[Lane], t: &mut Trace) {
        t.x_hat_before.copy_from_slice(&self.x_hat);
        t.h_before.copy_from_slice(&self.h);
        t.c_before.copy_from_slice(&self.c);
        self.transition(t);
        t.h.copy_from_slice(&self.h);
        self.predict_covariance();
        self.measurement(t);
        self.update(y, t);
        if !self.conduct().has_memory {
            self.h.fill(ZERO);
            self.c.fill(ZERO);
        }
    }

    pub(crate) fn conduct(&self) -> Conduct {
        self.weights.conduct
    }

    /// x = f(x̂; h, c) and F = df/dx at constant memory.
    #[inline(always)]
    fn transition(&mut self, t: &mut Trace) {
        let w = &self.weights.transition;
        let (p, n) = (w.inputs, w.width);
        affine(&w.weight_ih, &w.bias_ih, &self.x_hat, &mut t.gates);
        let recurrent = w.weight_hh.chunks_exact(n).zip(&w.bias_hh);
        for (gate, (row, &bias)) in t.gates.iter_mut().zip(recurrent) {
            let mut sum = [bias; LANES];
            for (&weight, h) in row.iter().zip(&self.h) {
                accumulate(&mut sum, weight, h);
            }
            accumulate(gate, 1.0, &sum);
        }
        for j in 0..n {
            let scale = self.cell(j, t);
            for k in 0..p {
                let mut sum = ZERO;
                for (gate, scale) in scale.iter().enumerate() {
                    accumulate(&mut sum, w.weight_ih[(gate * n + j) * p + k], scale);
                }
                self.dh[j * p + k] = sum;
            }
        }
        let residual = self.weights.loadings.is_some();
        for i in 0..p {
            let row = &w.fc_weight[i * n..(i + 1) * n];
            for k in 0..p {
                let mut sum = [if residual && i == k { 1.0 } else { 0.0 }; LANES];
                for (j, &weight) in row.iter().enumerate() {
                    accumulate(&mut sum, weight, &self.dh[j * p + k]);
                }
                self.f[i * p + k] = widen(&sum);
            }
            let mut sum = [w.fc_bias[i]; LANES];
            for (&weight, h) in row.iter().zip(&self.h) {
                accumulate(&mut sum, weight, h);
            }
            if residual {
                accumulate(&mut sum, 1.0, &self.x_hat[i]);
            }
            t.x[i] = sum;
        }
    }

    /// Activates the gates of unit `j`, moves its memory on, and gives dh'/dz of each gate.
    #[inline(always)]
    fn cell(&mut self, j: usize, t: &mut Trace) -> [Lane; 4] {
        let n = self.h.len();
        let mut slopes = [ZERO; 4];
        for l in 0..LANES {
            let (i, f) = (sigmoid(t.gates[j][l]), sigmoid(t.gates[n + j][l]));
            let (g, o) = (t.gates[2 * n + j][l].tanh(), sigmoid(t.gates[3 * n + j][l]));
            let before = self.c[j][l];
            let c = Cell::memory(Plain, [i, f, g, o], before);
            let (cell, h) = Cell::forward(Plain, [i, f, g, o], c.tanh());
            for (gate, value) in [i, f, g, o].into_iter().enumerate() {
                t.gates[gate * n + j][l] = value;
            }
            self.c[j][l] = c;
            t.tanh_c[j][l] = cell.tanh_c;
            self.h[j][l] = h;
            let (dz, _) = cell.back(Plain, before, 1.0, 0.0);
            slopes.iter_mut().zip(dz).for_each(|(slope, dz)| slope[l] = dz);
        }
        slopes
    }

    /// P⁻ = F P Fᵀ + Q; only one triangle is computed, so it is symmetric to the last bit.
    #[inline(always)]
    fn predict_covariance(&mut self) {
        let p = self.x_hat.len();
        for i in 0..p {
            for j in 0..p {
                let mut sum = WIDE_ZERO;
                for k in 0..p {
                    let (f, c) = (&self.f[i * p + k], &self.covariance[k * p + j]);
                    accumulate_product(&mut sum, f, c);
                }
                self.fp[i * p + j] = sum;
            }
        }
        for i in 0..p {
            for j in i..p {
                let mut sum = [if i == j { self.weights.q } else { 0.0 }; LANES];
                for k in 0..p {
                    accumulate_product(&mut sum, &self.fp[i * p + k], &self.f[j * p + k]);
                }
                self.covariance[i * p + j] = sum;
                self.covariance[j * p + i] = sum;
            }
        }
    }

    /// ŷ = h(x) and H = dh/dx.
    #[inline(always)]
    fn measurement(&mut self, t: &mut Trace) {
        let w = &self.weights.measurement;
        let (p, m) = (w.inputs, w.width);
        affine(&w.weight_1, &w.bias_1, &t.x, &mut t.hidden);
        for (hidden, slope) in t.hidden.iter_mut().zip(&mut t.slope) {
            for (v, s) in hidden.iter_mut().zip(slope) {
                (*v, *s) = selu(*v);
            }
        }
        affine(&w.weight_2, &w.bias_2, &t.hidden, &mut t.predicted);
        let earlier = (!self.conduct().jacobian_at_prediction).then(|| slopes(w, &t.x_hat_before));
        let slope = earlier.as_deref().unwrap_or(&t.slope);
        for (d, row) in w.weight_2.chunks_exact(m).enumerate() {
            for k in 0..p {
                let mut sum = ZERO;
                for (j, &weight) in row.iter().enumerate() {
                    accumulate(&mut sum, weight * w.weight_1[j * p + k], &slope[j]);
                }
                self.h_jacobian[d * p + k] = widen(&sum);
            }
        }
        let Some(loadings) = &self.weights.loadings else { return };
        for (d, row) in loadings.chunks_exact(p).enumerate() {
            for (k, &c) in row.iter().enumerate() {
                accumulate(&mut t.predicted[d], c, &t.x[k]);
                for v in &mut self.h_jacobian[d * p + k] {
                    *v += f64::from(c);
                }
            }
        }
    }

    /// P, K and x̂. R is diagonal, so the sensors update P one after the other and nothing is
    /// inverted; K = P Hᵀ R⁻¹ with the P after all of them.
    #[inline(always)]
    fn update(&mut self, y: &[Lane], t: &mut Trace) {
        let (p, d, r) = (t.x.len(), y.len(), self.weights.r);
        for (row, y) in self.h_jacobian.chunks_exact(p).zip(y) {
            let mut s = [r; LANES];
            for i in 0..p {
                let mut sum = WIDE_ZERO;
                for (covariance, h) in self.covariance[i * p..].iter().zip(row) {
                    accumulate_product(&mut sum, covariance, h);
                }
                self.ph[i] = sum;
                accumulate_product(&mut s, &sum, &row[i]);
            }
            let mut inverse = WIDE_ZERO;
            for l in 0..LANES {
                inverse[l] = if y[l].is_finite() { -1.0 / s[l] } else { 0.0 };
            }
            for i in 0..p {
                let mut scaled = self.ph[i];
                scaled.iter_mut().zip(&inverse).for_each(|(v, i)| *v *= i);
                for k in i..p {
                    accumulate_product(&mut self.covariance[i * p + k], &scaled, &self.ph[k]);
                    self.covariance[k * p + i] = self.covariance[i * p + k];
                }
            }
        }
        for i in 0..p {
            let mut sum_x = t.x[i];
            for (j, (y, predicted)) in y.iter().zip(&t.predicted).enumerate() {
                let mut sum = WIDE_ZERO;
                for k in 0..p {
                    let (c, h) = (&self.covariance[i * p + k], &self.h_jacobian[j * p + k]);
                    accumulate_product(&mut sum, c, h);
                }
                let gain = &mut t.gain[i * d + j];
                for l in 0..LANES {
                    let seen = y[l].is_finite();
                    gain[l] = if seen { (sum[l] / r) as f32 } else { 0.0 };
                    sum_x[l] += if seen { gain[l] * (y[l] - predicted[l]) } else { 0.0 };
                }
            }
            self.x_hat[i] = sum_x;
        }
    }
}

/// The derivatives of SELU in the hidden layer at `x`.
#[inline(always)]
fn slopes(w: &Mlp, x: &[Lane]) -> Vec<Lane> {
    let mut hidden = vec![ZERO; w.width];
    affine(&w.weight_1, &w.bias_1, x, &mut hidden);
    hidden.iter().map(|lane| lane.map(|v| selu(v).1)).collect()
}

#[inline(always)]
fn selu(v: f32) -> (f32, f32) {
    let (lambda, alpha) = (SELU_LAMBDA as f32, SELU_ALPHA as f32);
    if v > 0.0 {
        (lambda * v, lambda)
    } else {
        let e = lambda * alpha * v.exp();
        (e - lambda * alpha, e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::network::FilterNetwork;
    use crate::nn::train::test_support::{plant, small_filter};
    use candle_core::{Device, Tensor};
    use nalgebra::{DMatrix, DVector};

    /// The textbook filter: Jacobians by central differences of candle's networks, a matrix
    /// inverse, Joseph form.
    fn textbook(weights: &FilterWeights, rows: &ndarray::Array2<f32>) -> (Vec<DMatrix<f64>>, f64) {
        let (p, d) = (weights.states(), weights.sensors());
        let network = FilterNetwork::running(weights).unwrap();
        let mut memory = network.zero_state(1).unwrap();
        let tensor = |x: &DVector<f64>| {
            let x: Vec<f32> = x.iter().map(|v| *v as f32).collect();
            Tensor::from_vec(x, (1, p), &Device::Cpu).unwrap()
        };
        let vector = |t: Tensor| {
            let t = t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            DVector::from_iterator(t.len(), t.into_iter().map(f64::from))
        };
        let jacobian =
            |at: &DVector<f64>, outputs, function: &dyn Fn(&DVector<f64>) -> DVector<f64>| {
                let mut j = DMatrix::zeros(outputs, p);
                for k in 0..p {
                    let (mut up, mut down) = (at.clone(), at.clone());
                    up[k] += 1e-2;
                    down[k] -= 1e-2;
                    j.set_column(k, &((function(&up) - function(&down)) / 2e-2));
                }
                j
            };
        let mut x_hat = DVector::zeros(p);
        let mut covariance = DMatrix::identity(p, p);
        let mut gains = Vec::new();
        let mut predicted = DVector::zeros(d);
        for row in rows.outer_iter() {
            let f = |x: &DVector<f64>| vector(network.transition(&tensor(x), &memory).unwrap().0);
            let h = |x: &DVector<f64>| vector(network.measurement(&tensor(x)).unwrap());
            let jf = jacobian(&x_hat, p, &f);
            let x = f(&x_hat);
            let next = network.transition(&tensor(&x_hat), &memory).unwrap().1;
            let jh = jacobian(&x, d, &h);
            predicted = h(&x);
            memory = next;
            let before = &jf * &covariance * jf.transpose() + DMatrix::identity(p, p) * weights.q;
            let noise = DMatrix::identity(d, d) * weights.r;
            let s = &jh * &before * jh.transpose() + &noise;
            let k = &before * jh.transpose() * s.try_inverse().unwrap();
            let y = DVector::from_iterator(d, row.iter().map(|v| f64::from(*v)));
            x_hat = &x + &k * (y - &predicted);
            let left = DMatrix::identity(p, p) - &k * &jh;
            covariance = &left * before * left.transpose() + &k * noise * k.transpose();
            gains.push(k);
        }
        (gains, predicted[0])
    }

    #[test]
    fn the_gain_is_that_of_a_textbook_filter_on_the_networks_of_candle() {
        for residual in [false, true] {
            let weights = small_filter(3, residual, 5);
            let rows = plant(30, 3, 8);
            let (gains, last) = textbook(&weights, &rows);
            let (mut block, mut trace) = (Block::new(&weights), Trace::new(&weights));
            for (row, gain) in rows.outer_iter().zip(&gains) {
                block.step(&row.iter().map(|v| [*v; LANES]).collect::<Vec<_>>(), &mut trace);
                for i in 0..weights.states() {
                    for j in 0..3 {
                        let (ours, theirs) = (f64::from(trace.gain[i * 3 + j][4]), gain[(i, j)]);
                        assert!((ours - theirs).abs() < 1e-3, "K[{i},{j}] {ours} {theirs}");
                    }
                }
            }
            assert!((f64::from(trace.predicted[0][4]) - last).abs() < 1e-3);
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let (weights, rows) = (small_filter(3, true, 5), plant(30, 3, 8));
        let runs = Isa::available().map(|isa| {
            let (mut block, mut trace) = (Block::new(&weights), Trace::new(&weights));
            block.isa = isa;
            let gain = |row: ndarray::ArrayView1<f32>| {
                block.step(&row.iter().map(|v| [*v; LANES]).collect::<Vec<_>>(), &mut trace);
                trace.gain.clone()
            };
            rows.outer_iter().map(gain).collect()
        });
        let runs: Vec<Vec<Vec<Lane>>> = runs.collect();
        assert!(runs.iter().all(|run| *run == runs[0]));
    }

    #[test]
    fn without_a_measurement_the_state_is_the_prediction() {
        let weights = small_filter(3, true, 5);
        let (mut block, mut trace) = (Block::new(&weights), Trace::new(&weights));
        block.step(&[[0.3; LANES]; 3], &mut trace);
        block.step(&[[f32::NAN; LANES]; 3], &mut trace);
        assert_eq!(block.x_hat, trace.x);
        assert!(trace.gain.iter().flatten().all(|k| *k == 0.0));
    }
}
