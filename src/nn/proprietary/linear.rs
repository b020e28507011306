//! ŷ_t = Σ_l A_l y_{t−l} + b: a prediction from the client's own last samples.
//!
//! As a state-space model its state is the measurement itself: x = ŷ, and x̂ is y with what is
//! missing filled in by the prediction. So its states are raw data and never leave the client.

use super::{LARGEST, Output, Proprietary, SecondEstimate};
use crate::nn::kernel::isa::{Isa, Kernel};
use crate::nn::kernel::lanes::Arithmetic;
use crate::nn::kernel::packed::{Packed, padded};
use crate::nn::kernel::{WeightsError, check, check_dimension};
use crate::nn::weights::OwnLagWeights;

/// The predictor and its last samples.
#[derive(Debug, Clone)]
pub(super) struct OwnLag {
    isa: Isa,
    sensors: usize,
    weight: Packed,
    bias: Vec<f32>,
    /// The most recent sample first; never NaN.
    lags: Vec<f32>,
    /// Whether a sample has been seen since the start of the run.
    started: bool,
    product: Vec<f32>,
    /// Keeps the last sample while another stands in for it.
    spare: Vec<f32>,
}

impl OwnLag {
    pub(super) fn new(weights: &OwnLagWeights, isa: Isa) -> Result<Self, WeightsError> {
        let OwnLagWeights { sensors, lags, .. } = *weights;
        check_dimension("sensors", sensors, sensors.max(1))?;
        check_dimension("lags", lags, lags.max(1))?;
        check("weight", &weights.weight, sensors * lags * sensors)?;
        check("bias", &weights.bias, sensors)?;
        Ok(Self {
            isa,
            sensors,
            weight: Packed::new(sensors, lags * sensors, &weights.weight),
            bias: weights.bias.clone(),
            lags: vec![0.0; lags * sensors],
            started: false,
            product: vec![0.0; padded(sensors)],
            spare: vec![0.0; sensors],
        })
    }

    pub(super) fn reset(&mut self) {
        self.lags.fill(0.0);
        self.started = false;
    }

    /// The next sample, predicted from the last ones.
    pub(super) fn predict(&mut self, y_hat: &mut [f32]) {
        self.isa.run(Product { weight: &self.weight, lags: &self.lags, out: &mut self.product });
        for (y_hat, (product, bias)) in y_hat.iter_mut().zip(self.product.iter().zip(&self.bias)) {
            *y_hat = (product + bias).clamp(-LARGEST, LARGEST);
        }
    }

    /// The same, had the last sample been another.
    fn predict_from(&mut self, last: &[f32], y_hat: &mut [f32]) {
        let n = self.sensors;
        self.spare.copy_from_slice(&self.lags[..n]);
        for (lag, other) in self.lags.iter_mut().zip(last) {
            *lag = other.clamp(-LARGEST, LARGEST);
        }
        self.predict(y_hat);
        self.lags[..n].copy_from_slice(&self.spare);
    }

    /// Takes in a sample; a missing entry is replaced by its prediction. The first sample of a run
    /// stands for all those before it.
    pub(super) fn observe(&mut self, y: &[f32], y_hat: &[f32]) {
        let n = self.sensors;
        let end = self.lags.len() - n;
        self.lags.copy_within(..end, n);
        for (i, (lag, &y_hat)) in self.lags.iter_mut().zip(y_hat).enumerate() {
            let known = y.get(i).copied().filter(|y| y.is_finite());
            *lag = known.unwrap_or(y_hat).clamp(-LARGEST, LARGEST);
        }
        if !self.started && y.iter().any(|y| y.is_finite()) {
            self.started = true;
            for lag in (n..self.lags.len()).step_by(n) {
                self.lags.copy_within(..n, lag);
            }
        }
    }

    /// The last sample, with what was missing filled in.
    fn last(&self) -> &[f32] {
        &self.lags[..self.sensors]
    }
}

struct Product<'a> {
    weight: &'a Packed,
    lags: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self, a: A) {
        self.weight.multiply(a, 1, self.lags, self.out);
    }
}

/// The predictor as a model of its own.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    front: OwnLag,
    output: Output,
}

impl Linear {
    pub(crate) fn new(weights: &OwnLagWeights, isa: Isa) -> Result<Self, WeightsError> {
        let front = OwnLag::new(weights, isa)?;
        Ok(Self { output: Output::new(front.sensors, front.sensors), front })
    }
}

impl Proprietary for Linear {
    fn may_send_states(&self) -> bool {
        false
    }

    fn step(&mut self, y: &[f32], beside: Option<SecondEstimate<'_>>) {
        let Output { y_hat, r, x, x_hat, e } = &mut self.output;
        if let Some(beside) = beside {
            self.front.predict_from(beside.x_hat, beside.x);
            beside.y_hat.copy_from_slice(beside.x);
        }
        self.front.predict(y_hat);
        x.copy_from_slice(y_hat);
        subtract(y, y_hat, r);
        self.front.observe(y, y_hat);
        x_hat.copy_from_slice(self.front.last());
        for (e, (x_hat, x)) in e.iter_mut().zip(x_hat.iter().zip(x)) {
            *e = x_hat - *x;
        }
    }

    fn output(&self) -> &Output {
        &self.output
    }

    fn reset(&mut self) {
        self.front.reset();
        self.output.clear();
    }
}

/// r = y − ŷ; NaN where y is missing. No `y` at all is a gap.
pub(super) fn subtract(y: &[f32], y_hat: &[f32], r: &mut [f32]) {
    r.fill(f32::NAN);
    for (r, (y, y_hat)) in r.iter_mut().zip(y.iter().zip(y_hat)) {
        if y.is_finite() {
            *r = y - y_hat;
        }
    }
}
