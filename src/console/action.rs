//! The one table of what can be done: keys, help overlay and bottom line all come from it.

use crossterm::event::KeyCode;

use super::key::Key;

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

/// A line of the bottom row: keys and a word or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// Keys as shown, for this action and its counterpart.
    pub keys: &'static str,
    /// What they do.
    pub what: &'static str,
    /// Hints of a lower number stay longer when there is little room.
    pub rank: u8,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// What is asked for.
    pub action: Action,
    /// Keys that ask for it.
    pub keys: &'static [Key],
    /// Where it stands in the help.
    pub topic: Topic,
    /// What it does, in a few words.
    pub what: &'static str,
    /// How it stands in the bottom row, if it does.
    pub hint: Option<Hint>,
}

const fn hint(keys: &'static str, what: &'static str, rank: u8) -> Hint {
    Hint { keys, what, rank }
}

const fn row(
    action: Action,
    keys: &'static [Key],
    topic: Topic,
    what: &'static str,
    hint: Option<Hint>,
) -> Binding {
    Binding { action, keys, topic, what, hint }
}

/// Every action, once.
pub const TABLE: &[Binding] = &[
    row(
        Action::Pause,
        &[Key::char(' ')],
        Topic::Time,
        "pause, go on",
        Some(hint("space", "pause", 2)),
    ),
    row(
        Action::Back,
        &[Key::new(KeyCode::Left), Key::char('h')],
        Topic::Time,
        "look one column back",
        Some(hint("← →", "look back", 3)),
    ),
    row(
        Action::Forward,
        &[Key::new(KeyCode::Right), Key::char('l')],
        Topic::Time,
        "look one column on",
        None,
    ),
    row(
        Action::FarBack,
        &[Key::shift(KeyCode::Left), Key::char('H')],
        Topic::Time,
        "look 20 columns back",
        None,
    ),
    row(
        Action::FarForward,
        &[Key::shift(KeyCode::Right), Key::char('L')],
        Topic::Time,
        "look 20 columns on",
        None,
    ),
    row(Action::Start, &[Key::new(KeyCode::Home)], Topic::Time, "look at the start", None),
    row(
        Action::Live,
        &[Key::new(KeyCode::End), Key::char('.')],
        Topic::Time,
        "back to the newest data",
        Some(hint(".", "newest", 2)),
    ),
    row(
        Action::Faster,
        &[Key::char('+'), Key::char('='), Key::char(']')],
        Topic::Time,
        "faster",
        Some(hint("+ -", "speed", 4)),
    ),
    row(Action::Slower, &[Key::char('-'), Key::char('[')], Topic::Time, "slower", None),
    row(Action::ZoomIn, &[Key::char('z')], Topic::Time, "zoom in", Some(hint("z Z", "zoom", 7))),
    row(Action::ZoomOut, &[Key::char('Z')], Topic::Time, "zoom out", None),
    row(
        Action::NextClient,
        &[Key::new(KeyCode::Tab), Key::char('j'), Key::new(KeyCode::Down)],
        Topic::Views,
        "next client",
        Some(hint("tab", "client", 6)),
    ),
    row(
        Action::PreviousClient,
        &[Key::new(KeyCode::BackTab), Key::char('k'), Key::new(KeyCode::Up)],
        Topic::Views,
        "previous client",
        None,
    ),
    row(
        Action::Open,
        &[Key::new(KeyCode::Enter)],
        Topic::Views,
        "open the client larger",
        Some(hint("enter", "open", 5)),
    ),
    row(
        Action::Close,
        &[Key::new(KeyCode::Esc)],
        Topic::Views,
        "one level up",
        Some(hint("esc", "back", 2)),
    ),
    row(Action::PageDown, &[Key::new(KeyCode::PageDown)], Topic::Views, "further down", None),
    row(Action::PageUp, &[Key::new(KeyCode::PageUp)], Topic::Views, "further up", None),
    row(
        Action::Truth,
        &[Key::char('t')],
        Topic::Views,
        "show or hide the truth",
        Some(hint("t", "truth", 5)),
    ),
    row(Action::Help, &[Key::char('?')], Topic::Program, "this help", Some(hint("?", "help", 1))),
    row(Action::Redraw, &[Key::ctrl('l')], Topic::Program, "draw the screen anew", None),
    row(Action::Suspend, &[Key::ctrl('z')], Topic::Program, "to the shell, fg returns", None),
    row(
        Action::Quit,
        &[Key::char('q')],
        Topic::Program,
        "close; at the top, quit",
        Some(hint("q", "quit", 1)),
    ),
    row(Action::QuitNow, &[Key::ctrl('c')], Topic::Program, "quit at once", None),
];

/// What `key` asks for.
#[must_use]
pub fn of(key: Key) -> Option<Action> {
    TABLE.iter().find(|binding| binding.keys.contains(&key)).map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_and_no_action_stands_in_the_table_twice() {
        let mut keys = HashSet::new();
        let mut actions = HashSet::new();
        for binding in TABLE {
            assert!(actions.insert(binding.action), "{:?} twice", binding.action);
            assert!(!binding.keys.is_empty(), "{:?} has no key", binding.action);
            for key in binding.keys {
                assert!(keys.insert(*key), "{key} twice");
            }
        }
    }

    #[test]
    fn every_action_says_what_it_does_in_few_words() {
        for binding in TABLE {
            assert!((1..=24).contains(&binding.what.chars().count()), "{:?}", binding.action);
        }
    }

    #[test]
    fn a_hint_names_keys_of_the_table() {
        for hint in TABLE.iter().filter_map(|binding| binding.hint) {
            for word in hint.keys.split(' ') {
                assert!(
                    TABLE.iter().flat_map(|b| b.keys).any(|key| key.to_string() == word),
                    "{word} is no key"
                );
            }
        }
    }
}
