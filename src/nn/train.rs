//! How models are made from nominal data, with candle.
//!
//! A client trains its proprietary model on its own standardised rows and never again: what comes
//! out are frozen [`weights`](super::weights) and a report. The end-to-end
//! [`predictor`] (the paper's "without proprietary model") and the centralised
//! [`oracle`](super::oracle) go through the same optimisation. One job runs on one thread and its
//! numbers depend on its seed alone, so jobs may run side by side in any number of threads. It must
//! not know where rows come from, nor what is later decided with residuals.

pub(crate) mod adam;
pub(crate) mod backward;
pub(crate) mod batch;
pub(crate) mod filter;
pub(crate) mod gain;
pub(crate) mod graph;
pub(crate) mod lanes;
pub(crate) mod linear;
pub(crate) mod optimise;
pub(crate) mod predictor;
pub(crate) mod sensors;
pub(crate) mod window;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array2, ArrayView2, Axis};
use thiserror::Error;

use self::optimise::{Course, Schedule, WARM_UP, optimise};
use self::window::{Batch, Windows};
use super::weights::{FilterWeights, LstmFc, Mlp, OwnLagWeights, ProprietaryWeights};
use crate::rng;
use crate::session::settings::{ModelSettings, Proprietary};

/// Own lags of the linear models.
pub(crate) const LAGS: usize = 2;

/// Steps at the start of a held-out stretch that are not judged: the filter finds its state.
pub(crate) const SETTLING: usize = 40;

/// Scale of an output layer that starts as a small correction.
pub(super) const CORRECTION: f32 = 0.1;

/// Sources of randomness of one job.
pub(super) const WEIGHTS: u64 = 0;
const ORDER: u64 = 1;

/// One model to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    /// The client's name, for messages.
    pub(crate) client: &'a str,
    /// Which kind of model.
    pub(crate) kind: Proprietary,
    /// Sizes, passes, step size.
    pub(crate) settings: &'a ModelSettings,
    /// Nominal rows to learn from (rows = steps), standardised; not finite where missing.
    pub(crate) fit: ArrayView2<'a, f32>,
    /// Rows the model is judged on, of other times; may be empty.
    pub(crate) held_out: ArrayView2<'a, f32>,
    /// Of the initial weights and of the order of windows.
    pub(crate) seed: u64,
}

/// A model and how well it does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trained<W> {
    pub(crate) weights: W,
    /// How well it does.
    pub(crate) report: TrainReport,
}

/// How training went. All errors are mean squares in units of the standardised sensors.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TrainReport {
    /// Windows learned from; rows for a linear model.
    pub(crate) samples: usize,
    /// Mean loss of each pass; empty for a model with a closed form.
    pub(crate) epoch_loss: Vec<f64>,
    /// Innovation on the held-out rows; none without such rows.
    pub(crate) held_out_mse: Option<f64>,
    /// What predicting the last row again comes to on the same rows.
    pub(crate) persistence_mse: Option<f64>,
    /// Whether training was asked to stop before its end. The weights are what was learned by then.
    pub(crate) stopped: bool,
}

/// One step of training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Progress<'a> {
    pub(crate) client: &'a str,
    /// The pass, from 1.
    pub(crate) epoch: usize,
    pub(crate) epochs: usize,
    /// The step, from 1.
    pub(crate) iteration: usize,
    pub(crate) iterations: usize,
    /// The loss of this step's batch.
    pub(crate) loss: f64,
}

/// Why there is no model.
#[derive(Debug, Error)]
pub(crate) enum TrainError {
    /// Not enough consecutive rows.
    #[error(
        "{client}: {rows} nominal rows hold no stretch of {needed} steps without a gap to learn from"
    )]
    TooLittleData { client: String, rows: usize, needed: usize },
    /// The settings make no network or no window.
    #[error("{client}: cannot train with {what}")]
    Settings {
        client: String,
        /// What is wrong with them.
        what: String,
    },
    /// The loss grew without bound.
    #[error(
        "{client}: training diverged in epoch {epoch} (loss {loss}, last good loss {}); \
         a smaller learning_rate may help",
        last_good.map_or_else(|| "none".to_owned(), |v| format!("{v:.4}"))
    )]
    Diverged {
        client: String,
        /// The pass, from 1.
        epoch: usize,
        loss: f64,
        /// The last loss that was a number.
        last_good: Option<f64>,
    },
    /// candle refused an operation.
    #[error("{client}: {source}")]
    Network { client: String, source: candle_core::Error },
}

