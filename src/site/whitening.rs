//! Local whitening: what the client's own past still explains of its residual is taken out.
//!
//! r_w = r − Bᵀu, where u holds five lags of the residual, five or more of the measurement ([`lags`]),
//! the model's own prediction ŷ of this step, nonlinear features ψ of the last two state estimates, and
//! the known inputs v (set points, commands) of this step and the last ones, where the session names
//! such. A sequential test adds up evidence, which is right only when steps say something new; raw
//! residuals of any model repeat themselves. Fitted on nominal data; everything stays with the client.

mod crossed;
mod lags;

use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use crate::evidence::features::{Features, LARGEST_Z, Standard, bounded};
use crate::evidence::ridge::Ridge;

/// Lags of the residual among the regressors, and of the measurement unless more are worth it.
pub(crate) const LAGS: usize = 5;
/// Most lags of the measurement.
pub(crate) const LONGEST: usize = 15;
/// Lags of the state features.
pub(crate) const STATE_LAGS: usize = 2;
/// Steps of the known inputs, the present one among them.
pub(crate) const INPUT_LAGS: usize = 3;
/// Bounds on regressors, in nominal standard deviations.
const LARGEST_Y: f64 = 5.0;
const LARGEST_R: f64 = 6.0;
/// Ridge penalty.
const LAMBDA: f64 = 3.0;

/// The output of a proprietary model for one step. Measurements are standardised; missing is NaN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'a> {
    /// y.
    pub(crate) y: &'a [f32],
    /// ŷ, the model's prediction of y.
    pub(crate) y_hat: &'a [f32],
    /// r = y − ŷ.
    pub(crate) r: &'a [f32],
    /// x̂, the estimated state.
    pub(crate) x_hat: &'a [f32],
    /// v, known inputs of this step, standardised; empty where there are none.
    pub(crate) inputs: &'a [f32],
}

/// A stretch of samples kept for fitting.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording {
    sensors: usize,
    states: usize,
    inputs: usize,
    rows: Vec<f32>,
    starts: Vec<usize>,
}

impl Recording {
    pub(crate) fn new(sensors: usize, states: usize) -> Self {
        Self { sensors, states, inputs: 0, rows: Vec::new(), starts: Vec::new() }
    }

    /// The same with so many known inputs beside the sensors.
    pub(crate) fn with_inputs(self, inputs: usize) -> Self {
        Self { inputs, ..self }
    }

    fn width(&self) -> usize {
        (3 * self.sensors + self.states + self.inputs).max(1)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() / self.width()
    }

    /// The next sample has nothing to do with the one before.
    pub(crate) fn new_run(&mut self) {
        let here = self.len();
        if self.starts.last() != Some(&here) {
            self.starts.push(here);
        }
    }

    pub(crate) fn push(&mut self, sample: Sample<'_>) {
        self.rows.extend_from_slice(sample.y);
        self.rows.extend_from_slice(sample.y_hat);
        self.rows.extend_from_slice(sample.r);
        self.rows.extend_from_slice(sample.x_hat);
        self.rows.extend_from_slice(sample.inputs);
    }

    /// Sample `t`.
    pub(crate) fn sample(&self, t: usize) -> Sample<'_> {
        let (d, w) = (self.sensors, self.width());
        let row = &self.rows[t * w..(t + 1) * w];
        let (x_hat, inputs) = row[3 * d..].split_at(self.states);
        Sample { y: &row[..d], y_hat: &row[d..2 * d], r: &row[2 * d..3 * d], x_hat, inputs }
    }

    /// All samples in order, each with whether a run begins with it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (bool, Sample<'_>)> {
        let mut starts = self.starts.iter().copied().peekable();
        (0..self.len()).map(move |t| {
            let starts_here = starts.next_if_eq(&t).is_some();
            (starts_here || t == 0, self.sample(t))
        })
    }
}

/// ψ of a state in its own units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StateFeatures {
    standard: Standard,
    features: Features,
}

impl StateFeatures {
    fn new(standard: Standard) -> Self {
        Self { features: Features::new(standard.width()), standard }
    }

    fn len(&self) -> usize {
        self.features.width()
    }

