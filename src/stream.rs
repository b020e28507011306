//! Time-aligned measurements: one [`Frame`] per instant, one row per client.
//!
//! A stream knows where measurements come from and what they mean; it must not know what is done
//! with them. All sources (a table, the HAI releases, the built-in plant, the synthetic plants)
//! look the same from here on.
//!
//! Who may read the values of a [`Row`] is the one rule that everything private rests on: streams
//! themselves, models, a site and its local view ([`crate::site::local`]). There is no other way:
//!
//! ```compile_fail,E0624
//! use headwater::test_api::Row;
//! fn look(row: Row<'_>) -> usize {
//!     row.raw_sensors().len()
//! }
//! ```
//!
//! How many there are is no secret:
//!
//! ```
//! use headwater::test_api::Row;
//! fn look(row: Row<'_>) -> usize {
//!     row.sensors()
//! }
//! ```
//!
//! Inside the crate `tests/architecture.rs` holds every module to it.

use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) mod columns;
pub(crate) mod decimate;
pub(crate) mod error;
pub(crate) mod extent;
pub(crate) mod hai;
pub(crate) mod live;
pub(crate) mod open;
pub(crate) mod plant;
pub(crate) mod resolution;
pub(crate) mod scaling;
pub(crate) mod stored;
pub(crate) mod table;
pub(crate) mod time_seen;
pub(crate) mod twin;
pub(crate) mod unused;
pub(crate) mod unused_columns;
pub(crate) mod wild;
pub(crate) mod window;

#[cfg(test)]
pub(crate) mod test_faults;
#[cfg(test)]
pub(crate) mod test_support;

pub(crate) use error::StreamError;
pub(crate) use open::{Part, is_same_period, open, time_formats};
pub(crate) use stored::StoredFrame;
pub(crate) use unused::UnusedRows;

/// One measured quantity of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sensor {
    /// The name it is shown under (canonical where the data set has several).
    pub(crate) name: String,
    /// Engineering unit, empty when unknown.
    pub(crate) unit: String,
}

impl Sensor {
    /// A sensor with its unit.
    pub(crate) fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into() }
    }
}

/// The columns of one client: what it monitors, and which commands and set points its model may
/// use as known inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientColumns {
    /// Short name used in every verdict ("P1").
    pub(crate) name: String,
    /// What it is ("boiler"); empty where it is not given.
    pub(crate) title: String,
    pub(crate) sensors: Vec<Sensor>,
    /// Known inputs, never monitored.
    pub(crate) inputs: Vec<Sensor>,
}

/// What every frame of a stream looks like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// Clients in the order of the session.
    pub(crate) clients: Vec<ClientColumns>,
    /// Seconds between two frames when nothing is missing.
    pub(crate) period_s: f64,
}

impl Layout {
    /// Number of monitored values in a frame.
    pub(crate) fn width(&self) -> usize {
        self.clients.iter().map(|c| c.sensors.len()).sum()
    }

    /// Number of known inputs in a frame.
    pub(crate) fn input_width(&self) -> usize {
        self.clients.iter().map(|c| c.inputs.len()).sum()
    }

    /// Where client `client`'s sensors stand in [`Frame::values`].
    pub(crate) fn span(&self, client: usize) -> Range<usize> {
        let start = self.clients[..client].iter().map(|c| c.sensors.len()).sum();
        start..start + self.clients[client].sensors.len()
    }

    /// Where client `client`'s inputs stand in [`Frame::inputs`].
    pub(crate) fn input_span(&self, client: usize) -> Range<usize> {
        let start = self.clients[..client].iter().map(|c| c.inputs.len()).sum();
        start..start + self.clients[client].inputs.len()
    }

    /// The place of the client called `name`.
    pub(crate) fn client(&self, name: &str) -> Option<usize> {
        self.clients.iter().position(|c| c.name == name)
    }
}

/// How a frame stands to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) enum Continuity {
    /// The first frame of a stream, or of a run that has nothing to do with the one before.
    #[default]
    NewRun,
    Next,
    /// Later than one period: `seconds` of data are missing in between.
    Gap {
        /// Length of the hole, the regular period not counted.
        seconds: f64,
    },
}

