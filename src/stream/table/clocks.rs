//! The clock of every file, where files write their times in different ways.

use std::path::{Path, PathBuf};

use super::clock::Clock;
use super::files;
use super::header::Header as _;
use super::number::Numbers;
use super::rows::{NextRow, Rows};
use crate::session::{Delimiter, TimeColumn, TimeFormat};
use crate::stream::StreamError;
use crate::stream::columns::glob;

/// How many time cells of a file show their format.
const CELLS_TO_DETECT: usize = 100;

/// The clocks of several files. Knows nothing of order, gaps or runs.
#[derive(Debug, Clone)]
pub(crate) struct Clocks {
    /// One per file, or one for all of them.
    of_files: Vec<Clock>,
    /// How times are written in each file, where files can differ.
    formats: Vec<TimeFormat>,
    /// The clock of times that a person wrote about the data.
    events: Clock,
}

impl Clocks {
    /// The same clock for all files.
    pub(crate) fn same(clock: Clock) -> Self {
        Self { of_files: vec![clock.clone()], formats: Vec::new(), events: clock }
    }

    /// The clocks that a session describes. Where formats are to be detected, the first time cells
    /// of every file are read.
    pub(crate) fn find(
        time: &TimeColumn,
        files: &[PathBuf],
        delimiter: Delimiter,
        numbers: &Numbers,
    ) -> Result<Self, StreamError> {
        let formats = match &time.format {
            TimeFormat::Detect(formats) => files
                .iter()
                .map(|file| detect(time, formats, file, delimiter, numbers))
                .collect::<Result<Vec<_>, _>>()?,
            TimeFormat::PerFile(formats) => {
                files.iter().map(|file| named(formats, file)).collect::<Result<Vec<_>, _>>()?
            }
            _ => return Ok(Self::same(Clock::new(time)?)),
        };
        Ok(Self {
            of_files: formats.iter().map(|f| Clock::of(time, f)).collect::<Result<_, _>>()?,
            formats,
            // With several notations only a common one is unambiguous.
            events: Clock::of(time, &TimeFormat::Auto)?,
        })
    }

    pub(crate) fn of(&self, file: usize) -> &Clock {
        self.of_files.get(file).unwrap_or(&self.of_files[0])
    }

    /// The clock of times that a person wrote about the data.
    pub(crate) fn events(&self) -> &Clock {
        &self.events
    }

    /// How times are written in each file; empty where all files have the same format.
    pub(crate) fn formats(&self) -> &[TimeFormat] {
        &self.formats
    }
}

/// The format that a session names for a file.
fn named(formats: &[(String, TimeFormat)], file: &Path) -> Result<TimeFormat, StreamError> {
    let name = files::name(file);
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let found = formats.iter().find(|(pattern, _)| glob(pattern, &name) || glob(pattern, plain));
    found.map(|(_, format)| format.clone()).ok_or_else(|| {
        StreamError::Setting(format!("{}: `PerFile` names no time format for it", file.display()))
    })
}

/// The one of `formats` that reads the first time cells of a file.
fn detect(
    time: &TimeColumn,
    formats: &[TimeFormat],
    file: &Path,
    delimiter: Delimiter,
    numbers: &Numbers,
) -> Result<TimeFormat, StreamError> {
    let [first, ..] = formats else {
        return Err(StreamError::Setting("`Detect` names no time format".into()));
    };
    let mut rows = Rows::open(file, delimiter)?;
    // A wrong header is reported by the reader of measurements.
    let Ok(Some(column)) = rows.column(&time.column) else { return Ok(first.clone()) };
    let clocks = formats.iter().map(|format| Clock::of(time, format));
    let clocks = clocks.collect::<Result<Vec<_>, _>>()?;
    let mut fits = vec![true; formats.len()];
    let mut seen = 0;
    // A cell that two formats read differently, with their numbers and its line.
    let mut doubts: Vec<(usize, usize, u64, String)> = Vec::new();
    while seen < CELLS_TO_DETECT && matches!(rows.next(), Ok(NextRow::Row)) {
        let cell = rows.cell(column);
        let read: Vec<_> =
            clocks.iter().map(|clock| clock.read(cell, numbers, rows.decimal_comma)).collect();
        for (fits, read) in fits.iter_mut().zip(&read) {
            *fits &= read.is_some();
        }
        if !fits.contains(&true) {
            let formats: Vec<String> = formats.iter().map(ToString::to_string).collect();
            let expected =
                format!("a time in one format for the whole file: {}", formats.join(", "));
            return Err(rows.cell_error(column, expected));
        }
        let known = |(a, b): (usize, usize)| doubts.iter().any(|d| (d.0, d.1) == (a, b));
        let pairs = (0..read.len()).flat_map(|a| (a + 1..read.len()).map(move |b| (a, b)));
        let differ = |&(a, b): &(usize, usize)| {
            read[a].is_some() && read[b].is_some() && read[a] != read[b] && !known((a, b))
        };
        let new: Vec<_> = pairs.filter(differ).collect();
        let text = String::from_utf8_lossy(cell).into_owned();
        doubts.extend(new.into_iter().map(|(a, b)| (a, b, rows.line(), text.clone())));
        seen += 1;
    }
    if let Some((a, b, line, cell)) = doubts.into_iter().find(|d| fits[d.0] && fits[d.1]) {
        return Err(rows.row_error_at(
            line,
            format!(
                "the time {cell:?} is written as {} or as {}, and nothing in the first \
                 {CELLS_TO_DETECT} rows decides it: name the format of the file with `PerFile`",
                formats[a], formats[b]
            ),
        ));
    }
    let fitting = fits.iter().position(|fits| *fits).unwrap_or(0);
    Ok(formats[fitting].clone())
}
