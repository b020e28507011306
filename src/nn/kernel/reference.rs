//! The networks as their equations, in `f64` and one unit at a time: what the kernels are tested
//! against.

use nalgebra::{DMatrix, DVector};

use crate::nn::ekf::Model;
use crate::nn::weights::{FilterWeights, LstmFc, Mlp};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn matrix(rows: usize, columns: usize, row_major: &[f32]) -> DMatrix<f64> {
    DMatrix::from_row_iterator(rows, columns, row_major.iter().map(|&v| f64::from(v)))
}

fn vector(values: &[f32]) -> DVector<f64> {
    matrix(values.len(), 1, values).column(0).into_owned()
}

/// (h, c).
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) h: DVector<f64>,
    pub(crate) c: DVector<f64>,
}

impl State {
    pub(crate) fn zero(width: usize) -> Self {
        Self { h: DVector::zeros(width), c: DVector::zeros(width) }
    }
}

/// The output and the next state.
pub(crate) fn lstm(w: &LstmFc, state: &State, x: &DVector<f64>) -> (DVector<f64>, State) {
    let n = w.width;
    let z = matrix(4 * n, w.inputs, &w.weight_ih) * x
        + matrix(4 * n, n, &w.weight_hh) * &state.h
        + vector(&w.bias_ih)
        + vector(&w.bias_hh);
    let c = DVector::from_fn(n, |k, _| {
        sigmoid(z[n + k]) * state.c[k] + sigmoid(z[k]) * z[2 * n + k].tanh()
    });
    let h = DVector::from_fn(n, |k, _| sigmoid(z[3 * n + k]) * c[k].tanh());
    let out = matrix(w.outputs, n, &w.fc_weight) * &h + vector(&w.fc_bias);
    (out, State { h, c })
}

pub(crate) fn mlp(w: &Mlp, x: &DVector<f64>) -> DVector<f64> {
    let z = matrix(w.width, w.inputs, &w.weight_1) * x + vector(&w.bias_1);
    let hidden = z.map(|z| {
        let (lambda, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
        if z > 0.0 { lambda * z } else { lambda * alpha * z.exp_m1() }
    });
    matrix(w.outputs, w.width, &w.weight_2) * hidden + vector(&w.bias_2)
}

/// Central differences.
pub(crate) fn jacobian(
    f: impl Fn(&DVector<f64>) -> DVector<f64>,
    x: &DVector<f64>,
) -> DMatrix<f64> {
    let step = 1e-5;
    let columns: Vec<_> = (0..x.len())
        .map(|k| {
            let (mut up, mut down) = (x.clone(), x.clone());
            up[k] += step;
            down[k] -= step;
            (f(&up) - f(&down)) / (2.0 * step)
        })
        .collect();
    DMatrix::from_columns(&columns)
}

/// The filter's two functions as a model of the textbook filter, with the memory beside the state.
#[derive(Clone)]
pub(crate) struct Networks {
    pub(crate) weights: FilterWeights,
    pub(crate) memory: State,
}

impl Networks {
    pub(crate) fn new(weights: &FilterWeights) -> Self {
        Self { weights: weights.clone(), memory: State::zero(weights.transition.width) }
    }
}

impl Model for Networks {
    fn f(&self, x: &DVector<f64>) -> DVector<f64> {
        let (out, _) = lstm(&self.weights.transition, &self.memory, x);
        if self.weights.loadings.is_some() { x + out } else { out }
    }

    fn F(&self, x: &DVector<f64>) -> DMatrix<f64> {
        jacobian(|x| self.f(x), x)
    }

    fn h(&self, x: &DVector<f64>) -> DVector<f64> {
        let out = mlp(&self.weights.measurement, x);
        match &self.weights.loadings {
            Some(c) => matrix(self.weights.sensors(), self.weights.states(), c) * x + out,
            None => out,
        }
    }

    fn H(&self, x: &DVector<f64>) -> DMatrix<f64> {
        jacobian(|x| self.h(x), x)
    }

    fn advance(&mut self, x: &DVector<f64>) {
        self.memory = lstm(&self.weights.transition, &self.memory, x).1;
    }
}

/// The same with the memory in the state (x, h, c): a whole step is a function of it.
#[derive(Clone)]
pub(crate) struct WholeNetworks(pub(crate) FilterWeights);

impl WholeNetworks {
    /// x of a whole state, and its memory.
    fn split(&self, s: &DVector<f64>) -> (DVector<f64>, State) {
        let (p, n) = (self.0.states(), self.0.transition.width);
        let part = |from, count| s.rows(from, count).into_owned();
        (part(0, p), State { h: part(p, n), c: part(p + n, n) })
    }
}

impl Model for WholeNetworks {
    fn f(&self, s: &DVector<f64>) -> DVector<f64> {
        let (x, memory) = self.split(s);
        let (out, State { h, c }) = lstm(&self.0.transition, &memory, &x);
        let next = if self.0.loadings.is_some() { x + out } else { out };
        let all: Vec<f64> = next.iter().chain(h.iter()).chain(c.iter()).copied().collect();
        DVector::from_vec(all)
    }

    fn F(&self, s: &DVector<f64>) -> DMatrix<f64> {
        jacobian(|s| self.f(s), s)
    }

    fn h(&self, s: &DVector<f64>) -> DVector<f64> {
        Networks::new(&self.0).h(&self.split(s).0)
    }

    fn H(&self, s: &DVector<f64>) -> DMatrix<f64> {
        jacobian(|s| self.h(s), s)
    }
}
