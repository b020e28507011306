//! The truth file: known events as JSON or as a table.
//!
//! JSON is an array of events, alone or under `attacks` or `events`; a table has the columns
//! `start`, `end` and `origin` (several origins joined by `+`, blank when unknown). The end
//! is the last instant of the event.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;

use super::error::ScoreError;
use super::read::{Table, When, names, text};
use crate::stream::Event;

const JSON: &str = "events such as {\"id\": \"A1\", \"start\": \"2022-08-12T16:00:00Z\", \
                    \"end\": \"2022-08-12T16:03:00Z\", \"origin\": \"P1\"} in an array, alone or \
                    under \"attacks\" or \"events\"";
const TABLE: &str = "a table with the columns start, end and origin (and id, if it has names)";
const EITHER: &str = "a JSON file of events, or a table with the columns start, end and origin";

/// Reads the events of a truth file.
pub(crate) fn read(file: &Path) -> Result<Vec<Event>, ScoreError> {
    let text = text(file, EITHER)?;
    let json = |error: serde_json::Error| ScoreError::json(file, 0, &error, JSON);
    match text.trim_start().as_bytes().first() {
        Some(b'[') => Ok(numbered(serde_json::from_str(&text).map_err(json)?)),
        Some(b'{') => {
            let known: Known = serde_json::from_str(&text).map_err(json)?;
            known.attacks.map(numbered).ok_or_else(|| {
                let what = format!("no array under \"attacks\" or \"events\"\nexpected {JSON}");
                ScoreError::line(file, 1, what)
            })
        }
        _ => from_table(file, &text),
    }
}

#[derive(Deserialize)]
struct Known {
    #[serde(alias = "events")]
    attacks: Option<Vec<Stated>>,
}

/// An event of a JSON file, checked as it is read so that a complaint knows its line.
#[derive(Deserialize)]
#[serde(try_from = "Raw")]
struct Stated {
    id: Option<String>,
    event: Event,
}

#[derive(Deserialize)]
struct Raw {
    id: Option<Id>,
    start: When,
    end: When,
    #[serde(default)]
    origin: Names,
    #[serde(default)]
    origins: Names,
    #[serde(default)]
    affected: Names,
    #[serde(default)]
    sensors: Names,
    #[serde(default)]
    what: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`id` should be a text or a number")]
enum Id {
    Text(String),
    Number(i64),
}

#[derive(Deserialize, Default)]
#[serde(untagged, expecting = "expected a client's name, or several in a list")]
enum Names {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
    /// Affected clients with what happened to each.
    Keyed(BTreeMap<String, serde_json::Value>),
}

impl From<Names> for Vec<String> {
    fn from(list: Names) -> Self {
        match list {
            Names::None => Vec::new(),
            Names::One(text) => names(&text),
            Names::Several(list) => list,
            Names::Keyed(map) => map.into_keys().collect(),
        }
    }
}

impl TryFrom<Raw> for Stated {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let (When(start), When(end)) = (raw.start, raw.end);
        in_order(start, end)?;
        let mut origins = Vec::from(raw.origin);
        origins.extend(Vec::from(raw.origins));
        origins.dedup();
        let id = raw.id.map(|id| match id {
            Id::Text(text) => text,
            Id::Number(number) => number.to_string(),
        });
        let affected = raw.affected.into();
        let (unnamed, sensors) = (String::new(), raw.sensors.into());
        let event = Event { id: unnamed, start, end, origins, affected, sensors, what: raw.what };
        Ok(Self { id, event })
    }
}

/// Events without a name are called by their number.
fn numbered(stated: Vec<Stated>) -> Vec<Event> {
    (1..)
        .zip(stated)
        .map(|(n, s)| Event { id: s.id.unwrap_or_else(|| n.to_string()), ..s.event })
        .collect()
}

fn in_order(start: Timestamp, end: Timestamp) -> Result<(), String> {
    if start <= end {
        return Ok(());
    }
    Err(format!("the event ends ({end}) before it starts ({start})"))
}

fn from_table(file: &Path, text: &str) -> Result<Vec<Event>, ScoreError> {
    let table = Table::parse(file, text)?;
    let start = table.need(&["start"], TABLE)?;
    let end = table.need(&["end"], TABLE)?;
    let origin = table.need(&["origin", "origins", "origin_client"], TABLE)?;
    let id = table.find(&["id", "attack_id"]);
    let affected = table.find(&["affected"]);
    let sensors = table.find(&["sensors"]);
    let what = table.find(&["what", "description"]);
    (1..)
        .zip(table.rows())
        .map(|(n, row)| {
            let event = Event {
                id: row.optional(id).map_or_else(|| n.to_string(), str::to_owned),
                start: row.time(start)?,
                end: row.time(end)?,
                origins: names(row.text(origin)),
                affected: row.optional(affected).map(names).unwrap_or_default(),
                sensors: row.optional(sensors).map(names).unwrap_or_default(),
                what: row.optional(what).unwrap_or_default().into(),
            };
            in_order(event.start, event.end).map_err(|what| row.wrong(what))?;
            Ok(event)
        })
        .collect()
}
