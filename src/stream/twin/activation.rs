//! The squashing functions of the networks, over whole slices so that they vectorise.
//!
//! They rest on an exponential of plain arithmetic: several times faster than the library's in a
//! loop, and the same bits on every machine. They must not know which gate they serve.

/// Every entry becomes its logistic function.
#[inline(always)]
pub(super) fn sigmoid(slice: &mut [f64]) {
    for x in slice {
        *x = 1.0 / (1.0 + exp(-*x));
    }
}

/// Every entry becomes its hyperbolic tangent, to an absolute error below 1e-15.
#[inline(always)]
pub(super) fn tanh(slice: &mut [f64]) {
    for x in slice {
        *x = 1.0 - 2.0 / (exp(2.0 * *x) + 1.0);
    }
}

/// eˣ for |x| ≤ 700; beyond that, e^±700.
#[inline(always)]
fn exp(x: f64) -> f64 {
    /// ln 2 in two parts, the first short enough for `n * LN_2_HIGH` to be exact.
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    /// 1.5 · 2⁵²: adding it rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// 1/k!, from k = 12 down to 0.
    const TAYLOR: [f64; 13] = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    // eˣ = 2ⁿ · eʳ with |r| ≤ ½ ln 2, where the series has converged to the last bit.
    let x = x.clamp(-700.0, 700.0);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    TAYLOR.iter().fold(0.0, |sum, c| sum * r + c) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_squashing_functions_agree_with_the_library(x in -800.0..800.0_f64, small in -2.0..2.0_f64) {
            for x in [x, small] {
                let (mut s, mut t) = ([x], [x]);
                sigmoid(&mut s);
                tanh(&mut t);
                prop_assert!((s[0] - 1.0 / (1.0 + (-x).exp())).abs() < 1e-15);
                prop_assert!((t[0] - x.tanh()).abs() < 1e-15);
                if x.abs() < 700.0 {
                    prop_assert!((exp(x) / x.exp() - 1.0).abs() < 1e-15);
                }
            }
        }
    }
}
