//! From lines and messages to frames: lines are read, rows assembled, and what goes wrong is counted.
//!
//! It does no input or output: bytes and their time of arrival are arguments.

use std::time::Duration;

use jiff::Timestamp;

#[cfg(feature = "opcua")]
use super::arrival::Served;
use super::assembler::{Assembled, Assembler, Counts, Rules, Stamps};
use super::line::{Line, LineReader};
use super::tags::Tags;
use crate::session::{ClientSettings, LiveInput, LiveSource, MqttTopics, Shape};
use crate::stream::columns::near_hint;
use crate::stream::{Continuity, Frame, Label, Layout, Note, NoteKind, StreamError};

/// Tags that no client watches and that are remembered, so that each is reported once.
const MOST_UNKNOWN: usize = 64;

/// What could not be used, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trouble {
    /// Lines or messages that cannot be read.
    pub(crate) unreadable: u64,
    /// The last of them, in words.
    pub(crate) what: Option<String>,
}

pub(crate) struct Reader {
    lines: LineReader,
    clients: Vec<ClientSettings>,
    grid_s: f64,
    rules: Rules,
    /// The value's key, where each tag has a topic of its own.
    topic: Option<(String, String)>,
    value_key: String,
    place: String,
    known: Option<(Tags, Assembler)>,
    row: Assembled,
    read: u64,
    told: Counts,
    told_unreadable: u64,
    trouble: Trouble,
    unknown: Vec<String>,
    /// For each tag of a server, its place.
    #[cfg(feature = "opcua")]
    served: Vec<Option<usize>>,
}

impl Reader {
    /// Reads what comes from `place`. With a layout, every row has it; without, the first header or
    /// object says what there is.
    pub(crate) fn new(
        live: &LiveSource,
        clients: &[ClientSettings],
        place: &str,
        layout: Option<Layout>,
    ) -> Result<Self, StreamError> {
        let topic = match &live.input {
            LiveInput::Mqtt(mqtt) => match &mqtt.topics {
                MqttTopics::Tags { topic, value } => topic
                    .split_once("{tag}")
                    .map(|(before, after)| ((before.to_owned(), after.to_owned()), value.clone())),
                MqttTopics::Rows(_) => None,
            },
            LiveInput::Stdin | LiveInput::Follow { .. } | LiveInput::OpcUa(_) => None,
        };
        // A server says itself which tags it has.
        let is_server = matches!(live.input, LiveInput::OpcUa(_));
        let single = topic.is_some() || live.shape != Shape::Wide || is_server;
        let rules = Rules {
            grid: Duration::from_secs_f64(live.grid_s),
            lateness: Duration::from_secs_f64(live.lateness_s),
            hold: Duration::from_secs_f64(live.hold_s),
            stamps: if single { Stamps::OfValues } else { Stamps::OfRows },
        };
        let mut reader = Self {
            lines: LineReader::new(live)?,
            clients: clients.to_vec(),
            grid_s: live.grid_s,
            rules,
            value_key: topic.as_ref().map_or_else(String::new, |(_, value)| value.clone()),
            topic: topic.map(|(topic, _)| topic),
            place: place.to_owned(),
            known: None,
            row: Assembled::default(),
            read: 0,
            told: Counts::default(),
            told_unreadable: 0,
            trouble: Trouble::default(),
            unknown: Vec::new(),
            #[cfg(feature = "opcua")]
            served: Vec::new(),
        };
        let layout = layout.map(|layout| Ok(Tags::of_layout(layout)));
        let named = || (single && !is_server).then(|| reader.named_tags(live)).transpose();
        if let Some(tags) = layout.map_or_else(named, |tags| tags.map(Some))? {
            reader.know(tags);
        }
        Ok(reader)
    }

    /// Tags where each value comes by itself: no header says which there are.
    fn named_tags(&self, live: &LiveSource) -> Result<Tags, StreamError> {
        let listed = match &live.shape {
            Shape::Long { tags, .. } if !tags.is_empty() => {
                Some(Tags::of_header(tags, &self.clients, self.grid_s))
            }
            Shape::Long { .. } | Shape::Wide => Tags::named(&self.clients, self.grid_s),
        };
        let why = "where each value comes by itself, clients name their columns one by one, without \
                   patterns: nothing else says which tags there are";
        listed.unwrap_or_else(|| Err(why.into())).map_err(StreamError::Setting)
    }

