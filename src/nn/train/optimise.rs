//! The course of every training: passes over shuffled windows, a report of each step, and a clean end
//! when asked to stop.
//!
//! It must not know what is being trained, nor by what.

use super::window::{Batch, Windows};
use super::{OnProgress, Progress, TrainError};
use crate::base::rng::Rng;

/// Steps at the start of a window that are not in the loss.
pub(crate) const WARM_UP: usize = 4;

/// A pass whose mean loss is this many times that of the first batch is divergence, not noise.
const DIVERGENCE: f64 = 10.0;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule<'a> {
    pub(crate) client: &'a str,
    pub(crate) epochs: usize,
    pub(crate) batch: usize,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Course {
    /// Mean loss of each pass, the last one unfinished when stopped.
    pub(crate) epoch_loss: Vec<f64>,
    /// Whether it was asked to stop before its end.
    pub(crate) stopped: bool,
}

/// The loss on a batch before its step, and whether the step was taken: a gradient that is not finite
/// moves nothing.
pub(crate) type Step = (f64, bool);

/// Takes one `step` on every batch of every pass.
pub(crate) fn optimise(
    mut step: impl FnMut(&Batch) -> candle_core::Result<Step>,
    windows: &mut Windows,
    schedule: &Schedule,
    rng: &mut Rng,
    on_progress: OnProgress,
) -> Result<Course, TrainError> {
    let Schedule { client, epochs, batch } = *schedule;
    let per_epoch = windows.len().div_ceil(batch);
    let mut course = Course::default();
    let (mut first, mut last_good) = (None, None);
    for epoch in 0..epochs {
        windows.shuffle(rng);
        let mut sum = 0.0;
        for (i, batch) in windows.batches(batch).enumerate() {
            let diverged = move |loss| TrainError::Diverged {
                client: client.to_owned(),
                epoch: epoch + 1,
                loss,
                last_good,
            };
            let (loss, moved) = step(&batch)
                .map_err(|source| TrainError::Network { client: client.to_owned(), source })?;
            if !loss.is_finite() || !moved {
                return Err(diverged(loss));
            }
            last_good = Some(loss);
            sum += loss;
            let mean = sum / (i + 1) as f64;
            let bound = (DIVERGENCE * *first.get_or_insert(loss)).max(1.0);
            if i + 1 == per_epoch && mean > bound {
                return Err(diverged(mean));
            }
            let progress = Progress {
                client,
                epoch: epoch + 1,
                epochs,
                iteration: epoch * per_epoch + i + 1,
                iterations: epochs * per_epoch,
                loss,
            };
            if on_progress(progress).is_break() {
                course.epoch_loss.push(mean);
                course.stopped = progress.iteration < progress.iterations;
                return Ok(course);
            }
        }
        course.epoch_loss.push(sum / per_epoch.max(1) as f64);
    }
    Ok(course)
}
