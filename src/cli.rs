//! The commands: what a person types, what the program answers, which exit code it leaves.
//!
//! 0 is done, 1 a failure said in words, 2 wrong usage. Nothing else imports this module.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Termination};

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use color_eyre::eyre::{Result, WrapErr, bail, eyre};

use crate::base::atomic_file;
use crate::base::notice::print_notice;
use crate::console::{self, Appearance, Goal, Subject, ThemeChoice};
use crate::nn::checkpoint::{CacheEnvironment, cache_folder};
use crate::record;
use crate::score;
use crate::session::{SHIPPED, Session, Span};

mod attach;
mod bench;
mod calibration;
mod certs;
mod check;
mod compare;
mod export;
mod init;
mod interrupt;
mod ledger;
mod make;
mod manual;
mod recordings;
mod run;
mod screen;
mod serve;
mod sessions;
mod site;
mod study;
mod train;

/// Find where trouble started in a plant, without any process giving up its data.
///
/// Without a command, the console opens on the built-in plant's day of twenty attacks: no data, no
/// network and no set-up are needed.
#[derive(Debug, Parser)]
#[command(
    name = "headwater",
    version,
    max_term_width = 100,
    after_long_help = manual::environment(),
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What the console looks like.
#[derive(Debug, Clone, Copy, Args)]
struct LookArgs {
    /// Colours; those that suit the terminal when absent
    #[arg(long, value_name = "NAME")]
    theme: Option<ThemeChoice>,
    /// Draw with letters of ASCII only
    #[arg(long)]
    ascii: bool,
    /// Leave the mouse to the terminal
    #[arg(long)]
    no_mouse: bool,
}

/// Which running service the console joins, if it does.
#[derive(Debug, Args)]
struct AttachArgs {
    /// Show the console of the service that listens at this path (`headwater run --listen PATH`)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["session", "speed", "mode", "at"])]
    attach: Option<PathBuf>,
    /// Only look on: this console orders nothing at the service
    #[arg(long, requires = "attach")]
    read_only: bool,
}

/// What the console stores.
#[derive(Debug, Clone, Copy, Args)]
struct KeepArgs {
    /// Do not record the run
    #[arg(long)]
    no_record: bool,
}

impl From<LookArgs> for Appearance {
    fn from(args: LookArgs) -> Self {
        let LookArgs { theme, ascii, no_mouse } = args;
        Self { theme, ascii, no_mouse }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Open the console on a session or a recording
    Open {
        #[command(flatten)]
        session: Option<SessionArgs>,
        #[command(flatten)]
        service: AttachArgs,
        #[command(flatten)]
        entry: EntryArgs,
        #[command(flatten)]
        look: LookArgs,
        #[command(flatten)]
        keep: KeepArgs,
        /// Go there first: a time of the data's clock such as 10:38, an incident such as #7, start or end
        #[arg(long, value_name = "T", value_parser = console::goal)]
        at: Option<Goal>,
    },
    /// List the sessions that come with the program, and the recordings at hand
    Sessions,
    /// Say whether a session can be used, and what it holds
    Check {
        #[command(flatten)]
        session: SessionArgs,
        /// Read all of its data, not only the beginning
        #[arg(long)]
        full: bool,
    },
    /// Look at data and write a session for it
    Init(init::InitArgs),
    /// Write data of the built-in plants, with its ground truth, or be a live plant
    #[command(subcommand)]
    Make(make::Make),
    /// Say which history a live session's models are made from, learn anew, or go back
    Calibration(calibration::CalibrationArgs),
    /// Make the models of a session and keep them
    Train(train::TrainArgs),
    /// Measure speed and memory on this machine
    Bench(bench::BenchArgs),
    /// Run a session without a screen: one fact a line, a summary last
    Run(run::RunArgs),
    /// Write tables, reports or a terminal cast of a recording
    Export(export::ExportArgs),
    /// Compare two recordings, or two settings of one session
    Compare(compare::CompareArgs),
    /// Make certificates for sites, server and broker of a session, and the broker's access list
    Certs(certs::CertsArgs),
    /// Run the server of a session whose sites are processes of their own, over an MQTT broker
    Serve(serve::ServeArgs),
    /// Run one client of a session as a process of its own, over an MQTT broker
    Site(site::SiteArgs),
    /// Verify a ledger that a run wrote, and say what was spent
    Ledger(ledger::LedgerArgs),
    /// Make a table or figure of the paper, with what comes out here beside it
    Study(study::StudyArgs),
    /// Measure a list of alarms against the truth
    Score(ScoreArgs),
    /// Draw one picture of the console, without a terminal
    Screen(screen::ScreenArgs),
    /// Say which keys ask for what, as a table in markdown
    Keys {
        /// A file of keys instead, ready to be changed
        #[arg(long)]
        ron: bool,
    },
    /// Write completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual page
    Man,
}

/// Which session, and where its data stands.
#[derive(Debug, Clone, Args)]
struct SessionArgs {
    /// A session file, the name of a shipped session, or a recording (see `headwater sessions`); `-`
    /// reads live rows from standard input, with --session
    session: String,
    /// The session that says what live rows mean, where they come from standard input
    #[arg(long = "session", value_name = "FILE", id = "meaning")]
    meaning: Option<String>,
    /// Folder that holds the session's data files
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Drives the built-in data and every drawn noise
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Trust the certificate of the session's OPC UA server that has this thumbprint, from now on
    #[cfg(feature = "opcua")]
    #[arg(long, value_name = "THUMBPRINT")]
    trust: Option<String>,
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
    /// What opens when nothing is asked for.
    fn first() -> Self {
        Self {
            session: SHIPPED[0].name.into(),
            meaning: None,
            data: None,
            seed: None,
            #[cfg(feature = "opcua")]
            trust: None,
        }
    }

