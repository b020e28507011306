//! How states move together, per model: the paper's figures 2 and 6.
//!
//! The proprietary states already show most of it, since a client's measurements contain what its
//! neighbours do to it; a correlation between clients is not by itself a learned dependency.

use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Pearson's correlation of every pair of columns, over the rows where all columns are finite. A
/// column that never changes correlates with nothing but itself.
#[must_use]
pub fn correlation(states: &ArrayView2<f32>) -> Array2<f64> {
    let whole: Vec<Array1<f64>> = states
        .outer_iter()
        .filter(|row| row.iter().all(|v| v.is_finite()))
        .map(|row| row.mapv(f64::from))
        .collect();
    let columns = states.ncols();
    let n = whole.len().max(1) as f64;
    let mean = whole.iter().fold(Array1::<f64>::zeros(columns), |sum, row| sum + row) / n;
    let mut centred = Array2::<f64>::zeros((whole.len(), columns));
    for (mut to, row) in centred.axis_iter_mut(Axis(0)).zip(&whole) {
        to.assign(&(row - &mean));
    }
    let covariance = centred.t().dot(&centred) / n;
    let deviation = covariance.diag().mapv(f64::sqrt);
    Array2::from_shape_fn((columns, columns), |(i, j)| {
        let scale = deviation[i] * deviation[j];
        if i == j {
            1.0
        } else if scale > 0.0 {
            (covariance[[i, j]] / scale).clamp(-1.0, 1.0)
        } else {
            0.0
        }
    })
}

/// Mean |correlation| between states of different clients, `states[m]` of them at client m: one
/// number for a figure.
#[must_use]
pub fn between_clients(correlation: &ArrayView2<f64>, states: &[usize]) -> f64 {
    let owner: Vec<usize> =
        states.iter().enumerate().flat_map(|(m, &p)| std::iter::repeat_n(m, p)).collect();
    let apart = correlation.indexed_iter().filter(|((i, j), _)| owner[*i] != owner[*j]);
    let (sum, n) = apart.fold((0.0, 0_usize), |(sum, n), (_, c)| (sum + c.abs(), n + 1));
    if n == 0 { 0.0 } else { sum / n as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn columns_that_move_alike_correlate_and_a_still_one_does_not() {
        let states = array![
            [1.0_f32, 2.0, -1.0, 5.0],
            [2.0, 4.0, -2.0, 5.0],
            [f32::NAN, 0.0, 0.0, 0.0],
            [4.0, 8.0, -4.0, 5.0],
        ];
        let c = correlation(&states.view());
        for (i, j, expected) in [(0, 1, 1.0), (0, 2, -1.0), (1, 2, -1.0), (0, 3, 0.0), (3, 3, 1.0)]
        {
            assert!((c[[i, j]] - expected).abs() < 1e-12, "{i} {j}: {}", c[[i, j]]);
            assert!((c[[j, i]] - expected).abs() < 1e-12);
        }
        assert!((between_clients(&c.view(), &[2, 2]) - 0.5).abs() < 1e-12);
    }
}
