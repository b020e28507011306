//! The loss of a filter in the paper's form as one candle graph, its gain K included.
//!
//! Sessions never train this way: [`backward`](super::backward) holds the gain constant.
//! `headwater study deviations` measures what that changes. Everything that the gain depends on is
//! written out in tensors: the Jacobians F and H, the covariance, the update sensor by sensor.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_nn::ops::sigmoid;

use super::graph::mean_square;
use super::window::{Batch, clip};
use crate::nn::network::{SELU_ALPHA, SELU_LAMBDA};
use crate::nn::weights::FilterWeights;

/// f_m and h_m in training, with the numbers of their filter.
pub(super) struct Filter {
    states: usize,
    sensors: usize,
    width: usize,
    q: f64,
    r: f64,
    bound: f32,
    weight_ih: Tensor,
    weight_hh: Tensor,
    /// Both biases of the gates.
    bias_ih: Tensor,
    bias_hh: Tensor,
    fc_weight: Tensor,
    fc_bias: Tensor,
    weight_1: Tensor,
    bias_1: Tensor,
    weight_2: Tensor,
    bias_2: Tensor,
}

/// What goes from one step of a batch to the next.
struct State {
    x_hat: Tensor,
    h: Tensor,
    c: Tensor,
    /// P, windows × P × P.
    covariance: Tensor,
}

impl Filter {
    /// The variables of `weights` in training; they have no loadings.
    pub(super) fn new(weights: &FilterWeights, vb: &VarBuilder) -> Result<Self> {
        let (lstm, mlp) = (&weights.transition, &weights.measurement);
        let (p, n, d, m) = (weights.states(), lstm.width, weights.sensors(), mlp.width);
        let (f, h) = (vb.pp("transition"), vb.pp("measurement"));
        Ok(Self {
            states: p,
            sensors: d,
            width: n,
            q: weights.q,
            r: weights.r,
            bound: weights.conduct.update_clip,
            weight_ih: f.get((4 * n, p), "weight_ih_l0")?,
            weight_hh: f.get((4 * n, n), "weight_hh_l0")?,
            bias_ih: f.get(4 * n, "bias_ih_l0")?,
            bias_hh: f.get(4 * n, "bias_hh_l0")?,
            fc_weight: f.get((p, n), "fc.weight")?,
            fc_bias: f.get(p, "fc.bias")?,
            weight_1: h.get((m, p), "first.weight")?,
            bias_1: h.get(m, "first.bias")?,
            weight_2: h.get((d, m), "second.weight")?,
            bias_2: h.get(d, "second.bias")?,
        })
    }

    /// Mean r² of the windows of `batch` after their warm-up.
    pub(super) fn loss(&self, batch: &Batch) -> Result<Tensor> {
        let (windows, sensors) = (batch.windows, self.sensors);
        let zeros = |columns: usize| Tensor::zeros((windows, columns), DType::F32, &Device::Cpu);
        let mut state = State {
            x_hat: zeros(self.states)?,
            h: zeros(self.width)?,
            c: zeros(self.width)?,
            covariance: identity(self.states)?
                .broadcast_as((windows, self.states, self.states))?
                .contiguous()?,
        };
        let mut predicted = Vec::with_capacity(batch.steps);
        for row in batch.values.chunks_exact(windows * sensors) {
            let (y_hat, next) = self.step(&state, row, windows)?;
            predicted.push(y_hat);
            state = next;
        }
        mean_square(batch, &predicted)
    }

    /// ŷ and what follows from the measurements `y` of all windows.
    fn step(&self, before: &State, y: &[f32], windows: usize) -> Result<(Tensor, State)> {
        let (x, h, c, f) = self.transition(before)?;
        let noise = (identity(self.states)? * self.q)?;
        let predicted = f.matmul(&before.covariance)?.matmul(&f.transpose(1, 2)?.contiguous()?)?;
        let mut covariance = predicted.broadcast_add(&noise)?;
        let (y_hat, jacobian) = self.measurement(&x)?;
        let shape = (windows, self.sensors);
        let seen: Vec<f32> = y.iter().map(|y| f32::from(u8::from(y.is_finite()))).collect();
        let seen = Tensor::from_vec(seen, shape, &Device::Cpu)?;
        for d in 0..self.sensors {
            let row = jacobian.narrow(1, d, 1)?.contiguous()?;
            let ph = covariance.matmul(&row.transpose(1, 2)?.contiguous()?)?;
            let s = (row.matmul(&ph)? + self.r)?;
            let weight = (seen.narrow(1, d, 1)?.unsqueeze(2)? / s)?;
            let outer = ph.matmul(&ph.transpose(1, 2)?.contiguous()?)?;
            covariance = (covariance - outer.broadcast_mul(&weight)?)?;
        }
        // K = P Hᵀ R⁻¹; a missing sensor has no column in it.
        let gain = (covariance.matmul(&jacobian.transpose(1, 2)?.contiguous()?)? / self.r)?;
        let clipped = y.iter().map(|y| if y.is_finite() { clip(*y, self.bound) } else { 0.0 });
        let clipped = Tensor::from_vec(clipped.collect(), shape, &Device::Cpu)?;
        let r = ((clipped - &y_hat)? * seen)?;
        let x_hat = (x + gain.matmul(&r.unsqueeze(2)?)?.squeeze(2)?)?;
        Ok((y_hat, State { x_hat, h, c, covariance }))
    }

