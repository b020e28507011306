//! An LSTM with its output layer that learns one step at a time.
//!
//! Algorithm 1 as printed updates φ_m and f_s after every sample. The gradient reaches through the
//! current step only; memory of earlier steps enters as a constant. Weights lie column by column,
//! the gates of all units beside each other in blocks of lanes, so that every inner loop runs over
//! contiguous numbers; the gradient of a weight is a product of two numbers at hand, so it is never
//! stored, only fed to the optimiser. Nothing is allocated after construction. This module must
//! not know what is learned or why.

mod aligned;
#[cfg(test)]
mod tests;

use self::aligned::Aligned;
use super::adam::{self, LaneStep};
use super::cell::{Cell, Fused};
use super::kernel::isa::{Isa, Kernel};
use super::kernel::lanes::{Arithmetic, Lanes};
use super::kernel::lstm::step_cells;
use super::kernel::{WeightsError, check_dimension, check_network};
use super::weights::LstmFc;

/// What turns a gradient into a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Descent {
    /// Plain gradient descent with this step size.
    Sgd(f64),
    /// Adam (Kingma and Ba, 2015) with this step size and the customary moments.
    Adam(f64),
}

const LANES: usize = 8;

/// The unit of storage: sizes are rounded up to it, and weights that only fill up are zero, get a
/// gradient of zero and so stay zero.
type Block = [f32; LANES];

fn blocks(count: usize) -> usize {
    count.div_ceil(LANES)
}

/// Parameters with the optimiser's memory of each.
#[derive(Debug, Clone)]
struct Parameters {
    w: Aligned,
    m: Aligned,
    v: Aligned,
}

impl Parameters {
    fn new(w: &[Block]) -> Self {
        let zero = Aligned::new(&vec![[0.0; LANES]; w.len()]);
        Self { m: zero.clone(), v: zero, w: Aligned::new(w) }
    }

    #[inline(always)]
    fn slices(&mut self) -> Slices<'_> {
        Slices { w: &mut self.w, m: &mut self.m, v: &mut self.v }
    }
}

/// [`Parameters`], found once for all columns.
struct Slices<'a> {
    w: &'a mut [Block],
    m: &'a mut [Block],
    v: &'a mut [Block],
}

/// The step of one round: what it has in common for all weights.
#[derive(Debug, Clone, Copy)]
enum Stride {
    Sgd { rate: f32 },
    Adam(LaneStep),
}

impl Stride {
    fn at(descent: Descent, round: i32, pace: f64) -> Self {
        match descent {
            Descent::Sgd(rate) => Self::Sgd { rate: (rate * pace) as f32 },
            Descent::Adam(rate) => Self::Adam(LaneStep::at(pace * rate, round)),
        }
    }

    /// Moves one column of parameters, the `column`-th as long as `direction`, against the gradient
    /// `factor · direction`, `times` over.
    #[inline(always)]
    fn descend<A: Lanes<LANES>>(
        self,
        a: A,
        p: &mut Slices<'_>,
        column: usize,
        factor: f32,
        direction: &[Block],
        times: f32,
    ) {
        let range = column * direction.len()..(column + 1) * direction.len();
        let factor = a.splat(factor);
        match self {
            Self::Sgd { rate } => {
                let rate = a.mul(a.splat(-times * rate), factor);
                for (w, d) in p.w[range].iter_mut().zip(direction) {
                    *w = a.store(a.mul_add(rate, a.load(d), a.load(w)));
                }
            }
            Self::Adam(pace) => {
                let rounding = pace.on(a, times);
                let moments = p.m[range.clone()].iter_mut().zip(&mut p.v[range.clone()]);
                for ((w, (m, v)), d) in p.w[range].iter_mut().zip(moments).zip(direction) {
                    let (mut to, mut mean, mut square) = (a.load(w), a.load(m), a.load(v));
                    let g = a.mul(factor, a.load(d));
                    adam::step(rounding, &mut to, (&mut mean, &mut square), g);
                    *m = a.store(mean);
                    *v = a.store(square);
                    *w = a.store(to);
                }
            }
        }
    }
}

