//! Whole stretches through a filter: the gains of a batch and the innovations of a day.

use ndarray::{Array2, ArrayView2};

use super::gain::{Block, Trace};
use super::lanes::{LANES, Lane};
use super::window::{Batch, clip};
use crate::nn::weights::FilterWeights;

/// K of every step, each windows × P × D.
pub(crate) fn gains(weights: &FilterWeights, batch: &Batch) -> Vec<Vec<f32>> {
    let (windows, sensors) = (batch.windows, batch.sensors);
    let size = weights.states() * sensors;
    let mut gains = vec![vec![0.0; windows * size]; batch.steps];
    let bound = weights.conduct.update_clip;
    let (mut block, mut trace) = (Block::new(weights), Trace::new(weights));
    let mut y: Vec<Lane> = vec![[f32::NAN; LANES]; sensors];
    for first in (0..windows).step_by(LANES) {
        block.restart();
        let used = LANES.min(windows - first);
        for (t, gains) in gains.iter_mut().enumerate() {
            let rows = &batch.values[(t * windows + first) * sensors..];
            for (l, row) in rows.chunks_exact(sensors).take(used).enumerate() {
                row.iter().zip(&mut y).for_each(|(v, y)| y[l] = clip(*v, bound));
            }
            block.step(&y, &mut trace);
            let windows = gains[first * size..].chunks_exact_mut(size).take(used);
            for (l, window) in windows.enumerate() {
                window.iter_mut().zip(&trace.gain).for_each(|(k, gain)| *k = gain[l]);
            }
        }
    }
    gains
}

/// Rows a filter runs over before its stretch begins: by then it has forgotten how it started.
const LEAD_IN: usize = 200;

/// `r_t = y_t − h(x_t)` of a filter run over consecutive rows; NaN where nothing was measured.
///
/// The rows are cut into one stretch per lane, all run side by side; each but the first is led in
/// over the rows before it, so the cuts cannot be seen beyond rounding.
pub(crate) fn innovations(weights: &FilterWeights, rows: &ArrayView2<f32>) -> Array2<f32> {
    let stretch = rows.nrows().div_ceil(LANES);
    let bound = weights.conduct.update_clip;
    let (mut block, mut trace) = (Block::new(weights), Trace::new(weights));
    let mut y: Vec<Lane> = vec![[f32::NAN; LANES]; rows.ncols()];
    let mut innovations = Array2::from_elem(rows.raw_dim(), f32::NAN);
    let first: [usize; LANES] = std::array::from_fn(|l| (l * stretch).saturating_sub(LEAD_IN));
    let lead_in: [usize; LANES] = std::array::from_fn(|l| l * stretch - first[l]);
    for k in 0..stretch + lead_in[LANES - 1] {
        for (l, first) in first.iter().enumerate() {
            for (d, y) in y.iter_mut().enumerate() {
                y[l] = rows.get((first + k, d)).map_or(f32::NAN, |v| clip(*v, bound));
            }
        }
        block.step(&y, &mut trace);
        for (l, first) in first.iter().enumerate() {
            let t = first + k;
            if k < lead_in[l] || k >= lead_in[l] + stretch || t >= rows.nrows() {
                continue;
            }
            for (d, predicted) in trace.predicted.iter().enumerate() {
                let y = rows[[t, d]];
                innovations[[t, d]] = if y.is_finite() { y - predicted[l] } else { f32::NAN };
            }
        }
    }
    innovations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::train::test_support::{plant, small_filter};

    #[test]
    fn cutting_a_day_into_stretches_cannot_be_seen() {
        let rows = plant(2000, 3, 4);
        let weights = small_filter(3, true, 1);
        let cut = innovations(&weights, &rows.view());
        let (mut block, mut trace) = (Block::new(&weights), Trace::new(&weights));
        for (t, row) in rows.outer_iter().enumerate() {
            let y: Vec<Lane> = row.iter().map(|v| [clip(*v, 5.0); LANES]).collect();
            block.step(&y, &mut trace);
            for d in 0..3 {
                let whole = row[d] - trace.predicted[d][0];
                assert!((whole - cut[[t, d]]).abs() < 1e-5, "row {t}: {whole} {}", cut[[t, d]]);
            }
        }
    }

    #[test]
    fn a_row_that_was_not_measured_has_no_innovation_and_does_no_harm() {
        let mut rows = plant(400, 3, 4);
        rows.row_mut(100).fill(f32::NAN);
        rows[[200, 1]] = f32::INFINITY;
        let r = innovations(&small_filter(3, true, 1), &rows.view());
        for ((t, d), v) in r.indexed_iter() {
            let missing = t == 100 || (t, d) == (200, 1);
            assert_eq!(v.is_nan(), missing, "row {t}, sensor {d}");
        }
    }
}
