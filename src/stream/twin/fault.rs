//! What goes wrong, where and when: the anomalies staged in a synthetic plant.
//!
//! It must not know how the plant reacts.

use std::f64::consts::TAU;
use std::ops::Range;

use rand::RngExt as _;

use super::slices::RUN;
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
    /// What an accident does to each client; empty for every other kind.
    pub(super) felt: Vec<Felt>,
}

/// What one client feels of an accident elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Felt {
    push: State,
    /// Steps after the root.
    delay: usize,
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
    /// A large constant push on the state that all clients feel.
    Accident {
        push: State,
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
            Self::Accident { .. } => "accident",
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

    /// What it adds at step `t` to the state of a client that is not its root.
    pub(super) fn felt_by(&self, client: usize, t: usize) -> Option<State> {
        let felt = self.felt.get(client)?;
        (t >= self.start + felt.delay).then_some(felt.push)
    }

    /// What it adds at step `t` of its course: to the target in family A, to the state otherwise.
    pub(super) fn push(&self, t: usize) -> State {
        // Counted from 1, so that the first step of a fault is not an empty one.
        let k = (t - self.start + 1) as f64;
        match self.kind {
            FaultKind::TargetShift { delta } => [delta; 2],
            FaultKind::Step { push } | FaultKind::Accident { push } => push,
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

/// Family S: size of an accident at its root, the share of it that others feel, and the latest step at
/// which they begin to. Ordinary faults of family B have sizes of 0.375 to 0.9.
const ACCIDENT: Range<f64> = 2.5..5.0;
const SHARE: Range<f64> = 0.2..0.6;
const LATEST: usize = 1;

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
        Family::S => return accidents(clients, during, rng),
    };
    // The first fault waits half a spacing: every one has a quiet stretch on either side.
    (during.start + spacing / 2..during.end)
        .step_by(spacing)
        .map(|start| {
            let root = rng.random_range(0..clients);
            let (length, kind) = match family {
                Family::A => (10, FaultKind::TargetShift { delta }),
                Family::B => (rng.random_range(15..=40), draw(6, rng)),
                Family::H | Family::S => (rng.random_range(15..=40), draw(3, rng)),
            };
            Fault { start, length, root, kind, felt: Vec::new() }
        })
        .collect()
}

/// One accident a run, 8 to 30 steps after its start. The root is pushed with its whole size; every other
/// client with a share of it, in a direction of its own, in the same step or in the next one.
fn accidents(clients: usize, during: Range<usize>, rng: &mut Rng) -> Vec<Fault> {
    let in_any_direction = |size: f64, rng: &mut Rng| {
        let angle = rng.random_range(0.0..TAU);
        [size * angle.cos(), size * angle.sin()]
    };
    during
        .step_by(RUN)
        .map(|run| {
            let root = rng.random_range(0..clients);
            let start = run + rng.random_range(8..=30);
            let length = rng.random_range(20..=40);
            let size = rng.random_range(ACCIDENT);
            let push = in_any_direction(size, rng);
            let felt = (0..clients).map(|_| {
                let share = rng.random_range(SHARE);
                let push = in_any_direction(size * share, rng);
                Felt { push, delay: rng.random_range(0..=LATEST) }
            });
            let felt = felt.collect();
            Fault { start, length, root, kind: FaultKind::Accident { push }, felt }
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
