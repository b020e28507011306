//! Labels of HAI 23.05, which stand in files of their own.
//!
//! They go with the measurements row by row, not by time: the stamps of `label-test2.csv` have no
//! seconds.

use std::path::{Path, PathBuf};

use crate::session::Delimiter;
use crate::stream::StreamError;
use crate::stream::table::files;
use crate::stream::table::header::needed;
use crate::stream::table::number::Numbers;
use crate::stream::table::rows::{NextRow, Rows};

/// A file of labels, read in step with its file of measurements.
pub(super) struct LabelFile {
    path: PathBuf,
    rows: Rows,
    column: usize,
    numbers: Numbers,
    read: u64,
    flag: f64,
}

impl LabelFile {
    /// The file of labels that goes with a file of measurements, if it is there.
    pub(crate) fn beside(data: &Path) -> Option<PathBuf> {
        let stem = files::stem(data);
        let number = stem.strip_prefix("hai-test")?;
        files::exact(&data.with_file_name(format!("label-test{number}.csv")))
    }

    /// Opens it and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, StreamError> {
        let rows = Rows::open(path, Delimiter::Auto)?;
        let column = needed(&rows, "label column", "label")?;
        Ok(Self {
            path: path.to_path_buf(),
            rows,
            column,
            numbers: Numbers::default(),
            read: 0,
            flag: f64::NAN,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The label of a row (counted from 0, never backward); NaN for an empty cell, `None` when the
    /// file has no such row.
    pub(crate) fn flag(&mut self, row: u64) -> Result<Option<f64>, StreamError> {
        while self.read <= row {
            if self.rows.next()? != NextRow::Row {
                return Ok(None);
            }
            self.read += 1;
            let cell = self.rows.cell(self.column);
            self.flag = self
                .numbers
                .read_flag(cell, self.rows.decimal_comma)
                .ok_or_else(|| self.rows.cell_error(self.column, "a label: 0 or 1"))?;
        }
        Ok(Some(self.flag))
    }

    /// Reads to the end for the number of rows.
    pub(crate) fn count_rows(&mut self) -> Result<u64, StreamError> {
        while self.rows.next()? == NextRow::Row {
            self.read += 1;
        }
        Ok(self.read)
    }
}
