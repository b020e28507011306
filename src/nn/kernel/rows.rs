//! The buffers of a network: hidden layer and output of a value, its derivatives and a second value,
//! one row each, so that the output layer is applied to all of them in one product.

use super::lanes::Arithmetic;
use super::packed::{Packed, padded};

/// What a network writes: rows of equal, padded length. The first row is the output, then comes one
/// row per input with its derivative if asked for, then the output at the second input if given.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// Hidden layer, the right-hand sides of the output layer.
    hidden: Vec<f32>,
    out: Vec<f32>,
    hidden_len: usize,
    out_len: usize,
}

impl Rows {
    /// Room for `count` rows.
    pub(crate) fn new(count: usize, hidden: usize, outputs: usize) -> Self {
        let (hidden_len, out_len) = (padded(hidden), padded(outputs));
        Self {
            hidden: vec![0.0; count * hidden_len],
            out: vec![0.0; count * out_len],
            hidden_len,
            out_len,
        }
    }

    /// Row `r` of the output, with its padding.
    #[inline(always)]
    pub(crate) fn row(&self, r: usize) -> &[f32] {
        &self.out[r * self.out_len..][..self.out_len]
    }

    /// Row `r` of the output, with its padding.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, r: usize) -> &mut [f32] {
        &mut self.out[r * self.out_len..][..self.out_len]
    }

    /// The hidden layer of row `r`, with its padding.
    #[inline(always)]
    pub(crate) fn hidden(&self, r: usize) -> &[f32] {
        &self.hidden[r * self.hidden_len..][..self.hidden_len]
    }

    /// Where the hidden layer of row `r` keeps the block that starts at `lane`.
    #[inline(always)]
    pub(crate) fn hidden_mut(&mut self, r: usize, lane: usize) -> &mut [f32] {
        &mut self.hidden[r * self.hidden_len + lane..]
    }

    /// The output layer of the first `count` rows; the bias belongs to values, not to derivatives.
    #[inline(always)]
    pub(crate) fn output<A: Arithmetic>(
        &mut self,
        a: A,
        layer: &Packed,
        bias: &[f32],
        count: usize,
        values: [Option<usize>; 2],
    ) {
        let (hidden, out) =
            (&self.hidden[..count * self.hidden_len], &mut self.out[..count * self.out_len]);
        layer.multiply(a, count, hidden, out);
        for r in values.into_iter().flatten() {
            for (out, b) in self.row_mut(r).iter_mut().zip(bias) {
                *out += b;
            }
        }
    }
}
