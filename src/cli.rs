//! The commands: what a person types, what the program answers, which exit code it leaves.
//!
//! 0 is done, 1 a failure said in words, 2 wrong usage. Nothing else imports this module.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{ExitCode, Termination};

use clap::{Args, Parser, Subcommand};
use color_eyre::eyre::{Result, WrapErr};

use crate::bench;
use crate::console::{self, Training};
use crate::engine::prepare::{Stage, cache_file, prepare};
use crate::session::{SHIPPED, Session, Source, Span};
use crate::stream::{self, Part};
use crate::study::score;

mod check;
mod interrupt;
mod ledger;
mod make;
mod run;
mod sessions;
mod study;
mod train;

/// Find where trouble started in a plant, without any process giving up its data.
///
/// Without a command, the console opens on the built-in plant's day of twenty attacks: no data, no
/// network and no set-up are needed.
#[derive(Debug, Parser)]
#[command(name = "headwater", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Open the console on a session
    Open(SessionArgs),
    /// List the sessions that come with the program
    Sessions,
    /// Say whether a session can be used, and what it holds
    Check {
        #[command(flatten)]
        session: SessionArgs,
        /// Read all of its data, not only the beginning
        #[arg(long)]
        full: bool,
    },
    /// Write data of the built-in plants, with its ground truth
    #[command(subcommand)]
    Make(make::Make),
    /// Make the models of a session and keep them
    Train(train::TrainArgs),
    /// Measure speed and memory on this machine
    Bench {
        /// One JSON object instead of words
        #[arg(long)]
        json: bool,
    },
    /// Run a session without a screen: one fact a line, a summary last
    Run(run::RunArgs),
    /// Verify a ledger that `run --ledger` wrote, and say what was spent
    Ledger(ledger::LedgerArgs),
    /// Make a table or figure of the paper, with what comes out here beside it
    Study(study::StudyArgs),
    /// Measure a list of alarms against the truth
    Score(ScoreArgs),
}

/// Which session, and where its data stands.
#[derive(Debug, Args)]
struct SessionArgs {
    /// A session file, or the name of a shipped session (see `headwater sessions`)
    session: String,
    /// Folder that holds the session's data files
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Drives the built-in data and every drawn noise
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Debug, Args)]
struct ScoreArgs {
    /// What really happened: JSON as `make` writes it, or CSV with start, end, origin
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,
    /// What was said: the lines of `run --json`, or CSV with time, root
    #[arg(long, value_name = "FILE")]
    alarms: PathBuf,
    /// How long after the end of an event an alarm still belongs to it
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = span)]
    tail: Span,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn span(text: &str) -> Result<Span, String> {
    Span::try_from(text.to_owned())
}

impl SessionArgs {
    fn open(&self) -> Result<Session> {
        let mut session = Session::open(&self.session)?;
        if let Some(folder) = &self.data {
            session.set_data_folder(folder);
        }
        if let Some(seed) = self.seed {
            session.set_seed(seed);
        }
        Ok(session)
    }
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match execute(cli) {
        Ok(code) => code,
        // The reader of our output went away (`headwater sessions | head -1`): nothing to say.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            // A closed stderr leaves nobody to tell; the exit code still tells it.
            let _ = writeln!(io::stderr(), "headwater: {}", causes.join(": "));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &color_eyre::Report) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn execute(cli: Cli) -> Result<ExitCode> {
    let mut out = io::BufWriter::new(io::stdout());
    match cli.command {
        None => return watch(&Session::open(SHIPPED[0].name)?, out),
        Some(Command::Open(args)) => return watch(&args.open()?, out),
        Some(Command::Sessions) => sessions::list(&mut out)?,
        Some(Command::Check { session, full }) => check::print(&mut out, &session.open()?, full)?,
        Some(Command::Make(what)) => make::run(&mut out, &what)?,
        Some(Command::Train(args)) => train::run(&mut out, &args)?,
        Some(Command::Bench { json }) => {
            let figures = bench::measure()?;
            if json {
                writeln!(out, "{}", serde_json::to_string(&figures)?)?;
            } else {
                write!(out, "{figures}")?;
            }
        }
        Some(Command::Run(args)) => run::run(&mut out, &args)?,
        Some(Command::Ledger(args)) => ledger::run(&mut out, &args)?,
        Some(Command::Study(args)) => study::run(&mut out, &args)?,
        Some(Command::Score(args)) => {
            let report = score::run(&args.truth, &args.alarms, args.tail)?;
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&report)?)?;
            } else {
                write!(out, "{report}")?;
            }
        }
    }
    out.flush().wrap_err("writing to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// The console where there is a terminal, the plain facts where there is none.
fn watch(session: &Session, mut out: impl Write) -> Result<ExitCode> {
    if !console::is_possible() {
        check::print(&mut out, session, false)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    drop(out);
    let opened = session.clone();
    let ending = console::run(session, move |tell| {
        let mut told = |stage: Stage| {
            tell(training(&stage, &opened));
            ControlFlow::Continue(())
        };
        prepare(&opened, &cache_file(&opened), &mut told)?;
        Ok(stream::open(&opened, Part::Replay)?)
    })?;
    Ok(ending.report())
}

/// A stage of preparation in the words of the screen.
fn training(stage: &Stage, session: &Session) -> Training {
    let word = |doing: &str| Training { doing: doing.into(), steps: None, losses: Vec::new() };
    match stage {
        Stage::Reading => word("nominal data is being read"),
        Stage::Delivered => word("the clients' own models come with the program"),
        Stage::Calibrating => word("what is normal is being measured"),
        Stage::Proprietary(p) => Training {
            doing: format!("{} learns from its own nominal data", p.client),
            steps: Some((p.iteration, p.iterations)),
            losses: vec![(p.client.to_owned(), p.loss)],
        },
        Stage::Federation(p) => {
            let names = client_names(session, p.client_loss.len());
            let server = std::iter::once(("server".to_owned(), p.server_loss));
            let clients = names.into_iter().zip(p.client_loss.iter().copied());
            Training {
                doing: "clients and server learn from each other, in rounds".into(),
                steps: Some((p.round, p.rounds)),
                losses: server.chain(clients).collect(),
            }
        }
    }
}

fn client_names(session: &Session, count: usize) -> Vec<String> {
    let name = |m: usize| match (session.clients.get(m), &session.source) {
        (Some(client), _) => client.name.clone(),
        (None, Source::Twin(_)) => format!("C{}", m + 1),
        (None, _) => format!("P{}", m + 1),
    };
    (0..count).map(name).collect()
}
