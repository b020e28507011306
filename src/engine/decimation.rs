//! How many samples become one when a session leaves that to its data.
//!
//! A sequential decision adds up evidence, which is right only when steps say something new. How
//! bursty residuals are shows in the tail of a calibration; it is judged with the linear predictor,
//! which is made in a moment, since it hardly depends on the model once residuals are whitened.

use std::ops::ControlFlow;

use super::error::PrepareError;
use crate::evidence::cusum;
use crate::evidence::likelihood::Hypotheses;
use crate::evidence::symbol::Grading;
use crate::nn::train::proprietary;
use crate::session::{Decimation, ModelSettings, Proprietary, Session};
use crate::site::enrolment::plain_tail;
use crate::site::fit;
use crate::site::material::{ClientMaterial, Material};

/// Samples in a block mean: what the session says, or what its nominal data asks for.
///
/// Preparing a session goes through here and keeps the answer with its models; a run takes
/// [`Prepared::every`](super::prepare::Prepared::every).
pub(crate) fn every(session: &Session) -> Result<u32, PrepareError> {
    match session.sampling.decimate {
        Decimation::Every(every) => Ok(every),
        Decimation::Auto => cusum::choose_decimation(|every| slowest_tail(session, every)),
    }
}

/// The smallest ω of all clients with block means over `every` samples.
fn slowest_tail(session: &Session, every: u32) -> Result<f64, PrepareError> {
    let material = Material::read(session, every, &|_| None)?;
    material.clients.iter().try_fold(1.0, |slowest: f64, client| Ok(slowest.min(tail(client)?)))
}

fn tail(client: &ClientMaterial) -> Result<f64, PrepareError> {
    let settings = ModelSettings::default();
    let job = client.unjudged_job(Proprietary::Linear, &settings);
    let weights = proprietary(&job, &|_| ControlFlow::Continue(()))?.weights;
    let grading = Grading::five_levels();
    let symbols = fit::grader(client, &weights)?.symbols(&grading);
    Ok(plain_tail(&symbols, &grading, &Hypotheses::default()).omega)
}
