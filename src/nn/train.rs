//! How models are made from nominal data.
//!
//! A client trains its proprietary model on its own standardised rows and never again: what comes out
//! are frozen [`weights`](super::weights) and a report. One job runs on one thread and its numbers
//! depend on its seed alone, so jobs may run side by side in any number of threads.
//!
//! | what | loss | gradient and optimiser |
//! |---|---|---|
//! | centralised [`oracle`](super::oracle) | [`graph`] | candle's |
//! | end-to-end [`predictor`], the paper's "without proprietary model" | [`graph`] | candle's |
//! | φ_m and f_s on batches of windows | `site`, `server` | candle's |
//! | φ_m and f_s step by step | [`online`](super::online) | by hand: Algorithm 1 as printed has one row per step |
//! | proprietary filters | [`backward`] | by hand, for speed |
//! | the same through their gain, for `study deviations` | [`through_gain`] | candle's |
//! | linear models | closed form | none |
//!
//! # The hand-written trainer of proprietary filters
//!
//! candle spends most of a narrow network's time between its operations. The pass of [`backward`] with
//! [`adam`] works on eight windows side by side, with the widest registers of the machine. CPU seconds of
//! all threads for 3 passes over 4000 rows
//! (`cargo test --release --lib how_much_faster -- --ignored --nocapture`):
//!
//! | filter | by hand | by candle | ratio | ratio without the gain |
//! |---|---|---|---|---|
//! | paper's form, 4 sensors | 0.42 | 3.50 | 8.3 | 16.4 |
//! | paper's form, 9 sensors | 0.44 | 3.51 | 8.0 | 17.2 |
//! | residual form, 9 sensors | 0.77 | 4.44 | 5.8 | 18.5 |
//!
//! The filter's gain comes from [`gain`] in both cases, as candle has no Jacobians; the last column
//! compares what is left. Tests hold the two together: the gradient of a batch
//! (`loss_and_gradient_are_those_of_candle`) and whole fits
//! (`the_hand_written_trainer_and_candle_make_the_same_filter`). Delivered models and facts depend on
//! every bit of the hand-written one.
//!
//! This module must not know where rows come from, nor what is later decided with residuals.

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
mod through_gain;
pub(crate) mod trainer;
pub(crate) mod window;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array2, ArrayView2, Axis};
use thiserror::Error;

use self::adam::Adam;
use self::optimise::{Course, Schedule, Step, WARM_UP, optimise};
use self::trainer::Trainer;
use self::window::{Batch, Windows};
use super::network::FilterNetwork;
use super::weights::{Conduct, FilterWeights, LstmFc, Mlp, OwnLagWeights, ProprietaryWeights};
use crate::base::rng;
use crate::session::settings::{ModelSettings, Printed, Proprietary};

/// Own lags of the linear models.
pub(crate) const LAGS: usize = 2;

/// Steps at the start of a held-out stretch that are not judged: the filter finds its state.
pub(crate) const SETTLING: usize = 40;

/// Scale of an output layer that starts as a small correction.
pub(super) const CORRECTION: f32 = 0.1;

/// Sources of randomness of one job.
pub(super) const WEIGHTS: u64 = 0;
const ORDER: u64 = 1;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) client: &'a str,
    pub(crate) kind: Proprietary,
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Progress<'a> {
    pub(crate) client: &'a str,
    pub(crate) epoch: usize,
    pub(crate) epochs: usize,
    pub(crate) iteration: usize,
    pub(crate) iterations: usize,
    /// The loss of this step's batch.
    pub(crate) loss: f64,
}

#[derive(Debug, Error)]
pub(crate) enum TrainError {
    #[error(
        "{client}: {rows} nominal rows hold no stretch of {needed} steps without a gap to learn from"
    )]
    TooLittleData { client: String, rows: usize, needed: usize },
    /// The settings make no network or no window.
    #[error("{client}: cannot train with {what}")]
    Settings { client: String, what: String },
    #[error(
        "{client}: training diverged in epoch {epoch} (loss {loss}, last good loss {}); \
         a smaller learning_rate may help",
        last_good.map_or_else(|| "none".to_owned(), |v| format!("{v:.4}"))
    )]
    Diverged {
        client: String,
        epoch: usize,
        loss: f64,
        /// The last loss that was a number.
        last_good: Option<f64>,
    },
    #[error("{client}: {source}")]
    Network { client: String, source: candle_core::Error },
}

/// Called after every step; `Break` ends training with what was learned.
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

