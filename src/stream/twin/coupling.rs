//! How a parent's state drives a child's: the paper's `g_dep`, or a plain saturating mixture.
//!
//! It must not know the graph nor what else acts on the child.

use rand_distr::{Distribution as _, StandardNormal};

use super::State;
use super::lstm::{Linear, Lstm, Memory};
use super::moments::Moments;
use crate::rng::Rng;

/// Hidden units of each layer of `g_dep`.
const HIDDEN: usize = 64;
/// Strength of `g_dep` (the paper's α).
const ALPHA: f64 = 0.5;

/// What one parent adds to one child's state.
#[derive(Debug, Clone)]
pub(super) enum Coupling {
    /// Family A.
    Lstm(Box<Dependency>),
    /// Families B and H: `gain` · tanh(W x).
    Tanh {
        /// Largest influence.
        gain: f64,
        /// W, by row.
        w: [[f64; 2]; 2],
    },
}

impl Coupling {
    /// An uncalibrated `g_dep` with random weights.
    pub(super) fn lstm(rng: &mut Rng) -> Self {
        Self::Lstm(Box::new(Dependency::random(rng)))
    }

    /// A saturating mixture with W ~ N(0, 1).
    pub(super) fn tanh(gain: f64, rng: &mut Rng) -> Self {
        let mut normal = || StandardNormal.sample(rng);
        Self::Tanh { gain, w: [[normal(), normal()], [normal(), normal()]] }
    }

    /// The influence of a parent in state `x`. `g_dep` remembers earlier states.
    pub(super) fn influence(&mut self, x: State) -> State {
        match self {
            Self::Lstm(g) => g.raw(x).map(|signal| ALPHA * signal.tanh()),
            Self::Tanh { gain, w } => w.map(|row| *gain * (row[0] * x[0] + row[1] * x[1]).tanh()),
        }
    }

    /// Runs over a parent's nominal states and returns its influence on the child; on the way
    /// `g_dep` is calibrated, leaving out the first `settling` steps. Begins and ends forgetful.
    pub(super) fn rehearse(
        &mut self,
        parent: impl Iterator<Item = State>,
        settling: usize,
    ) -> Vec<State> {
        match self {
            Self::Lstm(g) => g.calibrate(parent, settling),
            Self::Tanh { .. } => parent.map(|x| self.influence(x)).collect(),
        }
    }
}

/// `g_dep`: W · LSTM(LSTM(x)), of random weights.
///
/// As drawn, its output is nearly constant and the clients would be practically independent.
/// Therefore W is rescaled until W · LSTM has mean 0 and standard deviation 1 on nominal data.
#[derive(Debug, Clone)]
pub(super) struct Dependency {
    layers: [(Lstm, Memory); 2],
    w: Linear,
}

impl Dependency {
    fn random(rng: &mut Rng) -> Self {
        let layers = [2, HIDDEN].map(|inputs| {
            let layer = Lstm::random(inputs, HIDDEN, rng);
            let memory = layer.memory();
            (layer, memory)
        });
        Self { layers, w: Linear::random(HIDDEN, 2, rng) }
    }

    /// W · LSTM, before tanh.
    pub(super) fn raw(&mut self, x: State) -> State {
        let [(first, below), (second, above)] = &mut self.layers;
        first.step(&x, below);
        second.step(&below.h, above);
        [0, 1].map(|row| self.w.output(row, &above.h))
    }

    fn calibrate(&mut self, parent: impl Iterator<Item = State>, settling: usize) -> Vec<State> {
        let mut signal: Vec<State> = parent.map(|x| self.raw(x)).collect();
        for row in 0..2 {
            let seen: Moments = signal.iter().skip(settling).map(|s| s[row]).collect();
            self.w.standardise(row, seen.mean(), seen.std());
            for s in &mut signal {
                s[row] = ALPHA * ((s[row] - seen.mean()) / seen.std()).tanh();
            }
        }
        self.layers.iter_mut().for_each(|(_, memory)| memory.forget());
        signal
    }
}