/// What the data set itself says about an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Label {
    /// The data set does not say.
    #[default]
    Unlabelled,
    /// Labelled as normal operation.
    Normal,
    /// Labelled as anomalous; `event` indexes [`Stream::events`] when the event is known there.
    Anomalous {
        /// Index of the known event.
        event: Option<u32>,
    },
}

/// Why rows were left out. Notes travel with the next frame; those after the last frame are in the
/// frame that [`Stream::next`] answered `false` for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// The file (or generator) concerned.
    pub(crate) place: String,
    /// Line of the (first) row concerned, counted from 1.
    pub(crate) line: u64,
    /// How many rows were left out. Rows of one file that are left out for one reason between two
    /// frames share a note, so that a file in the wrong order costs no memory.
    pub(crate) rows: u64,
    pub(crate) what: NoteKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum NoteKind {
    /// A row with the stamp of the row before; the first one counts.
    DuplicateStamp,
    /// A row older than the row before; it was left out.
    BackwardStamp,
    /// A row whose stamp the rows around it contradict; it was left out.
    WrongStamp,
    /// The last row of a file ends early (a writer was stopped); it was left out.
    TruncatedRow,
    /// A row of a long table with a tag that has a value at that instant already; the first counts.
    DuplicateTag,
    /// A live value or row that came after its row was handed out.
    Late,
    /// A live value or row that came before with the same stamp.
    Doubled,
    /// A live line or message that cannot be read.
    Unreadable,
    /// The clock of the data jumped and stayed where it went; its rows are used.
    ClockMoved {
        /// The last stamp before.
        from: Timestamp,
        /// The first stamp after.
        to: Timestamp,
    },
}

impl NoteKind {
    pub(crate) fn leaves_out(self) -> bool {
        !matches!(self, NoteKind::ClockMoved { .. })
    }

    /// What is wrong with such rows.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            NoteKind::DuplicateStamp => "duplicate time stamp",
            NoteKind::BackwardStamp => "time stamp runs backward",
            NoteKind::WrongStamp => "time stamp does not fit the rows around it",
            NoteKind::TruncatedRow => "file ends in the middle of a row",
            NoteKind::DuplicateTag => "second value of a tag at one instant",
            NoteKind::Late => "came too late",
            NoteKind::Doubled => "came twice",
            NoteKind::Unreadable => "cannot be read",
            NoteKind::ClockMoved { .. } => "the clock of the data moved",
        }
    }
}

impl std::fmt::Display for NoteKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoteKind::ClockMoved { from, to } => {
                let by = to.duration_since(*from).as_secs_f64();
                write!(f, "{} from {from} to {to} ({by:+} s), its rows are used", self.reason())
            }
            _ => write!(f, "{}, row left out", self.reason()),
        }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Note { place, line, rows, what } = self;
        match rows {
            0 | 1 => write!(f, "{what} ({place} line {line})"),
            _ => write!(f, "{}, {rows} rows left out ({place} from line {line})", what.reason()),
        }
    }
}

/// Where the rows of a frame come from, as far as the data has several such places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file's name, where there are several files.
    pub(crate) file: Option<Arc<str>>,
    /// The run, where there are several: the value of the run column, or the number of the file.
    pub(crate) run: Option<Arc<str>>,
}

/// All measurements of one instant. The caller owns it and hands it back to be filled again,
/// so that streaming does not allocate.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Frame {
    pub(crate) time: Timestamp,
    /// How it stands to the frame before.
    pub(crate) continuity: Continuity,
    /// Monitored values of all clients, in [`Layout`] order; NaN is "missing", never anything else.
    pub(in crate::stream) values: Vec<f64>,
    /// Known inputs of all clients, likewise.
    pub(in crate::stream) inputs: Vec<f64>,
    /// The data set's own label.
    pub(crate) label: Label,
    /// What had to be left out since the frame before.
    pub(crate) notes: Vec<Note>,
    pub(crate) place: Place,
}

/// Without the values, like [`Row`].
impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame")
            .field("time", &self.time)
            .field("continuity", &self.continuity)
            .field("values", &self.values.len())
            .field("label", &self.label)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