    fn know(&mut self, tags: Tags) {
        let assembler = Assembler::new(self.rules, tags.names().len());
        self.known = Some((tags, assembler));
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.known.as_ref().map(|(tags, _)| tags.layout())
    }

    pub(crate) fn counts(&self) -> Counts {
        self.known.as_ref().map_or_else(Counts::default, |(_, assembler)| assembler.counts())
    }

    pub(crate) fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// Tags that came and that no client watches.
    pub(crate) fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Which client's values arrived when: the newest of each.
    pub(crate) fn last_arrival(&self, client: usize) -> Option<Duration> {
        let (tags, assembler) = self.known.as_ref()?;
        tags.of_client(client).iter().filter_map(|tag| assembler.last_arrival(*tag)).max()
    }

    /// Tags of a client that no row waits for any more: how many, and the first of them.
    pub(crate) fn silent(&self, client: usize) -> (usize, Option<&str>) {
        let Some((tags, assembler)) = &self.known else { return (0, None) };
        let mut silent = tags.of_client(client).iter().filter(|tag| assembler.is_silent(**tag));
        let first = silent.next();
        (silent.count() + usize::from(first.is_some()), first.map(|tag| &tags.names()[*tag][..]))
    }

    /// Takes a line, or a message that is like one. An error ends the source: the first header lacks
    /// what the session needs.
    pub(crate) fn line(&mut self, line: &[u8], arrived: Duration) -> Result<(), StreamError> {
        self.line_of(line, false, arrived)
    }

    fn line_of(&mut self, line: &[u8], again: bool, arrived: Duration) -> Result<(), StreamError> {
        self.read += 1;
        if self.known.is_none() {
            let Some(names) = self.lines.names(line) else {
                if !line.trim_ascii().is_empty() {
                    self.unreadable(format!(
                        "expected a header with the column {:?}, or a JSON object",
                        self.lines.time_key()
                    ));
                }
                return Ok(());
            };
            let tags = Tags::of_header(&names, &self.clients, self.grid_s);
            self.know(tags.map_err(|what| StreamError::Row {
                file: self.place.clone().into(),
                line: self.read,
                what,
            })?);
        }
        let Some((tags, assembler)) = &mut self.known else { return Ok(()) };
        match self.lines.read(line, tags) {
            Ok(Line::Row(time) | Line::Value(time, Some(_), ..))
                if again && assembler.came_again(time) => {}
            Ok(Line::Row(time)) => assembler.put_row(time, self.lines.row(), arrived),
            Ok(Line::Value(time, Some(tag), value, quality)) => {
                assembler.put(tag, time, value, quality, arrived);
            }
            Ok(Line::Value(_, None, ..) | Line::Nothing) => {}
            Err(what) => self.unreadable(what),
        }
        Ok(())
    }

    /// Takes a message of a broker: a row, or the value of one tag. `again` means that the broker has
    /// sent it before.
    pub(crate) fn message(
        &mut self,
        [topic, payload]: [&[u8]; 2],
        again: bool,
        arrived: Duration,
        now: Timestamp,
    ) -> Result<(), StreamError> {
        let Some((before, after)) = &self.topic else {
            return self.line_of(payload, again, arrived);
        };
        let topic = String::from_utf8_lossy(topic);
        self.read += 1;
        let tag = topic.strip_prefix(before.as_str()).and_then(|t| t.strip_suffix(after.as_str()));
        let (Some(tag), Some((tags, assembler))) = (tag, &mut self.known) else { return Ok(()) };
        let Some(place) = tags.find(tag) else {
            if self.unknown.len() < MOST_UNKNOWN && !self.unknown.iter().any(|name| name == tag) {
                self.unknown.push(tag.to_owned());
                let near = near_hint(tag, tags.names().iter().map(String::as_str));
                tracing::warn!("{}: no client watches the tag {tag:?}{near}", self.place);
            }
            return Ok(());
        };
        match self.lines.value(payload, &self.value_key, now) {
            Ok((time, ..)) if again && assembler.came_again(time) => {}
            Ok((time, value, quality)) => assembler.put(place, time, value, quality, arrived),
            Err(what) => self.unreadable(format!("{tag}: {what}")),
        }
        Ok(())
    }