/// An LSTM with its output layer, its memory, and what the last forward step left behind.
#[derive(Debug, Clone)]
pub(crate) struct Learner {
    isa: Isa,
    inputs: usize,
    width: usize,
    outputs: usize,
    descent: Descent,
    round: i32,
    /// One column per input, one per hidden unit, one for the bias; in each the gates i, f, g, o.
    ///
    /// torch's LSTM has two biases that see the same gradient; here is their sum, which therefore
    /// moves twice as far.
    cell: Parameters,
    /// One column of outputs per hidden unit, one for the bias.
    fc: Parameters,
    h: Vec<Block>,
    c: Vec<Block>,
    tape: Tape,
    out: Vec<Block>,
    d_out: Vec<Block>,
}

/// What learning needs of the step that was taken.
#[derive(Debug, Clone)]
struct Tape {
    x: Vec<f32>,
    h_before: Vec<Block>,
    c_before: Vec<Block>,
    gates: Vec<Block>,
    tanh_c: Vec<Block>,
    /// ∂loss/∂h, then ∂loss/∂ of the gates before activation.
    dh: Vec<Block>,
    dz: Vec<Block>,
}

impl Learner {
    /// Takes over `weights`, on the best instruction set of this machine.
    pub(crate) fn new(weights: &LstmFc, descent: Descent) -> Result<Self, WeightsError> {
        Self::with_isa(weights, descent, Isa::detect())
    }

    /// Takes over `weights`, on a given instruction set.
    pub(crate) fn with_isa(
        weights: &LstmFc,
        descent: Descent,
        isa: Isa,
    ) -> Result<Self, WeightsError> {
        let LstmFc { inputs, width, outputs, .. } = *weights;
        check_network(weights)?;
        let (units, rows) = (blocks(width), blocks(outputs));
        let mut cell = vec![[0.0; LANES]; 4 * units * (inputs + width + 1)];
        for (place, gate, unit) in places(width) {
            let row = gate * width + unit;
            let mut put = |column: usize, value: f32| {
                cell[column * 4 * units..].as_flattened_mut()[place] = value;
            };
            (0..inputs).for_each(|i| put(i, weights.weight_ih[row * inputs + i]));
            (0..width).for_each(|j| put(inputs + j, weights.weight_hh[row * width + j]));
            put(inputs + width, weights.bias_ih[row] + weights.bias_hh[row]);
        }
        let mut fc = vec![[0.0; LANES]; rows * (width + 1)];
        for k in 0..outputs {
            for j in 0..width {
                fc[j * rows..].as_flattened_mut()[k] = weights.fc_weight[k * width + j];
            }
            fc[width * rows..].as_flattened_mut()[k] = weights.fc_bias[k];
        }
        let zero = |count: usize| vec![[0.0; LANES]; count];
        Ok(Self {
            isa,
            inputs,
            width,
            outputs,
            descent,
            round: 0,
            cell: Parameters::new(&cell),
            fc: Parameters::new(&fc),
            h: zero(units),
            c: zero(units),
            tape: Tape {
                x: vec![0.0; inputs],
                h_before: zero(units),
                c_before: zero(units),
                gates: zero(4 * units),
                tanh_c: zero(units),
                dh: zero(units),
                dz: zero(4 * units),
            },
            out: zero(rows),
            d_out: zero(rows),
        })
    }

    /// A learner like this one that begins with other weights of the same sizes.
    pub(crate) fn replaced_by(&self, weights: &LstmFc) -> Result<Self, WeightsError> {
        check_dimension("inputs", weights.inputs, self.inputs)?;
        check_dimension("outputs", weights.outputs, self.outputs)?;
        Self::with_isa(weights, self.descent, self.isa)
    }

    /// What it has learned, in the common form; the whole bias stands in `bias_ih`.
    pub(crate) fn weights(&self) -> LstmFc {
        let Self { inputs, width, outputs, .. } = *self;
        let (units, rows) = (blocks(width), blocks(outputs));
        let mut weights = LstmFc::zeros(inputs, width, outputs);
        for (place, gate, unit) in places(width) {
            let row = gate * width + unit;
            let at = |column: usize| self.cell.w[column * 4 * units..].as_flattened()[place];
            (0..inputs).for_each(|i| weights.weight_ih[row * inputs + i] = at(i));
            (0..width).for_each(|j| weights.weight_hh[row * width + j] = at(inputs + j));
            weights.bias_ih[row] = at(inputs + width);
        }
        for k in 0..outputs {
            let at = |column: usize| self.fc.w[column * rows..].as_flattened()[k];
            (0..width).for_each(|j| weights.fc_weight[k * width + j] = at(j));
            weights.fc_bias[k] = at(width);
        }
        weights
    }