    /// x = f(x̂; h, c), h', c' and F = ∂f/∂x at constant (h, c).
    fn transition(&self, before: &State) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
        let State { x_hat, h, c, .. } = before;
        let gates = affine(x_hat, &self.weight_ih, &self.bias_ih)?;
        let gates = (gates + affine(h, &self.weight_hh, &self.bias_hh)?)?;
        let n = self.width;
        let gate = |k: usize| gates.narrow(1, k * n, n)?.contiguous();
        let (i, f, o) = (sigmoid(&gate(0)?)?, sigmoid(&gate(1)?)?, sigmoid(&gate(3)?)?);
        let g = gate(2)?.tanh()?;
        let c_next = ((&f * c)? + (&i * &g)?)?;
        let tanh_c = c_next.tanh()?;
        let h_next = (&o * &tanh_c)?;
        let x = affine(&h_next, &self.fc_weight, &self.fc_bias)?;
        let dc = (&o * one_minus(&tanh_c.sqr()?)?)?;
        let slopes = [
            ((&dc * &g)? * (&i * one_minus(&i)?)?)?,
            ((&dc * c)? * (&f * one_minus(&f)?)?)?,
            ((&dc * &i)? * one_minus(&g.sqr()?)?)?,
            (&tanh_c * (&o * one_minus(&o)?)?)?,
        ];
        let mut dh: Option<Tensor> = None;
        for (k, slope) in slopes.iter().enumerate() {
            let weight = self.weight_ih.narrow(0, k * n, n)?.unsqueeze(0)?;
            let part = slope.unsqueeze(2)?.broadcast_mul(&weight)?;
            dh = Some(match dh {
                Some(sum) => (sum + part)?,
                None => part,
            });
        }
        let dh = dh.expect("an LSTM has four gates");
        let jacobian = self.fc_weight.unsqueeze(0)?.broadcast_matmul(&dh)?;
        Ok((x, h_next, c_next, jacobian))
    }

    /// ŷ = h(x) and H = ∂h/∂x.
    fn measurement(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let inner = affine(x, &self.weight_1, &self.bias_1)?;
        let hidden = (inner.elu(SELU_ALPHA)? * SELU_LAMBDA)?;
        let y_hat = affine(&hidden, &self.weight_2, &self.bias_2)?;
        // λ where the unit is positive, λ α eᵛ elsewhere.
        let positive = inner.gt(0.0)?.to_dtype(DType::F32)?;
        let below = (inner.minimum(0.0)?.exp()? * (SELU_LAMBDA * SELU_ALPHA))?;
        let slope = ((below * one_minus(&positive)?)? + (positive * SELU_LAMBDA)?)?;
        let inner_jacobian = slope.unsqueeze(2)?.broadcast_mul(&self.weight_1.unsqueeze(0)?)?;
        Ok((y_hat, self.weight_2.unsqueeze(0)?.broadcast_matmul(&inner_jacobian)?))
    }
}

fn affine(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    x.matmul(&weight.t()?)?.broadcast_add(bias)
}

fn one_minus(x: &Tensor) -> Result<Tensor> {
    x.affine(-1.0, 1.0)
}

fn identity(size: usize) -> Result<Tensor> {
    Tensor::eye(size, DType::F32, &Device::Cpu)?.unsqueeze(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::train::backward;
    use crate::nn::train::test_support::{batch, small_filter};
    use crate::nn::train::trainer::Trainer;
    use crate::nn::weights::Parameters as _;

    #[test]
    fn the_gradient_is_the_slope_of_the_loss_with_a_gain_that_follows() {
        let (weights, batch) = (small_filter(3, false, 2), batch(3));
        let trainer = Trainer::adam(weights.clone(), 1e-3).unwrap();
        let filter = Filter::new(&weights, &trainer.builder()).unwrap();
        let loss = filter.loss(&batch).unwrap();
        let through = trainer.gradient(&loss.backward().unwrap()).unwrap();
        let (expected, constant) = backward::gradient(&weights, &batch);
        let found = f64::from(loss.to_scalar::<f32>().unwrap());
        assert!((found - expected).abs() < 1e-4 * expected, "{found} {expected}");
        let mut nearer = 0;
        let mut judged = 0;
        for (k, (slice, fixed)) in through.slices().iter().zip(constant.slices()).enumerate() {
            for i in [0, slice.len() / 2, slice.len() - 1] {
                // The hand-written pass works its gain out again at the weights that it is given.
                let at = |step: f32| {
                    let mut moved = weights.clone();
                    moved.slices_mut()[k][i] += step;
                    backward::gradient(&moved, &batch).0
                };
                let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
                let (ours, other) = (f64::from(slice[i]), f64::from(fixed[i]));
                assert!((slope - ours).abs() < 5e-3, "weight {k}[{i}]: {slope} {ours}");
                judged += 1;
                nearer += usize::from((slope - ours).abs() <= (slope - other).abs());
            }
        }
        assert!(2 * nearer > judged, "{nearer} of {judged} are nearer than with a constant gain");
    }
}
