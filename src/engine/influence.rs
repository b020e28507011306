//! Who influences whom in a session: learned once, with its models, from what sites send about their
//! states.

use serde::{Deserialize, Serialize};

use super::error::PrepareError;
use crate::base::rng;
use crate::federation::FederationError;
use crate::privacy::{Counted, Hooks};
use crate::server::influence::foretell::StatePredictor;
use crate::server::influence::heard::Heard;
use crate::server::influence::{InfluenceGraph, learn};
use crate::server::predictions::Predictions;
use crate::session::{Session, Tier};
use crate::site::INFLUENCE;
use crate::site::informed::{Answers, InformedFit};
use crate::site::line::Line;
use crate::site::messenger::{Messenger, Trace};
use crate::wire::{Sender, ToSite, Wire};

/// The server's knowledge of influence, kept with the models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Influences {
    /// Who influences whom, learned and declared.
    pub(crate) graph: InfluenceGraph,
    /// The predictor; none where nothing could be learned.
    pub(super) foreteller: Option<StatePredictor>,
    /// What was released about each client while influence was learned: part of what its training
    /// released.
    pub(crate) released: Vec<Vec<Counted>>,
}

/// The part of it that the server needs to decide again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OfServer {
    pub(crate) graph: InfluenceGraph,
    pub(super) foreteller: Option<StatePredictor>,
}

impl Influences {
    /// The part that a recording keeps.
    pub(super) fn of_server(&self) -> OfServer {
        OfServer { graph: self.graph.clone(), foreteller: self.foreteller.clone() }
    }

    /// The same with influences that a session declares: nothing is learned anew for them.
    pub(super) fn with_declared(self, edges: &[(String, String)]) -> Self {
        Self { graph: self.graph.with_declared(edges), ..self }
    }
}

/// The part of tier 2 that sites keep.
#[derive(Debug, Default)]
pub(super) struct SiteHalves {
    /// How each site summarises its state; empty where nothing could be learned.
    pub(crate) summaries: Vec<Messenger>,
    /// What each site takes out of its residual, where the session asks for tier 2.
    pub(crate) informed: Vec<Option<(usize, InformedFit)>>,
}

/// What a site brings: what its models make of its fit and calibration range, and the right to send
/// its states, where it has it.
pub(super) struct SiteTraces<'a> {
    pub(crate) traces: &'a [Trace; 2],
    pub(crate) sender: Option<Sender>,
}

