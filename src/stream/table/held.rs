//! A row that was read before it is known where it stands in time.

use jiff::Timestamp;

use super::header::FileColumns;
use super::number::Numbers;
use super::shape::TableRows;
use crate::stream::{Frame, StreamError};

/// What a cell of a monitored column should hold.
const A_NUMBER: &str = "a number (a word for \"missing\" can be added to `missing`)";

/// What a cell of a label column should hold.
const A_LABEL: &str = "a label: 0 (normal) or another number (anomalous)";

/// A row with all that a frame takes from it. Its faults are reported when it becomes a frame.
pub(crate) struct Held {
    /// The line it begins in.
    pub(crate) line: u64,
    /// Its place among the data rows of its file, counted from 0.
    pub(crate) number: u64,
    /// The file ends with it and its line was never finished.
    pub(crate) ends_the_file: bool,
    /// What it says about its time.
    pub(crate) stamp: Result<Timestamp, StreamError>,
    /// The cell of the run column; empty where there is none.
    pub(crate) run: Vec<u8>,
    wrong: Option<StreamError>,
    values: Vec<f64>,
    inputs: Vec<f64>,
    flags: Vec<Option<f64>>,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            line: 0,
            number: 0,
            ends_the_file: false,
            stamp: Ok(Timestamp::UNIX_EPOCH),
            run: Vec::new(),
            wrong: None,
            values: Vec::new(),
            inputs: Vec::new(),
            flags: Vec::new(),
        }
    }
}

impl Held {
    /// Takes all but the time from the present row of `rows`.
    pub(crate) fn read(&mut self, rows: &TableRows, columns: &FileColumns, numbers: &Numbers) {
        self.line = rows.line();
        self.ends_the_file = rows.ends_the_file();
        self.run.clear();
        if let Some(column) = columns.run {
            self.run.extend_from_slice(rows.cell(column));
        }
        self.wrong = self.fill(rows, columns, numbers).err();
    }

    fn fill(
        &mut self,
        rows: &TableRows,
        columns: &FileColumns,
        numbers: &Numbers,
    ) -> Result<(), StreamError> {
        let measured = |column: usize| {
            numbers
                .read(rows.cell(column), rows.decimal_comma())
                .ok_or_else(|| rows.cell_error(column, A_NUMBER.into()))
        };
        self.values.clear();
        self.inputs.clear();
        self.flags.clear();
        for &column in &columns.values {
            self.values.push(measured(column)?);
        }
        for &column in &columns.inputs {
            self.inputs.push(measured(column)?);
        }
        for &column in &columns.flags {
            let flag = column.map(|column| {
                numbers
                    .read_flag(rows.cell(column), rows.decimal_comma())
                    .ok_or_else(|| rows.cell_error(column, A_LABEL.into()))
            });
            self.flags.push(flag.transpose()?);
        }
        Ok(())
    }

    /// A hash of its measurements: rows with other values have another one, but for chance.
    pub(crate) fn hash(&self) -> u64 {
        let mix = |hash: u64, value: &f64| {
            (hash.rotate_left(5) ^ value.to_bits()).wrapping_mul(0x517c_c1b7_2722_0a95)
        };
        self.values.iter().chain(&self.inputs).fold(0, mix)
    }

    /// Gives measurements and labels away, or says what is wrong with them.
    pub(crate) fn hand_over(
        &mut self,
        frame: &mut Frame,
        flags: &mut Vec<Option<f64>>,
    ) -> Result<(), StreamError> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        std::mem::swap(&mut frame.values, &mut self.values);
        std::mem::swap(&mut frame.inputs, &mut self.inputs);
        std::mem::swap(flags, &mut self.flags);
        Ok(())
    }
}
