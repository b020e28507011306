//! Several files as one succession of frames, without labels.
//!
//! What is common to every table: columns found by name in each file anew, rows placed in time,
//! runs, notes. What a label means is for those who read tables through this.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
use super::clocks::Clocks;
use super::files;
use super::header::{FileColumns, Wanted};
use super::held::Held;
use super::long::{LeftOut, LongRows, Pivot};
use super::number::Numbers;
use super::recent::Recent;
use super::rows::{NextRow, Rows};
use super::shape::TableRows;
use super::timeline::{self, Placed, Timeline, WINDOW, regular_step, usual_step};
use crate::session::{ClientSettings, Delimiter, Runs};
use crate::stream::{Frame, Layout, Note, NoteKind, Place, StreamError, is_same_period};

/// How many rows show the period of a table.
const ROWS_TO_FIND_PERIOD: usize = 100;

/// What is wrong with a time that cannot be reckoned with.
const OUT_OF_RANGE: &str = "the time of this row is out of range";

/// What to read and how.
pub(crate) struct Plan {
    /// The files, in this order.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) delimiter: Delimiter,
    pub(crate) numbers: Numbers,
    /// The clock of every file.
    pub(crate) clocks: Clocks,
    pub(crate) runs: Runs,
    pub(crate) wanted: Wanted,
    /// How rows of one instant are assembled, where a row holds one measurement only.
    pub(crate) long: Option<Arc<Pivot>>,
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
    /// Place of the last frame among the data rows of its file.
    row: u64,
    /// Stamps of a row and of those after it.
    stamps: Vec<Timestamp>,
    recent: Recent,
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
    /// Rows that were read and are not yet frames, with the next one first.
    held: VecDeque<Held>,
    /// Rows that are over, to be filled again.
    spare: Vec<Held>,
    /// What comes after the rows held.
    end: Option<End>,
    /// What was left out of the rows read, until a frame takes it along.
    notes: Vec<LeftOut>,
    /// Whether it has given no frame yet.
    fresh: bool,
    /// Whether every row so far was older than what came before the file.
    stale: bool,
}

/// What comes after the last row of a file.
enum End {
    Clean,
    /// A row that is cut short, in this line.
    CutShort {
        line: u64,
    },
    /// What cannot be read.
    Broken(StreamError),
}

