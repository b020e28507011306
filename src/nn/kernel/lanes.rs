//! A few numbers side by side, and what can be done to all of them at once.
//!
//! A kernel is written once against these traits. Left to itself, the compiler keeps an array of
//! sums as separate scalars as soon as a loop carries it, and shuffles them together and apart at
//! each turn; a vector type says that they belong together.

/// The lanes of one register: `$set` has its instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! lanes {
    (
        $isa:ident, $n:literal: $v:ty, $set:ident, splat: $splat:ident, mul_add: $mul_add:ident,
        where_positive: $where_positive:ident, exponent: $exponent:ident,
        $($name:ident($($x:ident),+): $instruction:ident),+ $(,)?
    ) => {
        impl Lanes<$n> for $isa {
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
                $mul_add(self.0, x, y, z)
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

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
pub(crate) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::Sse2;

/// `N` numbers of `f32`.
pub(crate) trait Lanes<const N: usize>: Copy {
    type V: Copy;

    /// Whether there are registers enough to keep eight of them at hand in a loop.
    const MANY: bool;

    fn splat(self, value: f32) -> Self::V;
    fn load(self, values: &[f32; N]) -> Self::V;
    fn store(self, values: Self::V) -> [f32; N];
    fn add(self, x: Self::V, y: Self::V) -> Self::V;
    fn sub(self, x: Self::V, y: Self::V) -> Self::V;
    fn mul(self, x: Self::V, y: Self::V) -> Self::V;
    fn div(self, x: Self::V, y: Self::V) -> Self::V;
    fn min(self, x: Self::V, y: Self::V) -> Self::V;
    fn max(self, x: Self::V, y: Self::V) -> Self::V;
    fn sqrt(self, x: Self::V) -> Self::V;
    /// x·y + z, rounded once or twice, as the machine does it in one go.
    fn mul_add(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
    /// `yes` where x > 0, `no` elsewhere.
    fn where_positive(self, x: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// 2ⁿ for integers −126 ≤ n ≤ 127 that stand in the low bits of the mantissa.
    fn exponent(self, shifted: Self::V) -> Self::V;

    #[inline(always)]
    fn clamp(self, x: Self::V, low: f32, high: f32) -> Self::V {
        self.min(self.max(x, self.splat(low)), self.splat(high))
    }
}

/// Everything a kernel needs from an instruction set.
pub(crate) trait Arithmetic: Lanes<4> + Lanes<8> {
    /// Four numbers of `f64`.
    type D4: Copy;

    fn splat_f64(self, value: f64) -> Self::D4;
    fn load_f64(self, values: &[f64; 4]) -> Self::D4;
    fn store_f64(self, values: Self::D4) -> [f64; 4];
    fn widen(self, values: &[f32; 4]) -> Self::D4;
    fn mul_add_f64(self, x: Self::D4, y: Self::D4, z: Self::D4) -> Self::D4;

    /// The sum, in a fixed order.
    #[inline(always)]
    fn sum_f64(self, values: Self::D4) -> f64 {
        let [a, b, c, d] = self.store_f64(values);
        (a + b) + (c + d)
    }
}
