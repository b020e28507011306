//! One picture without a terminal: the engine runs up to a moment as fast as it can, then the console's
//! own view is drawn once. The same session, seed and moment give the same picture everywhere.

use std::env;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::Action;
use super::app::goal;
use super::app::{Effect, Goal, Model, Msg, SCREENS, Screen, update};
use super::export::{self, Format};
use super::run::{Appearance, ConsoleError, LAST_LINES};
use super::sessions;
use super::subject::Subject;
use super::theme::{Depth, Terminal, Theme, ThemeChoice};
use super::view::view;
use crate::engine::Handle;
use crate::engine::handle::{EngineEvent, Load, Moment, Options};
use crate::engine::pace::{Pace, Speed};
use crate::session::{Mark, Session};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Still<'a> {
    /// The moment; the end of the data where none is given.
    pub at: Option<Moment>,
    pub size: (u16, u16),
    pub view: &'a str,
    /// What it looks like. The terminal at hand does not matter.
    pub look: Appearance,
    pub format: Format,
}

/// Reads when a picture is taken: a time of the clock, a time, or a distance from the start.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    if let Some(time) = goal::clock(text.trim()) {
        return Ok(Moment::Clock(time));
    }
    Mark::try_from(text.to_owned()).map(Moment::Mark).map_err(|why| format!("{why}; or 10:38"))
}

/// Reads where a console is to be opened: a time of the clock, a time, an incident, or an end.
pub(crate) fn goal(text: &str) -> Result<Goal, String> {
    Goal::read(text).ok_or_else(|| format!("expected {}", goal::EXPECTED))
}

pub(crate) fn view_names() -> impl Iterator<Item = &'static str> {
    SCREENS.into_iter().map(|action| action.row().name)
}

pub(crate) fn still(subject: Subject, still: &Still) -> Result<String, ConsoleError> {
    let terminal = Terminal { depth: Depth::Bits24, light: None, ascii: still.look.ascii };
    let theme = Theme::new(still.look.theme.unwrap_or(ThemeChoice::Auto), terminal);
    let mut model = Model::new(subject.session(), theme);
    let options = Options { stop_at: still.at, ..Options::watched(FULL_SPEED) };
    run_to(&mut model, subject.spawn(options, false)?)?;
    // How fast this machine is belongs to no picture.
    model.load = Load::default();
    show(&mut model, still.view)?;
    let mut buffer = Buffer::empty(Rect::new(0, 0, still.size.0, still.size.1));
    view(&model, &mut buffer);
    Ok(export::write(&buffer, still.format))
}

/// Draws every view of these events, from any source.
pub(crate) fn drawn(session: &Session, events: Vec<EngineEvent>) {
    let terminal = Terminal { depth: Depth::Bits24, light: None, ascii: false };
    let mut model = Model::new(session, Theme::new(ThemeChoice::Auto, terminal));
    for event in events {
        update(&mut model, Msg::Report(event));
    }
    for name in view_names() {
        // A view may have nothing to show.
        let _ = show(&mut model, name);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 100, 30));
        view(&model, &mut buffer);
    }
}

pub(super) const FULL_SPEED: Pace = Pace { speed: Speed::Max, paused: false };

pub(super) fn run_to(model: &mut Model, mut engine: Handle) -> Result<(), ConsoleError> {
    loop {
        match engine.events.blocking_recv() {
            None => return Err(ConsoleError::FeedDied),
            Some(EngineEvent::Failed(error)) => return Err(ConsoleError::Stream(error)),
            Some(event) => {
                let last = event.is_last();
                update(model, Msg::Report(event));
                if last {
                    // Where a ledger is kept, its last lines are written before the program ends.
                    engine.finish(LAST_LINES);
                    return Ok(());
                }
            }
        }
    }
}

fn show(model: &mut Model, name: &str) -> Result<(), ConsoleError> {
    let action = SCREENS.into_iter().find(|action| action.row().name == name);
    let Some(action) = action else { return Err(ConsoleError::NoView(name.to_owned())) };
    if let Some(Effect::ListSessions) = model.choose_screen(action) {
        let found =
            env::current_dir().map(|folder| sessions::list(&folder, None)).unwrap_or_default();
        update(model, Msg::Sessions(found));
    }
    if action == Action::ShowIncident && !matches!(model.screen, Screen::Incident(_)) {
        return Err(ConsoleError::NoIncident);
    }
    Ok(())
}
