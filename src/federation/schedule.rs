//! The rounds of Algorithm 1 in their order, in one process or in many.
//!
//! As printed there is one round per row, and a step after every round. Memory of φ and f_s runs on
//! through a pass; a pass begins with none. The gradient reaches through the present step only. Single
//! steps are noisy, so the step size falls towards the end ([`pace`]) and the weights settle instead of
//! following the last rows. A session can ask for a constant one, which the paper's theorems assume.
//! The other way (I9) takes a batch of windows a round.

use rand::RngExt as _;

use super::{FederationError, ORDER};
use crate::base::rng;
use crate::nn::train::batch::BatchWindows;
use crate::nn::train::optimise::WARM_UP;
use crate::session::settings::{Federation, ModelSettings, StepSize};

/// Rounds between two reports of progress.
pub(super) const REPORT_EVERY: usize = 250;
const REPORT_EVERY_BATCHED: usize = 10;

/// What one round is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plan {
    /// One row, as printed.
    Row { t: usize, pace: f64, begins_pass: bool, ends_pass: bool },
    /// A batch of windows. From the middle of the training on, the server looks at how states move
    /// together.
    Windows { starts: Vec<usize>, length: usize, is_middle: bool },
}

impl Plan {
    pub(super) fn windows(&self) -> Option<BatchWindows<'_>> {
        match self {
            Self::Row { .. } => None,
            Self::Windows { starts, length, .. } => {
                Some(BatchWindows { starts, length: *length, warm_up: WARM_UP })
            }
        }
    }

    /// The steps of the messages of one client, in their order.
    pub(super) fn steps(&self) -> Vec<u64> {
        match (self, self.windows()) {
            (Self::Row { t, .. }, _) => vec![*t as u64],
            (_, windows) => {
                let windows = windows.iter();
                windows.flat_map(|w| w.before().map(|t| t as u64 + 1).collect::<Vec<_>>()).collect()
            }
        }
    }
}

/// The rounds of a training in their order: server and sites derive the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    rounds: usize,
    next: usize,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Online { ticks: Vec<usize>, step_size: StepSize },
    Batched { starts: Vec<usize>, length: usize, batch: usize, order: Box<rng::Rng> },
}

impl Schedule {
    /// The rows that count, from whether anything was measured at each row of each client: at some
    /// client for single rows, at every one for windows.
    pub(crate) fn rows(settings: &ModelSettings, measured: &[Vec<bool>]) -> Vec<bool> {
        let steps = measured.iter().map(Vec::len).min().unwrap_or(0);
        let at = |t: usize| match settings.federation {
            Federation::Online { .. } => measured.iter().any(|client| client[t]),
            Federation::Batched { .. } => measured.iter().all(|client| client[t]),
        };
        (0..steps).map(at).collect()
    }

    /// The rounds over `rows` as [`Self::rows`] gave them.
    pub(crate) fn new(
        settings: &ModelSettings,
        seed: u64,
        rows: &[bool],
    ) -> Result<Self, FederationError> {
        let (rounds, kind) = match settings.federation {
            Federation::Online { passes } => {
                let ticks = ticks_of(rows.len(), |t| rows[t])?;
                let rounds = passes * ticks.len();
                (rounds, Kind::Online { ticks, step_size: settings.step_size })
            }
            Federation::Batched { rounds } => {
                let (length, batch) = (settings.window, settings.batch);
                let starts = starts(rows.len(), length, |t| rows[t])?;
                let order = Box::new(rng::stream(rng::child(seed, ORDER), 0));
                (rounds, Kind::Batched { starts, length, batch, order })
            }
        };
        Ok(Self { rounds, next: 0, kind })
    }

    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// Rounds between two reports of progress in one process.
    pub(super) fn report_every(&self) -> usize {
        match self.kind {
            Kind::Online { .. } => REPORT_EVERY,
            Kind::Batched { .. } => REPORT_EVERY_BATCHED,
        }
    }

    /// Messages of states that each client sends in all rounds.
    pub(crate) fn messages(&self) -> u64 {
        let of_round = match &self.kind {
            Kind::Online { .. } => 1,
            Kind::Batched { length, batch, .. } => length * batch,
        };
        (self.rounds * of_round) as u64
    }
}

impl Iterator for Schedule {
    type Item = Plan;

    fn next(&mut self) -> Option<Plan> {
        let round = self.next;
        if round >= self.rounds {
            return None;
        }
        self.next += 1;
        Some(match &mut self.kind {
            Kind::Online { ticks, step_size } => {
                let i = round % ticks.len();
                let pace = match step_size {
                    StepSize::Decaying => pace(round as f64 / self.rounds as f64),
                    StepSize::Constant => 1.0,
                };
                let ends_pass = i + 1 == ticks.len();
                Plan::Row { t: ticks[i], pace, begins_pass: i == 0, ends_pass }
            }
            Kind::Batched { starts, length, batch, order } => Plan::Windows {
                starts: (0..*batch).map(|_| starts[order.random_range(0..starts.len())]).collect(),
                length: *length,
                is_middle: round == self.rounds / 2,
            },
        })
    }
}

/// Rows from which `length` steps can be taken with something `measured` at every client all along.
fn starts(
    steps: usize,
    length: usize,
    measured: impl Fn(usize) -> bool,
) -> Result<Vec<usize>, FederationError> {
    let mut run = 0;
    let mut starts = Vec::new();
    for t in 0..steps {
        run = if measured(t) { run + 1 } else { 0 };
        if run > length {
            starts.push(t - length);
        }
    }
    if starts.is_empty() || length <= WARM_UP {
        return Err(FederationError::Sites(format!(
            "no stretch of {} rows without a gap at any site to learn from",
            length + 1
        )));
    }
    Ok(starts)
}

/// The rows of a round each: something was measured at them and at the rows before.
fn ticks_of(steps: usize, measured: impl Fn(usize) -> bool) -> Result<Vec<usize>, FederationError> {
    let ticks: Vec<usize> = (1..steps).filter(|&t| measured(t - 1) && measured(t)).collect();
    if ticks.is_empty() {
        return Err(FederationError::Sites(format!(
            "{steps} rows hold no two consecutive measurements to learn from"
        )));
    }
    Ok(ticks)
}

/// The share of the full step size when `done` of all rounds are behind: all of it for the first
/// half, then falling in a straight line to a fiftieth.
fn pace(done: f64) -> f64 {
    (2.0 - 2.0 * done).clamp(0.02, 1.0)
}
