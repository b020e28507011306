//! A layer of LSTM cells that only runs, over one step or many at a time with the same bits.
//!
//! It must not know what its weights are for.

use super::lstm::{Lstm, Memory, activate};

/// Gates that are summed up together: few enough for their sums to stay in registers.
const TILE: usize = 16;

/// The weights of a layer, tile by tile: for each tile of gates one short column for every input. A
/// step reads them from beginning to end.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    inputs: usize,
    rows: usize,
    of_input: Vec<f64>,
    of_hidden: Vec<f64>,
    bias: Vec<f64>,
}

impl Packed {
    /// The same layer; four times its units must make whole tiles.
    pub(super) fn new(layer: &Lstm) -> Self {
        let rows = 4 * layer.hidden;
        assert!(rows.is_multiple_of(TILE), "{} units do not fill tiles", layer.hidden);
        let (of_input, rest) = layer.weights.split_at(rows * layer.inputs);
        let (of_hidden, bias) = rest.split_at(rows * layer.hidden);
        let pack = |columns: &[f64]| {
            let tiles = (0..rows).step_by(TILE);
            let columns = || columns.chunks_exact(rows);
            tiles
                .flat_map(|first| columns().flat_map(move |c| &c[first..first + TILE]))
                .copied()
                .collect()
        };
        Self {
            inputs: layer.inputs,
            rows,
            of_input: pack(of_input),
            of_hidden: pack(of_hidden),
            bias: bias.to_vec(),
        }
    }

    /// Steps through the rows of `x` and writes the outputs to the rows of `out`. What inputs do is
    /// worked out for all steps together, while a tile is at hand; `gates` is room for it.
    #[inline(always)]
    pub(super) fn run(
        &self,
        x: &[f64],
        memory: &mut Memory,
        gates: &mut Vec<f64>,
        out: &mut [f64],
    ) {
        gates.clear();
        for _ in 0..x.len() / self.inputs {
            gates.extend_from_slice(&self.bias);
        }
        add_product(gates, self.rows, &self.of_input, x);
        let Memory { h, c } = memory;
        let steps = gates.chunks_exact_mut(self.rows).zip(out.chunks_exact_mut(self.rows / 4));
        for (gates, out) in steps {
            add_product(gates, self.rows, &self.of_hidden, h);
            activate(gates, c, h);
            out.copy_from_slice(h);
        }
    }
}

/// `out += weights · x` for every row x and its `rows` numbers of `out`.
#[inline(always)]
fn add_product(out: &mut [f64], rows: usize, weights: &[f64], x: &[f64]) {
    let inputs = weights.len() / rows;
    for (place, weights) in weights.chunks_exact(TILE * inputs).enumerate() {
        for (out, x) in out.chunks_exact_mut(rows).zip(x.chunks_exact(inputs)) {
            let tile = out[place * TILE..].first_chunk_mut().expect("rows make whole tiles");
            *tile = plus_product(*tile, weights, x);
        }
    }
}

/// `sum + weights · x`, four columns at a time: in which order a sum is taken is part of every
/// plant's numbers.
#[inline(always)]
fn plus_product(mut sum: [f64; TILE], weights: &[f64], x: &[f64]) -> [f64; TILE] {
    let (columns, _) = weights.as_chunks::<TILE>();
    let (fours, singles) = x.as_chunks::<4>();
    let (by_four, rest) = columns.as_chunks::<4>();
    for ([w0, w1, w2, w3], [a, b, c, d]) in by_four.iter().zip(fours) {
        for row in 0..TILE {
            sum[row] += (a * w0[row] + b * w1[row]) + (c * w2[row] + d * w3[row]);
        }
    }
    for (w, x) in rest.iter().zip(singles) {
        for row in 0..TILE {
            sum[row] += w[row] * x;
        }
    }
    sum
}
