//! What the clients of a study tell each other through the server: who influences whom, and in tier
//! 2 what of each step another explains.

use super::federation::Client;
use super::rows::Rows;
use super::{DetectionError, Liar, Setup};
use crate::evidence::influence::foretell::Foreteller;
use crate::evidence::influence::line::{Heard, Line, teach, tell};
use crate::evidence::influence::messenger::{Messenger, Trace, Tracer};
use crate::evidence::influence::{InfluenceGraph, learn};
use crate::evidence::informed::{Answers, Informed};
use crate::evidence::symbol::Symbol;
use crate::federation::Hooks;
use crate::link::{Sender, Tap};
use crate::privacy::{Provenance, SigmaRule};
use crate::rng;
use crate::session::{PrivacySettings, Tier};

/// Sources of randomness.
const LINE: u64 = 0x56;
const PAIRS: u64 = 0x57;

/// What a client's models say over the fit range, the calibration range and all that is watched.
struct Traces {
    fit: Trace,
    calibration: Trace,
    watched: Trace,
}

/// How clients explain each other while they are watched.
pub(super) struct Explaining {
    foreteller: Foreteller,
    lines: Vec<Line>,
    informed: Vec<Option<Informed>>,
    /// What every client's models say, and what the server hears of it when all tell the truth.
    traces: Vec<Trace>,
    heard: Vec<Heard>,
}

impl Explaining {
    /// What of each step of every client its explainer does not explain.
    pub fn beside(
        &mut self,
        liar: Option<Liar>,
    ) -> Result<Vec<Vec<Option<Symbol>>>, DetectionError> {
        let heard: Vec<Heard> = self
            .heard
            .iter()
            .enumerate()
            .map(|(m, truth)| liar.map_or_else(|| truth.clone(), |liar| liar.states(m, truth)))
            .collect();
        let answers = Answers::gather(&self.foreteller, &heard, &mut self.lines, &Tap::default())?;
        let clients = self.informed.iter_mut().zip(&self.traces).zip(&answers);
        let beside = clients.map(|((informed, trace), answers)| {
            informed.as_mut().map_or_else(Vec::new, |informed| informed.symbols(trace, answers))
        });
        Ok(beside.collect())
    }
}

/// Learns who influences whom and, in tier 2, lets every client know what its explainer explains.
pub(super) fn confer(
    rows: &Rows,
    clients: &mut [Client],
    fit: usize,
    watched_from: usize,
    setup: &Setup,
    seed: u64,
) -> Result<(InfluenceGraph, Option<Explaining>), DetectionError> {
    let privacy = PrivacySettings::default();
    let hooks =
        Hooks { privacy: &privacy, rule: SigmaRule::Analytic, provenance: Provenance::Seeded };
    let nobody = &Tap::default();
    let mut traces = Vec::new();
    let mut lines = Vec::new();
    for (m, client) in clients.iter_mut().enumerate() {
        let sender = Sender::new(m, client.sending.as_ref().unwrap_or(&client.watching))?;
        let spoken = trace(rows, m, client, fit, watched_from);
        let messenger = Messenger::fit(&spoken.fit);
        lines.push(Line::new(sender, messenger, &hooks, rng::child(seed, LINE))?);
        traces.push(spoken);
    }
    let mut fit_heard = Vec::new();
    let mut held_out = Vec::new();
    for (line, traces) in lines.iter_mut().zip(&traces) {
        fit_heard.push(teach(line, &traces.fit, nobody)?);
        held_out.push(teach(line, &traces.calibration, nobody)?);
    }
    let names: Vec<String> = rows.layout.clients.iter().map(|c| c.name.clone()).collect();
    let learned = learn::learn(&names, rows.layout.period_s, &fit_heard, &held_out);
    let Some(foreteller) = learned.foreteller.filter(|_| setup.tier == Tier::States) else {
        return Ok((learned.graph, None));
    };
    let mut heard = Vec::new();
    for (line, traces) in lines.iter_mut().zip(&traces) {
        heard.push(tell(line, &traces.watched, nobody)?);
    }
    let fit_answers = Answers::gather(&foreteller, &fit_heard, &mut lines, nobody)?;
    let calibration_answers = Answers::gather(&foreteller, &held_out, &mut lines, nobody)?;
    let mut informed = Vec::new();
    for (m, client) in clients.iter_mut().enumerate() {
        informed.push(foreteller.explainer(m).map(|explainer| {
            let (informed, symbols) = Informed::fit(
                lines[m].states(),
                &setup.site.grading,
                (&traces[m].fit, &fit_answers[m]),
                (&traces[m].calibration, &calibration_answers[m]),
            );
            client.enrolment = client.enrolment.clone().explained_by(
                explainer,
                [&client.calibration, &symbols],
                &setup.site,
                &setup.rules.hypotheses,
                &mut rng::stream(rng::child(seed, m as u64), PAIRS),
            );
            informed
        }));
    }
    let traces = traces.into_iter().map(|traces| traces.watched).collect();
    Ok((learned.graph, Some(Explaining { foreteller, lines, informed, traces, heard })))
}

fn trace(rows: &Rows, m: usize, client: &mut Client, fit: usize, watched_from: usize) -> Traces {
    let own = &rows.clients[m];
    let settling = client.site.settings().settling;
    let mut tracer = Tracer::new(
        &mut client.watching,
        client.sending.as_mut(),
        client.site.whitening(),
        settling,
    );
    let steps = rows.times.len();
    let mut of = |range: std::ops::Range<usize>| {
        tracer.trace(range.map(|t| (rows.starts[t], Some((own.row(t), &[][..])))))
    };
    Traces {
        fit: of(0..fit.min(steps)),
        calibration: of(fit.min(steps)..watched_from.min(steps)),
        watched: of(watched_from.min(steps)..steps),
    }
}
