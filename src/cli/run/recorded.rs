//! `headwater run RECORDING`: the stored facts, or the same from the stored messages.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use color_eyre::eyre::{Result, bail, eyre};

use super::{Printer, RunArgs, of_site, text};
use crate::base::notice::print_notice;
use crate::cli::run::bar::Bar;
use crate::engine;
use crate::engine::handle::{EngineEvent, Options};
use crate::engine::pace::Speed;
use crate::engine::recorded::Recorded;
use crate::fact::Fact;
use crate::record::Recording;

pub(super) fn run(out: &mut (impl Write + Send), args: &RunArgs, file: &Path) -> Result<()> {
    let asked = [
        ("--mode", args.play.mode.is_some()),
        ("--until", args.play.until.is_some()),
        ("--ledger", args.ledger.is_some()),
        ("--record", args.record.is_some()),
        ("--seed", args.session.seed.is_some()),
        ("--data", args.session.data.is_some()),
    ];
    if let Some((option, _)) = asked.iter().find(|(_, asked)| *asked) {
        bail!("{option} is for sessions; {} is a recording", file.display());
    }
    let recording = Recording::open(file)?;
    if recording.ended()?.is_none() {
        let file = file.display();
        print_notice(format!("{file} was not closed: its run was killed, or is still going on"));
    }
    if let Err(only) = recording.needs_server() {
        return of_site::print(out, args, &recording, &only);
    }
    let missing = recording.missing()?;
    if args.recompute && recording.kept_from()? > 1 {
        bail!(
            "{} had become too large, and these were removed: {}; without its first messages the server \
             cannot decide the same again: without --recompute all facts are there",
            file.display(),
            missing.join("; ")
        );
    }
    if !args.recompute {
        return print(out, args, &recording);
    }
    if recording.has_begun()? {
        return recompute(out, args, &recording);
    }
    let nothing = "its run ended before it began: there is nothing to decide again";
    print_notice(format!("{}: {nothing}", file.display()));
    print(out, args, &recording)
}

/// Prints the recorded facts.
fn print(out: &mut impl Write, args: &RunArgs, recording: &Recording) -> Result<()> {
    for stored in recording.facts()? {
        if args.json {
            writeln!(out, "{}", stored.line)?;
            continue;
        }
        let fact = Fact::from_line(&stored.line)
            .map_err(|why| recording.damaged(format!("a fact: {why}")))?;
        match fact {
            Fact::Summary(summary) => text::print_end(out, &summary, None)?,
            fact => text::print(out, &fact)?,
        }
    }
    out.flush()?;
    Ok(())
}

/// Lets the server decide again on the recorded messages.
fn recompute(out: &mut impl Write, args: &RunArgs, recording: &Recording) -> Result<()> {
    let recorded = Recorded::read(recording)?;
    let summary = recorded.summary.clone();
    // Training is not repeated, and what a site gave away is the site's to say: both are printed as
    // they were stored, to the last digit.
    let (training, ledgers) = stored_lines(recording)?;
    let bar = Bar::new();
    let mut printer = Printer { out, json: args.json, bar: &bar };
    let mut engine = engine::spawn_recorded(recorded, Options::facts(Speed::Max))?;
    if args.json {
        for line in training {
            writeln!(printer.out, "{line}")?;
        }
    }
    let mut done = Err(eyre!("the engine ended unexpectedly, see above"));
    while let Some(event) = engine.events.blocking_recv() {
        match event {
            EngineEvent::Notice(notice) => printer.notice(&notice),
            EngineEvent::Training(_) if args.json => {}
            EngineEvent::Training(training) => printer.train(&training)?,
            EngineEvent::Opened(opened) => printer.print(&opened.calibrated)?,
            EngineEvent::News(update) => {
                for fact in &update.news.facts {
                    match fact {
                        Fact::Ledger(ledger) if args.json => {
                            let line = ledgers.get(&ledger.client).cloned();
                            let line = line.unwrap_or_else(|| fact.to_line());
                            writeln!(printer.out, "{line}")?;
                        }
                        _ => printer.print(std::slice::from_ref(fact))?,
                    }
                }
            }
            EngineEvent::Ended(mut ending) => {
                if let Some(summary) = &summary {
                    ending.summary.ledger.clone_from(&summary.ledger);
                    printer.sum_up(&ending)?;
                }
                done = Ok(());
            }
            EngineEvent::Failed(error) => done = Err(eyre!(error)),
            EngineEvent::Recording(_)
            | EngineEvent::Playing
            | EngineEvent::Ordered(_)
            | EngineEvent::Tried(_)
            | EngineEvent::Branched(_)
            | EngineEvent::Stopped => {}
        }
    }
    bar.clear();
    done
}

/// The lines about training, and those about what each client has given away.
fn stored_lines(recording: &Recording) -> Result<(Vec<String>, BTreeMap<String, String>)> {
    let (mut training, mut ledgers) = (Vec::new(), BTreeMap::new());
    for stored in recording.facts()? {
        match Fact::from_line(&stored.line) {
            Ok(Fact::Training(_)) => training.push(stored.line),
            Ok(Fact::Ledger(ledger)) => _ = ledgers.insert(ledger.client, stored.line),
            _ => {}
        }
    }
    Ok((training, ledgers))
}
