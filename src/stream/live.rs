//! Live measurements: values that arrive now, made into rows.
//!
//! ```text
//!  pipe, follow, mqtt, opcua ─► arrival (bounded) ─► reader: line ─► assembler ─► frame
//!  (a thread each)                                   (the engine's thread)
//! ```
//!
//! | part | job |
//! |---|---|
//! | `pipe`, `follow`, `mqtt`, `opcua` | transports: bytes and messages from outside, and how the source stands |
//! | `arrival` | the bounded queue between their threads and the engine's |
//! | `line` | a line of CSV or a JSON object → time and values |
//! | `tags` | which tags are watched, and where each stands in a frame |
//! | `assembler`, `elsewhere`, `known`, `tag` | values → rows on a grid: late, doubled, bad, silent, clock moved |
//! | `reader` | all of these, without input or output |
//! | `kept` | nominal rows on disk |
//! | `status` | the state of the source, for screens and summaries |

pub(crate) mod arrival;
pub(crate) mod assembler;
mod elsewhere;
mod follow;
pub(crate) mod kept;
mod known;
mod line;
mod mqtt;
#[cfg(feature = "opcua")]
pub(crate) mod opcua;
mod pipe;
mod reader;
pub(crate) mod status;
mod tag;
mod tags;
pub(crate) mod versions;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use self::arrival::{Arrival, Inbox, Outbox, Phase, What};
use self::follow::Begin;
use self::reader::Reader;
use self::status::Shared;
use super::{Continuity, Event, Frame, Layout, Next, Stream, StreamError};
use crate::session::{LiveHistory, LiveInput, LiveSource, OpcUaSource, Session};

/// No single wait is longer.
const NAP: Duration = Duration::from_millis(50);

/// The rows that `lines` become, one line a second: their times, and whether a new run begins with each.
/// For tests of what a source may send: no source is opened.
pub(crate) fn rows_of_lines(
    session: &Session,
    lines: &[u8],
) -> Result<Vec<(Timestamp, bool)>, StreamError> {
    let live = session.live().ok_or_else(|| StreamError::Setting("no live session".to_owned()))?;
    let mut reader = Reader::new(live, &session.clients, "lines", None)?;
    let (mut frame, mut rows) = (Frame::default(), Vec::new());
    let mut now = Duration::ZERO;
    for line in lines.split(|byte| *byte == b'\n') {
        reader.line(line, now)?;
        while reader.take(now, false, &mut frame).is_some() {
            rows.push((frame.time, frame.continuity == Continuity::NewRun));
        }
        now += Duration::from_secs(1);
    }
    while reader.take(now, true, &mut frame).is_some() {
        rows.push((frame.time, frame.continuity == Continuity::NewRun));
    }
    Ok(rows)
}

/// A live source that is open.
pub(crate) struct LiveStream {
    inbox: Inbox,
    reader: Reader,
    layout: Layout,
    begun: Instant,
    status: Shared,
    over: bool,
    failed: Option<String>,
    /// A frame that was taken before its turn.
    held: Option<Frame>,
    /// Lines that are being read, how far, and when they arrived.
    lines: (Vec<u8>, usize, Duration),
    /// Nobody else gathers rows of this session as long as this is held.
    lock: Option<File>,
}

