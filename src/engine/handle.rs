//! The engine on a thread of its own: models are made, the stream is run up to where playing begins,
//! then played at the pace that is asked for.
//!
//! ```text
//!  Command ──► (few may lie unread) ──► engine thread: Watch ──► (few may lie unread) ──► EngineEvent
//! ```
//!
//! The holder of the [`Handle`] never waits for the engine. The engine waits only when several events are
//! lying unread, and then loses nothing. A step of the engine takes several measurements in; they are
//! shown each at its own time, and what the step found together with the last of them. After the end of
//! the stream the thread goes on to answer: a day that is over can still be tuned and acknowledged.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::carried::{self, CarriedFiles};
pub(crate) use super::error::OpenError;
use super::kept_run::KeptRun;
use super::ledger_file::KeptLedger;
use super::live;
use super::player::{Gone, Player};
use super::prepare::{self, PrepareError, Prepared};
use super::progress::{ProgressWords, Training};
pub(crate) use super::protocol::{
    Command, EngineEvent, Load, Moment, Opened, Options, RecordState, RecordTo, SendFacts, Tried,
    Update,
};
use super::recorded::Recorded;
use super::run::{Ending, RunOptions};
use super::train::{enter_failed, enter_prepared};
use super::watch::Watch;
use crate::output::Outputs;
use crate::output::metrics::Metrics;
use crate::privacy::Head;
use crate::record::Holds;
use crate::session::Session;
use crate::stream::live::status::Shared;
use crate::stream::live::{LiveStream, kept as kept_rows};
use crate::wire::Memory;

/// Events that may lie unread.
const QUEUE: usize = 4;
/// Commands that may lie unread.
const COMMANDS: usize = 32;

/// The holder's end of an engine. Dropping it ends the engine's thread.
#[derive(Debug)]
pub(crate) struct Handle {
    /// Its events. Closed before an event that [`EngineEvent::is_last`]: its thread died.
    pub(crate) events: mpsc::Receiver<EngineEvent>,
    /// None once it was asked to end.
    commands: Option<std_mpsc::SyncSender<Command>>,
    /// A ledger or a recording is being written.
    keeps: Arc<AtomicBool>,
    /// Where the ledger file ends, once its last line is written.
    finished: std_mpsc::Receiver<Option<Head>>,
}

impl Handle {
    /// Hands a command over; it comes back when too many lie unread. An engine that is over needs none.
    pub(crate) fn command(&self, command: Command) -> Result<(), Command> {
        let Some(commands) = &self.commands else { return Ok(()) };
        match commands.try_send(command) {
            Ok(()) | Err(std_mpsc::TrySendError::Disconnected(_)) => Ok(()),
            Err(std_mpsc::TrySendError::Full(command)) => Err(command),
        }
    }
}

/// Hands commands to an engine from elsewhere than its holder.
#[derive(Debug, Clone)]
pub(crate) struct Commander(std_mpsc::SyncSender<Command>);

impl Commander {
    /// Whether the engine will obey; not so where too many commands lie unread, or where it is over.
    pub(crate) fn send(&self, command: Command) -> bool {
        self.0.try_send(command).is_ok()
    }
}

impl Handle {
    /// An engine that runs elsewhere: its events come from `events`, commands go to `commands`.
    pub(crate) fn elsewhere(
        events: mpsc::Receiver<EngineEvent>,
        commands: std_mpsc::SyncSender<Command>,
    ) -> Self {
        let (_, finished) = std_mpsc::sync_channel(1);
        Self { events, commands: Some(commands), keeps: Arc::default(), finished }
    }

    /// Hands commands over from other threads; none once the engine was asked to end.
    pub(crate) fn commander(&self) -> Option<Commander> {
        self.commands.clone().map(Commander)
    }

    /// Ends the engine and waits for its ledger to be closed and signed, for so long at most; where the
    /// file ends then, if one is kept.
    pub(crate) fn finish(&mut self, longest: Duration) -> Option<Head> {
        self.events.close();
        self.commands = None;
        // Without a ledger there is nothing to wait for, however long a step takes.
        let keeps = self.keeps.load(Ordering::Relaxed);
        if keeps { self.finished.recv_timeout(longest).ok().flatten() } else { None }
    }

