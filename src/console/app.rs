//! The state of the console and what changes it. Pure: no clock, no terminal, no thread.

use jiff::{SignedDuration, Timestamp};

use super::action::Action;
use super::clock::Clock;
use super::day::Day;
use super::feed::{OpenError, Report};
use super::key::Key;
use super::keymap::{Keymap, Meaning};
use super::measured::{Client, Measured};
use super::mouse::Point;
use super::pace::{Pace, Speed};
use super::remark::Remark;
use super::text::clean;
use super::theme::Theme;
use super::training::Course;
use super::window::ZOOMS;
use crate::session::{Session, Source};

mod copied;
mod point;

/// Seconds of a column at the start, where the data is not slower than that.
const FIRST_COLUMN_S: i64 = 30;
/// Columns of a large step through time.
const FAR: i32 = 20;
/// Sensors, or lines of the help, that a page moves by.
const PAGE: usize = 6;

/// What is going on with the data.
#[derive(Debug)]
pub enum Stage {
    /// Models are being made and the stream is being opened.
    Preparing(Course),
    /// What lies before the place where playing begins is being read.
    Reading,
    /// Frames come at their pace.
    Playing,
    /// There are no more frames.
    Ended,
    /// There are no more frames because of this.
    Failed(OpenError),
}

/// What fills the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// All clients.
    Overview,
    /// The chosen client alone; sensors before `skip` are scrolled off.
    Client {
        /// First sensor shown.
        skip: usize,
    },
}

/// Everything the screen depends on.
#[derive(Debug)]
pub struct Model {
    /// The session's name, safe to show.
    pub name: String,
    /// The source is built in and driven by a seed.
    pub seeded: bool,
    /// The clock that data time is shown by.
    pub clock: Clock,
    /// The stretch that the seek bar stands for.
    pub day: Day,
    /// What is going on.
    pub stage: Stage,
    /// What has been measured; nothing until the stream is open.
    pub measured: Option<Measured>,
    /// How fast the replay goes, or that it stands.
    pub pace: Pace,
    /// The moment looked back at; `None` follows the newest data.
    pub look: Option<Timestamp>,
    /// The chosen client.
    pub chosen: usize,
    /// What fills the screen.
    pub screen: Screen,
    /// The help, scrolled by so many lines, if it is open.
    pub help: Option<usize>,
    /// Whether the data set's own knowledge is shown.
    pub truth_shown: bool,
    /// What it looks like.
    pub theme: Theme,
    /// Which keys ask for what.
    pub keymap: Keymap,
    /// A key that began something of two keys.
    pub begun: Option<Key>,
    /// Whether the mouse is ours; else it is the terminal's own.
    pub mouse: bool,
    /// What is said until the next key.
    pub remark: Option<Remark>,
    /// Place of the length of a column in [`ZOOMS`].
    zoom: usize,
}

/// What can happen to the console.
#[derive(Debug)]
pub enum Msg {
    /// The operator pressed a key.
    Key(Key),
    /// The operator used the mouse.
    Point(Point),
    /// The stream reported.
    Report(Report),
    /// The file of keys was read, or is wrong for this reason: then what there was stays.
    Keys(Result<Keymap, String>),
    /// Something was done outside.
    Done(Remark),
}

