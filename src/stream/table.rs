//! Wide CSV files, one row per instant: what any historian can write.
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
//! | `chain` | instants → which of them agree |
//! | `timeline` | instants → order, gaps, runs, wrong stamps |
//! | `held` | a row read ahead of its turn |
//! | `wide` | all of these → frames without labels |

use std::path::Path;

use super::labels::{Labeller, Seen};
use super::{Event, Frame, Layout, Sensor, Stream, StreamError};
use crate::session::{ClientSettings, Labels, TableSource};

mod bytes;
mod chain;
pub(crate) mod clock;
pub(crate) mod files;
pub(crate) mod header;
mod held;
pub(crate) mod number;
pub(crate) mod rows;
mod timeline;
pub(crate) mod wide;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod real;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use clock::Clock;
use header::{FlagColumn, Wanted};
use number::Numbers;
use wide::{Plan, Wide};

/// The frames of wide CSV files.
pub struct TableStream {
    wide: Wide,
    labels: Labeller,
}

impl TableStream {
    /// Opens `files` (names or patterns, in this order) of `folder`.
    ///
    /// Reads every file's header and the first rows of one, no more: what does not fit together is
    /// said here, and a large file opens at once. Without `period_s` the period is the most
    /// frequent distance of the first rows; where rows count as time it is a second.
    pub fn open(
        source: &TableSource,
        folder: &Path,
        files: &[String],
        clients: &[ClientSettings],
        labels: &Labels,
        period_s: Option<f64>,
    ) -> Result<Self, StreamError> {
        let clock = Clock::new(&source.time)?;
        let plan = Plan {
            files: files::find(folder, files, source.published.as_deref())?,
            delimiter: source.delimiter,
            numbers: Numbers::new(&source.missing),
            runs: source.runs,
            wanted: Wanted {
                time: vec![source.time.column.clone()],
                time_needed: clock.first_row().is_none(),
                run: source.run_column.clone(),
                flags: Labeller::column(labels)
                    .map(|name| FlagColumn { names: vec![name.to_owned()], needed: true })
                    .into_iter()
                    .collect(),
                naming: Box::new(|name| Sensor::new(name, "")),
            },
            clock: clock.clone(),
        };
        let wide = Wide::open(plan, clients, period_s)?;
        let labels = Labeller::new(labels, folder, &clock, clients)?;
        Ok(Self { wide, labels })
    }
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
