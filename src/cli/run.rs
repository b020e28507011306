//! `headwater run`: a session without a screen, one fact a line, a summary last.

mod bar;
mod consoles;
mod of_site;
mod recorded;
mod reread;
mod service;
mod text;

pub(super) use text::print_head;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{Args, ValueEnum};
use color_eyre::eyre::{Result, bail, eyre};

pub(super) use self::bar::Bar;
use self::consoles::{Consoles, Joining};
use self::service::Service;
use super::{SessionArgs, interrupt};
use crate::base::notice::print_notice;
use crate::engine;
use crate::engine::handle::{EngineEvent, Options, RecordState, RecordTo, SendFacts};
use crate::engine::pace::Speed;
use crate::engine::progress::Training;
use crate::engine::run::Ending;
use crate::fact::Fact;
use crate::session::{Mark, Mode};

/// By which method, how far and how fast data is played.
#[derive(Debug, Args)]
pub(super) struct PlayArgs {
    /// Which method decides; the session's own when absent
    #[arg(long)]
    pub(super) mode: Option<Method>,
    /// Where to stop: a time of the data's clock, or a distance from the start such as "+8h"
    #[arg(long, value_name = "T", value_parser = mark)]
    pub(super) until: Option<Mark>,
    /// Data seconds per second of the wall clock, or `max`
    #[arg(long, value_name = "max|N", default_value = "max")]
    pub(super) speed: Speed,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    play: PlayArgs,
    /// Write every release to a signed ledger; a ledger that is there is continued
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Let outputs of the session run the commands that it names
    #[arg(long)]
    allow_exec: bool,
    /// Store the run in this file while it happens
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Let consoles join over a socket at this path, which only this user may open
    /// (`headwater open --attach PATH`)
    #[arg(long, value_name = "PATH")]
    listen: Option<PathBuf>,
    /// Let the server decide again on the messages of a recording
    #[arg(long)]
    recompute: bool,
    /// One JSON object a line instead of words
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// All of a session in words, as fast as it goes.
    pub(super) fn plain(session: SessionArgs) -> Self {
        Self {
            session,
            play: PlayArgs { mode: None, until: None, speed: Speed::Max },
            ledger: None,
            allow_exec: false,
            record: None,
            listen: None,
            recompute: false,
            json: false,
        }
    }
}

/// The two methods, as they are typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Method {
    /// Graded symbols and a sequential decision at a chosen false-alarm rate
    Evidence,
    /// The published method: flags at a percentile and the look-up table
    Paper,
}

impl From<Method> for Mode {
    fn from(method: Method) -> Self {
        match method {
            Method::Evidence => Self::Evidence,
            Method::Paper => Self::Paper,
        }
    }
}

fn mark(text: &str) -> Result<Mark, String> {
    Mark::try_from(text.to_owned())
}