impl Wide {
    /// Reads every file's header, so that a file that does not fit is known at once, and the first
    /// rows, to find the period where it is not given.
    pub(crate) fn open(
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
            // Without two rows there is no distance, and nothing that could depend on it.
            None => usual_step(&first_stamps(&plan)?).unwrap_or(SignedDuration::from_secs(1)),
        };
        layout.period_s = period.as_secs_f64();
        Ok(Self {
            timeline: Timeline::new(period),
            layout,
            open: None,
            finished: Vec::new(),
            run: Vec::new(),
            flags: Vec::new(),
            row: 0,
            stamps: Vec::with_capacity(WINDOW),
            recent: Recent::default(),
            over: false,
            plan,
        })
    }

    /// Refuses a period that the session says and that the rows contradict: with it, time would
    /// stand still or be full of gaps. Rows without a step of their own contradict nothing.
    pub(crate) fn check_period(&self, period_s: f64) -> Result<(), StreamError> {
        let Some(step) = regular_step(&first_stamps(&self.plan)?) else { return Ok(()) };
        let step_s = step.as_secs_f64();
        if is_same_period(step_s, period_s) {
            return Ok(());
        }
        Err(StreamError::Setting(format!(
            "the session says that a row comes every {period_s} s, but in {} one comes every {step_s} s",
            files::name(&self.plan.files[0])
        )))
    }

    /// What frames look like.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The file of the last frame.
    pub(crate) fn file(&self) -> &Path {
        self.path(self.finished.len().min(self.plan.files.len() - 1))
    }

    pub(crate) fn path(&self, file: usize) -> &Path {
        &self.plan.files[file]
    }

    /// The last frame's place among the data rows of its file, counted from 0.
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// Value of the run column at the last frame, where there is such a column.
    pub(crate) fn run(&self) -> Option<&[u8]> {
        self.plan.wanted.run.is_some().then_some(self.run.as_slice())
    }

    /// Values of the label columns at the last frame: `None` for a column that its file lacks, NaN
    /// for an empty cell.
    pub(crate) fn flags(&self) -> &[Option<f64>] {
        &self.flags
    }

    /// Data rows of each file that is over; as many as there are, the last frame's file is the next.
    pub(crate) fn finished(&self) -> &[u64] {
        &self.finished
    }

    /// Reads the present file to its end for the number of its data rows.
    pub(crate) fn count_rows(&mut self) -> Result<u64, StreamError> {
        let Some(open) = &mut self.open else { return Ok(0) };
        match open.end.take() {
            Some(End::Broken(error)) => return Err(error),
            Some(End::Clean | End::CutShort { .. }) => return Ok(open.read),
            None => {}
        }
        while open.rows.next()? == NextRow::Row {
            open.read += 1;
        }
        Ok(open.read)
    }

    /// Fills all of `frame` but its label; `false` at the end. Over after an error.
    pub(crate) fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
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
            let has_row = !open.held.is_empty() || open.read_on(&self.plan, &self.timeline);
            for left_out in std::mem::take(&mut open.notes) {
                open.add_note(frame, left_out);
            }
            if !has_row {
                match open.end.take() {
                    Some(End::Broken(error)) => return Err(error),
                    Some(End::CutShort { line }) => open.note(frame, NoteKind::TruncatedRow, line),
                    Some(End::Clean) | None => {}
                }
                self.close()?;
                continue;
            }
            let placed = open.place(&self.plan, &self.timeline, &self.run, &mut self.stamps);
            // The first rows of a file may repeat the end of the file before it, which is another matter.
            let placed = match placed {
                Ok(placed) if !open.fresh => Ok(self.recent.judge(placed, &open.held)),
                placed => placed,
            };
            let mut row = open.held.pop_front().expect("the row just placed");
            let placed = placed.and_then(|placed| {
                if let Placed::Frame(_) = placed {
                    self.recent.add(&row);
                    row.hand_over(frame, &mut self.flags)?;
                }
                Ok(placed)
            });
            match placed {
                Ok(Placed::Frame(place)) => {
                    frame.time = place.time;
                    frame.continuity = place.continuity;
                    self.timeline.advance(&place);
                    self.row = row.number;
                    if let (Some(from), Ok(to)) = (place.moved_from, &row.stamp) {
                        open.note(frame, NoteKind::ClockMoved { from, to: *to }, row.line);
                    }
                    open.fresh = false;
                    open.stale = false;
                    if open.columns.run.is_some()
                        && (open.place.run.is_none() || row.run != self.run)
                    {
                        open.place.run = Some(String::from_utf8_lossy(&row.run).into());
                        self.run.clear();
                        self.run.extend_from_slice(&row.run);
                    }
                    frame.place.clone_from(&open.place);
                    open.spare.push(row);
                    return Ok(true);
                }
                Ok(Placed::LeftOut(why)) => {
                    open.stale &= why == NoteKind::BackwardStamp;
                    open.note(frame, why, row.line);
                    open.spare.push(row);
                }
                // A row whose line was never finished may be wrong in its last cell only.
                Err(_) if row.ends_the_file => {
                    open.read -= 1;
                    open.note(frame, NoteKind::TruncatedRow, row.line);
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
        self.recent.clear();
        self.open = Some(Open {
            rows,
            columns,
            clock: self.plan.clocks.of(number).clone(),
            place: self.plan.place(number),
            name: files::name(file),
            rows_before: self.finished.iter().sum(),
            read: 0,
            held: VecDeque::with_capacity(WINDOW),
            spare: Vec::new(),
            end: None,
            notes: Vec::new(),
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
    /// Reads one row more, to be held behind the others; `false` at the end of the file, or where it
    /// cannot be read on.
    fn read_on(&mut self, plan: &Plan, timeline: &Timeline) -> bool {
        if self.end.is_some() {
            return false;
        }
        let next = self.rows.next();
        self.notes.extend(std::iter::from_fn(|| self.rows.take_note()));
        self.end = match next {
            Ok(NextRow::Row) => {
                let mut row = self.spare.pop().unwrap_or_default();
                row.read(&self.rows, &self.columns, &plan.numbers);
                row.number = self.read;
                row.stamp = self.stamp(plan, timeline);
                self.read += 1;
                self.held.push_back(row);
                return true;
            }
            Ok(NextRow::End) => Some(End::Clean),
            Ok(NextRow::CutShort) => Some(End::CutShort { line: self.rows.line() }),
            Err(error) => Some(End::Broken(error)),
        };
        false
    }

    /// The time that the row just read says, or that its place says.
    fn stamp(&self, plan: &Plan, timeline: &Timeline) -> Result<Timestamp, StreamError> {
        let rows = &self.rows;
        match self.columns.time {
            Some(column) => self
                .clock
                .read(rows.cell(column), &plan.numbers, rows.decimal_comma())
                .ok_or_else(|| rows.cell_error(column, self.clock.expected())),
            None => row_time(&self.clock, timeline.period(), self.rows_before + self.read)
                .ok_or_else(|| rows.row_error(OUT_OF_RANGE.into())),
        }
    }

    /// Where the next row stands. Rows after it are read where its own stamp does not say enough;
    /// `stamps` is room for theirs.
    fn place(
        &mut self,
        plan: &Plan,
        timeline: &Timeline,
        run: &[u8],
        stamps: &mut Vec<Timestamp>,
    ) -> Result<Placed, StreamError> {
        let row = self.held.front_mut().expect("a row is placed only when one is held");
        let line = row.line;
        // An error is given away once: the row is over with it.
        let stamp = std::mem::replace(&mut row.stamp, Ok(Timestamp::UNIX_EPOCH))?;
        row.stamp = Ok(stamp);
        let new_run = (plan.runs == Runs::PerFile && self.fresh)
            || (self.columns.run.is_some() && row.run != run);
        stamps.clear();
        stamps.push(stamp);
        if new_run || !timeline.continues(stamp) {
            self.look_ahead(plan, timeline, stamps);
        }
        let rows = timeline::UpcomingRows { stamps, new_run, may_overlap: self.fresh };
        timeline.place(rows).ok_or_else(|| self.rows.row_error_at(line, OUT_OF_RANGE.into()))
    }

    /// Adds the stamps of the rows after the next one, as far as they are of its run.
    fn look_ahead(&mut self, plan: &Plan, timeline: &Timeline, stamps: &mut Vec<Timestamp>) {
        for ahead in 1..WINDOW {
            if ahead >= self.held.len() && !self.read_on(plan, timeline) {
                return;
            }
            match (&self.held[ahead].stamp, self.held[ahead].run == self.held[0].run) {
                (Ok(stamp), true) => stamps.push(*stamp),
                _ => return,
            }
        }
    }

    /// Adds a row to the frame's notes: one note per file and reason.
    fn note(&self, frame: &mut Frame, what: NoteKind, line: u64) {
        self.add_note(frame, LeftOut { what, line, rows: u64::from(what.leaves_out()) });
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

/// The stamps of the first rows, from the first file with rows that differ in time; none where rows
/// count as time. Faults of a row are reported when it is read for good.
fn first_stamps(plan: &Plan) -> Result<Vec<Timestamp>, StreamError> {
    let mut stamps = Vec::with_capacity(ROWS_TO_FIND_PERIOD);
    for file in 0..plan.files.len() {
        let mut rows = plan.open(file)?;
        stamps.clear();
        let Some(column) = plan.wanted.time(&rows)? else { break };
        while stamps.len() < ROWS_TO_FIND_PERIOD && matches!(rows.next(), Ok(NextRow::Row)) {
            let cell = rows.cell(column);
            match plan.clocks.of(file).read(cell, &plan.numbers, rows.decimal_comma()) {
                Some(stamp) => stamps.push(stamp),
                None => break,
            }
        }
        if usual_step(&stamps).is_some() {
            break;
        }
    }
    Ok(stamps)
}
