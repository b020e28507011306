//! Fitting the transition of family A to its target: back-propagation through time and Adam.
//!
//! A handful of windows is worked through side by side, one a lane, so that every inner loop runs
//! over lanes. It must not know how windows are drawn.

use super::activation::{sigmoid, tanh};
use super::lstm::{Linear, Lstm};
use crate::nn::adam::{self, Difference};
use crate::nn::cell::{Cell, Plain};

/// Windows that are worked through together.
pub(super) const LANES: usize = 8;

/// One number of every window.
pub(super) type Lane = [f64; LANES];

const ZERO: Lane = [0.0; LANES];

/// Windows of equal length: the inputs and the wanted outputs, lane by lane.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) steps: usize,
    /// Steps at the start of a window whose outputs do not count: the memory is still empty.
    pub(super) muted: usize,
    /// `steps` × inputs.
    pub(super) x: Vec<Lane>,
    /// `steps` × outputs.
    pub(super) wanted: Vec<Lane>,
}

/// Everything of a forward pass that the backward pass needs, and the gradients it finds. Reused
/// from batch to batch.
#[derive(Debug)]
pub(super) struct Tape {
    /// Inputs of the cell at each step: x, then h of the step before.
    inputs: Vec<Lane>,
    /// Gates after their activation, per step.
    gates: Vec<Lane>,
    /// Cell states, per step.
    c: Vec<Lane>,
    /// tanh of the cell states, per step.
    squashed: Vec<Lane>,
    /// Outputs of the cell, per step.
    h: Vec<Lane>,
    /// Error of each output, per step.
    error: Vec<Lane>,
    /// Gradient with respect to the cell's weights.
    pub(super) of_cell: Vec<f64>,
    /// Gradient with respect to the output layer's weights.
    pub(super) of_out: Vec<f64>,
}

impl Tape {
    pub(super) fn new(cell: &Lstm, out: &Linear, steps: usize) -> Self {
        Self {
            inputs: vec![ZERO; steps * (cell.inputs + cell.hidden)],
            gates: vec![ZERO; steps * 4 * cell.hidden],
            c: vec![ZERO; steps * cell.hidden],
            squashed: vec![ZERO; steps * cell.hidden],
            h: vec![ZERO; steps * cell.hidden],
            error: vec![ZERO; steps * out.outputs],
            of_cell: vec![0.0; cell.weights.len()],
            of_out: vec![0.0; out.weights.len()],
        }
    }

    /// Mean squared error of the network on `batch`.
    #[inline(always)]
    pub(super) fn forward(&mut self, cell: &Lstm, out: &Linear, batch: &Batch) -> f64 {
        let (hidden, width, rows) = (cell.hidden, cell.inputs + cell.hidden, 4 * cell.hidden);
        let bias = &cell.weights[rows * width..];
        let mut sum = ZERO;
        for t in 0..batch.steps {
            let inputs = &mut self.inputs[t * width..][..width];
            inputs[..cell.inputs].copy_from_slice(&batch.x[t * cell.inputs..][..cell.inputs]);
            if t == 0 {
                inputs[cell.inputs..].fill(ZERO);
            } else {
                let before = &self.h[(t - 1) * hidden..][..hidden];
                inputs[cell.inputs..].copy_from_slice(before);
            }

            let gates = &mut self.gates[t * rows..][..rows];
            for (row, gate) in gates.iter_mut().enumerate() {
                let weights = cell.weights[row..].iter().step_by(rows);
                *gate = plus_weighted([bias[row]; LANES], weights, inputs);
            }
            let gates = gates.as_flattened_mut();
            let (i_and_f, rest) = gates.split_at_mut(2 * hidden * LANES);
            let (g, o) = rest.split_at_mut(hidden * LANES);
            sigmoid(i_and_f);
            tanh(g);
            sigmoid(o);

            let gates = &self.gates[t * rows..][..rows];
            for unit in 0..hidden {
                let [i, f, g] = [0, 1, 2].map(|gate| gates[gate * hidden + unit]);
                let before = if t > 0 { self.c[(t - 1) * hidden + unit] } else { ZERO };
                self.c[t * hidden + unit] = std::array::from_fn(|l| f[l] * before[l] + i[l] * g[l]);
            }
            let now = t * hidden..(t + 1) * hidden;
            let squashed = &mut self.squashed[now.clone()];
            squashed.copy_from_slice(&self.c[now.clone()]);
            tanh(squashed.as_flattened_mut());
            let o = &gates[3 * hidden..];
            for ((h, o), squashed) in self.h[now].iter_mut().zip(o).zip(squashed) {
                *h = std::array::from_fn(|l| o[l] * squashed[l]);
            }

            let h = &self.h[t * hidden..][..hidden];
            for row in 0..out.outputs {
                let bias = out.weights[out.outputs * hidden + row];
                let y = plus_weighted([bias; LANES], &out.weights[row * hidden..], h);
                let wanted = &batch.wanted[t * out.outputs + row];
                let error =
                    if t < batch.muted { ZERO } else { std::array::from_fn(|l| y[l] - wanted[l]) };
                sum = std::array::from_fn(|l| sum[l] + error[l] * error[l]);
                self.error[t * out.outputs + row] = error;
            }
        }
        total(&sum) / counted(batch, out)
    }

