//! What is wrong with a truth file or an alarm file, with its place.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A file that cannot be scored.
#[derive(Debug, Error)]
pub(crate) enum ScoreError {
    /// The operating system refused.
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    /// Something in the file is not what it should be.
    #[error("{}:{line}: {what}", file.display())]
    Line {
        file: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// Likewise, where the column is known.
    #[error("{}:{line}:{column}: {what}", file.display())]
    Place {
        file: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Column, counted from 1.
        column: u64,
        /// What was expected and what was found.
        what: String,
    },
}

impl ScoreError {
    pub(super) fn line(file: &Path, line: u64, what: impl Into<String>) -> Self {
        Self::Line { file: file.into(), line, what: what.into() }
    }

    /// The JSON reader's complaint at its place in the file; `lines_before` when it saw only one
    /// line of it.
    pub(super) fn json(
        file: &Path,
        lines_before: u64,
        error: &serde_json::Error,
        expected: &str,
    ) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let words = text.strip_suffix(&place).unwrap_or(&text);
        let shapeless = ["missing field", "invalid type", "invalid value", "duplicate field"];
        let what = if !error.is_data() {
            format!("not JSON ({words})\nexpected {expected}")
        } else if shapeless.iter().any(|lead| words.starts_with(lead)) {
            format!("{words}\nexpected {expected}")
        } else {
            // Our own words: they say what was expected.
            words.to_owned()
        };
        Self::Place {
            file: file.into(),
            line: lines_before + (error.line() as u64).max(1),
            column: (error.column() as u64).max(1),
            what,
        }
    }
}
