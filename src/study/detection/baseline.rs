//! The paper's other models on its own plant: pre-trained clients, predictors without a proprietary
//! model, the centralised oracle. No session can ask for them, so they are made and flagged here.

use super::figures::{Happened, Truth};
use super::flags::Flagged;
use super::{Models, PAPERS};
use crate::federation::variant::Variant;
use crate::nn::weights::ProprietaryWeights;
use crate::rng;
use crate::session::{PrivacySettings, TwinSource};
use crate::stream::twin::slices;
use crate::study::frame::StudyError;
use crate::study::lesson::{self, Plant};

/// Source of the seed of what is learned together: the engine's own, so that all models begin with
/// the same networks.
pub(in crate::study) const TOGETHER: u64 = 0x46;

/// A model on the filters of the paper's own session: its flags, made from its residuals on what
/// follows the fit slice, and what happened after calibration.
pub(crate) fn flagged(
    variant: Variant,
    seed: u64,
    models: &mut Models,
) -> Result<(Flagged, Truth), StudyError> {
    let session = PAPERS.session(seed)?;
    let clients = &models.of(&session)?.clients;
    let filters: Vec<ProprietaryWeights> = clients.iter().map(|c| c.sending.clone()).collect();
    let ground = Plant::Twin(PAPERS.clients).ground(seed, usize::MAX)?;
    let open = PrivacySettings::default();
    let fitted = variant.fit(
        &ground.sites(&filters, ground.fit.clone()),
        &session.model,
        lesson::hooks(&open),
        rng::child(seed, TOGETHER),
        &mut lesson::go_on,
    )?;
    let (from, steps) = (ground.fit.end, ground.steps());
    let rows: Vec<_> = (0..filters.len()).map(|m| ground.view(m, from..steps)).collect();
    let calibration = slices(&TwinSource::default()).calibration;
    let flagged = Flagged::new(&fitted.residuals(&rows)?, calibration.len());
    let truth = Truth {
        clients: filters.len(),
        steps: steps - calibration.end,
        period_s: ground.period_s,
        events: Happened::later(&ground.events, calibration.end),
    };
    Ok((flagged, truth))
}
