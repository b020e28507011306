//! A single-layer LSTM with a fully connected output, its memory, and the Jacobian of the output
//! with respect to the input at frozen memory.
//!
//! ```text
//! i, f, o = σ(z), g = tanh(z),  z = W_ih x + W_hh h + b
//! c' = f c + i g,  h' = o tanh c',  out = W_fc h' + b_fc
//! ```

use super::activation::{sigmoid, tanh};
use super::lanes::{Arithmetic, Lanes};
use super::packed::{Packed, lanes_for, pad, padded};
use super::rows::Rows;
use super::{WeightsError, check_network};
use crate::nn::cell::{Cell, Fused};
use crate::nn::weights::LstmFc;

/// The weights, repacked: for each block of hidden units the four gates lie beside each other, so
/// that one walk along the columns yields a whole cell.
#[derive(Debug, Clone)]
pub(crate) struct Lstm {
    pub(crate) inputs: usize,
    pub(crate) width: usize,
    pub(crate) outputs: usize,
    /// block × gate × lane, both biases added.
    bias: Vec<f32>,
    /// block × input × gate × lane.
    weight_ih: Vec<f32>,
    /// block × hidden unit × gate × lane.
    weight_hh: Vec<f32>,
    fc: Packed,
    fc_bias: Vec<f32>,
}

/// (h, c): what a cell remembers from one step to the next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Memory {
    h: Vec<f32>,
    c: Vec<f32>,
}

impl Memory {
    pub(crate) fn clear(&mut self) {
        self.h.fill(0.0);
        self.c.fill(0.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.h.len() + self.c.len()
    }

    /// h and c of the `width` units, without their padding.
    pub(crate) fn units(&self, width: usize) -> (&[f32], &[f32]) {
        (&self.h[..width], &self.c[..width])
    }

    /// Adds to h and c.
    pub(crate) fn correct(&mut self, (h, c): (&[f64], &[f64])) {
        let add = |to: &mut [f32], by: &[f64]| {
            to.iter_mut().zip(by).for_each(|(to, by)| *to += *by as f32);
        };
        add(&mut self.h, h);
        add(&mut self.c, c);
    }

    /// Appends what is remembered: h, then c, each with its padding.
    pub(crate) fn record(&self, to: &mut Vec<f32>) {
        to.extend_from_slice(&self.h);
        to.extend_from_slice(&self.c);
    }

    /// Takes up what was recorded.
    pub(crate) fn recall(&mut self, recorded: &[f32]) {
        let (h, c) = recorded.split_at(self.h.len());
        self.h.copy_from_slice(h);
        self.c.copy_from_slice(c);
    }
}

/// One column of the four gates, in the order i, f, g, o.
type Gates<const N: usize> = [[f32; N]; 4];

impl Lstm {
    pub(crate) fn new(weights: &LstmFc) -> Result<Self, WeightsError> {
        let LstmFc { inputs, width, outputs, .. } = *weights;
        check_network(weights)?;
        let bias: Vec<f32> =
            weights.bias_ih.iter().zip(&weights.bias_hh).map(|(a, b)| a + b).collect();
        Ok(Self {
            inputs,
            width,
            outputs,
            bias: by_block(width, 1, &bias),
            weight_ih: by_block(width, inputs, &weights.weight_ih),
            weight_hh: by_block(width, width, &weights.weight_hh),
            fc: Packed::new(outputs, width, &weights.fc_weight),
            fc_bias: pad(&weights.fc_bias),
        })
    }

    /// A memory that holds nothing yet.
    pub(crate) fn memory(&self) -> Memory {
        let n = padded(self.width);
        Memory { h: vec![0.0; n], c: vec![0.0; n] }
    }

    /// Room for an output, its derivatives with respect to each input, and a second output.
    pub(crate) fn rows(&self, count: usize) -> Rows {
        Rows::new(count, self.width, self.outputs)
    }

