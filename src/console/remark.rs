//! A message at the bottom of the screen, shown until the next key.

use super::text::clean_lines;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    pub text: String,
    pub bad: bool,
}

impl Remark {
    pub(crate) fn done(text: &str) -> Self {
        Self { text: one_line(text), bad: false }
    }

    pub(crate) fn failed(text: &str) -> Self {
        Self { text: one_line(text), bad: true }
    }
}

/// The lines of a message after each other, safe to show.
fn one_line(text: &str) -> String {
    clean_lines(text).join("; ")
}
