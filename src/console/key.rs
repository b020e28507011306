//! A key as a person presses and names it, alone or followed by a second one.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// One key with what is held down beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// The keys that have a name, and how a file writes it.
const NAMED: [(KeyCode, &str); 15] = [
    (KeyCode::Char(' '), "space"),
    (KeyCode::Left, "left"),
    (KeyCode::Right, "right"),
    (KeyCode::Up, "up"),
    (KeyCode::Down, "down"),
    (KeyCode::Home, "home"),
    (KeyCode::End, "end"),
    (KeyCode::PageUp, "pgup"),
    (KeyCode::PageDown, "pgdn"),
    (KeyCode::Enter, "enter"),
    (KeyCode::Esc, "esc"),
    (KeyCode::Tab, "tab"),
    (KeyCode::Backspace, "backspace"),
    (KeyCode::Delete, "delete"),
    (KeyCode::Insert, "insert"),
];

impl Key {
    pub(crate) const fn new(code: KeyCode) -> Self {
        Self { code, modifiers: KeyModifiers::NONE }
    }

    pub(crate) const fn char(c: char) -> Self {
        Self::new(KeyCode::Char(c))
    }

    pub(crate) const fn ctrl(c: char) -> Self {
        Self { code: KeyCode::Char(c), modifiers: KeyModifiers::CONTROL }
    }

    pub(crate) const fn shift(code: KeyCode) -> Self {
        Self { code, modifiers: KeyModifiers::SHIFT }
    }

    /// What the terminal reports, unless it reports a release. A character already says whether
    /// shift was held, and so does the back tab.
    pub(crate) fn pressed(event: KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let mut modifiers = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::SHIFT);
        if matches!(event.code, KeyCode::Char(_) | KeyCode::BackTab) {
            modifiers -= KeyModifiers::SHIFT;
        }
        Some(Self { code: event.code, modifiers })
    }

    /// The key without what is held down beside it.
    pub(crate) fn code(self) -> KeyCode {
        self.code
    }

    pub(crate) fn typed(self) -> Option<char> {
        let KeyCode::Char(c) = self.code else { return None };
        self.modifiers.is_empty().then_some(c)
    }

    /// Its name in a file, made of letters that every keyboard has.
    pub(crate) fn name(self) -> String {
        let is_back = self.code == KeyCode::BackTab;
        let (code, back) = if is_back { (KeyCode::Tab, "shift-") } else { (self.code, "") };
        let named = NAMED.iter().find(|(known, _)| *known == code);
        let name = match (named, code) {
            (Some((_, name)), _) => (*name).to_owned(),
            (None, KeyCode::Char(c)) => c.to_string(),
            (None, KeyCode::F(n)) => format!("f{n}"),
            (None, code) => code.to_string().to_lowercase(),
        };
        format!("{}{back}{name}", self.held())
    }

    fn held(self) -> String {
        let held = [(KeyModifiers::CONTROL, "ctrl-"), (KeyModifiers::SHIFT, "shift-")];
        let held = held.into_iter().filter(|(held, _)| self.modifiers.contains(*held));
        held.map(|(_, name)| name).collect()
    }
}

/// As the screen shows it: arrows as arrows.
impl fmt::Display for Key {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key has a name")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.code {
            KeyCode::Left => "←",
            KeyCode::Right => "→",
            KeyCode::Up => "↑",
            KeyCode::Down => "↓",
            _ => return f.write_str(&self.name()),
        };
        write!(f, "{}{arrow}", self.held())
    }
}

/// Reads a name as [`Key::name`] writes it.
impl FromStr for Key {
    type Err = String;

    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key may be held with anything")]
    fn from_str(text: &str) -> Result<Self, String> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        while let Some((held, key)) = rest.split_once('-').filter(|(_, key)| !key.is_empty()) {
            modifiers |= match held.to_lowercase().as_str() {
                "ctrl" => KeyModifiers::CONTROL,
                "shift" => KeyModifiers::SHIFT,
                _ => return Err(format!("{held:?} cannot be held down; ctrl and shift can")),
            };
            rest = key;
        }
        let code = code(rest).ok_or_else(|| {
            let names: Vec<&str> = NAMED.iter().map(|(_, name)| *name).collect();
            format!("no key is called {text:?}; one character, f1 to f12, or {}", names.join(" "))
        })?;
        let shift = modifiers.contains(KeyModifiers::SHIFT);
        Ok(match code {
            KeyCode::Tab if shift => {
                Self { code: KeyCode::BackTab, modifiers: modifiers - KeyModifiers::SHIFT }
            }
            KeyCode::Char(c) if shift => {
                return Err(format!("{c:?} with shift is another character: write that one"));
            }
            KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => {
                Self { code: KeyCode::Char(c.to_ascii_lowercase()), modifiers }
            }
            code => Self { code, modifiers },
        })
    }
}