    /// Forgets what it has seen (not what it has learned): a new run begins.
    pub(crate) fn forget(&mut self) {
        self.h.fill([0.0; LANES]);
        self.c.fill([0.0; LANES]);
    }

    pub(crate) fn forward(&mut self, x: &[f32]) -> &[f32] {
        self.tape.x.copy_from_slice(x);
        self.isa.run(Forward(self));
        self.output()
    }

    /// The result of the last step.
    pub(crate) fn output(&self) -> &[f32] {
        &self.out.as_flattened()[..self.outputs]
    }

    /// Steps against the gradient of a loss whose derivative by the last output is `d_out`, at
    /// `pace` of the full step size. Must follow a [`Learner::forward`].
    pub(crate) fn learn(&mut self, d_out: &[f32], pace: f64) {
        self.round = self.round.saturating_add(1);
        self.d_out.as_flattened_mut()[..self.outputs].copy_from_slice(d_out);
        let stride = Stride::at(self.descent, self.round, pace);
        self.isa.run(Learn(self, stride));
    }
}

/// Where each gate of each unit stands in a column: (place, gate, unit).
fn places(width: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let padded = blocks(width) * LANES;
    (0..4).flat_map(move |gate| (0..width).map(move |unit| (gate * padded + unit, gate, unit)))
}

struct Forward<'a>(&'a mut Learner);

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self, a: A) {
        let Learner { inputs, width, cell, fc, h, c, tape, out, .. } = self.0;
        let Tape { x, h_before, c_before, gates, tanh_c, .. } = tape;
        // `cells` writes every unit of h and c, so the old ones need no copy.
        std::mem::swap(h, h_before);
        std::mem::swap(c, c_before);
        let (of_inputs, rest) = cell.w.split_at(*inputs * gates.len());
        let (of_units, bias) = rest.split_at(*width * gates.len());
        let before = &h_before.as_flattened()[..*width];
        sum_columns(a, gates, bias, [(of_inputs, x), (of_units, before)]);
        cells(a, gates, c_before, c, tanh_c, h);
        let (of_units, bias) = fc.w.split_at(*width * out.len());
        sum_columns(a, out, bias, [(of_units, &h.as_flattened()[..*width])]);
    }
}

/// c and h from the gates before activation; leaves the gates activated.
#[inline(always)]
fn cells<A: Lanes<LANES>>(
    a: A,
    gates: &mut [Block],
    c_before: &[Block],
    c: &mut [Block],
    tanh_c: &mut [Block],
    h: &mut [Block],
) {
    let units = h.len();
    for b in 0..units {
        let z = [0, 1, 2, 3].map(|gate| a.load(&gates[gate * units + b]));
        let (cell, c_now, h_now) = step_cells(a, z, a.load(&c_before[b]));
        for (gate, value) in [cell.i, cell.f, cell.g, cell.o].into_iter().enumerate() {
            gates[gate * units + b] = a.store(value);
        }
        c[b] = a.store(c_now);
        tanh_c[b] = a.store(cell.tanh_c);
        h[b] = a.store(h_now);
    }
}

/// Columns of one matrix, and the number that each is multiplied by.
type Columns<'a> = (&'a [Block], &'a [f32]);

/// out = bias + Σⱼ columns[j]·factors[j] over all `parts`, in their order. The sums of a small network
/// stay in registers from the first column to the last.
#[inline(always)]
fn sum_columns<A: Lanes<LANES>, const PARTS: usize>(
    a: A,
    out: &mut [Block],
    bias: &[Block],
    parts: [Columns; PARTS],
) {
    match out.len() {
        1 => sum_in_registers::<A, 1, PARTS>(a, out, bias, parts),
        8 if A::MANY => sum_in_registers::<A, 8, PARTS>(a, out, bias, parts),
        _ => {
            out.copy_from_slice(bias);
            for (columns, factors) in parts {
                add_columns(a, out, columns, factors);
            }
        }
    }
}

