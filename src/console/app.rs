//! The state of the console and what changes it. Pure: no clock, no terminal, no thread.
//!
//! | module | what it is for |
//! |---|---|
//! | `screen` | what fills the screen, what is chosen on it, the ways between screens |
//! | `time` | looking back, marks, loops over the past, running ahead |
//! | `tune`, `tuning`, `turning` | knobs on trial and their consequences |
//! | `again`, `beside` | a recording run again with another setting; two days under one cursor |
//! | `operator` | what an operator does about alarms |
//! | `prompt`, `line`, `command`, `goal`, `filter` | what is typed |
//! | `question`, `answer` | what is asked, and what becomes of the answer |
//! | `report` | what the engine reports |
//! | `act`, `offers` | what every action does, and where it does anything |
//! | `point`, `copied` | the mouse, the clipboard |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::action::Action;
use super::clock::Clock;
use super::day::Day;
use super::key::Key;
use super::keymap::{Keymap, Meaning};
use super::measured::{Client, Measured};
use super::mouse::Point;
use super::remark::Remark;
use super::sessions::Openable;
use super::subject::Reach;
use super::text::clean;
use super::theme::Theme;
use super::training::Course;
use super::watched::Watched;
use super::window::ZOOMS;
use crate::engine::branch::Branch;
use crate::engine::handle::{Command, EngineEvent, Load, OpenError, RecordState};
use crate::engine::knob::{Knob, Scope, Turn};
use crate::engine::pace::{Pace, Speed};
use crate::engine::prepare::Prepared;
use crate::engine::watch::Snapshot;
use crate::federation::History;
use crate::incident::{OperatorAction, What};
use crate::score::Score;
use crate::session::Session;
use crate::stream::live::status::Shown;

mod act;
mod again;
mod answer;
mod beside;
pub(crate) mod command;
mod copied;
mod filter;
pub(super) mod goal;
mod line;
mod offers;
mod operator;
mod point;
pub(crate) mod prompt;
pub(crate) mod question;
mod report;
mod screen;
mod time;
mod tune;
pub(crate) mod tuning;
pub(crate) mod turning;

pub(crate) use filter::Filter;
pub(crate) use goal::Goal;
pub(crate) use prompt::Prompt;
pub(crate) use question::Question;
pub(crate) use screen::{Focus, Screen, Sorting};
pub(crate) use time::Playback;
pub(crate) use tuning::Tuning;

/// Seconds of a column at the start, where the data is not slower than that.
const FIRST_COLUMN_S: i64 = 30;

/// What is going on with the data.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Models are being made and the stream is being opened.
    Preparing,
    /// What lies before the place where playing begins is being read.
    Reading,
    Playing,
    Ended,
    Failed(OpenError),
}

/// The actions that choose a screen, in the order of the digits.
pub(crate) const SCREENS: [Action; 8] = [
    Action::ShowOverview,
    Action::ShowClient,
    Action::ShowInfluence,
    Action::ShowIncident,
    Action::ShowTraining,
    Action::ShowPrivacy,
    Action::ShowLog,
    Action::ShowSessions,
];