impl Frame {
    /// An empty frame of the right width.
    pub(crate) fn for_layout(layout: &Layout) -> Self {
        Self {
            values: vec![f64::NAN; layout.width()],
            inputs: vec![f64::NAN; layout.input_width()],
            ..Self::default()
        }
    }

    /// A frame with measurements that were stored earlier.
    pub(crate) fn with_values(values: Vec<f64>) -> Self {
        Self { values, ..Self::default() }
    }

    /// Client `client`'s measurements.
    pub(crate) fn row(&self, layout: &Layout, client: usize) -> Row<'_> {
        Row {
            sensors: &self.values[layout.span(client)],
            inputs: &self.inputs[layout.input_span(client)],
        }
    }

    /// The measurements of every client, in the order of the session.
    pub(crate) fn rows<'a>(&'a self, layout: &'a Layout) -> impl Iterator<Item = Row<'a>> {
        let (mut sensors, mut inputs) = (&self.values[..], &self.inputs[..]);
        layout.clients.iter().map(move |client| {
            let row = sensors.split_at(client.sensors.len());
            let known = inputs.split_at(client.inputs.len());
            (sensors, inputs) = (row.1, known.1);
            Row { sensors: row.0, inputs: known.0 }
        })
    }

    /// All measurements, for code that may see them.
    pub(crate) fn raw_values(&self) -> &[f64] {
        &self.values
    }

    /// All measurements, for tests that make some.
    #[cfg(test)]
    pub(crate) fn raw_values_mut(&mut self) -> &mut Vec<f64> {
        &mut self.values
    }
}

/// The measurements of one client at one instant. Its values are for streams, models, the client's
/// site and that site's local view alone.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    sensors: &'a [f64],
    inputs: &'a [f64],
}

/// Without the values: a log or an error message is no way around the wall.
impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row").field("sensors", &self.sensors.len()).finish_non_exhaustive()
    }
}

impl<'a> Row<'a> {
    /// How many sensors there are.
    #[must_use]
    pub fn sensors(self) -> usize {
        self.sensors.len()
    }

    /// The monitored values; NaN is "missing".
    pub(crate) fn raw_sensors(self) -> &'a [f64] {
        self.sensors
    }

    /// The known inputs; NaN is "missing".
    pub(crate) fn raw_inputs(self) -> &'a [f64] {
        self.inputs
    }
}

/// A known disturbance: an attack, a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Its name in its data set ("A101", "S103").
    pub(crate) id: String,
    pub(crate) start: Timestamp,
    /// Last instant, inclusive.
    pub(crate) end: Timestamp,
    /// The client or clients it started in; empty when the data set does not say.
    pub(crate) origins: Vec<String>,
    /// Clients that are known to feel it, where known.
    pub(crate) affected: Vec<String>,
    /// Sensors and commands that it tampers with, where known.
    #[serde(default)]
    pub(crate) sensors: Vec<String>,
    /// In a few words, what was done.
    pub(crate) what: String,
}

/// What a stream has at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A frame was filled.
    Frame,
    /// Nothing has arrived yet.
    NotYet,
    End,
}

pub(crate) trait Stream: Send {
    fn layout(&self) -> &Layout;

    /// Fills `frame` with the next instant; `false` at the end.
    ///
    /// After an error the stream is over. Frames handed out before it stand.
    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError>;

    /// The same without waiting: a live stream may have nothing yet.
    fn poll(&mut self, frame: &mut Frame) -> Result<Next, StreamError> {
        Ok(if self.next(frame)? { Next::Frame } else { Next::End })
    }

    /// Disturbances known so far. May be empty in a labelled data set.
    ///
    /// A source with a list of its disturbances knows all of them from the start. A label column
    /// cannot be read ahead in a large file, so its disturbances are appended as they are met, and
    /// `start` and `end` are made exact as the data's own labels come. An index once handed out in
    /// [`Label::Anomalous`] keeps its meaning.
    fn events(&self) -> &[Event];
}

impl Stream for Box<dyn Stream> {
    fn layout(&self) -> &Layout {
        (**self).layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        (**self).next(frame)
    }

    fn poll(&mut self, frame: &mut Frame) -> Result<Next, StreamError> {
        (**self).poll(frame)
    }

    fn events(&self) -> &[Event] {
        (**self).events()
    }
}
