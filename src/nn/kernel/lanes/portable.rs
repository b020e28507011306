//! Lanes as plain arrays, on machines for which there is nothing better: the compiler makes of them
//! what the target's baseline has.

use super::{Arithmetic, Lanes};

/// The baseline of the target. A product is rounded before it is added to: a fused one would be a
/// library call on many machines.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

#[inline(always)]
fn zip<const N: usize>(x: [f32; N], y: [f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    let mut out = [0.0; N];
    for lane in 0..N {
        out[lane] = f(x[lane], y[lane]);
    }
    out
}

impl<const N: usize> Lanes<N> for Portable {
    type V = [f32; N];

    const MANY: bool = false;

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
    fn add(self, x: [f32; N], y: [f32; N]) -> [f32; N] {
        zip(x, y, |x, y| x + y)
    }

    #[inline(always)]
    fn sub(self, x: [f32; N], y: [f32; N]) -> [f32; N] {
        zip(x, y, |x, y| x - y)
    }

    #[inline(always)]
    fn mul(self, x: [f32; N], y: [f32; N]) -> [f32; N] {
        zip(x, y, |x, y| x * y)
    }

    #[inline(always)]
    fn div(self, x: [f32; N], y: [f32; N]) -> [f32; N] {
        zip(x, y, |x, y| x / y)
    }

    #[inline(always)]
    fn min(self, x: [f32; N], y: [f32; N]) -> [f32; N] {
        zip(x, y, |x, y| if x < y { x } else { y })
    }

    #[inline(always)]
    fn max(self, x: [f32; N], y: [f32; N]) -> [f32; N] {
        zip(x, y, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    fn sqrt(self, x: [f32; N]) -> [f32; N] {
        x.map(f32::sqrt)
    }

    #[inline(always)]
    fn mul_add(self, x: [f32; N], y: [f32; N], z: [f32; N]) -> [f32; N] {
        let mut out = z;
        for lane in 0..N {
            out[lane] += x[lane] * y[lane];
        }
        out
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
    fn exponent(self, mut shifted: [f32; N]) -> [f32; N] {
        for x in &mut shifted {
            *x = f32::from_bits(x.to_bits().wrapping_add(127) << 23);
        }
        shifted
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
        let mut out = [0.0; 4];
        for lane in 0..4 {
            out[lane] = f64::from(values[lane]);
        }
        out
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