/// Everything the screen depends on.
// Switches of the screen, each on its own.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug)]
pub(crate) struct Model {
    pub subject: Session,
    pub name: String,
    pub who: String,
    /// Noise is drawn from a seed, and so protects nothing.
    pub seeded: bool,
    /// The clock that data time is shown by.
    pub clock: Clock,
    /// The stretch that the seek bar stands for.
    pub day: Day,
    pub stage: Stage,
    /// How good the alarms were, once labelled data is over.
    pub score: Option<Score>,
    /// The course of training so far.
    pub course: Course,
    pub prepared: Option<Arc<Prepared>>,
    /// The course of training, where no models hold it.
    pub losses: Option<History>,
    /// What has been measured; nothing until the stream is open.
    pub measured: Option<Measured>,
    /// The engine's output; nothing until the stream is open.
    pub watched: Option<Watched>,
    /// Clients' names, safe to show; and as the data has them.
    pub names: Vec<String>,
    raw_names: Vec<String>,
    pub load: Load,
    /// Measurements arrive now: they go at their own speed.
    pub is_live: bool,
    /// What is shown is the run of a service, and this may be done there.
    pub service: Option<Reach>,
    /// How their source stands, as far as it is known.
    pub live: Option<Box<Shown>>,
    pub pace: Pace,
    /// The time ahead that is being run to.
    pub seeking: Option<Timestamp>,
    /// The moment looked back at; `None` follows the newest data.
    pub look: Option<Timestamp>,
    pub playback: Option<Playback>,
    /// Both ends of the loop, as far as they are set.
    pub between: [Option<Timestamp>; 2],
    pub marks: BTreeMap<char, Timestamp>,
    pub screen: Screen,
    pub trail: Vec<Screen>,
    /// Rows or sensors that are scrolled off at the top.
    pub scroll: usize,
    /// Which panel of the overview was chosen; [`Model::focus`] says which one it can be.
    focus: Focus,
    pub sorting: Sorting,
    pub chosen: usize,
    /// The incident pointed at; the newest when none is. See [`Model::chosen_incident`].
    incident: Option<u64>,
    /// The line of the log pointed at; the newest when none is.
    entry: Option<u64>,
    knob: Option<Knob>,
    /// The knobs as the session has them.
    as_written: Vec<Turn>,
    /// What can be opened; empty until it was looked for.
    pub sessions: Vec<Openable>,
    pub session: usize,
    pub filter: Filter,
    pub tuning: Option<Tuning>,
    /// A recording that was run again with another setting, while that is shown.
    pub branch: Option<Box<Branch>>,
    pub prompt: Option<Prompt>,
    typed: Vec<String>,
    pub question: Option<Question>,
    pub help: Option<usize>,
    pub search: String,
    pub truth_shown: bool,
    /// What is protected, in words.
    pub prose: bool,
    /// Place of the length of a column before the close-up, while there is one.
    close_up: Option<usize>,
    pub theme: Theme,
    pub keymap: Keymap,
    pub begun: Option<Key>,
    pub mouse: bool,
    pub bell: bool,
    pub remark: Option<Remark>,
    /// The place in time that the console was opened at, until it is reached.
    pub open_at: Option<Goal>,
    /// What is shown is a recording: it is over, and nothing can be done about it.
    pub is_recording: bool,
    /// Whether the run is recorded; none where no recording was asked for.
    pub recording: Option<RecordState>,
    /// Place of the length of a column in [`ZOOMS`].
    zoom: usize,
}

#[derive(Debug)]
pub(crate) enum Msg {
    Key(Key),
    Paste(String),
    Point(Point),
    Report(EngineEvent),
    /// The file of keys was read, or is wrong for this reason: then what there was stays.
    Keys(Result<Keymap, String>),
    Sessions(Vec<Openable>),
    /// The session of this name can be opened.
    HasData(String),
    /// A command was not handed over, for this reason.
    Unheard(Command, &'static str),
    /// Wall time since the last such message.
    Passed(Duration),
    Done(Remark),
    /// The session's file has these settings now.
    Written(Vec<Turn>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Quit,
    /// Give the terminal to the shell until it is given back.
    Suspend,
    Redraw,
    Command(Command),
    /// Several commands, in their order.
    Commands(Vec<Command>),
    Open(String),
    /// See whether a session has data before it is asked whether to open it.
    CheckData(String),
    ListSessions,
    Bell,
    Mouse(bool),
    Copy(String),
    Picture,
    /// Write these settings into the session's file.
    Write(Vec<Turn>),
    ReadKeys,
}

impl Model {
    /// The console before anything is known but the session.
    // It is kept.
    #[allow(clippy::large_types_passed_by_value)]
    pub(crate) fn new(session: &Session, theme: Theme) -> Self {
        let clock = Clock::of(session);
        Self {
            subject: session.clone(),
            name: clean(&session.name),
            who: "operator".into(),
            seeded: session.is_seeded(),
            clock,
            day: Day::of(session, clock),
            stage: Stage::Preparing,
            score: None,
            course: Course::default(),
            prepared: None,
            losses: None,
            measured: None,
            watched: None,
            names: Vec::new(),
            raw_names: Vec::new(),
            load: Load::default(),
            is_live: session.live().is_some(),
            service: None,
            live: None,
            pace: Pace { speed: Speed::new(session.replay.speed), paused: false },
            seeking: None,
            look: None,
            playback: None,
            between: [None, None],
            marks: BTreeMap::new(),
            screen: Screen::Overview,
            trail: Vec::new(),
            scroll: 0,
            focus: Focus::Incidents,
            sorting: Sorting::Plant,
            chosen: 0,
            incident: None,
            entry: None,
            knob: None,
            as_written: Vec::new(),
            sessions: Vec::new(),
            session: 0,
            filter: Filter::default(),
            tuning: None,
            branch: None,
            prompt: None,
            typed: Vec::new(),
            question: None,
            help: None,
            search: String::new(),
            truth_shown: false,
            prose: false,
            close_up: None,
            theme,
            keymap: Keymap::default(),
            begun: None,
            mouse: true,
            bell: false,
            remark: None,
            open_at: None,
            is_recording: false,
            recording: None,
            zoom: first_zoom(FIRST_COLUMN_S),
        }
    }

    pub(crate) fn choose_screen(&mut self, action: Action) -> Option<Effect> {
        act::act(self, action)
    }

    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.measured.as_ref()?.history.last()
    }

    /// The instant that values are shown of.
    pub(crate) fn moment(&self) -> Option<Timestamp> {
        self.look.or_else(|| self.newest())
    }

    pub(crate) fn column_s(&self) -> i64 {
        ZOOMS[self.zoom]
    }

    pub(crate) fn chosen_client(&self) -> Option<&Client> {
        self.measured.as_ref()?.clients.get(self.chosen)
    }

    /// What an operator did last, in words; what was undone by its own. What came of it may stand
    /// behind it in the log.
    fn last_deed(&self) -> Option<String> {
        let watched = self.watched.as_ref()?;
        let deed = watched.log.iter().rev().find(|entry| matches!(entry.what, What::Did(_)))?;
        let words = watched.words(deed, &self.names);
        // Flags of the past may have just changed on the screen.
        if watched.judged_until().is_some()
            && let What::Did(OperatorAction::Set { what, .. }) = &deed.what
            && let Some(knob) = Knob::named(what, &self.raw_names)
            && knob.row().scope == Scope::Flags
        {
            return Some(format!("{words}; the flags so far are re-judged by it"));
        }
        Some(words)
    }

    /// How everything stood after the last step; nothing before the first.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.watched.as_ref()?.snapshot.as_ref()
    }

