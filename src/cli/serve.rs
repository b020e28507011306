//! `headwater serve`: the server of a session whose sites are processes of their own.

use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use color_eyre::eyre::{Result, bail};

use super::run::{Bar, PlayArgs, Printer};
use super::{SessionArgs, interrupt};
use crate::base::notice::print_notice;
use crate::console::{Lines, PartyView, title, watch_federation};
use crate::engine::kept_run::ServerRecording;
use crate::engine::pace::Speed;
use crate::engine::prepare::apart::ServerModels;
use crate::engine::prepare::{self, Prepared};
use crate::fact::Fact;
use crate::nn::checkpoint::{CacheEnvironment, cache_folder};
use crate::remote::RemoteError;
use crate::remote::account::{Account, Counts, SpentSoFar};
use crate::remote::link::Broker;
use crate::remote::server::{Options, Served, accept, pause};
use crate::session::{Mode, Session};
use crate::stream::Part;
use crate::stream::resolution::Grids;

/// Where the broker is.
#[derive(Debug, Args)]
pub(super) struct BrokerArgs {
    /// The broker: mqtts://HOST[:PORT], or mqtt://HOST[:PORT] with --insecure
    #[arg(long, value_name = "URL")]
    broker: Option<String>,
    /// Folder with ca.crt, and NAME.crt and NAME.key of this site (the server's NAME is "server")
    #[arg(long, value_name = "DIR")]
    certs: Option<PathBuf>,
    /// Allow mqtt://: not encrypted, and anybody can publish as any site
    #[arg(long)]
    insecure: bool,
}

impl BrokerArgs {
    /// The broker; prints a warning where the connection is not encrypted.
    pub(super) fn open(&self) -> Result<Broker> {
        let Some(broker) = &self.broker else { bail!("--broker URL is missing") };
        let broker = Broker::parse(broker, self.certs.as_deref(), self.insecure)?;
        if !broker.is_encrypted() {
            print_notice(
                "INSECURE: plain TCP, no identity is checked; for tests on one machine only",
            );
        }
        Ok(broker)
    }
}

/// The clients of a session by name. Those that the session itself names are known without data.
pub(super) fn names(session: &Session) -> Result<Vec<String>> {
    if session.clients.is_empty() {
        let stream = Grids::of(session)?.open(session, Part::Replay)?;
        return Ok(stream.layout().clients.iter().map(|client| client.name.clone()).collect());
    }
    Ok(session.clients.iter().map(|client| client.name.clone()).collect())
}

/// Where a party keeps what it needs after a new start: a file in the cache.
pub(super) fn state_file(kind: &str, names: &[&str], (mode, seed): (Mode, u64)) -> PathBuf {
    let plain = |name: &&str| -> String {
        name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
    };
    let names: Vec<String> = names.iter().map(plain).collect();
    let file = format!("{}-{mode:?}-{seed}.sqlite", names.join("-")).to_lowercase();
    cache_folder(&CacheEnvironment::of_process()).join(kind).join(file)
}

/// The models of all clients, where one process on this machine made them before.
pub(super) fn whole_models(session: &Session) -> Option<Prepared> {
    prepare::kept(session, &prepare::cache_file(session)).ok()
}

#[derive(Debug, Args)]
#[command(mut_arg("broker", |broker| broker.required_unless_present("accept")))]
pub(super) struct ServeArgs {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    broker: BrokerArgs,
    #[command(flatten)]
    play: PlayArgs,
    /// Seconds after which a step is closed without the sites that have not sent it. When absent, a replay
    /// waits for all, and a live step for the session's lateness and 3 s more
    #[arg(long, value_name = "S", value_parser = seconds)]
    deadline: Option<Duration>,
    /// A site that has left: a run that was stopped goes on without waiting for it
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// A client that is not there yet: the run begins without it, and it can join while the run goes on
    #[arg(long, value_name = "NAME")]
    later: Vec<String>,
    /// Accept a site that waits with another model, then end; the server itself goes on
    #[arg(long, value_name = "NAME")]
    accept: Option<String>,
    /// Begin the run anew instead of going on where a server that was stopped had come to
    #[arg(long)]
    anew: bool,
    /// Store the run in this file while it happens: messages and decisions
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// One JSON object a line instead of words
    #[arg(long)]
    json: bool,
    /// Show every site and what was decided on a screen of its own
    #[arg(long, conflicts_with = "json")]
    console: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds >= 0.001);
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected seconds, at least 0.001".to_owned())
}