    /// Takes a message of an OPC UA server.
    #[cfg(feature = "opcua")]
    pub(crate) fn served(&mut self, served: Served, arrived: Duration) -> Result<(), StreamError> {
        match served {
            Served::Names(names) => {
                if self.known.is_none() {
                    let tags = Tags::of_header(&names, &self.clients, self.grid_s);
                    let place = &self.place;
                    self.know(tags.map_err(|why| StreamError::Setting(format!("{place}: {why}")))?);
                }
                let Some((tags, _)) = &self.known else { return Ok(()) };
                self.served = names.iter().map(|name| tags.find(name)).collect();
            }
            Served::Values(values) => {
                let Some((_, assembler)) = &mut self.known else { return Ok(()) };
                self.read += values.len() as u64;
                for (tag, time, value, quality) in values {
                    if let Some(tag) = self.served.get(tag).copied().flatten() {
                        assembler.put(tag, time, value, quality, arrived);
                    }
                }
            }
            Served::Rows(rows) => {
                let Some((tags, assembler)) = &mut self.known else { return Ok(()) };
                let mut row = vec![f64::NAN; tags.names().len()];
                for (time, values) in rows {
                    self.read += 1;
                    for (tag, value) in self.served.iter().zip(values) {
                        if let Some(tag) = tag {
                            row[*tag] = value;
                        }
                    }
                    assembler.put_row(time, &row, arrived);
                }
            }
            Served::Trouble(what) => self.unreadable(what),
        }
        Ok(())
    }

    fn unreadable(&mut self, what: String) {
        if self.trouble.unreadable == 0 {
            tracing::warn!("{} {}: {what}", self.place, self.read);
        }
        self.trouble.unreadable += 1;
        self.trouble.what = Some(what);
    }

    /// When the next row is due at the latest.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.known.as_ref().and_then(|(_, assembler)| assembler.due())
    }

    /// Fills `frame` with the next row that is due; all that is there once the source is `over`.
    /// Gives the arrival of its first value.
    pub(crate) fn take(
        &mut self,
        now: Duration,
        over: bool,
        frame: &mut Frame,
    ) -> Option<Duration> {
        let (tags, assembler) = self.known.as_mut()?;
        let row = &mut self.row;
        let there = assembler.take(now, row) || over && assembler.flush(row);
        if !there {
            if over {
                // What was left out after the last row comes with none.
                row.moved = None;
                self.add_notes(frame);
            }
            return None;
        }
        frame.time = row.time;
        frame.continuity = row.continuity;
        frame.label = Label::Unlabelled;
        tags.fill(&row.values, frame);
        self.add_notes(frame);
        Some(self.row.arrived)
    }

    /// The clock of the source moved before the last row.
    pub(super) fn clock_moved(&self) -> Option<(Timestamp, Timestamp)> {
        self.row.moved
    }

    /// What had to be left out since the row before.
    fn add_notes(&mut self, frame: &mut Frame) {
        let counts = self.counts();
        let told = std::mem::replace(&mut self.told, counts);
        let unreadable = self.trouble.unreadable - self.told_unreadable;
        self.told_unreadable = self.trouble.unreadable;
        let notes = [
            (counts.late - told.late, NoteKind::Late),
            (counts.doubled - told.doubled, NoteKind::Doubled),
            (counts.wrong_stamp - told.wrong_stamp, NoteKind::WrongStamp),
            (unreadable, NoteKind::Unreadable),
        ];
        for (rows, what) in notes.into_iter().filter(|(rows, _)| *rows > 0) {
            frame.notes.push(Note { place: self.place.clone(), line: self.read, rows, what });
        }
        // A clock that went forward leaves a gap, which is reported anyway.
        if let Some((from, to)) = self.row.moved
            && self.row.continuity == Continuity::NewRun
        {
            let what = NoteKind::ClockMoved { from, to };
            frame.notes.push(Note { place: self.place.clone(), line: self.read, rows: 0, what });
        }
    }
}
