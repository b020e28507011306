//! The filter over eight windows side by side, with its gain from the weights as they are now.
//!
//! Training back-propagates through the filter but not through its gain (through K the gradient
//! norms reach tens of thousands, and nothing is gained). So the gain needs no graph, only plain
//! numbers, and the same pass serves training and the judging of a finished filter.
//!
//! Networks and Jacobians are f32 as in candle, the covariance is f64. Windows do not touch each
//! other, so how they are split over blocks changes no bit. It must not know what a loss is.

use super::lanes::{
    LANES, Lane, WIDE_ZERO, Wide, ZERO, accumulate, accumulate_wide, affine, widen,
};
use crate::nn::network::{SELU_ALPHA, SELU_LAMBDA};
use crate::nn::weights::FilterWeights;

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// [`LANES`] filters with the same weights, each at its own point of its own window.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    weights: &'a FilterWeights,
    /// x̂, P.
    pub(crate) x_hat: Vec<Lane>,
    /// LSTM memory: deterministic side state, not part of the filter's state.
    pub(crate) h: Vec<Lane>,
    /// The cell state beside `h`.
    pub(crate) c: Vec<Lane>,
    /// i, f, g, o of the last step, 4·width.
    pub(crate) gates: Vec<Lane>,
    /// tanh c of the last step.
    pub(crate) tanh_c: Vec<Lane>,
    /// x of the last step, P.
    pub(crate) x: Vec<Lane>,
    /// Hidden layer of `h_m` at the last step.
    pub(crate) hidden: Vec<Lane>,
    /// Derivative of SELU there.
    pub(crate) slope: Vec<Lane>,
    /// dh'/dx at constant (h, c), width × P.
    dh: Vec<Lane>,
    /// P, P × P, symmetric.
    covariance: Vec<Wide>,
    f: Vec<Wide>,
    fp: Vec<Wide>,
    h_jacobian: Vec<Wide>,
    ph: Vec<Wide>,
    /// ŷ of the last step, D.
    pub(crate) predicted: Vec<Lane>,
    /// K of the last step, P × D; zero in the column of a missing sensor.
    pub(crate) gain: Vec<Lane>,
}

impl<'a> Block<'a> {
    /// Filters at the start of a window: x̂ = 0, P = I, empty memory.
    pub(crate) fn new(weights: &'a FilterWeights) -> Self {
        let (p, d) = (weights.states(), weights.sensors());
        let (n, m) = (weights.transition.width, weights.measurement.width);
        let mut block = Self {
            weights,
            x_hat: vec![ZERO; p],
            h: vec![ZERO; n],
            c: vec![ZERO; n],
            gates: vec![ZERO; 4 * n],
            tanh_c: vec![ZERO; n],
            x: vec![ZERO; p],
            hidden: vec![ZERO; m],
            slope: vec![ZERO; m],
            dh: vec![ZERO; n * p],
            covariance: vec![WIDE_ZERO; p * p],
            f: vec![WIDE_ZERO; p * p],
            fp: vec![WIDE_ZERO; p * p],
            h_jacobian: vec![WIDE_ZERO; d * p],
            ph: vec![WIDE_ZERO; p],
            predicted: vec![ZERO; d],
            gain: vec![ZERO; p * d],
        };
        block.restart();
        block
    }

    /// Back to the start of a window.
    pub(crate) fn restart(&mut self) {
        let p = self.x.len();
        self.x_hat.fill(ZERO);
        self.h.fill(ZERO);
        self.c.fill(ZERO);
        self.covariance.fill(WIDE_ZERO);
        for i in 0..p {
            self.covariance[i * p + i] = [1.0; LANES];
        }
    }

    /// Predict, linearise and update with `y` (D), where NaN is a missing measurement.
    pub(crate) fn step(&mut self, y: &[Lane]) {
        self.transition();
        self.predict_covariance();
        self.measurement();
        self.update(y);
    }

    /// x = f(x̂; h, c) and F = df/dx at constant memory.
    fn transition(&mut self) {
        let w = &self.weights.transition;
        let (p, n) = (w.inputs, w.width);
        affine(&w.weight_ih, &w.bias_ih, &self.x_hat, &mut self.gates);
        let recurrent = w.weight_hh.chunks_exact(n).zip(&w.bias_hh);
        for (gate, (row, &bias)) in self.gates.iter_mut().zip(recurrent) {
            let mut sum = [bias; LANES];
            for (&weight, h) in row.iter().zip(&self.h) {
                accumulate(&mut sum, weight, h);
            }
            accumulate(gate, 1.0, &sum);
        }
        for j in 0..n {
            let scale = self.cell(j);
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
            self.x[i] = sum;
        }
    }

    /// Activates the gates of unit `j`, moves its memory on, and gives dh'/dz of each gate.
    fn cell(&mut self, j: usize) -> [Lane; 4] {
        let n = self.h.len();
        let [mut di, mut df, mut dg, mut d_o] = [ZERO; 4];
        for l in 0..LANES {
            let (i, f) = (sigmoid(self.gates[j][l]), sigmoid(self.gates[n + j][l]));
            let (g, o) = (self.gates[2 * n + j][l].tanh(), sigmoid(self.gates[3 * n + j][l]));
            let before = self.c[j][l];
            let c = f * before + i * g;
            let tanh_c = c.tanh();
            for (gate, value) in [i, f, g, o].into_iter().enumerate() {
                self.gates[gate * n + j][l] = value;
            }
            self.c[j][l] = c;
            self.tanh_c[j][l] = tanh_c;
            self.h[j][l] = o * tanh_c;
            let through_c = o * (1.0 - tanh_c * tanh_c);
            di[l] = through_c * g * i * (1.0 - i);
            df[l] = through_c * before * f * (1.0 - f);
            dg[l] = through_c * i * (1.0 - g * g);
            d_o[l] = tanh_c * o * (1.0 - o);
        }
        [di, df, dg, d_o]
    }

