//! The baseline "without proprietary model": an end-to-end LSTM from a client's past to its next
//! row, `ŷ_t = FC(LSTM(y_{t−1}, …))`, with no filter, no state and no covariance.
//!
//! A missing input is replaced by the network's own prediction of it, as a filter without a
//! measurement only predicts.

use ndarray::{Array2, ArrayView2};

use super::trainer::Trainer;
use super::window::Batch;
use super::{Job, OnProgress, TrainError, Trained, WEIGHTS, graph};
use crate::base::rng;
use crate::nn::network::LstmNetwork;
use crate::nn::weights::LstmFc;

/// Makes the predictor of one client, as wide as its transition; `job.kind` plays no role.
pub(crate) fn predictor(job: &Job, on_progress: OnProgress) -> Result<Trained<LstmFc>, TrainError> {
    job.check()?;
    let sensors = job.fit.ncols();
    let mut rng = rng::stream(job.seed, WEIGHTS);
    let weights = LstmFc::init(sensors, job.settings.transition_width, sensors, 1.0, &mut rng);
    let failed = |source| job.failed(source);
    let sizes = weights.sizes();
    let mut trainer = Trainer::adam(weights, job.settings.learning_rate).map_err(failed)?;
    let network = LstmNetwork::new(sizes, &trainer.builder()).map_err(failed)?;
    let step = |batch: &Batch| trainer.step(&graph::predictor_loss(&network, batch)?);
    let (course, samples) = job.optimise(step, &job.fit, on_progress)?;
    let weights = trainer.weights().map_err(failed)?;
    let held_out = residuals(&weights, &job.held_out).map_err(failed)?;
    let report = job.report(&held_out, course, samples);
    Ok(Trained { weights, report })
}

/// `y_t − ŷ_t` of a predictor run over consecutive rows; NaN where nothing was measured.
pub(crate) fn residuals(
    weights: &LstmFc,
    rows: &ArrayView2<f32>,
) -> candle_core::Result<Array2<f32>> {
    let network = LstmNetwork::running(weights)?;
    let mut residuals = Array2::from_elem(rows.raw_dim(), f32::NAN);
    let (steps, sensors) = rows.dim();
    let batch = Batch { steps, windows: 1, sensors, values: rows.iter().copied().collect() };
    for (t, predicted) in graph::predictions(&network, &batch)?.iter().enumerate() {
        for (d, y_hat) in predicted.flatten_all()?.to_vec1::<f32>()?.into_iter().enumerate() {
            let r = rows[[t, d]] - y_hat;
            residuals[[t, d]] = if r.is_finite() { r } else { f32::NAN };
        }
    }
    Ok(residuals)
}