    /// One step: the memory advances with `x`; `beside` passes through the same memory and leaves
    /// no trace in it.
    #[inline(always)]
    pub(crate) fn step<A: Arithmetic>(
        &self,
        a: A,
        memory: &mut Memory,
        x: &[f32],
        jacobian: bool,
        beside: Option<&[f32]>,
        rows: &mut Rows,
    ) {
        match lanes_for(self.width) {
            4 => self.cells::<A, 4>(a, memory, x, jacobian, beside, rows),
            _ => self.cells::<A, 8>(a, memory, x, jacobian, beside, rows),
        }
        memory.h.copy_from_slice(rows.hidden(0));
        let derivatives = if jacobian { self.inputs } else { 0 };
        let last = beside.map(|_| 1 + derivatives);
        let count = 1 + derivatives + usize::from(beside.is_some());
        rows.output(a, &self.fc, &self.fc_bias, count, [Some(0), last]);
    }

    #[inline(always)]
    fn cells<A: Lanes<N>, const N: usize>(
        &self,
        a: A,
        memory: &mut Memory,
        x: &[f32],
        jacobian: bool,
        beside: Option<&[f32]>,
        rows: &mut Rows,
    ) {
        let bias = gates::<N>(&self.bias);
        let ih = gates::<N>(&self.weight_ih).chunks_exact(self.inputs);
        let hh = gates::<N>(&self.weight_hh).chunks_exact(self.width);
        let (cells, _) = memory.c.as_chunks_mut::<N>();
        for (block, (((bias, ih), hh), c)) in bias.iter().zip(ih).zip(hh).zip(cells).enumerate() {
            let lane = block * N;
            let before = a.load(c);
            let recurrent = add_columns(a, load(a, bias), hh, &memory.h);
            if let Some(beside) = beside {
                let (_, _, h) = step_cells(a, add_columns(a, recurrent, ih, beside), before);
                let row = if jacobian { 1 + self.inputs } else { 1 };
                rows.hidden_mut(row, lane)[..N].copy_from_slice(&a.store(h));
            }
            let (cell, after, h) = step_cells(a, add_columns(a, recurrent, ih, x), before);
            rows.hidden_mut(0, lane)[..N].copy_from_slice(&a.store(h));
            *c = a.store(after);
            if jacobian {
                let slopes = cell.back_one_step(Fused::<A, N>(a), before, a.splat(1.0));
                for (k, column) in ih.iter().enumerate() {
                    let dh = chain(a, slopes, column);
                    rows.hidden_mut(1 + k, lane)[..N].copy_from_slice(&a.store(dh));
                }
            }
        }
    }
}

/// A step of cells on lanes from their gates before activation, in the order i, f, g, o, and from c: what
/// the way back needs, c' and h'.
#[inline(always)]
pub(crate) fn step_cells<A: Lanes<N>, const N: usize>(
    a: A,
    z: [A::V; 4],
    before: A::V,
) -> (Cell<A::V>, A::V, A::V) {
    let gates = [sigmoid(a, z[0]), sigmoid(a, z[1]), tanh(a, z[2]), sigmoid(a, z[3])];
    let c = Cell::memory(Fused::<A, N>(a), gates, before);
    let (cell, h) = Cell::forward(Fused::<A, N>(a), gates, tanh(a, c));
    (cell, c, h)
}

/// Row-major (4·width) × columns to block × column × gate × lane.
fn by_block(width: usize, columns: usize, row_major: &[f32]) -> Vec<f32> {
    let lanes = lanes_for(width);
    let mut packed = vec![0.0; 4 * padded(width) * columns];
    for gate in 0..4 {
        for unit in 0..width {
            let (block, lane) = (unit / lanes, unit % lanes);
            for column in 0..columns {
                packed[((block * columns + column) * 4 + gate) * lanes + lane] =
                    row_major[(gate * width + unit) * columns + column];
            }
        }
    }
    packed
}

#[inline(always)]
fn gates<const N: usize>(packed: &[f32]) -> &[Gates<N>] {
    packed.as_chunks::<N>().0.as_chunks::<4>().0
}

#[inline(always)]
fn load<A: Lanes<N>, const N: usize>(a: A, gates: &Gates<N>) -> [A::V; 4] {
    [a.load(&gates[0]), a.load(&gates[1]), a.load(&gates[2]), a.load(&gates[3])]
}

/// z + Σⱼ columns[j]·v[j], all four gates at once.
#[inline(always)]
fn add_columns<A: Lanes<N>, const N: usize>(
    a: A,
    z: [A::V; 4],
    columns: &[Gates<N>],
    v: &[f32],
) -> [A::V; 4] {
    let [mut i, mut f, mut g, mut o] = z;
    for (column, &factor) in columns.iter().zip(v) {
        let factor = a.splat(factor);
        i = a.mul_add(a.load(&column[0]), factor, i);
        f = a.mul_add(a.load(&column[1]), factor, f);
        g = a.mul_add(a.load(&column[2]), factor, g);
        o = a.mul_add(a.load(&column[3]), factor, o);
    }
    [i, f, g, o]
}

/// ∂h'/∂xₖ = Σ over gates of ∂h'/∂z · W_ih[:, k].
#[inline(always)]
fn chain<A: Lanes<N>, const N: usize>(a: A, slopes: [A::V; 4], column: &Gates<N>) -> A::V {
    let column = load(a, column);
    let i = a.mul(slopes[0], column[0]);
    let f = a.mul_add(slopes[1], column[1], i);
    let g = a.mul_add(slopes[2], column[2], f);
    a.mul_add(slopes[3], column[3], g)
}

#[cfg(test)]
mod tests {
    use nalgebra::DVector;
    use proptest::prelude::*;
    use rand_distr::{Distribution, StandardNormal};

