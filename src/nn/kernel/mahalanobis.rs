//! d² = (r − µ)ᵀ Σ⁻¹ (r − µ) (eq. 6): how far a residual is from its nominal distribution.
//!
//! With Σ = L Lᵀ the distance is ‖L⁻¹(r − µ)‖², a sum of squares that cannot become negative.
//!
//! When sensors are missing, the distance is that of the marginal over the sensors present. Its
//! nominal distribution has fewer degrees of freedom, so it is brought back to the scale of all
//! sensors at the same p-value (Wilson and Hilferty's cube-root rule): a threshold keeps its
//! meaning. Without any sensor there is no distance.

use super::gaussian::{FARTHEST, Gaussian};
use super::isa::{Isa, Kernel};
use super::lanes::{Arithmetic, Lanes};
use super::packed::dot_columns;

const LANES: usize = 8;

/// The distance from one nominal distribution.
#[derive(Debug, Clone)]
pub(crate) struct Mahalanobis {
    isa: Isa,
    mean: Vec<f32>,
    /// Σ, row-major.
    covariance: Vec<f64>,
    /// L⁻¹ of all sensors.
    all: Triangle,
    /// L⁻¹ of the sensors that were present at the last step.
    present: Triangle,
    missing: Vec<bool>,
    some_missing: bool,
    deviation: Vec<f32>,
    work: Vec<f64>,
}

/// A lower triangular matrix in blocks of rows; a block holds only the columns that reach it.
#[derive(Debug, Clone)]
struct Triangle(Vec<[f32; LANES]>);

impl Mahalanobis {
    pub(crate) fn new(nominal: &Gaussian) -> Self {
        Self::with_isa(nominal, Isa::detect())
    }

    /// Factorises Σ, for a given instruction set.
    pub(crate) fn with_isa(nominal: &Gaussian, isa: Isa) -> Self {
        let n = nominal.sensors();
        let blocks = n.div_ceil(LANES);
        let columns = (0..blocks).map(|b| columns_of(b, n)).sum();
        let empty = Triangle(vec![[0.0; LANES]; columns]);
        let mut distance = Self {
            isa,
            mean: nominal.mean().iter().map(|&v| v as f32).collect(),
            covariance: nominal.covariance().iter().copied().collect(),
            all: empty.clone(),
            present: empty,
            missing: vec![false; n],
            some_missing: false,
            deviation: vec![0.0; n],
            work: vec![0.0; n * n],
        };
        distance.factorise();
        distance.all = distance.present.clone();
        distance
    }

    pub(crate) fn sensors(&self) -> usize {
        self.mean.len()
    }

    /// d² of a residual; a missing sensor is one whose residual is not finite. Nothing if all are.
    pub(crate) fn squared(&mut self, r: &[f32]) -> Option<f32> {
        debug_assert_eq!(r.len(), self.sensors());
        let present = self.look(r);
        if present == 0 {
            return None;
        }
        let squared = self.isa.run(SumOfSquares { factor: &self.present.0, v: &self.deviation });
        Some(if present == self.sensors() {
            squared
        } else {
            same_p_value(squared, present, self.sensors())
        })
    }

    /// Deviations from the mean, zero where missing; how many sensors are present. The factor
    /// follows when others are present than at the last step.
    fn look(&mut self, r: &[f32]) -> usize {
        let n = self.sensors();
        // Without a branch per sensor, so that the common case is a few vector instructions.
        let whole = r.iter().fold(true, |whole, r| whole & r.is_finite());
        for (deviation, (r, mean)) in self.deviation.iter_mut().zip(r.iter().zip(&self.mean)) {
            *deviation = (r - mean).clamp(-FARTHEST, FARTHEST);
        }
        if whole {
            if self.some_missing {
                self.some_missing = false;
                self.missing.fill(false);
                self.present.0.copy_from_slice(&self.all.0);
            }
            return n;
        }
        let mut changed = false;
        for (i, r) in r.iter().enumerate() {
            let now = !r.is_finite();
            changed |= self.missing[i] != now;
            self.missing[i] = now;
            if now {
                self.deviation[i] = 0.0;
            }
        }
        self.some_missing = true;
        let missing = self.missing.iter().filter(|missing| **missing).count();
        if changed && missing < n {
            self.factorise();
        }
        n - missing
    }

