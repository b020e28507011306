//! How states move together, per model: the paper's figures 2 and 6.
//!
//! The proprietary states already show most of it, since a client's measurements contain what its
//! neighbours do to it; a correlation between clients is not by itself a learned dependency.

use nalgebra::DMatrix;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Pearson's correlation of every pair of columns, over the rows where all columns are finite. A
/// column that never changes correlates with nothing but itself.
pub(crate) fn correlation(states: &ArrayView2<f32>) -> Array2<f64> {
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
pub(crate) fn between_clients(correlation: &ArrayView2<f64>, states: &[usize]) -> f64 {
    let owner: Vec<usize> =
        states.iter().enumerate().flat_map(|(m, &p)| std::iter::repeat_n(m, p)).collect();
    let apart = correlation.indexed_iter().filter(|((i, j), _)| owner[*i] != owner[*j]);
    let (sum, n) = apart.fold((0.0, 0_usize), |(sum, n), (_, c)| (sum + c.abs(), n + 1));
    if n == 0 { 0.0 } else { sum / n as f64 }
}

/// Mean first canonical correlation of two clients, over all pairs of them: the largest correlation
/// that a linear combination of one client's states has with one of the other's. Unlike
/// [`between_clients`] it does not depend on the coordinates a model happens to have chosen.
pub(crate) fn canonical_between(correlation: &ArrayView2<f64>, states: &[usize]) -> f64 {
    let mut end = 0;
    let spans = states.iter().map(|&p| {
        end += p;
        end - p..end
    });
    let spans: Vec<_> = spans.collect();
    let block = |rows: &std::ops::Range<usize>, columns: &std::ops::Range<usize>| {
        DMatrix::from_fn(rows.len(), columns.len(), |i, j| {
            correlation[[rows.start + i, columns.start + j]]
        })
    };
    let mut found = Vec::new();
    for (m, one) in spans.iter().enumerate() {
        for other in &spans[m + 1..] {
            found.push(canonical(block(one, one), block(other, other), &block(one, other)));
        }
    }
    found.iter().sum::<f64>() / found.len().max(1) as f64
}

/// Largest singular value of C₁₁^(−½) C₁₂ C₂₂^(−½).
fn canonical(one: DMatrix<f64>, other: DMatrix<f64>, between: &DMatrix<f64>) -> f64 {
    // A trace of noise on each state keeps repeated states solvable.
    let factor = |mut own: DMatrix<f64>| {
        (0..own.nrows()).for_each(|i| own[(i, i)] += 1e-9);
        own.cholesky()
    };
    let (Some(one), Some(other)) = (factor(one), factor(other)) else { return 0.0 };
    let left = one.l().solve_lower_triangular(between);
    let whitened = left.and_then(|left| other.l().solve_lower_triangular(&left.transpose()));
    whitened.map_or(0.0, |w| w.singular_values().iter().copied().fold(0.0, f64::max).min(1.0))
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

    #[test]
    fn a_canonical_correlation_does_not_depend_on_coordinates() {
        // a, b | c, d with c a mixture of a and b, and d on its own.
        let wave = |t: usize, k: f64| (t as f64 * k).sin() as f32;
        let plain = Array2::from_shape_fn((400, 4), |(t, i)| match i {
            0 => wave(t, 0.31),
            1 => wave(t, 0.47),
            2 => wave(t, 0.31) + wave(t, 0.47),
            _ => wave(t, 0.83),
        });
        let turned = Array2::from_shape_fn((400, 4), |(t, i)| match i {
            2 => plain[[t, 2]] + 2.0 * plain[[t, 3]],
            3 => 0.5 * plain[[t, 2]] - plain[[t, 3]],
            _ => plain[[t, i]],
        });
        let of = |states: &Array2<f32>| {
            let c = correlation(&states.view());
            (between_clients(&c.view(), &[2, 2]), canonical_between(&c.view(), &[2, 2]))
        };
        let ((pearson, canonical), (other_pearson, other_canonical)) = (of(&plain), of(&turned));
        assert!((canonical - 1.0).abs() < 1e-6 && (other_canonical - 1.0).abs() < 1e-6);
        assert!((pearson - other_pearson).abs() > 0.05, "{pearson} {other_pearson}");
        let apart = correlation(&plain.select(Axis(1), &[0, 3]).view());
        assert!(canonical_between(&apart.view(), &[1, 1]) < 0.05);
    }
}
