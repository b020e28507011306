//! CSV files, one row per instant or one per instant and tag: what any historian can write.
//!
//! A file is read as it is asked for, never whole, and a row costs no allocation. Columns are found
//! by name in each file anew. What cannot be understood is an error that names file, line and
//! column; what had to be left out is a [`Note`](super::Note).
//!
//! | part | job |
//! |---|---|
//! | `files` | names and patterns → files |
//! | `bytes` | a file → its bytes, unpacked |
//! | `rows` | bytes → header and rows, each with its line |
//! | `header` | header → which cell is what |
//! | `number`, `clock` | cell → value, instant |
//! | `clocks` | file → its clock, where files differ |
//! | `long` | rows of one instant and tag → rows of one instant |
//! | `shape` | rows of either shape → rows of one instant |
//! | `chain` | instants → which of them agree |
//! | `timeline` | instants → order, gaps, runs, wrong stamps |
//! | `held` | a row read ahead of its turn |
//! | `wide` | all of these → frames without labels |
//! | `labels` | what the session knows about disturbances → the label of a row |

use std::path::Path;
use std::sync::Arc;

use super::{Event, Frame, Layout, Sensor, Stream, StreamError};
use crate::session::{ClientSettings, Labels, Shape, TableSource};

mod bytes;
mod chain;
pub(crate) mod clock;
pub(crate) mod clocks;
pub(crate) mod files;
pub(crate) mod header;
mod held;
pub(crate) mod labels;
pub(crate) mod long;
pub(crate) mod number;
mod recent;
pub(crate) mod rows;
mod shape;
mod timeline;
pub(crate) mod wide;

#[cfg(test)]
mod long_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod real;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use clocks::Clocks;
use header::{FlagColumn, Wanted};
use labels::{Labeller, Seen};
use long::{LongSettings, Pivot};
use number::Numbers;
use wide::{Plan, Wide};

/// The frames of CSV files.
pub(crate) struct TableStream {
    wide: Wide,
    labels: Labeller,
}

impl TableStream {
    /// Opens `files` (names or patterns, in this order) of `folder`.
    ///
    /// Reads every file's header and the first rows of one, no more: what does not fit together is
    /// said here, and a large file opens at once. Without `period_s` the period is the most
    /// frequent distance of the first rows; where rows count as time it is a second.
    pub(crate) fn open(
        source: &TableSource,
        folder: &Path,
        files: &[String],
        clients: &[ClientSettings],
        labels: &Labels,
        period_s: Option<f64>,
    ) -> Result<Self, StreamError> {
        let files = files::find(folder, files, source.published.as_deref())?;
        let numbers = Numbers::new(&source.missing);
        let clocks = Clocks::find(&source.time, &files, source.delimiter, &numbers)?;
        let wanted = Wanted {
            time: vec![source.time.column.clone()],
            time_needed: clocks.of(0).first_row().is_none(),
            run: source.run_column.clone(),
            flags: Labeller::column(labels)
                .map(|name| FlagColumn { names: vec![name.to_owned()], needed: true })
                .into_iter()
                .collect(),
            naming: Box::new(|name| Sensor::new(name, "")),
        };
        let long = match &source.shape {
            Shape::Wide => None,
            Shape::Long { .. } if !wanted.time_needed => {
                let what = "rows cannot count as time in a long table: an instant has several";
                return Err(StreamError::Setting(what.into()));
            }
            Shape::Long { tag, value, tags } => {
                let settings = LongSettings { tag, value, tags };
                let pivot = Pivot::find(&settings, &files, source.delimiter, &wanted, clients)?;
                Some(Arc::new(pivot))
            }
        };
        let events = clocks.events().clone();
        let delimiter = source.delimiter;
        let runs = source.runs;
        let plan = Plan { files, delimiter, numbers, clocks, runs, wanted, long };
        let wide = Wide::open(plan, clients, period_s)?;
        let labels = Labeller::new(labels, folder, &events, clients)?;
        Ok(Self { wide, labels })
    }

    /// Refuses a period that the rows contradict.
    pub(crate) fn check_period(&self, period_s: f64) -> Result<(), StreamError> {
        self.wide.check_period(period_s)
    }
}

/// How the times of each of `files` are written: its name, and the format in words. Empty where all
/// files have the same format, which the session then says itself.
pub(crate) fn time_formats(
    source: &TableSource,
    folder: &Path,
    files: &[String],
) -> Result<Vec<(String, String)>, StreamError> {
    let files = files::find(folder, files, source.published.as_deref())?;
    let numbers = Numbers::new(&source.missing);
    let clocks = Clocks::find(&source.time, &files, source.delimiter, &numbers)?;
    let names = files.iter().map(|file| files::name(file));
    Ok(names.zip(clocks.formats().iter().map(ToString::to_string)).collect())
}

impl Stream for TableStream {
    fn layout(&self) -> &Layout {
        self.wide.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        if !self.wide.next(frame)? {
            return Ok(false);
        }
        frame.label = self.labels.label(Seen {
            time: frame.time,
            continuity: frame.continuity,
            flag: self.wide.flags().first().copied().flatten(),
            file: self.wide.file(),
            run: self.wide.run(),
        });
        Ok(true)
    }

    fn events(&self) -> &[Event] {
        self.labels.events()
    }
}
