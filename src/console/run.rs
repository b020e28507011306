//! The loop: the only place where keys, signals, the stream and the wall clock meet.

use std::io::{self, IsTerminal};
use std::process::{ExitCode, Termination};
use std::time::Duration;
use std::{env, fmt, fs};

use crossterm::event::Event;
use thiserror::Error;

use super::app::{Effect, Goal, Model, Msg, Stage, update};
use super::export::{self, Format};
use super::input::{Input, Keys, Sent};
use super::key::Key;
use super::keymap;
use super::mouse::{Hit, Mouse};
use super::pulse::{Beat, Pulse};
use super::remark::Remark;
use super::sessions;
use super::signals::{Request, Signal, Signals};
use super::subject::Subject;
use super::term::{self, Term};
use super::text::clean;
use super::theme::{Theme, ThemeChoice};
use super::view::view;
use super::written::written;
use crate::base::atomic_file;
use crate::base::notice::print_notice;
use crate::engine::Handle;
use crate::engine::handle::{Command, OpenError, Options};
use crate::engine::knob::Turn;
use crate::privacy::Head;
use crate::record;
use ratatui::buffer::Buffer;

/// How long the last lines of a ledger may take.
pub(super) const LAST_LINES: Duration = Duration::from_secs(2);

/// How a console ended that did not fail. As the result of `main` it sets the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The operator left: exit code 0.
    Quit,
    /// A signal: exit code 128 and its number, as a shell would report it.
    Signal { name: &'static str, number: u8 },
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
        // The engine may be writing its models: the process ends, and nothing half written stays.
        let _ = atomic_file::leave();
        match self {
            Ending::Quit => ExitCode::SUCCESS,
            Ending::Signal { number, .. } => {
                print_notice(self);
                ExitCode::from(128_u8.saturating_add(number))
            }
        }
    }
}

#[derive(Debug, Error)]
pub(crate) enum ConsoleError {
    /// Nothing was drawn: the caller should print plain facts instead.
    #[error("the console needs a terminal for its input and output")]
    NotATerminal,
    /// The stream could not be opened or read to its end. The operator has seen it on the screen.
    #[error(transparent)]
    Stream(OpenError),
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
    /// The thread that reads the stream died; its panic has been printed.
    #[error("the thread that reads the stream ended unexpectedly")]
    FeedDied,
    /// Another thread died; its panic has been printed.
    #[error("a part of the program ended unexpectedly, see above")]
    Panicked,
    #[error("there is no view called {0:?}")]
    NoView(String),
    #[error("no incident had opened by then")]
    NoIncident,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Appearance {
    /// A theme; the one that suits the terminal when none is asked for.
    pub theme: Option<ThemeChoice>,
    /// Only letters of ASCII, whatever the terminal can show.
    pub ascii: bool,
    pub no_mouse: bool,
}

impl Appearance {
    pub(crate) fn resolve(self) -> Theme {
        Theme::choose(self.theme, self.ascii, |name| env::var(name).ok())
    }
}

/// Whether a console can be shown: input and output are a terminal that can place its cursor.
pub(crate) fn is_possible(keys: Keys) -> bool {
    keys.are_there()
        && io::stdout().is_terminal()
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Shows `session` until the operator leaves. Making its models may take its time: that happens on
/// another thread, and the screen shows how far it is. Another session may be opened from within.
///
/// With `record` every run is recorded; `at` is the place in time to go to first. A failure of the stream is shown, and returned once the
/// operator has left.
pub(crate) fn run(
    subject: Subject,
    look: Appearance,
    record: bool,
    at: Option<Goal>,
    keys: Keys,
) -> Result<Ending, ConsoleError> {
    if !is_possible(keys) {
        return Err(ConsoleError::NotATerminal);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // First the signals: from the moment the terminal is ours it can be given back.
        let mut signals = Signals::listen()?;
        let mut console = Console::start(subject, look, record)?;
        console.model.open_at = at;
        // Dropped before the console on an error: reading ends before the terminal is given back.
        let mut input = Input::listen(keys)?;
        loop {
            match console.run(&mut signals, &mut input).await? {
                Left::For(ending) => {
                    input.stop();
                    console.leave();
                    return Ok(ending);
                }
                Left::To(subject) => console.change(subject)?,
            }
        }
    })
}

enum Left {
    For(Ending),
    To(Subject),
}

struct Console {
    model: Model,
    term: Term,
    engine: Handle,
    mouse: Mouse,
    /// What the mouse can do to the picture that is shown.
    hits: Vec<Hit>,
    record: bool,
}

/// The console before anything is known but what it is opened on.
fn model_of(subject: &Subject, theme: &Theme) -> Model {
    let mut model = Model::new(subject.session(), *theme);
    model.name = clean(&subject.title());
    model.pace = subject.pace();
    model.service = subject.service();
    model.is_live |= model.service.is_some();
    model.is_recording = matches!(subject, Subject::Recording(_));
    model
}

fn who() -> String {
    let names = ["HEADWATER_OPERATOR", "USER", "LOGNAME"].into_iter();
    let name = names.filter_map(|v| env::var(v).ok()).find(|name| !name.trim().is_empty());
    clean(name.as_deref().unwrap_or("operator"))
}

impl Console {
    /// Shows the first picture before anything that could take time.
    fn start(subject: Subject, look: Appearance, record: bool) -> Result<Self, ConsoleError> {
        let mut model = model_of(&subject, &look.resolve());
        model.mouse = !look.no_mouse;
        model.who = who();
        let mut term = Term::take(model.mouse)?;
        let hits = term.draw(|buffer| view(&model, buffer))?;
        let engine = subject.spawn(Options::watched(model.pace), record)?;
        let mut console = Self { model, term, engine, mouse: Mouse::default(), hits, record };
        console.read_keys();
        Ok(console)
    }

