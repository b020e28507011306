//! Long tables (time, tag, value): the rows of one instant become one wide row.
//!
//! A file is read as it is asked for: what is held is one instant. That needs rows in the order of
//! time. A few rows that go back are left out and counted, and so is an instant that is far ahead of
//! what follows it; a table that goes back for good is an error. Which tags there are is seen from the beginning of the
//! files, or said by the session; a tag that is wanted and comes later is an error as well, because
//! the frames before it would lack a sensor without a word.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
use super::header::{Header, Wanted, needed};
use super::number::Numbers;
use super::rows::{CellPlace, NextRow, Rows};
use crate::session::{ClientSettings, Delimiter};
use crate::stream::columns::glob;
use crate::stream::{NoteKind, StreamError};

/// How many rows show which tags there are.
const ROWS_TO_FIND_TAGS: usize = 200_000;

/// How many different tags a table may have.
const MOST_TAGS: usize = 65_536;

/// So many rows in succession may go back in time; more are a table in another order.
const MOST_BACK: u32 = 20;

/// An instant that is further ahead of the row after it than this has a wrong time.
const FAR: SignedDuration = SignedDuration::from_hours(24);

/// How a long table becomes a wide one: the same for every file.
pub(crate) struct Pivot {
    tag: String,
    value: String,
    run: Option<String>,
    /// Names of the columns of the wide table: time, run where there is one, then every tag in
    /// alphabetical order, so that files in another order of rows give the same sensors.
    header: Vec<String>,
    /// The place of each tag in `header`.
    places: HashMap<Vec<u8>, usize>,
    /// Whether the session itself names the tags.
    named: bool,
    clients: Vec<ClientSettings>,
}

/// What a session says about a long table.
pub(crate) struct LongSettings<'a> {
    pub(crate) tag: &'a str,
    pub(crate) value: &'a str,
    pub(crate) tags: &'a [String],
}

impl Pivot {
    pub(crate) fn find(
        settings: &LongSettings,
        files: &[PathBuf],
        delimiter: Delimiter,
        wanted: &Wanted,
        clients: &[ClientSettings],
    ) -> Result<Self, StreamError> {
        let named = !settings.tags.is_empty();
        let mut tags: Vec<Vec<u8>> = if named {
            settings.tags.iter().map(|tag| tag.trim().as_bytes().to_vec()).collect()
        } else {
            first_tags(settings.tag, files, delimiter)?.into_iter().collect()
        };
        tags.sort_unstable();
        tags.dedup();
        let mut header = vec![wanted.time.first().cloned().unwrap_or_default()];
        header.extend(wanted.run.clone());
        let places = header.len()..;
        let places = tags.iter().cloned().zip(places).collect();
        header.extend(tags.iter().map(|tag| String::from_utf8_lossy(tag).into_owned()));
        Ok(Self {
            tag: settings.tag.to_owned(),
            value: settings.value.to_owned(),
            run: wanted.run.clone(),
            header,
            places,
            named,
            clients: clients.to_vec(),
        })
    }

    /// Whether a client watches a tag, or knows it as an input.
    fn is_watched(&self, tag: &str) -> bool {
        let meant = |patterns: &[String]| patterns.iter().any(|pattern| glob(pattern, tag));
        let watches = |client: &ClientSettings| {
            (meant(&client.columns) && !meant(&client.except)) || meant(&client.inputs)
        };
        self.clients.iter().any(watches)
    }

    fn where_from(&self) -> String {
        if self.named {
            "the tags are those that `tags` names".into()
        } else {
            format!(
                "the tags are those of the first {ROWS_TO_FIND_TAGS} rows; `tags` in `Long(…)` can \
                 name them instead"
            )
        }
    }
}

/// The tags in the first rows of the files. Faults of a row are reported when it is read for good.
fn first_tags(
    column: &str,
    files: &[PathBuf],
    delimiter: Delimiter,
) -> Result<HashSet<Vec<u8>>, StreamError> {
    let mut tags: HashSet<Vec<u8>> = HashSet::new();
    let mut left = ROWS_TO_FIND_TAGS;
    for file in files {
        let mut rows = Rows::open(file, delimiter)?;
        let column = needed(&rows, "tag column", column)?;
        while left > 0 && matches!(rows.next(), Ok(NextRow::Row)) {
            left -= 1;
            let tag = rows.cell(column);
            if !tag.is_empty() && !tags.contains(tag) {
                if tags.len() == MOST_TAGS {
                    let what = format!(
                        "there are more than {MOST_TAGS} different tags: is {column:?} the right column?",
                        column = rows.names()[column]
                    );
                    return Err(rows.row_error(what));
                }
                tags.insert(tag.to_vec());
            }
        }
    }
    Ok(tags)
}

