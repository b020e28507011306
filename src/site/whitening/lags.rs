//! How many of a client's own measurements its whitening looks back at.
//!
//! Five are enough where a process forgets quickly. One that swings slowly, or is seen through noise,
//! is known better by more of its past: the residual shrinks, and a small fault stands out. More
//! lags have more coefficients to learn, make a sample felt for longer, and cost more privacy. So they
//! are taken only where they predict better on data that they were not fitted on.

use super::{LAGS, LONGEST, Recording, Whitening};
use crate::evidence::ridge::Ridge;
use crate::nn::kernel::gaussian::{Gaussian, RIDGE};

/// What may be chosen.
const CHOICES: [usize; 2] = [LAGS, LONGEST];
/// What more lags must gain in the mean log-likelihood of a step for each sensor, in nats: its residual
/// shrinks by three hundredths.
const WORTH: f64 = 0.03;
/// Steps that the choice is made on at most; the last quarter of them is held out.
const STEPS: usize = 8000;
/// Steps for each regressor that the choice needs at least.
const A_REGRESSOR: usize = 10;

impl Whitening {
    /// The lags of the measurement: as many as there may be where that predicts clearly better.
    pub(super) fn choose_lags(&self, nominal: &Recording, settling: usize) -> usize {
        let mut past = self.past_of(LONGEST);
        let mut steps = 0;
        self.each_settled(nominal, settling, &mut past, |_, _, _| steps += 1);
        let steps = steps.min(STEPS);
        let fitted = steps / 4 * 3;
        if fitted < A_REGRESSOR * past.u.len() {
            return LAGS;
        }
        let kept = CHOICES.map(|lags| self.places(lags));
        let mut ridge = Ridge::new(past.u.len(), self.sensors);
        let mut fits = Vec::new();
        let mut held_out = [Vec::new(), Vec::new()];
        let mut at = 0;
        Self::forget(&mut past);
        self.each_settled(nominal, settling, &mut past, |_, u, r| {
            if at < fitted {
                ridge.add(u, r);
            } else if at < steps && r.iter().all(|v| v.is_finite()) {
                if fits.is_empty() {
                    fits.extend(kept.iter().map(|kept| ridge.solve_for(kept, super::LAMBDA)));
                }
                for ((fit, kept), rows) in fits.iter().zip(&kept).zip(&mut held_out) {
                    rows.extend(r.iter().zip(fit.column_iter()).map(|(r, column)| {
                        let explained: f64 = column.iter().zip(kept).map(|(b, i)| b * u[*i]).sum();
                        (r - explained) as f32
                    }));
                }
            }
            at += 1;
        });
        let [usual, longest] = [0, 1].map(|choice: usize| self.loss(&held_out[choice]));
        let is_worth = usual - longest > WORTH * self.sensors as f64;
        if is_worth { LONGEST } else { LAGS }
    }

    /// The places, among the regressors with the most lags, of those with `lags`.
    fn places(&self, lags: usize) -> Vec<usize> {
        let (from, until) = ((LAGS + lags) * self.sensors, (LAGS + LONGEST) * self.sensors);
        (0..from).chain(until..self.width(LONGEST)).collect()
    }

    /// Half the log determinant of the covariance: the mean negative log-likelihood of a step, up to
    /// what is the same for all.
    fn loss(&self, rows: &[f32]) -> f64 {
        let covariance = Gaussian::fit(self.sensors, rows, RIDGE).covariance().clone();
        let factor = nalgebra::Cholesky::new(covariance);
        factor.map_or(f64::INFINITY, |f| f.l_dirty().diagonal().iter().map(|v| v.ln()).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;
    use crate::base::rng;
    use rand_distr::{Distribution as _, StandardNormal};

    /// One sensor that repeats `share` of what it showed `lag` steps before.
    fn echo(lag: usize, share: f32) -> Recording {
        let mut rng = rng::stream(7, 0);
        let mut recording = Recording::new(1, 1);
        let mut shown: Vec<f32> = Vec::new();
        for t in 0..4000 {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let y = [noise as f32 + if t >= lag { share * shown[t - lag] } else { 0.0 }];
            shown.push(y[0]);
            recording.push(Sample { y: &y, y_hat: &[0.0], r: &y, x_hat: &[0.0], inputs: &[] });
        }
        recording
    }

    #[test]
    fn a_longer_memory_is_taken_where_it_predicts_better_and_only_there() {
        let lags = |lag, share| Whitening::fit(&echo(lag, share), 40).lags();
        assert_eq!([lags(3, 0.8), lags(9, 0.6), lags(14, 0.6)], [5, 15, 15]);
        assert_eq!(lags(14, 0.1), 5, "half a hundredth of a nat is not worth ten lags");
    }

    #[test]
    fn a_long_memory_is_carried_in_order_and_forgotten_with_its_run() {
        let recording = echo(14, 0.6);
        let whitening = Whitening::fit(&recording, 40);
        assert!(whitening.is_whole());
        let rows = whitening.rows(&recording, 40);
        let square = |rows: &mut dyn Iterator<Item = f32>| -> f64 {
            rows.filter(|r| r.is_finite()).map(|r| f64::from(r).powi(2)).sum::<f64>()
        };
        let left = square(&mut rows.iter().copied());
        let before = square(&mut recording.iter().skip(40).map(|(_, sample)| sample.r[0]));
        assert!(left < 0.7 * before, "0.64 of the variance is noise: {left} of {before}");
    }

    #[test]
    fn little_data_chooses_no_long_memory() {
        let mut short = Recording::new(1, 1);
        let all = echo(14, 0.6);
        (0..300).for_each(|t| short.push(all.sample(t)));
        assert_eq!(Whitening::fit(&short, 40).lags(), 5);
    }
}