/// Does `work` beside a screen, which it ends by `over`.
pub(super) fn beside_screen<T>(
    screen: impl FnOnce() -> std::io::Result<()> + Send,
    work: impl FnOnce() -> Result<T>,
    over: &AtomicBool,
) -> Result<T> {
    std::thread::scope(|scope| {
        let screen = scope.spawn(screen);
        let done = work();
        over.store(true, Ordering::Relaxed);
        // The terminal is given back before anything is printed.
        screen.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        done
    })
}

pub(super) fn run(out: &mut (impl Write + Send), args: &ServeArgs) -> Result<()> {
    if args.console && !std::io::stdout().is_terminal() {
        bail!("--console needs a terminal");
    }
    let interrupt = interrupt::watch("sites keep what they released");
    let session = args.session.open()?;
    let mode = args.play.mode.map_or(session.mode, Mode::from);
    let names = names(&session)?;
    let journal = state_file("journal", &[&session.name], (mode, session.seed));
    if let Some(name) = &args.accept {
        let models = accept(&session, mode, &names, (&journal, name))?;
        print_notice(format!(
            "{name} is accepted with the model {models}: it enrols at the next step, with its own calibration; \
             its evidence begins anew; the other clients keep their calibration"
        ));
        return Ok(());
    }
    let broker = args.broker.open()?;
    let listed = args.without.iter().chain(&args.later);
    if let Some(name) = listed.into_iter().find(|name| !names.contains(name)) {
        let known = names.join(", ");
        return Err(RemoteError::NoClient { name: name.clone(), known }.into());
    }
    let whole = whole_models(&session).map(ServerModels::of);
    let kept = ServerModels::kept(&session, &[]);
    let options = Options {
        session: &session,
        without: &args.without,
        later: &args.later,
        journal: &journal,
        anew: args.anew,
        names: &names,
        models: whole.into_iter().chain(kept).collect(),
        mode,
        until: args.play.until,
        deadline: args.deadline,
        broker: &broker,
        record: args.record.as_deref(),
        interrupt: Arc::clone(&interrupt),
        board: Arc::default(),
    };
    let (accounts, not_recorded) = if args.console {
        let mut lines = Lines::default();
        let title = title(&session, mode, broker.is_encrypted());
        let view = PartyView { title, board: Arc::clone(&options.board), lines: lines.clone() };
        let (over, notices) = (AtomicBool::new(false), lines.clone());
        let screen = || watch_federation(&view, &interrupt, &over);
        let say = Box::new(move |what: &str| notices.push(what));
        let serve = || serve(&mut lines, args, &options, say, &Bar::hidden());
        beside_screen(screen, serve, &over)?
    } else {
        print_notice(format!("waiting for {}", names.join(", ")));
        serve(out, args, &options, Box::new(|what| print_notice(what)), &Bar::new())?
    };
    let mut all = Counts::default();
    for account in &accounts {
        print_notice(about(account));
        all.add(&account.counts);
    }
    print_notice(format!(
        "{} bytes from sites; {} duplicates, {} refused, {} asked for again, {} late, {} missing",
        all.bytes_up,
        all.duplicates,
        all.refused(),
        all.asked_again,
        all.late,
        all.missing
    ));
    match not_recorded {
        Some(why) => bail!("the run was not recorded to its end: {why}"),
        None => Ok(()),
    }
}

