//! The one table of what can be done. Key map, help, bottom line, command line, `keys.ron`, the table in
//! the README and the manual page all come from it.
//!
//! To add an action: a variant of [`Action`] and a row of [`TABLE`], the rest follows.

use crossterm::event::KeyCode;

use super::key::{Chord, Key};

/// Something the operator can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Stop and go on.
    Pause,
    /// More data time per second.
    Faster,
    /// Less data time per second.
    Slower,
    /// Look a column back.
    Back,
    /// Look a column on.
    Forward,
    /// Look far back.
    FarBack,
    /// Look far on.
    FarForward,
    /// Look at the start.
    Start,
    /// Return to the newest data.
    Live,
    /// Shorter columns.
    ZoomIn,
    /// Longer columns.
    ZoomOut,
    /// The client after this one.
    NextClient,
    /// The client before this one.
    PreviousClient,
    /// The chosen client alone and larger.
    Open,
    /// One level up.
    Close,
    /// What did not fit, further down.
    PageDown,
    /// What did not fit, further up.
    PageUp,
    /// Show or hide what the data set knows.
    Truth,
    /// Help.
    Help,
    /// The next look.
    Theme,
    /// The mouse is ours, or the terminal's own.
    Mouse,
    /// What is chosen, to the clipboard.
    Copy,
    /// The picture, to files.
    Picture,
    /// Read the file of keys again.
    Keys,
    /// Draw everything anew.
    Redraw,
    /// To the shell and back.
    Suspend,
    /// Close what is open, then the program.
    Quit,
    /// Leave at once.
    QuitNow,
}

/// What an action is about; the headings of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Data time.
    Time,
    /// What is shown.
    Views,
    /// The program itself.
    Program,
}

impl Topic {
    /// All, in the order of the help.
    pub const ALL: [Topic; 3] = [Topic::Time, Topic::Views, Topic::Program];

    /// Its heading.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Topic::Time => "time",
            Topic::Views => "views",
            Topic::Program => "program",
        }
    }
}

/// How an action stands in the bottom line: its first key and a word or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// What it does.
    pub what: &'static str,
    /// Hints of a lower number stay longer when there is little room.
    pub rank: u8,
    /// The counterpart whose key stands beside its own.
    pub beside: Option<Action>,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// What is asked for.
    pub action: Action,
    /// Its name in `keys.ron` and on the command line.
    pub name: &'static str,
    /// Keys that ask for it unless a file says otherwise.
    pub keys: &'static [Chord],
    /// Where it stands in the help.
    pub topic: Topic,
    /// What it does, in a few words.
    pub what: &'static str,
    /// How it stands in the bottom line, if it does.
    pub hint: Option<Hint>,
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
use Topic::{Program, Time, Views};

/// Every action, once.
pub const TABLE: &[Binding] = &[
    row(Action::Pause, "pause", &[c(' ')], Time, "pause, go on").hint("pause", 2),
    row(Action::Back, "back", &[k(Left), c('h')], Time, "look one column back").beside(
        Action::Forward,
        "look back",
        3,
    ),
    row(Action::Forward, "forward", &[k(Right), c('l')], Time, "look one column on"),
    row(Action::FarBack, "far-back", &[shift(Left), c('H')], Time, "look 20 columns back"),
    row(Action::FarForward, "far-forward", &[shift(Right), c('L')], Time, "look 20 columns on"),
    row(Action::Start, "start", &[k(Home)], Time, "look at the start"),
    row(Action::Live, "live", &[k(End), c('.')], Time, "back to the newest data").hint("newest", 2),
    row(Action::Faster, "faster", &[c(']'), c('+'), c('=')], Time, "faster"),
    row(Action::Slower, "slower", &[c('['), c('-')], Time, "slower").beside(
        Action::Faster,
        "speed",
        4,
    ),
    row(Action::ZoomIn, "zoom-in", &[c('z')], Time, "zoom in").beside(Action::ZoomOut, "zoom", 7),
    row(Action::ZoomOut, "zoom-out", &[c('Z')], Time, "zoom out"),
    row(Action::NextClient, "next", &[k(Tab), c('j'), k(Down)], Views, "next client")
        .hint("client", 6),
    row(Action::PreviousClient, "previous", &[k(BackTab), c('k'), k(Up)], Views, "previous client"),
    row(Action::Open, "open", &[k(Enter)], Views, "open the client larger").hint("open", 5),
    row(Action::Close, "close", &[k(Esc)], Views, "one level up").hint("back", 2),
    row(Action::PageDown, "page-down", &[k(PageDown)], Views, "further down"),
    row(Action::PageUp, "page-up", &[k(PageUp)], Views, "further up"),
    row(Action::Truth, "truth", &[c('t')], Views, "show or hide the truth").hint("truth", 5),
    row(Action::Help, "help", &[c('?')], Program, "this help").hint("help", 1),
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
    #[must_use]
    pub fn row(self) -> &'static Binding {
        TABLE.iter().find(|row| row.action == self).expect("every action has a row")
    }

    /// The action of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
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
