//! Several files as one succession of frames, without labels.
//!
//! What is common to every table: columns found by name in each file anew, rows placed in time,
//! runs, notes. What a label means is for those who read tables through this.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
use super::clocks::Clocks;
use super::files;
use super::header::{FileColumns, Wanted};
use super::long::{LeftOut, LongRows, Pivot};
use super::number::Numbers;
use super::rows::{Next, Rows};
use super::shape::TableRows;
use super::timeline::{Placed, Timeline, usual_step};
use crate::session::{ClientSettings, Delimiter, Runs};
use crate::stream::{Frame, Layout, Note, NoteKind, Place, StreamError};

/// How many rows show the period of a table.
const ROWS_TO_FIND_PERIOD: usize = 100;

/// What a cell of a monitored column should hold.
const A_NUMBER: &str = "a number (a word for \"missing\" can be added to `missing`)";

/// What a cell of a label column should hold.
const A_LABEL: &str = "a label: 0 (normal) or another number (anomalous)";

/// What to read and how.
pub(crate) struct Plan {
    /// The files, in this order.
    pub files: Vec<PathBuf>,
    pub delimiter: Delimiter,
    pub numbers: Numbers,
    /// The clock of every file.
    pub clocks: Clocks,
    pub runs: Runs,
    pub wanted: Wanted,
    /// How rows of one instant are assembled, where a row holds one measurement only.
    pub long: Option<Arc<Pivot>>,
}

impl Plan {
    /// Opens the file of this number.
    fn open(&self, file: usize) -> Result<TableRows, StreamError> {
        let rows = Rows::open(&self.files[file], self.delimiter)?;
        Ok(match &self.long {
            None => TableRows::Wide(Box::new(rows)),
            Some(pivot) => {
                let (clock, numbers) = (self.clocks.of(file).clone(), self.numbers.clone());
                TableRows::Long(Box::new(LongRows::new(rows, Arc::clone(pivot), clock, numbers)?))
            }
        })
    }

    /// What is known of the rows of this file beside their measurements.
    fn place(&self, file: usize) -> Place {
        let several = self.files.len() > 1;
        let number = || (file + 1).to_string().into();
        Place {
            file: several.then(|| files::name(&self.files[file]).into()),
            run: (several && self.runs == Runs::PerFile && self.wanted.run.is_none()).then(number),
        }
    }
}

/// The rows of several files, as frames.
pub(crate) struct Wide {
    plan: Plan,
    layout: Layout,
    timeline: Timeline,
    open: Option<Open>,
    /// Data rows of the files that are over.
    finished: Vec<u64>,
    /// Value of the run column at the last frame.
    run: Vec<u8>,
    flags: Vec<Option<f64>>,
    over: bool,
}

/// The file that is being read.
struct Open {
    rows: TableRows,
    clock: Clock,
    place: Place,
    columns: FileColumns,
    name: String,
    /// Data rows of the files before it.
    rows_before: u64,
    /// Data rows read, those left out among them.
    read: u64,
    /// Whether it has given no frame yet.
    fresh: bool,
    /// Whether every row so far was older than what came before the file.
    stale: bool,
}

impl Wide {
    /// Reads every file's header, so that a file that does not fit is known at once, and the first
    /// rows, to find the period when nobody says.
    pub fn open(
        plan: Plan,
        clients: &[ClientSettings],
        period_s: Option<f64>,
    ) -> Result<Self, StreamError> {
        let mut layout = plan.wanted.layout(&plan.open(0)?, clients)?;
        for file in 0..plan.files.len() {
            plan.wanted.find(&plan.open(file)?, &layout)?;
        }
        let period = match period_s {
            Some(seconds) => SignedDuration::try_from_secs_f64(seconds)
                .ok()
                .filter(|p| *p > SignedDuration::ZERO)
                .ok_or_else(|| {
                    StreamError::Setting(format!("a period of {seconds} s makes no sense"))
                })?,
            None => find_period(&plan)?,
        };
        layout.period_s = period.as_secs_f64();
        Ok(Self {
            timeline: Timeline::new(period),
            layout,
            open: None,
            finished: Vec::new(),
            run: Vec::new(),
            flags: Vec::new(),
            over: false,
            plan,
        })
    }

