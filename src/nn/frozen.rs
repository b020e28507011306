//! f_m and h_m as a client's learner sees them: values and Jacobians, and no way to change them.
//!
//! The functions run at a given memory and leave no trace in it, so that a second estimate of the
//! state can be carried through them (eq. 3) as often as training asks. Only the paper's form is
//! taken: in residual form the states are practically the measurements and stay where they are.

use super::kernel::isa::{Isa, Kernel};
use super::kernel::lanes::Arithmetic;
use super::kernel::lstm::{Lstm, Memory};
use super::kernel::mlp::Mlp;
use super::kernel::rows::Rows;
use super::kernel::{WeightsError, check_dimension};
use super::weights::FilterWeights;

/// f_m and h_m.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    isa: Isa,
    transition: Lstm,
    measurement: Mlp,
}

/// Where [`Frozen`] writes: x_a = f(x̂_a), ŷ_a = h(x_a) and their Jacobians.
#[derive(Debug, Clone)]
pub(crate) struct Carried {
    memory: Memory,
    states: usize,
    sensors: usize,
    transition: Rows,
    measurement: Rows,
}

impl Frozen {
    /// The functions of a filter in the paper's form.
    pub(crate) fn new(weights: &FilterWeights) -> Result<Self, WeightsError> {
        let isa = Isa::detect();
        let (transition, measurement) =
            (Lstm::new(&weights.transition)?, Mlp::new(&weights.measurement)?);
        let states = weights.states();
        check_dimension("loadings", weights.loadings.as_ref().map_or(0, Vec::len), 0)?;
        check_dimension("input of the transition", transition.inputs, states)?;
        check_dimension("input of the measurement", measurement.inputs, states)?;
        Ok(Self { isa, transition, measurement })
    }

    pub(crate) fn carried(&self) -> Carried {
        let (states, sensors) = (self.transition.outputs, self.measurement.outputs);
        Carried {
            memory: self.transition.memory(),
            states,
            sensors,
            transition: self.transition.rows(states + 1),
            measurement: self.measurement.rows(states + 1),
        }
    }

    /// Carries `x_hat` through f at the `recorded` memory, and on through h.
    pub(crate) fn carry(&self, x_hat: &[f32], recorded: &[f32], carried: &mut Carried) {
        carried.memory.recall(recorded);
        self.isa.run(Carry { frozen: self, x_hat, carried });
    }
}

struct Carry<'a> {
    frozen: &'a Frozen,
    x_hat: &'a [f32],
    carried: &'a mut Carried,
}

impl Kernel for Carry<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self, a: A) {
        let Self { frozen, x_hat, carried } = self;
        let Carried { memory, states, transition, measurement, .. } = carried;
        frozen.transition.step(a, memory, x_hat, true, None, transition);
        frozen.measurement.evaluate(a, &transition.row(0)[..*states], None, measurement);
    }
}

impl Carried {
    /// f's memory after the step, or an empty one before the first.
    pub(crate) fn recorded(&self) -> Vec<f32> {
        let mut recorded = Vec::new();
        self.memory.record(&mut recorded);
        recorded
    }

    /// x_a = f(x̂_a).
    pub(crate) fn x(&self) -> &[f32] {
        &self.transition.row(0)[..self.states]
    }

    /// ŷ_a = h(x_a).
    pub(crate) fn y_hat(&self) -> &[f32] {
        &self.measurement.row(0)[..self.sensors]
    }

    /// ∂f/∂x̂_k: column k of F_a.
    pub(crate) fn f_column(&self, k: usize) -> &[f32] {
        &self.transition.row(1 + k)[..self.states]
    }

    /// ∂h/∂x_k: column k of H_a.
    pub(crate) fn h_column(&self, k: usize) -> &[f32] {
        &self.measurement.row(1 + k)[..self.sensors]
    }
}
