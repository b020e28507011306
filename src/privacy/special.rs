//! The few special functions that privacy accounting stands on, to nearly full double precision.
//!
//! It knows numbers only, and nothing of privacy.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

/// Chebyshev coefficients of (1 + 2x)·erfcx(x) in y = (x − 4)/(x + 4), y ∈ [−1, 1].
/// The form is that of Shepherd and Laframboise (Math. Comp. 36, 1981); the coefficients were
/// computed anew with 45 digits. The first one left out is below 2e-18.
const ERFCX: [f64; 26] = [
    1.177_483_200_537_448_7,
    -0.007_260_796_620_301_901,
    -0.081_265_123_236_185,
    0.060_092_128_041_222_25,
    -0.028_753_935_580_276_66,
    0.010_595_663_363_472_86,
    -0.003_136_927_294_554_264,
    0.000_745_649_437_253_618_4,
    -0.000_136_969_650_301_005_4,
    1.718_386_160_030_093_7e-5,
    -7.158_364_623_450_346e-7,
    -2.426_139_944_244_953_4e-7,
    5.576_570_939_570_356_6e-8,
    -2.105_786_951_380_949_4e-9,
    -1.171_788_935_188_495_7e-9,
    1.909_835_517_245_669e-10,
    1.408_871_764_208_814_3e-11,
    -6.901_108_320_480_801_4e-12,
    9.167_958_364_112_589e-14,
    2.145_450_828_655_580_5e-13,
    -1.471_657_502_699_858e-14,
    -6.668_675_118_758_843_5e-15,
    7.504_598_509_990_733e-16,
    2.220_093_006_771_809_2e-16,
    -3.170_489_894_631_432e-17,
    -8.193_570_300_415_512e-18,
];

/// The scaled complementary error function e^{x²}·erfc(x): it neither under- nor overflows for
/// x ≥ 0, which is what keeps the tails of large compositions apart.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 * (x * x).exp() - erfcx(-x);
    }
    let [scaled] = erfcx_each([x]);
    scaled
}

/// [`erfcx`] of several numbers, none of them negative: the same bits as one by one. Every term of the
/// sum waits for the one before, so that several sums at a time take hardly longer than one.
pub(crate) fn erfcx_each<const N: usize>(x: [f64; N]) -> [f64; N] {
    let y = x.map(|x| (x - 4.0) / (x + 4.0));
    let (mut above, mut here) = ([0.0; N], [0.0; N]);
    for &c in ERFCX[1..].iter().rev() {
        for ((above, here), y) in above.iter_mut().zip(&mut here).zip(&y) {
            (*above, *here) = (*here, 2.0 * y * *here - *above + c);
        }
    }
    std::array::from_fn(|i| {
        if x[i] > 1e15 {
            return 1.0 / (x[i] * PI.sqrt());
        }
        (y[i] * here[i] - above[i] + ERFCX[0]) / (1.0 + 2.0 * x[i])
    })
}

/// e^{−x²} with the rounding error of x² put back: at x = 26 the naive form loses three digits.
fn exp_minus_square(x: f64) -> f64 {
    let square = x * x;
    let lost = x.mul_add(x, -square);
    (-square).exp() * (1.0 - lost)
}

/// The complementary error function.
pub(crate) fn erfc(x: f64) -> f64 {
    erfc_of(x, erfcx(x.abs()))
}

/// The same, with the scaled function of |x| at hand.
fn erfc_of(x: f64, scaled: f64) -> f64 {
    let of_size = |size: f64| if size > 27.5 { 0.0 } else { exp_minus_square(size) * scaled };
    if x < 0.0 { 2.0 - of_size(-x) } else { of_size(x) }
}

/// The error function, accurate also where erfc is close to one.
pub(crate) fn erf(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return 1.0 - erfc(x);
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-17 * sum.abs() {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

/// The standard normal distribution function Φ.
#[cfg(test)]
pub(crate) fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z * FRAC_1_SQRT_2)
}

