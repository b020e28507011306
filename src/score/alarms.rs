//! The alarm file: the facts of `headwater run --json`, or a table with the columns `time` and
//! `root`.
//!
//! Facts without a part in the score are skipped. The summary says how long was watched. A run that was
//! stopped may leave a last line that breaks off: it is skipped, and the report names it.

use std::collections::HashMap;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;

use super::error::ScoreError;
use super::read::{Table, When, text_until_cut};
use super::{Alarm, AlarmUpdate, Alarms, Watched};

const FACTS: &str = "facts of `headwater run --json`, one object a line, such as {\"fact\": \
                     \"opened\", \"incident\": 1, \"time\": \"2022-08-12T16:00:20Z\", \"root\": \
                     \"P1\"}";
const TABLE: &str = "a table with the columns time and root (and closed, if it is known)";
const EITHER: &str = "facts of `headwater run --json`, or a table with the columns time and root \
                      (only this header when there was no alarm)";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlarmFile {
    pub(crate) alarms: Vec<Alarm>,
    /// The time watched, when the file has it.
    pub(crate) watched: Option<Watched>,
    /// Whether it has the closings of alarms: then one that did not close was open to the end.
    pub(crate) closings: bool,
    /// The last line, where it breaks off in the middle because the writer was stopped.
    pub(crate) cut_at_line: Option<u64>,
}

pub(crate) fn read(file: &Path) -> Result<AlarmFile, ScoreError> {
    let text = text_until_cut(file, EITHER)?;
    match text.trim_start().as_bytes().first() {
        Some(b'{') => from_facts(file, &text),
        Some(b'[') => Err(ScoreError::line(file, 1, format!("a JSON array; expected {FACTS}"))),
        _ => from_table(file, &text),
    }
}

#[derive(Deserialize)]
struct Fact<'a> {
    #[serde(borrow)]
    fact: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
struct Closed {
    incident: u64,
    time: When,
}

#[derive(Deserialize)]
struct Summary {
    from: Option<When>,
    until: Option<When>,
    score: Option<SummaryScore>,
}

#[derive(Deserialize)]
struct SummaryScore {
    days: Option<f64>,
}

fn from_facts(file: &Path, text: &str) -> Result<AlarmFile, ScoreError> {
    let mut alarms = Alarms::default();
    // The line that opened each incident.
    let mut opened_on: HashMap<u64, u64> = HashMap::new();
    let mut watched = None;
    let mut cut_at_line = None;
    // A line that was written whole has its end.
    let last = text.lines().count() as u64;
    let broken_off = !text.ends_with('\n');
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let json = |error: serde_json::Error| ScoreError::json(file, number - 1, &error, FACTS);
        let wrong = |what: String| ScoreError::line(file, number, what);
        let unopened =
            |incident, what| wrong(format!("incident {incident} is {what}, never opened"));
        let fact: Fact = match serde_json::from_str(line) {
            Err(error) if error.is_eof() && broken_off && number == last => {
                cut_at_line = Some(number);
                break;
            }
            fact => fact.map_err(json)?,
        };
        match fact.fact.as_ref() {
            "opened" => {
                let update: AlarmUpdate = serde_json::from_str(line).map_err(json)?;
                let incident = update.incident;
                if let Some(before) = opened_on.insert(incident, number) {
                    let what = format!("incident {incident} was opened on line {before} already");
                    return Err(wrong(what));
                }
                alarms.open(update);
            }
            "updated" => {
                let update: AlarmUpdate = serde_json::from_str(line).map_err(json)?;
                let incident = update.incident;
                alarms.update(update).ok_or_else(|| unopened(incident, "updated"))?;
            }
            "closed" => {
                let Closed { incident, time } = serde_json::from_str(line).map_err(json)?;
                let alarm =
                    alarms.close(incident, time.0).ok_or_else(|| unopened(incident, "closed"))?;
                in_order(alarm.opened, time.0).map_err(wrong)?;
            }
            "summary" => {
                let summary: Summary = serde_json::from_str(line).map_err(json)?;
                watched = stretch(&summary).map_err(wrong)?;
            }
            _ => {}
        }
    }
    let alarms = alarms.into_list();
    Ok(AlarmFile { alarms, watched, closings: true, cut_at_line })
}

fn stretch(summary: &Summary) -> Result<Option<Watched>, String> {
    let days = summary.score.as_ref().and_then(|score| score.days);
    if let Some(days) = days.filter(|days| *days < 0.0) {
        return Err(format!("expected a number of days, found {days}"));
    }
    if let (Some(When(from)), Some(When(until))) = (summary.from, summary.until) {
        if until < from {
            return Err(format!("the summary ends ({until}) before it starts ({from})"));
        }
        return Ok(Some(match days {
            Some(days) => Watched::Within { from, until, days },
            None => Watched::Spans(vec![(from, until)]),
        }));
    }
    Ok(days.map(Watched::Days))
}

fn in_order(opened: Timestamp, closed: Timestamp) -> Result<(), String> {
    if opened <= closed {
        return Ok(());
    }
    Err(format!("the alarm closes ({closed}) before it opens ({opened})"))
}

fn from_table(file: &Path, text: &str) -> Result<AlarmFile, ScoreError> {
    let table = Table::parse(file, text)?;
    let time = table.need(&["time", "opened"], TABLE)?;
    let root = table.need(&["root"], TABLE)?;
    let closed = table.find(&["closed"]);
    let mut alarms = Vec::new();
    for row in table.rows() {
        let mut alarm = Alarm::new(row.time(time)?, row.optional(Some(root)).map(str::to_owned));
        if let Some(column) = closed
            && row.optional(closed).is_some()
        {
            let end = row.time(column)?;
            in_order(alarm.opened, end).map_err(|what| row.wrong(what))?;
            alarm.closed = Some(end);
        }
        alarms.push(alarm);
    }
    Ok(AlarmFile { alarms, watched: None, closings: closed.is_some(), cut_at_line: None })
}