    /// What frames look like.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The file of the last frame.
    pub fn file(&self) -> &Path {
        self.path(self.finished.len().min(self.plan.files.len() - 1))
    }

    /// A file by its number.
    pub fn path(&self, file: usize) -> &Path {
        &self.plan.files[file]
    }

    /// The last frame's place among the data rows of its file, counted from 0.
    pub fn row(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.read.saturating_sub(1))
    }

    /// Value of the run column at the last frame, where there is such a column.
    pub fn run(&self) -> Option<&[u8]> {
        self.plan.wanted.run.is_some().then_some(self.run.as_slice())
    }

    /// Values of the label columns at the last frame: `None` for a column that its file lacks, NaN
    /// for an empty cell.
    pub fn flags(&self) -> &[Option<f64>] {
        &self.flags
    }

    /// Data rows of each file that is over; as many as there are, the last frame's file is the next.
    pub fn finished(&self) -> &[u64] {
        &self.finished
    }

    /// Reads the present file to its end for the number of its data rows.
    pub fn count_rows(&mut self) -> Result<u64, StreamError> {
        let Some(open) = &mut self.open else { return Ok(0) };
        while open.rows.next()? == Next::Row {
            open.read += 1;
        }
        Ok(open.read)
    }

    /// Fills all of `frame` but its label; `false` at the end. Over after an error.
    pub fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        frame.notes.clear();
        if self.over {
            return Ok(false);
        }
        let answer = self.find_frame(frame);
        self.over = !matches!(answer, Ok(true));
        answer
    }

    fn find_frame(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        frame.values.resize(self.layout.width(), f64::NAN);
        frame.inputs.resize(self.layout.input_width(), f64::NAN);
        loop {
            if self.open.is_none() && !self.open_next()? {
                return Ok(false);
            }
            let Some(open) = &mut self.open else { continue };
            let next = open.rows.next()?;
            while let Some(left_out) = open.rows.take_note() {
                open.add_note(frame, left_out);
            }
            match next {
                Next::End => {
                    self.close()?;
                    continue;
                }
                Next::CutShort => {
                    open.note(frame, NoteKind::TruncatedRow);
                    self.close()?;
                    continue;
                }
                Next::Row => open.read += 1,
            }
            let placed = open.place(&self.plan, &self.timeline, &self.run).and_then(|placed| {
                if let Placed::Frame { .. } = placed {
                    open.fill(&self.plan, frame, &mut self.flags)?;
                }
                Ok(placed)
            });
            match placed {
                Ok(Placed::Frame { time, continuity, shift }) => {
                    frame.time = time;
                    frame.continuity = continuity;
                    self.timeline.advance(time, shift);
                    open.fresh = false;
                    open.stale = false;
                    if let Some(column) = open.columns.run {
                        let run = open.rows.cell(column);
                        if open.place.run.is_none() || run != self.run {
                            open.place.run = Some(String::from_utf8_lossy(run).into());
                            self.run.clear();
                            self.run.extend_from_slice(run);
                        }
                    }
                    frame.place.clone_from(&open.place);
                    return Ok(true);
                }
                Ok(Placed::LeftOut(why)) => {
                    open.stale &= why == NoteKind::BackwardStamp;
                    open.note(frame, why);
                }
                // A row whose line was never finished may be wrong in its last cell only.
                Err(_) if open.rows.ends_the_file() => {
                    open.read -= 1;
                    open.note(frame, NoteKind::TruncatedRow);
                    self.close()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, StreamError> {
        let number = self.finished.len();
        let Some(file) = self.plan.files.get(number) else { return Ok(false) };
        let rows = self.plan.open(number)?;
        let columns = self.plan.wanted.find(&rows, &self.layout)?;
        self.open = Some(Open {
            rows,
            columns,
            clock: self.plan.clocks.of(number).clone(),
            place: self.plan.place(number),
            name: files::name(file),
            rows_before: self.finished.iter().sum(),
            read: 0,
            fresh: true,
            stale: true,
        });
        Ok(true)
    }

    fn close(&mut self) -> Result<(), StreamError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let file = self.file().to_path_buf();
        self.finished.push(open.read);
        match self.timeline.last() {
            Some(last) if open.read > 0 && open.stale => Err(StreamError::Setting(format!(
                "{}: every row is older than the end of the files before it ({last}); list files \
                 in the order of their time, or read them as separate runs",
                file.display()
            ))),
            _ => Ok(()),
        }
    }
}

impl Open {
    /// Where the present row stands.
    fn place(&self, plan: &Plan, timeline: &Timeline, run: &[u8]) -> Result<Placed, StreamError> {
        let rows = &self.rows;
        let out_of_range = || rows.row_error("the time of this row is out of range".into());
        let stamp = match self.columns.time {
            Some(column) => self
                .clock
                .read(rows.cell(column), &plan.numbers, rows.decimal_comma())
                .ok_or_else(|| rows.cell_error(column, self.clock.expected()))?,
            None => row_time(&self.clock, timeline.period(), self.rows_before + self.read - 1)
                .ok_or_else(out_of_range)?,
        };
        let new_run = (plan.runs == Runs::PerFile && self.fresh)
            || self.columns.run.is_some_and(|column| rows.cell(column) != run);
        timeline.place(stamp, new_run).ok_or_else(out_of_range)
    }

    /// Reads the present row's measurements and labels.
    fn fill(
        &self,
        plan: &Plan,
        frame: &mut Frame,
        flags: &mut Vec<Option<f64>>,
    ) -> Result<(), StreamError> {
        let (rows, columns) = (&self.rows, &self.columns);
        let values = frame.values.iter_mut().zip(&columns.values);
        let inputs = frame.inputs.iter_mut().zip(&columns.inputs);
        for (value, &column) in values.chain(inputs) {
            *value = plan
                .numbers
                .read(rows.cell(column), rows.decimal_comma())
                .ok_or_else(|| rows.cell_error(column, A_NUMBER.into()))?;
        }
        flags.clear();
        for &column in &columns.flags {
            let flag = column.map(|column| {
                plan.numbers
                    .read_flag(rows.cell(column), rows.decimal_comma())
                    .ok_or_else(|| rows.cell_error(column, A_LABEL.into()))
            });
            flags.push(flag.transpose()?);
        }
        Ok(())
    }

    /// Adds the present row to the frame's notes: one note per file and reason.
    fn note(&self, frame: &mut Frame, what: NoteKind) {
        self.add_note(frame, LeftOut { what, line: self.rows.line(), rows: 1 });
    }

    fn add_note(&self, frame: &mut Frame, LeftOut { what, line, rows }: LeftOut) {
        match frame.notes.iter_mut().find(|n| n.what == what && n.place == self.name) {
            Some(note) => note.rows += rows,
            None => frame.notes.push(Note { place: self.name.clone(), line, rows, what }),
        }
    }
}

fn row_time(clock: &Clock, period: SignedDuration, row: u64) -> Option<Timestamp> {
    let nanos = period.as_nanos().checked_mul(i128::from(row))?;
    let passed = SignedDuration::try_from_nanos_i128(nanos)?;
    clock.first_row()?.checked_add(passed).ok()
}

/// The usual distance of the first rows, from the first file that has two. What is wrong with a
/// row is said when it is read for good.
fn find_period(plan: &Plan) -> Result<SignedDuration, StreamError> {
    // Without two rows there is no distance, and nothing that could depend on it.
    let nobody_says = SignedDuration::from_secs(1);
    let mut stamps = Vec::with_capacity(ROWS_TO_FIND_PERIOD);
    for file in 0..plan.files.len() {
        let mut rows = plan.open(file)?;
        let Some(column) = plan.wanted.time(&rows)? else {
            return Ok(nobody_says);
        };
        stamps.clear();
        while stamps.len() < ROWS_TO_FIND_PERIOD && matches!(rows.next(), Ok(Next::Row)) {
            let cell = rows.cell(column);
            match plan.clocks.of(file).read(cell, &plan.numbers, rows.decimal_comma()) {
                Some(stamp) => stamps.push(stamp),
                None => break,
            }
        }
        if let Some(step) = usual_step(&stamps) {
            return Ok(step);
        }
    }
    Ok(nobody_says)
}
