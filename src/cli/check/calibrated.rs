//! What the kept models of a session say about its calibration.

use std::io::Write;

use color_eyre::eyre::Result;

use super::{kept_run, wrapped};
use crate::engine::prepare;
use crate::engine::run::Run;
use crate::session::Session;
use crate::site::grader::SETTLING;
use crate::site::whitening::LAGS;

/// Prints the steps at the start of a run that are not judged, if the models are already made.
pub(super) fn print_not_judged(out: &mut impl Write, session: &Session, step_s: f64) -> Result<()> {
    let prepared = prepare::kept(session, &prepare::cache_file(session)).ok();
    let sites = prepared.iter().flat_map(|prepared| &prepared.clients);
    let sooner: Vec<(&str, usize)> = sites
        .map(|site| (&site.name[..], site.fit.grader.settling()))
        .filter(|(_, steps)| *steps < SETTLING)
        .collect();
    let seconds = |steps: usize| steps as f64 * step_s;
    let s = seconds(SETTLING);
    if sooner.is_empty() {
        writeln!(out, "not judged  the first {SETTLING} steps ({s} s) of every run")?;
        return Ok(());
    }
    writeln!(
        out,
        "not judged  the first {SETTLING} steps ({s} s) of every run; fewer for these clients:"
    )?;
    for (client, steps) in sooner {
        writeln!(out, "            {client:<10} the first {steps} steps ({} s)", seconds(steps))?;
    }
    Ok(())
}

/// Clients that are judged by more of their past than others, if the models are already made.
pub(super) fn print_memory(out: &mut impl Write, session: &Session, step_s: f64) -> Result<()> {
    let prepared = prepare::kept(session, &prepare::cache_file(session)).ok();
    for site in prepared.iter().flat_map(|prepared| &prepared.clients) {
        let lags = site.fit.grader.lags();
        if lags > LAGS {
            let (name, s) = (&site.name, lags as f64 * step_s);
            writeln!(
                out,
                "{:<12}{name:<10} the last {lags} steps ({s} s) instead of {LAGS}: they predict it better",
                "looks back"
            )?;
        }
    }
    Ok(())
}

/// Clients whose calibration makes their alarms too slow, and stretches of it that look abnormal; known
/// once models were made. Whoever checks a session has its data: ε hides nothing from them.
pub(super) fn print_insensitive(
    out: &mut impl Write,
    session: &Session,
    step_s: f64,
) -> Result<()> {
    let Some((prepared, run)) = kept_run(session)? else {
        // The models of a live source are those of its last start.
        if session.live().is_none() {
            writeln!(out, "sensitivity not known until models are made (`headwater train`)")?;
        }
        return Ok(());
    };
    for (client, what) in run.insensitive() {
        writeln!(out, "{:<12}{:<10} {what}", "sensitivity", prepared.clients[client].name)?;
    }
    let mut head = "calibration";
    for (client, what) in prepared.clients.iter().zip(Run::abnormal_of(session, &prepared, step_s))
    {
        for line in what.iter().flat_map(|what| wrapped(what)) {
            writeln!(out, "{head:<12}{:<10} {line}", client.name)?;
            head = "";
        }
    }
    Ok(())
}
