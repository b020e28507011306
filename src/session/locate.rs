//! Where in the text of a session a value stands.
//!
//! RON's own errors carry a position; complaints about values that are well-formed but wrong do not.
//! This finds the position of a path such as `clients[1].columns[0]` by walking the brackets.

/// A place in a text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    /// Column, in characters.
    pub(crate) column: usize,
}

/// The place of `path` in `text`; the nearest enclosing part that is there when it is left to its
/// default.
pub(crate) fn locate(text: &str, path: &str) -> Place {
    place(text, nearest(text, path).0)
}

/// The first byte of the value of `path`, where the text has it.
pub(crate) fn find(text: &str, path: &str) -> Option<usize> {
    let (at, whole) = nearest(text, path);
    whole.then_some(at)
}

/// The first byte of the value of `path`, or of the nearest enclosing part that is there; whether it
/// is the whole path.
fn nearest(text: &str, path: &str) -> (usize, bool) {
    let mut walker = Walker { text: text.as_bytes(), at: 0 };
    walker.skip_to_body();
    let mut best = walker.at;
    for step in steps(path) {
        let found = match step {
            Step::Key(key) => walker.enter_key(key),
            Step::Index(index) => walker.enter_index(index),
        };
        match found {
            Some(at) => best = at,
            None => return (best, false),
        }
    }
    (best, true)
}

/// The place of byte `at`.
pub(crate) fn place(text: &str, at: usize) -> Place {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    Place { line: 1 + before.matches('\n').count(), column: 1 + before[start..].chars().count() }
}

/// The byte at `place`, or the end of the text.
pub(crate) fn offset(text: &str, place: Place) -> usize {
    let mut start = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        if i + 1 == place.line {
            let column = place.column.saturating_sub(1);
            return start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        }
        start += line.len();
    }
    text.len()
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let mut pieces = part.split('[');
        if let Some(key) = pieces.next().filter(|k| !k.is_empty()) {
            steps.push(Step::Key(key));
        }
        for index in pieces {
            if let Ok(index) = index.trim_end_matches(']').parse() {
                steps.push(Step::Index(index));
            }
        }
    }
    steps
}

/// Walks the text; `at` stands on the first byte of the value entered last.
struct Walker<'a> {
    text: &'a [u8],
    at: usize,
}

impl Walker<'_> {
    /// Past comments and blanks.
    fn skip_blank(&mut self) {
        loop {
            while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
                self.at += 1;
            }
            if self.text[self.at..].starts_with(b"//") {
                while self.peek().is_some_and(|b| b != b'\n') {
                    self.at += 1;
                }
            } else if self.text[self.at..].starts_with(b"/*") {
                let rest = &self.text[self.at..];
                let end = rest.windows(2).position(|w| w == b"*/").map_or(rest.len(), |i| i + 2);
                self.at += end;
            } else {
                return;
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Past extension attributes such as `#![enable(implicit_some)]`.
    fn skip_to_body(&mut self) {
        self.skip_blank();
        while self.text[self.at..].starts_with(b"#!") {
            while self.peek().is_some_and(|b| b != b'\n') {
                self.at += 1;
            }
            self.skip_blank();
        }
    }

    /// Past a name, up to the bracket it belongs to, if one follows.
    fn skip_name(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            self.at += 1;
        }
        self.skip_blank();
    }

    /// Into the bracketed value at `at`: past names and wrappers such as `Some(`, `Table((`.
    fn open_bracket(&mut self) -> Option<u8> {
        self.skip_blank();
        self.skip_name();
        let bracket = self.peek().filter(|b| matches!(b, b'(' | b'[' | b'{'))?;
        self.at += 1;
        self.skip_blank();
        Some(bracket)
    }

    fn enter_key(&mut self, key: &str) -> Option<usize> {
        self.open_bracket()?;
        loop {
            self.skip_blank();
            let start = self.at;
            // `Some(( … ))` and `Table(( … ))`: a value that is itself a bracket, without a key.
            if matches!(self.peek(), Some(b'(')) {
                return self.enter_key(key);
            }
            self.skip_name();
            let name = &self.text[start..self.at];
            let name = name.trim_ascii_end();
            if self.peek() == Some(b':') {
                self.at += 1;
                self.skip_blank();
                if name == key.as_bytes() {
                    // The complaint points at the value, which is what has to change.
                    return Some(self.at);
                }
            } else if self.peek() == Some(b'(') && !name.is_empty() {
                // `Some(Name(key: …))`
                self.at = start;
                return self.enter_key(key);
            }
            self.skip_value();
            if self.peek() != Some(b',') {
                return None;
            }
            self.at += 1;
        }
    }

    fn enter_index(&mut self, index: usize) -> Option<usize> {
        let bracket = self.open_bracket()?;
        // `Only([ … ])`: the list is what the variant holds.
        if bracket == b'(' && self.peek() == Some(b'[') {
            self.open_bracket()?;
        }
        for _ in 0..index {
            self.skip_value();
            if self.peek() != Some(b',') {
                return None;
            }
            self.at += 1;
            self.skip_blank();
        }
        self.skip_blank();
        (!matches!(self.peek(), Some(b']' | b')') | None)).then_some(self.at)
    }

    /// Past one value, up to the `,` or closing bracket behind it.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        loop {
            self.skip_blank();
            match self.peek() {
                None => return,
                Some(b'"') => self.skip_string(),
                Some(b'(' | b'[' | b'{') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b')' | b']' | b'}') => {
                    if depth == 0 {
                        return;
                    }
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',') if depth == 0 => return,
                Some(_) => self.at += 1,
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return,
                _ => {}
            }
        }
        self.at = self.at.min(self.text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "// a comment with (brackets\n\
        Session(\n\
        \x20   about: \"a, (b]\",\n\
        \x20   source: Table((data: \"x\", time: (column: \"t\"))),\n\
        \x20   clients: [\n\
        \x20       (name: \"P1\", columns: [\"a\"]),\n\
        \x20       (name: \"P2\", columns: [\"b\", \"c\"]),\n\
        \x20   ],\n\
        \x20   labels: Events([(id: \"1\"), (id: \"2\")]),\n\
        )\n";

    fn at(path: &str) -> (usize, usize) {
        let place = locate(TEXT, path);
        (place.line, place.column)
    }

    #[test]
    fn a_path_is_found_through_lists_wrappers_strings_and_comments() {
        assert_eq!(at("about"), (3, 12));
        assert_eq!(at("source.time.column"), (4, 46));
        assert_eq!(at("clients[1].columns[1]"), (7, 37));
        assert_eq!(at("clients[0].name"), (6, 16));
        assert_eq!(at("labels[1].id"), (9, 37));
    }

    #[test]
    fn a_path_left_to_its_default_is_placed_at_what_encloses_it() {
        assert_eq!(at("clients[1].inputs"), (7, 9));
        assert_eq!(at("privacy.delta"), (2, 1));
    }

    proptest! {
        #[test]
        fn any_text_and_path_give_a_place_inside_the_text(text in "\\PC*", path in "[a-c.\\[\\]0-3]*") {
            let place = locate(&text, &path);
            prop_assert!(place.line >= 1 && place.line <= text.split('\n').count());
        }
    }
}
