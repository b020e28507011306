//! Ridge regression in closed form, for the small linear models that client and server fit.

use nalgebra::{Cholesky, DMatrix};

/// Rows gathered before they enter the normal equations, so that the sums are matrix products.
const CHUNK: usize = 256;

/// The normal equations of a regression of several outputs on common regressors.
///
/// The last regressor is the intercept: the caller sets it to 1, and it is all but free of penalty.
#[derive(Debug, Clone)]
pub(crate) struct Ridge {
    gram: DMatrix<f64>,
    cross: DMatrix<f64>,
    x: DMatrix<f64>,
    y: DMatrix<f64>,
    gathered: usize,
    samples: usize,
}

impl Ridge {
    /// Penalty on the intercept.
    const INTERCEPT: f64 = 1e-6;

    pub(crate) fn new(regressors: usize, outputs: usize) -> Self {
        Self {
            gram: DMatrix::zeros(regressors, regressors),
            cross: DMatrix::zeros(regressors, outputs),
            x: DMatrix::zeros(CHUNK, regressors),
            y: DMatrix::zeros(CHUNK, outputs),
            gathered: 0,
            samples: 0,
        }
    }

    /// One row. A row with a missing output is left out.
    pub(crate) fn add(&mut self, x: &[f64], y: &[f64]) {
        if y.iter().chain(x).any(|v| !v.is_finite()) {
            return;
        }
        for (cell, value) in self.x.row_mut(self.gathered).iter_mut().zip(x) {
            *cell = *value;
        }
        for (cell, value) in self.y.row_mut(self.gathered).iter_mut().zip(y) {
            *cell = *value;
        }
        self.samples += 1;
        self.gathered += 1;
        if self.gathered == CHUNK {
            self.flush();
        }
    }

    /// All rows of another regression with the same regressors and outputs.
    pub(crate) fn add_all(&mut self, other: &mut Self) {
        self.flush();
        other.flush();
        self.gram += &other.gram;
        self.cross += &other.cross;
        self.samples += other.samples;
    }

    fn flush(&mut self) {
        let (x, y) = (self.x.rows(0, self.gathered), self.y.rows(0, self.gathered));
        self.gram.gemm_tr(1.0, &x, &x, 1.0);
        self.cross.gemm_tr(1.0, &x, &y, 1.0);
        self.gathered = 0;
    }

    #[cfg(test)]
    pub(crate) fn samples(&self) -> usize {
        self.samples
    }

    /// Coefficients (regressors × outputs) at penalty λ; all zero when the rows say nothing.
    #[must_use]
    pub(crate) fn solve(&mut self, lambda: f64) -> DMatrix<f64> {
        self.flush();
        solved(self.gram.clone(), &self.cross, lambda)
    }

    /// The same on some of the regressors, the intercept last among them.
    #[must_use]
    pub(crate) fn solve_for(&mut self, regressors: &[usize], lambda: f64) -> DMatrix<f64> {
        self.flush();
        let gram = self.gram.select_rows(regressors).select_columns(regressors);
        solved(gram, &self.cross.select_rows(regressors), lambda)
    }
}

fn solved(mut gram: DMatrix<f64>, cross: &DMatrix<f64>, lambda: f64) -> DMatrix<f64> {
    let last = gram.nrows().saturating_sub(1);
    for i in 0..gram.nrows() {
        gram[(i, i)] += if i == last { Ridge::INTERCEPT } else { lambda };
    }
    match Cholesky::new(gram) {
        Some(cholesky) => cholesky.solve(cross),
        None => DMatrix::zeros(cross.nrows(), cross.ncols()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_noiseless_line_is_found_whatever_the_number_of_rows(
            a in -3.0f64..3.0, b in -3.0f64..3.0, c in -3.0f64..3.0, rows in 20usize..600,
        ) {
            let mut ridge = Ridge::new(3, 1);
            for i in 0..rows {
                let (u, v) = ((i as f64 * 0.7).sin(), (i as f64 * 1.9).cos());
                ridge.add(&[u, v, 1.0], &[a * u + b * v + c]);
                ridge.add(&[u, v, 1.0], &[f64::NAN]);
            }
            prop_assert_eq!(ridge.samples(), rows);
            let solution = ridge.solve(1e-6);
            for (found, true_value) in solution.iter().zip([a, b, c]) {
                prop_assert!((found - true_value).abs() < 1e-3, "{} {}", found, true_value);
            }
        }
    }

    #[test]
    fn without_rows_the_answer_is_zero() {
        assert!(Ridge::new(4, 2).solve(0.0).iter().all(|v| *v == 0.0));
    }
}
