//! The nominal distribution of a residual: mean and covariance, always regular.

use nalgebra::{Cholesky, DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// Added to the diagonal of a fitted covariance, in standardised units: it gives a sensor that
/// never moved, or that repeats another, a small but positive variance of its own.
pub(crate) const RIDGE: f64 = 1e-6;

/// Residuals are clipped to ± this.
pub(super) const FARTHEST: f32 = 1e6;

/// Mean µ and covariance Σ of a residual on nominal data; Σ is positive definite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub(crate) struct Gaussian {
    mean: DVector<f64>,
    covariance: DMatrix<f64>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    mean: Vec<f64>,
    /// Column by column.
    covariance: Vec<f64>,
}

impl From<Gaussian> for Stored {
    fn from(gaussian: Gaussian) -> Self {
        Self {
            mean: gaussian.mean.as_slice().to_vec(),
            covariance: gaussian.covariance.as_slice().to_vec(),
        }
    }
}

impl TryFrom<Stored> for Gaussian {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let n = stored.mean.len();
        if stored.covariance.len() != n * n {
            return Err("mean and covariance of different sizes");
        }
        let covariance = DMatrix::from_vec(n, n, stored.covariance);
        Self::new(DVector::from_vec(stored.mean), &covariance).ok_or("a number is not finite")
    }
}

impl Gaussian {
    /// Fits µ and Σ + `ridge`·I to rows of `sensors` residuals, one row after the other.
    ///
    /// A missing entry (not finite) leaves its row out of the sums it would enter and no others. A
    /// sensor seen less than twice gets variance one: nothing is known about it. Where missing
    /// entries make the sums contradict each other, the ridge grows until Σ is positive definite.
    ///
    /// # Panics
    /// If `sensors` is zero.
    pub(crate) fn fit(sensors: usize, residuals: &[f32], ridge: f64) -> Self {
        let rows = || residuals.chunks_exact(sensors);
        let value = |v: f32| f64::from(v.clamp(-FARTHEST, FARTHEST));
        let mean = DVector::from_fn(sensors, |i, _| {
            let (n, sum) = rows()
                .filter(|row| row[i].is_finite())
                .fold((0_u64, 0.0), |(n, sum), row| (n + 1, sum + value(row[i])));
            if n == 0 { 0.0 } else { sum / n as f64 }
        });
        let mut covariance = DMatrix::zeros(sensors, sensors);
        for i in 0..sensors {
            for j in 0..=i {
                let (n, sum) = rows().filter(|row| row[i].is_finite() && row[j].is_finite()).fold(
                    (0_u64, 0.0),
                    |(n, sum), row| {
                        (n + 1, sum + (value(row[i]) - mean[i]) * (value(row[j]) - mean[j]))
                    },
                );
                let unknown = f64::from(u8::from(i == j));
                let entry = if n < 2 { unknown } else { sum / (n - 1) as f64 };
                covariance[(i, j)] = entry;
                covariance[(j, i)] = entry;
            }
        }
        Self { mean, covariance: regular(&covariance, ridge) }
    }

    /// A distribution that was fitted before. Nothing if the sizes differ or a number is not
    /// finite.
    pub(crate) fn new(mean: DVector<f64>, covariance: &DMatrix<f64>) -> Option<Self> {
        let n = mean.len();
        let finite = mean.iter().chain(covariance.iter()).all(|v| v.is_finite());
        if n == 0 || covariance.shape() != (n, n) || !finite {
            return None;
        }
        let symmetric = (covariance + covariance.transpose()) * 0.5;
        Some(Self { mean, covariance: regular(&symmetric, 0.0) })
    }

    pub(crate) fn sensors(&self) -> usize {
        self.mean.len()
    }

    pub(crate) fn mean(&self) -> &DVector<f64> {
        &self.mean
    }

    /// Σ with its ridge.
    pub(crate) fn covariance(&self) -> &DMatrix<f64> {
        &self.covariance
    }
}

/// Σ + `ridge`·I, with the smallest power-of-ten multiple of the ridge that makes it positive
/// definite: Gershgorin bounds it by the largest row sum, so the search ends.
fn regular(covariance: &DMatrix<f64>, ridge: f64) -> DMatrix<f64> {
    let n = covariance.nrows();
    let mut added = ridge;
    loop {
        let candidate = covariance + DMatrix::identity(n, n) * added;
        if Cholesky::new(candidate.clone()).is_some() {
            return candidate;
        }
        added = (added * 10.0).max(RIDGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_covariance_are_those_of_the_sample() {
        let nominal = Gaussian::fit(2, &[1.0, 2.0, 3.0, 2.0, 5.0, 8.0], 0.0);
        assert!((nominal.mean() - DVector::from_vec(vec![3.0, 4.0])).amax() < 1e-12);
        let expected = DMatrix::from_row_slice(2, 2, &[4.0, 6.0, 6.0, 12.0]);
        assert!((nominal.covariance() - expected).amax() < 1e-12);
    }

    #[test]
    fn missing_entries_leave_only_their_own_sums() {
        let nominal = Gaussian::fit(2, &[1.0, f32::NAN, 3.0, 2.0, 5.0, 6.0, f32::NAN, 7.0], 0.0);
        assert!((nominal.mean() - DVector::from_vec(vec![3.0, 5.0])).amax() < 1e-12);
        let expected = DMatrix::from_row_slice(2, 2, &[4.0, 2.0, 2.0, 7.0]);
        assert!((nominal.covariance() - expected).amax() < 1e-12);
    }

    #[test]
    fn a_sensor_never_seen_and_no_rows_at_all_still_give_a_distribution() {
        let dead = Gaussian::fit(2, &[1.0, f32::NAN, 2.0, f32::NAN, 4.0, f32::NAN], RIDGE);
        assert!((dead.covariance()[(1, 1)] - 1.0 - RIDGE).abs() < 1e-12);
        assert_eq!(Gaussian::fit(3, &[], RIDGE).sensors(), 3);
    }

    #[test]
    fn a_stored_distribution_comes_back_as_it_was_and_a_broken_one_does_not() {
        let nominal = Gaussian::fit(2, &[1.0, 2.0, 3.0, 2.0, 5.0, 8.0], RIDGE);
        let again = Gaussian::new(nominal.mean().clone(), nominal.covariance());
        assert_eq!(again.as_ref(), Some(&nominal));
        let mut broken = nominal.covariance().clone();
        broken[(0, 0)] = f64::NAN;
        assert_eq!(Gaussian::new(nominal.mean().clone(), &broken), None);
        assert_eq!(Gaussian::new(DVector::zeros(3), nominal.covariance()), None);
    }
}
