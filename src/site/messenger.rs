//! The client's half: what it can say about its state without saying what it measured.
//!
//! z is the estimate x̂ of the model whose states may be sent, in its own standard deviations. ε is
//! what was new about that state: K̄ᵀ r_w, where K̄ carries whitened residuals to what they changed
//! in the state, in its own standard deviations too.

use serde::{Deserialize, Serialize};

use crate::evidence::features::{LARGEST_EPSILON, LARGEST_Z, Standard, bounded};
use crate::evidence::ridge::Ridge;
use crate::nn::proprietary::{Proprietary as _, VendorModel};
use crate::site::whitening::{Past, Sample, Whitening};

/// Components with a smaller share of the variance of all are not worth sending.
const SMALLEST_SHARE: f64 = 0.01;
/// Ridge penalty of K̄: enough to be solvable.
const LAMBDA: f64 = 1e-3;

/// What a client's models say about one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    /// x̂ of the model whose states may be sent.
    pub(crate) x_hat: &'a [f32],
    /// What the measurement changed in it.
    pub(crate) e: &'a [f32],
    /// The whitened residual of the model that watches; NaN where missing.
    pub(crate) r_w: &'a [f32],
}

/// A stretch of what a client's models say, for fitting. It stays with the client.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    states: usize,
    sensors: usize,
    rows: Vec<f32>,
    spoken: Vec<bool>,
}

impl Trace {
    pub(crate) fn new(states: usize, sensors: usize) -> Self {
        Self { states, sensors, rows: Vec::new(), spoken: Vec::new() }
    }

    fn width(&self) -> usize {
        2 * self.states + self.sensors
    }

    /// The next step; none where there is nothing to say.
    pub(crate) fn push(&mut self, said: Option<Said<'_>>) {
        self.spoken.push(said.is_some());
        match said {
            Some(Said { x_hat, e, r_w }) => {
                self.rows.extend_from_slice(x_hat);
                self.rows.extend_from_slice(e);
                self.rows.extend_from_slice(r_w);
            }
            None => self.rows.resize(self.rows.len() + self.width(), f32::NAN),
        }
    }

    pub(crate) fn steps(&self) -> usize {
        self.spoken.len()
    }

    pub(crate) fn sensors(&self) -> usize {
        self.sensors
    }

    /// What was said at step `t`.
    pub(crate) fn at(&self, t: usize) -> Option<Said<'_>> {
        let (p, w) = (self.states, self.width());
        let row = self.rows.get(t * w..(t + 1) * w).filter(|_| self.spoken[t])?;
        Some(Said { x_hat: &row[..p], e: &row[p..2 * p], r_w: &row[2 * p..] })
    }

    /// Other whitened residuals, one row for each step of `measured`.
    pub(crate) fn set_whitened(&mut self, measured: impl Iterator<Item = usize>, rows: &[f32]) {
        let (p, d, w) = (self.states, self.sensors, self.width());
        for (t, r_w) in measured.zip(rows.chunks_exact(d.max(1))) {
            if self.spoken[t] {
                self.rows[t * w + 2 * p..(t + 1) * w].copy_from_slice(r_w);
            }
        }
    }

    fn spoken(&self) -> impl Iterator<Item = Said<'_>> {
        (0..self.steps()).filter_map(|t| self.at(t))
    }
}

/// Runs a client's models over rows and keeps what they say.
#[derive(Debug)]
pub(crate) struct Tracer<'a> {
    watching: &'a mut VendorModel,
    /// The model whose states may be sent, where that is another one.
    sending: Option<&'a mut VendorModel>,
    whitening: &'a Whitening,
    settling: usize,
    past: Past,
    r_w: Vec<f32>,
}

impl<'a> Tracer<'a> {
    /// Models at the beginning of a run; the first `settling` steps of a run say nothing.
    pub(crate) fn new(
        watching: &'a mut VendorModel,
        sending: Option<&'a mut VendorModel>,
        whitening: &'a Whitening,
        settling: usize,
    ) -> Self {
        let mut tracer = Self {
            past: whitening.past(),
            r_w: vec![f32::NAN; whitening.sensors()],
            watching,
            sending,
            whitening,
            settling,
        };
        tracer.reset();
        tracer
    }

    /// A new run begins.
    pub(crate) fn reset(&mut self) {
        self.watching.reset();
        if let Some(sending) = &mut self.sending {
            sending.reset();
        }
        Whitening::forget(&mut self.past);
    }

