//! A linear front end with the filter on what it leaves over: u = (y − front(y before)) / scale.
//!
//! The front end predicts every sensor from its own past; the filter's few states carry what is
//! left, so they are small and may be sent.

use super::linear::{OwnLag, subtract};
use super::{Filter, LARGEST, Output, Proprietary, SecondEstimate};
use crate::nn::kernel::isa::Isa;
use crate::nn::kernel::{WeightsError, check, check_dimension};
use crate::nn::weights::{FilterWeights, OwnLagWeights};

/// The front end, the filter on its residual, and the units between them.
#[derive(Debug, Clone)]
pub(crate) struct OwnLagFilter {
    front: OwnLag,
    filter: Filter,
    scale: Vec<f32>,
    front_hat: Vec<f32>,
    left_over: Vec<f32>,
    output: Output,
}

impl OwnLagFilter {
    pub(crate) fn new(
        front: &OwnLagWeights,
        filter: &FilterWeights,
        scale: &[f32],
        isa: Isa,
    ) -> Result<Self, WeightsError> {
        let sensors = front.sensors;
        let front = OwnLag::new(front, isa)?;
        let filter = Filter::new(filter, isa)?;
        check_dimension("sensors of the filter", filter.sensors(), sensors)?;
        check("scale", scale, sensors)?;
        if let Some(&found) = scale.iter().find(|s| **s < 0.0) {
            return Err(WeightsError::Noise { what: "scale", found: f64::from(found) });
        }
        Ok(Self {
            front,
            // A front end that leaves nothing over leaves nothing to scale.
            scale: scale.iter().map(|&s| if s == 0.0 { 1.0 } else { s }).collect(),
            front_hat: vec![0.0; sensors],
            left_over: vec![0.0; sensors],
            output: Output::new(sensors, filter.states()),
            filter,
        })
    }

    /// The filter on what the front end leaves over, and what it saw at the last step.
    pub(crate) fn inner(&self) -> (&Filter, &[f32]) {
        (&self.filter, &self.left_over)
    }
}

impl Proprietary for OwnLagFilter {
    fn may_send_states(&self) -> bool {
        self.filter.may_send_states()
    }

    fn step(&mut self, y: &[f32], beside: Option<SecondEstimate<'_>>) {
        self.front.predict(&mut self.front_hat);
        let to_measurement = |y_hat: &mut f32, (front, scale): (&f32, &f32)| {
            *y_hat = (front + scale * *y_hat).clamp(-LARGEST, LARGEST);
        };
        for (i, u) in self.left_over.iter_mut().enumerate() {
            let y = y.get(i).copied().filter(|y| y.is_finite());
            *u = y.map_or(f32::NAN, |y| {
                ((y - self.front_hat[i]) / self.scale[i]).clamp(-LARGEST, LARGEST)
            });
        }
        match beside {
            Some(SecondEstimate { x_hat, x, y_hat }) => {
                self.filter
                    .step(&self.left_over, Some(SecondEstimate { x_hat, x, y_hat: &mut *y_hat }));
                let units = self.front_hat.iter().zip(&self.scale);
                y_hat.iter_mut().zip(units).for_each(|(y_hat, unit)| to_measurement(y_hat, unit));
            }
            None => self.filter.step(&self.left_over, None),
        }
        let Output { y_hat, r, x, x_hat, e } = &mut self.output;
        let inner = self.filter.output();
        x.copy_from_slice(&inner.x);
        x_hat.copy_from_slice(&inner.x_hat);
        e.copy_from_slice(&inner.e);
        y_hat.copy_from_slice(&inner.y_hat);
        let units = self.front_hat.iter().zip(&self.scale);
        y_hat.iter_mut().zip(units).for_each(|(y_hat, unit)| to_measurement(y_hat, unit));
        subtract(y, y_hat, r);
        self.front.observe(y, y_hat);
    }

    fn output(&self) -> &Output {
        &self.output
    }

    fn reset(&mut self) {
        self.front.reset();
        self.filter.reset();
        self.output.clear();
    }

    #[cfg(test)]
    fn recoveries(&self) -> u64 {
        self.filter.recoveries()
    }
}
