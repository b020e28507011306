//! The linear predictor from a client's own last samples: a ridge regression in closed form.

use nalgebra::{Cholesky, DMatrix};
use ndarray::{Array2, ArrayView2};

use crate::nn::weights::OwnLagWeights;

/// Weight of the penalty on the squared coefficients, against sums over standardised rows: enough
/// to make collinear sensors solvable, too little to be seen in a prediction.
const RIDGE: f64 = 1.0;

/// Fits `ŷ_t = Σ_l A_l y_{t−l} + b` on all rows that have every value of their own and of the lags.
///
/// None when there are fewer such rows than coefficients per sensor.
pub(crate) fn fit(rows: &ArrayView2<f32>, lags: usize) -> Option<OwnLagWeights> {
    let sensors = rows.ncols();
    let size = lags * sensors + 1;
    // Normal equations (XᵀX + λI) A = XᵀY; the intercept is the last regressor and free of penalty.
    let mut gram = DMatrix::<f64>::zeros(size, size);
    let mut cross = DMatrix::<f64>::zeros(size, sensors);
    let mut used = 0;
    let mut u = vec![1.0; size];
    for t in lags..rows.nrows() {
        for l in 1..=lags {
            for (d, &v) in rows.row(t - l).iter().enumerate() {
                u[(l - 1) * sensors + d] = f64::from(v);
            }
        }
        let y = rows.row(t);
        if !u.iter().all(|v| v.is_finite()) || !y.iter().all(|v| v.is_finite()) {
            continue;
        }
        used += 1;
        for j in 0..size {
            for i in j..size {
                gram[(i, j)] += u[i] * u[j];
            }
        }
        for (d, &v) in y.iter().enumerate() {
            for (i, u) in u.iter().enumerate() {
                cross[(i, d)] += u * f64::from(v);
            }
        }
    }
    if used < size {
        return None;
    }
    for i in 0..size - 1 {
        gram[(i, i)] += RIDGE;
    }
    // Only the lower triangle is read.
    let solution = Cholesky::new(gram)?.solve(&cross);
    Some(OwnLagWeights {
        sensors,
        lags,
        weight: (0..sensors)
            .flat_map(|d| {
                solution.column(d).iter().take(size - 1).map(|v| *v as f32).collect::<Vec<_>>()
            })
            .collect(),
        bias: (0..sensors).map(|d| solution[(size - 1, d)] as f32).collect(),
    })
}

/// `r_t = y_t − ŷ_t`; NaN in the first rows, where a lag is missing, and where `y_t` is.
pub(crate) fn residuals(weights: &OwnLagWeights, rows: &ArrayView2<f32>) -> Array2<f32> {
    let OwnLagWeights { sensors, lags, weight, bias } = weights;
    let mut residuals = Array2::from_elem(rows.raw_dim(), f32::NAN);
    for t in *lags..rows.nrows() {
        for d in 0..*sensors {
            let row = &weight[d * lags * sensors..(d + 1) * lags * sensors];
            let lagged = (1..=*lags).flat_map(|l| rows.row(t - l).to_vec());
            let predicted = bias[d] + row.iter().zip(lagged).map(|(w, y)| w * y).sum::<f32>();
            let r = rows[[t, d]] - predicted;
            residuals[[t, d]] = if r.is_finite() { r } else { f32::NAN };
        }
    }
    residuals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::train::test_support::plant;

    #[test]
    fn a_linear_recursion_is_found() {
        let mut rows = plant(3000, 2, 5);
        for t in 2..3000 {
            let noise = 0.3 * rows[[t, 0]];
            rows[[t, 0]] = 1.2 * rows[[t - 1, 0]] - 0.5 * rows[[t - 2, 0]] + 0.1 + noise;
        }
        let weights = fit(&rows.view(), 2).unwrap();
        // What is left over is no longer related to what it was predicted from.
        let left = residuals(&weights, &rows.view());
        for d in 0..2 {
            for lag in [1, 2] {
                let product: f32 =
                    (2..3000).map(|t| left[[t, d]] * rows[[t - lag, 0]]).sum::<f32>() / 3000.0;
                assert!(product.abs() < 1e-3, "sensor {d}, lag {lag}: {product}");
            }
        }
        assert!(left.row(1).iter().all(|r| r.is_nan()));
    }

    #[test]
    fn rows_with_a_hole_are_left_out_and_have_no_residual() {
        let mut rows = plant(500, 2, 5);
        rows[[100, 1]] = f32::NAN;
        let weights = fit(&rows.view(), 2).unwrap();
        assert!(weights.weight.iter().chain(&weights.bias).all(|v| v.is_finite()));
        let left = residuals(&weights, &rows.view());
        let missing: Vec<usize> = (2..500).filter(|t| left[[*t, 0]].is_nan()).collect();
        assert_eq!(missing, [101, 102]);
        assert!(left[[100, 1]].is_nan() && left[[100, 0]].is_finite());
    }

    #[test]
    fn fewer_rows_than_coefficients_make_no_model() {
        assert_eq!(fit(&plant(6, 2, 5).view(), 2), None);
    }
}
