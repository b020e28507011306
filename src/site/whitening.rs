//! Local whitening: what the client's own past still explains of its residual is taken out.
//!
//! r_w = r − Bᵀu, where u holds five lags of the residual, five or more of the measurement ([`lags`]),
//! the model's own prediction ŷ of this step, nonlinear features ψ of the last two state estimates, and
//! the known inputs v (set points, commands) of this step and the last ones, where the session names
//! such. A sequential test adds up evidence, which is right only when steps say something new; raw
//! residuals of any model repeat themselves. Fitted on nominal data; everything stays with the client.
//!
//! A filter with fewer states than sensors is not all that is known of the past. There B is the mean of two
//! regressions, one of them without the filter ([`own_past`]).

mod crossed;
mod lags;
mod own_past;
#[cfg(test)]
mod tests;

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
    /// Whether the model has too few states to stand for the measurements before.
    few_states: bool,
    rows: Vec<f32>,
    starts: Vec<usize>,
}

impl Recording {
    pub(crate) fn new(sensors: usize, states: usize) -> Self {
        let (rows, starts) = (Vec::new(), Vec::new());
        Self { sensors, states, inputs: 0, few_states: false, rows, starts }
    }

    /// The same of a model that has too few states to stand for the measurements before.
    pub(crate) fn with_few_states(self, few_states: bool) -> Self {
        Self { few_states, ..self }
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

    /// Puts ψ of this step before those of the steps before.
    fn remember(&self, x_hat: &[f32], psi: &mut [f64]) {
        let width = self.len();
        psi.copy_within(..(STATE_LAGS - 1) * width, width);
        self.write(x_hat, &mut psi[..width]);
    }
}

/// The fitted regression of one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Whitening {
    sensors: usize,
    inputs: usize,
    residual: Standard,
    features: StateFeatures,
    /// ψ of the measurement, where a second regression predicts without the model.
    own: Option<StateFeatures>,
    /// One row of coefficients per sensor.
    coefficients: Vec<f64>,
}

/// The regressors u of the next step, carried from step to step in place.
///
/// ```text
/// u = [ρ(t−1) … ρ(t−5) | y(t−1) … y(t−L) | ψ(t−1) ψ(t−2) | ŷ(t) | v(t) v(t−1) v(t−2) | 1]
/// ```
///
/// Where a second regression predicts without the model, ψ of y(t−1) and y(t−2) stand before ŷ.
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
        let mut ridge = whitening.regression(lags);
        whitening.each_settled(nominal, settling, &mut past, |_, u, targets| ridge.add(u, targets));
        whitening.solve(&mut ridge, lags);
        whitening
    }

    /// A regression without rows.
    fn regression(&self, lags: usize) -> Ridge {
        Ridge::new(self.width(lags), self.targets())
    }

    /// Takes the coefficients of a regression.
    fn solve(&mut self, ridge: &mut Ridge, lags: usize) {
        let solution: DMatrix<f64> = ridge.solve(LAMBDA);
        // Column-major (regressors × targets): each sensor's coefficients stand together, residuals first.
        self.coefficients = solution.as_slice()[..self.width(lags) * self.sensors].to_vec();
        if self.own.is_some() {
            self.average_with_own_past(ridge, lags);
        }
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
        let own = || StateFeatures::new(Standard::fit(sensors, settled().map(|s| s.y)));
        Self {
            sensors,
            inputs: nominal.inputs,
            residual,
            features: StateFeatures::new(states),
            own: nominal.few_states.then(own),
            coefficients: Vec::new(),
        }
    }

    /// Hands out the place, the regressors and the targets of every settled step of a recording: its residual,
    /// and its measurement where a second regression predicts that.
    fn each_settled(
        &self,
        nominal: &Recording,
        settling: usize,
        past: &mut Past,
        mut take: impl FnMut(usize, &[f64], &[f64]),
    ) {
        let mut targets = vec![0.0; self.targets()];
        for (t, (starts, sample)) in nominal.iter().enumerate() {
            if starts {
                Self::forget(past);
            }
            self.expect(past, sample);
            if past.steps >= settling {
                let values = sample.r.iter().chain(sample.y);
                targets.iter_mut().zip(values).for_each(|(target, v)| *target = f64::from(*v));
                take(t, &past.u, &targets);
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

    /// Number of regressors with so many lags of the measurement.
    fn width(&self, lags: usize) -> usize {
        let features = self.features.len() + self.own.as_ref().map_or(0, StateFeatures::len);
        (LAGS + lags + 1) * self.sensors + STATE_LAGS * features + INPUT_LAGS * self.inputs + 1
    }

    /// Numbers that a step has for the regressions to explain.
    fn targets(&self) -> usize {
        if self.own.is_some() { 2 * self.sensors } else { self.sensors }
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
        let (psi, mut rest) = rest.split_at_mut(STATE_LAGS * self.features.len());
        if let Some(own) = &self.own {
            let (psi, others) = rest.split_at_mut(STATE_LAGS * own.len());
            own.remember(sample.y, psi);
            rest = others;
        }
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
        self.features.remember(sample.x_hat, psi);
        past.steps += 1;
    }
}
