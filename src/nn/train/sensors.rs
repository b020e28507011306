//! Properties of the training data: principal directions and repeated columns.

use nalgebra::{DMatrix, SymmetricEigen};
use ndarray::{ArrayView1, ArrayView2};

use crate::base::moments::Moments;

/// Two columns this correlated carry one measurement.
const SAME: f64 = 0.9999;

/// The D × D orthonormal principal directions of `rows`, row-major, the largest variance first.
///
/// The directions are not scaled by their standard deviations: with Q and R multiples of I every
/// direction is then followed at the same pace, also those of small variance.
pub(crate) fn loadings(rows: &ArrayView2<f32>) -> Vec<f32> {
    let d = rows.ncols();
    let mean: Vec<f64> = rows.columns().into_iter().map(|c| moments(&c).mean()).collect();
    let covariance = DMatrix::from_fn(d, d, |i, j| {
        let pairs = rows.column(i).into_iter().zip(rows.column(j));
        let (sum, n) = pairs
            .filter(|(a, b)| a.is_finite() && b.is_finite())
            .fold((0.0, 0usize), |(sum, n), (a, b)| {
                (sum + (f64::from(*a) - mean[i]) * (f64::from(*b) - mean[j]), n + 1)
            });
        sum / n.max(1) as f64
    });
    let eigen = SymmetricEigen::new(covariance);
    let mut order: Vec<usize> = (0..d).collect();
    order.sort_by(|a, b| eigen.eigenvalues[*b].total_cmp(&eigen.eigenvalues[*a]));
    let mut loadings = vec![0.0; d * d];
    for (p, &column) in order.iter().enumerate() {
        let direction = eigen.eigenvectors.column(column);
        // An eigenvector's sign is arbitrary; its largest entry is made positive.
        let sign = direction[direction.iamax()].signum();
        for (i, v) in direction.iter().enumerate() {
            loadings[i * d + p] = (sign * v) as f32;
        }
    }
    loadings
}

fn moments(column: &ArrayView1<f32>) -> Moments {
    column.iter().filter(|v| v.is_finite()).map(|v| f64::from(*v)).collect()
}

/// Standard deviation of each column over what was measured; 1 for a column that never changes,
/// so that dividing by it is always possible.
pub(crate) fn deviations(rows: &ArrayView2<f32>) -> Vec<f32> {
    rows.columns()
        .into_iter()
        .map(|column| {
            let deviation = moments(&column).std() as f32;
            if deviation > 1e-6 { deviation } else { 1.0 }
        })
        .collect()
}

/// Columns that repeat an earlier one: (column, the first column it repeats).
///
/// A column repeats another when the two are collinear, or when one rises exactly as the other
/// does (a rank correlation of one: a flow and its converted value). Columns that never change
/// repeat nothing.
pub(crate) fn duplicates(rows: &ArrayView2<f32>) -> Vec<(usize, usize)> {
    let values: Vec<Vec<f64>> =
        rows.columns().into_iter().map(|c| c.iter().map(|v| f64::from(*v)).collect()).collect();
    let ranks: Vec<Vec<f64>> = values.iter().map(|c| rank(c)).collect();
    let repeats = |i: usize, j: usize| {
        correlation(&values[i], &values[j]).abs() > SAME
            || correlation(&ranks[i], &ranks[j]).abs() > SAME
    };
    let mut found: Vec<(usize, usize)> = Vec::new();
    for i in 1..rows.ncols() {
        let kept = |j: &usize| !found.iter().any(|(column, _)| column == j);
        if let Some(j) = (0..i).filter(kept).find(|j| repeats(i, *j)) {
            found.push((i, j));
        }
    }
    found
}

/// Pearson's correlation over rows where both are finite; 0 when either never changes.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let pairs = || a.iter().zip(b).filter(|(a, b)| a.is_finite() && b.is_finite());
    let n = pairs().count().max(1) as f64;
    let (sum_a, sum_b) = pairs().fold((0.0, 0.0), |(x, y), (a, b)| (x + a, y + b));
    let (mean_a, mean_b) = (sum_a / n, sum_b / n);
    let (aa, bb, ab) = pairs().fold((0.0, 0.0, 0.0), |(aa, bb, ab), (a, b)| {
        let (a, b) = (a - mean_a, b - mean_b);
        (aa + a * a, bb + b * b, ab + a * b)
    });
    if aa > 1e-12 * n && bb > 1e-12 * n { ab / (aa * bb).sqrt() } else { 0.0 }
}

/// Rank of each value, ties sharing their mean; NaN stays NaN.
fn rank(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).filter(|i| values[*i].is_finite()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![f64::NAN; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let mean = first as f64 + (tied.len() - 1) as f64 / 2.0;
        for i in tied {
            ranks[*i] = mean;
        }
        first += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    fn data() -> Array2<f32> {
        Array2::from_shape_fn((500, 4), |(t, d)| {
            let t = t as f32;
            match d {
                0 => (0.37 * t).sin(),
                1 => 0.3 * (0.37 * t).sin() + (0.11 * t).cos(),
                2 => (0.37 * t).sin().exp(),
                _ => 0.0,
            }
        })
    }

    #[test]
    fn loadings_are_orthonormal_also_beside_a_constant_sensor() {
        let c = DMatrix::from_row_slice(4, 4, &loadings(&data().view()));
        assert!((c.transpose() * &c - DMatrix::identity(4, 4)).norm() < 1e-5);
    }

    #[test]
    fn a_monotone_function_of_a_sensor_is_found_and_a_mixture_or_a_constant_is_not() {
        assert_eq!(duplicates(&data().view()), [(2, 0)]);
    }

    #[test]
    fn holes_do_not_hide_a_repeated_sensor() {
        let mut rows = data();
        rows[[7, 0]] = f32::NAN;
        rows.column_mut(3).assign(&data().column(1).map(|v| 4.0 - 2.0 * v));
        rows[[9, 3]] = f32::NAN;
        assert_eq!(duplicates(&rows.view()), [(2, 0), (3, 1)]);
    }

    #[test]
    fn a_sensor_that_never_changes_has_a_deviation_one_can_divide_by() {
        let deviations = deviations(&data().view());
        assert!((deviations[0] - 0.5f32.sqrt()).abs() < 0.01);
        assert!((deviations[3] - 1.0).abs() < f32::EPSILON);
    }
}