    fn write(&self, x_hat: &[f32], out: &mut [f64]) {
        for (i, (z, x)) in out.iter_mut().zip(x_hat).enumerate() {
            *z = self.standard.apply(i, *x, LARGEST_Z);
        }
        self.features.complete(out);
    }
}

/// The fitted regression of one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Whitening {
    sensors: usize,
    inputs: usize,
    residual: Standard,
    features: StateFeatures,
    /// One row of coefficients per sensor.
    coefficients: Vec<f64>,
}

/// The regressors u of the next step, carried from step to step in place.
///
/// ```text
/// u = [ρ(t−1) … ρ(t−5) | y(t−1) … y(t−L) | ψ(t−1) ψ(t−2) | ŷ(t) | v(t) v(t−1) v(t−2) | 1]
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Past {
    u: Vec<f64>,
    steps: usize,
    /// L.
    lags: usize,
}

impl Past {
    /// Steps since the run began.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }
}

impl Whitening {
    /// Fits the regression on nominal samples. The first `settling` steps of each run are left out.
    pub(crate) fn fit(nominal: &Recording, settling: usize) -> Self {
        let mut whitening = Self::unfitted(nominal, settling);
        let lags = whitening.choose_lags(nominal, settling);
        let mut past = whitening.past_of(lags);
        let mut ridge = Ridge::new(past.u.len(), whitening.sensors);
        whitening.each_settled(nominal, settling, &mut past, |_, u, r| ridge.add(u, r));
        whitening.solve(&mut ridge);
        whitening
    }

    /// Takes the coefficients of a regression.
    fn solve(&mut self, ridge: &mut Ridge) {
        let solution: DMatrix<f64> = ridge.solve(LAMBDA);
        // Column-major (regressors × sensors): each sensor's coefficients stand together.
        self.coefficients = solution.as_slice().to_vec();
    }

    /// What the regressors are made of, before there are coefficients.
    fn unfitted(nominal: &Recording, settling: usize) -> Self {
        let (sensors, states) = (nominal.sensors, nominal.states);
        let settled = || {
            let mut since = 0;
            nominal.iter().filter_map(move |(starts, sample)| {
                since = if starts { 0 } else { since + 1 };
                (since >= settling).then_some(sample)
            })
        };
        let residual = Standard::fit(sensors, settled().map(|s| s.r));
        let states = Standard::fit(states, settled().map(|s| s.x_hat));
        Self {
            sensors,
            inputs: nominal.inputs,
            residual,
            features: StateFeatures::new(states),
            coefficients: Vec::new(),
        }
    }

    /// Hands out the place, the regressors and the residual of every settled step of a recording.
    fn each_settled(
        &self,
        nominal: &Recording,
        settling: usize,
        past: &mut Past,
        mut take: impl FnMut(usize, &[f64], &[f64]),
    ) {
        let mut r = vec![0.0; self.sensors];
        for (t, (starts, sample)) in nominal.iter().enumerate() {
            if starts {
                Self::forget(past);
            }
            self.expect(past, sample);
            if past.steps >= settling {
                r.iter_mut().zip(sample.r).for_each(|(r, v)| *r = f64::from(*v));
                take(t, &past.u, &r);
            }
            self.remember(past, sample);
        }
    }

    pub(crate) fn sensors(&self) -> usize {
        self.sensors
    }

    /// Whether the parts fit together: what is read from a file may not.
    pub(crate) fn is_whole(&self) -> bool {
        self.residual.width() == self.sensors
            && (LAGS..=LONGEST).contains(&self.lags())
            && self.coefficients.len() == self.past().u.len() * self.sensors
    }

    /// L, the lags of the measurement: as many as there are coefficients for.
    pub(crate) fn lags(&self) -> usize {
        let others = self.width(0);
        let width = self.coefficients.len() / self.sensors.max(1);
        width.saturating_sub(others) / self.sensors.max(1)
    }

    /// Number of regressors.
    pub(crate) fn regressors(&self) -> usize {
        self.width(self.lags())
    }

    /// Number of regressors with so many lags of the measurement.
    fn width(&self, lags: usize) -> usize {
        let own = (LAGS + lags + 1) * self.sensors + STATE_LAGS * self.features.len();
        own + INPUT_LAGS * self.inputs + 1
    }

    pub(crate) fn past(&self) -> Past {
        self.past_of(self.lags())
    }

