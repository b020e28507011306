//! tanh, sigmoid and SELU to 3e-7 of the exact value, without branches, so that a loop over lanes
//! becomes vector instructions.

use super::lanes::Lanes;

/// λ of SELU.
pub(crate) const SELU_SCALE: f32 = 1.050_701;
/// λ·α of SELU.
pub(crate) const SELU_SCALE_ALPHA: f32 = 1.758_099_3;

#[inline(always)]
fn horner<A: Lanes<N>, const N: usize, const K: usize>(
    a: A,
    coefficients: [f32; K],
    x: A::V,
) -> A::V {
    let mut sum = a.splat(coefficients[K - 1]);
    for &c in coefficients[..K - 1].iter().rev() {
        sum = a.mul_add(sum, x, a.splat(c));
    }
    sum
}

/// eˣ for |x| ≤ 87; arguments beyond are taken as ±87.
///
/// x = n ln 2 + f with |f| ≤ ln 2 / 2: a polynomial in f (Cephes), then n into the exponent bits.
#[inline(always)]
fn exp<A: Lanes<N>, const N: usize>(a: A, x: A::V) -> A::V {
    /// 1.5·2²³: adding it leaves the integer part in the low bits of the mantissa.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, so that f keeps all its digits.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const POLYNOMIAL: [f32; 6] =
        [0.5, 1.666_666_5e-1, 4.166_579_6e-2, 8.333_452e-3, 1.398_2e-3, 1.987_569_1e-4];
    let x = a.clamp(x, -87.0, 87.0);
    let shifted = a.mul_add(x, a.splat(std::f32::consts::LOG2_E), a.splat(ROUND));
    let n = a.sub(shifted, a.splat(ROUND));
    let f = a.mul_add(n, a.splat(-LN_2_HIGH), x);
    let f = a.mul_add(n, a.splat(-LN_2_LOW), f);
    let series = a.mul_add(horner(a, POLYNOMIAL, f), a.mul(f, f), f);
    a.mul(a.add(series, a.splat(1.0)), a.exponent(shifted))
}

/// σ(x) = 1/(1 + e⁻ˣ).
#[inline(always)]
pub(crate) fn sigmoid<A: Lanes<N>, const N: usize>(a: A, x: A::V) -> A::V {
    let one = a.splat(1.0);
    a.div(one, a.add(one, exp(a, a.sub(a.splat(0.0), x))))
}

/// tanh x = 2σ(2x) − 1. A rational approximation is a little faster and keeps more digits near
/// zero, but without fused products it is 4e-7 from the exact value, and this is 2e-7.
#[inline(always)]
pub(crate) fn tanh<A: Lanes<N>, const N: usize>(a: A, x: A::V) -> A::V {
    let e = exp(a, a.mul(x, a.splat(-2.0)));
    a.sub(a.div(a.splat(2.0), a.add(a.splat(1.0), e)), a.splat(1.0))
}

/// SELU and its derivative. One exponential serves both: below zero selu′ = selu + λα, above zero
/// it adds nothing to λx.
#[inline(always)]
pub(crate) fn selu<A: Lanes<N>, const N: usize>(a: A, x: A::V) -> (A::V, A::V) {
    let scale = a.splat(SELU_SCALE);
    let tail = a.mul(a.splat(SELU_SCALE_ALPHA), exp(a, a.min(x, a.splat(0.0))));
    let below = a.sub(tail, a.splat(SELU_SCALE_ALPHA));
    let value = a.mul_add(scale, a.max(x, a.splat(0.0)), below);
    (value, a.where_positive(x, scale, tail))
}

#[cfg(test)]
mod tests {
    use super::super::isa::{Isa, Kernel};
    use super::super::lanes::{Arithmetic, Portable};
    use super::*;

    /// Largest error of tanh, sigmoid, SELU and its derivative, with `N` lanes.
    struct Sweep<const N: usize>;

    impl<const N: usize> Sweep<N> {
        #[inline(always)]
        fn worst<A: Lanes<N>>(a: A) -> [f64; 4] {
            let mut worst = [0.0_f64; 4];
            for start in (0..480_000).step_by(N) {
                let x: [f32; N] = std::array::from_fn(|lane| (start + lane) as f32 * 5e-5 - 12.0);
                let v = a.load(&x);
                let (value, slope) = selu(a, v);
                let found = [tanh(a, v), sigmoid(a, v), value, slope].map(|v| a.store(v));
                for lane in 0..N {
                    for (k, exact) in exact(f64::from(x[lane])).into_iter().enumerate() {
                        let error = (f64::from(found[k][lane]) - exact).abs();
                        worst[k] = worst[k].max(error / exact.abs().max(1.0));
                    }
                }
            }
            worst
        }
    }

    fn exact(x: f64) -> [f64; 4] {
        let lambda = 1.050_700_987_355_480_5;
        let lambda_alpha = lambda * 1.673_263_242_354_377_2;
        let (selu, slope) = if x > 0.0 {
            (lambda * x, lambda)
        } else {
            (lambda_alpha * x.exp_m1(), lambda_alpha * x.exp())
        };
        [x.tanh(), 1.0 / (1.0 + (-x).exp()), selu, slope]
    }

    impl Kernel for Sweep<4> {
        type Output = [f64; 4];

        #[inline(always)]
        fn run<A: Arithmetic>(self, a: A) -> [f64; 4] {
            Self::worst(a)
        }
    }

    impl Kernel for Sweep<8> {
        type Output = [f64; 4];

        #[inline(always)]
        fn run<A: Arithmetic>(self, a: A) -> [f64; 4] {
            Self::worst(a)
        }
    }

    #[test]
    fn every_activation_is_within_3e_7_of_the_exact_value_on_every_instruction_set() {
        for isa in Isa::available() {
            for worst in [isa.run(Sweep::<4>), isa.run(Sweep::<8>)] {
                assert!(worst.iter().all(|&w| w <= 3e-7), "{}: {worst:?}", isa.name());
            }
        }
    }

    #[test]
    fn activations_saturate_on_huge_and_infinite_arguments() {
        for x in [1e3, 1e30, f32::MAX, f32::INFINITY] {
            let (up, down) = ([x; 4], [-x; 4]);
            assert!((tanh(Portable, up)[0] - 1.0).abs() <= 3e-7);
            assert!((tanh(Portable, down)[0] + 1.0).abs() <= 3e-7);
            assert!((sigmoid(Portable, up)[0] - 1.0).abs() <= 3e-7);
            assert!(sigmoid(Portable, down)[0].abs() <= 3e-7);
            assert!((selu(Portable, down).0[0] + SELU_SCALE_ALPHA).abs() <= 3e-7);
        }
    }

    #[test]
    fn selu_and_tanh_keep_zero() {
        let zero = [0.0_f32; 4];
        let found = [tanh(Portable, zero), selu(Portable, zero).0, sigmoid(Portable, zero)];
        assert_eq!(found.map(|lanes| lanes[0].to_bits()), [0.0, 0.0, 0.5].map(f32::to_bits));
    }
}
