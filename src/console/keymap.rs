//! Which keys ask for which action: the table's own, or what a file makes of them.

use std::env;
use std::fmt::Write;

use super::action::{Action, TABLE};
use super::key::{Chord, Key};

mod file;

pub(crate) use file::{
    KEYS_FILE, KeysError, example as example_keys, parse as keys_of, path, read,
};

/// Keys of every action, in the order of the table. Each has one at least, and none has another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keymap {
    rows: Vec<(Action, Vec<Chord>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Do(Action),
    Begins,
    Nothing,
}

impl Default for Keymap {
    fn default() -> Self {
        Self { rows: TABLE.iter().map(|row| (row.action, row.keys.to_vec())).collect() }
    }
}

impl Keymap {
    pub(crate) fn meaning(&self, before: Option<Key>, key: Key) -> Meaning {
        let pressed = match before {
            None => Chord::one(key),
            Some(first) => Chord { first, then: Some(key) },
        };
        let all = || self.rows.iter().flat_map(|(action, keys)| keys.iter().map(|k| (*action, k)));
        if let Some((action, _)) = all().find(|(_, chord)| **chord == pressed) {
            Meaning::Do(action)
        } else if before.is_none() && all().any(|(_, chord)| chord.first == key) {
            Meaning::Begins
        } else {
            Meaning::Nothing
        }
    }

    pub(crate) fn keys(&self, action: Action) -> &[Chord] {
        self.rows.iter().find(|(known, _)| *known == action).map_or(&[], |(_, keys)| keys)
    }

    fn words(&self, action: Action) -> String {
        self.keys(action).iter().map(ToString::to_string).collect::<Vec<_>>().join("  ")
    }
}

/// The keys in force: the table's own, or what the user's file makes of them.
pub(crate) fn keys_in_force() -> Result<Keymap, KeysError> {
    path(|name| env::var(name).ok()).map_or_else(|| Ok(Keymap::default()), |path| read(&path))
}

pub(crate) fn keys_table(keymap: &Keymap) -> String {
    let mut text = String::from("| keys | action | what it does |\n|---|---|---|\n");
    for row in TABLE {
        let keys = keymap.keys(row.action).iter();
        let keys: Vec<String> =
            keys.map(|chord| format!("`{}`", chord.to_string().replace('|', "\\|"))).collect();
        let _ = writeln!(text, "| {} | {} | {} |", keys.join(" "), row.name, row.what);
    }
    text
}

pub(crate) fn actions() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    let keymap = Keymap::default();
    TABLE.iter().map(move |row| (keymap.words(row.action), row.name, row.what))
}
