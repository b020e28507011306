//! Errors of a session, each with place, cause and remedy.

use std::fmt;
use std::io;

use ron::error::{Error as RonError, SpannedError};
use thiserror::Error;

use super::SHIPPED;
use super::bounds::{BOUNDS, Bound};
use super::locate::{Place, find, locate, offset, place};
use crate::base::suggest::nearest;

/// One complaint about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Path of the value, such as `clients[1].columns[0]`.
    pub(crate) path: String,
    /// What is wrong, what was expected.
    pub(crate) what: String,
}

impl Problem {
    pub(super) fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }
}

/// A session that cannot be used, ready to be shown.
#[derive(Debug, Error)]
#[error("{}", Complaints(.complaints))]
pub(crate) struct SessionError {
    complaints: Vec<Complaint>,
}

#[derive(Debug)]
struct Complaint {
    /// `file:line:column`, or the file alone.
    place: String,
    what: String,
    /// The line concerned and the column in it.
    excerpt: Option<(usize, String, usize)>,
}

struct Complaints<'a>(&'a [Complaint]);

impl fmt::Display for Complaints<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, complaint) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {}", complaint.place, complaint.what)?;
            if let Some((number, line, column)) = &complaint.excerpt {
                let gutter = number.to_string();
                let blank = " ".repeat(gutter.len());
                let lead = " ".repeat(column.saturating_sub(1));
                write!(f, "\n {blank} |\n {gutter} | {line}\n {blank} | {lead}^")?;
            }
        }
        Ok(())
    }
}

impl SessionError {
    fn one(place: String, what: String, excerpt: Option<(usize, String, usize)>) -> Self {
        Self { complaints: vec![Complaint { place, what, excerpt }] }
    }

    pub(super) fn unreadable(path: &str, source: &io::Error) -> Self {
        let absent = source.kind() == io::ErrorKind::NotFound;
        let near = nearest(path, SHIPPED.iter().map(|s| s.name))
            .filter(|_| absent)
            .map(|near| format!("; did you mean {near:?}?"))
            .unwrap_or_default();
        let what = if absent {
            "no such file, and no session of this name is shipped".into()
        } else {
            source.to_string()
        };
        Self::one(path.into(), format!("{what}{near} (`headwater sessions` lists them)"), None)
    }

    pub(super) fn not_text(path: &str, line: usize) -> Self {
        Self::one(format!("{path}:{line}"), "not UTF-8 text; a session is a RON file".into(), None)
    }

    pub(super) fn from_ron(path: &str, text: &str, error: &SpannedError) -> Self {
        let start = error.span.start;
        let at = Place { line: start.line, column: start.col };
        // Errors of a whole value come with its span; an unknown key is best shown at the key.
        let at = match &error.code {
            RonError::NoSuchStructField { found, .. } => key_place(text, found, at),
            _ => past_blanks(text, at),
        };
        let why = explain(&error.code);
        let complaint = match number_at(text, offset(text, at)) {
            Some(number) => {
                let Number { bound, start, found } = number;
                let what = format!("{}: expected {bound}, found {found} ({why})", bound.key);
                complaint(path, text, place(text, start), what)
            }
            None => complaint(path, text, at, why),
        };
        Self { complaints: vec![complaint] }
    }

    pub(super) fn from_problems(path: &str, text: &str, problems: Vec<Problem>) -> Self {
        let complaints = problems
            .into_iter()
            .map(|p| {
                complaint(path, text, locate(text, &p.path), format!("{}: {}", p.path, p.what))
            })
            .collect();
        Self { complaints }
    }
}

fn complaint(path: &str, text: &str, at: Place, what: String) -> Complaint {
    let line = text.lines().nth(at.line - 1).unwrap_or_default();
    // A tabulator would push the caret away from what it points at; other control bytes would
    // reach the terminal.
    let shown: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Complaint {
        place: format!("{path}:{}:{}", at.line, at.column),
        what,
        excerpt: (!shown.trim().is_empty()).then_some((at.line, shown, at.column)),
    }
}

