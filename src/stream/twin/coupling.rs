//! How a parent's state drives a child's: the paper's `g_dep`, or a plain saturating mixture.
//!
//! It must not know the graph nor what else acts on the child.

use rand_distr::{Distribution as _, StandardNormal};

use super::State;
use super::lstm::{Linear, Lstm, Memory};
use super::packed::Packed;
use crate::base::moments::Moments;
use crate::base::rng::Rng;

/// Hidden units of each layer of `g_dep`.
const HIDDEN: usize = 64;
/// Steps that the networks go through together: many enough for weights to be fetched seldom, few
/// enough for all gates to lie in the cache beside them.
pub(super) const BLOCK: usize = 32;
/// Strength of `g_dep` (the paper's α).
const ALPHA: f64 = 0.5;

/// What one parent adds to one child's state.
#[derive(Debug, Clone)]
pub(super) enum Coupling {
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
    /// An uncalibrated `g_dep` with random weights, which stay as they are if wanted.
    pub(super) fn lstm(as_drawn: bool, rng: &mut Rng) -> Self {
        Self::Lstm(Box::new(Dependency { as_drawn, ..Dependency::random(rng) }))
    }

    /// A saturating mixture with W ~ N(0, 1).
    pub(super) fn tanh(gain: f64, rng: &mut Rng) -> Self {
        let mut normal = || StandardNormal.sample(rng);
        Self::Tanh { gain, w: [[normal(), normal()], [normal(), normal()]] }
    }

    /// The influence of a parent in each of these consecutive states. `g_dep` remembers earlier ones.
    pub(super) fn influence(&mut self, parent: &[State]) -> Vec<State> {
        match self {
            Self::Lstm(g) => {
                let signal = g.raw(parent).into_iter();
                signal.map(|signal| signal.map(|s| ALPHA * s.tanh())).collect()
            }
            Self::Tanh { gain, w } => {
                let driven =
                    |x: &State| w.map(|row| *gain * (row[0] * x[0] + row[1] * x[1]).tanh());
                parent.iter().map(driven).collect()
            }
        }
    }

    /// Runs over a parent's nominal states and returns its influence on the child; on the way
    /// `g_dep` is calibrated, leaving out the first `settling` steps. Begins and ends with an empty memory.
    pub(super) fn rehearse(&mut self, parent: &[State], settling: usize) -> Vec<State> {
        match self {
            Self::Lstm(g) if !g.as_drawn => g.calibrate(parent, settling),
            Self::Lstm(_) | Self::Tanh { .. } => {
                let influence = self.influence(parent);
                if let Self::Lstm(g) = self {
                    g.forget();
                }
                influence
            }
        }
    }
}

/// `g_dep`: W · LSTM(LSTM(x)), of random weights.
///
/// As drawn, its output is nearly constant and the clients would be practically independent.
/// Therefore W is rescaled until W · LSTM has mean 0 and standard deviation 1 on nominal data.
#[derive(Debug, Clone)]
pub(super) struct Dependency {
    layers: [(Packed, Memory); 2],
    w: Linear,
    /// W is not rescaled.
    as_drawn: bool,
}

impl Dependency {
    fn random(rng: &mut Rng) -> Self {
        let layers = [2, HIDDEN].map(|inputs| {
            let layer = Lstm::random(inputs, HIDDEN, rng);
            let memory = layer.memory();
            (Packed::new(&layer), memory)
        });
        Self { layers, w: Linear::random(HIDDEN, 2, rng), as_drawn: false }
    }

    /// W · LSTM of consecutive states, before tanh.
    pub(super) fn raw(&mut self, states: &[State]) -> Vec<State> {
        let mut signal = Vec::with_capacity(states.len());
        let Self { layers: [(first, below), (second, above)], w, .. } = self;
        let (mut gates, mut between, mut above_all) = (Vec::new(), Vec::new(), Vec::new());
        for states in states.chunks(BLOCK) {
            between.resize(states.len() * HIDDEN, 0.0);
            above_all.resize(states.len() * HIDDEN, 0.0);
            pulp::Arch::new().dispatch(
                #[inline(always)]
                || {
                    first.run(states.as_flattened(), below, &mut gates, &mut between);
                    second.run(&between, above, &mut gates, &mut above_all);
                },
            );
            let h = above_all.chunks_exact(HIDDEN);
            signal.extend(h.map(|h| [0, 1].map(|row| w.output(row, h))));
        }
        signal
    }

    fn calibrate(&mut self, parent: &[State], settling: usize) -> Vec<State> {
        let mut signal = self.raw(parent);
        for row in 0..2 {
            let seen: Moments = signal.iter().skip(settling).map(|s| s[row]).collect();
            self.w.standardise(row, seen.mean(), seen.std());
            for s in &mut signal {
                s[row] = ALPHA * ((s[row] - seen.mean()) / seen.std()).tanh();
            }
        }
        self.forget();
        signal
    }

    fn forget(&mut self) {
        self.layers.iter_mut().for_each(|(_, memory)| memory.forget());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;

    #[test]
    fn a_coupling_as_drawn_hardly_varies_and_a_rescaled_one_does() {
        let parent: Vec<State> = (0..600)
            .map(|t| [0.0, 1.5].map(|phase| (f64::from(t) * 0.314 + phase).sin()))
            .collect();
        let spread = |as_drawn| {
            let mut coupling = Coupling::lstm(as_drawn, &mut rng::stream(5, 0));
            let rehearsed = coupling.rehearse(&parent, 100);
            assert_eq!(coupling.influence(&parent).len(), rehearsed.len());
            let seen: Moments = rehearsed.iter().skip(100).map(|x| x[0]).collect();
            seen.std()
        };
        let (drawn, rescaled) = (spread(true), spread(false));
        assert!(drawn < 0.1 * rescaled, "{drawn} {rescaled}");
    }
}