/// The rows of one long file, assembled.
pub(crate) struct LongRows {
    rows: Rows,
    pivot: Arc<Pivot>,
    clock: Clock,
    numbers: Numbers,
    columns: Columns,
    /// The present instant: its cells in the order of the pivot's header, and the line of each,
    /// 0 where there is none.
    cells: Vec<Vec<u8>>,
    lines: Vec<u64>,
    stamp: Timestamp,
    /// The rows it has so far.
    size: u64,
    /// The instant before it.
    before: Option<Timestamp>,
    /// Rows in succession that went back in time.
    back: u32,
    /// Whether `rows` stands on a row that belongs to the next instant.
    ahead: Option<Timestamp>,
    /// Tags that no client watches and that the pivot does not know, so that each is judged once.
    unwatched: HashSet<Vec<u8>>,
    notes: Vec<LeftOut>,
}

/// Rows of a file that are left out for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) what: NoteKind,
    /// Line of the first.
    pub(crate) line: u64,
    pub(crate) rows: u64,
}

struct Columns {
    time: usize,
    run: Option<usize>,
    tag: usize,
    value: usize,
}

impl LongRows {
    /// Finds the columns of a file.
    pub(crate) fn new(
        rows: Rows,
        pivot: Arc<Pivot>,
        clock: Clock,
        numbers: Numbers,
    ) -> Result<Self, StreamError> {
        let columns = Columns {
            time: needed(&rows, "time column", &pivot.header[0])?,
            run: pivot.run.as_ref().map(|name| needed(&rows, "run column", name)).transpose()?,
            tag: needed(&rows, "tag column", &pivot.tag)?,
            value: needed(&rows, "value column", &pivot.value)?,
        };
        let width = pivot.header.len();
        Ok(Self {
            rows,
            clock,
            numbers,
            columns,
            cells: vec![Vec::new(); width],
            lines: vec![0; width],
            stamp: Timestamp::UNIX_EPOCH,
            size: 0,
            before: None,
            back: 0,
            ahead: None,
            unwatched: HashSet::new(),
            notes: Vec::new(),
            pivot,
        })
    }

    /// Assembles the next instant.
    pub(crate) fn next(&mut self) -> Result<NextRow, StreamError> {
        let Some(stamp) = self.take_ahead()? else { return Ok(NextRow::End) };
        self.before = (self.lines[0] > 0 && self.is_same_run()).then_some(self.stamp);
        self.begin(stamp);
        self.put()?;
        while let Some(stamp) = self.advance()? {
            if !self.is_same_run() {
                self.ahead = Some(stamp);
                break;
            }
            if stamp < self.stamp {
                self.go_back(stamp)?;
                continue;
            }
            if stamp > self.stamp {
                self.ahead = Some(stamp);
                break;
            }
            self.put()?;
        }
        Ok(NextRow::Row)
    }

    /// The present row is older than the instant. Either the instant has a wrong time, or the row; many
    /// such rows are a table in another order.
    fn go_back(&mut self, stamp: Timestamp) -> Result<(), StreamError> {
        let continues = self.before.is_none_or(|before| stamp >= before);
        if continues && self.stamp.duration_since(stamp) > FAR {
            let (line, rows) = (self.lines[0], self.size);
            self.leave_out(LeftOut { what: NoteKind::WrongStamp, line, rows });
            self.begin(stamp);
            return self.put();
        }
        self.back += 1;
        if self.back > MOST_BACK {
            return Err(self.rows.row_error(format!(
                "the time goes back, from {} to {stamp}: a long table must be in the order of time \
                 (sort it by its time column)",
                self.stamp
            )));
        }
        self.note(NoteKind::BackwardStamp);
        Ok(())
    }

    /// The instant of the first row that belongs to none yet; none at the end.
    fn take_ahead(&mut self) -> Result<Option<Timestamp>, StreamError> {
        match self.ahead.take() {
            Some(stamp) => Ok(Some(stamp)),
            None => self.advance(),
        }
    }

    /// Moves to the next row of the file and reads its time; none at the end. A row whose line was
    /// never finished is left out when it cannot be read.
    fn advance(&mut self) -> Result<Option<Timestamp>, StreamError> {
        match self.rows.next()? {
            NextRow::End => return Ok(None),
            NextRow::CutShort => {
                self.note(NoteKind::TruncatedRow);
                return Ok(None);
            }
            NextRow::Row => {}
        }
        let rows = &self.rows;
        let comma = rows.decimal_comma;
        let time = rows.cell(self.columns.time);
        // Most rows have the time of the row before.
        let stamp = if self.lines[0] > 0 && self.ahead.is_none() && time == self.cells[0] {
            Some(self.stamp)
        } else {
            self.clock.read(time, &self.numbers, comma)
        };
        if rows.ends_the_file() {
            let value = self.numbers.read_flag(rows.cell(self.columns.value), comma);
            if stamp.is_none() || value.is_none() || rows.cell(self.columns.tag).is_empty() {
                self.note(NoteKind::TruncatedRow);
                return Ok(None);
            }
        }
        match stamp {
            Some(stamp) => Ok(Some(stamp)),
            None => Err(rows.cell_error(self.columns.time, self.clock.expected())),
        }
    }