    /// L⁻¹ of the sensors present: a missing sensor becomes an independent one of variance one,
    /// whose deviation is then set to zero.
    fn factorise(&mut self) {
        let n = self.sensors();
        self.work.copy_from_slice(&self.covariance);
        for (i, _) in self.missing.iter().enumerate().filter(|(_, missing)| **missing) {
            for j in 0..n {
                let entry = f64::from(u8::from(i == j));
                self.work[i * n + j] = entry;
                self.work[j * n + i] = entry;
            }
        }
        if !inverse_cholesky(&mut self.work, n) {
            // A principal part of a positive definite matrix is positive definite; should rounding
            // say otherwise, the sensors are taken as independent.
            for i in 0..n {
                for j in 0..n {
                    self.work[i * n + j] =
                        if i == j { self.covariance[i * n + i].sqrt().recip() } else { 0.0 };
                }
            }
        }
        let mut packed = self.present.0.iter_mut();
        for block in 0..n.div_ceil(LANES) {
            for (column, lanes) in (0..columns_of(block, n)).zip(&mut packed) {
                for (lane, value) in lanes.iter_mut().enumerate() {
                    let row = block * LANES + lane;
                    let inside = row < n && column <= row;
                    *value = if inside { self.work[row * n + column] as f32 } else { 0.0 };
                }
            }
        }
    }
}

/// Columns of a lower triangle that reach block `block` of its rows.
#[inline(always)]
fn columns_of(block: usize, n: usize) -> usize {
    ((block + 1) * LANES).min(n)
}

struct SumOfSquares<'a> {
    factor: &'a [[f32; LANES]],
    v: &'a [f32],
}

impl Kernel for SumOfSquares<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<A: Arithmetic>(self, a: A) -> f32 {
        sum_of_squares(a, self.factor, self.v)
    }
}

#[inline(always)]
fn sum_of_squares<A: Lanes<LANES>>(a: A, mut factor: &[[f32; LANES]], v: &[f32]) -> f32 {
    let mut squares = a.splat(0.0);
    for block in 0..v.len().div_ceil(LANES) {
        let (columns, rest) = factor.split_at(columns_of(block, v.len()));
        factor = rest;
        let z = dot_columns(a, columns, v);
        squares = a.mul_add(z, z, squares);
    }
    let s = a.store(squares);
    (((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))).min(f32::MAX)
}

/// L⁻¹ in the lower triangle of the place of Σ = L Lᵀ (row-major); false if Σ is not positive
/// definite. The upper triangle is left as it was.
fn inverse_cholesky(a: &mut [f64], n: usize) -> bool {
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let left = a[i * n + j] - dot;
            if i == j {
                if left.is_nan() || left <= 0.0 {
                    return false;
                }
                a[i * n + i] = left.sqrt();
            } else {
                a[i * n + j] = left / a[j * n + j];
            }
        }
    }
    // Column by column from the left: entry (i, j) of the inverse needs those above it in its
    // column, and the part of row i of L that later columns have not yet replaced.
    for j in 0..n {
        a[j * n + j] = a[j * n + j].recip();
        for i in j + 1..n {
            let dot: f64 = (j..i).map(|k| a[i * n + k] * a[k * n + j]).sum();
            a[i * n + j] = -dot / a[i * n + i];
        }
    }
    true
}

/// The value that a χ² variable of `to` degrees of freedom exceeds as often as one of `from`
/// exceeds `squared`, by the normal approximation of its cube root.
fn same_p_value(squared: f32, from: usize, to: usize) -> f32 {
    let spread = |dof: usize| 2.0 / (9.0 * dof as f64);
    let z =
        ((f64::from(squared) / from as f64).cbrt() - (1.0 - spread(from))) / spread(from).sqrt();
    let root = (1.0 - spread(to) + z * spread(to).sqrt()).max(0.0);
    (to as f64 * root.powi(3)).min(f64::from(f32::MAX)) as f32
}

#[cfg(test)]
mod tests {
    use nalgebra::DVector;
    use proptest::prelude::*;
    use rand_distr::{Distribution, StandardNormal};

    use super::super::gaussian::RIDGE;
    use super::*;
    use crate::base::rng;

    /// `count` rows of correlated residuals.
    fn rows(sensors: usize, count: usize, seed: u64) -> Vec<f32> {
        let mut rng = rng::stream(seed, 0);
        let mut draw = || -> f32 { StandardNormal.sample(&mut rng) };
        let mut rows = Vec::with_capacity(count * sensors);
        for _ in 0..count {
            let shared = draw();
            rows.extend((0..sensors).map(|i| 0.2 * i as f32 + 0.7 * shared + draw()));
        }
        rows
    }