    /// A trace of rows with the known inputs beside them, each with whether a run begins with it;
    /// none is a row without any value.
    pub(crate) fn trace<'r>(
        &mut self,
        rows: impl Iterator<Item = (bool, Option<(&'r [f32], &'r [f32])>)>,
    ) -> Trace {
        let states = self.sending.as_deref().unwrap_or(self.watching).states();
        let mut trace = Trace::new(states, self.whitening.sensors());
        for (starts, y) in rows {
            if starts {
                self.reset();
            }
            trace.push(y.and_then(|(y, inputs)| self.step(y, inputs)));
        }
        trace
    }

    fn step(&mut self, y: &[f32], inputs: &[f32]) -> Option<Said<'_>> {
        self.watching.step(y, None);
        let out = self.watching.output();
        let sample = Sample { y, y_hat: &out.y_hat, r: &out.r, x_hat: &out.x_hat, inputs };
        self.whitening.step(&mut self.past, sample, &mut self.r_w);
        if let Some(sending) = &mut self.sending {
            sending.step(y, None);
        }
        let out = self.sending.as_deref().unwrap_or(self.watching).output();
        let measured = y.iter().any(|y| y.is_finite());
        (measured && self.past.steps() > self.settling).then_some(Said {
            x_hat: &out.x_hat,
            e: &out.e,
            r_w: &self.r_w,
        })
    }
}

/// Turns what a client's models say into z and ε.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Messenger {
    standard: Standard,
    /// Components of the state that are worth sending.
    kept: Vec<usize>,
    /// K̄ᵀ in standard deviations of ε, one row per component.
    gain: Vec<f64>,
}

impl Messenger {
    /// From a nominal stretch.
    pub(crate) fn fit(nominal: &Trace) -> Self {
        let (p, d) = (nominal.states, nominal.sensors);
        let standard = Standard::fit(p, nominal.spoken().map(|said| said.x_hat));
        let total: f64 = (0..p).map(|i| standard.variance(i)).sum();
        let kept: Vec<usize> =
            (0..p).filter(|i| standard.variance(*i) >= SMALLEST_SHARE * total).collect();
        let mut ridge = Ridge::new(d + 1, kept.len());
        let mut x = vec![1.0; d + 1];
        let mut y = vec![0.0; kept.len()];
        for said in nominal.spoken() {
            x.iter_mut().zip(said.r_w).for_each(|(x, r)| *x = f64::from(*r));
            y.iter_mut().zip(&kept).for_each(|(y, i)| *y = f64::from(said.e[*i]));
            ridge.add(&x, &y);
        }
        let solution = ridge.solve(LAMBDA);
        let mut gain: Vec<f64> = (0..kept.len())
            .flat_map(|k| solution.column(k).rows(0, d).iter().copied().collect::<Vec<_>>())
            .collect();
        let rows = gain.chunks_exact_mut(d.max(1));
        for row in rows {
            let mut squares = (0.0, 0.0);
            for said in nominal.spoken() {
                squares = (squares.0 + project(row, said.r_w).powi(2), squares.1 + 1.0);
            }
            let std = (squares.0 / f64::max(squares.1, 1.0)).sqrt();
            let scale = if std > 1e-12 { std.recip() } else { 0.0 };
            for g in row {
                *g *= scale;
            }
        }
        Self { standard, kept, gain }
    }

    /// Numbers in z, and in ε.
    pub(crate) fn states(&self) -> usize {
        self.kept.len()
    }

    /// z of an estimate.
    pub(crate) fn z(&self, x_hat: &[f32], out: &mut [f64]) {
        for (z, i) in out.iter_mut().zip(&self.kept) {
            *z = self.standard.apply(*i, x_hat[*i], LARGEST_Z);
        }
    }

    /// ε of a whitened residual.
    pub(crate) fn epsilon(&self, r_w: &[f32], out: &mut [f64]) {
        for (epsilon, row) in out.iter_mut().zip(self.gain.chunks_exact(r_w.len().max(1))) {
            *epsilon = bounded(project(row, r_w), LARGEST_EPSILON);
        }
    }
}

/// A missing residual is taken for zero: nothing new.
fn project(row: &[f64], r_w: &[f32]) -> f64 {
    let known = row.iter().zip(r_w).filter(|(_, r)| r.is_finite());
    known.map(|(g, r)| g * f64::from(*r)).sum()
}