    /// Gives the terminal back, waits until the ledger is closed where one is kept, and says where it
    /// ends.
    fn leave(self) {
        let Self { term, mut engine, .. } = self;
        drop(term);
        if let Some(Head { head, entries, key, .. }) = engine.finish(LAST_LINES) {
            print_notice(format!("ledger head {head}, {entries} entries, signed with key {key}"));
        }
    }

    /// Begins anew with another session; what the operator chose about the screen stays.
    fn change(&mut self, subject: Subject) -> io::Result<()> {
        let mut model = model_of(&subject, &self.model.theme);
        std::mem::swap(&mut model.keymap, &mut self.model.keymap);
        std::mem::swap(&mut model.who, &mut self.model.who);
        (model.mouse, model.bell) = (self.model.mouse, self.model.bell);
        // The next session may keep its ledger in the same file, which has one writer.
        self.engine.finish(LAST_LINES);
        self.engine = subject.spawn(Options::watched(model.pace), self.record)?;
        self.model = model;
        self.term.repaint();
        Ok(())
    }

    async fn run(
        &mut self,
        signals: &mut Signals,
        input: &mut Input,
    ) -> Result<Left, ConsoleError> {
        let mut pulse = Pulse::new();
        let (mut feeding, mut over) = (true, false);
        loop {
            let wake = self.model.wake_in();
            let reports = &mut self.engine.events;
            let effect = tokio::select! {
                biased;
                request = signals.next() => match request {
                    Request::End(Signal { name, number }) => {
                        return Ok(Left::For(Ending::Signal { name, number }));
                    }
                    Request::Stop => Some(Effect::Suspend),
                    Request::GoOn => {
                        self.term.enter()?;
                        pulse.touch();
                        None
                    }
                    Request::Resize => {
                        self.term.repaint();
                        pulse.touch();
                        None
                    }
                },
                () = term::panicked() => return Err(ConsoleError::Panicked),
                beat = pulse.next(input, reports, feeding, wake) => match beat {
                    Beat::Input(sent) => match sent? {
                        Sent::Event(event) => self.take_event(event),
                        Sent::LeftOut(count) => {
                            let text = format!("{count} keys left out: they came too fast");
                            self.show(Remark::failed(&text));
                            None
                        }
                    },
                    Beat::Draw => {
                        let model = &self.model;
                        self.hits = self.term.draw(|buffer| view(model, buffer))?;
                        None
                    }
                    Beat::Passed(wall) => update(&mut self.model, Msg::Passed(wall)),
                    Beat::Report(Some(report)) => {
                        over |= report.is_last();
                        update(&mut self.model, Msg::Report(report))
                    }
                    Beat::Report(None) if over => {
                        feeding = false;
                        None
                    }
                    Beat::Report(None) => return Err(ConsoleError::FeedDied),
                },
            };
            if effect.is_some() {
                pulse.touch();
            }
            match effect {
                None => {}
                Some(Effect::Quit) => {
                    let stage = std::mem::replace(&mut self.model.stage, Stage::Ended);
                    let Stage::Failed(error) = stage else { return Ok(Left::For(Ending::Quit)) };
                    return Err(ConsoleError::Stream(error));
                }
                Some(Effect::Suspend) => {
                    input.stop();
                    term::restore();
                    signals.stop().await?;
                    self.term.enter()?;
                    input.resume()?;
                }
                Some(Effect::Open(name)) => match sessions::with_data(&name) {
                    Ok(subject) => return Ok(Left::To(subject)),
                    Err(why) => self.show(Remark::failed(&format!("{why}; this one goes on"))),
                },
                Some(effect) => self.perform(effect)?,
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Redraw => self.term.repaint(),
            Effect::Command(wish) => {
                self.hand_over(wish);
            }
            Effect::Commands(wishes) => {
                let _ = wishes.into_iter().all(|wish| self.hand_over(wish));
            }
            Effect::ListSessions => {
                let recordings = record::folder::folder();
                let found = env::current_dir();
                let found = found.map(|folder| sessions::list(&folder, recordings.as_deref()));
                update(&mut self.model, Msg::Sessions(found.unwrap_or_default()));
            }
            Effect::CheckData(name) => {
                update(&mut self.model, sessions::checked(name));
            }
            Effect::Bell => term::ring()?,
            Effect::Mouse(ours) => self.term.capture(ours)?,
            Effect::Copy(text) => {
                term::copy(&text)?;
                let letters = text.chars().count();
                self.show(Remark::done(&format!("{letters} characters to the clipboard")));
            }
            Effect::Picture => {
                let said = self.write_picture();
                self.show(said);
            }
            Effect::Write(turns) => self.write_session(turns),
            Effect::ReadKeys => {
                if self.read_keys() {
                    self.show(Remark::done("keys read"));
                }
            }
            Effect::Quit | Effect::Suspend | Effect::Open(_) => {}
        }
        Ok(())
    }

    /// Whether the engine takes a command.
    fn hand_over(&mut self, wish: Command) -> bool {
        let unheard = match self.model.refuses(&wish) {
            Some(why) => Some((wish, why)),
            None => self.engine.command(wish).err().map(|w| (w, "the engine is busy; try again")),
        };
        let taken = unheard.is_none();
        if let Some((wish, why)) = unheard {
            update(&mut self.model, Msg::Unheard(wish, why));
        }
        taken
    }

    fn show(&mut self, remark: Remark) {
        update(&mut self.model, Msg::Done(remark));
    }

    fn read_keys(&mut self) -> bool {
        let Some(path) = keymap::path(|name| env::var(name).ok()) else { return true };
        let read = keymap::read(&path).map_err(|error| error.line());
        let right = read.is_ok();
        update(&mut self.model, Msg::Keys(read));
        right
    }

    /// Writes settings into the session's file.
    fn write_session(&mut self, turns: Vec<Turn>) {
        let written = written(&self.model.subject, &turns);
        let done = written.and_then(|written| written.write().map(|()| written.file));
        match done {
            Ok(file) => {
                update(&mut self.model, Msg::Written(turns));
                self.show(Remark::done(&format!("written to {}", file.display())));
            }
            Err(why) => self.show(Remark::failed(&why)),
        }
    }

    /// Writes the picture as it is, in every format, to the folder the program was started in.
    fn write_picture(&self) -> Remark {
        let mut picture = Buffer::empty(self.term.area());
        view(&self.model, &mut picture);
        let stem = self.model.picture_name();
        for format in [Format::Text, Format::Ansi, Format::Svg] {
            let file = format!("{stem}.{}", format.ending());
            if let Err(error) = fs::write(&file, export::write(&picture, format)) {
                return Remark::failed(&format!("{file}: {error}"));
            }
        }
        let folder = env::current_dir().map_or_else(|_| ".".into(), |f| f.display().to_string());
        Remark::done(&format!("written to {folder}: {stem}.txt, .ansi, .svg"))
    }

    fn take_event(&mut self, event: Event) -> Option<Effect> {
        match event {
            Event::Key(key) => update(&mut self.model, Msg::Key(Key::pressed(key)?)),
            Event::Mouse(event) => {
                let point = self.mouse.point(event, &self.hits, std::time::Instant::now())?;
                update(&mut self.model, Msg::Point(point))
            }
            Event::Resize(..) => {
                self.term.repaint();
                None
            }
            Event::Paste(text) => update(&mut self.model, Msg::Paste(text)),
            Event::FocusGained | Event::FocusLost => None,
        }
    }
}