    /// P⁻ = F P Fᵀ + Q; only one triangle is computed, so it is symmetric to the last bit.
    fn predict_covariance(&mut self) {
        let p = self.x.len();
        for i in 0..p {
            for j in 0..p {
                let mut sum = WIDE_ZERO;
                for k in 0..p {
                    let (f, c) = (&self.f[i * p + k], &self.covariance[k * p + j]);
                    accumulate_wide(&mut sum, f, c);
                }
                self.fp[i * p + j] = sum;
            }
        }
        for i in 0..p {
            for j in i..p {
                let mut sum = [if i == j { self.weights.q } else { 0.0 }; LANES];
                for k in 0..p {
                    accumulate_wide(&mut sum, &self.fp[i * p + k], &self.f[j * p + k]);
                }
                self.covariance[i * p + j] = sum;
                self.covariance[j * p + i] = sum;
            }
        }
    }

    /// ŷ = h(x) and H = dh/dx.
    fn measurement(&mut self) {
        let w = &self.weights.measurement;
        let (p, m) = (w.inputs, w.width);
        affine(&w.weight_1, &w.bias_1, &self.x, &mut self.hidden);
        for (hidden, slope) in self.hidden.iter_mut().zip(&mut self.slope) {
            for (v, s) in hidden.iter_mut().zip(slope) {
                (*v, *s) = selu(*v);
            }
        }
        affine(&w.weight_2, &w.bias_2, &self.hidden, &mut self.predicted);
        for (d, row) in w.weight_2.chunks_exact(m).enumerate() {
            for k in 0..p {
                let mut sum = ZERO;
                for (j, &weight) in row.iter().enumerate() {
                    accumulate(&mut sum, weight * w.weight_1[j * p + k], &self.slope[j]);
                }
                self.h_jacobian[d * p + k] = widen(&sum);
            }
        }
        let Some(loadings) = &self.weights.loadings else { return };
        for (d, row) in loadings.chunks_exact(p).enumerate() {
            for (k, &c) in row.iter().enumerate() {
                accumulate(&mut self.predicted[d], c, &self.x[k]);
                for v in &mut self.h_jacobian[d * p + k] {
                    *v += f64::from(c);
                }
            }
        }
    }

    /// P, K and x̂. R is diagonal, so the sensors update P one after the other and nothing is
    /// inverted; K = P Hᵀ R⁻¹ with the P after all of them.
    fn update(&mut self, y: &[Lane]) {
        let (p, d, r) = (self.x.len(), y.len(), self.weights.r);
        for (row, y) in self.h_jacobian.chunks_exact(p).zip(y) {
            let mut s = [r; LANES];
            for i in 0..p {
                let mut sum = WIDE_ZERO;
                for (covariance, h) in self.covariance[i * p..].iter().zip(row) {
                    accumulate_wide(&mut sum, covariance, h);
                }
                self.ph[i] = sum;
                accumulate_wide(&mut s, &sum, &row[i]);
            }
            let mut inverse = WIDE_ZERO;
            for l in 0..LANES {
                inverse[l] = if y[l].is_finite() { -1.0 / s[l] } else { 0.0 };
            }
            for i in 0..p {
                let mut scaled = self.ph[i];
                scaled.iter_mut().zip(&inverse).for_each(|(v, i)| *v *= i);
                for k in i..p {
                    accumulate_wide(&mut self.covariance[i * p + k], &scaled, &self.ph[k]);
                    self.covariance[k * p + i] = self.covariance[i * p + k];
                }
            }
        }
        for i in 0..p {
            let mut sum_x = self.x[i];
            for (j, (y, predicted)) in y.iter().zip(&self.predicted).enumerate() {
                let mut sum = WIDE_ZERO;
                for k in 0..p {
                    let (c, h) = (&self.covariance[i * p + k], &self.h_jacobian[j * p + k]);
                    accumulate_wide(&mut sum, c, h);
                }
                let gain = &mut self.gain[i * d + j];
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
        let network = FilterNetwork::from_weights(weights, &Device::Cpu, false).unwrap();
        let cell = network.unroll().unwrap();
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
            let f = |x: &DVector<f64>| {
                vector(network.transition(&cell, &tensor(x), &memory).unwrap().0)
            };
            let h = |x: &DVector<f64>| vector(network.measurement(&tensor(x)).unwrap());
            let jf = jacobian(&x_hat, p, &f);
            let x = f(&x_hat);
            let next = network.transition(&cell, &tensor(&x_hat), &memory).unwrap().1;
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
            let mut block = Block::new(&weights);
            for (row, gain) in rows.outer_iter().zip(&gains) {
                block.step(&row.iter().map(|v| [*v; LANES]).collect::<Vec<_>>());
                for i in 0..weights.states() {
                    for j in 0..3 {
                        let (ours, theirs) = (f64::from(block.gain[i * 3 + j][4]), gain[(i, j)]);
                        assert!((ours - theirs).abs() < 1e-3, "K[{i},{j}] {ours} {theirs}");
                    }
                }
            }
            assert!((f64::from(block.predicted[0][4]) - last).abs() < 1e-3);
        }
    }

    #[test]
    fn without_a_measurement_the_state_is_the_prediction() {
        let weights = small_filter(3, true, 5);
        let mut block = Block::new(&weights);
        block.step(&[[0.3; LANES]; 3]);
        block.step(&[[f32::NAN; LANES]; 3]);
        assert_eq!(block.x_hat, block.x);
        assert!(block.gain.iter().flatten().all(|k| *k == 0.0));
    }
}