/// What the world outside shall do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// End the program.
    Quit,
    /// Give the terminal to the shell until it is given back.
    Suspend,
    /// Draw every cell anew.
    Redraw,
    /// The replay goes like this from now on.
    Pace(Pace),
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
    #[must_use]
    pub fn new(session: &Session, theme: Theme) -> Self {
        let clock = Clock::of(session);
        Self {
            name: clean(&session.name),
            seeded: matches!(session.source, Source::Plant(_) | Source::Twin(_)),
            clock,
            day: Day::of(session, clock),
            stage: Stage::Preparing(Course::default()),
            measured: None,
            pace: Pace { speed: Speed::new(session.replay.speed), paused: false },
            look: None,
            chosen: 0,
            screen: Screen::Overview,
            help: None,
            truth_shown: false,
            theme,
            keymap: Keymap::default(),
            begun: None,
            mouse: true,
            remark: None,
            zoom: first_zoom(FIRST_COLUMN_S),
        }
    }

    /// The instant of the newest data.
    #[must_use]
    pub fn newest(&self) -> Option<Timestamp> {
        self.measured.as_ref()?.history.last()
    }

    /// The instant that values are shown of.
    #[must_use]
    pub fn moment(&self) -> Option<Timestamp> {
        self.look.or_else(|| self.newest())
    }

    /// Seconds of a column.
    #[must_use]
    pub fn column_s(&self) -> i64 {
        ZOOMS[self.zoom]
    }

    /// The chosen client, once there is one.
    #[must_use]
    pub fn chosen_client(&self) -> Option<&Client> {
        self.measured.as_ref()?.clients.get(self.chosen)
    }

    /// Whether `action` would change anything here and now; the bottom line shows only such.
    #[must_use]
    pub fn offers(&self, action: Action) -> bool {
        let on_data = self.newest().is_some() && self.help.is_none();
        match action {
            Action::Pause | Action::Faster | Action::Slower => {
                self.help.is_none() && matches!(self.stage, Stage::Playing | Stage::Reading)
            }
            Action::Live => on_data && self.look.is_some(),
            Action::Open => on_data && self.screen == Screen::Overview,
            Action::Close => self.help.is_some() || self.screen != Screen::Overview,
            Action::PageDown | Action::PageUp => {
                self.help.is_some() || self.screen != Screen::Overview
            }
            Action::NextClient | Action::PreviousClient => {
                on_data && self.measured.as_ref().is_some_and(|m| m.clients.len() > 1)
            }
            Action::Truth => on_data && self.measured.as_ref().is_some_and(|m| m.truth.is_known()),
            Action::Help => self.help.is_none(),
            Action::Copy => on_data,
            Action::Quit
            | Action::QuitNow
            | Action::Redraw
            | Action::Suspend
            | Action::Theme
            | Action::Mouse
            | Action::Picture
            | Action::Keys => true,
            Action::Back
            | Action::Forward
            | Action::FarBack
            | Action::FarForward
            | Action::Start
            | Action::ZoomIn
            | Action::ZoomOut => on_data,
        }
    }

    fn finest_zoom(&self) -> usize {
        let period = self.measured.as_ref().map_or(1.0, |m| m.history.period().as_secs_f64());
        first_zoom(period.ceil() as i64)
    }

    /// Moves the look by `columns`; at the newest data it follows again.
    fn look_by(&mut self, columns: i32) {
        let (Some(moment), Some(newest), Some(first)) = (
            self.moment(),
            self.newest(),
            self.measured.as_ref().and_then(|measured| measured.history.first()),
        ) else {
            return;
        };
        let step = SignedDuration::from_secs(self.column_s()) * columns;
        let end = if columns < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let moment = moment.checked_add(step).unwrap_or(end).max(first);
        self.look = (moment < newest).then_some(moment);
    }

    /// Chooses the next client, or the one before, in a circle.
    fn choose(&mut self, forward: bool) {
        let clients = self.measured.as_ref().map_or(0, |measured| measured.clients.len());
        if clients > 0 {
            self.chosen = (self.chosen + if forward { 1 } else { clients - 1 }) % clients;
        }
        if let Screen::Client { skip } = &mut self.screen {
            *skip = 0;
        }
    }

    fn page(&mut self, forward: bool) {
        let last_sensor = self.chosen_client().map_or(0, |c| c.sensors.len().saturating_sub(1));
        let turn = |at: &mut usize, last: usize| {
            *at = if forward { (*at + PAGE).min(last) } else { at.saturating_sub(PAGE) };
        };
        match (&mut self.help, &mut self.screen) {
            (Some(line), _) => turn(line, super::action::TABLE.len()),
            (None, Screen::Client { skip }) => turn(skip, last_sensor),
            (None, Screen::Overview) => {}
        }
    }

    /// One level up; `false` at the top.
    fn close(&mut self) -> bool {
        if self.help.take().is_some() {
            return true;
        }
        std::mem::replace(&mut self.screen, Screen::Overview) != Screen::Overview
    }
}

