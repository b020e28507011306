//! Lanes as SSE registers, which every `x86_64` machine has. Eight lanes are two registers; sums of
//! `f64` are left to the compiler.

use std::arch::x86_64::{__m128, __m128i};

use pulp::cast;
use pulp::x86::V1;

use super::{Arithmetic, Lanes, Portable};

/// x86-64, the baseline. The compiler's own use of these registers ([`Portable`]) takes 6 % longer for
/// a client's step at 4 sensors and 17 % at 38: `cargo test --release --lib a_step_is_timed --
/// --nocapture`. A step of learning takes it 2.7 to 2.9 times the instructions (counted by callgrind).
#[derive(Clone, Copy)]
pub(crate) struct Sse2(pub(crate) V1);

lanes!(
    Sse2, 4: __m128, sse, splat: _mm_set1_ps, mul_add: mul_add,
    where_positive: where_positive, exponent: exponent,
    add(x, y): _mm_add_ps,
    sub(x, y): _mm_sub_ps,
    mul(x, y): _mm_mul_ps,
    div(x, y): _mm_div_ps,
    min(x, y): _mm_min_ps,
    max(x, y): _mm_max_ps,
    sqrt(x): _mm_sqrt_ps,
);

#[inline(always)]
fn mul_add(v1: V1, x: __m128, y: __m128, z: __m128) -> __m128 {
    v1.sse._mm_add_ps(v1.sse._mm_mul_ps(x, y), z)
}

#[inline(always)]
fn where_positive(v1: V1, x: __m128, yes: __m128, no: __m128) -> __m128 {
    let positive = v1.sse._mm_cmpgt_ps(x, v1.sse._mm_setzero_ps());
    v1.sse._mm_or_ps(v1.sse._mm_and_ps(positive, yes), v1.sse._mm_andnot_ps(positive, no))
}

#[inline(always)]
fn exponent(v1: V1, shifted: __m128) -> __m128 {
    let bits: __m128i = cast(shifted);
    cast(v1.sse2._mm_slli_epi32::<23>(v1.sse2._mm_add_epi32(bits, v1.sse2._mm_set1_epi32(127))))
}

/// Four lanes of eight.
#[inline(always)]
fn half(values: &[f32; 8], which: usize) -> &[f32; 4] {
    &values.as_chunks::<4>().0[which]
}

macro_rules! by_halves {
    ($($name:ident($($x:ident),+)),+ $(,)?) => {$(
        #[inline(always)]
        fn $name(self, $($x: [__m128; 2]),+) -> [__m128; 2] {
            [Lanes::<4>::$name(self, $($x[0]),+), Lanes::<4>::$name(self, $($x[1]),+)]
        }
    )+};
}

impl Lanes<8> for Sse2 {
    type V = [__m128; 2];

    /// Sixteen registers hold eight sums of four lanes, not of eight, and the factors too.
    const MANY: bool = false;

    #[inline(always)]
    fn splat(self, value: f32) -> [__m128; 2] {
        [self.0.sse._mm_set1_ps(value); 2]
    }

    #[inline(always)]
    fn load(self, values: &[f32; 8]) -> [__m128; 2] {
        [cast(*half(values, 0)), cast(*half(values, 1))]
    }

    #[inline(always)]
    fn store(self, values: [__m128; 2]) -> [f32; 8] {
        cast(values)
    }

    by_halves!(
        add(x, y),
        sub(x, y),
        mul(x, y),
        div(x, y),
        min(x, y),
        max(x, y),
        sqrt(x),
        mul_add(x, y, z),
        where_positive(x, yes, no),
        exponent(shifted),
    );
}

impl Arithmetic for Sse2 {
    type D4 = [f64; 4];

    #[inline(always)]
    fn splat_f64(self, value: f64) -> [f64; 4] {
        Portable.splat_f64(value)
    }

    #[inline(always)]
    fn load_f64(self, values: &[f64; 4]) -> [f64; 4] {
        Portable.load_f64(values)
    }

    #[inline(always)]
    fn store_f64(self, values: [f64; 4]) -> [f64; 4] {
        Portable.store_f64(values)
    }

    #[inline(always)]
    fn widen(self, values: &[f32; 4]) -> [f64; 4] {
        Portable.widen(values)
    }

    #[inline(always)]
    fn mul_add_f64(self, x: [f64; 4], y: [f64; 4], z: [f64; 4]) -> [f64; 4] {
        Portable.mul_add_f64(x, y, z)
    }
}