/// The standard normal distribution function Φ, with the scaled complementary error function of |z|/√2 at
/// hand.
pub(crate) fn normal_cdf_of(z: f64, scaled: f64) -> f64 {
    0.5 * erfc_of(-z * FRAC_1_SQRT_2, scaled)
}

/// ln n! minus Stirling's formula: the part of ln n! that must not be lost by cancellation.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        let ln_factorial = (2..=n as u64).map(|k| k as f64).product::<f64>().ln();
        return if n == 0.0 {
            0.0
        } else {
            ln_factorial - (0.5 * (2.0 * PI * n).ln() + n * n.ln() - n)
        };
    }
    let r = 1.0 / (n * n);
    (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r * (1.0 / 1188.0)))))
        / n
}

/// x ln(x/m) + m − x, without cancellation when x is near m.
fn deviance(x: f64, m: f64) -> f64 {
    if (x - m).abs() > 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let v = (x - m) / (x + m);
    let mut sum = (x - m) * v;
    let mut power = 2.0 * x * v;
    for j in 1..1000 {
        power *= v * v;
        let next = sum + power / f64::from(2 * j + 1);
        if (next - sum).abs() <= 1e-17 * sum.abs() {
            break;
        }
        sum = next;
    }
    sum
}

/// ln of the probability of `k` successes in `n` trials of probability `p = 1 − q`.
///
/// Loader's saddle-point form (2000): the error does not grow with `n`, unlike that of
/// differences of ln Γ. Both `p` and `q` are given because the small one must be exact.
pub(crate) fn ln_binomial_pmf(n: u64, k: u64, p: f64, q: f64) -> f64 {
    debug_assert!(k <= n);
    let (size, hits) = (n as f64, k as f64);
    let misses = (n - k) as f64;
    if k == 0 {
        return size * if p < 0.1 { (-p).ln_1p() } else { q.ln() };
    }
    if k == n {
        return size * if q < 0.1 { (-q).ln_1p() } else { p.ln() };
    }
    stirling_error(size)
        - stirling_error(hits)
        - stirling_error(misses)
        - deviance(hits, size * p)
        - deviance(misses, size * q)
        + 0.5 * (size / (2.0 * PI * hits * misses)).ln()
}

