//! A matrix laid out so that every product is a sum of columns over contiguous lanes.
//!
//! Rows are cut into blocks of 4 or 8 lanes, padded with zero rows; inside a block the columns
//! follow each other. A product keeps the lanes of one block in registers while it walks along the
//! columns: one load of the matrix serves every right-hand side.

use super::lanes::{Arithmetic, Lanes};

/// Lanes of a block: narrow outputs waste fewer of them with 4.
pub(crate) fn lanes_for(rows: usize) -> usize {
    if rows <= 4 { 4 } else { 8 }
}

/// Size of a buffer that holds `rows` numbers and the padding of their last block.
pub(crate) fn padded(rows: usize) -> usize {
    rows.next_multiple_of(lanes_for(rows))
}

/// A vector with the padding of its last block, zero there.
pub(crate) fn pad(values: &[f32]) -> Vec<f32> {
    let mut buffer = values.to_vec();
    buffer.resize(padded(values.len()), 0.0);
    buffer
}

/// A matrix in blocks of rows.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    lanes: usize,
    columns: usize,
    /// block × column × lane.
    data: Vec<f32>,
}

impl Packed {
    pub(crate) fn new(rows: usize, columns: usize, row_major: &[f32]) -> Self {
        let lanes = lanes_for(rows);
        let mut data = vec![0.0; padded(rows) * columns];
        for row in 0..rows {
            for column in 0..columns {
                let (block, lane) = (row / lanes, row % lanes);
                data[(block * columns + column) * lanes + lane] = row_major[row * columns + column];
            }
        }
        Self { lanes, columns, data }
    }

    /// The columns of each block; `N` must be the lanes of the matrix.
    #[inline(always)]
    pub(crate) fn columns<const N: usize>(&self) -> std::slice::ChunksExact<'_, [f32; N]> {
        self.data.as_chunks::<N>().0.chunks_exact(self.columns)
    }

    /// outᵣ = W·rhsᵣ for each right-hand side: `rhs` holds them one after the other, each
    /// `rhs.len() / count` long, of which the first `columns` are used; likewise `out`.
    #[inline(always)]
    pub(crate) fn multiply<A: Arithmetic>(&self, a: A, count: usize, rhs: &[f32], out: &mut [f32]) {
        match self.lanes {
            4 => self.blocks::<A, 4>(a, count, rhs, out),
            _ => self.blocks::<A, 8>(a, count, rhs, out),
        }
    }

    #[inline(always)]
    fn blocks<A: Lanes<N>, const N: usize>(
        &self,
        a: A,
        count: usize,
        rhs: &[f32],
        out: &mut [f32],
    ) {
        let (rhs_len, out_len) = (rhs.len() / count, out.len() / count);
        let side = |r: usize| &rhs[r * rhs_len..][..self.columns];
        if count == 1 {
            for (lanes, columns) in out.as_chunks_mut::<N>().0.iter_mut().zip(self.columns::<N>()) {
                *lanes = a.store(dot_columns(a, columns, side(0)));
            }
            return;
        }
        let mut first = 0;
        while first + 4 <= count {
            let sides = [0, 1, 2, 3].map(|k| side(first + k));
            self.four(a, sides, &mut out[first * out_len..], out_len, 4);
            first += 4;
        }
        if first < count {
            // The last side stands in for those that are not there: a sum does not depend on how
            // many others are formed beside it.
            let sides = [0, 1, 2, 3].map(|k| side((first + k).min(count - 1)));
            self.four(a, sides, &mut out[first * out_len..], out_len, count - first);
        }
    }

    /// The products with four right-hand sides, of which the first `wanted` are written.
    #[inline(always)]
    fn four<A: Lanes<N>, const N: usize>(
        &self,
        a: A,
        sides: [&[f32]; 4],
        out: &mut [f32],
        out_len: usize,
        wanted: usize,
    ) {
        let mut put = |k: usize, block: usize, lanes: A::V| {
            out[k * out_len + block * N..][..N].copy_from_slice(&a.store(lanes));
        };
        let mut blocks = self.columns::<N>().enumerate();
        while let Some((block, columns)) = blocks.next() {
            let second = if A::MANY { blocks.next() } else { None };
            if let Some((_, more)) = second {
                let sums = four_by_two(a, columns, more, sides);
                for (k, [lanes, more]) in sums.into_iter().enumerate().take(wanted) {
                    put(k, block, lanes);
                    put(k, block + 1, more);
                }
            } else {
                let sums = four_by_one(a, columns, sides);
                for (k, lanes) in sums.into_iter().enumerate().take(wanted) {
                    put(k, block, lanes);
                }
            }
        }
    }
}

