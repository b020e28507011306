//! What goes wrong, where and when: the anomalies staged in a synthetic plant.
//!
//! It must not know how the plant reacts.

use std::f64::consts::TAU;
use std::ops::Range;

use rand::RngExt as _;

use super::{CHANNELS, Measurements, State};
use crate::base::rng::Rng;
use crate::session::Family;

/// Enlargement of every fault of families B and H.
const SIZE: f64 = 1.5;
/// Added noise of a burst, in standard deviations of the channel.
pub(super) const BURST_STD: f64 = 0.35 * SIZE;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) root: usize,
    pub(crate) kind: FaultKind,
}

/// The kinds of [`Fault`], with their size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FaultKind {
    /// Family A: both dimensions of the target are shifted.
    TargetShift {
        /// By so much (Δ).
        delta: f64,
    },
    /// A constant push on the state.
    Step {
        push: State,
    },
    /// A growing push on the state.
    Ramp {
        /// Reached after 1/1.6 of the fault.
        push: State,
    },
    /// A swinging push on the state.
    Oscillation {
        /// The swing has 1.3 times this amplitude.
        push: State,
        /// Steps of a period.
        period: u32,
    },
    /// Sensors read wrong by a constant.
    Bias {
        /// In standard deviations of each channel; 0 where the channel is sound.
        offset_std: Measurements,
    },
    /// Sensors stay at the value they show when the fault starts.
    StuckAt {
        channels: [bool; CHANNELS],
    },
    NoiseBurst {
        channels: [bool; CHANNELS],
    },
}

impl FaultKind {
    /// The kind in a word or two.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::TargetShift { .. } => "target shift",
            Self::Step { .. } => "step",
            Self::Ramp { .. } => "ramp",
            Self::Oscillation { .. } => "oscillation",
            Self::Bias { .. } => "sensor bias",
            Self::StuckAt { .. } => "stuck-at sensor",
            Self::NoiseBurst { .. } => "sensor noise burst",
        }
    }

    /// Whether it changes what the plant does, not only what sensors show: only then can other
    /// clients feel it.
    pub(crate) fn moves_the_state(&self) -> bool {
        !matches!(self, Self::Bias { .. } | Self::StuckAt { .. } | Self::NoiseBurst { .. })
    }
}

impl Fault {
    pub(crate) fn steps(&self) -> Range<usize> {
        self.start..self.start + self.length
    }

    /// What it adds at step `t` of its course: to the target in family A, to the state otherwise.
    pub(super) fn push(&self, t: usize) -> State {
        // Counted from 1, so that the first step of a fault is not an empty one.
        let k = (t - self.start + 1) as f64;
        match self.kind {
            FaultKind::TargetShift { delta } => [delta; 2],
            FaultKind::Step { push } => push,
            FaultKind::Ramp { push } => push.map(|p| p * 1.6 * k / self.length as f64),
            FaultKind::Oscillation { push, period } => {
                push.map(|p| p * 1.3 * (TAU * k / f64::from(period)).sin())
            }
            FaultKind::Bias { .. } | FaultKind::StuckAt { .. } | FaultKind::NoiseBurst { .. } => {
                [0.0; 2]
            }
        }
    }
}

/// All faults of a family within the steps `during`, in order and never overlapping.
pub(super) fn schedule(
    family: Family,
    delta: f64,
    clients: usize,
    during: Range<usize>,
    rng: &mut Rng,
) -> Vec<Fault> {
    let spacing = match family {
        Family::A => 100,
        Family::B | Family::H => 120,
    };
    // The first fault waits half a spacing: every one has a quiet stretch on either side.
    (during.start + spacing / 2..during.end)
        .step_by(spacing)
        .map(|start| {
            let root = rng.random_range(0..clients);
            let (length, kind) = match family {
                Family::A => (10, FaultKind::TargetShift { delta }),
                Family::B => (rng.random_range(15..=40), draw(6, rng)),
                Family::H => (rng.random_range(15..=40), draw(3, rng)),
            };
            Fault { start, length, root, kind }
        })
        .collect()
}

/// One of the first `kinds` kinds of families B and H; the first three move the state.
fn draw(kinds: u32, rng: &mut Rng) -> FaultKind {
    match rng.random_range(0..kinds) {
        0 => FaultKind::Step { push: push(rng) },
        1 => FaultKind::Ramp { push: push(rng) },
        2 => FaultKind::Oscillation { push: push(rng), period: rng.random_range(6..=11) },
        3 => {
            let size = SIZE * rng.random_range(0.4..1.0);
            let offset_std = channels(1, rng).map(|hit| match (hit, rng.random_bool(0.5)) {
                (false, _) => 0.0,
                (true, true) => size,
                (true, false) => -size,
            });
            FaultKind::Bias { offset_std }
        }
        4 => FaultKind::StuckAt { channels: channels(2, rng) },
        _ => FaultKind::NoiseBurst { channels: channels(1, rng) },
    }
}

/// A push of random size in a random direction.
fn push(rng: &mut Rng) -> State {
    let size = SIZE * rng.random_range(0.25..0.6);
    let angle = rng.random_range(0.0..TAU);
    [size * angle.cos(), size * angle.sin()]
}

/// A random set of at least `least` channels, every such set equally likely.
fn channels(least: usize, rng: &mut Rng) -> [bool; CHANNELS] {
    loop {
        let set = std::array::from_fn(|_| rng.random_bool(0.5));
        if set.iter().filter(|hit| **hit).count() >= least {
            return set;
        }
    }
}