    /// Waits for the end, and shows every update to `see` on the way.
    pub(crate) fn into_end(
        mut self,
        mut see: impl FnMut(&Opened, &Update),
    ) -> Result<(Box<Opened>, Box<Ending>), OpenError> {
        let (mut known, mut ended) = (None, None);
        while let Some(event) = self.events.blocking_recv() {
            match event {
                EngineEvent::Opened(opened) => known = Some(opened),
                EngineEvent::News(update) => {
                    if let Some(opened) = &known {
                        see(opened, &update);
                    }
                }
                EngineEvent::Ended(ending) => ended = Some(ending),
                EngineEvent::Failed(error) => return Err(error),
                EngineEvent::Notice(_)
                | EngineEvent::Recording(_)
                | EngineEvent::Training(_)
                | EngineEvent::Playing
                | EngineEvent::Ordered(_)
                | EngineEvent::Tried(_)
                | EngineEvent::Branched(_)
                | EngineEvent::Stopped => {}
            }
        }
        known.zip(ended).ok_or_else(|| "the engine ended unexpectedly".into())
    }
}

/// Makes or reads the models of a session, opens it and plays it, on a thread of its own.
pub(crate) fn spawn(session: &Session, options: Options) -> io::Result<Handle> {
    let session = session.clone();
    spawn_on(options, move |options, sender| {
        let ready = open(&session, options, sender)?;
        Ok((ready, session))
    })
}

/// Plays a recording: its messages go through the server again. The method and what is recorded of
/// `options` do not count.
pub(crate) fn spawn_recorded(mut recorded: Recorded, options: Options) -> io::Result<Handle> {
    spawn_on(options, move |options, sender| {
        let session = recorded.session.clone();
        for fact in &recorded.training {
            let training = Training::of_fact(fact.clone());
            let _ = sender.blocking_send(EngineEvent::Training(training));
        }
        if let Some(notice) = recorded.notice() {
            let _ = sender.blocking_send(EngineEvent::Notice(notice));
        }
        // A screen shows what was learned, as it did then.
        let prepared = if options.watched { recorded.models() } else { None };
        let watch = Watch::recorded(recorded, options.watched)?;
        let kept = (KeptLedger::none(), KeptRun::default());
        Ok(((watch, prepared, kept.0, kept.1, Outside::default()), session))
    })
}

/// Opens something and plays it, on a thread of its own.
fn spawn_on(
    options: Options,
    open: impl FnOnce(&Options, &mpsc::Sender<EngineEvent>) -> Result<(Ready, Session), OpenError>
    + Send
    + 'static,
) -> io::Result<Handle> {
    let (sender, events) = mpsc::channel(QUEUE);
    let (command_sender, commands) = std_mpsc::sync_channel(COMMANDS);
    let (finish, finished) = std_mpsc::sync_channel(1);
    let keeps = Arc::new(AtomicBool::new(false));
    let is_kept = Arc::clone(&keeps);
    thread::Builder::new().name("engine".into()).spawn(move || {
        // A hang-up means that the holder is gone.
        let _gone = match open(&options, &sender) {
            Ok(((watch, prepared, kept, record, outside), session)) => {
                is_kept.store(kept.is_kept() || record.is_on(), Ordering::Relaxed);
                let kept = (kept, record);
                let mut player = Player::new(watch, kept, &session, &options, sender, commands);
                player.follow(outside.live);
                player.carry(outside.carried);
                player.hand_out(outside.outputs, outside.metrics);
                let played = player.play(prepared);
                // A holder that has left does not wait for it.
                let _ = finish.try_send(player.close());
                played
            }
            Err(error) => sender.blocking_send(EngineEvent::Failed(error)).map_err(|_| Gone),
        };
    })?;
    Ok(Handle { events, commands: Some(command_sender), keeps, finished })
}

/// A session that can be played, its models, where its ledger and the run itself are stored, and what
/// it has to do with the world outside.
type Ready = (Watch, Option<Arc<Prepared>>, KeptLedger, KeptRun, Outside);

/// The connections of a run to the outside.
#[derive(Default)]
struct Outside {
    /// How its source stands, where that is a live one.
    live: Option<Shared>,
    /// Who gets facts, and who may ask for figures.
    outputs: Option<Outputs>,
    metrics: Option<Metrics>,
    /// The state that is kept for the next start.
    carried: CarriedFiles,
}

