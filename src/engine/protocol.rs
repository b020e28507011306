//! Commands and options of a running engine, and its events.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::civil::Time;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::branch::Branch;
use super::error::OpenError;
pub(crate) use super::kept_run::{RecordState, RecordTo};
use super::knob::Turn;
use super::pace::{Pace, Speed};
use super::prepare::Prepared;
use super::progress::Training;
use super::run::what_if::NoAnswer;
use super::run::{Ending, WhatIf};
use super::watch::{News, Snapshot, Watch};
use crate::fact::Fact;
use crate::federation::History;
use crate::incident::Order;
use crate::session::{Clock, Mark, Mode};
use crate::stream::live::status::Shown;
use crate::stream::{Event, Layout};

/// The layout of the stream, and its known disturbances.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) layout: Layout,
    pub(crate) events: Vec<Event>,
    /// Seconds between two steps of the engine.
    pub(crate) period_s: f64,
    /// The same clients at the pace of the engine's steps.
    pub(crate) steps: Layout,
    pub(crate) prepared: Option<Arc<Prepared>>,
    /// The course of training, where a recording holds that and no models.
    pub(crate) losses: Option<History>,
    /// The thresholds of every client, as facts.
    pub(crate) calibrated: Vec<Fact>,
}

impl Opened {
    /// Describes `watch` before its first step.
    pub(crate) fn of(watch: &Watch, prepared: Option<Arc<Prepared>>) -> Self {
        Self {
            layout: watch.measurements().clone(),
            events: watch.events().to_vec(),
            period_s: watch.period_s(),
            steps: watch.run().layout().clone(),
            losses: watch.recorded_losses().cloned().filter(|_| prepared.is_none()),
            prepared,
            calibrated: watch.calibrated(),
        }
    }
}

/// The cost of the engine's work.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Mean time of a step.
    pub(crate) step: Duration,
    /// How far the replay is behind its pace.
    pub(crate) behind: Duration,
}

/// New facts and frames, and the state after them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Update {
    pub(crate) news: News,
    /// How everything stands, where that may have changed.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) load: Load,
    /// How a live source stands, where the session has one and that may have changed.
    pub(crate) live: Option<Box<Shown>>,
}

/// The day so far as it would have been with one knob turned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tried {
    /// The knob with its value on trial.
    pub(crate) turn: Turn,
    /// The day so far as it was.
    pub(crate) before: WhatIf,
    /// The run as it would have been, or why that is not known.
    pub(crate) after: Result<WhatIf, NoAnswer>,
}

/// The events of the engine, in this order.
#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// Something that is worth knowing about the files of this run; it goes on.
    Notice(String),
    /// Whether the run is recorded, wherever that changes.
    Recording(RecordState),
    Training(Training),
    Opened(Box<Opened>),
    /// Measurements and decisions, in their order.
    News(Box<Update>),
    /// Everything before the place where playing begins has been sent.
    Playing,
    /// An order was carried out, or not for this reason. What it changed came before.
    Ordered(Result<(), String>),
    /// The effect of turning a knob.
    Tried(Box<Tried>),
    /// A recording with another setting, or why that is not known.
    Branched(Result<Box<Branch>, String>),
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
            | Self::Recording(_)
            | Self::Training(_)
            | Self::Opened(_)
            | Self::News(_)
            | Self::Playing
            | Self::Ordered(_)
            | Self::Tried(_)
            | Self::Branched(_) => false,
        }
    }
}

/// A command to the engine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// It goes like this from now on.
    Pace(Pace),
    /// One step, and then it stands.
    Step,
    /// At full speed to this time, and then as before.
    RunTo(Timestamp),
    Order(Order),
    /// Asks for the effect of a knob.
    WhatIf(Turn),
    /// The same where it costs something: it is paid for.
    WhatIfPaid(Turn),
    /// Run the recording again from here with this setting.
    Branch {
        from: Timestamp,
        turn: Turn,
    },
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
    /// Consoles may join a run of facts: measurements and how everything stands travel with them.
    pub(crate) shown: bool,
    /// Steps may be sent together; otherwise each is an event of its own.
    pub(crate) batched: bool,
    /// Where the ledgers' lines are stored before any fact about them. When absent,
    /// a session with a budget for the whole history has a file of its own.
    pub(crate) ledger: Option<PathBuf>,
    /// Where the run is recorded, if it is.
    pub(crate) record: Option<RecordTo>,
    /// Raised when the run shall end as soon as possible.
    pub(crate) interrupt: Option<Arc<AtomicBool>>,
    /// Models that are made already.
    pub(crate) prepared: Option<Arc<Prepared>>,
    /// Whether facts go to the outputs of the session.
    pub(crate) outputs: SendFacts,
}

/// Whether facts go to the outputs of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendFacts {
    No,
    /// To all but commands: a session that names one is refused.
    ExceptCommands,
    Everywhere,
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
            shown: false,
            batched: true,
            ledger: None,
            record: None,
            interrupt: None,
            prepared: None,
            outputs: SendFacts::ExceptCommands,
        }
    }

    /// For a study: models that are made already, full speed, every step an event of its own.
    pub(crate) fn study(prepared: Arc<Prepared>) -> Self {
        Self {
            prepared: Some(prepared),
            batched: false,
            outputs: SendFacts::No,
            ..Self::facts(Speed::Max)
        }
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

impl Moment {
    /// The place in a stream whose first frame is at `first`; `clock` is the clock of the data.
    pub(crate) fn mark(self, clock: Clock, first: Timestamp) -> Mark {
        match self {
            Self::Mark(mark) => mark,
            Self::Clock(shown) => {
                let begun = clock.civil(first);
                let days = Span::new().days(i64::from(shown < begun.time()));
                Mark::At(begun.date().to_datetime(shown).saturating_add(days))
            }
        }
    }
}
