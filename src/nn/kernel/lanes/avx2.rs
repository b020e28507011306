//! Lanes as AVX registers, with fused multiply-add. The token of `pulp` is the proof that the
//! machine has them.

use std::arch::x86_64::{__m128, __m128i, __m256, __m256d, __m256i, _CMP_GT_OQ};

use pulp::cast;
use pulp::x86::V3;

use super::{Arithmetic, Lanes};

/// x86-64-v3.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(pub(crate) V3);

/// The lanes of one register width: `$set` has its instructions.
macro_rules! lanes {
    (
        $n:literal: $v:ty, $set:ident, splat: $splat:ident, fused: $fused:ident,
        where_positive: $where_positive:ident, exponent: $exponent:ident,
        $($name:ident($($x:ident),+): $instruction:ident),+ $(,)?
    ) => {
        impl Lanes<$n> for Avx2 {
            type V = $v;

            const MANY: bool = true;

            #[inline(always)]
            fn splat(self, value: f32) -> $v {
                self.0.$set.$splat(value)
            }

            #[inline(always)]
            fn load(self, values: &[f32; $n]) -> $v {
                cast(*values)
            }

            #[inline(always)]
            fn store(self, values: $v) -> [f32; $n] {
                cast(values)
            }

            $(#[inline(always)]
            fn $name(self, $($x: $v),+) -> $v {
                self.0.$set.$instruction($($x),+)
            })+

            #[inline(always)]
            fn mul_add(self, x: $v, y: $v, z: $v) -> $v {
                self.0.fma.$fused(x, y, z)
            }

            #[inline(always)]
            fn where_positive(self, x: $v, yes: $v, no: $v) -> $v {
                $where_positive(self.0, x, yes, no)
            }

            #[inline(always)]
            fn exponent(self, shifted: $v) -> $v {
                $exponent(self.0, shifted)
            }
        }
    };
}

lanes!(
    8: __m256, avx, splat: _mm256_set1_ps, fused: _mm256_fmadd_ps,
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
    4: __m128, sse, splat: _mm_set1_ps, fused: _mm_fmadd_ps,
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
