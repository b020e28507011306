//! Who influences whom in a session: learned once, with its models, from its nominal rows.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use super::material::{ClientMaterial, Material};
use super::prepare::{PrepareError, hooks};
use super::run::evidence::recorded;
use super::vendor::ClientVendor;
use crate::evidence::influence::foretell::Foreteller;
use crate::evidence::influence::line::{Line, teach};
use crate::evidence::influence::messenger::{Messenger, Trace, Tracer};
use crate::evidence::influence::{InfluenceGraph, learn};
use crate::evidence::site::SiteSettings;
use crate::evidence::whitening::Whitening;
use crate::federation::FederationError;
use crate::link::{Sender, Tap};
use crate::model::kernel::WeightsError;
use crate::model::proprietary::VendorModel;
use crate::privacy::Counted;
use crate::rng;
use crate::session::Session;

/// Source of a session's seed.
const INFLUENCE: u64 = 0x49;

/// What is known of influence, kept with the models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Influences {
    /// Who influences whom, learned and declared.
    pub graph: InfluenceGraph,
    /// What foretells; none where nothing could be learned.
    pub(super) foreteller: Option<Foreteller>,
    /// Each client's half, where it spoke.
    pub(super) messengers: Vec<Messenger>,
    /// What was released about each client while influence was learned: part of what its training
    /// released.
    pub released: Vec<Vec<Counted>>,
}

impl Influences {
    /// The same with influences that a session declares: nothing is learned anew for them.
    pub(super) fn with_declared(self, edges: &[(String, String)]) -> Self {
        Self { graph: self.graph.with_declared(edges), ..self }
    }
}

/// Learns from the fit range, judged by the calibration range; `tap` hears what is told.
pub(super) fn learn(
    session: &Session,
    material: &Material,
    models: &[ClientVendor],
    tap: &Tap,
) -> Result<Influences, PrepareError> {
    let names: Vec<String> = material.clients.iter().map(|client| client.name.clone()).collect();
    let period_s = material.layout.period_s;
    let unlearned = |why: &str| Influences {
        graph: InfluenceGraph::unlearned(&names, period_s, why),
        foreteller: None,
        messengers: Vec::new(),
        released: Vec::new(),
    };
    if let Some(why) = learn::refusal(names.len()) {
        return Ok(unlearned(&why));
    }
    let traces = trace_all(material, models)?;
    let mut messengers = Vec::new();
    let mut lines = Vec::new();
    for (m, (models, [fit, _])) in models.iter().zip(&traces).enumerate() {
        let Ok(sender) = Sender::new(m, &VendorModel::new(models.federated())?) else {
            return Ok(unlearned("the states of a client's model never leave it"));
        };
        let messenger = Messenger::fit(fit);
        lines.push(line(session, sender, messenger.clone())?);
        messengers.push(messenger);
    }
    let (mut fit, mut held_out) = (Vec::new(), Vec::new());
    for (line, [of_fit, of_calibration]) in lines.iter_mut().zip(&traces) {
        fit.push(teach(line, of_fit, tap).map_err(FederationError::from)?);
        held_out.push(teach(line, of_calibration, tap).map_err(FederationError::from)?);
    }
    let learned = learn::learn(&names, period_s, &fit, &held_out);
    Ok(Influences {
        graph: learned.graph,
        foreteller: learned.foreteller,
        messengers,
        released: lines.iter().map(Line::counted).collect(),
    })
}

/// A client's line to the server, with the session's noise on it.
pub(super) fn line(
    session: &Session,
    sender: Sender,
    messenger: Messenger,
) -> Result<Line, FederationError> {
    let seed = rng::child(session.seed, INFLUENCE);
    Ok(Line::new(sender, messenger, &hooks(session), seed)?)
}

/// What every client's models say about its fit and calibration range, a thread each.
fn trace_all(
    material: &Material,
    models: &[ClientVendor],
) -> Result<Vec<[Trace; 2]>, WeightsError> {
    std::thread::scope(|scope| {
        let jobs: Vec<_> = material
            .clients
            .iter()
            .zip(models)
            .map(|(client, models)| scope.spawn(move || trace(client, models)))
            .collect();
        jobs.into_iter()
            .map(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn trace(client: &ClientMaterial, models: &ClientVendor) -> Result<[Trace; 2], WeightsError> {
    let mut watching = VendorModel::new(&models.watching)?;
    let mut sending = models.sending.as_ref().map(VendorModel::new).transpose()?;
    let settling = SiteSettings::default().settling;
    let (rows, inputs) = (client.fit.view(), client.fit_inputs.view());
    let whitening = Whitening::fit(&recorded(&mut watching, &rows, &inputs), settling);
    Ok(traced(&mut watching, sending.as_mut(), &whitening, settling, client))
}

/// What a client's models say about its fit and calibration range, one entry a row; a row without
/// any value stands between two runs.
pub(super) fn traced(
    watching: &mut VendorModel,
    mut sending: Option<&mut VendorModel>,
    whitening: &Whitening,
    settling: usize,
    client: &ClientMaterial,
) -> [Trace; 2] {
    let ranges = [
        (client.fit.view(), client.fit_inputs.view()),
        (client.calibration.view(), client.calibration_inputs.view()),
    ];
    ranges.map(|(rows, inputs)| {
        let cells = |row: ArrayView1<f32>| row.iter().copied().collect::<Vec<f32>>();
        let rows: Vec<Option<(Vec<f32>, Vec<f32>)>> = rows
            .outer_iter()
            .zip(inputs.outer_iter())
            .map(|(row, known)| is_measured(row.iter()).then(|| (cells(row), cells(known))))
            .collect();
        let mut tracer = Tracer::new(watching, sending.as_deref_mut(), whitening, settling);
        tracer.trace(rows.iter().map(|row| {
            let known = row.as_ref().map(|(row, known)| (&row[..], &known[..]));
            (row.is_none(), known)
        }))
    })
}

/// Whether a row has any value.
pub(super) fn is_measured<'a>(mut row: impl Iterator<Item = &'a f32>) -> bool {
    row.any(|v| !v.is_nan())
}