fn first_zoom(at_least_s: i64) -> usize {
    ZOOMS.iter().position(|column_s| *column_s >= at_least_s).unwrap_or(ZOOMS.len() - 1)
}

/// What `msg` makes of `model`, and what is to be done about it outside.
pub fn update(model: &mut Model, msg: Msg) -> Option<Effect> {
    match msg {
        Msg::Key(key) => press(model, key),
        Msg::Point(point) => point::take(model, &point),
        Msg::Report(report) => {
            learn(model, report);
            None
        }
        Msg::Keys(read) => {
            match read {
                Ok(keymap) => model.keymap = keymap,
                Err(why) => {
                    let text = format!("{why}; the keys stay as they were");
                    model.remark = Some(Remark::failed(&text));
                }
            }
            None
        }
        Msg::Done(remark) => {
            model.remark = Some(remark);
            None
        }
    }
}

fn press(model: &mut Model, key: Key) -> Option<Effect> {
    model.remark = None;
    match model.keymap.meaning(model.begun.take(), key) {
        Meaning::Do(action) => act(model, action),
        Meaning::Begins => {
            model.begun = Some(key);
            None
        }
        Meaning::Nothing => None,
    }
}

fn act(model: &mut Model, action: Action) -> Option<Effect> {
    match action {
        Action::Pause => {
            model.pace.paused = !model.pace.paused;
            return Some(Effect::Pace(model.pace));
        }
        Action::Faster => {
            model.pace.speed = model.pace.speed.faster();
            return Some(Effect::Pace(model.pace));
        }
        Action::Slower => {
            model.pace.speed = model.pace.speed.slower();
            return Some(Effect::Pace(model.pace));
        }
        Action::Back => model.look_by(-1),
        Action::Forward => model.look_by(1),
        Action::FarBack => model.look_by(-FAR),
        Action::FarForward => model.look_by(FAR),
        Action::Start => model.look_by(i32::MIN),
        Action::Live => model.look = None,
        Action::ZoomIn => {
            model.zoom = model.zoom.saturating_sub(1).max(model.finest_zoom()).min(model.zoom);
        }
        Action::ZoomOut => model.zoom = (model.zoom + 1).min(ZOOMS.len() - 1),
        Action::NextClient => model.choose(true),
        Action::PreviousClient => model.choose(false),
        Action::Open => {
            if model.chosen_client().is_some() && model.screen == Screen::Overview {
                model.screen = Screen::Client { skip: 0 };
            }
        }
        Action::Close => {
            model.close();
        }
        Action::PageDown => model.page(true),
        Action::PageUp => model.page(false),
        Action::Truth => model.truth_shown = !model.truth_shown,
        Action::Help => model.help = if model.help.is_some() { None } else { Some(0) },
        Action::Theme => {
            model.theme = model.theme.next();
            let name = model.theme.choice.name();
            model.remark = Some(Remark::done(&format!("theme: {name}")));
        }
        Action::Mouse => {
            model.mouse = !model.mouse;
            return Some(Effect::Mouse(model.mouse));
        }
        Action::Copy => return copied::text(model).map(Effect::Copy),
        Action::Picture => return Some(Effect::Picture),
        Action::Keys => return Some(Effect::ReadKeys),
        Action::Redraw => return Some(Effect::Redraw),
        Action::Suspend => return Some(Effect::Suspend),
        Action::Quit => return (!model.close()).then_some(Effect::Quit),
        Action::QuitNow => return Some(Effect::Quit),
    }
    None
}

fn learn(model: &mut Model, report: Report) {
    match report {
        Report::Training(training) => {
            if let Stage::Preparing(course) = &mut model.stage {
                course.take(training);
            }
        }
        Report::Opened(opened) => {
            model.measured = Some(Measured::new(&opened));
            model.stage = Stage::Reading;
            model.zoom = model.zoom.max(model.finest_zoom());
        }
        Report::Frames(frames) => {
            if let Some(measured) = &mut model.measured {
                for frame in &frames {
                    measured.take(frame);
                }
            }
        }
        Report::Playing => model.stage = Stage::Playing,
        Report::Ended => model.stage = Stage::Ended,
        Report::Failed(error) => model.stage = Stage::Failed(error),
    }
}
