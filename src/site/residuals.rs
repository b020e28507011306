//! Both residuals of a site and their distances: the filter, φ, and what is nominal for them.

use super::LocalView;
use super::local::norm;
use super::prepared::PreparedSite;
use crate::nn::augment::Augmentation;
use crate::nn::kernel::WeightsError;
use crate::nn::proprietary::VendorModel;
use crate::nn::step::ClientStep;
use crate::nn::train::SETTLING;

/// The chain of a site from a row to the distances of r_c and r_a.
#[derive(Debug)]
pub(super) struct Residuals {
    chain: ClientStep,
    /// Steps since the run began.
    age: usize,
}

impl Residuals {
    pub(crate) fn new(prepared: &PreparedSite) -> Result<Self, WeightsError> {
        let model = VendorModel::new(&prepared.sending)?;
        let augmentation = Augmentation::new(&prepared.phi, &model)?;
        let mut chain = ClientStep::new(model, Some(augmentation));
        chain.calibrate(&prepared.nominal_c.gaussian, Some(&prepared.nominal_a.gaussian));
        Ok(Self { chain, age: 0 })
    }

    /// d² of r_c and of r_a; none while the filter finds its state, and where no sensor is present.
    pub(crate) fn step(&mut self, y: &[f32]) -> Option<(f32, f32)> {
        let distances = self.chain.step(y);
        self.age += 1;
        distances.c.zip(distances.a).filter(|_| self.age > SETTLING)
    }

    /// A new run begins.
    pub(crate) fn reset(&mut self) {
        self.chain.reset();
        self.age = 0;
    }

    /// `steps` without data: the models predict.
    pub(crate) fn skip(&mut self, steps: usize) {
        self.chain.skip(steps);
    }

    /// Shows the last step, whose distances are handed in.
    pub(crate) fn show(&self, (d2_c, d2_a): (f32, f32), view: &mut LocalView) {
        view.d_c = d2_c.sqrt();
        view.d_a = d2_a.sqrt();
        view.r_c = norm(&self.chain.output().r);
        view.r_a = self.chain.augmentation().map_or(f32::NAN, |chain| norm(chain.r()));
    }
}
