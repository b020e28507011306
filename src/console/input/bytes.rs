//! Events from the bytes that a terminal sends.
//!
//! Guarantees:
//! - Ctrl-C is an event at once, wherever it stands: within a paste that is never closed, and within
//!   a sequence that is never finished.
//! - No more than [`LONGEST_PASTE`] bytes of a paste and [`LONGEST_SEQUENCE`] bytes of a sequence are
//!   kept, whatever is sent.
//! - What is not understood is left out, and the bytes after it are read again from the beginning.

use std::ops::RangeInclusive;

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// Bytes of a paste that are kept. A line that is typed has 400 characters at most.
const LONGEST_PASTE: usize = 64 * 1024;
/// Bytes of an escape sequence. The longest that is understood is a click: `ESC [ < 35 ; 999 ; 999 M`.
const LONGEST_SEQUENCE: usize = 32;

const ESCAPE: u8 = 0x1b;
const CONTROL_C: u8 = 0x03;
/// What ends a paste.
const PASTE_END: &[u8] = b"\x1b[201~";
/// What ends a sequence that begins with `ESC [`.
const FINAL: RangeInclusive<u8> = 0x40..=0x7e;

/// Reads bytes as they come, in pieces of any length.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The beginning of a sequence or of a character.
    begun: Vec<u8>,
    paste: Option<Paste>,
}

/// A paste that has begun.
#[derive(Debug, Default)]
struct Paste {
    text: Vec<u8>,
    /// The last bytes, as many as end a paste: they are not part of the text yet.
    last: Vec<u8>,
}

/// What the bytes so far mean.
enum Meaning {
    /// More bytes are needed.
    Begun,
    Event(Event),
    /// A paste begins.
    Paste,
    /// Nothing that is known.
    Unknown,
}

impl Parser {
    /// Reads the next bytes. `more` says that others wait behind them: an escape at their end is then
    /// not taken for the key of that name.
    pub(crate) fn read(&mut self, bytes: &[u8], more: bool, on_event: &mut dyn FnMut(Event)) {
        for byte in bytes {
            self.read_byte(*byte, on_event);
        }
        if !more && self.begun == [ESCAPE] {
            self.begun.clear();
            on_event(key(KeyCode::Esc));
        }
    }

    fn read_byte(&mut self, byte: u8, on_event: &mut dyn FnMut(Event)) {
        if byte == CONTROL_C {
            self.paste = None;
            self.begun.clear();
            return on_event(control('c'));
        }
        if let Some(paste) = &mut self.paste {
            if let Some(text) = paste.read_byte(byte) {
                self.paste = None;
                on_event(Event::Paste(text));
            }
            return;
        }
        // An escape begins a new sequence, and gives up one that was not finished.
        if byte == ESCAPE && self.begun.first() == Some(&ESCAPE) {
            if self.begun == [ESCAPE] {
                on_event(key(KeyCode::Esc));
            }
            self.begun.clear();
        }
        // A character that its next byte does not continue.
        if self.begun.first().is_some_and(|first| *first >= 0x80) && !(0x80..0xc0).contains(&byte) {
            self.begun.clear();
        }
        self.begun.push(byte);
        match meaning(&self.begun) {
            Meaning::Begun if self.begun.len() < LONGEST_SEQUENCE => return,
            Meaning::Begun | Meaning::Unknown => {}
            Meaning::Event(event) => on_event(event),
            Meaning::Paste => self.paste = Some(Paste::default()),
        }
        self.begun.clear();
    }
}

impl Paste {
    /// The text, once its end has come.
    fn read_byte(&mut self, byte: u8) -> Option<String> {
        self.last.push(byte);
        if self.last.ends_with(PASTE_END) {
            return Some(String::from_utf8_lossy(&self.text).into_owned());
        }
        if self.last.len() == PASTE_END.len() {
            let first = self.last.remove(0);
            if self.text.len() < LONGEST_PASTE {
                self.text.push(first);
            }
        }
        None
    }
}

fn key(code: KeyCode) -> Event {
    held(code, KeyModifiers::NONE)
}

