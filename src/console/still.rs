//! One picture without a terminal: the engine runs up to a moment as fast as it can, then the console's
//! own view is drawn once. The same session, seed and moment give the same picture everywhere.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::{Model, Msg, Screen, Stage, update};
use super::clock::Clock;
use super::export::{self, Format};
use super::feed::{self, OpenError};
use super::pace::{Pace, Speed};
use super::run::{Appearance, ConsoleError};
use super::theme::{Choice, Depth, Terminal, Theme};
use super::training::Training;
use super::view::view;
use crate::session::{Mark, Session};
use crate::stream::{Event, Frame, Layout, Stream, StreamError};

/// What is to be drawn.
#[derive(Debug, Clone, Copy)]
pub struct Still<'a> {
    /// The moment; the end of the data where none is given.
    pub at: Option<Mark>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// One of [`view_names`].
    pub view: &'a str,
    /// What it looks like. The terminal that happens to be there has no say.
    pub look: Appearance,
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
    Screen::ALL.iter().map(|(name, _)| *name)
}

/// Draws `still` of `session`.
pub fn still<F>(session: &Session, still: &Still, open: F) -> Result<Picture, ConsoleError>
where
    F: FnOnce(&mut (dyn FnMut(Training) + Send)) -> Result<Box<dyn Stream>, OpenError>
        + Send
        + 'static,
{
    let terminal = Terminal { depth: Depth::Bits24, light: None, ascii: still.look.ascii };
    let theme = Theme::new(still.look.theme.unwrap_or(Choice::Auto), terminal);
    let mut model = Model::new(session, theme);
    let (clock, at) = (model.clock, still.at);
    let cut = move |tell: &mut (dyn FnMut(Training) + Send)| {
        let stream = open(tell)?;
        Ok(Box::new(Until { stream, at, clock, first: None, frames: 0 }) as Box<dyn Stream>)
    };
    let pace = Pace { speed: Speed::Max, paused: false };
    let mut feed =
        feed::spawn(session, pace, cut).map_err(|error| ConsoleError::Stream(Box::new(error)))?;
    while let Some(report) = feed.reports.blocking_recv() {
        update(&mut model, Msg::Report(report));
    }
    match model.stage {
        Stage::Failed(error) => return Err(ConsoleError::Stream(error)),
        // The data goes on, only the picture stops here.
        Stage::Ended if still.at.is_some() => model.stage = Stage::Playing,
        Stage::Ended => {}
        Stage::Preparing(_) | Stage::Reading | Stage::Playing => return Err(ConsoleError::FeedDied),
    }
    if let Some((_, screen)) = Screen::ALL.iter().find(|(name, _)| *name == still.view) {
        model.screen = *screen;
    }
    let mut buffer = Buffer::empty(Rect::new(0, 0, still.size.0, still.size.1));
    view(&model, &mut buffer);
    Ok(Picture(buffer))
}

/// A stream that ends after a moment.
struct Until {
    stream: Box<dyn Stream>,
    at: Option<Mark>,
    clock: Clock,
    first: Option<Timestamp>,
    frames: u64,
}

impl Until {
    fn is_past(&self, time: Timestamp) -> bool {
        let first = self.first.unwrap_or(time);
        match self.at {
            None => false,
            Some(Mark::At(civil)) => self.clock.instant(civil).is_some_and(|at| time > at),
            Some(Mark::After(seconds)) => time.duration_since(first).as_secs_f64() > seconds,
            Some(Mark::Step(steps)) => self.frames > steps,
        }
    }
}

impl Stream for Until {
    fn layout(&self) -> &Layout {
        self.stream.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        if !self.stream.next(frame)? {
            return Ok(false);
        }
        self.frames += 1;
        self.first.get_or_insert(frame.time);
        Ok(!self.is_past(frame.time))
    }

    fn events(&self) -> &[Event] {
        self.stream.events()
    }
}
