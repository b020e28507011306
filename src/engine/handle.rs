//! The engine on a thread of its own: models are made, the stream is run up to where playing begins,
//! then played at the pace that is asked for.
//!
//! ```text
//!  Command ──► (few may lie unread) ──► engine thread: Watch ──► (few may lie unread) ──► EngineEvent
//! ```
//!
//! Whoever holds the [`Handle`] never waits for it. It waits for them only when several events are
//! lying unread, and then loses nothing. A step of the engine takes several measurements in; they are
//! shown each at its own time, and what the step found together with the last of them. After the end of
//! the stream the thread goes on to answer: a day that is over can still be tuned and acknowledged.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::civil::Time;
use tokio::sync::mpsc;

use super::knob::Turn;
use super::ledger_file::KeptLedger;
use super::pace::{Pace, Speed};
use super::player::{Gone, Player};
use super::prepare::{self, PrepareError, Prepared};
use super::progress::{ProgressWords, Training};
use super::run::what_if::NoAnswer;
use super::run::{Ending, Outlook, RunOptions};
use super::train::{enter_failed, enter_prepared};
use super::watch::{News, Snapshot, Watch};
use crate::fact::Fact;
use crate::incident::Order;
use crate::privacy::Head;
use crate::session::{Mark, Mode, Session};
use crate::stream::{Event, Layout};

/// Events that may lie unread.
const QUEUE: usize = 4;
/// Commands that may lie unread.
const COMMANDS: usize = 32;

/// What the stream looks like, and what it knows about disturbances.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) layout: Layout,
    pub(crate) events: Vec<Event>,
    /// Seconds between two steps of the engine.
    pub(crate) period_s: f64,
    /// The same clients at the pace of the engine's steps.
    pub(crate) steps: Layout,
    pub(crate) prepared: Option<Arc<Prepared>>,
    /// The thresholds of every client, as facts.
    pub(crate) calibrated: Vec<Fact>,
}

impl Opened {
    /// What is to be known of `watch` before its first step.
    pub(crate) fn of(watch: &Watch, prepared: Arc<Prepared>) -> Self {
        Self {
            layout: watch.measurements().clone(),
            events: watch.events().to_vec(),
            period_s: watch.period_s(),
            steps: watch.run().layout().clone(),
            prepared: Some(prepared),
            calibrated: watch.calibrated(),
        }
    }
}

/// Why there is no stream.
pub(crate) type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// What the engine's work costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Load {
    /// Mean time of a step.
    pub(crate) step: Duration,
    /// How far the replay is behind its pace.
    pub(crate) behind: Duration,
}

/// What is new, and how everything stands after it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Update {
    pub(crate) news: News,
    /// How everything stands, where that may have changed.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) load: Load,
}

/// What the day so far would have been with one knob turned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tried {
    /// The knob with its value on trial.
    pub(crate) turn: Turn,
    /// The day so far as it was.
    pub(crate) before: Outlook,
    /// As it would have been, or why nobody can tell.
    pub(crate) after: Result<Outlook, NoAnswer>,
}

/// What the engine tells, in this order.
#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// Something that is worth knowing about the files of this run; it goes on.
    Notice(String),
    Training(Training),
    Opened(Box<Opened>),
    /// Measurements and what they say, in their order.
    News(Box<Update>),
    /// Everything before the place where playing begins has been sent.
    Playing,
    /// An order was carried out, or not for this reason. What it changed came before.
    Ordered(Result<(), String>),
    /// What turning a knob would have meant.
    Tried(Box<Tried>),
    /// The moment was reached at which the engine was to stop. Nothing follows.
    Stopped,
    /// The stream is over. Only answers follow.
    Ended(Box<Ending>),
    /// The stream is over because of this. Only answers follow, if anything does.
    Failed(OpenError),
}

impl EngineEvent {
    /// Whether the engine may be gone after it.
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Self::Ended(_) | Self::Failed(_) | Self::Stopped => true,
            Self::Notice(_)
            | Self::Training(_)
            | Self::Opened(_)
            | Self::News(_)
            | Self::Playing
            | Self::Ordered(_)
            | Self::Tried(_) => false,
        }
    }
}

/// What the engine shall do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// It goes like this from now on.
    Pace(Pace),
    /// One step, and then it stands.
    Step,
    /// At full speed to this time, and then as before.
    RunTo(Timestamp),
    Order(Order),
    /// What would this have meant?
    WhatIf(Turn),
    /// The same where it costs something: it is paid for.
    WhatIfPaid(Turn),
}