fn code(name: &str) -> Option<KeyCode> {
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(c), None) if !c.is_control() && c != ' ' => return Some(KeyCode::Char(c)),
        (None, _) => return None,
        _ => {}
    }
    let lower = name.to_lowercase();
    if let Some(number) = lower.strip_prefix('f').and_then(|n| n.parse().ok()) {
        return (1..=12).contains(&number).then_some(KeyCode::F(number));
    }
    NAMED.iter().find(|(_, known)| *known == lower).map(|(code, _)| *code)
}

/// One key, or two pressed one after the other. There are none of three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Chord {
    pub first: Key,
    pub then: Option<Key>,
}

impl Chord {
    pub(crate) const fn one(first: Key) -> Self {
        Self { first, then: None }
    }

    pub(crate) fn name(self) -> String {
        match self.then {
            None => self.first.name(),
            Some(then) => format!("{} {}", self.first.name(), then.name()),
        }
    }

    /// Whether only one of them can be pressed: they are the same, or one begins the other.
    pub(crate) fn clashes_with(self, other: Self) -> bool {
        self.first == other.first
            && (self.then == other.then || self.then.is_none() || other.then.is_none())
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.then.map_or(Ok(()), |then| write!(f, " {then}"))
    }
}

impl FromStr for Chord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let keys: Vec<Key> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        match keys[..] {
            [first] => Ok(Self::one(first)),
            [first, then] => Ok(Self { first, then: Some(then) }),
            [] => Err("a key is missing; the space bar is called \"space\"".to_owned()),
            _ => Err(format!("{text:?} is longer than two keys")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = Key> {
        let code = prop_oneof![
            prop::char::range('!', '~').prop_map(KeyCode::Char),
            (1_u8..=12).prop_map(KeyCode::F),
            prop::sample::select(NAMED.map(|(code, _)| code).to_vec()),
            Just(KeyCode::BackTab),
        ];
        (code, any::<bool>(), any::<bool>()).prop_filter_map("typed", |(code, ctrl, shift)| {
            let mut modifiers = KeyModifiers::NONE;
            modifiers.set(KeyModifiers::CONTROL, ctrl);
            modifiers.set(KeyModifiers::SHIFT, shift && code != KeyCode::Tab);
            let upper = matches!(code, KeyCode::Char(c) if c.is_ascii_uppercase());
            (!(ctrl && upper)).then_some(Key::pressed(KeyEvent::new(code, modifiers))?)
        })
    }

    proptest! {
        #[test]
        fn every_key_can_be_written_and_read_again(first in any_key(), then in any_key()) {
            prop_assert_eq!(first.name().parse::<Key>(), Ok(first));
            let chord = Chord { first, then: Some(then) };
            prop_assert_eq!(chord.name().parse::<Chord>(), Ok(chord));
        }

        #[test]
        fn any_text_is_a_key_or_a_complaint(text in "\\PC{0,12}") {
            let _ = text.parse::<Chord>();
        }
    }

    #[test]
    fn complaints_say_what_would_be_right() {
        let complaint = |text: &str| text.parse::<Chord>().expect_err("not a key");
        assert!(complaint("spcae").contains("no key is called"));
        assert!(complaint("meta-x").contains("ctrl and shift can"));
        assert!(complaint("g g g").contains("longer than two"));
        assert!(complaint("").contains("space bar"));
        assert!(complaint("shift-a").contains("another character"));
    }

    #[test]
    fn minus_is_a_key() {
        assert_eq!("-".parse(), Ok(Key::char('-')));
        assert_eq!("ctrl--".parse(), Ok(Key::ctrl('-')));
    }
}
