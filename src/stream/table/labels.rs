//! What a session knows about disturbances, laid over the rows of a table: a label column, a list
//! of events, or a file of events.

use std::path::Path;

use jiff::Timestamp;

use super::clock::Clock;
use super::files;
use super::header::needed;
use super::rows::{NextRow, Rows};
use crate::session::{ClientSettings, Delimiter, EventSettings, Labels};
use crate::stream::columns::{glob, near_hint};
use crate::stream::{Continuity, Event, Label, StreamError};

/// Says of each row what is known about it, and keeps the events.
#[derive(Debug)]
pub(crate) struct Labeller {
    events: Vec<Event>,
    by: By,
}

#[derive(Debug)]
enum By {
    Nothing,
    /// The times of events known beforehand.
    Times,
    Column(ColumnLabels),
}

/// Events of a label column: each unbroken stretch of anomalous rows in a run is one.
#[derive(Debug)]
struct ColumnLabels {
    unlabelled: Vec<f64>,
    /// Pattern of a file name, and the clients that its events start in.
    origins: Vec<(String, Vec<String>)>,
    /// The event that the last row belonged to.
    present: Option<u32>,
}

/// A row, as far as labels depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) time: Timestamp,
    pub(crate) continuity: Continuity,
    /// Value of the label column, NaN for an empty cell.
    pub(crate) flag: Option<f64>,
    pub(crate) file: &'a Path,
    /// Value of the run column.
    pub(crate) run: Option<&'a [u8]>,
}

impl Labeller {
    /// Understands `labels`; `folder` is where a file of events stands, `clock` the data's own.
    pub(crate) fn new(
        labels: &Labels,
        folder: &Path,
        clock: &Clock,
        clients: &[ClientSettings],
    ) -> Result<Self, StreamError> {
        let known = |events| Self { events, by: By::Times };
        match labels {
            Labels::Source => Ok(Self { events: Vec::new(), by: By::Nothing }),
            Labels::Column { unlabelled, origins, .. } => {
                let origins = origins
                    .iter()
                    .map(|(pattern, names)| {
                        let origins = split(names, clients).map_err(|what| {
                            StreamError::Setting(format!("origin of {pattern:?}: {what}"))
                        })?;
                        Ok((pattern.clone(), origins))
                    })
                    .collect::<Result<_, StreamError>>()?;
                let column =
                    ColumnLabels { unlabelled: unlabelled.clone(), origins, present: None };
                Ok(Self { events: Vec::new(), by: By::Column(column) })
            }
            Labels::Events(list) => list
                .iter()
                .map(|event| {
                    from_settings(event, clock, clients).map_err(|what| {
                        StreamError::Setting(format!("event {:?}: {what}", event.id))
                    })
                })
                .collect::<Result<_, _>>()
                .map(known),
            Labels::EventFile { file, start, end, origin, id } => {
                let columns = EventColumns { start, end, origin, id: id.as_deref() };
                from_file(folder, file, &columns, clock, clients).map(known)
            }
        }
    }