fn held(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn control(letter: char) -> Event {
    held(KeyCode::Char(letter), KeyModifiers::CONTROL)
}

fn known(event: Option<Event>) -> Meaning {
    event.map_or(Meaning::Unknown, Meaning::Event)
}

fn meaning(bytes: &[u8]) -> Meaning {
    match bytes {
        [] | [ESCAPE] | [ESCAPE, b'O'] | [ESCAPE, b'[', b'['] => Meaning::Begun,
        [ESCAPE, b'O', letter] => known(named(*letter).map(key)),
        // Function keys of the Linux console.
        [ESCAPE, b'[', b'[', letter @ b'A'..=b'E'] => {
            Meaning::Event(key(KeyCode::F(letter - b'A' + 1)))
        }
        [ESCAPE, b'[', rest @ ..] => sequence(rest),
        // With alt held down.
        [ESCAPE, rest @ ..] => match meaning(rest) {
            Meaning::Event(Event::Key(KeyEvent { code, modifiers, .. })) => {
                Meaning::Event(held(code, modifiers | KeyModifiers::ALT))
            }
            other @ (Meaning::Begun | Meaning::Event(_) | Meaning::Paste | Meaning::Unknown) => {
                other
            }
        },
        [byte] if byte.is_ascii() => Meaning::Event(ascii(*byte)),
        bytes => match std::str::from_utf8(bytes) {
            Ok(text) => known(text.chars().next().map(character)),
            Err(why) if why.error_len().is_none() => Meaning::Begun,
            Err(_) => Meaning::Unknown,
        },
    }
}

fn character(c: char) -> Event {
    let shift = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
    held(KeyCode::Char(c), shift)
}

fn ascii(byte: u8) -> Event {
    match byte {
        b'\r' => key(KeyCode::Enter),
        b'\t' => key(KeyCode::Tab),
        0x7f => key(KeyCode::Backspace),
        0 => control(' '),
        0x01..=0x1a => control(char::from(byte - 1 + b'a')),
        0x1b..=0x1f => control(char::from(byte - 0x1c + b'4')),
        _ => character(char::from(byte)),
    }
}

/// A key by the letter that ends its sequence.
fn named(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

/// A key by the number before its `~`.
fn numbered(number: u16) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(number as u8 - 10),
        17..=21 => KeyCode::F(number as u8 - 11),
        23..=26 => KeyCode::F(number as u8 - 12),
        28..=29 => KeyCode::F(number as u8 - 13),
        31..=34 => KeyCode::F(number as u8 - 14),
        _ => return None,
    })
}

/// What follows `ESC [`.
fn sequence(bytes: &[u8]) -> Meaning {
    // A click as terminals without large numbers send it: three bytes follow.
    if let [b'M', cell @ ..] = bytes {
        let [button, column, row] = cell else { return Meaning::Begun };
        let Some(button) = button.checked_sub(32) else { return Meaning::Unknown };
        let cell = [column, row].map(|at| u16::from(at.saturating_sub(32)));
        return known(click(button.into(), cell, false));
    }
    let Some((last, numbers)) = bytes.split_last() else { return Meaning::Begun };
    if !FINAL.contains(last) {
        return if last.is_ascii_control() { Meaning::Unknown } else { Meaning::Begun };
    }
    if let [b'<', numbers @ ..] = numbers {
        let event = match (numbers_of(numbers).as_deref(), last) {
            (Some([button, column, row]), b'M' | b'm') => {
                click(*button, [*column, *row], *last == b'm')
            }
            _ => None,
        };
        return known(event);
    }
    let Some(numbers) = numbers_of(numbers) else { return Meaning::Unknown };
    let modifiers = numbers.get(1).copied().map_or(KeyModifiers::NONE, modifiers);
    known(match (last, &numbers[..]) {
        (b'~', [200]) => return Meaning::Paste,
        (b'~', [number, ..]) => numbered(*number).map(|code| held(code, modifiers)),
        (b'Z', _) => Some(held(KeyCode::BackTab, KeyModifiers::SHIFT)),
        (b'I', []) => Some(Event::FocusGained),
        (b'O', []) => Some(Event::FocusLost),
        (letter, [] | [1] | [1, _]) => named(*letter).map(|code| held(code, modifiers)),
        _ => None,
    })
}

/// Numbers with semicolons between them; nothing where something else stands there.
fn numbers_of(bytes: &[u8]) -> Option<Vec<u16>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let text = std::str::from_utf8(bytes).ok()?;
    text.split(';').map(|number| number.parse().ok()).collect()
}

/// One more than a bit for each key that is held down.
fn modifiers(number: u16) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    let each = [KeyModifiers::SHIFT, KeyModifiers::ALT, KeyModifiers::CONTROL];
    let is_held = |(bit, _): &(usize, KeyModifiers)| bits >> bit & 1 == 1;
    each.into_iter().enumerate().filter(is_held).map(|(_, held)| held).collect()
}

