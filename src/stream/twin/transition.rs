//! The transition `f_m` of family A: an LSTM that was fitted to continue its client's target.
//!
//! It must not know the other clients.

use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};

use super::State;
use super::fit::{Adam, Batch, LANES, Tape};
use super::lstm::{Linear, Lstm, Memory};
use super::packed::Packed;
use super::target::Target;
use crate::base::rng::Rng;

const HIDDEN: usize = 16;
const ITERATIONS: usize = 400;
const RATE: f64 = 5e-3;
/// Standard deviation of the noise on the inputs while fitting: the state that `f_m` will see later
/// is never the target itself.
const INPUT_NOISE: f64 = 0.3;
/// Steps of the target that windows are cut from.
const SERIES: usize = 4000;
/// Steps of a window: one and a half periods.
const WINDOW: usize = 30;
/// Steps at the start of a window that do not count, as the memory starts empty.
const MUTED: usize = 5;

/// `f_m` with the memory it carries.
#[derive(Debug, Clone)]
pub(super) struct Transition {
    cell: Packed,
    out: Linear,
    memory: Memory,
    /// Room for a step's gates.
    gates: Vec<f64>,
}

impl Transition {
    /// Fits a fresh network to predict the target's next value from a noisy present one.
    pub(super) fn fit(mut target: Target, rng: &mut Rng) -> Self {
        let mut cell = Lstm::random(2, HIDDEN, rng);
        let mut out = Linear::random(HIDDEN, 2, rng);
        let series: Vec<State> = (0..SERIES).map(|_| target.next()).collect();

        let mut tape = Tape::new(&cell, &out, WINDOW);
        let mut for_cell = Adam::new(cell.weights.len(), RATE);
        let mut for_out = Adam::new(out.weights.len(), RATE);
        let mut batch = Batch {
            steps: WINDOW,
            muted: MUTED,
            x: vec![[0.0; LANES]; WINDOW * 2],
            wanted: vec![[0.0; LANES]; WINDOW * 2],
        };
        for _ in 0..ITERATIONS {
            cut_windows(&mut batch, &series, rng);
            pulp::Arch::new().dispatch(
                #[inline(always)]
                || {
                    tape.forward(&cell, &out, &batch);
                    tape.backward(&cell, &out, &batch);
                    for_cell.update(&mut cell.weights, &tape.of_cell);
                    for_out.update(&mut out.weights, &tape.of_out);
                },
            );
        }
        Self { cell: Packed::new(&cell), out, memory: cell.memory(), gates: Vec::new() }
    }

    /// `f_m(x)`, the memory being carried on.
    pub(super) fn step(&mut self, x: State) -> State {
        let Self { cell, memory, gates, .. } = self;
        let mut h = [0.0; HIDDEN];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || cell.run(&x, memory, gates, &mut h),
        );
        [0, 1].map(|row| self.out.output(row, &h))
    }

    pub(super) fn forget(&mut self) {
        self.memory.forget();
    }
}

/// Fills `batch` with windows that start anywhere in `series`.
fn cut_windows(batch: &mut Batch, series: &[State], rng: &mut Rng) {
    for lane in 0..LANES {
        let start = rng.random_range(0..series.len() - batch.steps);
        let window = series[start..=start + batch.steps].windows(2).enumerate();
        for (t, pair) in window {
            for (dim, (now, next)) in pair[0].iter().zip(&pair[1]).enumerate() {
                let noise: f64 = StandardNormal.sample(rng);
                batch.x[2 * t + dim][lane] = now + INPUT_NOISE * noise;
                batch.wanted[2 * t + dim][lane] = *next;
            }
        }
    }
}