pub(super) fn run(out: &mut (impl Write + Send), args: &RunArgs) -> Result<()> {
    if let Some(file) = args.session.recording() {
        return recorded::run(out, args, file);
    }
    if args.recompute {
        bail!("--recompute needs a recording; {} is a session", args.session.session);
    }
    let session = args.session.open()?;
    // A run that is over by itself is ended by a hang-up, as any command is.
    let rereads = session.live().is_some() || args.listen.is_some();
    let watch = if rereads { interrupt::watch_without_hang_up } else { interrupt::watch };
    let interrupt = watch("the summary lists what was done");
    let options = Options {
        mode: args.play.mode.map(Mode::from),
        until: args.play.until,
        ledger: args.ledger.clone(),
        record: args.record.clone().map(RecordTo::File),
        interrupt: Some(Arc::clone(&interrupt)),
        shown: args.listen.is_some(),
        outputs: if args.allow_exec { SendFacts::Everywhere } else { SendFacts::ExceptCommands },
        ..Options::facts(args.play.speed)
    };
    service::log();
    let mut service = Service::of_environment();
    let bar = Bar::new();
    let mut printer = Printer { out, json: args.json, bar: &bar };
    let joining = args.listen.as_deref().map(Joining::bind).transpose()?;
    let mut engine = engine::spawn(&session, options)?;
    let consoles = Consoles::serve(joining, &session, &engine)?;
    if rereads {
        let tell = |said: &str| print_notice(said);
        reread::on_hang_up(&args.session, &session, consoles.desk(), tell)?;
    }
    let (mut failed, mut unrecorded) = (None, None);
    while let Some(event) = engine.events.blocking_recv() {
        service.lives();
        if let Some(refused) = consoles.send(&event) {
            printer.notice(&format!("not set: {refused}"));
        }
        match event {
            EngineEvent::Notice(notice) => printer.notice(&notice),
            // That there is no recording is reported at once.
            EngineEvent::Recording(RecordState::Failed(why)) => {
                printer.notice(&format!("the run goes on without a recording: {why}"));
                unrecorded = Some(why);
            }
            EngineEvent::Training(training) => printer.train(&training)?,
            EngineEvent::Opened(opened) => printer.print(&opened.calibrated)?,
            EngineEvent::News(update) => {
                if let Some(time) = update.news.times.last() {
                    bar.at(*time);
                }
                printer.print(&update.news.facts)?;
            }
            EngineEvent::Ended(ending) => {
                printer.sum_up(&ending)?;
                failed = Some(Ok(()));
            }
            // Data that broke off is an error, after everything before it was reported.
            EngineEvent::Failed(error) => failed = Some(Err(eyre!(error))),
            EngineEvent::Recording(RecordState::On(_))
            | EngineEvent::Playing
            | EngineEvent::Ordered(_)
            | EngineEvent::Tried(_)
            | EngineEvent::Branched(_)
            | EngineEvent::Stopped => {}
        }
    }
    bar.clear();
    service.stops();
    consoles.finish();
    let ended = failed.unwrap_or_else(|| Err(eyre!("the engine ended unexpectedly, see above")));
    match (interrupt.load(Ordering::Relaxed), session.live()) {
        // A live source never ends by itself, so stopping it is no failure.
        (true, Some(_)) => {
            if let Err(why) = ended {
                printer.notice(&why.to_string());
            }
        }
        (is_interrupted, _) => {
            ended?;
            if is_interrupted {
                bail!("interrupted: the summary is of what was done until then");
            }
        }
    }
    unrecorded.map_or(Ok(()), |why| Err(eyre!("the run was not recorded to its end: {why}")))
}

/// Where facts go.
pub(super) struct Printer<'a, W> {
    pub(super) out: &'a mut W,
    pub(super) json: bool,
    pub(super) bar: &'a Bar,
}

impl<W: Write> Printer<'_, W> {
    /// A word beside the facts.
    pub(super) fn notice(&self, notice: &str) {
        self.bar.aside(|| print_notice(notice));
    }

    /// How far the models are, on the bar; a round of the federation is a fact.
    fn train(&mut self, training: &Training) -> Result<()> {
        match training.steps {
            Some((done, all)) => self.bar.show(&format!("{}: {done} of {all}", training.doing)),
            None => self.bar.show(&training.doing),
        }
        training.fact.as_deref().map_or(Ok(()), |fact| self.print(std::slice::from_ref(fact)))
    }

    /// Writes facts and flushes at once: a reader sees them when they happen.
    pub(super) fn print(&mut self, facts: &[Fact]) -> Result<()> {
        if facts.is_empty() {
            return Ok(());
        }
        self.bar.aside(|| {
            for fact in facts {
                if self.json {
                    writeln!(self.out, "{}", fact.to_line())?;
                } else {
                    text::print(self.out, fact)?;
                }
            }
            self.out.flush()
        })?;
        Ok(())
    }

    pub(super) fn sum_up(&mut self, ending: &Ending) -> Result<()> {
        if self.json {
            return self.print(&[Fact::Summary(Box::new(ending.summary.clone()))]);
        }
        let judgement = ending.judgement();
        self.bar.aside(|| text::print_end(self.out, &ending.summary, judgement.as_ref()))?;
        self.out.flush()?;
        Ok(())
    }
}