    use super::super::isa::{Isa, Kernel};
    use super::super::reference::{self, State};
    use super::*;
    use crate::base::rng;

    struct Step<'a> {
        lstm: &'a Lstm,
        memory: &'a mut Memory,
        x: &'a [f32],
        beside: &'a [f32],
        rows: &'a mut Rows,
    }

    impl Kernel for Step<'_> {
        type Output = ();

        #[inline(always)]
        fn run<A: Arithmetic>(self, a: A) {
            self.lstm.step(a, self.memory, self.x, true, Some(self.beside), self.rows);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_step_its_jacobian_and_the_second_output_agree_with_the_equations(
            inputs in 1_usize..12,
            width in 1_usize..35,
            outputs in 1_usize..12,
            seed in any::<u64>(),
            isa in prop::sample::select(Isa::available().collect::<Vec<_>>()),
        ) {
            let rng = &mut rng::stream(seed, 0);
            let weights = LstmFc::init(inputs, width, outputs, 1.0, rng);
            let lstm = Lstm::new(&weights).expect("weights of the right size");
            let (mut memory, mut rows) = (lstm.memory(), lstm.rows(inputs + 2));
            let mut state = State::zero(width);
            for _ in 0..6 {
                let mut draw = || -> Vec<f32> {
                    (0..inputs).map(|_| StandardNormal.sample(rng)).collect()
                };
                let (x, beside) = (draw(), draw());
                isa.run(Step {
                    lstm: &lstm,
                    memory: &mut memory,
                    x: &x,
                    beside: &beside,
                    rows: &mut rows,
                });
                let exact = |x: &[f32]| DVector::from_iterator(inputs, x.iter().map(|&v| f64::from(v)));
                let f = |x: &DVector<f64>| reference::lstm(&weights, &state, x).0;
                let jacobian = reference::jacobian(f, &exact(&x));
                let (value, second) = (f(&exact(&x)), f(&exact(&beside)));
                for i in 0..outputs {
                    prop_assert!((f64::from(rows.row(0)[i]) - value[i]).abs() < 5e-6);
                    prop_assert!((f64::from(rows.row(1 + inputs)[i]) - second[i]).abs() < 5e-6);
                    for k in 0..inputs {
                        let found = f64::from(rows.row(1 + k)[i]);
                        prop_assert!((found - jacobian[(i, k)]).abs() < 5e-6);
                    }
                }
                state = reference::lstm(&weights, &state, &exact(&x)).1;
            }
        }
    }

    #[test]
    fn weights_of_the_wrong_size_or_not_finite_are_refused() {
        let good = LstmFc::init(2, 4, 2, 1.0, &mut rng::stream(0, 0));
        let mut short = good.clone();
        short.weight_hh.pop();
        assert_eq!(
            Lstm::new(&short).err(),
            Some(WeightsError::Size { tensor: "weight_hh_l0".into(), expected: 64, found: 63 })
        );
        let mut broken = good.clone();
        broken.fc_bias[0] = f32::NAN;
        assert_eq!(
            Lstm::new(&broken).err(),
            Some(WeightsError::NotFinite { tensor: "fc.bias".into() })
        );
        let empty = LstmFc { inputs: 0, weight_ih: Vec::new(), ..good };
        assert!(matches!(Lstm::new(&empty), Err(WeightsError::Empty { .. })));
    }
}