    fn past_of(&self, lags: usize) -> Past {
        let mut past = Past { u: vec![0.0; self.width(lags)], steps: 0, lags };
        Self::forget(&mut past);
        past
    }

    /// A new run begins: nothing is known of its past.
    pub(crate) fn forget(past: &mut Past) {
        past.u.fill(0.0);
        if let Some(intercept) = past.u.last_mut() {
            *intercept = 1.0;
        }
        past.steps = 0;
    }

    /// Writes r_w of this step and carries the past on. Missing stays NaN.
    pub(crate) fn step(&self, past: &mut Past, sample: Sample<'_>, r_w: &mut [f32]) {
        self.expect(past, sample);
        let rows = self.coefficients.chunks_exact(past.u.len());
        for ((out, r), row) in r_w.iter_mut().zip(sample.r).zip(rows) {
            let explained: f64 = row.iter().zip(&past.u).map(|(b, u)| b * u).sum();
            *out = (f64::from(*r) - explained) as f32;
        }
        self.remember(past, sample);
    }

    /// r_w of a whole recording, one row a sample; NaN in the first `settling` steps of each run.
    pub(crate) fn rows(&self, recording: &Recording, settling: usize) -> Vec<f32> {
        let mut past = self.past();
        let mut rows = vec![f32::NAN; recording.len() * self.sensors];
        for ((starts, sample), row) in
            recording.iter().zip(rows.chunks_exact_mut(self.sensors.max(1)))
        {
            if starts {
                Self::forget(&mut past);
            }
            self.step(&mut past, sample, row);
            if past.steps() <= settling {
                row.fill(f32::NAN);
            }
        }
        rows
    }

    /// ŷ and v of this step.
    fn expect(&self, past: &mut Past, sample: Sample<'_>) {
        let known = INPUT_LAGS * self.inputs;
        let from = past.u.len() - 1 - known - self.sensors;
        let now =
            sample.y_hat.iter().take(self.sensors).chain(sample.inputs.iter().take(self.inputs));
        for (u, v) in past.u[from..].iter_mut().zip(now) {
            *u = bounded(f64::from(*v), LARGEST_Y);
        }
    }