/// How every site stood at the end, and why the run was not recorded up to it, where it was to be.
type Over = (Vec<Account>, Option<String>);

/// Serves until the run is over.
fn serve(
    out: &mut (impl Write + Send),
    args: &ServeArgs,
    options: &Options<'_>,
    say: Box<dyn FnMut(&str) + Send>,
    bar: &Bar,
) -> Result<Over> {
    let mut served = Served::open(options, say)?;
    let mut printer = Printer { out, json: args.json, bar };
    printer.print(&served.run.calibrated())?;
    let (begin, mut due) = (Instant::now(), Instant::now());
    let mut facts = Vec::new();
    let mut not_recorded = None;
    while let Some(time) = served.step(&mut facts)? {
        bar.at(time);
        printer.print(&facts)?;
        served.recording.step(&mut served.run, Some(time), &facts);
        tell_recording(printer.out, args, &mut served.recording, &mut not_recorded)?;
        facts.clear();
        if served.is_catching_up() {
            due = Instant::now();
        } else if let Speed::Times(times) = args.play.speed {
            due += pause(served.run.layout().period_s, times);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    bar.clear();
    served.recording.step(&mut served.run, None, &facts);
    if let Some(why) = served.take_failure() {
        printer.print(&facts)?;
        return Err(why.into());
    }
    let last = served.run.end();
    let ending = served.run.ending(begin.elapsed());
    let summary = Fact::Summary(Box::new(ending.summary.clone()));
    served.recording.end(&mut served.run, &last, summary);
    tell_recording(printer.out, args, &mut served.recording, &mut not_recorded)?;
    facts.extend(last);
    printer.print(&facts)?;
    printer.sum_up(&ending)?;
    served.stop();
    Ok((served.accounts(), not_recorded))
}

/// Prints the messages about a recording; keeps why it ended early.
fn tell_recording(
    out: &mut impl Write,
    args: &ServeArgs,
    recording: &mut ServerRecording,
    not_recorded: &mut Option<String>,
) -> Result<()> {
    let (mut words, failure) = recording.take_words();
    if let Some(why) = failure {
        words.push(format!("the run goes on without a recording: {why}"));
        *not_recorded = Some(why);
    }
    for word in words {
        if args.console {
            // Standard error would be drawn over the screen.
            writeln!(out, "{word}")?;
        } else {
            print_notice(&word);
        }
    }
    Ok(())
}

/// One site in words.
fn about(account: &Account) -> String {
    let Counts { bytes_up, bytes_down, late, missing, duplicates, rejoined, .. } = account.counts;
    let Counts { malformed, replayed, wrong_site, foreign, limited, .. } = account.counts;
    let silent = account.silent_for().map_or(0.0, |silent| silent.as_secs_f64());
    let clock = match (account.skew.ahead_s(), account.skew.round_trip_s()) {
        (Some(ahead), Some(back)) => {
            format!("clock {:+.1} ms, round trip {:.1} ms", ahead * 1e3, back * 1e3)
        }
        _ => "clock unknown".to_owned(),
    };
    let spent = match account.spent {
        Some(SpentSoFar { epsilon: Some(epsilon), releases }) => {
            format!("ε {epsilon:.3} in {releases} releases")
        }
        Some(SpentSoFar { epsilon: None, releases }) => {
            format!("{releases} releases, no bound on ε")
        }
        None => "ledger not known".to_owned(),
    };
    format!(
        "{}: heard {silent:.1} s ago; {bytes_up} bytes up, {bytes_down} down; {clock}; {spent}; {late} late, {missing} missing, \
         {duplicates} duplicates, {rejoined} times back; refused: {malformed} malformed, {replayed} \
         replayed, {wrong_site} of another client or step, {foreign} of another session, {limited} \
         over the rate",
        account.name
    )
}
