//! A second regression, beside a filter that has fewer states than its client has sensors.
//!
//! Such a filter keeps little of what was measured before, and a disturbance throws it off for a while. A
//! regression on the client's own last measurements knows neither its residual nor its states. Their errors
//! differ, so the mean of both predictions is nearer to what is measured than either. Both are linear in u, so
//! their mean is one regression, and a step costs ψ(y) more.

use super::{INPUT_LAGS, LAGS, LAMBDA, STATE_LAGS, StateFeatures, Whitening};
use crate::evidence::ridge::Ridge;

impl Whitening {
    /// Makes the coefficients the mean of what they are and of the regression of y without the model.
    pub(super) fn average_with_own_past(&mut self, ridge: &mut Ridge, lags: usize) {
        let (d, width) = (self.sensors, self.width(lags));
        let kept = self.own_regressors(lags);
        let own = ridge.solve_for(&kept, LAMBDA);
        let y_hat = self.from_y_hat(lags);
        for (j, of_sensor) in self.coefficients.chunks_exact_mut(width).enumerate() {
            of_sensor.iter_mut().for_each(|b| *b *= 0.5);
            for (b, i) in own.column(d + j).iter().zip(&kept) {
                of_sensor[*i] += 0.5 * b;
            }
            // y − bᵀu is r + ŷ − bᵀu.
            of_sensor[y_hat + j] -= 0.5;
        }
    }

    /// Where ŷ begins among the regressors.
    fn from_y_hat(&self, lags: usize) -> usize {
        self.width(lags) - 1 - INPUT_LAGS * self.inputs - self.sensors
    }

    /// The regressors without those of the model: lags of y, ψ(y), known inputs and the intercept.
    fn own_regressors(&self, lags: usize) -> Vec<usize> {
        let y = LAGS * self.sensors;
        let y_hat = self.from_y_hat(lags);
        let psi = y_hat - STATE_LAGS * self.own.as_ref().map_or(0, StateFeatures::len);
        let lags_of_y = y..y + lags * self.sensors;
        lags_of_y.chain(psi..y_hat).chain(y_hat + self.sensors..self.width(lags)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, Sample};
    use super::*;
    use crate::base::rng;
    use rand_distr::{Distribution as _, StandardNormal};

    /// A slow swing in two sensors; a model that predicts it with errors of its own, `error` large.
    fn recording(steps: usize, seed: u64, error: f32, few_states: bool) -> Recording {
        let mut rng = rng::stream(seed, 0);
        let mut recording = Recording::new(2, 1).with_few_states(few_states).with_inputs(1);
        for t in 0..steps {
            let mut draw = || -> f32 { StandardNormal.sample(&mut rng) };
            let swing = [(t as f32 * 0.11).sin(), (t as f32 * 0.11).cos()];
            let y = swing.map(|v| v + 0.3 * draw());
            let y_hat = swing.map(|v| v + error * draw());
            let r = [y[0] - y_hat[0], y[1] - y_hat[1]];
            let sample =
                Sample { y: &y, y_hat: &y_hat, r: &r, x_hat: &[y_hat[0]], inputs: &[swing[1]] };
            recording.push(sample);
        }
        recording
    }

    fn mean_square(whitening: &Whitening, recording: &Recording) -> f64 {
        let rows = whitening.rows(recording, 40);
        let finite = rows.iter().filter(|r| r.is_finite());
        finite.clone().map(|r| f64::from(*r).powi(2)).sum::<f64>() / finite.count() as f64
    }

    #[test]
    fn the_mean_of_both_regressions_is_the_mean_of_their_residuals() {
        let nominal = recording(3000, 1, 0.5, true);
        let both = Whitening::fit(&nominal, 40);
        assert!(both.is_whole());
        assert_eq!(both.lags(), super::super::LONGEST, "few states, and rows enough");
        let lags = both.lags();
        let mut past = both.past();
        let mut ridge = both.regression(lags);
        both.each_settled(&nominal, 40, &mut past, |_, u, targets| ridge.add(u, targets));
        let of_model = ridge.solve(LAMBDA);
        let kept = both.own_regressors(lags);
        let own = ridge.solve_for(&kept, LAMBDA);
        let fresh = recording(500, 2, 0.5, true);
        let rows = both.rows(&fresh, 40);
        let mut past = both.past();
        both.each_settled(&fresh, 40, &mut past, |t, u, targets| {
            for j in 0..2 {
                let first: f64 = targets[j]
                    - u.iter().zip(of_model.column(j).iter()).map(|(u, b)| u * b).sum::<f64>();
                let second: f64 = targets[2 + j]
                    - kept
                        .iter()
                        .zip(own.column(2 + j).iter())
                        .map(|(i, b)| u[*i] * b)
                        .sum::<f64>();
                let apart = f64::from(rows[2 * t + j]) - 0.5 * (first + second);
                assert!(apart.abs() < 1e-5, "{apart} at step {t}");
            }
        });
    }

    #[test]
    fn two_predictions_with_errors_of_their_own_are_better_than_one() {
        let fresh = recording(3000, 4, 0.5, true);
        let alone = Whitening::fit(&recording(3000, 3, 0.5, false), 40);
        let both = Whitening::fit(&recording(3000, 3, 0.5, true), 40);
        let noise = 0.3 * 0.3;
        let (alone, both) = (mean_square(&alone, &fresh), mean_square(&both, &fresh));
        assert!(both < alone && both < 1.1 * noise, "{both}, {alone} without, noise {noise}");
    }

    #[test]
    fn few_rows_are_not_enough_for_many_lags() {
        assert_eq!(Whitening::fit(&recording(500, 5, 0.5, true), 40).lags(), LAGS);
    }
}
