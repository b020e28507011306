//! The file of a preparation: what stands beside the tensors, and how models are read back.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::fingerprint::json;
use super::{Influences, Prepared, PreparedSite, TrainingSpent};
use crate::engine::error::PrepareError;
use crate::federation::History;
use crate::nn::checkpoint::{Checkpoint, CheckpointError, ClientModels};
use crate::privacy::FilterMemory;
use crate::server::StateCorrelation;
use crate::session::Session;
use crate::site::material::{LeftOut, SensorView};
use crate::site::nominal::StoredNominal;
use crate::site::prepared::SiteFit;
use crate::stream::UnusedRows;

/// The header of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Calibration {
    pub(super) every: u32,
    /// Training was asked to stop before its end.
    pub(super) stopped: bool,
    pub(super) history: Option<History>,
    pub(super) spent: TrainingSpent,
    pub(super) influences: Influences,
    pub(super) together: Option<StateCorrelation>,
    pub(super) unused: UnusedRows,
    pub(super) clients: Vec<ClientCalibration>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientCalibration {
    pub(super) used: Vec<usize>,
    pub(super) names: Vec<String>,
    pub(super) left_out: Vec<(String, LeftOut)>,
    pub(super) c: StoredNominal,
    pub(super) a: StoredNominal,
    pub(super) memory: Option<FilterMemory>,
}

/// Keeps what the oracle says about how states move together, beside the models it was made for;
/// for this run only where those could not be kept.
pub(crate) fn keep_oracle(
    prepared: &mut Prepared,
    correlation: Vec<f32>,
) -> Result<(), PrepareError> {
    let together = prepared.together.clone().and_then(|known| known.with_oracle(correlation));
    let Some(together) = together else { return Ok(()) };
    if prepared.not_kept.is_some() {
        prepared.together = Some(together);
        return Ok(());
    }
    let mut checkpoint = Checkpoint::load(&prepared.file, None)?;
    let mut kept: Calibration = header(&checkpoint, &prepared.file)?;
    kept.together = Some(together.clone());
    checkpoint.thresholds = json("the calibration", &kept)?;
    checkpoint.save(&prepared.file)?;
    prepared.together = Some(together);
    Ok(())
}

/// An error about the content of a file of models.
pub(super) fn unusable(file: &Path, what: String) -> CheckpointError {
    CheckpointError::Content { path: file.to_path_buf(), what }
}

/// The header of a checkpoint that was read from `file`.
pub(super) fn header<T: for<'a> Deserialize<'a>>(
    checkpoint: &Checkpoint,
    file: &Path,
) -> Result<T, CheckpointError> {
    serde_json::from_str(&checkpoint.thresholds)
        .map_err(|why| unusable(file, format!("the calibration cannot be read: {why}")))
}

/// The models of a checkpoint that was read from `file`; an error says what it lacks.
pub(super) fn restore(
    checkpoint: Checkpoint,
    file: &Path,
    session: &Session,
) -> Result<Prepared, CheckpointError> {
    let calibration: Calibration = header(&checkpoint, file)?;
    let fits = SiteFit::from_bytes(&checkpoint.fits)
        .map_err(|why| unusable(file, format!("the fits of the sites cannot be read: {why}")))?;
    let (models, calibrated) = (checkpoint.clients.len(), calibration.clients.len());
    if models != calibrated || models != fits.len() {
        let what = format!(
            "{models} clients have models, but {calibrated} are calibrated and {} fitted",
            fits.len()
        );
        return Err(unusable(file, what));
    }
    let clients = checkpoint
        .clients
        .into_iter()
        .zip(calibration.clients)
        .zip(fits)
        .map(|((models, calibration), fit)| site(models, calibration, fit, file))
        .collect::<Result<Vec<_>, CheckpointError>>()?;
    Ok(Prepared {
        every: calibration.every,
        clients,
        server: checkpoint
            .server
            .ok_or_else(|| unusable(file, "the server has no model".into()))?,
        history: calibration.history,
        fresh: false,
        stopped: calibration.stopped,
        spent: calibration.spent,
        influences: calibration.influences.with_declared(&session.edges),
        together: calibration.together.filter(StateCorrelation::is_whole),
        unused: calibration.unused,
        file: file.to_path_buf(),
        not_kept: None,
    })
}

/// The models of one client as they are used; an error says what they lack.
pub(super) fn site(
    models: ClientModels,
    calibration: ClientCalibration,
    fit: SiteFit,
    file: &Path,
) -> Result<PreparedSite, CheckpointError> {
    let lacks = |what: &str| unusable(file, format!("{} has no {what}", models.name));
    if !fit.is_whole(models.mean.len()) {
        return Err(lacks("fit that belongs to its sensors"));
    }
    Ok(PreparedSite {
        view: SensorView {
            used: calibration.used,
            names: calibration.names,
            mean: models.mean,
            std: models.std,
        },
        left_out: calibration
            .left_out
            .into_iter()
            .filter(|(sensor, _)| !fit.seen.watches(sensor))
            .collect(),
        sending: models.sending.unwrap_or_else(|| models.proprietary.clone()),
        watching: models.proprietary,
        phi: models.augment.ok_or_else(|| lacks("network φ"))?,
        nominal_c: calibration.c.restore().ok_or_else(|| lacks("distribution of r_c"))?,
        nominal_a: calibration.a.restore().ok_or_else(|| lacks("distribution of r_a"))?,
        memory: calibration.memory,
        name: models.name,
        fit,
    })
}
