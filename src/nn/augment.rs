//! The augmented chain of a client (eq. 3): x̂_a = x̂_c + φ(y), x_a = f(x̂_a), r_a = y − h(x_a).
//!
//! f and h are the proprietary model's own, with its memory as after the step; φ has a memory of its
//! own. A missing sensor enters φ as the proprietary prediction ŷ, the best guess the client has; a
//! step without any measurement leaves φ and its memory as they are, so x̂_a = x̂_c. This
//! module must not know how φ is trained.

use super::kernel::isa::{Isa, Kernel};
use super::kernel::lanes::Arithmetic;
use super::kernel::lstm::{Lstm, Memory};
use super::kernel::rows::Rows;
use super::kernel::{WeightsError, check_dimension};
use super::proprietary::{Output, Proprietary, SecondEstimate};
use super::weights::LstmFc;

/// Measurements enter φ inside ±this many standard deviations: no statistic, only a guard against
/// overflow.
const LARGEST: f32 = 1e4;

/// φ and the chain it augments.
#[derive(Debug, Clone)]
pub(crate) struct Augmentation {
    isa: Isa,
    phi: Lstm,
    memory: Memory,
    rows: Rows,
    /// y with what is missing filled in.
    input: Vec<f32>,
    x: Vec<f32>,
    x_hat: Vec<f32>,
    y_hat: Vec<f32>,
    r: Vec<f32>,
}

impl Augmentation {
    /// φ for a model, on the best instruction set of this machine.
    pub(crate) fn new(weights: &LstmFc, model: &impl Proprietary) -> Result<Self, WeightsError> {
        Self::with_isa(weights, model, Isa::detect())
    }

    /// φ for a model, on a given instruction set.
    pub(crate) fn with_isa(
        weights: &LstmFc,
        model: &impl Proprietary,
        isa: Isa,
    ) -> Result<Self, WeightsError> {
        let (sensors, states) = (model.sensors(), model.states());
        let phi = Lstm::new(weights)?;
        check_dimension("input of φ", phi.inputs, sensors)?;
        check_dimension("output of φ", phi.outputs, states)?;
        Ok(Self {
            isa,
            memory: phi.memory(),
            rows: phi.rows(1),
            phi,
            input: vec![0.0; sensors],
            x: vec![0.0; states],
            x_hat: vec![0.0; states],
            y_hat: vec![0.0; sensors],
            r: vec![f32::NAN; sensors],
        })
    }

    /// x_a: the predicted augmented state.
    pub(crate) fn x(&self) -> &[f32] {
        &self.x
    }

    /// x̂_a = x̂_c + φ(y): the augmented state.
    #[cfg(test)]
    pub(crate) fn x_hat(&self) -> &[f32] {
        &self.x_hat
    }

    /// ŷ_a = h(x_a).
    pub(crate) fn y_hat(&self) -> &[f32] {
        &self.y_hat
    }

    /// r_a = y − h(x_a) (eq. 8); NaN where the measurement is missing.
    pub(crate) fn r(&self) -> &[f32] {
        &self.r
    }

    /// What the model carries through f and h beside its own state.
    pub(crate) fn second_estimate(&mut self) -> SecondEstimate<'_> {
        SecondEstimate { x_hat: &self.x_hat, x: &mut self.x, y_hat: &mut self.y_hat }
    }

    /// After the model's step: r_a, and x̂_a for the next one.
    pub(crate) fn correct(&mut self, y: &[f32], proprietary: &Output) {
        // Without a branch per sensor, so that the common case is a few vector instructions.
        let whole = y.iter().fold(true, |whole, y| whole & y.is_finite());
        for ((r, input), (&y, &y_hat)) in
            self.r.iter_mut().zip(&mut self.input).zip(y.iter().zip(&self.y_hat))
        {
            *r = y - y_hat;
            *input = y.clamp(-LARGEST, LARGEST);
        }
        let present = whole || self.fill_in(y, &proprietary.y_hat);
        self.x_hat.copy_from_slice(&proprietary.x_hat);
        if present {
            let Self { isa, phi, memory, rows, input, x_hat, .. } = self;
            isa.run(Correction { phi, memory, rows, input });
            for (x_hat, phi) in x_hat.iter_mut().zip(rows.row(0)) {
                *x_hat += phi;
            }
        }
    }

    /// Gives φ the proprietary prediction where a sensor is missing; whether any is present.
    fn fill_in(&mut self, y: &[f32], guess: &[f32]) -> bool {
        for (i, _) in y.iter().enumerate().filter(|(_, y)| !y.is_finite()) {
            self.r[i] = f32::NAN;
            self.input[i] = guess[i].clamp(-LARGEST, LARGEST);
        }
        y.iter().any(|y| y.is_finite())
    }

    /// After a gap: the augmented state is the proprietary one.
    pub(crate) fn follow(&mut self, proprietary: &Output) {
        self.x.copy_from_slice(&proprietary.x);
        self.x_hat.copy_from_slice(&proprietary.x_hat);
        self.y_hat.copy_from_slice(&proprietary.y_hat);
        self.r.fill(f32::NAN);
    }

    /// Forgets everything but the weights: a new run begins.
    pub(crate) fn reset(&mut self) {
        self.memory.clear();
        self.x.fill(0.0);
        self.x_hat.fill(0.0);
        self.y_hat.fill(0.0);
        self.r.fill(f32::NAN);
    }
}

struct Correction<'a> {
    phi: &'a Lstm,
    memory: &'a mut Memory,
    rows: &'a mut Rows,
    input: &'a [f32],
}

impl Kernel for Correction<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self, a: A) {
        self.phi.step(a, self.memory, self.input, false, None, self.rows);
    }
}
