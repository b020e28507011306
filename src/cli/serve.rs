//! `headwater serve`: the server of a session whose sites are processes of their own.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use color_eyre::eyre::{Result, bail};

use super::run::{Bar, Method, Printer, mark};
use super::{SessionArgs, interrupt};
use crate::engine::pace::Speed;
use crate::engine::prepare::{self, Prepared, Stage};
use crate::remote::link::Broker;
use crate::remote::server::{Options, Served, pause};
use crate::session::{Mark, Mode, Session};

/// Where the broker is.
#[derive(Debug, Args)]
pub(super) struct BrokerArgs {
    /// The broker: mqtts://HOST[:PORT], or mqtt://HOST[:PORT] with --insecure
    #[arg(long, value_name = "URL")]
    broker: String,
    /// Folder with ca.crt, and NAME.crt and NAME.key of this site (the server's NAME is "server")
    #[arg(long, value_name = "DIR")]
    certs: Option<PathBuf>,
    /// Allow mqtt://: not encrypted, and anybody can publish as any site
    #[arg(long)]
    insecure: bool,
}

impl BrokerArgs {
    /// The broker; says so where nothing protects what is sent to it.
    pub(super) fn open(&self) -> Result<Broker> {
        let broker = Broker::parse(&self.broker, self.certs.as_deref(), self.insecure)?;
        if !broker.is_encrypted() {
            say("INSECURE: plain TCP, nobody's identity is checked; for tests on one machine only");
        }
        Ok(broker)
    }
}

/// A word beside the facts.
pub(super) fn say(what: &str) {
    // If stderr is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "headwater: {what}");
}

/// The models of a session: from the cache, or made now.
pub(super) fn models(session: &Session, stop: &AtomicBool) -> Result<Prepared> {
    let mut on_stage = |stage: Stage<'_>| {
        if let Stage::Notice(what) = stage {
            say(what);
        }
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let prepared = prepare::prepare(session, &prepare::cache_file(session), &mut on_stage)?;
    if stop.load(Ordering::Relaxed) {
        bail!("interrupted while the models were made");
    }
    Ok(prepared)
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    broker: BrokerArgs,
    /// Which method decides; the session's own when absent
    #[arg(long)]
    mode: Option<Method>,
    /// Where to stop: a time of the data's clock, or a distance from the start such as "+8h"
    #[arg(long, value_name = "T", value_parser = mark)]
    until: Option<Mark>,
    /// Data seconds per second of the wall clock, or `max`
    #[arg(long, value_name = "max|N", default_value = "max")]
    speed: Speed,
    /// One JSON object a line instead of words
    #[arg(long)]
    json: bool,
}

pub(super) fn run(out: &mut (impl Write + Send), args: &ServeArgs) -> Result<()> {
    let interrupt = interrupt::watch("sites keep what they released");
    let session = args.session.open()?;
    let mode = args.mode.map_or(session.mode, Mode::from);
    let broker = args.broker.open()?;
    let prepared = models(&session, &interrupt)?;
    let options = Options {
        session: &session,
        prepared: &prepared,
        mode,
        until: args.until,
        broker: &broker,
        interrupt: Arc::clone(&interrupt),
    };
    let names: Vec<&str> = prepared.clients.iter().map(|client| &*client.name).collect();
    say(&format!("waiting for {}", names.join(", ")));
    let mut served = Served::open(&options, Box::new(say))?;
    let bar = Bar::new();
    let mut printer = Printer { out, json: args.json, bar: &bar };
    printer.print(&served.run.calibrated())?;
    let (begin, mut due) = (Instant::now(), Instant::now());
    let mut facts = Vec::new();
    while let Some(time) = served.run.step(&mut facts)? {
        bar.at(time);
        printer.print(&facts)?;
        facts.clear();
        if let Speed::Times(times) = args.speed {
            due += pause(served.run.layout().period_s, times);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    bar.clear();
    if let Some(why) = served.take_failure() {
        printer.print(&facts)?;
        return Err(why.into());
    }
    facts.extend(served.run.end());
    printer.print(&facts)?;
    printer.sum_up(&served.run.ending(begin.elapsed()))?;
    served.stop();
    let counts = served.counts();
    say(&format!(
        "{} bytes from sites; {} duplicates, {} refused, {} asked for again",
        counts.bytes, counts.duplicates, counts.refused, counts.asked_again
    ));
    Ok(())
}
