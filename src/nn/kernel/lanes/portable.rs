//! Lanes as plain arrays, of which the compiler makes what the target's baseline has.

use super::{Arithmetic, Lanes};

/// The baseline of the target. A product is rounded before it is added to: a fused one would be a
/// library call on many machines.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

macro_rules! by_lane {
    ($($name:ident: |$x:ident, $y:ident| $value:expr),+ $(,)?) => {$(
        #[inline(always)]
        fn $name(self, x: [f32; N], y: [f32; N]) -> [f32; N] {
            let mut out = x;
            for lane in 0..N {
                let ($x, $y) = (x[lane], y[lane]);
                out[lane] = $value;
            }
            out
        }
    )+};
}

impl<const N: usize> Lanes<N> for Portable {
    type V = [f32; N];

    const MANY: bool = false;

    by_lane!(
        add: |x, y| x + y,
        sub: |x, y| x - y,
        mul: |x, y| x * y,
        div: |x, y| x / y,
        min: |x, y| if x < y { x } else { y },
        max: |x, y| if x > y { x } else { y },
    );

    #[inline(always)]
    fn splat(self, value: f32) -> [f32; N] {
        [value; N]
    }

    #[inline(always)]
    fn load(self, values: &[f32; N]) -> [f32; N] {
        *values
    }

    #[inline(always)]
    fn store(self, values: [f32; N]) -> [f32; N] {
        values
    }

    #[inline(always)]
    fn sqrt(self, x: [f32; N]) -> [f32; N] {
        x.map(f32::sqrt)
    }

    #[inline(always)]
    fn mul_add(self, x: [f32; N], y: [f32; N], z: [f32; N]) -> [f32; N] {
        Lanes::<N>::add(self, z, Lanes::<N>::mul(self, x, y))
    }

    #[inline(always)]
    fn where_positive(self, x: [f32; N], yes: [f32; N], no: [f32; N]) -> [f32; N] {
        let mut out = no;
        for lane in 0..N {
            out[lane] = if x[lane] > 0.0 { yes[lane] } else { no[lane] };
        }
        out
    }

    #[inline(always)]
    fn exponent(self, shifted: [f32; N]) -> [f32; N] {
        shifted.map(|x| f32::from_bits(x.to_bits().wrapping_add(127) << 23))
    }
}

impl Arithmetic for Portable {
    type D4 = [f64; 4];

    #[inline(always)]
    fn splat_f64(self, value: f64) -> [f64; 4] {
        [value; 4]
    }

    #[inline(always)]
    fn load_f64(self, values: &[f64; 4]) -> [f64; 4] {
        *values
    }

    #[inline(always)]
    fn store_f64(self, values: [f64; 4]) -> [f64; 4] {
        values
    }

    #[inline(always)]
    fn widen(self, values: &[f32; 4]) -> [f64; 4] {
        values.map(f64::from)
    }

    #[inline(always)]
    fn mul_add_f64(self, x: [f64; 4], y: [f64; 4], z: [f64; 4]) -> [f64; 4] {
        let mut out = z;
        for lane in 0..4 {
            out[lane] += x[lane] * y[lane];
        }
        out
    }
}