    /// Gradients of the loss that [`Tape::forward`] found, into `of_cell` and `of_out`.
    #[inline(always)]
    pub(super) fn backward(&mut self, cell: &Lstm, out: &Linear, batch: &Batch) {
        let (hidden, width, rows) = (cell.hidden, cell.inputs + cell.hidden, 4 * cell.hidden);
        let scale = 2.0 / counted(batch, out);
        self.of_cell.fill(0.0);
        self.of_out.fill(0.0);
        // What later steps ask of this step's h and c, and the gates' pre-activations.
        let mut dh = vec![ZERO; hidden];
        let mut dc = vec![ZERO; hidden];
        let mut da = vec![ZERO; rows];
        for t in (0..batch.steps).rev() {
            for row in 0..out.outputs {
                let dy = self.error[t * out.outputs + row].map(|e| scale * e);
                let (units, h) = (row * hidden..(row + 1) * hidden, &self.h[t * hidden..]);
                let gradients = self.of_out[units.clone()].iter_mut().zip(h);
                gradients.for_each(|(gradient, h)| *gradient += dot(&dy, h));
                for (dh, w) in dh.iter_mut().zip(&out.weights[units]) {
                    *dh = plus_scaled(*dh, *w, &dy);
                }
                self.of_out[out.outputs * hidden + row] += total(&dy);
            }

            let gates = &self.gates[t * rows..][..rows];
            for unit in 0..hidden {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * hidden + unit]);
                let before = if t > 0 { self.c[(t - 1) * hidden + unit] } else { ZERO };
                let squashed = self.squashed[t * hidden + unit];
                for l in 0..LANES {
                    let cell = Cell { i: i[l], f: f[l], g: g[l], o: o[l], tanh_c: squashed[l] };
                    let (dz, of_c) = cell.back(Plain, before[l], dh[unit][l], dc[unit][l]);
                    for (gate, dz) in dz.into_iter().enumerate() {
                        da[gate * hidden + unit][l] = dz;
                    }
                    dc[unit][l] = of_c;
                }
            }

            let inputs = &self.inputs[t * width..][..width];
            let (of_columns, of_bias) = self.of_cell.split_at_mut(rows * width);
            for (column, input) in of_columns.chunks_exact_mut(rows).zip(inputs) {
                column.iter_mut().zip(&da).for_each(|(w, da)| *w += dot(da, input));
            }
            of_bias.iter_mut().zip(&da).for_each(|(b, da)| *b += total(da));

            let of_hidden = &cell.weights[rows * cell.inputs..];
            for (dh, column) in dh.iter_mut().zip(of_hidden.chunks_exact(rows)) {
                *dh = plus_weighted(ZERO, column, &da);
            }
        }
    }
}

/// Number of outputs that the mean is taken over.
#[inline(always)]
fn counted(batch: &Batch, out: &Linear) -> f64 {
    ((batch.steps - batch.muted) * out.outputs * LANES) as f64
}

/// `sum + factor · x`. By value, so that a running sum stays in registers.
#[inline(always)]
fn plus_scaled(sum: Lane, factor: f64, x: &Lane) -> Lane {
    std::array::from_fn(|l| sum[l] + factor * x[l])
}

/// `sum + Σ weight · x`.
#[inline(always)]
fn plus_weighted<'a>(sum: Lane, weights: impl IntoIterator<Item = &'a f64>, x: &[Lane]) -> Lane {
    x.iter().zip(weights).fold(sum, |sum, (x, w)| plus_scaled(sum, *w, x))
}

/// Sum over lanes, as a tree so that it vectorises.
#[inline(always)]
fn total(x: &Lane) -> f64 {
    let [a, b, c, d, e, f, g, h] = *x;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[inline(always)]
fn dot(x: &Lane, y: &Lane) -> f64 {
    total(&std::array::from_fn(|l| x[l] * y[l]))
}

/// [`adam`] over one block of weights.
#[derive(Debug)]
pub(super) struct Adam {
    rate: f64,
    step: i32,
    mean: Vec<f64>,
    square: Vec<f64>,
}

impl Adam {
    pub(super) fn new(weights: usize, rate: f64) -> Self {
        Self { rate, step: 0, mean: vec![0.0; weights], square: vec![0.0; weights] }
    }

    #[inline(always)]
    pub(super) fn update(&mut self, weights: &mut [f64], gradient: &[f64]) {
        self.step += 1;
        let rounding = Difference::at(self.rate, self.step);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((w, g), (m, v)) in weights.iter_mut().zip(gradient).zip(moments) {
            adam::step(rounding, w, (m, v), *g);
        }
    }
}
