//! What the clients of a study tell each other through the server: who influences whom, and in tier
//! 2 what of each step the others explain.

use super::federation::Client;
use super::rows::Rows;
use super::{DetectionError, Setup};
use crate::evidence::influence::line::{Line, teach, tell};
use crate::evidence::influence::messenger::{Messenger, Trace, Tracer};
use crate::evidence::influence::{InfluenceGraph, learn};
use crate::evidence::informed::{Answers, Informed};
use crate::federation::Hooks;
use crate::link::Sender;
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

/// Learns who influences whom and, in tier 2, lets every client know what the others explain.
pub(super) fn confer(
    rows: &Rows,
    clients: &mut [Client],
    fit: usize,
    watched_from: usize,
    setup: &Setup,
    seed: u64,
) -> Result<InfluenceGraph, DetectionError> {
    let privacy = PrivacySettings::default();
    let hooks =
        Hooks { privacy: &privacy, rule: SigmaRule::Analytic, provenance: Provenance::Seeded };
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
        fit_heard.push(teach(line, &traces.fit)?);
        held_out.push(teach(line, &traces.calibration)?);
    }
    let names: Vec<String> = rows.layout.clients.iter().map(|c| c.name.clone()).collect();
    let learned = learn::learn(&names, rows.layout.period_s, &fit_heard, &held_out);
    let Some(foreteller) = learned.foreteller.filter(|_| setup.tier == Tier::States) else {
        return Ok(learned.graph);
    };
    let mut watched = Vec::new();
    for (line, traces) in lines.iter_mut().zip(&traces) {
        watched.push(tell(line, &traces.watched)?);
    }
    let fit_answers = Answers::gather(&foreteller, &fit_heard, &mut lines)?;
    let calibration_answers = Answers::gather(&foreteller, &held_out, &mut lines)?;
    let watched_answers = Answers::gather(&foreteller, &watched, &mut lines)?;
    for (m, client) in clients.iter_mut().enumerate() {
        if foreteller.parents(m).next().is_none() {
            continue;
        }
        let (mut informed, symbols) = Informed::fit(
            lines[m].states(),
            &setup.site.grading,
            (&traces[m].fit, &fit_answers[m]),
            (&traces[m].calibration, &calibration_answers[m]),
        );
        let mut noise = rng::stream(rng::child(seed, m as u64), PAIRS);
        client.enrolment = client.enrolment.clone().with_pairs(
            &client.calibration,
            &symbols,
            &setup.site,
            &setup.rules.hypotheses,
            &mut noise,
        );
        client.beside = informed.symbols(&traces[m].watched, &watched_answers[m]);
    }
    Ok(learned.graph)
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
