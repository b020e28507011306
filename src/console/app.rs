//! The state of the console and what changes it. Pure: no clock, no terminal, no thread.
//!
//! | module | what it is for |
//! |---|---|
//! | `screen` | what fills the screen, what is chosen on it, the ways between screens |
//! | `time` | looking back, marks, loops over the past, running ahead |
//! | `tune`, `tuning`, `turning` | knobs on trial and their consequences |
//! | `operator` | what an operator does about alarms |
//! | `prompt`, `line`, `command`, `goal`, `filter` | what is typed |
//! | `question`, `answer` | what is asked, and what becomes of the answer |
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
use super::text::clean;
use super::theme::Theme;
use super::training::Course;
use super::watched::Watched;
use super::window::ZOOMS;
use crate::engine::handle::{Command, EngineEvent, Load, OpenError};
use crate::engine::knob::{Knob, Scope};
use crate::engine::pace::{Pace, Speed};
use crate::engine::prepare::Prepared;
use crate::fact::Priority;
use crate::incident::{Action as Deed, What};
use crate::session::Session;

mod act;
mod answer;
pub(crate) mod command;
mod copied;
pub(crate) mod filter;
pub(super) mod goal;
mod line;
mod offers;
mod operator;
mod point;
pub(crate) mod prompt;
pub(crate) mod question;
mod screen;
mod time;
mod tune;
pub(crate) mod tuning;
pub(crate) mod turning;

pub(crate) use filter::Filter;
pub(crate) use prompt::Prompt;
pub(crate) use question::Question;
pub(crate) use screen::{Focus, Screen, Sorting};
pub(crate) use time::Playback;
pub(crate) use tuning::Tuning;

/// Seconds of a column at the start, where the data is not slower than that.
const FIRST_COLUMN_S: i64 = 30;
/// A number typed before a motion counts for so long.
const COUNTS_FOR: Duration = Duration::from_millis(600);
/// The largest such number.
const MOST: u32 = 999;

/// What is going on with the data.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Models are being made and the stream is being opened.
    Preparing,
    /// What lies before the place where playing begins is being read.
    Reading,
    /// Frames come at their pace.
    Playing,
    /// There are no more frames.
    Ended,
    /// There are no more frames because of this.
    Failed(OpenError),
}

/// A number typed before a motion, and where the digit led that may have meant a screen.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) number: u32,
    left: Duration,
    before: (Screen, Vec<Screen>, usize),
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
    /// What is watched, as its file says.
    pub(crate) subject: Session,
    /// The session's name, safe to show.
    pub(crate) name: String,
    /// The operator's name, as the log knows it.
    pub(crate) who: String,
    /// Noise is drawn from a seed, and so protects nothing.
    pub(crate) seeded: bool,
    /// The clock that data time is shown by.
    pub(crate) clock: Clock,
    /// The stretch that the seek bar stands for.
    pub(crate) day: Day,
    /// What is going on.
    pub(crate) stage: Stage,
    /// How the models were made, as far as it was told.
    pub(crate) course: Course,
    /// The models; nothing until they are made.
    pub(crate) prepared: Option<Arc<Prepared>>,
    /// What has been measured; nothing until the stream is open.
    pub(crate) measured: Option<Measured>,
    /// What the engine said; nothing until the stream is open.
    pub(crate) watched: Option<Watched>,
    /// Clients' names, safe to show.
    pub(crate) names: Vec<String>,
    raw_names: Vec<String>,
    /// What the engine's work costs.
    pub(crate) load: Load,
    /// How fast the replay goes, or that it stands.
    pub(crate) pace: Pace,
    /// The time ahead that is being run to.
    pub(crate) seeking: Option<Timestamp>,
    /// The moment looked back at; `None` follows the newest data.
    pub(crate) look: Option<Timestamp>,
    /// The past being played again.
    pub(crate) playback: Option<Playback>,
    /// Both ends of the loop, as far as they are set.
    pub(crate) between: [Option<Timestamp>; 2],
    /// Moments kept under a letter.
    pub(crate) marks: BTreeMap<char, Timestamp>,
    /// What fills the screen.
    pub(crate) screen: Screen,
    /// The screens above it, the overview first.
    pub(crate) trail: Vec<Screen>,
    /// Rows or sensors that are scrolled off at the top.
    pub(crate) scroll: usize,
    /// Which panel of the overview was chosen; [`Model::focus`] says which one it can be.
    focus: Focus,
    /// The order of clients.
    pub(crate) sorting: Sorting,
    pub(crate) chosen: usize,
    /// The incident pointed at; the newest when none is. See [`Model::chosen_incident`].
    incident: Option<u64>,
    /// The line of the log pointed at; the newest when none is.
    entry: Option<u64>,
    /// The knob pointed at.
    knob: Option<Knob>,
    /// What can be opened; empty until it was looked for.
    pub(crate) sessions: Vec<Openable>,
    /// The chosen one of them.
    pub(crate) session: usize,
    /// Which lines of the log are shown.
    pub(crate) filter: Filter,
    /// A knob on trial.
    pub(crate) tuning: Option<Tuning>,
    /// A line being typed.
    pub(crate) prompt: Option<Prompt>,
    /// Commands that were typed, the newest last.
    typed: Vec<String>,
    /// A question that stands.
    pub(crate) question: Option<Question>,
    /// The help, scrolled by so many lines, if it is open.
    pub(crate) help: Option<usize>,
    /// What the help is searched for.
    pub(crate) search: String,
    /// Whether the data set's own knowledge is shown.
    pub(crate) truth_shown: bool,
    /// What it looks like.
    pub(crate) theme: Theme,
    /// Which keys ask for what.
    pub(crate) keymap: Keymap,
    /// A key that began something of two keys.
    pub(crate) begun: Option<Key>,
    /// A number typed before a motion.
    pub(crate) count: Option<Count>,
    /// Whether the mouse is ours; else it is the terminal's own.
    pub(crate) mouse: bool,
    /// Whether a new P1 rings.
    pub(crate) bell: bool,
    /// What is said until the next key.
    pub(crate) remark: Option<Remark>,
    /// Place of the length of a column in [`ZOOMS`].
    zoom: usize,
}

