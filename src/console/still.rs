//! One picture without a terminal: the engine runs up to a moment as fast as it can, then the console's
//! own view is drawn once. The same session, seed and moment give the same picture everywhere.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::{Model, Msg, Screen, update};
use super::clock::Clock;
use super::export::{self, Format};
use super::feed::{self, Bulletin, Opened, Ready, Report};
use super::run::{Appearance, ConsoleError};
use super::sessions;
use super::theme::{Choice, Depth, Terminal, Theme};
use super::view::view;
use crate::engine::watch::News;
use crate::session::{Mark, Session};
use crate::stream::Frame;

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
pub fn still(session: &Session, still: &Still) -> Result<Picture, ConsoleError> {
    let terminal = Terminal { depth: Depth::Bits24, light: None, ascii: still.look.ascii };
    let theme = Theme::new(still.look.theme.unwrap_or(Choice::Auto), terminal);
    let mut model = Model::new(session, theme);
    let mut tell = |training| {
        update(&mut model, Msg::Report(Report::Training(training)));
    };
    let ready = feed::ready(session.clone(), &mut tell).map_err(ConsoleError::Stream)?;
    watch(&mut model, ready, still.at)?;
    if let Some((_, screen)) = Screen::ALL.iter().find(|(name, _)| *name == still.view) {
        let chosen = model.chosen_incident().map(|incident| incident.number);
        model.screen = match (screen, chosen) {
            (Screen::Incident(_), Some(number)) => Screen::Incident(number),
            (screen, _) => *screen,
        };
        if *screen == Screen::Sessions {
            let folder = std::env::current_dir().unwrap_or_default();
            update(&mut model, Msg::Sessions(sessions::list(&folder)));
        }
    }
    let mut buffer = Buffer::empty(Rect::new(0, 0, still.size.0, still.size.1));
    view(&model, &mut buffer);
    Ok(Picture(buffer))
}

/// Runs a session up to `at` and tells the model all of it.
fn watch(
    model: &mut Model,
    (mut watch, prepared): Ready,
    at: Option<Mark>,
) -> Result<(), ConsoleError> {
    let opened = Opened {
        layout: watch.measurements().clone(),
        events: watch.events().to_vec(),
        period_s: watch.period_s(),
        prepared: Some(prepared),
    };
    update(model, Msg::Report(Report::Opened(Box::new(opened))));
    let mut until = Until { at, clock: model.clock, first: None, frames: 0, is_past: false };
    let (mut news, mut kept) = (News::default(), News::default());
    let mut ended = false;
    while !ended && !until.is_past {
        let step = watch.step(&mut news).map_err(|error| ConsoleError::Stream(error.into()))?;
        ended = step.is_none();
        if ended {
            watch.end(&mut news);
        }
        until.take(&mut news.frames);
        let told = std::mem::take(&mut news);
        // A step that lies behind the moment has not been taken by then.
        if !until.is_past {
            kept.frames.extend(told.frames);
            kept.times.extend(told.times);
            kept.sights.extend(told.sights);
            kept.incidents.retain(|known| told.incidents.iter().all(|i| i.number != known.number));
            kept.incidents.extend(told.incidents);
            kept.entries.extend(told.entries);
        } else {
            kept.frames.extend(told.frames);
        }
    }
    kept.incidents.sort_by_key(|incident| incident.number);
    let standing = Some(watch.standing());
    let bulletin = Bulletin { news: kept, standing, ..Bulletin::default() };
    update(model, Msg::Report(Report::News(Box::new(bulletin))));
    // The data goes on, only the picture stops here.
    update(model, Msg::Report(if ended { Report::Ended } else { Report::Playing }));
    Ok(())
}

/// Where the picture is taken.
struct Until {
    at: Option<Mark>,
    clock: Clock,
    first: Option<Timestamp>,
    frames: u64,
    is_past: bool,
}

impl Until {
    /// Leaves only frames up to the moment, and knows from then on that it is past.
    fn take(&mut self, frames: &mut Vec<Frame>) {
        let within = frames.iter().take_while(|frame| {
            let first = *self.first.get_or_insert(frame.time);
            self.frames += 1;
            match self.at {
                None => true,
                Some(Mark::At(civil)) => {
                    self.clock.instant(civil).is_none_or(|at| frame.time <= at)
                }
                Some(Mark::After(s)) => frame.time.duration_since(first).as_secs_f64() <= s,
                Some(Mark::Step(steps)) => self.frames <= steps,
            }
        });
        let within = within.count();
        self.is_past = within < frames.len();
        frames.truncate(within);
    }
}