    fn direct(nominal: &Gaussian, r: &[f32]) -> f64 {
        let v = DVector::from_iterator(r.len(), r.iter().map(|&v| f64::from(v))) - nominal.mean();
        let inverse = nominal.covariance().clone().try_inverse().expect("a regular covariance");
        (v.transpose() * inverse * v)[(0, 0)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_distance_is_the_quadratic_form_of_the_inverse(
            sensors in 1_usize..45,
            seed in any::<u64>(),
            isa in prop::sample::select(Isa::available().collect::<Vec<_>>()),
        ) {
            let nominal = Gaussian::fit(sensors, &rows(sensors, 8 * sensors + 20, seed), RIDGE);
            let mut distance = Mahalanobis::with_isa(&nominal, isa);
            for r in rows(sensors, 5, seed ^ 1).chunks_exact(sensors) {
                let exact = direct(&nominal, r);
                let found = f64::from(distance.squared(r).expect("all sensors are present"));
                prop_assert!((found - exact).abs() <= 2e-5 * exact.max(1.0), "{found} {exact}");
            }
        }

        #[test]
        fn a_missing_sensor_gives_the_marginal_at_the_same_p_value(
            sensors in 2_usize..20,
            gone in 0_usize..20,
            seed in any::<u64>(),
        ) {
            let gone = gone % sensors;
            let fit = rows(sensors, 200, seed);
            let without = |row: &[f32]| -> Vec<f32> {
                row.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, v)| *v).collect()
            };
            let marginal_fit: Vec<f32> = fit.chunks_exact(sensors).flat_map(without).collect();
            let mut whole = Mahalanobis::new(&Gaussian::fit(sensors, &fit, RIDGE));
            let mut part = Mahalanobis::new(&Gaussian::fit(sensors - 1, &marginal_fit, RIDGE));
            let mut r = rows(sensors, 1, seed ^ 1);
            let before = whole.squared(&r);
            let marginal = part.squared(&without(&r)).expect("some sensor is present");
            let kept = r[gone];
            r[gone] = f32::NAN;
            let found = whole.squared(&r).expect("some sensor is present");
            let expected = same_p_value(marginal, sensors - 1, sensors);
            prop_assert!((found - expected).abs() <= 1e-3 * expected.max(1.0));
            r[gone] = kept;
            prop_assert_eq!(whole.squared(&r), before);
        }

        #[test]
        fn no_residual_gives_a_distance_that_is_not_a_number(
            r in prop::collection::vec(prop::num::f32::ANY, 6),
            seed in any::<u64>(),
        ) {
            let mut distance = Mahalanobis::new(&Gaussian::fit(6, &rows(6, 100, seed), RIDGE));
            match distance.squared(&r) {
                Some(squared) => prop_assert!(squared.is_finite() && squared >= 0.0),
                None => prop_assert!(r.iter().all(|r| !r.is_finite())),
            }
        }
    }

    #[test]
    fn a_sensor_that_repeats_another_gives_a_finite_distance_that_sees_them_part() {
        let single = rows(1, 400, 3);
        let doubled: Vec<f32> = single.iter().flat_map(|&v| [v, v]).collect();
        let mut distance = Mahalanobis::new(&Gaussian::fit(2, &doubled, RIDGE));
        let mut alone = Mahalanobis::new(&Gaussian::fit(1, &single, RIDGE));
        let together = distance.squared(&[1.0, 1.0]).expect("present");
        let one = alone.squared(&[1.0]).expect("present");
        assert!((together - one).abs() < 1e-2 * one.max(1.0), "{together} {one}");
        let apart = distance.squared(&[1.0, 1.1]).expect("present");
        assert!(apart.is_finite() && apart > 1e3, "{apart}");
    }

    #[test]
    fn a_sensor_that_never_moved_gives_a_finite_distance() {
        let fit: Vec<f32> = rows(1, 200, 5).iter().flat_map(|&v| [v, 0.25]).collect();
        let nominal = Gaussian::fit(2, &fit, RIDGE);
        assert!((nominal.covariance()[(1, 1)] - RIDGE).abs() < 1e-12);
        let mut distance = Mahalanobis::new(&nominal);
        let still = distance.squared(&[0.0, 0.25]).expect("present");
        let moved = distance.squared(&[0.0, 0.35]).expect("present");
        assert!(still < 10.0 && moved.is_finite() && moved > 1e3);
    }

    #[test]
    fn without_any_sensor_there_is_no_distance_and_the_next_one_is_as_before() {
        let mut distance = Mahalanobis::new(&Gaussian::fit(3, &rows(3, 100, 7), RIDGE));
        let r = [0.3, -0.2, 1.0];
        let before = distance.squared(&r);
        assert_eq!(distance.squared(&[f32::NAN; 3]), None);
        assert_eq!(distance.squared(&r), before);
    }

    #[test]
    fn the_rule_of_wilson_and_hilferty_keeps_quantiles() {
        // 95 % and 99.8 % quantiles of χ² with 4 and with 38 degrees of freedom.
        for (four, many) in [(9.488, 53.384), (16.924, 67.63)] {
            assert!((same_p_value(four, 4, 38) - many).abs() < 0.01 * many);
        }
    }
}
