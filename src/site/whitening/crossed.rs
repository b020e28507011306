//! Every nominal row used twice: to fit the whitening, and to see how well it predicts what it was not
//! fitted on.
//!
//! Rows that a regression was fitted on look better than those that come, so thresholds need other rows.
//! Where these are few, the rows are cut in parts. Each part is predicted by a regression of the others,
//! and the regression that watches is fitted on all of them.

use super::{Recording, Whitening};
use crate::evidence::ridge::Ridge;

/// Parts of the rows. A regression of the others has four fifths of them.
const PARTS: usize = 5;

impl Recording {
    /// This stretch, and `other` as another run behind it.
    pub(crate) fn followed_by(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.new_run();
        let behind = all.len();
        all.starts.extend(other.starts.iter().filter(|start| **start > 0).map(|at| behind + at));
        all.rows.extend_from_slice(&other.rows);
        all
    }
}

impl Whitening {
    /// Fits the regression with `lags` lags of the measurement on all of `nominal`. Returned with it is
    /// r_w of every sample, by a regression of the other parts; NaN in the first `settling` steps of
    /// each run.
    pub(crate) fn fit_crossed(
        nominal: &Recording,
        settling: usize,
        lags: usize,
    ) -> (Self, Vec<f32>) {
        let mut all = Self::unfitted(nominal, settling);
        let mut past = all.past_of(lags);
        let regression = || Ridge::new(all.width(lags), all.sensors);
        let mut parts: Vec<Ridge> = (0..PARTS).map(|_| regression()).collect();
        let part_of = |t: usize| t * PARTS / nominal.len().max(1);
        all.each_settled(nominal, settling, &mut past, |t, u, r| parts[part_of(t)].add(u, r));
        let mut without = |part: Option<usize>| {
            let mut sum = regression();
            let kept = parts.iter_mut().enumerate().filter(|(place, _)| Some(*place) != part);
            kept.for_each(|(_, ridge)| sum.add_all(ridge));
            sum
        };
        let mut sums: Vec<Ridge> = (0..PARTS).map(|part| without(Some(part))).collect();
        let mut sum = without(None);
        let others: Vec<Self> = sums
            .iter_mut()
            .map(|sum| {
                let mut whitening = all.clone();
                whitening.solve(sum);
                whitening
            })
            .collect();
        all.solve(&mut sum);
        let mut rows = vec![f32::NAN; nominal.len() * all.sensors];
        let row_of = rows.chunks_exact_mut(all.sensors.max(1));
        for (t, ((starts, sample), row)) in nominal.iter().zip(row_of).enumerate() {
            if starts {
                Self::forget(&mut past);
            }
            others[part_of(t)].step(&mut past, sample, row);
            if past.steps() <= settling {
                row.fill(f32::NAN);
            }
        }
        (all, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;
    use crate::base::rng;
    use rand_distr::{Distribution as _, StandardNormal};

    /// White residuals of two sensors, and measurements that say nothing about them.
    fn white(steps: usize, seed: u64) -> Recording {
        let mut rng = rng::stream(seed, 0);
        let mut recording = Recording::new(2, 1);
        for _ in 0..steps {
            let mut draw = || -> f32 { StandardNormal.sample(&mut rng) };
            let (y, y_hat, r, x_hat) =
                ([draw(), draw()], [draw(), draw()], [draw(), draw()], [draw()]);
            recording.push(Sample { y: &y, y_hat: &y_hat, r: &r, x_hat: &x_hat, inputs: &[] });
        }
        recording
    }

    fn mean_square(rows: &[f32]) -> f64 {
        let squares: Vec<f64> =
            rows.iter().filter(|r| r.is_finite()).map(|r| f64::from(*r).powi(2)).collect();
        squares.iter().sum::<f64>() / squares.len() as f64
    }

    #[test]
    fn rows_look_as_they_will_look_and_not_as_those_that_were_fitted() {
        // Few rows for so many regressors, which explain nothing.
        let nominal = white(90, 1);
        let (whitening, crossed) = Whitening::fit_crossed(&nominal, 10, 5);
        let fitted = mean_square(&whitening.rows(&nominal, 10));
        let fresh = mean_square(&whitening.rows(&white(3000, 2), 10));
        let crossed = mean_square(&crossed);
        assert!(fitted < 0.8 * fresh, "{fitted} {fresh}");
        assert!(crossed > 0.9 * fresh, "{crossed} {fresh}");
    }

    #[test]
    fn the_regression_of_all_parts_is_that_of_all_rows() {
        let nominal = white(400, 3).followed_by(&white(200, 4));
        let (crossed, rows) = Whitening::fit_crossed(&nominal, 10, 5);
        let whole = Whitening::fit(&nominal, 10);
        assert_eq!(whole.lags(), 5);
        let pairs = crossed.coefficients.iter().zip(&whole.coefficients);
        let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-9, "sums in another order: {off}");
        let missing: Vec<usize> = (0..600).filter(|t| rows[2 * t].is_nan()).collect();
        assert_eq!(missing, (0..10).chain(400..410).collect::<Vec<_>>(), "two runs settle");
    }

    #[test]
    fn runs_stay_apart_where_recordings_are_joined() {
        let mut second = white(3, 6);
        second.new_run();
        second.push(white(1, 7).sample(0));
        let joined = white(2, 5).followed_by(&second);
        let starts: Vec<bool> = joined.iter().map(|(starts, _)| starts).collect();
        assert_eq!(starts, [true, false, true, false, false, true]);
        assert_eq!(joined.sample(2).y, second.sample(0).y);
        let none = Recording::new(2, 1);
        assert_eq!(none.followed_by(&second).len(), 4);
        assert_eq!(second.followed_by(&none).len(), 4);
    }
}