/// How a session is run.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) pace: Pace,
    /// The method that decides; the session's own when absent.
    pub(crate) mode: Option<Mode>,
    /// Where the run ends; the end of the data when absent.
    pub(crate) until: Option<Mark>,
    /// A moment at which to stop without ending the run: for a picture of it.
    pub(crate) stop_at: Option<Moment>,
    /// Who looks on: both methods are carried along and measurements are shown, each at its time.
    /// Without, the run is summed up in facts alone, none of which is left out.
    pub(crate) watched: bool,
    /// Steps may travel together; otherwise each is told by itself.
    pub(crate) batched: bool,
    /// Where the ledgers' lines are stored before anything is told of what they are about. When absent,
    /// a session with a budget for the whole history has a file of its own.
    pub(crate) ledger: Option<PathBuf>,
    /// Raised when the run shall end as soon as possible.
    pub(crate) interrupt: Option<Arc<AtomicBool>>,
    /// Models that are made already.
    pub(crate) prepared: Option<Arc<Prepared>>,
}

impl Options {
    /// For a screen on this machine, at a pace.
    pub(crate) fn watched(pace: Pace) -> Self {
        Self {
            pace,
            mode: None,
            until: None,
            stop_at: None,
            watched: true,
            batched: true,
            ledger: None,
            interrupt: None,
            prepared: None,
        }
    }

    /// For a study: models that are made already, as fast as it goes, every step told by itself.
    pub(crate) fn study(prepared: Arc<Prepared>) -> Self {
        Self { prepared: Some(prepared), batched: false, ..Self::facts(Speed::Max) }
    }

    /// For facts alone, at a speed.
    pub(crate) fn facts(speed: Speed) -> Self {
        Self { watched: false, ..Self::watched(Pace { speed, paused: false }) }
    }
}

/// When a picture is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    /// The first time that the data's clock shows this.
    Clock(Time),
    /// A time, or a distance from the start.
    Mark(Mark),
}

/// The holder's end of an engine. Dropping it ends the engine's thread.
#[derive(Debug)]
pub(crate) struct Handle {
    /// What it tells. Closed before an event that [`EngineEvent::is_last`]: its thread died.
    pub(crate) events: mpsc::Receiver<EngineEvent>,
    /// None once it has been told to end.
    commands: Option<std_mpsc::SyncSender<Command>>,
    /// A ledger file is being written.
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

impl Handle {
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
    pub(crate) fn to_end(
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
                | EngineEvent::Training(_)
                | EngineEvent::Playing
                | EngineEvent::Ordered(_)
                | EngineEvent::Tried(_)
                | EngineEvent::Stopped => {}
            }
        }
        known.zip(ended).ok_or_else(|| "the engine ended unexpectedly".into())
    }
}

/// Makes or reads the models of a session, opens it and plays it, on a thread of its own.
pub(crate) fn spawn(session: &Session, options: Options) -> io::Result<Handle> {
    let (sender, events) = mpsc::channel(QUEUE);
    let (command_sender, commands) = std_mpsc::sync_channel(COMMANDS);
    let (finish, finished) = std_mpsc::sync_channel(1);
    let keeps = Arc::new(AtomicBool::new(false));
    let is_kept = Arc::clone(&keeps);
    let session = session.clone();
    thread::Builder::new().name("engine".into()).spawn(move || {
        // A hang-up means that the holder is gone: there is nobody left to tell.
        let _gone = match open(&session, &options, &sender) {
            Ok((watch, prepared, kept)) => {
                is_kept.store(kept.is_kept(), Ordering::Relaxed);
                let mut player = Player::new(watch, kept, &session, &options, sender, commands);
                let played = player.play(prepared);
                // Whoever has left does not wait for it.
                let _ = finish.try_send(player.close());
                played
            }
            Err(error) => sender.blocking_send(EngineEvent::Failed(error)).map_err(|_| Gone),
        };
    })?;
    Ok(Handle { events, commands: Some(command_sender), keeps, finished })
}

/// A session that can be played, its models, and where its ledger is stored.
type Ready = (Watch, Arc<Prepared>, KeptLedger);

fn open(
    session: &Session,
    options: &Options,
    sender: &mpsc::Sender<EngineEvent>,
) -> Result<Ready, OpenError> {
    let (opened, mut kept) = KeptLedger::open(session, options.ledger.clone())?;
    for notice in &opened.notices {
        // Without a holder there is nobody to tell, which the first measurement will find out.
        let _ = sender.blocking_send(EngineEvent::Notice(notice.clone()));
    }
    let prepared = match &options.prepared {
        Some(prepared) => Arc::clone(prepared),
        None => {
            let prepared = prepared(session, options, sender);
            Arc::new(prepared.map_err(enter_failed(session, &opened, &mut kept))?)
        }
    };
    let run = RunOptions {
        until: options.until,
        both: options.watched,
        ledger: opened.ledgers.clone(),
        ..RunOptions::new(options.mode.unwrap_or(session.mode))
    };
    match Watch::open(session, &prepared, run, options.watched) {
        Ok(watch) => Ok((watch, prepared, kept)),
        Err(why) => {
            enter_prepared(session, &opened, &mut kept, &prepared)?;
            Err(why.into())
        }
    }
}

fn prepared(
    session: &Session,
    options: &Options,
    sender: &mpsc::Sender<EngineEvent>,
) -> Result<Prepared, PrepareError> {
    let mut words = ProgressWords::new(session, Instant::now());
    let mut gone = false;
    let mut tell = |training: Training| {
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
