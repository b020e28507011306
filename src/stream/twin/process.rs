//! The processes of families B and H: three small nonlinear plants around a drifting set point.
//!
//! They are not of the kind that any client's model is made of. They must not know each other.

use std::f64::consts::SQRT_2;

use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};

use super::State;
use crate::base::rng::Rng;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessKind {
    Oscillator,
    TwoTanks,
    Saturating,
}

impl ProcessKind {
    const ALL: [Self; 3] = [Self::Oscillator, Self::TwoTanks, Self::Saturating];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Oscillator => "oscillator",
            Self::TwoTanks => "two tanks",
            Self::Saturating => "saturating reactor",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) kind: ProcessKind,
    p: [f64; 3],
    set_point: SetPoint,
}

impl Process {
    /// A process of random kind and parameters.
    pub(super) fn random(plant: &mut Rng, drift: Rng) -> Self {
        let kind = ProcessKind::ALL[plant.random_range(0..ProcessKind::ALL.len())];
        let p = std::array::from_fn(|_| plant.random_range(0.8..1.2));
        Self { kind, p, set_point: SetPoint::new(drift) }
    }

    /// Puts the set point back to zero; it then drifts another way.
    pub(super) fn restart(&mut self, drift: Rng) {
        self.set_point = SetPoint::new(drift);
    }

    /// The next state from `x` by the process alone.
    pub(super) fn step(&mut self, x: State) -> State {
        let s = self.set_point.next();
        let ([a, b], [p0, p1, p2]) = (x, self.p);
        match self.kind {
            ProcessKind::Oscillator => {
                let off = a - s;
                let spring = p1 * off + 0.25 * off.clamp(-2.0, 2.0).powi(3);
                let db = 0.35 * (-spring - 0.9 * p2 * b);
                [a + 0.35 * p0 * (b + db), b + db]
            }
            ProcessKind::TwoTanks => {
                let between = signed_sqrt(a + 2.0);
                let outflow = signed_sqrt(b + 2.0);
                let inflow = SQRT_2 + (1.2 * p0 * (s - b)).clamp(-1.5, 1.5);
                let da = 0.3 * (inflow - p1 * between - (1.0 - p1) * SQRT_2);
                [a + da, b + 0.3 * p2 * (between - outflow)]
            }
            ProcessKind::Saturating => {
                let da = 0.25 * (-a * p0 + 1.2 * (1.2 * p1 * (b + 0.5 * s)).tanh());
                let db = 0.25 * (-0.8 * b + 0.9 * s - 0.5 * a.tanh() * p2);
                [a + da, b + db]
            }
        }
    }
}

/// Flow through an opening under the head `level`, either way.
fn signed_sqrt(level: f64) -> f64 {
    level.abs().sqrt().copysign(level)
}

/// A set point that creeps towards a target which jumps now and then.
#[derive(Debug, Clone)]
struct SetPoint {
    s: f64,
    target: f64,
    left: u32,
    rng: Rng,
}

impl SetPoint {
    fn new(rng: Rng) -> Self {
        Self { s: 0.0, target: 0.0, left: 0, rng }
    }

    fn next(&mut self) -> f64 {
        if self.left == 0 {
            let level: f64 = StandardNormal.sample(&mut self.rng);
            self.target = 0.7 * level;
            self.left = self.rng.random_range(60..=200);
        }
        self.left -= 1;
        let noise: f64 = StandardNormal.sample(&mut self.rng);
        self.s += 0.05 * (self.target - self.s) + 0.02 * noise;
        self.s
    }
}
