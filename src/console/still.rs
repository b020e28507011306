//! One picture without a terminal: the engine runs up to a moment as fast as it can, then the console's
//! own view is drawn once. The same session, seed and moment give the same picture everywhere.

use std::env;
use std::str::FromStr;

use jiff::civil::Time;
use jiff::{Span, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::Action;
use super::app::goal;
use super::app::{Effect, Model, Msg, SCREENS, Screen, update};
use super::clock::Clock;
use super::export::{self, Format};
use super::feed::{self, Bulletin, OpenError, Opened, Ready, Report};
use super::run::{Appearance, ConsoleError};
use super::sessions;
use super::theme::{Choice, Depth, Terminal, Theme};
use super::view::view;
use crate::engine::watch::News;
use crate::session::{Mark, Session};

/// What is to be drawn.
#[derive(Debug, Clone, Copy)]
pub struct Still<'a> {
    /// The moment; the end of the data where none is given.
    pub at: Option<Moment>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// One of [`view_names`].
    pub view: &'a str,
    /// What it looks like. The terminal that happens to be there has no say.
    pub look: Appearance,
}

/// When a picture is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Moment {
    /// The first time that the data's clock shows this.
    Clock(Time),
    /// A time, or a distance from the start.
    Mark(Mark),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(time) = goal::clock(text.trim()) {
            return Ok(Self::Clock(time));
        }
        Mark::try_from(text.to_owned()).map(Self::Mark).map_err(|why| format!("{why}; or 10:38"))
    }
}

/// A picture, ready to be written.
#[derive(Debug)]
pub struct Picture(Buffer);

impl Picture {
    /// As a text in `format`.
    #[must_use]
    pub fn write(&self, format: Format) -> String {
        export::write(&self.0, format)
    }
}

/// The names of all views.
pub fn view_names() -> impl Iterator<Item = &'static str> {
    SCREENS.into_iter().map(|action| action.row().name)
}

/// Draws `still` of `session`.
pub fn still(session: &Session, still: &Still) -> Result<Picture, ConsoleError> {
    let terminal = Terminal { depth: Depth::Bits24, light: None, ascii: still.look.ascii };
    let theme = Theme::new(still.look.theme.unwrap_or(Choice::Auto), terminal);
    let mut model = Model::new(session, theme);
    let ready = feed::ready(session, &mut |training| {
        update(&mut model, Msg::Report(Report::Training(training)));
    });
    let ready = ready.map_err(ConsoleError::Stream)?;
    run_to(&mut model, session, ready, still.at).map_err(ConsoleError::Stream)?;
    show(&mut model, still.view)?;
    let mut buffer = Buffer::empty(Rect::new(0, 0, still.size.0, still.size.1));
    view(&model, &mut buffer);
    Ok(Picture(buffer))
}

/// Tells `model` everything up to `at`.
pub(super) fn run_to(
    model: &mut Model,
    session: &Session,
    (mut watch, prepared): Ready,
    at: Option<Moment>,
) -> Result<(), OpenError> {
    let mut learn = |report| {
        update(model, Msg::Report(report));
    };
    learn(Report::Opened(Box::new(Opened::of(&watch, prepared))));
    learn(Report::Playing);
    let mut end = End { at, clock: Clock::of(session), first: None, frames: 0 };
    loop {
        let mut news = News::default();
        let Some(time) = watch.step(&mut news)? else {
            watch.end(&mut news);
            let standing = Some(watch.standing());
            learn(Report::News(Box::new(Bulletin { news, standing, ..Bulletin::default() })));
            learn(Report::Ended);
            break;
        };
        news.frames.retain(|frame| end.holds(frame.time));
        if end.is_past(time) {
            // What the step found is not known at the moment yet, only what was measured.
            let news = News { frames: news.frames, ..News::default() };
            learn(Report::News(Box::new(Bulletin { news, ..Bulletin::default() })));
            break;
        }
        let standing = Some(watch.standing());
        learn(Report::News(Box::new(Bulletin { news, standing, ..Bulletin::default() })));
    }
    Ok(())
}

/// The moment at which a picture is taken.
struct End {
    at: Option<Moment>,
    clock: Clock,
    first: Option<Timestamp>,
    frames: u64,
}

impl End {
    /// Whether the next frame of the stream, at `time`, still belongs to the picture.
    fn holds(&mut self, time: Timestamp) -> bool {
        self.first.get_or_insert(time);
        self.frames += 1;
        !self.is_past(time)
    }

    fn is_past(&self, time: Timestamp) -> bool {
        let first = self.first.unwrap_or(time);
        match self.at {
            None => false,
            Some(Moment::Clock(shown)) => {
                let begun = self.clock.civil(first);
                let days = Span::new().days(i64::from(shown < begun.time()));
                let at = begun.date().to_datetime(shown).saturating_add(days);
                self.clock.instant(at).is_some_and(|at| time > at)
            }
            Some(Moment::Mark(Mark::At(civil))) => {
                self.clock.instant(civil).is_some_and(|at| time > at)
            }
            Some(Moment::Mark(Mark::After(seconds))) => {
                time.duration_since(first).as_secs_f64() > seconds
            }
            Some(Moment::Mark(Mark::Step(steps))) => self.frames > steps,
        }
    }
}

/// Goes to the view called `name`.
fn show(model: &mut Model, name: &str) -> Result<(), ConsoleError> {
    let action = SCREENS.into_iter().find(|action| action.row().name == name);
    let Some(action) = action else { return Err(ConsoleError::NoView(name.to_owned())) };
    if let Some(Effect::ListSessions) = model.choose_screen(action) {
        let found = env::current_dir().map(|folder| sessions::list(&folder)).unwrap_or_default();
        update(model, Msg::Sessions(found));
    }
    if action == Action::ShowIncident && !matches!(model.screen, Screen::Incident(_)) {
        return Err(ConsoleError::NoIncident);
    }
    Ok(())
}