fn open(
    session: &Session,
    options: &Options,
    sender: &mpsc::Sender<EngineEvent>,
) -> Result<Ready, OpenError> {
    let (opened, mut kept) = KeptLedger::open(session, options.ledger.clone())?;
    for notice in &opened.notices {
        // Without a holder the message is lost; the first measurement finds that out.
        let _ = sender.blocking_send(EngineEvent::Notice(notice.clone()));
    }
    let sends = options.outputs != SendFacts::No;
    let outputs = if sends && !session.outputs.is_empty() {
        let allow_exec = options.outputs == SendFacts::Everywhere;
        Outputs::open(session, &kept_rows::folder(session)?, allow_exec)?
    } else {
        None
    };
    let metrics = session.metrics.as_deref().filter(|_| sends);
    let metrics = metrics.map(Metrics::listen).transpose()?;
    let claim = carried::claim(session);
    let source = session.live();
    let source = source.map(|live| live::begin(session, live, options, metrics.as_ref(), sender));
    let source = source.transpose()?;
    let live = source.as_ref().map(LiveStream::status);
    let mut record = KeptRun::open(session, options.record.as_ref(), Holds::Both);
    if let Some(file) = record.file() {
        let _ = sender.blocking_send(EngineEvent::Recording(RecordState::On(file)));
    }
    let prepared = if let Some(prepared) = &options.prepared {
        Arc::clone(prepared)
    } else {
        let prepared = prepared(session, options, &mut record, sender);
        Arc::new(prepared.map_err(enter_failed(session, &opened, &mut kept))?)
    };
    let mode = options.mode.unwrap_or(session.mode);
    let run = RunOptions {
        until: options.until,
        both: options.watched,
        ledger: opened.ledgers.clone(),
        wire: record.wrap(Box::new(Memory::default())),
        ..RunOptions::new(mode)
    };
    let with_frames =
        options.watched || options.shown || (record.is_on() && session.record.measurements);
    let watch = match source {
        Some(source) => Watch::live(Box::new(source), session, &prepared, run, with_frames),
        None => Watch::open(session, &prepared, run, with_frames),
    };
    match watch {
        Ok(mut watch) => {
            let (carried, before) = CarriedFiles::open(session, claim);
            let before = before.filter(|before| !before.carried.is_nothing());
            watch.go_on_from(before);
            let outside = Outside { live, outputs, metrics, carried };
            record.describe(session, (mode, options.watched), &watch, &prepared);
            Ok((watch, Some(prepared), kept, record, outside))
        }
        Err(why) => {
            enter_prepared(session, &opened, &mut kept, &prepared)?;
            Err(why.into())
        }
    }
}

fn prepared(
    session: &Session,
    options: &Options,
    record: &mut KeptRun,
    sender: &mpsc::Sender<EngineEvent>,
) -> Result<Prepared, PrepareError> {
    let mut words = ProgressWords::new(session, Instant::now());
    let mut gone = false;
    let mut tell = |training: Training| {
        if let Some(fact) = &training.fact {
            record.facts(std::slice::from_ref(fact.as_ref()));
        }
        let event = EngineEvent::Training(training);
        if options.watched {
            // A word that finds the queue full is left out: the next one says more.
            let _ = sender.try_send(event);
        } else {
            gone |= sender.blocking_send(event).is_err();
        }
        gone
    };
    tell(words.word(&prepare::Stage::Reading, Instant::now()));
    fault();
    let file = prepare::cache_file(session);
    let is_interrupted = || options.interrupt.as_ref().is_some_and(|i| i.load(Ordering::Relaxed));
    prepare::prepare(session, &file, &mut |stage| {
        if let prepare::Stage::Notice(notice) = stage {
            let _ = sender.blocking_send(EngineEvent::Notice(notice.to_owned()));
            return ControlFlow::Continue(());
        }
        let gone = tell(words.word(&stage, Instant::now()));
        if gone || is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// A fault on request, for the test that a console survives one: the engine's thread panics.
fn fault() {
    let asked = std::env::var_os("HEADWATER_FAULT").is_some_and(|fault| fault == "engine-panic");
    assert!(!asked, "a fault was asked for by HEADWATER_FAULT");
}
