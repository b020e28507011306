//! What a proprietary model makes of a client's rows, kept for as many passes as training takes.

use ndarray::ArrayView2;

use crate::nn::proprietary::{Proprietary, VendorModel};

/// φ sees measurements within ±this many standard deviations, as at run time.
const LARGEST: f32 = 1e4;

/// One run of the model over all rows.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    steps: usize,
    states: usize,
    sensors: usize,
    remembered: usize,
    width: usize,
    x_hat: Vec<f32>,
    memory: Vec<f32>,
    input: Vec<f32>,
    target: Vec<f32>,
    measured: Vec<bool>,
}

impl Chain {
    /// Runs `model`, which must have a filter, over `rows`. A row without any measurement is a
    /// prediction only.
    pub(super) fn run(model: &mut VendorModel, rows: &ArrayView2<f32>) -> Self {
        let (steps, sensors) = rows.dim();
        let states = model.states();
        let mut chain = Self {
            steps,
            states,
            sensors,
            remembered: 0,
            width: 0,
            x_hat: Vec::with_capacity(steps * states),
            memory: Vec::new(),
            input: Vec::with_capacity(steps * sensors),
            target: Vec::with_capacity(steps * sensors),
            measured: Vec::with_capacity(steps),
        };
        let mut y = vec![0.0; sensors];
        model.reset();
        for row in rows.outer_iter() {
            y.iter_mut().zip(row).for_each(|(y, v)| *y = *v);
            model.step(&y, None);
            let Some((filter, seen)) = model.filter(&y) else { continue };
            let (output, memory) = (model.output(), filter.memory());
            chain.remembered = memory.len();
            chain.width = filter.transition_width();
            chain.x_hat.extend_from_slice(&output.x_hat);
            memory.record(&mut chain.memory);
            let fill_in = y.iter().zip(&output.y_hat);
            chain.input.extend(fill_in.map(|(&y, &y_hat)| {
                (if y.is_finite() { y } else { y_hat }).clamp(-LARGEST, LARGEST)
            }));
            chain.target.extend(seen.iter().map(|&v| if v.is_finite() { v } else { f32::NAN }));
            chain.measured.push(y.iter().any(|y| y.is_finite()));
        }
        chain
    }

    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// Number of states P.
    pub(crate) fn states(&self) -> usize {
        self.states
    }

    /// x̂_c of all rows, one after the other.
    pub(crate) fn x_hats(&self) -> &[f32] {
        &self.x_hat
    }

    /// Number of sensors D.
    pub(crate) fn sensors(&self) -> usize {
        self.sensors
    }

    /// x̂_c(t).
    pub(crate) fn x_hat(&self, t: usize) -> &[f32] {
        row(&self.x_hat, t, self.states)
    }

    /// (h, c) of f_m after step t, as a kernel recalls it.
    pub(crate) fn memory(&self, t: usize) -> &[f32] {
        row(&self.memory, t, self.remembered)
    }

    /// h and c of f_m after step t.
    pub(crate) fn hidden_and_cell(&self, t: usize) -> (&[f32], &[f32]) {
        let (h, c) = self.memory(t).split_at(self.remembered / 2);
        (&h[..self.width], &c[..self.width])
    }

    /// What φ sees of row t: the measurement, and the proprietary prediction where it is missing.
    pub(crate) fn input(&self, t: usize) -> &[f32] {
        row(&self.input, t, self.sensors)
    }

    /// What h(x(t)) is compared with, in the filter's units; NaN where missing.
    pub(crate) fn target(&self, t: usize) -> &[f32] {
        row(&self.target, t, self.sensors)
    }

    /// Whether any sensor was there at row t.
    pub(crate) fn is_measured(&self, t: usize) -> bool {
        self.measured[t]
    }
}

fn row(values: &[f32], t: usize, length: usize) -> &[f32] {
    &values[t * length..(t + 1) * length]
}
