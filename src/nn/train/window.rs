//! Training windows over a standardised matrix with holes.
//!
//! A row that is missing altogether may stand for a gap of any length, so no window spans one.
//! A single missing value stays in its window: it neither corrects the state nor enters the loss.
//! This module must not know which network looks at the windows.

use ndarray::ArrayView2;
use rand::seq::SliceRandom as _;

use crate::base::rng::Rng;

/// The windows of one matrix (rows = steps, columns = sensors).
#[derive(Debug, Clone)]
pub(crate) struct Windows<'a> {
    rows: ArrayView2<'a, f32>,
    length: usize,
    starts: Vec<usize>,
}

impl<'a> Windows<'a> {
    /// Every window of `length` steps without an empty row, one starting at each step.
    #[cfg(test)]
    pub(crate) fn new(rows: &ArrayView2<'a, f32>, length: usize) -> Self {
        Self::between_gaps(rows, rows, length)
    }

    /// Every window of `length` steps of `rows` without an empty row, one starting at each step; `rows`
    /// were computed from `measured`, which has the gaps: one missing sensor may leave a computed row
    /// empty.
    pub(crate) fn between_gaps(
        rows: &ArrayView2<'a, f32>,
        measured: &ArrayView2<f32>,
        length: usize,
    ) -> Self {
        let mut run = 0;
        let mut starts = Vec::new();
        for (t, row) in measured.outer_iter().enumerate() {
            run = if row.iter().any(|v| v.is_finite()) { run + 1 } else { 0 };
            if run >= length {
                starts.push(t + 1 - length);
            }
        }
        Self { rows: *rows, length, starts }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    pub(crate) fn sensors(&self) -> usize {
        self.rows.ncols()
    }

    /// A new order for the next pass over the data.
    pub(crate) fn shuffle(&mut self, rng: &mut Rng) {
        self.starts.shuffle(rng);
    }

    /// The next pass over the data, `size` windows at a time.
    pub(crate) fn batches(&self, size: usize) -> impl ExactSizeIterator<Item = Batch> {
        self.starts.chunks(size).map(|starts| self.batch(starts))
    }

    fn batch(&self, starts: &[usize]) -> Batch {
        let (windows, sensors) = (starts.len(), self.sensors());
        let mut values = Vec::with_capacity(self.length * windows * sensors);
        for t in 0..self.length {
            for start in starts {
                values.extend(self.rows.row(start + t));
            }
        }
        Batch { steps: self.length, windows, sensors, values }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    pub(crate) steps: usize,
    pub(crate) windows: usize,
    pub(crate) sensors: usize,
    /// steps × windows × sensors; not finite where nothing was measured.
    pub(crate) values: Vec<f32>,
}

/// A measurement as a filter takes it: within ±`bound`, NaN when it is missing or infinite.
pub(crate) fn clip(y: f32, bound: f32) -> f32 {
    if y.is_finite() { y.clamp(-bound, bound) } else { f32::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn windows_cover_every_start_and_avoid_empty_rows() {
        let mut rows = Array2::from_shape_fn((30, 2), |(t, d)| (10 * t + d) as f32);
        assert_eq!(Windows::new(&rows.view(), 20).len(), 11);
        rows.row_mut(4).fill(f32::NAN);
        rows[[12, 1]] = f32::INFINITY;
        let windows = Windows::new(&rows.view(), 20);
        assert_eq!(windows.starts, (5..11).collect::<Vec<_>>());
        assert!(Windows::new(&rows.view(), 40).is_empty());
    }

    #[test]
    fn a_batch_holds_the_rows_of_its_windows_step_by_step() {
        let rows = Array2::from_shape_fn((6, 2), |(t, d)| (10 * t + d) as f32);
        let windows = Windows::new(&rows.view(), 3);
        let batch = windows.batches(3).next().expect("four windows");
        assert_eq!((batch.steps, batch.windows, batch.sensors), (3, 3, 2));
        assert_eq!(batch.values[..6], [0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
        assert_eq!(batch.values[12..], [20.0, 21.0, 30.0, 31.0, 40.0, 41.0]);
    }

    #[test]
    fn what_was_not_measured_is_not_clipped_into_a_number() {
        assert!(clip(f32::NAN, 5.0).is_nan());
        assert!(clip(f32::INFINITY, 5.0).is_nan());
        assert!((clip(-7.0, 5.0) + 5.0).abs() < f32::EPSILON);
        assert!((clip(-7.0, f32::INFINITY) + 7.0).abs() < f32::EPSILON);
    }
}
