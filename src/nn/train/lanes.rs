//! Eight windows side by side: the loops a compiler turns into vector instructions by itself. All are
//! inlined, so that [`Isa::vectorise`](crate::nn::kernel::isa::Isa::vectorise) can compile them.

use crate::nn::cell::Real;

/// Windows side by side: one to four registers on any machine.
pub(crate) const LANES: usize = 8;

/// One f32 per window.
pub(crate) type Lane = [f32; LANES];
/// One f64 per window.
pub(crate) type Wide = [f64; LANES];

pub(crate) const ZERO: Lane = [0.0; LANES];
/// Nothing yet, in f64.
pub(crate) const WIDE_ZERO: Wide = [0.0; LANES];

/// sum += weight · value.
#[inline(always)]
pub(crate) fn accumulate(sum: &mut Lane, weight: f32, value: &Lane) {
    for l in 0..LANES {
        sum[l] += weight * value[l];
    }
}

/// sum += a · b.
#[inline(always)]
pub(crate) fn accumulate_product<T: Real>(sum: &mut [T; LANES], a: &[T; LANES], b: &[T; LANES]) {
    for l in 0..LANES {
        sum[l] = sum[l] + a[l] * b[l];
    }
}

/// The same numbers in f64.
#[inline(always)]
pub(crate) fn widen(lane: &Lane) -> Wide {
    lane.map(f64::from)
}

/// output = W·input + bias, W row-major.
#[inline(always)]
pub(crate) fn affine(weight: &[f32], bias: &[f32], input: &[Lane], output: &mut [Lane]) {
    for ((row, &b), out) in weight.chunks_exact(input.len()).zip(bias).zip(output) {
        let mut sum = [b; LANES];
        for (&w, value) in row.iter().zip(input) {
            accumulate(&mut sum, w, value);
        }
        *out = sum;
    }
}

/// Back through [`affine`]: input += Wᵀ·output.
#[inline(always)]
pub(crate) fn add_transposed(weight: &[f32], output: &[Lane], input: &mut [Lane]) {
    for (row, out) in weight.chunks_exact(input.len()).zip(output) {
        for (&w, sum) in row.iter().zip(input.iter_mut()) {
            accumulate(sum, w, out);
        }
    }
}

/// Back through [`affine`]: W += output·inputᵀ, one sum per weight and window.
#[inline(always)]
pub(crate) fn add_outer(weight: &mut [Lane], output: &[Lane], input: &[Lane]) {
    for (row, out) in weight.chunks_exact_mut(input.len()).zip(output) {
        for (sum, value) in row.iter_mut().zip(input) {
            accumulate_product(sum, out, value);
        }
    }
}