    fn remember(&self, past: &mut Past, sample: Sample<'_>) {
        let d = self.sensors;
        let (rho, rest) = past.u.split_at_mut(LAGS * d);
        let (y, rest) = rest.split_at_mut(past.lags * d);
        let (psi, rest) = rest.split_at_mut(STATE_LAGS * self.features.len());
        let inputs = &mut rest[d..d + INPUT_LAGS * self.inputs];
        inputs.copy_within(..(INPUT_LAGS - 1) * self.inputs, self.inputs);
        rho.copy_within(..(LAGS - 1) * d, d);
        for (i, (out, r)) in rho.iter_mut().zip(sample.r).enumerate() {
            *out = self.residual.apply(i, *r, LARGEST_R);
        }
        y.copy_within(..(past.lags - 1) * d, d);
        for (out, v) in y.iter_mut().zip(sample.y) {
            *out = bounded(f64::from(*v), LARGEST_Y);
        }
        let f = self.features.len();
        psi.copy_within(..(STATE_LAGS - 1) * f, f);
        self.features.write(sample.x_hat, &mut psi[..f]);
        past.steps += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use rand_distr::{Distribution as _, StandardNormal};

    /// Residuals that repeat 0.8 of the last one, on two sensors.
    fn coloured(steps: usize, seed: u64) -> Recording {
        let mut rng = rng::stream(seed, 0);
        let mut recording = Recording::new(2, 1);
        let mut r = [0.0f32; 2];
        for t in 0..steps {
            for r in &mut r {
                let noise: f64 = StandardNormal.sample(&mut rng);
                *r = 0.8 * *r + noise as f32;
            }
            let y_hat = [(t as f32 * 0.1).sin(), 0.0];
            let y = [y_hat[0] + r[0], y_hat[1] + r[1]];
            recording.push(Sample {
                y: &y,
                y_hat: &y_hat,
                r: &r,
                x_hat: &[r[0] * 0.5],
                inputs: &[],
            });
        }
        recording
    }

    fn whitened(whitening: &Whitening, recording: &Recording) -> Vec<f32> {
        let mut past = whitening.past();
        let mut r_w = vec![0.0; 2];
        let mut first = Vec::new();
        for (starts, sample) in recording.iter() {
            if starts {
                Whitening::forget(&mut past);
            }
            whitening.step(&mut past, sample, &mut r_w);
            first.push(r_w[0]);
        }
        first
    }

    fn lag_one(values: &[f32]) -> f64 {
        let (mut cross, mut square) = (0.0, 0.0);
        for pair in values.windows(2) {
            cross += f64::from(pair[0]) * f64::from(pair[1]);
            square += f64::from(pair[0]).powi(2);
        }
        cross / square
    }

    #[test]
    fn what_the_past_explains_is_gone_on_data_that_was_not_fitted() {
        let whitening = Whitening::fit(&coloured(3000, 1), 10);
        let fresh = coloured(3000, 2);
        let raw: Vec<f32> = fresh.iter().map(|(_, s)| s.r[0]).collect();
        let white = whitened(&whitening, &fresh);
        assert!(lag_one(&raw) > 0.7, "{}", lag_one(&raw));
        assert!(lag_one(&white[10..]).abs() < 0.06, "{}", lag_one(&white[10..]));
    }

    #[test]
    fn a_missing_value_stays_missing_and_harms_no_later_step() {
        let whitening = Whitening::fit(&coloured(2000, 1), 10);
        let mut past = whitening.past();
        let mut r_w = [0.0; 2];
        let nan = [f32::NAN; 2];
        whitening.step(
            &mut past,
            Sample { y: &nan, y_hat: &nan, r: &nan, x_hat: &[f32::NAN], inputs: &[] },
            &mut r_w,
        );
        assert!(r_w.iter().all(|v| v.is_nan()));
        let one = [1.0; 2];
        whitening.step(
            &mut past,
            Sample { y: &one, y_hat: &one, r: &one, x_hat: &[1.0], inputs: &[] },
            &mut r_w,
        );
        assert!(r_w.iter().all(|v| v.is_finite()));
    }

    #[test]
    fn a_new_run_knows_nothing_of_the_one_before() {
        let whitening = Whitening::fit(&coloured(2000, 1), 10);
        let fresh = coloured(200, 5);
        let mut joined = coloured(100, 4);
        joined.new_run();
        for (_, sample) in fresh.iter() {
            joined.push(sample);
        }
        assert_eq!(whitened(&whitening, &joined)[100..], whitened(&whitening, &fresh)[..]);
    }

    #[test]
    fn no_nominal_data_leaves_residuals_as_they_are() {
        let whitening = Whitening::fit(&Recording::new(2, 1), 0);
        let fresh = coloured(20, 3);
        let raw: Vec<f32> = fresh.iter().map(|(_, s)| s.r[0]).collect();
        assert_eq!(whitened(&whitening, &fresh), raw);
    }

    #[test]
    fn what_a_known_input_does_is_no_surprise_and_without_it_is_one() {
        // A set point that jumps now and then and moves the first sensor one step later.
        let recording = |inputs: usize, seed: u64| {
            let mut rng = rng::stream(seed, 0);
            let mut recording = Recording::new(1, 1).with_inputs(inputs);
            let (mut set, mut before) = (0.0f32, 0.0f32);
            for t in 0..3000 {
                let noise: f64 = StandardNormal.sample(&mut rng);
                let jump: f64 = StandardNormal.sample(&mut rng);
                let r = [2.0 * (before - set) + 0.2 * noise as f32];
                before = set;
                if t % 20 == 0 {
                    set = jump as f32;
                }
                let v = [set];
                let (y, y_hat) = (r, [0.0]);
                let inputs = &v[..inputs];
                recording.push(Sample { y: &y, y_hat: &y_hat, r: &r, x_hat: &[0.0], inputs });
            }
            recording
        };
        let largest = |inputs| {
            let whitening = Whitening::fit(&recording(inputs, 1), 10);
            let mut past = whitening.past();
            let mut r_w = [0.0];
            let mut largest = 0.0f32;
            for (_, sample) in recording(inputs, 2).iter() {
                whitening.step(&mut past, sample, &mut r_w);
                largest = largest.max(r_w[0].abs());
            }
            largest
        };
        assert!(largest(1) < 1.5 && largest(0) > 3.0, "{} {}", largest(1), largest(0));
    }
}