/// What can happen to the console.
#[derive(Debug)]
pub(crate) enum Msg {
    /// The operator pressed a key.
    Key(Key),
    /// The operator pasted a text.
    Paste(String),
    /// The operator used the mouse.
    Point(Point),
    Report(EngineEvent),
    /// The file of keys was read, or is wrong for this reason: then what there was stays.
    Keys(Result<Keymap, String>),
    /// What can be opened.
    Sessions(Vec<Openable>),
    /// A wish could not be handed over: too many lie unread.
    Unheard(Command),
    /// So much time has passed on the wall since it was last told.
    Passed(Duration),
    /// Something was done outside.
    Done(Remark),
}

/// What the world outside shall do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Quit,
    /// Give the terminal to the shell until it is given back.
    Suspend,
    /// Draw every cell anew.
    Redraw,
    /// The feed shall do this.
    Command(Command),
    /// Leave this session for the one of that name.
    Open(String),
    /// Look for what can be opened.
    ListSessions,
    Bell,
    /// The mouse is ours from now on, or the terminal's own.
    Mouse(bool),
    /// This to the clipboard.
    Copy(String),
    /// The picture to files.
    Picture,
    /// Read the file of keys.
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
            course: Course::default(),
            prepared: None,
            measured: None,
            watched: None,
            names: Vec::new(),
            raw_names: Vec::new(),
            load: Load::default(),
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
            sessions: Vec::new(),
            session: 0,
            filter: Filter::default(),
            tuning: None,
            prompt: None,
            typed: Vec::new(),
            question: None,
            help: None,
            search: String::new(),
            truth_shown: false,
            theme,
            keymap: Keymap::default(),
            begun: None,
            count: None,
            mouse: true,
            bell: false,
            remark: None,
            zoom: first_zoom(FIRST_COLUMN_S),
        }
    }

    /// Goes to the screen that one of [`SCREENS`] chooses.
    pub(crate) fn choose_screen(&mut self, action: Action) -> Option<Effect> {
        act::act(self, action)
    }

    /// The instant of the newest data.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.measured.as_ref()?.history.last()
    }

    /// The instant that values are shown of.
    pub(crate) fn moment(&self) -> Option<Timestamp> {
        self.look.or_else(|| self.newest())
    }

    /// Seconds of a column.
    pub(crate) fn column_s(&self) -> i64 {
        ZOOMS[self.zoom]
    }

    /// The chosen client, once there is one.
    pub(crate) fn chosen_client(&self) -> Option<&Client> {
        self.measured.as_ref()?.clients.get(self.chosen)
    }

    /// What an operator did last, in words; what was undone by its own. What came of it may stand
    /// behind it in the log.
    fn last_deed(&self) -> Option<String> {
        let watched = self.watched.as_ref()?;
        let deed = watched.log.iter().rev().find(|entry| matches!(entry.what, What::Did(_)))?;
        let words = watched.words(deed, &self.names);
        let knob = match &deed.what {
            What::Did(Deed::Set { what, .. }) => Knob::named(what, &self.raw_names),
            _ => None,
        };
        // Flags of the past have just changed before his eyes.
        let judged = watched.judged_until().is_some()
            && knob.is_some_and(|knob| knob.row().scope == Scope::Flags);
        Some(if judged { format!("{words}; the flags so far are re-judged by it") } else { words })
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
        Msg::Report(report) => return learn(model, report),
        Msg::Paste(text) => model.paste(&text),
        Msg::Keys(Ok(keymap)) => model.keymap = keymap,
        Msg::Keys(Err(why)) => {
            let text = format!("{why}; the keys stay as they were");
            model.remark = Some(Remark::failed(&text));
        }
        Msg::Sessions(sessions) => model.sessions = sessions,
        Msg::Unheard(wish) => {
            if let (Command::WhatIf(_), Some(tuning)) = (&wish, &mut model.tuning) {
                tuning.unasked();
            }
            model.remark = Some(Remark::failed("the engine is busy; try again"));
        }
        Msg::Passed(wall) => model.pass(wall),
        Msg::Done(remark) => model.remark = Some(remark),
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
    let count = model.count.take();
    let digit = key.typed().and_then(|c| c.to_digit(10));
    let meaning = model.keymap.meaning(model.begun.take(), key);
    if let Some(digit) = digit.filter(|_| model.help.is_none()) {
        return count_digit(model, count, digit, meaning);
    }
    match (meaning, count) {
        (Meaning::Do(action), Some(count)) if is_counted(action) => {
            // The digits were a number and not screens.
            (model.screen, model.trail, model.scroll) = count.before;
            let times = 0..count.number.max(1);
            times.fold(None, |effect, _| act::act(model, action).or(effect))
        }
        (Meaning::Do(action), _) => act::act(model, action),
        (Meaning::Begins, _) => {
            model.begun = Some(key);
            None
        }
        (Meaning::Nothing, _) => None,
    }
}