/// Learns from the fit range, judged by the calibration range, over `wire`.
pub(super) fn learn(
    session: &Session,
    names: &[String],
    period_s: f64,
    sites: &[SiteTraces<'_>],
    wire: &mut dyn Wire,
) -> Result<(Influences, SiteHalves), PrepareError> {
    let unlearned = |why: &str| {
        let graph = InfluenceGraph::unlearned(names, period_s, why);
        let influences = Influences { graph, foreteller: None, released: Vec::new() };
        Ok((influences, SiteHalves::default()))
    };
    if let Some(why) = learn::refusal(names.len()) {
        return unlearned(&why);
    }
    let hooks = Hooks::of(session);
    let seed = rng::child(session.seed, INFLUENCE);
    let mut summaries = Vec::new();
    let mut lines = Vec::new();
    for site in sites {
        let Some(sender) = site.sender else {
            return unlearned("the states of a client's model never leave it");
        };
        let summary = Messenger::fit(&site.traces[0]);
        let line = Line::new(sender, summary.clone(), &hooks, seed);
        lines.push(line.map_err(FederationError::from)?);
        summaries.push(summary);
    }
    let mut heard = [Vec::new(), Vec::new()];
    for (m, (line, site)) in lines.iter_mut().zip(sites).enumerate() {
        for (heard, trace) in heard.iter_mut().zip(site.traces) {
            heard.push(teach(m, line, trace, wire)?);
        }
    }
    let [fit, held_out] = heard;
    let learned = learn::learn(names, period_s, &fit, &held_out);
    let mut released: Vec<Vec<Counted>> = lines.iter().map(Line::counted).collect();
    let mut informed = vec![None; sites.len()];
    if let (Tier::States, Some(foreteller)) = (session.thresholds.tier, &learned.foreteller) {
        let predictions = Predictions::new(foreteller, &hooks, seed);
        let mut predictions = predictions.map_err(FederationError::from)?;
        let of_fit = answers(&mut predictions, &fit, wire)?;
        let of_calibration = answers(&mut predictions, &held_out, wire)?;
        for (m, site) in sites.iter().enumerate() {
            released[m].push(predictions.counted(m));
            let Some(explainer) = predictions.explainer(m) else { continue };
            let [trace, calibration] = site.traces;
            let (of_fit, of_calibration) = ((trace, &of_fit[m]), (calibration, &of_calibration[m]));
            let states = lines[m].states();
            informed[m] = Some((explainer, InformedFit::new(states, of_fit, of_calibration)));
        }
    }
    let influences = Influences { graph: learned.graph, foreteller: learned.foreteller, released };
    Ok((influences, SiteHalves { summaries, informed }))
}

/// Lets a client send the server a whole stretch.
fn teach(
    client: usize,
    line: &mut Line,
    trace: &Trace,
    wire: &mut dyn Wire,
) -> Result<Heard, FederationError> {
    let mut heard = Heard::new(line.states());
    for message in line.teach_stretch(trace) {
        wire.send(message?)?;
    }
    heard.receive(client, trace.steps(), std::iter::from_fn(|| wire.receive()));
    Ok(heard)
}

/// What the server predicts each client from the summaries of all over a stretch.
fn answers(
    predictions: &mut Predictions,
    heard: &[Heard],
    wire: &mut dyn Wire,
) -> Result<Vec<Answers>, FederationError> {
    let steps = heard.iter().map(Heard::steps).min().unwrap_or(0);
    let mut answers = vec![Answers::none(steps); heard.len()];
    let mut sent = Ok(());
    foretell(predictions, heard, &mut |message| {
        if sent.is_ok() {
            sent = wire.send_to_site(message);
        }
        while let Some(message) = wire.receive_at_site() {
            if let Some(answers) = answers.get_mut(message.client()) {
                answers.hear(&message);
            }
        }
    });
    sent?;
    Ok(answers)
}

/// Sends what the server predicts each client from the summaries of all over a stretch.
fn foretell(predictions: &mut Predictions, heard: &[Heard], send: &mut dyn FnMut(ToSite)) {
    let steps = heard.iter().map(Heard::steps).min().unwrap_or(0);
    predictions.reset();
    for t in 0..steps {
        predictions.predict(t as u64, send);
        for (m, heard) in heard.iter().enumerate() {
            predictions.hear_again(m, heard, t);
        }
    }
}

/// The predictions for one client over both stretches (tier 2), and the client whose state explains it best.
pub(crate) struct ClientPredictions {
    pub(crate) explainer: Option<usize>,
    pub(crate) stretches: [Vec<ToSite>; 2],
}

/// The predictions as messages to sites in processes of their own. None without tier 2.
pub(crate) fn foretold(
    session: &Session,
    influences: &Influences,
    heard: Option<&[Vec<Heard>; 2]>,
) -> Result<Option<Vec<ClientPredictions>>, PrepareError> {
    let (Tier::States, Some(foreteller), Some(heard)) =
        (session.thresholds.tier, &influences.foreteller, heard)
    else {
        return Ok(None);
    };
    let seed = rng::child(session.seed, INFLUENCE);
    let predictions = Predictions::new(foreteller, &Hooks::of(session), seed);
    let mut predictions = predictions.map_err(FederationError::from)?;
    let of = |explainer| ClientPredictions { explainer, stretches: [Vec::new(), Vec::new()] };
    let mut all: Vec<ClientPredictions> =
        (0..foreteller.clients()).map(|m| of(predictions.explainer(m))).collect();
    for (stretch, heard) in heard.iter().enumerate() {
        foretell(&mut predictions, heard, &mut |message| {
            if let Some(client) = all.get_mut(message.client()) {
                client.stretches[stretch].push(message);
            }
        });
    }
    Ok(Some(all))
}