pub(crate) fn proprietary(
    job: &Job,
    on_progress: OnProgress,
) -> Result<Trained<ProprietaryWeights>, TrainError> {
    job.check()?;
    match job.kind {
        Proprietary::Paper | Proprietary::Residual => {
            let (filter, course, samples) = filter_by_hand(job, &job.fit, on_progress)?;
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
            let (filter, course, samples) = filter_by_hand(job, &standardised.view(), on_progress)?;
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

/// A filter, how its training went, and how many windows it was trained on.
pub(super) type TrainedFilter = (FilterWeights, Course, usize);

/// Trains the functions of a proprietary filter on `rows`, by hand.
fn filter_by_hand(
    job: &Job,
    rows: &ArrayView2<f32>,
    on_progress: OnProgress,
) -> Result<TrainedFilter, TrainError> {
    if job.settings.is_printed(Printed::GradientThroughGain) {
        return filter_through_gain(job, rows, on_progress);
    }
    let mut weights = job.initial_filter();
    let mut adam = Adam::new(&weights, job.settings.learning_rate);
    if job.settings.is_printed(Printed::UnclippedGradient) {
        adam = adam.unbounded();
    }
    let warm_up = if job.settings.is_printed(Printed::WholeWindow) { 0 } else { WARM_UP };
    let step = |batch: &Batch| {
        let (loss, gradient) = backward::gradient_from(&weights, batch, warm_up);
        Ok((loss, loss.is_finite() && adam.step(&mut weights, &gradient).is_finite()))
    };
    let (course, samples) = job.optimise(step, rows, on_progress)?;
    Ok((weights, course, samples))
}

/// Trains a filter whose gradient flows through its gain too, with candle.
fn filter_through_gain(
    job: &Job,
    rows: &ArrayView2<f32>,
    on_progress: OnProgress,
) -> Result<TrainedFilter, TrainError> {
    let failed = |source| job.failed(source);
    let initial = job.initial_filter();
    let mut trainer = Trainer::adam(initial.clone(), job.settings.learning_rate).map_err(failed)?;
    let filter = through_gain::Filter::new(&initial, &trainer.builder()).map_err(failed)?;
    let step = |batch: &Batch| trainer.step(&filter.loss(batch)?);
    let (course, samples) = job.optimise(step, rows, on_progress)?;
    Ok((trainer.weights().map_err(failed)?, course, samples))
}

/// Trains a filter's functions on `rows` from `initial` weights, with candle. Weights at which `mask`
/// is zero stay as they are.
pub(super) fn filter_by_candle(
    job: &Job,
    initial: FilterWeights,
    mask: Option<&FilterWeights>,
    rows: &ArrayView2<f32>,
    on_progress: OnProgress,
) -> Result<TrainedFilter, TrainError> {
    let failed = |source| job.failed(source);
    let config = initial.config();
    let mut trainer = Trainer::adam(initial, job.settings.learning_rate).map_err(failed)?;
    mask.map_or(Ok(()), |mask| trainer.set_mask(mask)).map_err(failed)?;
    let network = FilterNetwork::new(config, &trainer.builder()).map_err(failed)?;
    let step = |batch: &Batch| {
        let gains = filter::gains(&trainer.weights()?, batch);
        trainer.step(&graph::filter_loss(&network, batch, gains)?)
    };
    let (course, samples) = job.optimise(step, rows, on_progress)?;
    Ok((trainer.weights().map_err(failed)?, course, samples))
}

/// How filters run that are made with these settings.
pub(super) fn conduct(settings: &ModelSettings) -> Conduct {
    let usual = Conduct::default();
    let unclipped = settings.is_printed(Printed::UnclippedUpdate);
    Conduct {
        update_clip: if unclipped { f32::INFINITY } else { usual.update_clip },
        has_memory: !settings.is_printed(Printed::NoMemory),
        memory_is_known: usual.memory_is_known,
        jacobian_at_prediction: !settings.is_printed(Printed::EarlierJacobian),
    }
}

impl Job<'_> {
    pub(super) fn check(&self) -> Result<(), TrainError> {
        let s = self.settings;
        let wrong = [
            (
                self.fit.ncols() == 0,
                "no sensor that changes in the fit range: take the client out of the session, or \
                 choose another range",
            ),
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

    /// Takes one `step` on every batch of windows of `rows`; the course and the number of windows.
    pub(super) fn optimise(
        &self,
        step: impl FnMut(&Batch) -> candle_core::Result<Step>,
        rows: &ArrayView2<f32>,
        on_progress: OnProgress,
    ) -> Result<(Course, usize), TrainError> {
        let mut windows = Windows::between_gaps(rows, &self.fit, self.settings.window);
        if windows.is_empty() {
            return Err(self.too_little(self.settings.window));
        }
        let mut order = rng::stream(self.seed, ORDER);
        let (epochs, batch) = (self.settings.epochs, self.settings.batch);
        let schedule = Schedule { client: self.client, epochs, batch };
        let course = optimise(step, &mut windows, &schedule, &mut order, on_progress)?;
        Ok((course, windows.len()))
    }

    pub(super) fn failed(&self, source: candle_core::Error) -> TrainError {
        TrainError::Network { client: self.client.to_owned(), source }
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
            conduct: conduct(s),
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
            held_out_mse: mean_square([held_out]),
            persistence_mse: mean_square([&persistence]),
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

/// Mean square of all residuals that were measured after the filter has settled.
pub(crate) fn mean_square<'a>(residuals: impl IntoIterator<Item = &'a Array2<f32>>) -> Option<f64> {
    let settled = |rows: &'a Array2<f32>| rows.axis_iter(Axis(0)).skip(SETTLING).flatten();
    let (sum, n) = residuals
        .into_iter()
        .flat_map(settled)
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
