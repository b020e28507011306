//! A filter whose covariance covers the memory of its transition: its state is (x, h, c).
//!
//! The filters of all sessions take (h, c) as known, so that P is of x alone. This one does not: F is the
//! Jacobian of the whole step, and a measurement corrects the memory as well. Only `headwater study
//! deviations` runs it, to measure what taking the memory as known does. It is written for reading, not
//! for speed.

#![allow(non_snake_case, reason = "the letters of the literature")]

use nalgebra::{Cholesky, DMatrix, DVector};

use crate::nn::kernel::lstm::Memory;
use crate::nn::kernel::rows::Rows;
use crate::nn::weights::FilterWeights;

/// The covariance of (x, h, c), and the transition in `f64`.
#[derive(Debug, Clone)]
pub(super) struct WholeState {
    states: usize,
    width: usize,
    residual_form: bool,
    /// W_ih and W_hh beside each other: (4 · width) × (states + width).
    inner: DMatrix<f64>,
    bias: DVector<f64>,
    fc: DMatrix<f64>,
    q: f64,
    r: f64,
    P: DMatrix<f64>,
    /// What the last measurement changed of (x, h, c).
    correction: DVector<f64>,
}

fn matrix(rows: usize, columns: usize, row_major: &[f32]) -> DMatrix<f64> {
    DMatrix::from_row_iterator(rows, columns, row_major.iter().map(|&v| f64::from(v)))
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl WholeState {
    pub(super) fn new(weights: &FilterWeights) -> Self {
        let w = &weights.transition;
        let (states, width) = (weights.states(), w.width);
        let mut inner = DMatrix::zeros(4 * width, states + width);
        inner.columns_mut(0, states).copy_from(&matrix(4 * width, states, &w.weight_ih));
        inner.columns_mut(states, width).copy_from(&matrix(4 * width, width, &w.weight_hh));
        let size = states + 2 * width;
        let mut whole = Self {
            states,
            width,
            residual_form: weights.loadings.is_some(),
            inner,
            bias: (matrix(4 * width, 1, &w.bias_ih) + matrix(4 * width, 1, &w.bias_hh))
                .column(0)
                .into_owned(),
            fc: matrix(states, width, &w.fc_weight),
            q: weights.q,
            r: weights.r,
            P: DMatrix::zeros(size, size),
            correction: DVector::zeros(size),
        };
        whole.reset();
        whole
    }

    /// P₀ = I for x; an empty memory is known.
    pub(super) fn reset(&mut self) {
        self.P.fill(0.0);
        self.P.view_mut((0, 0), (self.states, self.states)).fill_with_identity();
    }

    pub(super) fn is_sound(&self) -> bool {
        self.P.diagonal().iter().all(|v| v.is_finite() && (0.0..1e9).contains(v))
    }

    /// F = ∂(x', h', c')/∂(x, h, c) at x̂ and the memory before the step.
    fn F(&self, x_hat: &[f32], memory: &Memory) -> DMatrix<f64> {
        let (p, n) = (self.states, self.width);
        let (h, c) = memory.units(n);
        let wide = |&v: &f32| f64::from(v);
        let input = DVector::from_iterator(p + n, x_hat.iter().chain(h).map(wide));
        let z = &self.inner * input + &self.bias;
        let mut F = DMatrix::zeros(p + 2 * n, p + 2 * n);
        for k in 0..n {
            let (i, f) = (sigmoid(z[k]), sigmoid(z[n + k]));
            let (g, o) = (z[2 * n + k].tanh(), sigmoid(z[3 * n + k]));
            let before = f64::from(c[k]);
            let tanh_c = (f * before + i * g).tanh();
            let gate = |row: usize| self.inner.row(row * n + k);
            // ∂c'/∂(x, h), then ∂h'/∂(x, h) by way of o and of c'.
            let dc = gate(0) * (g * i * (1.0 - i))
                + gate(1) * (before * f * (1.0 - f))
                + gate(2) * (i * (1.0 - g * g));
            let by_c = o * (1.0 - tanh_c * tanh_c);
            let dh = gate(3) * (tanh_c * o * (1.0 - o)) + &dc * by_c;
            F.view_mut((p + k, 0), (1, p + n)).copy_from(&dh);
            F[(p + k, p + n + k)] = by_c * f;
            F.view_mut((p + n + k, 0), (1, p + n)).copy_from(&dc);
            F[(p + n + k, p + n + k)] = f;
        }
        let by_memory = &self.fc * F.rows(p, n);
        F.rows_mut(0, p).copy_from(&by_memory);
        if self.residual_form {
            (0..p).for_each(|k| F[(k, k)] += 1.0);
        }
        F
    }

    /// P⁻ = F P Fᵀ + Q before the memory moves on. The memory has no noise of its own: it is a function
    /// of x, h and c.
    pub(super) fn predict(&mut self, x_hat: &[f32], memory: &Memory) {
        let F = self.F(x_hat, memory);
        self.P = &F * &self.P * F.transpose();
        (0..self.states).for_each(|k| self.P[(k, k)] += self.q);
        self.symmetrise();
    }

    /// K, what it changes, and P from the innovation. Rows 1 to P of `measurement` hold ∂h/∂x_k: h does not
    /// depend on the memory. Where a sensor is missing they and its innovation are zero.
    pub(super) fn update(&mut self, measurement: &Rows, innovation: &[f32], sensors: usize) {
        let size = self.P.nrows();
        let mut H = DMatrix::zeros(sensors, size);
        for k in 0..self.states {
            for (entry, &slope) in H.column_mut(k).iter_mut().zip(measurement.row(1 + k)) {
                *entry = f64::from(slope);
            }
        }
        let nu =
            DVector::from_iterator(sensors, innovation.iter().take(sensors).map(|&v| f64::from(v)));
        let HP = &H * &self.P;
        let S = &HP * H.transpose() + DMatrix::identity(sensors, sensors) * self.r;
        let Some(factor) = Cholesky::new(S) else {
            // Not positive definite: P is lost, which `is_sound` shows.
            self.P.fill(f64::NAN);
            return;
        };
        let K = factor.solve(&HP).transpose();
        self.correction = &K * nu;
        let left = DMatrix::identity(size, size) - &K * &H;
        self.P = &left * &self.P * left.transpose() + &K * K.transpose() * self.r;
        self.symmetrise();
    }

    /// x̂ − x of the last update.
    pub(super) fn of_state(&self) -> &[f64] {
        &self.correction.as_slice()[..self.states]
    }

    /// What the last update changed of h and c.
    pub(super) fn of_memory(&self) -> (&[f64], &[f64]) {
        self.correction.as_slice()[self.states..].split_at(self.width)
    }

    fn symmetrise(&mut self) {
        self.P = (&self.P + self.P.transpose()) * 0.5;
    }
}
