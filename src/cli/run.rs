//! `headwater run`: a session without a screen, one fact a line, a summary last.

mod bar;
mod pace;
mod text;

use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{Args, ValueEnum};
use color_eyre::eyre::{Result, WrapErr as _};

use self::bar::Bar;
use self::pace::{Pace, Speed};
use super::{SessionArgs, interrupt, ledger};
use crate::engine::prepare::{self, Prepared, Stage};
use crate::engine::run::{self, Run};
use crate::fact::Fact;
use crate::session::{Mark, Mode, Session};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// Which method decides; the session's own when absent
    #[arg(long)]
    mode: Option<Method>,
    /// Where to stop: a time of the data's clock, or a distance from the start such as "+8h"
    #[arg(long, value_name = "T", value_parser = mark)]
    until: Option<Mark>,
    /// Data seconds per second of the wall clock, or `max`
    #[arg(long, value_name = "max|N", default_value = "max")]
    speed: Speed,
    /// Write every release to a hash-chained ledger; a ledger that is there is continued
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// One JSON object a line instead of words
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// All of a session in words, as fast as it goes.
    pub(super) fn plain(session: SessionArgs) -> Self {
        Self { session, mode: None, until: None, speed: Speed::Max, ledger: None, json: false }
    }
}

/// The two methods, as they are typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Method {
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
    let stop = interrupt::watch("the summary tells what was done");
    let session = args.session.open()?;
    let mode = args.mode.map_or(session.mode, Mode::from);
    let bar = Bar::new();
    let mut teller = Teller { out, json: args.json, bar: &bar };
    let prepared = prepared(&session, &mut teller, &stop)?;
    bar.say("calibrating");
    let mut run = Run::open(&session, &prepared, mode, args.until)?;
    let mut kept = Kept::open(args.ledger.as_deref(), &mut run)?;
    teller.tell(&run.calibrated())?;
    replay(&mut run, args.speed, &mut teller, &mut kept, &stop)?;
    bar.clear();
    Ok(())
}

/// Where the ledgers' lines go.
struct Kept(Option<(PathBuf, File)>);

impl Kept {
    fn open(file: Option<&Path>, run: &mut Run) -> Result<Self> {
        let Some(file) = file else { return Ok(Self(None)) };
        run.keep_ledger(&ledger::kept(file)?)?;
        let opened = File::options().append(true).create(true).open(file);
        Ok(Self(Some((file.to_owned(), opened.wrap_err_with(|| file.display().to_string())?))))
    }

    /// Stores what was released; nothing may be said about it before.
    fn store(&mut self, run: &mut Run) -> Result<()> {
        if let Self(Some((path, file))) = self {
            let lines = run.take_ledger_lines();
            file.write_all(lines.as_bytes()).wrap_err_with(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// Where facts go.
struct Teller<'a, W> {
    out: &'a mut W,
    json: bool,
    bar: &'a Bar,
}

impl<W: Write> Teller<'_, W> {
    /// Writes facts and hands them over at once: whoever reads along sees them when they happen.
    fn tell(&mut self, facts: &[Fact]) -> Result<()> {
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
}

fn prepared<W: Write + Send>(
    session: &Session,
    teller: &mut Teller<W>,
    stop: &AtomicBool,
) -> Result<Prepared> {
    let mut told = Ok(());
    let prepared = prepare::prepare(session, &prepare::cache_file(session), &mut |stage| {
        match stage {
            Stage::Reading => teller.bar.say("reading the nominal data"),
            Stage::Delivered => teller.bar.say("the models are delivered"),
            Stage::Calibrating => teller.bar.say("measuring nominal residuals"),
            Stage::Proprietary(at) => {
                teller.bar.say(&format!("{}: epoch {} of {}", at.client, at.epoch, at.epochs));
            }
            Stage::Federation(at) => {
                teller.bar.say(&format!("round {} of {}", at.round, at.rounds));
                if told.is_ok() {
                    told = teller.tell(&[run::training(&at)]);
                }
            }
        }
        if stop.load(Ordering::Relaxed) || told.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    told?;
    Ok(prepared)
}

fn replay<W: Write>(
    run: &mut Run,
    speed: Speed,
    teller: &mut Teller<W>,
    kept: &mut Kept,
    stop: &AtomicBool,
) -> Result<()> {
    let begun = Instant::now();
    let mut pace = Pace::new(speed);
    let mut facts = Vec::new();
    let mut ending = Ok(Some(()));
    while let Ok(Some(())) = ending
        && !stop.load(Ordering::Relaxed)
    {
        ending = run.step(&mut facts).map(|step| {
            step.map(|time| {
                teller.bar.at(time);
                pace.wait(time, stop);
            })
        });
        kept.store(run)?;
        teller.tell(&facts)?;
        facts.clear();
    }
    let last = run.end();
    kept.store(run)?;
    teller.tell(&last)?;
    let summary = run.summary(begun.elapsed());
    if teller.json {
        teller.tell(&[Fact::Summary(Box::new(summary))])?;
    } else {
        let judgement = run.judgement();
        teller.bar.aside(|| text::print_end(teller.out, &summary, judgement.as_ref()))?;
        teller.out.flush()?;
    }
    // Data that broke off is an error, after all that it gave has been told.
    ending?;
    Ok(())
}
