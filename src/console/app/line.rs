//! A line of text being typed.

use crossterm::event::KeyCode;

use crate::console::key::Key;
use crate::console::text::clean;

/// Text and the place of the cursor in it, in characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EditLine {
    text: String,
    cursor: usize,
}

/// Characters that a line may have: enough to type, and a paste may not flood the screen.
const LONGEST: usize = 400;

impl EditLine {
    pub(crate) fn of(text: &str) -> Self {
        let text: String = clean(text).chars().take(LONGEST).collect();
        Self { cursor: text.chars().count(), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn insert(&mut self, text: &str) {
        for c in clean(text).chars() {
            if self.text.chars().count() == LONGEST {
                return;
            }
            self.text.insert(self.byte(self.cursor), c);
            self.cursor += 1;
        }
    }

    /// Takes a key that edits; whether it was one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "any other key does not edit")]
    pub(crate) fn press(&mut self, key: Key) -> bool {
        let length = self.text.chars().count();
        if let Some(c) = key.typed() {
            self.insert(c.encode_utf8(&mut [0; 4]));
        } else if key == Key::ctrl('u') {
            self.text.drain(..self.byte(self.cursor));
            self.cursor = 0;
        } else if key == Key::ctrl('w') {
            let start = self.word_start();
            self.text.drain(self.byte(start)..self.byte(self.cursor));
            self.cursor = start;
        } else {
            match key.code() {
                KeyCode::Backspace if self.cursor > 0 => {
                    self.cursor -= 1;
                    self.text.remove(self.byte(self.cursor));
                }
                KeyCode::Delete if self.cursor < length => {
                    self.text.remove(self.byte(self.cursor));
                }
                KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
                KeyCode::Right => self.cursor = (self.cursor + 1).min(length),
                KeyCode::Home => self.cursor = 0,
                KeyCode::End => self.cursor = length,
                KeyCode::Backspace | KeyCode::Delete => {}
                _ => return false,
            }
        }
        true
    }

    fn word_start(&self) -> usize {
        let before: Vec<char> = self.text.chars().take(self.cursor).collect();
        let end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |at| at + 1);
        before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |at| at + 1)
    }

    fn byte(&self, characters: usize) -> usize {
        self.text.char_indices().nth(characters).map_or(self.text.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(code: KeyCode) -> Key {
        Key::new(code)
    }

    #[test]
    fn it_is_edited_as_one_expects() {
        let mut line = EditLine::of("grün");
        line.press(code(KeyCode::Left));
        line.press(code(KeyCode::Backspace));
        line.insert("ue");
        assert_eq!((line.text(), line.cursor()), ("gruen", 4));
        line.press(code(KeyCode::Delete));
        line.press(Key::char('n'));
        line.press(Key::char(' '));
        line.insert("zwei");
        line.press(Key::ctrl('w'));
        assert_eq!(line.text(), "gruen ");
        line.press(Key::ctrl('u'));
        assert_eq!((line.text(), line.cursor()), ("", 0));
        assert!(!line.press(code(KeyCode::Enter)), "enter is for whoever asked");
    }

    #[test]
    fn a_paste_can_neither_speak_to_the_terminal_nor_flood_the_screen() {
        let mut line = EditLine::default();
        line.insert(&"\u{1b}[2J".repeat(1000));
        assert!(line.text().chars().count() <= LONGEST);
        assert!(!line.text().chars().any(char::is_control));
    }

    proptest! {
        #[test]
        fn any_keys_leave_the_cursor_in_the_text(keys in prop::collection::vec(0_usize..9, 0..60)) {
            let mut line = EditLine::of("zwölf Größen");
            for key in keys {
                line.press(match key {
                    0 => code(KeyCode::Left),
                    1 => code(KeyCode::Right),
                    2 => code(KeyCode::Home),
                    3 => code(KeyCode::End),
                    4 => code(KeyCode::Backspace),
                    5 => code(KeyCode::Delete),
                    6 => Key::ctrl('w'),
                    7 => Key::char('ß'),
                    _ => Key::char(' '),
                });
                prop_assert!(line.cursor() <= line.text().chars().count());
            }
        }
    }
}