/// What is told of every step; `Break` ends training with what was learned.
pub(crate) type OnProgress<'a> = &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync);

/// Makes all models, at most `threads` at a time; results stand in the order of `jobs`.
///
/// The number of threads changes no bit of any model.
pub(crate) fn all(
    jobs: &[Job],
    threads: usize,
    on_progress: OnProgress,
) -> Vec<Result<Trained<ProprietaryWeights>, TrainError>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while let Some((i, job)) = {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(i).map(|job| (i, job))
                } {
                    let trained = proprietary(job, on_progress);
                    done.lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push((i, trained));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, trained)| trained).collect()
}

/// Makes one proprietary model.
pub(crate) fn proprietary(
    job: &Job,
    on_progress: OnProgress,
) -> Result<Trained<ProprietaryWeights>, TrainError> {
    job.check()?;
    let by_hand = |w: &FilterWeights, batch: &Batch| Ok(backward::gradient(w, batch));
    match job.kind {
        Proprietary::Paper | Proprietary::Residual => {
            let (filter, course, samples) =
                train_filter(job, job.initial_filter(), by_hand, &job.fit, on_progress)?;
            let held_out = filter::innovations(&filter, &job.held_out);
            let report = job.report(&held_out, course, samples);
            Ok(Trained { weights: ProprietaryWeights::Filter(filter), report })
        }
        Proprietary::Linear => {
            let front = job.own_lags()?;
            let held_out = linear::residuals(&front, &job.held_out);
            let report = job.report(&held_out, Course::default(), job.fit.nrows());
            Ok(Trained { weights: ProprietaryWeights::Linear(front), report })
        }
        Proprietary::OwnLag => {
            let front = job.own_lags()?;
            let left_over = linear::residuals(&front, &job.fit);
            let scale = sensors::deviations(&left_over.view());
            let standardised = divide(left_over, &scale);
            let initial = job.initial_filter();
            let (filter, course, samples) =
                train_filter(job, initial, by_hand, &standardised.view(), on_progress)?;
            let left_over = divide(linear::residuals(&front, &job.held_out), &scale);
            let mut held_out = filter::innovations(&filter, &left_over.view());
            for (mut column, scale) in held_out.columns_mut().into_iter().zip(&scale) {
                column.mapv_inplace(|r| r * scale);
            }
            let report = job.report(&held_out, course, samples);
            Ok(Trained {
                weights: ProprietaryWeights::OwnLagFilter { front, filter, scale },
                report,
            })
        }
    }
}

/// Trains a filter's functions on `rows` from `initial` weights.
pub(super) fn train_filter(
    job: &Job,
    initial: FilterWeights,
    gradient: impl FnMut(&FilterWeights, &Batch) -> candle_core::Result<(f64, FilterWeights)>,
    rows: &ArrayView2<f32>,
    on_progress: OnProgress,
) -> Result<(FilterWeights, Course, usize), TrainError> {
    let mut weights = initial;
    let mut windows = job.windows(rows)?;
    let mut order = rng::stream(job.seed, ORDER);
    let schedule = job.schedule();
    let course =
        optimise(&mut weights, gradient, &mut windows, &schedule, &mut order, on_progress)?;
    Ok((weights, course, windows.len()))
}