    /// The file, where it is a recording and not a session.
    fn recording(&self) -> Option<&Path> {
        let file = Path::new(&self.session);
        record::is_recording(file).then_some(file)
    }

    /// The session or the recording.
    fn subject(&self) -> Result<Subject> {
        match self.recording() {
            Some(file) if self.data.is_none() && self.seed.is_none() => {
                Subject::recording(file).map_err(|error| eyre!(error))
            }
            Some(file) => {
                bail!("--data and --seed are for sessions; {} is a recording", file.display())
            }
            None => Ok(Subject::Session(Box::new(self.open()?))),
        }
    }

    fn open(&self) -> Result<Session> {
        let mut session = match (self.session.as_str(), &self.meaning) {
            ("-", Some(meaning)) => {
                let mut session = Session::open(meaning)?;
                session.read_standard_input().map_err(|why| eyre!(why))?;
                session
            }
            ("-", None) => {
                bail!("live rows need a session that says what they mean: --session FILE")
            }
            (_, Some(_)) => bail!("--session belongs to `-`, live rows from standard input"),
            (session, None) => Session::open(session)?,
        };
        for note in &session.notes {
            eprintln!("{note}");
        }
        #[cfg(feature = "opcua")]
        if let Some(thumbprint) = &self.trust {
            let name = crate::stream::live::opcua::accept(&session, thumbprint)?;
            eprintln!("trusted from now on: {name}");
        }
        if let Some(folder) = &self.data {
            session.find_data_in(folder);
        }
        if let Some(seed) = self.seed {
            session.set_seed(seed);
        }
        Ok(session)
    }
}

/// How a replay is entered.
#[derive(Debug, Clone, Copy, Default, Args)]
struct EntryArgs {
    /// Data seconds per second, or "max"
    #[arg(long, value_name = "N", value_parser = speed)]
    speed: Option<f64>,
    /// The method that decides
    #[arg(long, value_enum, value_name = "M")]
    mode: Option<run::Method>,
}

impl EntryArgs {
    fn is_set(self) -> bool {
        self.speed.is_some() || self.mode.is_some()
    }

    fn apply(self, session: &mut Session) {
        session.replay.speed = self.speed.unwrap_or(session.replay.speed);
        if let Some(mode) = self.mode {
            session.mode = mode.into();
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let times =
        if text == "max" { Some(f64::INFINITY) } else { text.trim_end_matches('x').parse().ok() };
    times.filter(|times| *times > 0.0).ok_or_else(|| "expected a number above 0, or max".to_owned())
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        if let Some(name) = meant_to_open(&error, std::env::args().nth(1)) {
            print_notice(format!("{name} is a session: headwater open {name}"));
            std::process::exit(2);
        }
        error.exit()
    });
    match execute(cli) {
        Ok(code) => code,
        // The reader of our output went away (`headwater sessions | head -1`): nothing to say.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            // Some errors tell their cause themselves.
            causes.dedup_by(|cause, before| before.ends_with(cause.as_str()));
            print_notice(causes.join(": "));
            ExitCode::FAILURE
        }
    }
}

/// The session that was named where a command was expected.
fn meant_to_open(error: &clap::Error, word: Option<String>) -> Option<String> {
    let is_command =
        matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument);
    let name = word.filter(|_| is_command)?;
    let path = Path::new(&name);
    let is_file = || path.is_file() && path.extension().is_some_and(|end| end == "ron");
    (SHIPPED.iter().any(|shipped| shipped.name == name) || is_file()).then_some(name)
}

