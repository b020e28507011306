//! What can go wrong while reading, in words a person can act on.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::{Part, UnusedRows};

/// A failure to open or to read a stream.
#[derive(Debug, Error)]
pub(crate) enum StreamError {
    /// Files of a session are not there.
    #[error("{}", missing_files(folder, files, published.as_deref()))]
    MissingFiles {
        /// Where they were looked for.
        folder: PathBuf,
        /// Names or patterns that matched nothing.
        files: Vec<String>,
        /// Where the data set can be had, when known.
        published: Option<String>,
    },
    /// The operating system refused.
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    /// A header without a column that the session needs.
    #[error("{}:1: {what}", file.display())]
    Header {
        file: PathBuf,
        /// What is missing, with the nearest name there is.
        what: String,
    },
    /// A row that cannot be understood.
    #[error("{}:{line}: {what}", file.display())]
    Row {
        file: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// A cell that cannot be understood.
    #[error("{}:{line}:{column}: {tag}: expected {expected}, found {found:?}", file.display())]
    Cell {
        file: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Column in the table, counted from 1.
        column: usize,
        tag: String,
        /// What would have been right.
        expected: String,
        found: String,
    },
    /// A setting of the source that cannot be carried out.
    #[error("{0}")]
    Setting(String),
    /// Compressed data that breaks off or is damaged. Rows before it were handed out.
    #[error("{}:{line}: the compressed data is damaged or ends early here: {source}", file.display())]
    Damaged {
        file: PathBuf,
        /// The first line that could not be had.
        line: u64,
        /// What the decoder said.
        source: io::Error,
    },
    /// A file of labels that does not go with its file of measurements row by row.
    #[error(
        "{} has {label_rows} rows, but {} has {data_rows}: labels are joined row by row",
        labels.display(),
        data.display()
    )]
    LabelRows {
        /// The file of labels.
        labels: PathBuf,
        label_rows: u64,
        /// The file of measurements.
        data: PathBuf,
        data_rows: u64,
    },
    /// A range of the session that holds no data.
    #[error("the {part} range holds no data: {why}")]
    Empty {
        part: &'static str,
        /// Why it came out empty.
        why: String,
    },
}

impl StreamError {
    /// A range without a single row that can be used.
    pub(crate) fn empty(part: Part, unused: &UnusedRows) -> Self {
        let why = match unused.summary("data") {
            None => "its files and times have no row in common".to_owned(),
            Some(unused) => format!("no row of it can be used; {unused}"),
        };
        Self::Empty { part: part.name(), why }
    }

    /// Attaches the file to an operating-system error.
    pub(crate) fn io(file: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { file, source }
    }
}

fn missing_files(folder: &std::path::Path, files: &[String], published: Option<&str>) -> String {
    let mut text = format!("not found in {}: {}", folder.display(), files.join(", "));
    if let Some(place) = published {
        text.push_str("\nthe data set is published at ");
        text.push_str(place);
    }
    text.push_str("\nname its folder with --data DIR or `data` in the session");
    text
}