    /// Begins an instant with the present row of the file.
    fn begin(&mut self, stamp: Timestamp) {
        self.stamp = stamp;
        self.size = 0;
        self.back = 0;
        self.cells.iter_mut().for_each(Vec::clear);
        self.lines.fill(0);
        let line = self.rows.line();
        let columns = [Some(self.columns.time), self.columns.run];
        for (place, column) in columns.into_iter().flatten().enumerate() {
            self.cells[place].extend_from_slice(self.rows.cell(column));
            self.lines[place] = line;
        }
    }

    fn is_same_run(&self) -> bool {
        self.columns.run.is_none_or(|column| self.rows.cell(column) == self.cells[1])
    }

    /// Adds the present row of the file to the instant.
    fn put(&mut self) -> Result<(), StreamError> {
        self.size += 1;
        self.back = 0;
        let tag = self.rows.cell(self.columns.tag);
        if tag.is_empty() {
            return Err(self.rows.cell_error(self.columns.tag, "a tag"));
        }
        let Some(&place) = self.pivot.places.get(tag) else { return self.pass_over() };
        if self.lines[place] > 0 {
            self.note(NoteKind::DuplicateTag);
            return Ok(());
        }
        self.lines[place] = self.rows.line();
        self.cells[place].extend_from_slice(self.rows.cell(self.columns.value));
        Ok(())
    }

    /// A tag that the pivot does not know is of no interest, or comes too late.
    fn pass_over(&mut self) -> Result<(), StreamError> {
        let tag = self.rows.cell(self.columns.tag);
        if self.unwatched.contains(tag) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(tag);
        if self.pivot.is_watched(&name) {
            return Err(self.rows.row_error(format!(
                "the tag {name:?} belongs to a client and was not expected: {}",
                self.pivot.where_from()
            )));
        }
        if self.unwatched.len() < MOST_TAGS {
            self.unwatched.insert(tag.to_vec());
        }
        Ok(())
    }

    /// The present row is left out.
    fn note(&mut self, what: NoteKind) {
        self.leave_out(LeftOut { what, line: self.rows.line(), rows: 1 });
    }

    fn leave_out(&mut self, rows: LeftOut) {
        match self.notes.iter_mut().find(|note| note.what == rows.what) {
            Some(note) => note.rows += rows.rows,
            None => self.notes.push(rows),
        }
    }

    /// What had to be left out of the present instant, or after it.
    pub(crate) fn take_note(&mut self) -> Option<LeftOut> {
        self.notes.pop()
    }

    /// A cell of the present instant; empty where the tag has no row.
    pub(crate) fn cell(&self, column: usize) -> &[u8] {
        &self.cells[column]
    }

    /// Whether `1,5` is a number here.
    pub(crate) fn decimal_comma(&self) -> bool {
        self.rows.decimal_comma
    }

    /// The line of the instant's first row.
    pub(crate) fn line(&self) -> u64 {
        self.lines[0]
    }

    /// A complaint about the present instant.
    pub(crate) fn row_error(&self, what: String) -> StreamError {
        self.rows.row_error_at(self.line(), what)
    }

    /// A complaint about the row in this line.
    pub(crate) fn row_error_at(&self, line: u64, what: String) -> StreamError {
        self.rows.row_error_at(line, what)
    }

    /// A complaint about a cell of the present instant.
    pub(crate) fn cell_error(&self, column: usize, expected: String) -> StreamError {
        let place = match (column, self.columns.run) {
            (0, _) => self.columns.time,
            (1, Some(run)) => run,
            _ => self.columns.value,
        };
        let tag = &self.pivot.header[column];
        let at = CellPlace { line: self.lines[column], column: place, tag };
        self.rows.cell_error_at(at, expected, &self.cells[column])
    }
}

impl Header for LongRows {
    fn names(&self) -> &[String] {
        &self.pivot.header
    }

    fn header_error(&self, what: String) -> StreamError {
        self.rows.header_error(format!("{what} ({})", self.pivot.where_from()))
    }

    fn word(&self) -> &'static str {
        "tag"
    }
}