#[inline(always)]
fn sum_in_registers<A: Lanes<LANES>, const BLOCKS: usize, const PARTS: usize>(
    a: A,
    out: &mut [Block],
    bias: &[Block],
    parts: [Columns; PARTS],
) {
    let mut sums = [a.splat(0.0); BLOCKS];
    for (sum, bias) in sums.iter_mut().zip(bias) {
        *sum = a.load(bias);
    }
    for (columns, factors) in parts {
        for (column, &factor) in columns.as_chunks::<BLOCKS>().0.iter().zip(factors) {
            let factor = a.splat(factor);
            for (sum, column) in sums.iter_mut().zip(column) {
                *sum = a.mul_add(factor, a.load(column), *sum);
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = a.store(sum);
    }
}

/// out += Σⱼ columns[j]·factors[j], four columns at a time: what is summed is read and written once
/// for all of them.
#[inline(always)]
fn add_columns<A: Lanes<LANES>>(a: A, out: &mut [Block], columns: &[Block], factors: &[f32]) {
    let length = out.len();
    let (quads, last) = factors.as_chunks::<4>();
    let (of_quads, of_last) = columns.split_at(quads.len() * 4 * length);
    for (columns, factors) in of_quads.chunks_exact(4 * length).zip(quads) {
        let (first_half, second_half) = columns.split_at(2 * length);
        let (p, q) = first_half.split_at(length);
        let (r, s) = second_half.split_at(length);
        let [f_p, f_q, f_r, f_s] = factors.map(|factor| a.splat(factor));
        for (out, (((p, q), r), s)) in out.iter_mut().zip(p.iter().zip(q).zip(r).zip(s)) {
            let sum = a.mul_add(f_p, a.load(p), a.load(out));
            let sum = a.mul_add(f_q, a.load(q), sum);
            let sum = a.mul_add(f_r, a.load(r), sum);
            *out = a.store(a.mul_add(f_s, a.load(s), sum));
        }
    }
    for (column, &factor) in of_last.chunks_exact(length).zip(last) {
        for (out, column) in out.iter_mut().zip(column) {
            *out = a.store(a.mul_add(a.splat(factor), a.load(column), a.load(out)));
        }
    }
}

struct Learn<'a>(&'a mut Learner, Stride);

impl Kernel for Learn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self, a: A) {
        let Self(learner, stride) = self;
        let Learner { inputs, width, cell, fc, h, tape, d_out, .. } = learner;
        let Tape { x, h_before, c_before, gates, tanh_c, dh, dz } = tape;
        let (fc, cell) = (&mut fc.slices(), &mut cell.slices());
        // The output layer: what it asks of h, from the weights as they were, then its own step.
        let rows = d_out.len();
        let dh_flat = dh.as_flattened_mut();
        for (j, h) in h.as_flattened()[..*width].iter().enumerate() {
            dh_flat[j] = dot(a, &fc.w[j * rows..(j + 1) * rows], d_out);
            stride.descend(a, fc, j, *h, d_out, 1.0);
        }
        stride.descend(a, fc, *width, 1.0, d_out, 1.0);
        cell_gradient(a, gates, c_before, tanh_c, dh, dz);
        let factors = x.iter().chain(&h_before.as_flattened()[..*width]);
        for (column, factor) in factors.enumerate() {
            stride.descend(a, cell, column, *factor, dz, 1.0);
        }
        stride.descend(a, cell, *inputs + *width, 1.0, dz, 2.0);
    }
}

/// ∂loss/∂ of the gates before activation, with the memory of the step before taken as given.
#[inline(always)]
fn cell_gradient<A: Lanes<LANES>>(
    a: A,
    gates: &[Block],
    c_before: &[Block],
    tanh_c: &[Block],
    dh: &[Block],
    dz: &mut [Block],
) {
    let units = dh.len();
    for b in 0..units {
        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| a.load(&gates[gate * units + b]));
        let cell = Cell { i, f, g, o, tanh_c: a.load(&tanh_c[b]) };
        let of_gates =
            cell.back_one_step(Fused::<A, LANES>(a), a.load(&c_before[b]), a.load(&dh[b]));
        for (gate, value) in of_gates.into_iter().enumerate() {
            dz[gate * units + b] = a.store(value);
        }
    }
}

/// Σ x·y, lanes added in a fixed order.
#[inline(always)]
fn dot<A: Lanes<LANES>>(a: A, x: &[Block], y: &[Block]) -> f32 {
    let mut sum = a.splat(0.0);
    for (x, y) in x.iter().zip(y) {
        sum = a.mul_add(a.load(x), a.load(y), sum);
    }
    let [p, q, r, s, t, u, v, w] = a.store(sum);
    ((p + q) + (r + s)) + ((t + u) + (v + w))
}
