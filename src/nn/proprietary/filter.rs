//! The Extended Kalman Filter over learned functions (eqs. 1 and 2), in the paper's form
//! x' = f(x), y = h(x) and in the residual form x' = x + f(x), y = C x + h(x).
//!
//! The memory (h, c) of the LSTM is carried beside the state and taken as known: F = ∂f/∂x at
//! frozen (h, c). Measurements are clipped for the update only, so that one wild sensor cannot drag
//! the state away; the residual shows it in full.

use super::whole_state::WholeState;
use super::{LARGEST, Output, Proprietary, SecondEstimate};
use crate::nn::kernel::covariance::Covariance;
use crate::nn::kernel::isa::{Isa, Kernel};
use crate::nn::kernel::lanes::Arithmetic;
use crate::nn::kernel::lstm::{Lstm, Memory};
use crate::nn::kernel::mlp::Mlp;
use crate::nn::kernel::packed::padded;
use crate::nn::kernel::rows::Rows;
use crate::nn::kernel::{WeightsError, check, check_dimension};
use crate::nn::weights::{Conduct, FilterWeights};

#[derive(Debug, Clone)]
pub(crate) struct Filter {
    isa: Isa,
    conduct: Conduct,
    transition: Lstm,
    measurement: Mlp,
    /// C of the residual form, column by column, each padded like ŷ.
    loadings: Option<Vec<f32>>,
    memory: Memory,
    covariance: Covariance,
    /// In its place where the memory is estimated too.
    whole: Option<Box<WholeState>>,
    /// x, then ∂f/∂x_k, then x_a.
    transition_rows: Rows,
    /// ŷ, then ∂h/∂x_k, then ŷ_a.
    measurement_rows: Rows,
    /// Clipped y − ŷ; zero where missing, and in the padding.
    innovation: Vec<f32>,
    output: Output,
    recoveries: u64,
}

impl Filter {
    pub(crate) fn new(weights: &FilterWeights, isa: Isa) -> Result<Self, WeightsError> {
        let (states, sensors) = (weights.states(), weights.sensors());
        let transition = Lstm::new(&weights.transition)?;
        let measurement = Mlp::new(&weights.measurement)?;
        check_dimension("input of the transition", transition.inputs, states)?;
        check_dimension("input of the measurement", measurement.inputs, states)?;
        if !(weights.q.is_finite() && weights.q >= 0.0) {
            return Err(WeightsError::Noise { what: "q", found: weights.q });
        }
        if !(weights.r.is_finite() && weights.r > 0.0) {
            return Err(WeightsError::Noise { what: "r", found: weights.r });
        }
        let loadings = match &weights.loadings {
            Some(c) => {
                check("loadings", c, sensors * states)?;
                Some(columns(sensors, states, c))
            }
            None => None,
        };
        Ok(Self {
            isa,
            conduct: weights.conduct,
            memory: transition.memory(),
            covariance: Covariance::new(states, weights.q, weights.r),
            whole: (!weights.conduct.memory_is_known).then(|| Box::new(WholeState::new(weights))),
            transition_rows: transition.rows(states + 2),
            measurement_rows: measurement.rows(states + 2),
            innovation: vec![0.0; padded(sensors)],
            output: Output::new(sensors, states),
            recoveries: 0,
            transition,
            measurement,
            loadings,
        })
    }

    /// (h, c) of the transition, as after the last step.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn transition_width(&self) -> usize {
        self.transition.width
    }

    /// P, row-major.
    #[cfg(test)]
    pub(crate) fn covariance(&self) -> &[f64] {
        self.covariance.p()
    }

    /// Back to x̂ = 0, P = I and an empty memory, after numbers that cannot be trusted.
    fn recover(&mut self) {
        self.forget();
        self.output.x_hat.fill(0.0);
        self.output.e.fill(0.0);
        self.recoveries += 1;
    }

    /// P = I and an empty memory.
    fn forget(&mut self) {
        self.memory.clear();
        self.covariance.reset();
        self.whole.iter_mut().for_each(|whole| whole.reset());
    }
}

/// Row-major C to padded columns.
fn columns(sensors: usize, states: usize, row_major: &[f32]) -> Vec<f32> {
    let length = padded(sensors);
    let mut columns = vec![0.0; states * length];
    for (k, column) in columns.chunks_exact_mut(length).enumerate() {
        for (i, entry) in column[..sensors].iter_mut().enumerate() {
            *entry = row_major[i * states + k];
        }
    }
    columns
}

impl Proprietary for Filter {
    fn may_send_states(&self) -> bool {
        self.loadings.is_none()
    }

    fn step(&mut self, y: &[f32], beside: Option<SecondEstimate<'_>>) {
        debug_assert!(y.is_empty() || y.len() == self.sensors());
        let isa = self.isa;
        isa.run(Step { filter: self, y, beside });
    }

    fn output(&self) -> &Output {
        &self.output
    }

    fn reset(&mut self) {
        self.forget();
        self.output.clear();
    }

    #[cfg(test)]
    fn recoveries(&self) -> u64 {
        self.recoveries
    }
}

/// One step; `y` is empty over a gap.
struct Step<'a, 'b> {
    filter: &'a mut Filter,
    y: &'a [f32],
    beside: Option<SecondEstimate<'b>>,
}

impl Kernel for Step<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self, a: A) {
        let Self { filter, y, mut beside } = self;
        filter.predict_state(a, beside.as_mut());
        filter.predict_measurement(a, beside.as_mut());
        let present = filter.compare(y);
        filter.correct(a, present);
        if !filter.conduct.has_memory {
            filter.memory.clear();
        }
    }
}

