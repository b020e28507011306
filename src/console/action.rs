//! The one table of what can be done. Key map, help, bottom line, command line, `keys.ron`, the table in
//! the README and the manual page all come from it.
//!
//! To add an action: a variant of [`Action`] and a row of [`TABLE`], the rest follows.

use crossterm::event::KeyCode;

use super::key::{Chord, Key};

/// Something the operator can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Stop and go on.
    Pause,
    /// One step of the engine, standing.
    StepOnce,
    /// More data time per second.
    Faster,
    /// Less data time per second.
    Slower,
    /// Look a column back.
    Back,
    /// Look a column on.
    Forward,
    FarBack,
    FarForward,
    /// Look at the start.
    Start,
    /// Return to the newest data.
    Live,
    /// Ask for a place in time.
    GoTo,
    /// Keep this moment under a letter.
    Mark,
    /// Go to a moment that was kept.
    ToMark,
    /// A loop begins here.
    LoopStart,
    /// A loop ends here.
    LoopEnd,
    PreviousIncident,
    NextIncident,
    /// Play the chosen incident again from a minute before it.
    PlayIncident,
    ZoomIn,
    ZoomOut,
    ShowOverview,
    ShowClient,
    ShowInfluence,
    ShowIncident,
    /// How the models were made.
    ShowTraining,
    /// What was given away.
    ShowPrivacy,
    /// The sequence of events.
    ShowLog,
    /// What else can be opened.
    ShowSessions,
    NextPanel,
    PreviousPanel,
    Down,
    Up,
    /// Into what is chosen, or set the knob on trial.
    Open,
    /// One level up.
    Close,
    /// What did not fit, further down.
    PageDown,
    /// What did not fit, further up.
    PageUp,
    /// Another order of clients.
    Sort,
    /// Which lines of the log, or of the help.
    Filter,
    /// Show or hide what the data set knows.
    Truth,
    /// The incident has been seen.
    Acknowledge,
    /// Silence it for a time.
    Shelve,
    Unshelve,
    /// Silence a client until it is put back, or put it back.
    Service,
    Note,
    /// What it shows is normal from now on.
    Accept,
    /// Another client is its root.
    Correct,
    /// Turn the chosen knob up.
    TurnUp,
    TurnDown,
    TurnFarUp,
    TurnFarDown,
    /// Take back what was done last.
    Undo,
    Redo,
    Command,
    Help,
    /// Once per new P1, or never.
    Bell,
    Theme,
    /// The mouse is ours, or the terminal's own.
    Mouse,
    /// What is chosen, to the clipboard.
    Copy,
    /// The picture, to files.
    Picture,
    /// Read the file of keys again.
    Keys,
    Redraw,
    /// To the shell and back.
    Suspend,
    /// Close what is open, then the program.
    Quit,
    QuitNow,
}

/// What an action is about; the headings of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    Time,
    Views,
    Incidents,
    Tuning,
    Program,
}

impl Topic {
    /// All, in the order of the help.
    pub(crate) const ALL: [Topic; 5] =
        [Topic::Time, Topic::Views, Topic::Incidents, Topic::Tuning, Topic::Program];

    /// Its heading.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Topic::Time => "time",
            Topic::Views => "views",
            Topic::Incidents => "incidents",
            Topic::Tuning => "tuning",
            Topic::Program => "program",
        }
    }
}

/// How an action stands in the bottom line: its first key and a word or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) what: &'static str,
    /// Hints of a lower number stay longer when there is little room.
    pub(crate) rank: u8,
    /// The counterpart whose key stands beside its own.
    pub(crate) beside: Option<Action>,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    /// What is asked for.
    pub(crate) action: Action,
    /// Its name in `keys.ron` and on the command line.
    pub(crate) name: &'static str,
    /// Keys that ask for it unless a file says otherwise.
    pub(crate) keys: &'static [Chord],
    /// Where it stands in the help.
    pub(crate) topic: Topic,
    /// What it does, in a few words.
    pub(crate) what: &'static str,
    /// How it stands in the bottom line, if it does.
    pub(crate) hint: Option<Hint>,
}

impl Binding {
    const fn hint(self, what: &'static str, rank: u8) -> Self {
        Self { hint: Some(Hint { what, rank, beside: None }), ..self }
    }

    const fn beside(self, other: Action, what: &'static str, rank: u8) -> Self {
        Self { hint: Some(Hint { what, rank, beside: Some(other) }), ..self }
    }
}

