//! Lanes as AVX registers, with fused multiply-add. The token of `pulp` is the proof that the
//! machine has them.

use std::arch::x86_64::{__m128, __m128i, __m256, __m256d, __m256i, _CMP_GT_OQ};

use pulp::cast;
use pulp::x86::V3;

use super::{Arithmetic, Lanes};

/// x86-64-v3.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(pub(crate) V3);

impl Lanes<8> for Avx2 {
    type V = __m256;

    const MANY: bool = true;

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        self.0.avx._mm256_set1_ps(value)
    }

    #[inline(always)]
    fn load(self, values: &[f32; 8]) -> __m256 {
        cast(*values)
    }

    #[inline(always)]
    fn store(self, values: __m256) -> [f32; 8] {
        cast(values)
    }

    #[inline(always)]
    fn add(self, x: __m256, y: __m256) -> __m256 {
        self.0.avx._mm256_add_ps(x, y)
    }

    #[inline(always)]
    fn sub(self, x: __m256, y: __m256) -> __m256 {
        self.0.avx._mm256_sub_ps(x, y)
    }

    #[inline(always)]
    fn mul(self, x: __m256, y: __m256) -> __m256 {
        self.0.avx._mm256_mul_ps(x, y)
    }

    #[inline(always)]
    fn div(self, x: __m256, y: __m256) -> __m256 {
        self.0.avx._mm256_div_ps(x, y)
    }

    #[inline(always)]
    fn min(self, x: __m256, y: __m256) -> __m256 {
        self.0.avx._mm256_min_ps(x, y)
    }

    #[inline(always)]
    fn max(self, x: __m256, y: __m256) -> __m256 {
        self.0.avx._mm256_max_ps(x, y)
    }

    #[inline(always)]
    fn sqrt(self, x: __m256) -> __m256 {
        self.0.avx._mm256_sqrt_ps(x)
    }

    #[inline(always)]
    fn mul_add(self, x: __m256, y: __m256, z: __m256) -> __m256 {
        self.0.fma._mm256_fmadd_ps(x, y, z)
    }

    #[inline(always)]
    fn where_positive(self, x: __m256, yes: __m256, no: __m256) -> __m256 {
        let avx = self.0.avx;
        let positive = avx._mm256_cmp_ps::<_CMP_GT_OQ>(x, avx._mm256_setzero_ps());
        avx._mm256_blendv_ps(no, yes, positive)
    }

    #[inline(always)]
    fn exponent(self, shifted: __m256) -> __m256 {
        let avx2 = self.0.avx2;
        let bits: __m256i = cast(shifted);
        let biased = avx2._mm256_add_epi32(bits, self.0.avx._mm256_set1_epi32(127));
        cast(avx2._mm256_slli_epi32::<23>(biased))
    }
}

impl Lanes<4> for Avx2 {
    type V = __m128;

    const MANY: bool = true;

    #[inline(always)]
    fn splat(self, value: f32) -> __m128 {
        self.0.sse._mm_set1_ps(value)
    }

    #[inline(always)]
    fn load(self, values: &[f32; 4]) -> __m128 {
        cast(*values)
    }

    #[inline(always)]
    fn store(self, values: __m128) -> [f32; 4] {
        cast(values)
    }

    #[inline(always)]
    fn add(self, x: __m128, y: __m128) -> __m128 {
        self.0.sse._mm_add_ps(x, y)
    }

    #[inline(always)]
    fn sub(self, x: __m128, y: __m128) -> __m128 {
        self.0.sse._mm_sub_ps(x, y)
    }

    #[inline(always)]
    fn mul(self, x: __m128, y: __m128) -> __m128 {
        self.0.sse._mm_mul_ps(x, y)
    }

    #[inline(always)]
    fn div(self, x: __m128, y: __m128) -> __m128 {
        self.0.sse._mm_div_ps(x, y)
    }

    #[inline(always)]
    fn min(self, x: __m128, y: __m128) -> __m128 {
        self.0.sse._mm_min_ps(x, y)
    }

    #[inline(always)]
    fn max(self, x: __m128, y: __m128) -> __m128 {
        self.0.sse._mm_max_ps(x, y)
    }

    #[inline(always)]
    fn sqrt(self, x: __m128) -> __m128 {
        self.0.sse._mm_sqrt_ps(x)
    }

    #[inline(always)]
    fn mul_add(self, x: __m128, y: __m128, z: __m128) -> __m128 {
        self.0.fma._mm_fmadd_ps(x, y, z)
    }

    #[inline(always)]
    fn where_positive(self, x: __m128, yes: __m128, no: __m128) -> __m128 {
        let sse = self.0.sse;
        self.0.sse4_1._mm_blendv_ps(no, yes, sse._mm_cmpgt_ps(x, sse._mm_setzero_ps()))
    }

    #[inline(always)]
    fn exponent(self, shifted: __m128) -> __m128 {
        let sse2 = self.0.sse2;
        let bits: __m128i = cast(shifted);
        cast(sse2._mm_slli_epi32::<23>(sse2._mm_add_epi32(bits, sse2._mm_set1_epi32(127))))
    }
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