    /// The label column, where there is one.
    pub(crate) fn column(labels: &Labels) -> Option<&str> {
        match labels {
            Labels::Column { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Events known so far.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// What is known about a row; rows come in the order of their time.
    pub(crate) fn label(&mut self, seen: Seen) -> Label {
        match &mut self.by {
            By::Nothing => Label::Unlabelled,
            By::Times => during(&self.events, seen.time),
            By::Column(column) => column.label(&mut self.events, seen),
        }
    }
}

/// The label of an instant by the times of events: the first event that contains it counts.
pub(crate) fn during(events: &[Event], time: Timestamp) -> Label {
    match events.iter().position(|event| event.start <= time && time <= event.end) {
        Some(event) => Label::Anomalous { event: Some(event as u32) },
        None => Label::Normal,
    }
}

impl ColumnLabels {
    fn label(&mut self, events: &mut Vec<Event>, seen: Seen) -> Label {
        let value = seen.flag.unwrap_or(f64::NAN);
        let label = if value.is_nan() || self.unlabelled.contains(&value) {
            Label::Unlabelled
        } else if value == 0.0 {
            Label::Normal
        } else {
            let goes_on = self.present.filter(|_| seen.continuity != Continuity::NewRun);
            let event = goes_on.unwrap_or_else(|| {
                events.push(self.begin(events, seen));
                events.len() as u32 - 1
            });
            events[event as usize].end = seen.time;
            Label::Anomalous { event: Some(event) }
        };
        self.present = match label {
            Label::Anomalous { event } => event,
            Label::Normal | Label::Unlabelled => None,
        };
        label
    }

    fn begin(&self, events: &[Event], seen: Seen) -> Event {
        let mut name = files::stem(seen.file);
        if let Some(run) = seen.run {
            name.push_str(" run ");
            name.push_str(&String::from_utf8_lossy(run));
        }
        let is_namesake = |id: &str| {
            id.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        };
        let namesakes = events.iter().filter(|e| is_namesake(&e.id)).count();
        let id = if namesakes == 0 { name } else { format!("{name} ({})", namesakes + 1) };
        let file = files::name(seen.file);
        let origins = self.origins.iter().find(|(pattern, _)| glob(pattern, &file));
        Event {
            id,
            start: seen.time,
            end: seen.time,
            origins: origins.map(|(_, names)| names.clone()).unwrap_or_default(),
            affected: Vec::new(),
            sensors: Vec::new(),
            what: String::new(),
        }
    }
}

/// Names of clients joined by `+`; none for an empty text.
fn split(names: &str, clients: &[ClientSettings]) -> Result<Vec<String>, String> {
    let names = names.split('+').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| known_client(name, clients)).collect()
}

fn known_client(name: &str, clients: &[ClientSettings]) -> Result<String, String> {
    if clients.iter().any(|c| c.name == name) {
        return Ok(name.to_owned());
    }
    let near = near_hint(name, clients.iter().map(|c| c.name.as_str()));
    Err(format!("there is no client {name:?}{near}"))
}

fn instant(clock: &Clock, text: &str) -> Result<Timestamp, String> {
    clock
        .read_event(text)
        .ok_or_else(|| format!("expected a time such as \"2022-08-12 16:00:00\", found {text:?}"))
}

fn from_settings(
    event: &EventSettings,
    clock: &Clock,
    clients: &[ClientSettings],
) -> Result<Event, String> {
    let start = instant(clock, &event.start)?;
    let end = instant(clock, &event.end)?;
    if end < start {
        return Err(format!("it ends ({end}) before it starts ({start})"));
    }
    Ok(Event {
        id: event.id.clone(),
        start,
        end,
        origins: event
            .origins
            .iter()
            .map(|name| known_client(name, clients))
            .collect::<Result<_, _>>()?,
        affected: Vec::new(),
        sensors: Vec::new(),
        what: event.what.clone(),
    })
}

/// Headers of a file of events.
struct EventColumns<'a> {
    start: &'a str,
    end: &'a str,
    origin: &'a str,
    id: Option<&'a str>,
}

fn from_file(
    folder: &Path,
    file: &str,
    names: &EventColumns,
    clock: &Clock,
    clients: &[ClientSettings],
) -> Result<Vec<Event>, StreamError> {
    let path = files::find(folder, &[file.to_owned()], None)?.remove(0);
    let mut rows = Rows::open(&path, Delimiter::Auto)?;
    let start = needed(&rows, "start column", names.start)?;
    let end = needed(&rows, "end column", names.end)?;
    let origin = needed(&rows, "origin column", names.origin)?;
    let id = names.id.map(|name| needed(&rows, "id column", name)).transpose()?;
    let mut events = Vec::new();
    loop {
        match rows.next()? {
            NextRow::Row => {}
            NextRow::End => return Ok(events),
            NextRow::CutShort => {
                return Err(rows.row_error("the file ends within this row".into()));
            }
        }
        let text = |column| String::from_utf8_lossy(rows.cell(column)).into_owned();
        let time = |column| {
            clock
                .read_event(&text(column))
                .ok_or_else(|| rows.cell_error(column, "a time such as \"2022-08-12 16:00:00\""))
        };
        let event = Event {
            id: id.map_or_else(|| (events.len() + 1).to_string(), text),
            start: time(start)?,
            end: time(end)?,
            origins: split(&text(origin), clients)
                .map_err(|what| rows.cell_error(origin, format!("a client ({what})")))?,
            affected: Vec::new(),
            sensors: Vec::new(),
            what: String::new(),
        };
        if event.end < event.start {
            return Err(rows.row_error("the event ends before it starts".into()));
        }
        events.push(event);
    }
}