/// A value that should be a number and that no type of number can hold.
struct Number<'a> {
    bound: &'static Bound,
    start: usize,
    found: &'a str,
}

/// The number that the parser gave up on at byte `at`, where one belongs there: it knows its type but
/// not its bound.
fn number_at(text: &str, at: usize) -> Option<Number<'_>> {
    BOUNDS.iter().find_map(|bound| {
        let mut start = find(text, bound.key)?;
        let value = |start: usize| {
            let rest = &text[start..];
            &rest[..rest.find([',', ')', ']', '\n']).unwrap_or(rest.len())]
        };
        if !bound.choice.is_empty() {
            let (choice, _) = value(start).split_once('(')?;
            if choice.trim() != bound.choice {
                return None;
            }
            start += choice.len() + 1;
        }
        // The first number of a list.
        let list = text[start..].trim_start_matches(|c: char| c == '[' || c.is_whitespace());
        start = text.len() - list.len();
        let found = value(start).trim_end();
        (start..=start + found.len()).contains(&at).then_some(Number { bound, start, found })
    })
}

/// The first character at or after `at` that says something.
fn past_blanks(text: &str, at: Place) -> Place {
    let line = text.lines().nth(at.line - 1).unwrap_or_default();
    let blanks = line.chars().skip(at.column - 1).take_while(|c| c.is_whitespace()).count();
    Place { column: at.column + blanks, ..at }
}

/// The key itself, searched backward from where the parser stood when it gave up on it.
fn key_place(text: &str, key: &str, at: Place) -> Place {
    let end = (offset(text, at) + key.len()).min(text.len());
    text[..text.floor_char_boundary(end)].rfind(key).map_or(at, |found| place(text, found))
}

/// RON's error in our words, with the nearest known key where there is one.
fn explain(error: &RonError) -> String {
    let is_new = |name: &&&str| !super::RENAMED.iter().any(|(old, _)| old.ends_with(**name));
    let list = |names: &[&str]| names.iter().filter(is_new).copied().collect::<Vec<_>>().join(", ");
    let suggest = |found: &str, known: &[&'static str]| {
        nearest(found, known.iter().copied())
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default()
    };
    match error {
        RonError::NoSuchStructField { expected, found, outer } => {
            let of = outer.as_ref().map(|o| format!(" of {o}")).unwrap_or_default();
            format!(
                "unknown key `{found}`{}\nknown keys{of}: {}",
                suggest(found, expected),
                list(expected)
            )
        }
        RonError::NoSuchEnumVariant { expected, found, outer } => {
            let of = outer.as_ref().map(|o| format!(" of {o}")).unwrap_or_default();
            format!(
                "unknown choice `{found}`{}\nknown choices{of}: {}",
                suggest(found, expected),
                list(expected)
            )
        }
        RonError::MissingStructField { field, outer } => {
            let of = outer.as_ref().map(|o| format!(" in {o}")).unwrap_or_default();
            format!("the key `{field}` is missing{of}")
        }
        RonError::DuplicateStructField { field, .. } => {
            format!("the key `{field}` stands here twice")
        }
        RonError::InvalidValueForType { expected, found } => {
            format!("expected {expected}, found {found}")
        }
        RonError::ExpectedFloat => "expected a number".into(),
        RonError::ExpectedInteger | RonError::IntegerOutOfBounds => {
            "expected a whole number that is not negative".into()
        }
        RonError::ExpectedBoolean => "expected true or false".into(),
        RonError::ExpectedString => "expected text in quotation marks".into(),
        RonError::ExpectedArray => "expected a list in square brackets".into(),
        RonError::Eof => "the text ends here, but a bracket or quotation mark is still open".into(),
        RonError::Message(text) => text.clone(),
        other => {
            let text = other.to_string();
            let mut letters = text.chars();
            letters
                .next()
                .map(|c| c.to_lowercase().collect::<String>() + letters.as_str())
                .unwrap_or_default()
        }
    }
}
