//! The target of a client of family A: a sinusoid whose amplitude changes in steps.
//!
//! It is the only excitation of the plant, independent per client; it must not know who follows it.

use rand::RngExt as _;
use std::f64::consts::{PI, TAU};

use super::State;
use crate::base::rng::Rng;

/// Steps of one period (the paper's `T_s`).
const PERIOD: usize = 20;
/// Steps between two changes of the amplitude.
const BLOCK: usize = 200;

/// The target of one client, step by step.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Phases of the two state dimensions, about a quarter period apart: together they tell where
    /// in the period the client is, so that its state alone predicts the next one.
    phases: [f64; 2],
    amplitude: f64,
    t: usize,
    rng: Rng,
}

impl Target {
    /// A target with its phases drawn from `plant` and its amplitudes from `drift`.
    pub(super) fn random(plant: &mut Rng, drift: Rng) -> Self {
        let first = plant.random_range(0.0..TAU);
        let second = first + plant.random_range(0.35 * PI..0.65 * PI);
        Self { phases: [first, second], amplitude: 0.0, t: 0, rng: drift }
    }

    /// Begins again, with other amplitudes.
    pub(super) fn restart(&mut self, drift: Rng) {
        self.t = 0;
        self.rng = drift;
    }

    /// The target of the next step.
    pub(super) fn next(&mut self) -> State {
        if self.t.is_multiple_of(BLOCK) {
            self.amplitude = self.rng.random_range(0.7..1.5);
        }
        // The angle is taken within the period, so that it stays exact however long the run.
        let angle = TAU * (self.t % PERIOD) as f64 / PERIOD as f64;
        self.t += 1;
        self.phases.map(|phase| self.amplitude * (angle + phase).sin())
    }
}
