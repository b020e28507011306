//! `keys.ron`: an action's name and the keys it shall have. What is not named keeps its own.
//!
//! ```ron
//! {
//!     "pause": ["space", "p"],
//!     "start": ["home", "g g"],
//! }
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use super::Keymap;
use crate::base::folders;
use crate::base::suggest::nearest;
use crate::console::action::{Action, Binding, TABLE};
use crate::console::key::Chord;
pub(crate) const KEYS_FILE: &str = "keys.ron";

/// Where the file stands: in `HEADWATER_CONFIG`, else where the system keeps such files; `None` where
/// it keeps none.
pub(crate) fn path(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(folders::configuration(variable)?.join(KEYS_FILE))
}

/// The key map that `path` describes; the table's own where there is no such file.
pub(crate) fn read(path: &Path) -> Result<Keymap, KeysError> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => parse(&name, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Keymap::default()),
        Err(error) => Err(KeysError { complaints: vec![format!("{name}: {error}")] }),
    }
}
pub(crate) fn example() -> String {
    let mut text = String::from(
        "// Keys of the console. An action that is not named keeps its own keys; \"g g\" is g, then g.\n{\n",
    );
    for row in TABLE {
        let keys: Vec<String> =
            row.keys.iter().map(|chord| format!("{:?}", chord.name())).collect();
        let line = format!("    {:?}: [{}],", row.name, keys.join(", "));
        let _ = writeln!(text, "{line:50} // {}", row.what);
    }
    text + "}\n"
}

/// What is wrong with a file of keys; all of it, each with its place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .complaints.join("\n"))]
pub(crate) struct KeysError {
    complaints: Vec<String>,
}

impl KeysError {
    pub(crate) fn line(&self) -> String {
        let first = self.complaints.first().cloned().unwrap_or_default();
        match self.complaints.len() {
            0 | 1 => first,
            more => format!("{first} (and {} more)", more - 1),
        }
    }
}

/// The file as it is written: names and keys in their order, twice what stands there twice.
struct Written(Vec<(String, Vec<String>)>);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rows;

        impl<'de> Visitor<'de> for Rows {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("actions and their keys: { \"pause\": [\"space\"] }")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Written, M::Error> {
                let mut rows = Vec::new();
                while let Some(row) = map.next_entry()? {
                    rows.push(row);
                }
                Ok(Written(rows))
            }
        }

        deserializer.deserialize_map(Rows)
    }
}

/// The key map that `text` describes; `file` is shown in front of every complaint.
pub(crate) fn parse(file: &str, text: &str) -> Result<Keymap, KeysError> {
    let Written(written) = ron::from_str(text).map_err(|error| {
        let at = error.span.start;
        let complaint = format!("{file}:{}:{}: {}", at.line, at.col, error.code);
        KeysError { complaints: vec![complaint] }
    })?;
    let mut places = places(text).into_iter();
    let mut place = || {
        let (line, column) = places.next().unwrap_or((1, 1));
        format!("{file}:{line}:{column}")
    };
    let mut complaints = Vec::new();
    let mut named: Vec<Action> = Vec::new();
    // Keys that the file sets, their actions, and their places in it.
    let mut taken: Vec<(Chord, Action, String)> = Vec::new();
    for (name, keys) in &written {
        let at = place();
        let action = Action::named(name);
        match action {
            None => complaints.push(format!("{at}: {}", unknown(name))),
            Some(action) if named.contains(&action) => {
                complaints.push(format!("{at}: {name:?} stands here twice"));
            }
            Some(_) if keys.is_empty() => complaints.push(format!("{at}: {name:?} needs a key")),
            Some(_) => {}
        }
        named.extend(action);
        for key in keys {
            let at = place();
            match key.parse::<Chord>() {
                Err(complaint) => complaints.push(format!("{at}: {complaint}")),
                Ok(chord) => match taken.iter().find(|(other, ..)| other.clashes_with(chord)) {
                    Some((other, owner, _)) => {
                        let owner = owner.row().name;
                        let how =
                            if *other == chord { "is taken by" } else { "gets in the way of" };
                        complaints.push(format!("{at}: {key:?} {how} {owner:?}"));
                    }
                    None => taken.extend(action.map(|action| (chord, action, at))),
                },
            }
        }
    }
    // The keys of an action: the file's, else its own as far as the file has not given them away.
    let mut rows = Vec::new();
    for Binding { action, name, keys, .. } in TABLE {
        let given = taken.iter().filter(|(_, owner, _)| owner == action).map(|(chord, ..)| *chord);
        let mut chords: Vec<Chord> = given.collect();
        if !named.contains(action) {
            let free = |own: &&Chord| !taken.iter().any(|(other, ..)| other.clashes_with(**own));
            chords.extend(keys.iter().filter(free));
            let last = |chord: &Chord| keys.iter().any(|own| own.clashes_with(*chord));
            if let Some((chord, _, at)) = taken.iter().find(|(chord, ..)| last(chord))
                && chords.is_empty()
            {
                let key = chord.name();
                complaints.push(format!(
                    "{at}: {key:?} was the last key of {name:?}; give that one another"
                ));
            }
        }
        rows.push((*action, chords));
    }
    if complaints.is_empty() { Ok(Keymap { rows }) } else { Err(KeysError { complaints }) }
}

