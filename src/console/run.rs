//! The loop: the only place where keys, signals, the stream and the wall clock meet.

use std::io::{self, IsTerminal, Write};
use std::process::{ExitCode, Termination};
use std::{env, fmt, thread};

use crossterm::event::{self, Event};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};

use super::action;
use super::app::{Effect, Model, Msg, Stage, update};
use super::feed::{self, Feed, OpenError};

use super::key::Key;
use super::signals::{Request, Signal, Signals};
use super::term::{self, Term};
use super::theme::Theme;
use super::training::Training;
use super::view::view;
use crate::session::Session;
use crate::stream::Stream;

/// The shortest time between two pictures: 30 a second.
const FRAME: Duration = Duration::from_millis(33);
/// Terminal events that may lie unread.
const INPUT: usize = 256;

/// How a console ended that did not fail. As the result of `main` it says so and sets the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The operator left: exit code 0.
    Quit,
    /// A signal: exit code 128 and its number, as a shell would report it.
    Signal {
        /// Its name.
        name: &'static str,
        /// Its number.
        number: u8,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Quit => f.write_str("left by the operator"),
            Ending::Signal { name, .. } => write!(f, "ended by {name}"),
        }
    }
}

impl Termination for Ending {
    fn report(self) -> ExitCode {
        match self {
            Ending::Quit => ExitCode::SUCCESS,
            Ending::Signal { number, .. } => {
                // After a hang-up there may be nobody to read it.
                let _ = writeln!(io::stderr(), "headwater: {self}");
                ExitCode::from(128_u8.saturating_add(number))
            }
        }
    }
}

/// Why there is no console, or no longer.
#[derive(Debug, Error)]
pub enum ConsoleError {
    /// Nothing was drawn: the caller should print plain facts instead.
    #[error("the console needs a terminal for its input and output")]
    NotATerminal,
    /// The stream could not be opened or read to its end. The operator has seen it on the screen.
    #[error(transparent)]
    Stream(OpenError),
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
    /// The thread that reads the stream died; its panic has been told.
    #[error("the thread that reads the stream ended unexpectedly")]
    FeedDied,
}

/// Whether a console can be shown: input and output are a terminal that can place its cursor.
#[must_use]
pub fn is_possible() -> bool {
    io::stdin().is_terminal()
        && io::stdout().is_terminal()
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Shows `session` until the operator leaves. `open` may take its time: it runs on another thread,
/// and the screen shows what it tells of itself.
///
/// A failure of the stream is shown, and returned once the operator has left.
pub fn run<F>(session: &Session, open: F) -> Result<Ending, ConsoleError>
where
    F: FnOnce(&mut (dyn FnMut(Training) + Send)) -> Result<Box<dyn Stream>, OpenError>
        + Send
        + 'static,
{
    if !is_possible() {
        return Err(ConsoleError::NotATerminal);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // First the signals: from the moment the terminal is ours it can be given back.
        let signals = Signals::listen()?;
        Console::start(session, open)?.run(signals).await
    })
}

struct Console {
    model: Model,
    theme: Theme,
    term: Term,
    feed: Feed,
}

impl Console {
    /// Shows the first picture before anything that could take time.
    fn start<F>(session: &Session, open: F) -> Result<Self, ConsoleError>
    where
        F: FnOnce(&mut (dyn FnMut(Training) + Send)) -> Result<Box<dyn Stream>, OpenError>
            + Send
            + 'static,
    {
        let model = Model::new(session);
        let theme = Theme::choose(|name| env::var(name).ok());
        let mut term = Term::take()?;
        term.draw(|buffer| view(&model, &theme, buffer))?;
        let feed = feed::spawn(session, model.pace, open)?;
        Ok(Self { model, theme, term, feed })
    }

    async fn run(mut self, mut signals: Signals) -> Result<Ending, ConsoleError> {
        let mut input = listen()?;
        let mut drawn = Instant::now();
        let mut dirty = true;
        let mut feeding = true;
        loop {
            let effect = tokio::select! {
                biased;
                request = signals.next() => match request {
                    Request::End(Signal { name, number }) => {
                        return Ok(Ending::Signal { name, number });
                    }
                    Request::GoOn => {
                        self.term.enter()?;
                        None
                    }
                },
                event = input.recv() => match event {
                    Some(event) => self.take_event(&event?)?,
                    None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                },
                () = sleep_until(drawn + FRAME), if dirty => {
                    let (model, theme) = (&self.model, &self.theme);
                    self.term.draw(|buffer| view(model, theme, buffer))?;
                    drawn = Instant::now();
                    dirty = false;
                    continue;
                }
                report = self.feed.reports.recv(), if feeding => {
                    let report = report.ok_or(ConsoleError::FeedDied)?;
                    feeding = !report.is_last();
                    update(&mut self.model, Msg::Report(report))
                }
            };
            dirty = true;
            match effect {
                None => {}
                Some(Effect::Quit) => {
                    return match self.model.stage {
                        Stage::Failed(error) => Err(ConsoleError::Stream(error)),
                        _ => Ok(Ending::Quit),
                    };
                }
                Some(Effect::Redraw) => self.term.repaint()?,
                Some(Effect::Suspend) => {
                    term::restore();
                    signals.stop().await?;
                    self.term.enter()?;
                }
                // A feed that is over needs no pace.
                Some(Effect::Pace(pace)) => drop(self.feed.pace.send(pace)),
            }
        }
    }

    fn take_event(&mut self, event: &Event) -> io::Result<Option<Effect>> {
        match event {
            Event::Key(key) => {
                let action = Key::pressed(*key).and_then(action::of);
                Ok(action.and_then(|action| update(&mut self.model, Msg::Do(action))))
            }
            Event::Resize(..) => self.term.repaint().map(|()| None),
            Event::Mouse(_) | Event::Paste(_) | Event::FocusGained | Event::FocusLost => Ok(None),
        }
    }
}

/// Terminal events, read on a thread of its own: it sleeps in the system until there is one.
fn listen() -> io::Result<mpsc::Receiver<io::Result<Event>>> {
    let (sender, events) = mpsc::channel(INPUT);
    thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            let event = event::read();
            let failed = event.is_err();
            if sender.blocking_send(event).is_err() || failed {
                return;
            }
        }
    })?;
    Ok(events)
}