/// A digit chooses a screen at once, and is a number if a motion follows soon.
fn count_digit(
    model: &mut Model,
    count: Option<Count>,
    digit: u32,
    meaning: Meaning,
) -> Option<Effect> {
    let before = (model.screen, model.trail.clone(), model.scroll);
    let (number, before) = match count {
        Some(count) => ((count.number * 10 + digit).min(MOST), count.before),
        None => (digit, before),
    };
    model.count = (number > 0).then_some(Count { number, left: COUNTS_FOR, before });
    match meaning {
        Meaning::Do(action) => act::act(model, action),
        Meaning::Begins | Meaning::Nothing => None,
    }
}

/// Motions that a number repeats. Up and down are not: `3` and down is a screen and a row of it.
fn is_counted(action: Action) -> bool {
    matches!(
        action,
        Action::Back
            | Action::Forward
            | Action::FarBack
            | Action::FarForward
            | Action::PreviousIncident
            | Action::NextIncident
            | Action::TurnUp
            | Action::TurnDown
    )
}

fn learn(model: &mut Model, report: EngineEvent) -> Option<Effect> {
    match report {
        EngineEvent::Notice(notice) => model.remark = Some(Remark::done(&notice)),
        EngineEvent::Training(training) => model.course.take(training),
        EngineEvent::Opened(opened) => {
            let clients = &opened.layout.clients;
            model.raw_names = clients.iter().map(|client| client.name.clone()).collect();
            model.names = model.raw_names.iter().map(|name| clean(name)).collect();
            model.measured = Some(Measured::new(&opened));
            model.watched = Some(Watched::new(clients.len(), opened.period_s));
            model.prepared = opened.prepared;
            model.stage = Stage::Reading;
            model.zoom = model.zoom.max(model.finest_zoom());
        }
        EngineEvent::News(bulletin) => {
            if let Some(measured) = &mut model.measured {
                bulletin.news.frames.iter().for_each(|frame| measured.take(frame));
            }
            let mut rings = false;
            if let Some(watched) = &mut model.watched {
                let known = |number| watched.incident(number).map(|incident| incident.priority);
                rings = bulletin.news.incidents.iter().any(|incident| {
                    incident.priority == Priority::P1
                        && known(incident.number) != Some(Priority::P1)
                });
                watched.take(&bulletin.news);
                watched.snapshot = bulletin.snapshot.or(watched.snapshot.take());
            }
            model.load = bulletin.load;
            if model.seeking.is_some_and(|goal| model.newest().is_some_and(|now| now >= goal)) {
                model.seeking = None;
            }
            let live = matches!(model.stage, Stage::Playing) && model.seeking.is_none();
            return (rings && model.bell && live).then_some(Effect::Bell);
        }
        EngineEvent::Ordered(Ok(())) => {
            model.remark = model.last_deed().map(|said| Remark::done(&said));
            // A knob that was set elsewhere is no longer where the trial began.
            model.tuning = None;
        }
        EngineEvent::Ordered(Err(why)) => model.remark = Some(Remark::failed(&why)),
        EngineEvent::Tried(found) => {
            let tuning = model.tuning.as_mut()?;
            tuning.hear(*found);
            if let Some(watched) = &mut model.watched {
                watched.try_out(tuning.ghost_flags());
            }
            return tuning.ask().map(|turn| Effect::Command(Command::WhatIf(turn)));
        }
        EngineEvent::Playing => model.stage = Stage::Playing,
        // The picture is complete: nothing follows.
        EngineEvent::Stopped => {}
        EngineEvent::Ended(_) => {
            model.seeking = None;
            model.stage = Stage::Ended;
        }
        EngineEvent::Failed(error) => {
            model.seeking = None;
            model.stage = Stage::Failed(error);
        }
    }
    None
}
