//! What both files have in common: text, times, tables.

use std::fs;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::error::ScoreError;
use crate::base::suggest::nearest;
use crate::session::mark::civil;

/// The text of a file, which must not be empty.
pub(super) fn text(file: &Path, expected: &str) -> Result<String, ScoreError> {
    as_text(file, bytes(file)?, expected)
}

/// The same of a file whose writer may have been stopped in the middle of a letter.
pub(super) fn text_until_cut(file: &Path, expected: &str) -> Result<String, ScoreError> {
    let mut bytes = bytes(file)?;
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    as_text(file, bytes, expected)
}

fn bytes(file: &Path) -> Result<Vec<u8>, ScoreError> {
    fs::read(file).map_err(|source| ScoreError::Io { file: file.into(), source })
}

fn as_text(file: &Path, bytes: Vec<u8>, expected: &str) -> Result<String, ScoreError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count() as u64;
        ScoreError::line(file, line, format!("not UTF-8 text; expected {expected}"))
    })?;
    // Spreadsheets like to put a byte-order mark in front.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ScoreError::line(file, 1, format!("the file is empty; expected {expected}")));
    }
    Ok(text)
}

/// RFC 3339, or civil time, which is taken as UTC like everywhere in the program.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    text.parse()
        .ok()
        .or_else(|| civil(text)?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp()))
        .ok_or_else(|| {
            format!(
                "expected a time such as \"2022-08-12T16:00:00Z\" or \"2022-08-12 16:00:00\", \
                 found {text:?}"
            )
        })
}

/// A time in a JSON file.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct When(pub(crate) Timestamp);

impl TryFrom<String> for When {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        time(&text).map(When)
    }
}

/// Names joined by `+`, as event tables write several origins.
pub(super) fn names(text: &str) -> Vec<String> {
    text.split('+').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A table with a header, separated by `,` or `;`.
pub(super) struct Table<'a> {
    file: &'a Path,
    header: Vec<String>,
    rows: Vec<StringRecord>,
}

impl<'a> Table<'a> {
    pub(super) fn parse(file: &'a Path, text: &str) -> Result<Self, ScoreError> {
        let first = text.lines().next().unwrap_or_default();
        let delimiter = if first.contains(';') && !first.contains(',') { b';' } else { b',' };
        let mut reader =
            ReaderBuilder::new().delimiter(delimiter).trim(Trim::All).from_reader(text.as_bytes());
        let wrong = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            let what = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("expected {expected_len} cells as in the header, found {len}")
                }
                _ => error.to_string(),
            };
            ScoreError::line(file, line, what)
        };
        let header = reader.headers().map_err(wrong)?.iter().map(str::to_lowercase).collect();
        let rows = reader.into_records().collect::<Result<_, _>>().map_err(wrong)?;
        Ok(Self { file, header, rows })
    }

    /// The place of the column that bears one of these names.
    pub(super) fn find(&self, called: &[&str]) -> Option<usize> {
        called.iter().find_map(|name| self.header.iter().position(|h| h == name))
    }

    /// Likewise, where the table is of no use without it.
    pub(super) fn need(&self, called: &[&str], expected: &str) -> Result<usize, ScoreError> {
        self.find(called).ok_or_else(|| {
            let near = nearest(called[0], self.header.iter().map(String::as_str))
                .map(|near| format!(" (the nearest is {near:?})"))
                .unwrap_or_default();
            let what = format!("no column {:?}{near}\nexpected {expected}", called[0]);
            ScoreError::line(self.file, 1, what)
        })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { table: self, cells })
    }
}

/// One row of a [`Table`].
pub(super) struct Row<'a> {
    table: &'a Table<'a>,
    cells: &'a StringRecord,
}

impl Row<'_> {
    pub(super) fn text(&self, column: usize) -> &str {
        self.cells.get(column).unwrap_or_default()
    }

    /// A cell that may be left blank.
    pub(super) fn optional(&self, column: Option<usize>) -> Option<&str> {
        column.map(|c| self.text(c)).filter(|text| !text.is_empty())
    }

    pub(super) fn time(&self, column: usize) -> Result<Timestamp, ScoreError> {
        time(self.text(column))
            .map_err(|what| self.wrong(format!("{}: {what}", self.table.header[column])))
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> ScoreError {
        let line = self.cells.position().map_or(1, csv::Position::line);
        ScoreError::line(self.table.file, line, what)
    }
}
