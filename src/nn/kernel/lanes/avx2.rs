//! Lanes as AVX registers, with fused multiply-add. The token of `pulp` is the proof that the
//! machine has them.

use std::arch::x86_64::{__m128, __m128i, __m256, __m256d, __m256i, _CMP_GT_OQ};

use pulp::cast;
use pulp::x86::V3;

use super::{Arithmetic, Lanes};

/// x86-64-v3.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(pub(crate) V3);

lanes!(
    Avx2, 8: __m256, avx, splat: _mm256_set1_ps, mul_add: mul_add_8,
    where_positive: where_positive_8, exponent: exponent_8,
    add(x, y): _mm256_add_ps,
    sub(x, y): _mm256_sub_ps,
    mul(x, y): _mm256_mul_ps,
    div(x, y): _mm256_div_ps,
    min(x, y): _mm256_min_ps,
    max(x, y): _mm256_max_ps,
    sqrt(x): _mm256_sqrt_ps,
);

lanes!(
    Avx2, 4: __m128, sse, splat: _mm_set1_ps, mul_add: mul_add_4,
    where_positive: where_positive_4, exponent: exponent_4,
    add(x, y): _mm_add_ps,
    sub(x, y): _mm_sub_ps,
    mul(x, y): _mm_mul_ps,
    div(x, y): _mm_div_ps,
    min(x, y): _mm_min_ps,
    max(x, y): _mm_max_ps,
    sqrt(x): _mm_sqrt_ps,
);

#[inline(always)]
fn mul_add_8(v3: V3, x: __m256, y: __m256, z: __m256) -> __m256 {
    v3.fma._mm256_fmadd_ps(x, y, z)
}

#[inline(always)]
fn mul_add_4(v3: V3, x: __m128, y: __m128, z: __m128) -> __m128 {
    v3.fma._mm_fmadd_ps(x, y, z)
}

#[inline(always)]
fn where_positive_8(v3: V3, x: __m256, yes: __m256, no: __m256) -> __m256 {
    let positive = v3.avx._mm256_cmp_ps::<_CMP_GT_OQ>(x, v3.avx._mm256_setzero_ps());
    v3.avx._mm256_blendv_ps(no, yes, positive)
}

#[inline(always)]
fn where_positive_4(v3: V3, x: __m128, yes: __m128, no: __m128) -> __m128 {
    v3.sse4_1._mm_blendv_ps(no, yes, v3.sse._mm_cmpgt_ps(x, v3.sse._mm_setzero_ps()))
}

#[inline(always)]
fn exponent_8(v3: V3, shifted: __m256) -> __m256 {
    let bits: __m256i = cast(shifted);
    let biased = v3.avx2._mm256_add_epi32(bits, v3.avx._mm256_set1_epi32(127));
    cast(v3.avx2._mm256_slli_epi32::<23>(biased))
}

#[inline(always)]
fn exponent_4(v3: V3, shifted: __m128) -> __m128 {
    let bits: __m128i = cast(shifted);
    cast(v3.sse2._mm_slli_epi32::<23>(v3.sse2._mm_add_epi32(bits, v3.sse2._mm_set1_epi32(127))))
}

impl Arithmetic for Avx2 {
    type D4 = __m256d;

    #[inline(always)]
    fn splat_f64(self, value: f64) -> __m256d {
        self.0.avx._mm256_set1_pd(value)
    }

    #[inline(always)]
    fn load_f64(self, values: &[f64; 4]) -> __m256d {
        cast(*values)
    }

    #[inline(always)]
    fn store_f64(self, values: __m256d) -> [f64; 4] {
        cast(values)
    }

    #[inline(always)]
    fn widen(self, values: &[f32; 4]) -> __m256d {
        self.0.avx._mm256_cvtps_pd(cast(*values))
    }

    #[inline(always)]
    fn mul_add_f64(self, x: __m256d, y: __m256d, z: __m256d) -> __m256d {
        self.0.fma._mm256_fmadd_pd(x, y, z)
    }
}
