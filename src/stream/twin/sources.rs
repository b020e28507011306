//! Where each random number of a synthetic plant comes from: one generator per purpose and client.
//!
//! So a run without its faults differs from the run with them by the faults alone.

use crate::base::rng::{self, Rng};

/// Keeps the plant's sources apart from those that other parts of a run draw from the same seed.
const TWIN: u64 = 0x7477_696E;
const REHEARSAL: u64 = 1;

/// What a number is drawn for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Graph,
    Faults,
    Dynamics,
    Fit,
    FitDrift,
    Sensing,
    NoiseShare,
    Coupling,
    Drift,
    ProcessNoise,
    MeasurementNoise,
    BurstNoise,
}

/// All random sources of a plant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sources {
    seed: u64,
}

impl Sources {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed: rng::child(seed, TWIN) }
    }

    /// The sources of the run that only serves to find scales.
    pub(super) fn rehearsal(self) -> Self {
        Self { seed: rng::child(self.seed, REHEARSAL) }
    }

    /// A source of the plant as a whole.
    pub(super) fn plant(self, purpose: Purpose) -> Rng {
        self.stream(purpose, 0)
    }

    /// A source of one client.
    pub(super) fn client(self, purpose: Purpose, client: usize) -> Rng {
        self.stream(purpose, client as u64)
    }

    /// A source of one influence.
    pub(super) fn edge(self, purpose: Purpose, parent: usize, child: usize) -> Rng {
        self.stream(purpose, (parent as u64) << 16 | child as u64)
    }

    fn stream(self, purpose: Purpose, index: u64) -> Rng {
        rng::stream(self.seed, (purpose as u64) << 32 | index)
    }
}