impl Filter {
    /// x = f(x̂; h, c), F, and x_a = f(x̂_a; h, c) with the same memory.
    #[inline(always)]
    fn predict_state<A: Arithmetic>(&mut self, a: A, beside: Option<&mut SecondEstimate<'_>>) {
        let residual_form = self.loadings.is_some();
        let second = beside.as_ref().map(|beside| beside.x_hat);
        if let Some(whole) = &mut self.whole {
            whole.predict(&self.output.x_hat, &self.memory);
        }
        self.transition.step(
            a,
            &mut self.memory,
            &self.output.x_hat,
            true,
            second,
            &mut self.transition_rows,
        );
        if self.whole.is_none() {
            self.covariance.predict(a, &self.transition_rows, residual_form);
        }
        let states = self.states();
        let next = |x: &mut [f32], row: &[f32], before: &[f32]| {
            for (x, (&change, &before)) in x.iter_mut().zip(row.iter().zip(before)) {
                let value = if residual_form { before + change } else { change };
                *x = value.clamp(-LARGEST, LARGEST);
            }
        };
        next(&mut self.output.x, self.transition_rows.row(0), &self.output.x_hat);
        if let Some(beside) = beside {
            next(beside.x, self.transition_rows.row(1 + states), beside.x_hat);
        }
    }

    /// ŷ = h(x), H, and ŷ_a = h(x_a).
    #[inline(always)]
    fn predict_measurement<A: Arithmetic>(
        &mut self,
        a: A,
        beside: Option<&mut SecondEstimate<'_>>,
    ) {
        let states = self.states();
        let second = beside.as_ref().map(|beside| &*beside.x);
        let rows = &mut self.measurement_rows;
        if self.conduct.jacobian_at_prediction {
            self.measurement.evaluate(a, &self.output.x, second, rows);
        } else {
            self.measurement.evaluate(a, &self.output.x_hat, None, rows);
            let earlier: Vec<Vec<f32>> = (1..=states).map(|k| rows.row(k).to_vec()).collect();
            self.measurement.evaluate(a, &self.output.x, second, rows);
            for (k, jacobian) in (1..=states).zip(&earlier) {
                rows.row_mut(k).copy_from_slice(jacobian);
            }
        }
        if let Some(loadings) = &self.loadings {
            for (k, column) in loadings.chunks_exact(self.innovation.len()).enumerate() {
                add_scaled(rows.row_mut(0), self.output.x[k], column);
                add_scaled(rows.row_mut(1 + k), 1.0, column);
                if let Some(second) = second {
                    add_scaled(rows.row_mut(1 + states), second[k], column);
                }
            }
        }
        let sensors = self.output.y_hat.len();
        self.output.y_hat.copy_from_slice(&rows.row(0)[..sensors]);
        if let Some(beside) = beside {
            beside.y_hat.copy_from_slice(&rows.row(1 + states)[..sensors]);
        }
    }

    /// r = y − ŷ and the innovation; how many sensors are present. A missing one leaves no
    /// innovation, and its row of H becomes zero.
    #[inline(always)]
    fn compare(&mut self, y: &[f32]) -> usize {
        if y.is_empty() {
            self.output.r.fill(f32::NAN);
            return 0;
        }
        // Without a branch per sensor, so that the common case is a few vector instructions.
        let whole = y.iter().fold(true, |whole, y| whole & y.is_finite());
        let clip = self.conduct.update_clip;
        let outputs = self.output.r.iter_mut().zip(&mut self.innovation);
        for ((r, innovation), (&y, &y_hat)) in outputs.zip(y.iter().zip(&self.output.y_hat)) {
            *r = y - y_hat;
            *innovation = y.clamp(-clip, clip) - y_hat;
        }
        if whole { y.len() } else { self.leave_out(y) }
    }

    /// Takes the missing sensors out of the residual and the update; how many are left.
    fn leave_out(&mut self, y: &[f32]) -> usize {
        let mut present = y.len();
        for (i, _) in y.iter().enumerate().filter(|(_, y)| !y.is_finite()) {
            present -= 1;
            self.output.r[i] = f32::NAN;
            self.innovation[i] = 0.0;
            for k in 0..self.output.x.len() {
                self.measurement_rows.row_mut(1 + k)[i] = 0.0;
            }
        }
        present
    }

    /// x̂ = x + K (y − ŷ) and P, or x̂ = x and P⁻ if nothing was measured.
    #[inline(always)]
    fn correct<A: Arithmetic>(&mut self, a: A, present: usize) {
        if present == 0 {
            self.output.e.fill(0.0);
        } else {
            let correction = if let Some(whole) = &mut self.whole {
                whole.update(&self.measurement_rows, &self.innovation, self.output.r.len());
                self.memory.correct(whole.of_memory());
                whole.of_state()
            } else {
                self.covariance.update(a, &self.measurement_rows, &self.innovation);
                self.covariance.correction()
            };
            for (e, &correction) in self.output.e.iter_mut().zip(correction) {
                *e = correction as f32;
            }
        }
        let is_sound = self
            .whole
            .as_ref()
            .map_or_else(|| self.covariance.is_sound(), |whole| whole.is_sound());
        let mut inside = true;
        let state = self.output.x_hat.iter_mut().zip(self.output.x.iter().zip(&self.output.e));
        for (x_hat, (x, e)) in state {
            *x_hat = x + e;
            inside &= x_hat.abs() < LARGEST;
        }
        if !(inside && is_sound) {
            self.recover();
        }
    }
}

/// y + factor·x in place.
#[inline(always)]
fn add_scaled(y: &mut [f32], factor: f32, x: &[f32]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}
