//! Batches of windows on the shared time grid: which steps they hold, and how weights step on them.
//!
//! Site and server both use it in batched federated training. It must not know whose steps they are.

use super::adam::{Adam, Parameters as _};
use crate::nn::weights::LstmFc;
use crate::session::settings::Optimiser;

/// Which steps are learned from: `length` of them after each of the rows `starts`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchWindows<'a> {
    /// The row before the first step of each window.
    pub(crate) starts: &'a [usize],
    /// Steps of each window.
    pub(crate) length: usize,
    /// Steps at the start of a window that are in no loss.
    pub(crate) warm_up: usize,
}

impl BatchWindows<'_> {
    /// Steps of all windows.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() * self.length
    }

    /// The rows t − 1 of all steps, window by window.
    pub(crate) fn before(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.iter().flat_map(|&start| start..start + self.length)
    }

    /// The share of each step in a mean loss.
    pub(crate) fn shares(&self) -> impl Iterator<Item = f32> + '_ {
        let share = 1.0 / (self.starts.len() * (self.length - self.warm_up)) as f32;
        (0..self.count()).map(move |i| if self.is_warm_up(i) { 0.0 } else { share })
    }

    /// Whether the `i`-th step of all is in no loss.
    pub(crate) fn is_warm_up(&self, i: usize) -> bool {
        i % self.length < self.warm_up
    }
}

/// Weights and how they step on the gradient of a batch.
#[derive(Debug)]
pub(crate) struct BatchLearner {
    weights: LstmFc,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Adam(Adam),
    Sgd(f64),
}

impl BatchLearner {
    /// A learner from `weights` on, with the rate of its optimiser.
    pub(crate) fn new(
        weights: LstmFc,
        optimiser: Optimiser,
        adam_rate: f64,
        sgd_rate: f64,
    ) -> Self {
        let step = match optimiser {
            Optimiser::Adam => Step::Adam(Adam::new(&weights, adam_rate)),
            Optimiser::Sgd => Step::Sgd(sgd_rate),
        };
        Self { weights, step }
    }

    /// The weights as they are now.
    pub(crate) fn weights(&self) -> &LstmFc {
        &self.weights
    }

    /// One step along `gradient`. A gradient that is not finite changes nothing under Adam; the loss
    /// beside it says so.
    pub(crate) fn descend(&mut self, gradient: &LstmFc) {
        match &mut self.step {
            Step::Adam(adam) => {
                adam.step(&mut self.weights, gradient);
            }
            Step::Sgd(rate) => {
                let rate = *rate as f32;
                let gradient = gradient.slices().into_iter().flatten();
                let weights = self.weights.slices_mut().into_iter().flatten();
                weights.zip(gradient).for_each(|(w, g)| *w -= rate * g);
            }
        }
    }
}
