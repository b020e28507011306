//! The rows of a file, one per instant, whatever shape the file has.

use super::header::Header;
use super::long::{LeftOut, LongRows};
use super::rows::{NextRow, Rows};
use crate::stream::StreamError;

/// Rows that hold all measurements of an instant: as they stand in a file, or assembled.
pub(crate) enum TableRows {
    Wide(Box<Rows>),
    Long(Box<LongRows>),
}

impl TableRows {
    /// Moves to the next row.
    pub(crate) fn next(&mut self) -> Result<NextRow, StreamError> {
        match self {
            Self::Wide(rows) => rows.next(),
            Self::Long(rows) => rows.next(),
        }
    }

    /// What had to be left out of the present row or before it.
    pub(crate) fn take_note(&mut self) -> Option<LeftOut> {
        match self {
            Self::Wide(_) => None,
            Self::Long(rows) => rows.take_note(),
        }
    }

    /// A cell of the present row without blanks around it.
    pub(crate) fn cell(&self, column: usize) -> &[u8] {
        match self {
            Self::Wide(rows) => rows.cell(column),
            Self::Long(rows) => rows.cell(column),
        }
    }

    /// Whether `1,5` is a number here.
    pub(crate) fn decimal_comma(&self) -> bool {
        match self {
            Self::Wide(rows) => rows.decimal_comma,
            Self::Long(rows) => rows.decimal_comma(),
        }
    }

    /// Whether the present row may hold less than its writer meant. Assembled rows never do: what
    /// was cut short is no part of them.
    pub(crate) fn ends_the_file(&self) -> bool {
        match self {
            Self::Wide(rows) => rows.ends_the_file(),
            Self::Long(_) => false,
        }
    }

    /// The line that the present row begins in, counted from 1.
    pub(crate) fn line(&self) -> u64 {
        match self {
            Self::Wide(rows) => rows.line(),
            Self::Long(rows) => rows.line(),
        }
    }

    /// A complaint about the present row.
    pub(crate) fn row_error(&self, what: String) -> StreamError {
        match self {
            Self::Wide(rows) => rows.row_error(what),
            Self::Long(rows) => rows.row_error(what),
        }
    }

    /// A complaint about the row in this line.
    pub(crate) fn row_error_at(&self, line: u64, what: String) -> StreamError {
        match self {
            Self::Wide(rows) => rows.row_error_at(line, what),
            Self::Long(rows) => rows.row_error_at(line, what),
        }
    }

    /// A complaint about a cell of the present row.
    pub(crate) fn cell_error(&self, column: usize, expected: String) -> StreamError {
        match self {
            Self::Wide(rows) => rows.cell_error(column, expected),
            Self::Long(rows) => rows.cell_error(column, expected),
        }
    }
}

impl Header for TableRows {
    fn names(&self) -> &[String] {
        match self {
            Self::Wide(rows) => rows.names(),
            Self::Long(rows) => rows.names(),
        }
    }

    fn header_error(&self, what: String) -> StreamError {
        match self {
            Self::Wide(rows) => rows.header_error(what),
            Self::Long(rows) => rows.header_error(what),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Wide(rows) => rows.word(),
            Self::Long(rows) => rows.word(),
        }
    }
}