fn unknown(name: &str) -> String {
    let near = nearest(name, TABLE.iter().map(|row| row.name))
        .map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default();
    format!("no action is called {name:?}{near}")
}

/// Line and column of every text in quotation marks, in order. The file holds nothing else that could
/// be wrong once it is well-formed.
fn places(text: &str) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let (mut line, mut column) = (1, 0);
    let mut letters = text.chars().peekable();
    let mut within = Within::Nothing;
    while let Some(letter) = letters.next() {
        if letter == '\n' {
            (line, column) = (line + 1, 0);
        } else {
            column += 1;
        }
        within = match (within, letter) {
            (Within::Nothing, '"') => {
                places.push((line, column));
                Within::Text
            }
            (Within::Nothing, '/') if letters.peek() == Some(&'/') => Within::Line,
            (Within::Nothing, '/') if letters.peek() == Some(&'*') => Within::Block,
            (Within::Text, '\\') => Within::Escape,
            (Within::Text, '"') | (Within::Line, '\n') | (Within::BlockEnd, _) => Within::Nothing,
            (Within::Block, '*') if letters.peek() == Some(&'/') => Within::BlockEnd,
            (Within::Escape, _) => Within::Text,
            (within, _) => within,
        };
    }
    places
}
#[derive(Clone, Copy)]
enum Within {
    Nothing,
    Text,
    Escape,
    Line,
    Block,
    BlockEnd,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::key::Key;
    use crate::console::keymap::Meaning;

    fn complaints(text: &str) -> Vec<String> {
        parse("keys.ron", text).expect_err("something is wrong").complaints
    }

    #[test]
    fn an_action_that_is_named_gets_these_keys_and_no_other() {
        let map = parse("keys.ron", "{\"pause\": [\"e\", \"E E\"]}").expect("right");
        let meaning = |before, c| map.meaning(before, Key::char(c));
        assert_eq!(meaning(None, 'e'), Meaning::Do(Action::Pause));
        assert_eq!(meaning(None, ' '), Meaning::Nothing);
        assert_eq!(meaning(None, 'E'), Meaning::Begins);
        assert_eq!(meaning(Some(Key::char('E')), 'E'), Meaning::Do(Action::Pause));
        assert_eq!(meaning(Some(Key::char('E')), 'e'), Meaning::Nothing);
        assert_eq!(map.keys(Action::Help), Action::Help.row().keys);
    }

    #[test]
    fn the_example_changes_nothing() {
        assert_eq!(parse("keys.ron", &example()), Ok(Keymap::default()));
        assert_eq!(parse("keys.ron", "{}"), Ok(Keymap::default()));
    }

    #[test]
    fn a_complaint_names_file_line_and_column_and_what_was_probably_meant() {
        let text =
            "// \"a comment\"\n{\n    \"pase\": [\"p\"],\n    /* \" */ \"truth\": [\"spcae\"],\n}";
        let told = complaints(text);
        assert_eq!(told[0], "keys.ron:3:5: no action is called \"pase\"; did you mean \"pause\"?");
        assert!(told[1].starts_with("keys.ron:4:23: no key is called \"spcae\""), "{told:?}");
    }

    #[test]
    fn a_file_that_is_no_ron_is_told_with_its_place() {
        assert!(complaints("{\n  \"pause\" [\"p\"]\n}")[0].starts_with("keys.ron:2:"));
        assert!(complaints("[1]")[0].starts_with("keys.ron:1:"));
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let told = complaints("{\"pause\": [\"e\"], \"truth\": [\"e\"]}");
        assert_eq!(told, ["keys.ron:1:28: \"e\" is taken by \"pause\""]);
        let told = complaints("{\"pause\": [\"e\"], \"truth\": [\"e q\"]}");
        assert_eq!(told, ["keys.ron:1:28: \"e q\" gets in the way of \"pause\""]);
        let told = complaints("{\"pause\": [\"e\"], \"pause\": [\"E\"]}");
        assert_eq!(told, ["keys.ron:1:18: \"pause\" stands here twice"]);
    }

    #[test]
    fn nobody_is_left_without_a_key() {
        let told = complaints("{\"truth\": [\"q\"]}");
        assert_eq!(
            told,
            ["keys.ron:1:12: \"q\" was the last key of \"quit\"; give that one another"]
        );
        assert_eq!(complaints("{\"quit\": []}"), ["keys.ron:1:2: \"quit\" needs a key"]);
        let map = parse("keys.ron", "{\"truth\": [\"h\"]}").expect("← is left");
        assert_eq!(map.keys(Action::Back).len(), 1);
    }

    #[test]
    fn the_file_is_looked_for_where_the_environment_says() {
        let with = |pairs: &'static [(&str, &str)]| {
            path(|name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(with(&[("HEADWATER_CONFIG", "/c")]), Some("/c/keys.ron".into()));
        assert_eq!(
            with(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]),
            Some("/x/headwater/keys.ron".into())
        );
        assert_eq!(with(&[("HOME", "/h")]), Some("/h/.config/headwater/keys.ron".into()));
        assert_eq!(with(&[]), None);
    }
}