impl<'a> Job<'a> {
    pub(super) fn check(&self) -> Result<(), TrainError> {
        let s = self.settings;
        let wrong = [
            (self.fit.ncols() == 0, "no sensors"),
            (self.held_out.ncols() != self.fit.ncols(), "held-out rows of another width"),
            (s.window <= WARM_UP, "a window of 4 steps or fewer, which are its warm-up"),
            (s.batch == 0, "an empty batch"),
            (s.states == 0, "no states"),
            (s.transition_width == 0 || s.measurement_width == 0, "a network of width 0"),
            (!(s.q > 0.0 && s.q.is_finite()), "a process noise q that is not positive"),
            (!(s.r > 0.0 && s.r.is_finite()), "a measurement noise r that is not positive"),
            (
                !(s.learning_rate > 0.0 && s.learning_rate.is_finite()),
                "a learning_rate that is not positive",
            ),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, what)) => Err(TrainError::Settings {
                client: self.client.to_owned(),
                what: (*what).to_owned(),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn schedule(&self) -> Schedule<'a> {
        Schedule {
            client: self.client,
            epochs: self.settings.epochs,
            batch: self.settings.batch,
            learning_rate: self.settings.learning_rate,
        }
    }

    pub(super) fn windows<'r>(
        &self,
        rows: &ArrayView2<'r, f32>,
    ) -> Result<Windows<'r>, TrainError> {
        let windows = Windows::between_gaps(rows, &self.fit, self.settings.window);
        if windows.is_empty() { Err(self.too_little(self.settings.window)) } else { Ok(windows) }
    }

    fn too_little(&self, needed: usize) -> TrainError {
        let (client, rows) = (self.client.to_owned(), self.fit.nrows());
        TrainError::TooLittleData { client, rows, needed }
    }

    fn own_lags(&self) -> Result<OwnLagWeights, TrainError> {
        linear::fit(&self.fit, LAGS).ok_or_else(|| self.too_little(LAGS * self.fit.ncols() + 1))
    }

    /// The paper's form with few states, or the residual form with as many states as sensors,
    /// which begins as a random walk along the principal directions.
    fn initial_filter(&self) -> FilterWeights {
        let s = self.settings;
        let sensors = self.fit.ncols();
        let residual = self.kind == Proprietary::Residual;
        let (states, scale) = if residual { (sensors, CORRECTION) } else { (s.states, 1.0) };
        let mut rng = rng::stream(self.seed, WEIGHTS);
        FilterWeights {
            transition: LstmFc::init(states, s.transition_width, states, scale, &mut rng),
            measurement: Mlp::init(states, s.measurement_width, sensors, scale, &mut rng),
            loadings: residual.then(|| sensors::loadings(&self.fit)),
            q: s.q,
            r: s.r,
        }
    }

    pub(super) fn report(
        &self,
        held_out: &Array2<f32>,
        course: Course,
        samples: usize,
    ) -> TrainReport {
        let persistence = persistence(&self.held_out);
        TrainReport {
            samples,
            epoch_loss: course.epoch_loss,
            held_out_mse: mean_square(held_out),
            persistence_mse: mean_square(&persistence),
            stopped: course.stopped,
        }
    }
}

/// `y_t − y_{t−1}`, NaN where either is missing.
fn persistence(rows: &ArrayView2<f32>) -> Array2<f32> {
    let mut change = Array2::from_elem(rows.raw_dim(), f32::NAN);
    for t in 1..rows.nrows() {
        change.row_mut(t).assign(&(&rows.row(t) - &rows.row(t - 1)));
    }
    change
}

/// Mean square of what was measured after the filter has settled.
fn mean_square(residuals: &Array2<f32>) -> Option<f64> {
    let settled = residuals.axis_iter(Axis(0)).skip(SETTLING);
    let (sum, n) = settled
        .flatten()
        .filter(|r| r.is_finite())
        .fold((0.0, 0usize), |(sum, n), r| (sum + f64::from(*r).powi(2), n + 1));
    (n > 0).then(|| sum / n as f64)
}

fn divide(mut rows: Array2<f32>, scale: &[f32]) -> Array2<f32> {
    for (mut column, scale) in rows.columns_mut().into_iter().zip(scale) {
        column.mapv_inplace(|v| v / scale);
    }
    rows
}

#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
