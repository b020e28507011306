//! The one table of what can be done. Key map, help, bottom line, command line, `keys.ron`, the table in
//! the README and the manual page all come from it.
//!
//! To add an action: a row of [`TABLE`]. The compiler then asks for what it does and where it works.

use crossterm::event::KeyCode;

use super::key::{Chord, Key};

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
    pub(crate) const ALL: [Topic; 5] =
        [Topic::Time, Topic::Views, Topic::Incidents, Topic::Tuning, Topic::Program];

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
    pub what: &'static str,
    /// Hints of a lower number stay longer when there is little room.
    pub rank: u8,
    pub beside: Option<Action>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    pub action: Action,
    /// Its name in `keys.ron` and on the command line.
    pub name: &'static str,
    /// Keys that ask for it unless a file says otherwise.
    pub keys: &'static [Chord],
    pub topic: Topic,
    pub what: &'static str,
    pub hint: Option<Hint>,
}

const fn hint(what: &'static str, rank: u8) -> Hint {
    Hint { what, rank, beside: None }
}

const fn beside(other: Action, what: &'static str, rank: u8) -> Hint {
    Hint { what, rank, beside: Some(other) }
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

macro_rules! actions {
    ($($action:ident, $name:literal, $keys:expr, $topic:ident, $what:literal $(, $hint:expr)?;)*) => {
        /// Something the operator can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Action { $($action),* }

        /// Every action, once.
        pub(crate) const TABLE: &[Binding] = &[$(Binding {
            action: Action::$action,
            name: $name,
            keys: $keys,
            topic: Topic::$topic,
            what: $what,
            hint: actions!(@hint $($hint)?),
        }),*];
    };
    (@hint) => { None };
    (@hint $hint:expr) => { Some($hint) };
}

// Action, name, keys, topic, what it does, how it stands in the bottom line.
actions! {
    Pause, "pause", &[c(' ')], Time, "pause, go on", hint("pause", 2);
    Back, "back", &[k(Left), c('h')], Time, "look one column back",
        beside(Action::Forward, "look back", 3);
    Forward, "forward", &[k(Right), c('l')], Time, "look one column on";
    FarBack, "far-back", &[shift(Left), c('H')], Time, "look 20 columns back";
    FarForward, "far-forward", &[shift(Right), c('L')], Time, "look 20 columns on";
    PreviousIncident, "previous-incident", &[c(',')], Time, "incident before",
        beside(Action::NextIncident, "incident", 4);
    NextIncident, "next-incident", &[c('.')], Time, "incident after";
    PlayIncident, "play", &[c('p')], Time, "play it from 60 s before";
    Start, "start", &[k(Home)], Time, "look at the start";
    Live, "live", &[k(End), c('G')], Time, "back to the newest data", hint("newest", 2);
    GoTo, "go-to", &[c('g')], Time, "go to 10:38, -5m, #7, 'a", hint("go to", 8);
    Mark, "mark", &[c('m')], Time, "mark with a letter";
    ToMark, "to-mark", &[c('\'')], Time, "go to a mark";
    LoopStart, "loop-start", &[c('A')], Time, "loop: from here; end it";
    LoopEnd, "loop-end", &[c('B')], Time, "loop: until here";
    Slower, "slower", &[c('[')], Time, "slower", beside(Action::Faster, "speed", 4);
    Faster, "faster", &[c(']')], Time, "faster";
    StepOnce, "step", &[c('>')], Time, "stand, one step on";
    ZoomIn, "zoom-in", &[c('z')], Time, "zoom in", beside(Action::ZoomOut, "zoom", 7);
    ZoomOut, "zoom-out", &[c('Z')], Time, "zoom out";
    CloseUp, "close-up", &[c('v')], Time, "incident in 5 s columns", hint("close-up", 6);
    ShowOverview, "overview", &[c('1')], Views, "overview",
        beside(Action::ShowSessions, "views", 4);
    ShowClient, "client", &[c('2')], Views, "one client";
    ShowInfluence, "influence", &[c('3')], Views, "who influences whom";
    ShowIncident, "incident", &[c('4')], Views, "one incident";
    ShowTraining, "training", &[c('5')], Views, "how models were made";
    ShowPrivacy, "privacy", &[c('6')], Views, "what was given away";
    ShowLog, "log", &[c('7')], Views, "sequence of events";
    ShowSessions, "sessions", &[c('8')], Views, "what can be opened";
    NextPanel, "next-panel", &[k(Tab)], Views, "next panel", hint("panel", 6);
    PreviousPanel, "previous-panel", &[k(BackTab)], Views, "panel before";
    Down, "down", &[k(Down), c('j')], Views, "choose below";
    Up, "up", &[k(Up), c('k')], Views, "choose above";
    Open, "open-chosen", &[k(Enter)], Views, "open, or set the knob", hint("open", 5);
    Close, "close", &[k(Esc)], Views, "one level up, or drop it", hint("back", 2);
    PageDown, "page-down", &[k(PageDown)], Views, "further down";
    PageUp, "page-up", &[k(PageUp)], Views, "further up";
    Sort, "sort", &[c('o')], Views, "order: plant, severity";
    Filter, "find", &[c('/')], Views, "filter log, search help";
    Truth, "truth", &[c('t')], Views, "show or hide the truth", hint("truth", 5);
    Prose, "words", &[c('i')], Views, "privacy in words";
    Acknowledge, "acknowledge", &[c('a')], Incidents, "acknowledge", hint("ack", 3);
    AcknowledgeAll, "acknowledge-all", &[ctrl('a')], Incidents, "acknowledge all listed";
    Shelve, "shelve-chosen", &[c('s')], Incidents, "shelve for a time", hint("shelve", 6);
    Unshelve, "unshelve", &[c('S')], Incidents, "unshelve", hint("unshelve", 7);
    Service, "service", &[c('x')], Incidents, "out of service, back";
    Note, "write-note", &[c('n')], Incidents, "note";
    Accept, "accept", &[c('N')], Incidents, "accept as new normal";
    Correct, "correct", &[c('c')], Incidents, "correct the root";
    TurnUp, "up-knob", &[c('+'), c('=')], Tuning, "knob up, on trial",
        beside(Action::TurnDown, "tune", 6);
    TurnDown, "down-knob", &[c('-')], Tuning, "knob down, on trial";
    TurnFarUp, "far-up-knob", &[shift(Up), c('*')], Tuning, "ten steps up";
    TurnFarDown, "far-down-knob", &[shift(Down), c('_')], Tuning, "ten steps down";
    WriteSession, "write-session", &[c('w')], Tuning, "settings to the session",
        hint("write", 4);
    Undo, "undo", &[c('u')], Tuning, "undo", hint("undo", 5);
    Redo, "redo", &[ctrl('r')], Tuning, "redo";
    Command, "command", &[c(':')], Program, "command, tab completes", hint("command", 8);
    Help, "help", &[c('?')], Program, "this help", hint("help", 1);
    Bell, "ring", &[c('b')], Program, "bell on priority 1, off";
    Theme, "theme", &[c('T')], Program, "next theme";
    Mouse, "mouse", &[c('M')], Program, "mouse on, off";
    Copy, "copy", &[c('y')], Program, "copy what is chosen";
    Picture, "picture", &[c('P')], Program, "screen to files";
    Keys, "keys", &[c('K')], Program, "read keys.ron again";
    Redraw, "redraw", &[ctrl('l')], Program, "draw the screen again";
    Suspend, "suspend", &[ctrl('z')], Program, "to the shell, fg returns";
    Quit, "quit", &[c('q')], Program, "close; at the top, quit", hint("quit", 1);
    QuitNow, "quit-now", &[ctrl('c')], Program, "quit at once";
}

impl Action {
    pub(crate) fn row(self) -> &'static Binding {
        &TABLE[self as usize]
    }

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