const fn row(
    action: Action,
    name: &'static str,
    keys: &'static [Chord],
    topic: Topic,
    what: &'static str,
) -> Binding {
    Binding { action, name, keys, topic, what, hint: None }
}

const fn c(c: char) -> Chord {
    Chord::one(Key::char(c))
}

const fn k(code: KeyCode) -> Chord {
    Chord::one(Key::new(code))
}

const fn ctrl(c: char) -> Chord {
    Chord::one(Key::ctrl(c))
}

const fn shift(code: KeyCode) -> Chord {
    Chord::one(Key::shift(code))
}

use KeyCode::{BackTab, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};
use Topic::{Incidents, Program, Time, Tuning, Views};

#[rustfmt::skip]
pub(crate) const TABLE: &[Binding] = &[
    row(Action::Pause, "pause", &[c(' ')], Time, "pause, go on").hint("pause", 2),
    row(Action::Back, "back", &[k(Left), c('h')], Time, "look one column back")
        .beside(Action::Forward, "look back", 3),
    row(Action::Forward, "forward", &[k(Right), c('l')], Time, "look one column on"),
    row(Action::FarBack, "far-back", &[shift(Left), c('H')], Time, "look 20 columns back"),
    row(Action::FarForward, "far-forward", &[shift(Right), c('L')], Time, "look 20 columns on"),
    row(Action::PreviousIncident, "previous-incident", &[c(',')], Time, "incident before")
        .beside(Action::NextIncident, "incident", 4),
    row(Action::NextIncident, "next-incident", &[c('.')], Time, "incident after"),
    row(Action::PlayIncident, "play", &[c('p')], Time, "play it from 60 s before"),
    row(Action::Start, "start", &[k(Home)], Time, "look at the start"),
    row(Action::Live, "live", &[k(End), c('G')], Time, "back to the newest data")
        .hint("newest", 2),
    row(Action::GoTo, "go-to", &[c('g')], Time, "go to 10:38, -5m, #7, 'a").hint("go to", 8),
    row(Action::Mark, "mark", &[c('m')], Time, "mark with a letter"),
    row(Action::ToMark, "to-mark", &[c('\'')], Time, "go to a mark"),
    row(Action::LoopStart, "loop-start", &[c('A')], Time, "loop: from here; end it"),
    row(Action::LoopEnd, "loop-end", &[c('B')], Time, "loop: until here"),
    row(Action::Slower, "slower", &[c('[')], Time, "slower").beside(Action::Faster, "speed", 4),
    row(Action::Faster, "faster", &[c(']')], Time, "faster"),
    row(Action::StepOnce, "step", &[c('>')], Time, "stand, one step on"),
    row(Action::ZoomIn, "zoom-in", &[c('z')], Time, "zoom in").beside(Action::ZoomOut, "zoom", 7),
    row(Action::ZoomOut, "zoom-out", &[c('Z')], Time, "zoom out"),
    row(Action::ShowOverview, "overview", &[c('1')], Views, "overview"),
    row(Action::ShowClient, "client", &[c('2')], Views, "one client"),
    row(Action::ShowInfluence, "influence", &[c('3')], Views, "who influences whom"),
    row(Action::ShowIncident, "incident", &[c('4')], Views, "one incident"),
    row(Action::ShowTraining, "training", &[c('5')], Views, "how models were made"),
    row(Action::ShowPrivacy, "privacy", &[c('6')], Views, "what was given away"),
    row(Action::ShowLog, "log", &[c('7')], Views, "sequence of events"),
    row(Action::ShowSessions, "sessions", &[c('8')], Views, "what can be opened"),
    row(Action::NextPanel, "next-panel", &[k(Tab)], Views, "next panel").hint("panel", 6),
    row(Action::PreviousPanel, "previous-panel", &[k(BackTab)], Views, "panel before"),
    row(Action::Down, "down", &[k(Down), c('j')], Views, "choose below"),
    row(Action::Up, "up", &[k(Up), c('k')], Views, "choose above"),
    row(Action::Open, "open-chosen", &[k(Enter)], Views, "open, or set the knob")
        .hint("open", 5),
    row(Action::Close, "close", &[k(Esc)], Views, "one level up, or drop it").hint("back", 2),
    row(Action::PageDown, "page-down", &[k(PageDown)], Views, "further down"),
    row(Action::PageUp, "page-up", &[k(PageUp)], Views, "further up"),
    row(Action::Sort, "sort", &[c('o')], Views, "order: plant, severity"),
    row(Action::Filter, "find", &[c('/')], Views, "filter log, search help"),
    row(Action::Truth, "truth", &[c('t')], Views, "show or hide the truth").hint("truth", 5),
    row(Action::Acknowledge, "acknowledge", &[c('a')], Incidents, "acknowledge").hint("ack", 3),
    row(Action::Shelve, "shelve-chosen", &[c('s')], Incidents, "shelve for a time")
        .hint("shelve", 6),
    row(Action::Unshelve, "unshelve", &[c('S')], Incidents, "unshelve").hint("unshelve", 7),
    row(Action::Service, "service", &[c('x')], Incidents, "out of service, back"),
    row(Action::Note, "write-note", &[c('n')], Incidents, "note"),
    row(Action::Accept, "accept", &[c('N')], Incidents, "accept as new normal"),
    row(Action::Correct, "correct", &[c('c')], Incidents, "correct the root"),
    row(Action::TurnUp, "up-knob", &[c('+'), c('=')], Tuning, "knob up, on trial")
        .beside(Action::TurnDown, "tune", 6),
    row(Action::TurnDown, "down-knob", &[c('-')], Tuning, "knob down, on trial"),
    row(Action::TurnFarUp, "far-up-knob", &[shift(Up), c('*')], Tuning, "ten steps up"),
    row(Action::TurnFarDown, "far-down-knob", &[shift(Down), c('_')], Tuning, "ten steps down"),
    row(Action::Undo, "undo", &[c('u')], Tuning, "undo").hint("undo", 5),
    row(Action::Redo, "redo", &[ctrl('r')], Tuning, "redo"),
    row(Action::Command, "command", &[c(':')], Program, "command, tab completes")
        .hint("command", 8),
    row(Action::Help, "help", &[c('?')], Program, "this help").hint("help", 1),
    row(Action::Bell, "ring", &[c('b')], Program, "bell on new P1, or off"),
    row(Action::Theme, "theme", &[c('T')], Program, "next theme"),
    row(Action::Mouse, "mouse", &[c('M')], Program, "mouse on, off"),
    row(Action::Copy, "copy", &[c('y')], Program, "copy what is chosen"),
    row(Action::Picture, "picture", &[c('P')], Program, "screen to files"),
    row(Action::Keys, "keys", &[c('K')], Program, "read keys.ron again"),
    row(Action::Redraw, "redraw", &[ctrl('l')], Program, "draw the screen anew"),
    row(Action::Suspend, "suspend", &[ctrl('z')], Program, "to the shell, fg returns"),
    row(Action::Quit, "quit", &[c('q')], Program, "close; at the top, quit").hint("quit", 1),
    row(Action::QuitNow, "quit-now", &[ctrl('c')], Program, "quit at once"),
];