fn click(bits: u16, [column, row]: [u16; 2], released: bool) -> Option<Event> {
    let moves = bits & 0b10_0000 != 0;
    let button = match bits & 0b11 {
        0 => MouseButton::Left,
        1 => MouseButton::Middle,
        _ => MouseButton::Right,
    };
    let kind = match (bits & 0b11) | (bits & 0b1100_0000) >> 4 {
        0..=2 if moves => MouseEventKind::Drag(button),
        0..=2 if released => MouseEventKind::Up(button),
        0..=2 => MouseEventKind::Down(button),
        3..=5 if moves => MouseEventKind::Moved,
        // The terminal does not say which button it was.
        3 => MouseEventKind::Up(MouseButton::Left),
        4 => MouseEventKind::ScrollUp,
        5 => MouseEventKind::ScrollDown,
        6 => MouseEventKind::ScrollLeft,
        7 => MouseEventKind::ScrollRight,
        _ => return None,
    };
    let each = [KeyModifiers::SHIFT, KeyModifiers::ALT, KeyModifiers::CONTROL];
    let is_held = |(bit, _): &(usize, KeyModifiers)| bits >> (bit + 2) & 1 == 1;
    let modifiers = each.into_iter().enumerate().filter(is_held).map(|(_, held)| held).collect();
    let (column, row) = (column.checked_sub(1)?, row.checked_sub(1)?);
    Some(Event::Mouse(MouseEvent { kind, column, row, modifiers }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        Parser::default().read(bytes, false, &mut |event| events.push(event));
        events
    }

    fn one(bytes: &[u8]) -> Event {
        let [event] = &all(bytes)[..] else { panic!("{bytes:?}: {:?}", all(bytes)) };
        event.clone()
    }

    #[test]
    fn every_key_of_the_usual_terminals_is_understood() {
        use KeyCode::{
            BackTab, Backspace, Char, Delete, Down, End, Enter, Esc, F, Home, Insert, Left,
            PageDown, PageUp, Right, Tab, Up,
        };
        let plain: [(&[u8], KeyCode); 29] = [
            (b"a", Char('a')),
            ("ü".as_bytes(), Char('ü')),
            ("界".as_bytes(), Char('界')),
            (b"\r", Enter),
            (b"\t", Tab),
            (b"\x7f", Backspace),
            (b"\x1b", Esc),
            (b"\x1b[A", Up),
            (b"\x1bOA", Up),
            (b"\x1b[B", Down),
            (b"\x1b[C", Right),
            (b"\x1b[D", Left),
            (b"\x1b[H", Home),
            (b"\x1b[1~", Home),
            (b"\x1b[7~", Home),
            (b"\x1b[F", End),
            (b"\x1bOF", End),
            (b"\x1b[4~", End),
            (b"\x1b[2~", Insert),
            (b"\x1b[3~", Delete),
            (b"\x1b[5~", PageUp),
            (b"\x1b[6~", PageDown),
            (b"\x1bOP", F(1)),
            (b"\x1b[11~", F(1)),
            (b"\x1b[[A", F(1)),
            (b"\x1b[15~", F(5)),
            (b"\x1b[17~", F(6)),
            (b"\x1b[24~", F(12)),
            (b"\x1b[21~", F(10)),
        ];
        for (bytes, code) in plain {
            assert_eq!(one(bytes), key(code), "{bytes:?}");
        }
        let shift = KeyModifiers::SHIFT;
        for (bytes, event) in [
            (&b"\x1b[Z"[..], held(BackTab, shift)),
            (b"A", held(Char('A'), shift)),
            (b"\x03", control('c')),
            (b"\x1a", control('z')),
            (b"\n", control('j')),
            (b"\0", control(' ')),
            (b"\x1d", control('5')),
            (b"\x1bx", held(Char('x'), KeyModifiers::ALT)),
            (b"\x1b[1;2A", held(Up, shift)),
            (b"\x1b[1;5C", held(Right, KeyModifiers::CONTROL)),
            (b"\x1b[3;6~", held(Delete, shift | KeyModifiers::CONTROL)),
            (b"\x1b[1;2P", held(F(1), shift)),
            (b"\x1b[I", Event::FocusGained),
            (b"\x1b[O", Event::FocusLost),
        ] {
            assert_eq!(one(bytes), event, "{bytes:?}");
        }
    }

    #[test]
    fn the_mouse_is_understood_in_all_three_ways_of_writing() {
        use MouseEventKind::{Down, Drag, ScrollDown, ScrollUp, Up};
        let left = MouseButton::Left;
        let at = |kind, column, row, modifiers| {
            Event::Mouse(MouseEvent { kind, column, row, modifiers })
        };
        let none = KeyModifiers::NONE;
        for (bytes, event) in [
            (&b"\x1b[<0;20;2M"[..], at(Down(left), 19, 1, none)),
            (b"\x1b[<0;20;2m", at(Up(left), 19, 1, none)),
            (b"\x1b[<32;300;2M", at(Drag(left), 299, 1, none)),
            (b"\x1b[<64;1;1M", at(ScrollUp, 0, 0, none)),
            (b"\x1b[<65;1;1M", at(ScrollDown, 0, 0, none)),
            (b"\x1b[<16;1;1M", at(Down(left), 0, 0, KeyModifiers::CONTROL)),
            (b"\x1b[<2;1;1M", at(Down(MouseButton::Right), 0, 0, none)),
            (b"\x1b[M !\"", at(Down(left), 0, 1, none)),
            (b"\x1b[M#!\"", at(Up(left), 0, 1, none)),
        ] {
            assert_eq!(one(bytes), event, "{bytes:?}");
        }
        for nothing in [&b"\x1b[<0;0;2M"[..], b"\x1b[<0;2M", b"\x1b[<:;1;1M", b"\x1b[<0;99999;1M"] {
            assert!(all(nothing).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn a_paste_is_one_event_and_what_looks_like_a_key_in_it_is_text() {
        let paste = "q\x1b[Aü\x1b[201".to_owned();
        assert_eq!(one(format!("\x1b[200~{paste}\x1b[201~").as_bytes()), Event::Paste(paste));
        let long = "a".repeat(3 * LONGEST_PASTE);
        let events = all(format!("\x1b[200~{long}\x1b[201~b").as_bytes());
        let [Event::Paste(text), after] = &events[..] else { panic!("{}", events.len()) };
        assert_eq!((text.len(), after), (LONGEST_PASTE, &key(KeyCode::Char('b'))));
    }

    #[test]
    fn control_c_is_seen_within_a_paste_that_is_never_closed() {
        let open = format!("\x1b[200~{}\x03q", "a".repeat(100_000));
        assert_eq!(all(open.as_bytes()), [control('c'), key(KeyCode::Char('q'))]);
    }

    #[test]
    fn an_escape_gives_up_what_was_not_finished() {
        assert_eq!(all(b"\x1b[12;\x1b[A"), [key(KeyCode::Up)]);
        assert_eq!(all(b"\x1b\x1b"), [key(KeyCode::Esc), key(KeyCode::Esc)]);
        assert_eq!(all(b"\xc3a"), [key(KeyCode::Char('a'))]);
        let mut parser = Parser::default();
        let mut events = Vec::new();
        parser.read(b"\x1b", true, &mut |event| events.push(event));
        parser.read(b"[A", false, &mut |event| events.push(event));
        assert_eq!(events, [key(KeyCode::Up)], "the other half comes with the next bytes");
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_stay_within_bounds_and_control_c_is_always_seen(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..20),
                    Just(b"\x1b[200~".to_vec()),
                    Just(b"\x1b[201~".to_vec()),
                    Just(b"\x1b[<0;".to_vec()),
                    Just(b"\x1b[M".to_vec()),
                    Just(b"\x1b".to_vec()),
                    Just(vec![CONTROL_C]),
                ],
                0..40,
            )
        ) {
            let mut parser = Parser::default();
            let sent = pieces.iter().flatten().filter(|byte| **byte == CONTROL_C).count();
            let mut seen = 0;
            for piece in &pieces {
                parser.read(piece, false, &mut |event| {
                    seen += usize::from(event == control('c'));
                });
                prop_assert!(parser.begun.len() < LONGEST_SEQUENCE);
            }
            prop_assert_eq!(sent, seen);
        }

        #[test]
        fn it_does_not_matter_where_bytes_are_cut(text in "[a-z\u{e4}\u{754c}]{0,20}", at in 0_usize..60) {
            let bytes = format!("\x1b[A{text}\x1b[<0;3;4M\x1b[200~{text}\x1b[201~x").into_bytes();
            let at = at.min(bytes.len());
            let mut parser = Parser::default();
            let mut events = Vec::new();
            parser.read(&bytes[..at], true, &mut |event| events.push(event));
            parser.read(&bytes[at..], false, &mut |event| events.push(event));
            prop_assert_eq!(events, all(&bytes));
        }
    }
}
