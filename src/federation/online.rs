//! Algorithm 1 as printed: one round per row, a step after every round.
//!
//! Memory of φ and f_s runs on through a pass; a pass begins with none. The gradient reaches through
//! the present step only. Single steps are noisy, so the step size falls towards the end
//! ([`pace`]) and the weights settle instead of following the last rows. A session can ask for a
//! constant one, which the paper's theorems assume.

use std::ops::ControlFlow;

use super::course::{Course, History, OnProgress};
use super::{Federation, FederationError, Stage};
use crate::session::settings::StepSize;
use crate::site::training::TrainingSite;

/// Rounds between two reports of progress.
const REPORT_EVERY: usize = 250;

/// The share of the full step size when `done` of all rounds are behind: all of it for the first
/// half, then falling in a straight line to a fiftieth.
pub(super) fn pace(done: f64) -> f64 {
    (2.0 - 2.0 * done).clamp(0.02, 1.0)
}

/// Runs one stage; whether it was asked to stop.
pub(super) fn run(
    federation: &mut Federation,
    stage: Stage,
    passes: usize,
    history: &mut History,
    on_progress: OnProgress,
) -> Result<bool, FederationError> {
    let ticks = std::mem::take(&mut federation.ticks);
    let stopped = over(federation, &ticks, stage, passes, history, on_progress);
    federation.ticks = ticks;
    stopped
}

fn over(
    federation: &mut Federation,
    ticks: &[usize],
    stage: Stage,
    passes: usize,
    history: &mut History,
    on_progress: OnProgress,
) -> Result<bool, FederationError> {
    let rounds = passes * ticks.len();
    let clients = federation.clients.len();
    let mut course = Course::new(history, on_progress, rounds, REPORT_EVERY, clients);
    for pass in 0..passes {
        federation.clients.iter_mut().for_each(TrainingSite::forget);
        federation.server.forget();
        for (i, &t) in ticks.iter().enumerate() {
            let pace = match federation.settings.step_size {
                StepSize::Decaying => pace((pass * ticks.len() + i) as f64 / rounds as f64),
                StepSize::Constant => 1.0,
            };
            let round = federation.round(t, stage, pace)?;
            let losses = federation.clients.iter().map(TrainingSite::loss);
            let flow = course.round(round.server_loss, losses, round.sent)?;
            if flow == ControlFlow::Break(()) {
                return Ok(true);
            }
        }
        federation.show_monitor();
    }
    Ok(false)
}