    /// Goes to the place in time that the console was opened at.
    fn go_where_opened(&mut self) -> Option<Effect> {
        let goal = self.open_at.take()?;
        self.go(goal).unwrap_or_else(|why| {
            self.failure(why);
            None
        })
    }

    fn message(&mut self, text: impl AsRef<str>) {
        self.remark = Some(Remark::done(text.as_ref()));
    }

    fn failure(&mut self, text: impl AsRef<str>) {
        self.remark = Some(Remark::failed(text.as_ref()));
    }

    fn finest_zoom(&self) -> usize {
        let period = self.measured.as_ref().map_or(1.0, |m| m.history.period().as_secs_f64());
        first_zoom(period.ceil() as i64)
    }
}

fn first_zoom(at_least_s: i64) -> usize {
    ZOOMS.iter().position(|column_s| *column_s >= at_least_s).unwrap_or(ZOOMS.len() - 1)
}

/// What `msg` makes of `model`, and what is to be done about it outside.
pub(crate) fn update(model: &mut Model, msg: Msg) -> Option<Effect> {
    match msg {
        Msg::Key(key) => return press(model, key),
        Msg::Point(point) => return point::take(model, &point),
        Msg::Report(report) => return report::learn(model, report),
        Msg::Paste(text) => model.paste(&text),
        Msg::Keys(Ok(keymap)) => model.keymap = keymap,
        Msg::Keys(Err(why)) => {
            model.failure(format!("{why}; the keys stay as they were"));
        }
        Msg::Sessions(sessions) => model.sessions = sessions,
        Msg::HasData(name) => model.question = Some(Question::Open(name)),
        Msg::Unheard(wish, why) => {
            if let (Command::WhatIf(_), Some(tuning)) = (&wish, &mut model.tuning) {
                tuning.unasked();
            }
            model.failure(why);
        }
        Msg::Passed(wall) => model.pass(wall),
        Msg::Done(remark) => model.remark = Some(remark),
        Msg::Written(turns) => {
            for turn in turns {
                model.as_written.retain(|known| known.knob != turn.knob);
                model.as_written.push(turn);
            }
        }
    }
    None
}

fn press(model: &mut Model, key: Key) -> Option<Effect> {
    model.remark = None;
    if (model.prompt.is_some() || model.question.is_some()) && key.typed().is_none() {
        // What concerns the program itself works while something is typed, too.
        let program = [Action::QuitNow, Action::Suspend, Action::Redraw];
        if let Meaning::Do(action) = model.keymap.meaning(None, key)
            && program.contains(&action)
        {
            return act::act(model, action);
        }
    }
    if let Some(prompt) = model.prompt.take() {
        return model.type_key(prompt, key);
    }
    if let Some(question) = model.question.take() {
        return model.answer(question, key);
    }
    match model.keymap.meaning(model.begun.take(), key) {
        Meaning::Do(action) => act::act(model, action),
        Meaning::Begins => {
            model.begun = Some(key);
            None
        }
        Meaning::Nothing => None,
    }
}