impl Action {
    /// Its row of the table.
    pub(crate) fn row(self) -> &'static Binding {
        TABLE.iter().find(|row| row.action == self).expect("every action has a row")
    }

    /// The action of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.action)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_no_name_and_no_action_stands_in_the_table_twice() {
        let (mut actions, mut names) = (HashSet::new(), HashSet::new());
        let mut chords: Vec<Chord> = Vec::new();
        for row in TABLE {
            assert!(actions.insert(row.action), "{:?} twice", row.action);
            assert!(names.insert(row.name), "{} twice", row.name);
            assert!(!row.keys.is_empty(), "{:?} has no key", row.action);
            for chord in row.keys {
                assert!(!chords.iter().any(|other| other.clashes_with(*chord)), "{chord} twice");
                chords.push(*chord);
            }
        }
    }

    #[test]
    fn every_action_says_what_it_does_in_few_words() {
        for row in TABLE {
            assert!((1..=24).contains(&row.what.chars().count()), "{:?}", row.action);
            let hinted = row.hint.map_or(1, |hint| hint.what.chars().count());
            assert!((1..=12).contains(&hinted), "{:?}", row.action);
        }
    }

    #[test]
    fn a_name_can_be_typed() {
        for row in TABLE {
            assert!(row.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", row.name);
            assert_eq!(Action::named(row.name), Some(row.action));
        }
    }

    #[test]
    fn a_counterpart_has_no_hint_of_its_own() {
        for hint in TABLE.iter().filter_map(|row| row.hint) {
            let own = hint.beside.and_then(|other| other.row().hint);
            assert!(own.is_none(), "{} would be said twice", hint.what);
        }
    }
}