impl LiveStream {
    /// Connects to the source of `session`. With a layout of kept rows, every row has that; without,
    /// [`LiveStream::meet`] waits for the first header or row.
    pub(crate) fn open(session: &Session, kept: Option<Layout>) -> Result<Self, StreamError> {
        let live = session
            .live()
            .ok_or_else(|| StreamError::Setting(format!("{} has no live source", session.name)))?;
        let place = place(&live.input);
        let reader = Reader::new(live, &session.clients, &place, kept)?;
        let (outbox, inbox, spares) = arrival::queue();
        let started = match &live.input {
            LiveInput::Stdin => pipe::standard_input(outbox, spares),
            LiveInput::Follow { file } => {
                let begin = match live.history {
                    LiveHistory::First => Begin::First,
                    LiveHistory::Learned if kept::complete(session).is_none() => Begin::First,
                    LiveHistory::Learned | LiveHistory::Table(_) => Begin::Next,
                };
                follow::follow(session.folder.join(file), begin, outbox, spares)
            }
            LiveInput::Mqtt(source) => {
                mqtt::subscribe(source, session, outbox)?;
                Ok(())
            }
            LiveInput::OpcUa(source) => {
                watch_server(source, live, session, outbox)?;
                Ok(())
            }
        };
        started.map_err(StreamError::io(&place))?;
        Ok(Self::over(inbox, reader, status::shared(&place, live.grid_s)))
    }

    fn over(inbox: Inbox, reader: Reader, status: Shared) -> Self {
        let nothing = Layout { clients: Vec::new(), period_s: 1.0 };
        let layout = reader.layout().cloned().unwrap_or(nothing);
        let begun = Instant::now();
        Self {
            inbox,
            reader,
            layout,
            begun,
            status,
            over: false,
            failed: None,
            held: None,
            lines: (Vec::new(), 0, Duration::ZERO),
            lock: None,
        }
    }

    /// Keeps the right to gather rows of the session for as long as the source is open.
    pub(crate) fn keep_lock(&mut self, lock: Option<File>) {
        self.lock = lock;
    }

    /// The clock of the source moved before the row that was taken last: the stamp that was expected, and
    /// the one that came.
    pub(crate) fn clock_moved(&self) -> Option<(Timestamp, Timestamp)> {
        self.reader.clock_moved()
    }

    /// The state of the source, for screens and summaries.
    pub(crate) fn status(&self) -> Shared {
        Shared::clone(&self.status)
    }

    /// Waits a moment for the first header or row; whether it is known now what rows look like.
    pub(crate) fn meet(&mut self) -> Result<bool, StreamError> {
        if self.reader.layout().is_none()
            && !self.read_line()?
            && let Some(arrival) = self.inbox.next(NAP)
        {
            self.take(arrival)?;
        }
        if let Some(layout) = self.reader.layout() {
            self.layout = layout.clone();
            return Ok(true);
        }
        if self.over { Err(self.ended_early()) } else { Ok(false) }
    }

    fn ended_early(&self) -> StreamError {
        let place = self.status.get().place;
        let mut what = format!("{place} ended before a row of measurements came");
        if let Some(why) = self.failed.as_ref().or(self.reader.trouble().what.as_ref()) {
            what.push_str(": ");
            what.push_str(why);
        }
        StreamError::Setting(what)
    }

    /// The same frame comes again, as the first of a run.
    pub(crate) fn hold(&mut self, frame: &Frame) {
        self.held = Some(frame.clone());
    }

    fn take(&mut self, arrival: Arrival) -> Result<(), StreamError> {
        let arrived = arrival.at.saturating_duration_since(self.begun);
        match arrival.what {
            What::Lines(lines) => {
                let read = std::mem::replace(&mut self.lines, (lines, 0, arrived));
                self.inbox.recycle(read.0);
                self.status.arrived(arrival.at);
            }
            What::Message { topic, payload, again } => {
                self.reader.message([&topic, &payload], again, arrived, Timestamp::now())?;
                self.status.arrived(arrival.at);
            }
            #[cfg(feature = "opcua")]
            What::Server(served) => {
                self.reader.served(served, arrived)?;
                self.status.arrived(arrival.at);
            }
            What::Phase(phase) => self.status.set_phase(phase, arrival.at),
            What::End(why) => {
                self.over = true;
                self.failed = why;
                self.status.set_phase(Phase::Ended, arrival.at);
            }
        }
        Ok(())
    }

