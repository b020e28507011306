//! The text on a terminal's screen, from the bytes that the console writes: letters, places of the
//! cursor, a cleared screen and the end of a picture. Colours are passed over. A picture has changed cells
//! only, so its bytes alone do not show the words on the screen.

use std::collections::BTreeMap;

/// A sequence that ends a picture.
const END: &[u8] = b"?2026l";
/// A longer sequence is none that a console writes.
const LONGEST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Letters by row and column, both from 1.
    rows: BTreeMap<u16, BTreeMap<u16, char>>,
    row: u16,
    column: u16,
    reading: Reading,
}

#[derive(Debug, Default)]
enum Reading {
    #[default]
    Text,
    /// The first bytes of a letter in UTF-8.
    Letter(Vec<u8>),
    /// After the escape.
    Escape,
    /// After the escape and its bracket.
    Sequence(Vec<u8>),
}

impl Screen {
    /// Shows `bytes`; whether the screen was as `wanted` at the end of some picture in them.
    pub(super) fn show(&mut self, bytes: &[u8], wanted: &impl Fn(&Self) -> bool) -> bool {
        let mut found = false;
        for &byte in bytes {
            if self.read(byte) {
                found = found || wanted(self);
            }
        }
        found
    }

    /// Whether a row of the screen has `words`.
    pub(super) fn contains(&self, words: &str) -> bool {
        self.rows.values().any(|row| row.values().collect::<String>().contains(words))
    }

    /// Takes one byte; whether it ends a picture.
    fn read(&mut self, byte: u8) -> bool {
        match (std::mem::take(&mut self.reading), byte) {
            (_, 0x1b) => self.reading = Reading::Escape,
            (Reading::Escape, b'[') => self.reading = Reading::Sequence(Vec::new()),
            (Reading::Sequence(mut sequence), _) => {
                sequence.push(byte);
                if byte.is_ascii_alphabetic() {
                    return self.obey(&sequence);
                }
                if sequence.len() < LONGEST {
                    self.reading = Reading::Sequence(sequence);
                }
            }
            (Reading::Text, 0x20..=0x7e) => self.put(char::from(byte)),
            (Reading::Escape, _) | (Reading::Text, 0x00..=0x7f) => {}
            (Reading::Text, _) => self.reading = Reading::Letter(vec![byte]),
            (Reading::Letter(mut letter), _) => {
                letter.push(byte);
                match std::str::from_utf8(&letter) {
                    Ok(text) => text.chars().for_each(|letter| self.put(letter)),
                    Err(_) if letter.len() < 4 => self.reading = Reading::Letter(letter),
                    Err(_) => {}
                }
            }
        }
        false
    }

    fn put(&mut self, letter: char) {
        self.rows.entry(self.row).or_default().insert(self.column, letter);
        self.column = self.column.saturating_add(1);
    }

    fn obey(&mut self, sequence: &[u8]) -> bool {
        let Some((&command, numbers)) = sequence.split_last() else { return false };
        match command {
            b'H' => {
                let text = String::from_utf8_lossy(numbers);
                let mut numbers = text.split(';').map(|number| number.parse().unwrap_or(1));
                self.row = numbers.next().unwrap_or(1);
                self.column = numbers.next().unwrap_or(1);
            }
            b'J' => self.rows.clear(),
            _ => {}
        }
        sequence == END
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whose_letters_come_in_different_pictures() {
        let mut screen = Screen::default();
        let first = "\x1b[?2026h\x1b[2J\x1b[3;5H\x1b[1;38;5;4mesc ▁▂ses\x1b[?2026l";
        assert!(screen.show(first.as_bytes(), &|screen: &Screen| !screen.contains("esc closes")));
        let second = "\x1b[?2026h\x1b[3;9Hclo\x1b[0m\x1b[?2026l".as_bytes();
        // The cells hold "esc clo" and then what stood behind: the third letter of it is overwritten.
        assert!(screen.show(second, &|screen: &Screen| screen.contains("esc cloes")));
        let closes = |screen: &Screen| screen.contains("esc closes");
        assert!(!screen.show("\x1b[3;12Hses".as_bytes(), &closes), "the picture has not ended");
        assert!(screen.show(b"\x1b[?2026l", &closes));
        screen.show(b"\x1b[2J\x1b[?2026l", &closes);
        assert!(!closes(&screen), "a cleared screen has no words");
    }

    #[test]
    fn any_bytes_are_taken() {
        let mut screen = Screen::default();
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).chain([0x1b, b'[', b';', b'H']).collect();
        screen.show(&bytes, &|_: &Screen| false);
        assert!(screen.rows.len() < 3);
    }
}
