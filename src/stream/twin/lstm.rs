//! A long short-term memory and a linear layer in `f64`, as small as the generator needs them.
//!
//! Gate order is i, f, g, o; fresh weights follow the customary uniform ±1/√n. They must not know
//! what is predicted with them.

use rand_distr::{Distribution as _, Uniform};

use super::activation::{sigmoid, tanh};
use crate::base::rng::Rng;

/// `n` draws of U(−bound, bound).
fn uniform(n: usize, bound: f64, rng: &mut Rng) -> Vec<f64> {
    let range = Uniform::new(-bound, bound).expect("a bound of 1/√n is positive and finite");
    range.sample_iter(rng).take(n).collect()
}

/// One layer of LSTM cells.
///
/// Weights stand by column, one column of 4·`hidden` gate pre-activations for every input, then
/// for every hidden unit, then the bias. [`Packed`](super::packed::Packed) runs them.
#[derive(Debug, Clone)]
pub(super) struct Lstm {
    pub(super) inputs: usize,
    pub(super) hidden: usize,
    pub(super) weights: Vec<f64>,
}

/// What a layer carries from step to step.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    pub(super) h: Vec<f64>,
    pub(super) c: Vec<f64>,
}

impl Memory {
    pub(super) fn forget(&mut self) {
        self.h.fill(0.0);
        self.c.fill(0.0);
    }
}

impl Lstm {
    /// A layer with fresh random weights. The two biases of the customary form are drawn both and
    /// kept as their sum.
    pub(super) fn random(inputs: usize, hidden: usize, rng: &mut Rng) -> Self {
        let rows = 4 * hidden;
        let bound = 1.0 / (hidden as f64).sqrt();
        let mut weights = uniform(rows * (inputs + hidden + 1), bound, rng);
        let second = uniform(rows, bound, rng);
        weights[rows * (inputs + hidden)..].iter_mut().zip(second).for_each(|(b, s)| *b += s);
        Self { inputs, hidden, weights }
    }

    /// An empty memory of the right size.
    pub(super) fn memory(&self) -> Memory {
        Memory { h: vec![0.0; self.hidden], c: vec![0.0; self.hidden] }
    }
}

/// From the sums of all gates to the next c and h.
#[inline(always)]
pub(super) fn activate(gates: &mut [f64], c: &mut [f64], h: &mut [f64]) {
    let hidden = h.len();
    let (i_and_f, rest) = gates.split_at_mut(2 * hidden);
    let (g, o) = rest.split_at_mut(hidden);
    sigmoid(i_and_f);
    tanh(g);
    sigmoid(o);
    let (i, f) = i_and_f.split_at(hidden);
    for (((c, i), f), g) in c.iter_mut().zip(i).zip(f).zip(&*g) {
        *c = f * *c + i * g;
    }
    h.copy_from_slice(c);
    tanh(h);
    h.iter_mut().zip(&*o).for_each(|(h, o)| *h *= o);
}

/// A fully connected layer; weights by row, one row an output, then the biases.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) weights: Vec<f64>,
}

impl Linear {
    /// A layer with fresh random weights.
    pub(super) fn random(inputs: usize, outputs: usize, rng: &mut Rng) -> Self {
        let bound = 1.0 / (inputs as f64).sqrt();
        Self { inputs, outputs, weights: uniform(outputs * (inputs + 1), bound, rng) }
    }

    /// Output `row` for the inputs `x`.
    pub(super) fn output(&self, row: usize, x: &[f64]) -> f64 {
        let weights = &self.weights[row * self.inputs..][..self.inputs];
        weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()
            + self.weights[self.outputs * self.inputs + row]
    }

    /// Makes output `row` become (output − `mean`) / `std`.
    pub(super) fn standardise(&mut self, row: usize, mean: f64, std: f64) {
        self.weights[row * self.inputs..][..self.inputs].iter_mut().for_each(|w| *w /= std);
        let bias = &mut self.weights[self.outputs * self.inputs + row];
        *bias = (*bias - mean) / std;
    }
}