/// Σⱼ columns[j]·rhsᵣ[j] for four right-hand sides at once.
#[inline(always)]
fn four_by_one<A: Lanes<N>, const N: usize>(
    a: A,
    columns: &[[f32; N]],
    rhs: [&[f32]; 4],
) -> [A::V; 4] {
    let n = columns.len();
    let [p, q, r, s] = [&rhs[0][..n], &rhs[1][..n], &rhs[2][..n], &rhs[3][..n]];
    let zero = a.splat(0.0);
    let (mut sum_p, mut sum_q, mut sum_r, mut sum_s) = (zero, zero, zero, zero);
    for (j, column) in columns.iter().enumerate() {
        let column = a.load(column);
        sum_p = a.mul_add(column, a.splat(p[j]), sum_p);
        sum_q = a.mul_add(column, a.splat(q[j]), sum_q);
        sum_r = a.mul_add(column, a.splat(r[j]), sum_r);
        sum_s = a.mul_add(column, a.splat(s[j]), sum_s);
    }
    [sum_p, sum_q, sum_r, sum_s]
}

/// The same for two blocks, which share the factors; each sum has the same terms in the same
/// order.
#[inline(always)]
fn four_by_two<A: Lanes<N>, const N: usize>(
    a: A,
    columns: &[[f32; N]],
    more: &[[f32; N]],
    rhs: [&[f32]; 4],
) -> [[A::V; 2]; 4] {
    let n = columns.len();
    let [p, q, r, s] = [&rhs[0][..n], &rhs[1][..n], &rhs[2][..n], &rhs[3][..n]];
    let zero = [a.splat(0.0); 2];
    let (mut sum_p, mut sum_q, mut sum_r, mut sum_s) = (zero, zero, zero, zero);
    for (j, (first, second)) in columns.iter().zip(more).enumerate() {
        let (first, second) = (a.load(first), a.load(second));
        let add = |sum: [A::V; 2], factor: f32| {
            let factor = a.splat(factor);
            [a.mul_add(first, factor, sum[0]), a.mul_add(second, factor, sum[1])]
        };
        sum_p = add(sum_p, p[j]);
        sum_q = add(sum_q, q[j]);
        sum_r = add(sum_r, r[j]);
        sum_s = add(sum_s, s[j]);
    }
    [sum_p, sum_q, sum_r, sum_s]
}

/// Σⱼ columns[j]·rhs[j] for one right-hand side. Four partial sums hide the latency of addition;
/// they are added in a fixed order.
#[inline(always)]
pub(crate) fn dot_columns<A: Lanes<N>, const N: usize>(
    a: A,
    columns: &[[f32; N]],
    rhs: &[f32],
) -> A::V {
    let (quads, rest) = columns.as_chunks::<4>();
    let (factors, last) = rhs[..columns.len()].as_chunks::<4>();
    let zero = a.splat(0.0);
    let (mut s_0, mut s_1, mut s_2, mut s_3) = (zero, zero, zero, zero);
    for (quad, factors) in quads.iter().zip(factors) {
        s_0 = a.mul_add(a.load(&quad[0]), a.splat(factors[0]), s_0);
        s_1 = a.mul_add(a.load(&quad[1]), a.splat(factors[1]), s_1);
        s_2 = a.mul_add(a.load(&quad[2]), a.splat(factors[2]), s_2);
        s_3 = a.mul_add(a.load(&quad[3]), a.splat(factors[3]), s_3);
    }
    for (column, &factor) in rest.iter().zip(last) {
        s_0 = a.mul_add(a.load(column), a.splat(factor), s_0);
    }
    a.add(a.add(s_0, s_1), a.add(s_2, s_3))
}