/// ln(1 + eˣ) without overflow.
pub(crate) fn ln_1p_exp(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// ln cosh x without overflow.
pub(crate) fn ln_cosh(x: f64) -> f64 {
    ln_1p_exp(-2.0 * x.abs()) + x.abs() - LN_2
}

/// Roots are found to this relative width: well below any figure shown, well above the rounding
/// noise of the functions searched.
const ROOT_TOLERANCE: f64 = 1e-12;

/// Where the falling function `f` crosses zero between `low` (f ≥ 0) and `high` (f ≤ 0).
///
/// Regula falsi with the Illinois rule (an end that stays twice counts half), and a bisection
/// whenever three steps did not halve the bracket. The end with f ≤ 0 is returned: for a
/// privacy loss that is the side of caution.
pub(crate) fn falling_root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut f_low, mut f_high) = (f(low), f(high));
    if f_low <= 0.0 {
        return low;
    }
    let mut width_then = high - low;
    let mut moved_low = None;
    for round in 0..200 {
        let width = high - low;
        if width <= ROOT_TOLERANCE * high.abs().max(low.abs()) {
            break;
        }
        let slow = round % 3 == 2 && width > 0.5 * width_then;
        if round % 3 == 2 {
            width_then = width;
        }
        let guess = low + width * (f_low / (f_low - f_high));
        let x = if slow || !guess.is_finite() || guess <= low || guess >= high {
            low + 0.5 * width
        } else {
            guess
        };
        if x <= low || x >= high {
            break;
        }
        let y = f(x);
        let moves_low = y > 0.0;
        let again = moved_low == Some(moves_low);
        moved_low = Some(moves_low);
        if moves_low {
            (low, f_low) = (x, y);
            if again {
                f_high *= 0.5;
            }
        } else {
            (high, f_high) = (x, y);
            if again {
                f_low *= 0.5;
            }
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, relative: f64) {
        assert!(
            (found - expected).abs() <= relative * expected.abs(),
            "found {found:e}, expected {expected:e}"
        );
    }

    #[test]
    fn erfc_and_erfcx_agree_with_forty_digit_values() {
        for (x, plain, scaled) in [
            (0.0, 1.0, 1.0),
            (1e-10, 0.999_999_999_887_162, 0.999_999_999_887_162),
            (0.1, 0.887_537_083_981_715, 0.896_456_979_969_126_7),
            (0.5, 0.479_500_122_186_953_5, 0.615_690_344_192_925_9),
            (1.0, 0.157_299_207_050_285_13, 0.427_583_576_155_807),
            (1.5, 0.033_894_853_524_689_274, 0.321_585_416_454_317_5),
            (2.0, 0.004_677_734_981_047_266, 0.255_395_676_310_505_75),
            (3.0, 2.209_049_699_858_544e-5, 0.179_001_151_181_389_96),
            (5.0, 1.537_459_794_428_035e-12, 0.110_704_637_733_068_63),
            (8.0, 1.122_429_717_298_292_6e-29, 0.069_985_166_200_880_92),
            (10.0, 2.088_487_583_762_545e-45, 0.056_140_992_743_822_59),
            (26.0, 5.663_192_408_856_143e-296, 0.021_683_584_850_562_907),
            (30.0, 0.0, 0.018_795_888_861_416_75),
            (1e3, 0.0, 0.000_564_189_301_453_387_6),
            (1e8, 0.0, 5.641_895_835_477_562e-9),
        ] {
            close(erfc(x), plain, 1e-15);
            close(erfcx(x), scaled, 1e-15);
        }
        for (x, expected) in [
            (-0.3, 1.328_626_759_459_127_4),
            (-1.0, 1.842_700_792_949_714_8),
            (-2.5, 1.999_593_047_982_555),
            (-6.0, 2.0),
        ] {
            close(erfc(x), expected, 1e-15);
        }
    }

    #[test]
    fn erf_keeps_its_digits_near_zero_and_joins_smoothly() {
        close(erf(1e-9), 2e-9 / PI.sqrt(), 1e-15);
        close(erf(0.5), 1.0 - 0.479_500_122_186_953_5, 1e-15);
        close(erf(0.500_000_000_1), erf(0.5), 1e-9);
        close(erf(-0.25), -erf(0.25), 1e-16);
    }

    #[test]
    fn binomial_probabilities_hold_their_digits_for_a_billion_trials() {
        for (n, k, p, expected) in [
            (10, 3, 0.3, -1.321_151_277_766_888_6),
            (100, 0, 0.01, -1.005_033_585_350_144_2),
            (100, 100, 0.01, -460.517_018_598_809_16),
            (86_400, 40_000, 0.475, -31.028_856_073_037_105),
            (1_000_000_000, 500_012_345, 0.5, -10.892_222_321_094_103),
            (1, 0, 0.25, -0.287_682_072_451_780_9),
        ] {
            close(ln_binomial_pmf(n, k, p, 1.0 - p), expected, 1e-13);
        }
        let total: f64 = (0..=50).map(|k| ln_binomial_pmf(50, k, 0.17, 0.83).exp()).sum();
        close(total, 1.0, 1e-13);
    }

    #[test]
    fn a_root_is_found_from_the_cautious_side() {
        let f = |x: f64| 2.0 - x * x;
        let root = falling_root(0.0, 100.0, f);
        close(root, 2.0_f64.sqrt(), 1e-12);
        assert!(f(root) <= 0.0);
        assert_eq!(falling_root(3.0, 4.0, f).to_bits(), 3.0_f64.to_bits());
    }

    #[test]
    fn ln_cosh_neither_overflows_nor_cancels() {
        close(ln_cosh(1000.0), 1000.0 - LN_2, 1e-15);
        close(ln_cosh(-0.5), 0.5_f64.cosh().ln(), 1e-14);
    }
}