fn is_broken_pipe(error: &color_eyre::Report) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Removes partial files of `name` that a killed run left in `folder`, and says so: it is a folder
/// of the user.
fn remove_stale(folder: &Path, name: &str) {
    for partial in atomic_file::remove_stale(folder, Some(name)) {
        print_notice(format!("removed {}, left by a run that was killed", partial.display()));
    }
}

/// Removes every partial file that killed runs left in the cache, which is this program's own.
fn tidy_cache() {
    let folder = cache_folder(&CacheEnvironment::of_process());
    for folder in [folder.join("studies"), folder] {
        // These need no message.
        let _ = atomic_file::remove_stale(&folder, None);
    }
}

fn execute(cli: Cli) -> Result<ExitCode> {
    if matches!(
        cli.command,
        None | Some(Command::Open { .. } | Command::Train(_) | Command::Run(_) | Command::Study(_))
    ) {
        tidy_cache();
    }
    let mut out = io::BufWriter::new(io::stdout());
    match cli.command {
        None => {
            let (session, entry) = (SessionArgs::first(), EntryArgs::default());
            return watch(session, entry, cli.look, cli.keep, None, out);
        }
        Some(Command::Open { service, look, .. }) if service.attach.is_some() => {
            return attach::watch(&service, look);
        }
        Some(Command::Open { session, entry, look, keep, at, service: _ }) => {
            let session = session.ok_or_else(|| eyre!("open needs a session, or --attach PATH"))?;
            return watch(session, entry, look, keep, at, out);
        }
        Some(Command::Sessions) => {
            sessions::list(&mut out)?;
            recordings::list(&mut out)?;
        }
        Some(Command::Check { session, full }) => check::print(&mut out, &session.open()?, full)?,
        Some(Command::Init(args)) => init::run(&mut out, &args)?,
        Some(Command::Make(what)) => make::run(&mut out, &what)?,
        Some(Command::Calibration(args)) => calibration::run(&mut out, &args)?,
        Some(Command::Train(args)) => train::run(&mut out, &args)?,
        Some(Command::Bench(args)) => bench::run(&mut out, &args)?,
        Some(Command::Run(args)) => run::run(&mut out, &args)?,
        Some(Command::Export(args)) => export::run(&mut out, &args)?,
        Some(Command::Compare(args)) if args.is_for_a_screen() => {
            drop(out);
            return Ok(compare::show(&args)?.report());
        }
        Some(Command::Compare(args)) => compare::run(&mut out, &args)?,
        Some(Command::Certs(args)) => certs::run(&mut out, &args)?,
        Some(Command::Serve(args)) => serve::run(&mut out, &args)?,
        Some(Command::Site(args)) => site::run(&mut out, &args)?,
        Some(Command::Ledger(args)) => ledger::run(&mut out, &args)?,
        Some(Command::Study(args)) => study::run(&mut out, &args)?,
        Some(Command::Score(args)) => {
            let report = score::run(&args.truth, &args.alarms, args.tail)?;
            if let Some(line) = report.cut_at_line {
                let alarms = args.alarms.display();
                let what = "WARNING: the last line breaks off; it is not counted, nor is what a run \
                            that was stopped had still to say";
                print_notice(format!("{alarms}:{line}: {what}"));
            }
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&report)?)?;
            } else {
                write!(out, "{report}")?;
            }
        }
        Some(Command::Screen(args)) => screen::write(&mut out, &args)?,
        Some(Command::Keys { ron: true }) => out.write_all(console::example_keys().as_bytes())?,
        Some(Command::Keys { ron: false }) => {
            out.write_all(console::keys_table(&console::keys_in_force()?).as_bytes())?;
        }
        Some(Command::Completions { shell }) => manual::completions(&mut out, shell),
        Some(Command::Man) => manual::man(&mut out)?,
    }
    out.flush().wrap_err("writing to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// The console where there is a terminal, the plain facts where there is none.
fn watch(
    args: SessionArgs,
    entry: EntryArgs,
    look: LookArgs,
    keep: KeepArgs,
    at: Option<Goal>,
    mut out: impl Write + Send,
) -> Result<ExitCode> {
    // Standard input is not free for keys where it brings measurements.
    let rows_come_in = || {
        let opened = || args.open().is_ok_and(|session| session.reads_standard_input());
        args.session == "-" || args.recording().is_none() && opened()
    };
    let keys = if io::stdin().is_terminal() || !rows_come_in() {
        console::Keys::StandardInput
    } else {
        console::Keys::Terminal
    };
    if !console::is_possible(keys) {
        run::run(&mut out, &run::RunArgs::plain(args))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    drop(out);
    let mut subject = args.subject()?;
    match subject.session_mut() {
        Some(session) => entry.apply(session),
        None if entry.is_set() => bail!("--speed and --mode are for sessions, not recordings"),
        None => {}
    }
    Ok(console::run(subject, look.into(), !keep.no_record, at, keys)?.report())
}