    /// Reads the next line that has arrived; false when there is none. Rows that are due are taken
    /// before it, so that they do not depend on how many lines arrive together.
    fn read_line(&mut self) -> Result<bool, StreamError> {
        let (lines, at, arrived) = &mut self.lines;
        let rest = &lines[*at..];
        if rest.is_empty() {
            return Ok(false);
        }
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        *at = (*at + end + 1).min(lines.len());
        self.reader.line(&rest[..end], *arrived)?;
        Ok(true)
    }

    fn publish_status(&mut self) {
        let now = self.begun.elapsed();
        let clients = 0..self.layout.clients.len();
        let heard = clients.map(|client| {
            let heard = self.reader.last_arrival(client);
            let (silent, first) = self.reader.silent(client);
            status::Heard {
                ago: heard.map(|at| now.saturating_sub(at)),
                silent,
                first_silent: first.map(str::to_owned),
            }
        });
        let heard: Vec<status::Heard> = heard.collect();
        self.status.publish(&self.reader, heard);
    }
}

/// The first line of an error, as far as it fits on a screen.
fn first_line(why: &str, most: usize) -> String {
    why.lines().next().unwrap_or_default().chars().take(most).collect()
}

/// A live source in words.
pub(crate) fn place(input: &LiveInput) -> String {
    match input {
        LiveInput::Stdin => "standard input".into(),
        LiveInput::Follow { file } => file.clone(),
        LiveInput::Mqtt(mqtt) => mqtt.broker.clone(),
        LiveInput::OpcUa(opcua) => opcua.url.clone(),
    }
}

#[cfg(feature = "opcua")]
fn watch_server(
    source: &OpcUaSource,
    live: &LiveSource,
    session: &Session,
    outbox: Outbox,
) -> Result<(), StreamError> {
    let learns = match live.history {
        LiveHistory::First => true,
        LiveHistory::Learned => kept::complete(session).is_none(),
        LiveHistory::Table(_) => false,
    };
    opcua::watch(source, live, session, learns, outbox)
}

#[cfg(not(feature = "opcua"))]
fn watch_server(
    source: &OpcUaSource,
    _live: &LiveSource,
    _session: &Session,
    _outbox: Outbox,
) -> Result<(), StreamError> {
    Err(StreamError::Setting(format!("{}: {WITHOUT_OPC_UA}", source.url)))
}

/// What a program without OPC UA says.
#[cfg(not(feature = "opcua"))]
pub(crate) const WITHOUT_OPC_UA: &str = "this program was built without OPC UA: build it with \
                                         `cargo build --release --features opcua`";

impl Stream for LiveStream {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        loop {
            match self.poll(frame)? {
                Next::Frame => return Ok(true),
                Next::End => return Ok(false),
                Next::NotYet => {
                    let now = self.begun.elapsed();
                    let wait = self.reader.due().map_or(NAP, |due| due.saturating_sub(now));
                    if let Some(arrival) = self.inbox.next(wait.clamp(Duration::ZERO, NAP)) {
                        self.take(arrival)?;
                    }
                }
            }
        }
    }

    fn poll(&mut self, frame: &mut Frame) -> Result<Next, StreamError> {
        frame.notes.clear();
        if let Some(held) = self.held.take() {
            frame.clone_from(&held);
            return Ok(Next::Frame);
        }
        loop {
            let is_read = self.over && self.lines.1 >= self.lines.0.len();
            if let Some(arrived) = self.reader.take(self.begun.elapsed(), is_read, frame) {
                self.status.row(frame.time, self.begun + arrived);
                return Ok(Next::Frame);
            }
            if self.read_line()? {
                continue;
            }
            if self.over {
                self.publish_status();
                return match self.failed.take() {
                    Some(why) => Err(StreamError::Setting(why)),
                    None => Ok(Next::End),
                };
            }
            let Some(arrival) = self.inbox.try_next() else {
                self.publish_status();
                return Ok(Next::NotYet);
            };
            self.take(arrival)?;
        }
    }

    fn events(&self) -> &[Event] {
        &[]
    }
}
