//! The vendor's model of one client: a black box that turns measurements into residuals and states.
//!
//! Measurements are standardised; a sensor whose value is not finite is missing at that step. The
//! model knows neither the augmentation nor the server, and nothing here can change its weights.

mod filter;
mod linear;
mod own_lag;
#[cfg(test)]
mod tests;
mod whole_state;

pub(crate) use filter::Filter;
pub(crate) use linear::Linear;
pub(crate) use own_lag::OwnLagFilter;

use super::kernel::WeightsError;
use super::kernel::isa::Isa;
use super::weights::ProprietaryWeights;

/// States, predictions and remembered measurements stay inside ±this many standard deviations:
/// far beyond anything a plant does, far below anything that overflows.
const LARGEST: f32 = 1e4;

/// A gap of more steps than this is a new run.
pub(crate) const LONGEST_GAP: usize = 10_000;

/// The results of one step. Buffers are allocated once, with the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Output {
    /// ŷ = h(x): the measurement predicted before it was seen.
    pub(crate) y_hat: Vec<f32>,
    /// r = y − ŷ (eq. 8); NaN where the measurement is missing.
    pub(crate) r: Vec<f32>,
    /// x = f(x̂ of the step before): the predicted state.
    pub(crate) x: Vec<f32>,
    /// x̂: the state estimated with the measurement.
    pub(crate) x_hat: Vec<f32>,
    /// e = x̂ − x: what the measurement changed.
    pub(crate) e: Vec<f32>,
}

impl Output {
    fn new(sensors: usize, states: usize) -> Self {
        Self {
            y_hat: vec![0.0; sensors],
            r: vec![f32::NAN; sensors],
            x: vec![0.0; states],
            x_hat: vec![0.0; states],
            e: vec![0.0; states],
        }
    }

    fn clear(&mut self) {
        self.y_hat.fill(0.0);
        self.r.fill(f32::NAN);
        self.x.fill(0.0);
        self.x_hat.fill(0.0);
        self.e.fill(0.0);
    }
}

/// A second estimate of the last state, carried through the same f and h, beside the model's own
/// and without a trace in it: the augmented chain x_a = f(x̂_a), ŷ_a = h(x_a) (eq. 3).
#[derive(Debug)]
pub(crate) struct SecondEstimate<'a> {
    /// x̂_a of the step before.
    pub(crate) x_hat: &'a [f32],
    /// Receives x_a.
    pub(crate) x: &'a mut [f32],
    /// Receives ŷ_a.
    pub(crate) y_hat: &'a mut [f32],
}

/// What every vendor's model can do.
pub(crate) trait Proprietary: Send {
    /// Whether states are a summary that may leave the client. False where they are practically
    /// the raw measurements.
    fn may_send_states(&self) -> bool;

    /// One step with a measurement of D numbers; a missing one is not finite. With all of them
    /// missing, or with no numbers at all, the step is a prediction only.
    fn step(&mut self, y: &[f32], beside: Option<SecondEstimate<'_>>);

    /// The result of the last step.
    fn output(&self) -> &Output;

    /// Forgets everything but the weights: a new run begins.
    fn reset(&mut self);

    fn sensors(&self) -> usize {
        self.output().y_hat.len()
    }

    fn states(&self) -> usize {
        self.output().x.len()
    }

    /// `steps` predictions over a gap in the data; a gap of more than [`LONGEST_GAP`] is a new run.
    fn skip(&mut self, steps: usize) {
        if steps > LONGEST_GAP {
            self.reset();
        } else {
            (0..steps).for_each(|_| self.step(&[], None));
        }
    }

    /// How often the model had to start again since it was made: its covariance was none any more, or
    /// its state out of range.
    #[cfg(test)]
    fn recoveries(&self) -> u64 {
        0
    }
}

/// Any proprietary model the crate can load.
#[derive(Debug, Clone)]
pub(crate) enum VendorModel {
    /// The paper's filter or the residual form.
    Filter(Box<Filter>),
    /// A linear front end with a filter on what it leaves over.
    OwnLagFilter(Box<OwnLagFilter>),
    Linear(Box<Linear>),
}

impl VendorModel {
    /// The model that runs these weights on the best instruction set of this machine.
    pub(crate) fn new(weights: &ProprietaryWeights) -> Result<Self, WeightsError> {
        let isa = Isa::detect();
        Ok(match weights {
            ProprietaryWeights::Filter(filter) => Self::Filter(Box::new(Filter::new(filter, isa)?)),
            ProprietaryWeights::OwnLagFilter { front, filter, scale } => {
                Self::OwnLagFilter(Box::new(OwnLagFilter::new(front, filter, scale, isa)?))
            }
            ProprietaryWeights::Linear(front) => Self::Linear(Box::new(Linear::new(front, isa)?)),
        })
    }

    /// The filter inside, and what it was given of the last measurement `y`: all of it, or what a
    /// front end left over, in the filter's own units. None where there is no filter.
    pub(crate) fn filter<'a>(&'a self, y: &'a [f32]) -> Option<(&'a Filter, &'a [f32])> {
        match self {
            Self::Filter(filter) => Some((filter, y)),
            Self::OwnLagFilter(model) => Some(model.inner()),
            Self::Linear(_) => None,
        }
    }

    fn model(&self) -> &dyn Proprietary {
        match self {
            Self::Filter(model) => model.as_ref(),
            Self::OwnLagFilter(model) => model.as_ref(),
            Self::Linear(model) => model.as_ref(),
        }
    }

    fn model_mut(&mut self) -> &mut dyn Proprietary {
        match self {
            Self::Filter(model) => model.as_mut(),
            Self::OwnLagFilter(model) => model.as_mut(),
            Self::Linear(model) => model.as_mut(),
        }
    }
}

impl Proprietary for VendorModel {
    fn may_send_states(&self) -> bool {
        self.model().may_send_states()
    }

    fn step(&mut self, y: &[f32], beside: Option<SecondEstimate<'_>>) {
        self.model_mut().step(y, beside);
    }

    fn output(&self) -> &Output {
        self.model().output()
    }

    fn reset(&mut self) {
        self.model_mut().reset();
    }

    #[cfg(test)]
    fn recoveries(&self) -> u64 {
        self.model().recoveries()
    }
}
