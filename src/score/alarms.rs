//! The alarm file: the facts of `headwater run --json`, or a table with the columns `time` and
//! `root`.
//!
//! Of an incident its opening counts as the alarm, and as its root what the last `updated` fact
//! says: by then the root is frozen. Other facts are passed over, except the summary, which says
//! how long was watched. A last line that breaks off is what a run that was stopped leaves behind: it
//! is passed over, and said.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::error::ScoreError;
use super::read::{Table, When, text_until_cut};
use super::{Alarm, Watched};

const FACTS: &str = "facts of `headwater run --json`, one object a line, such as {\"fact\": \
                     \"opened\", \"incident\": 1, \"time\": \"2022-08-12T16:00:20Z\", \"root\": \
                     \"P1\"}";
const TABLE: &str = "a table with the columns time and root (and closed, if it is known)";
const EITHER: &str = "facts of `headwater run --json`, or a table with the columns time and root \
                      (only this header when there was no alarm)";

/// What an alarm file says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlarmFile {
    pub(crate) alarms: Vec<Alarm>,
    /// What was watched, when the file says so.
    pub(crate) watched: Option<Watched>,
    /// Whether it says when alarms close: then one that did not close was open to the end.
    pub(crate) closings: bool,
    /// The last line, where it breaks off in the middle: whoever wrote the file was stopped.
    pub(crate) cut_at_line: Option<u64>,
}

/// Reads an alarm file.
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

/// `opened` and `updated`. What an update leaves out stays as it was.
#[derive(Deserialize)]
struct Said {
    incident: u64,
    time: When,
    #[serde(default)]
    root: Root,
    posterior: Option<BTreeMap<String, f64>>,
    effects: Option<Vec<Effect>>,
}

#[derive(Deserialize)]
struct Effect {
    client: String,
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

/// Tells `"root": null`, which names nobody, from no `root` at all.
#[derive(Default)]
enum Root {
    #[default]
    Unsaid,
    Said(Option<String>),
}

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Option::deserialize(value).map(Self::Said)
    }
}

impl Said {
    fn say_to(self, alarm: &mut Alarm) {
        if let Root::Said(root) = self.root
            && root != alarm.root
        {
            alarm.named = root.is_some().then_some(self.time.0);
            alarm.root = root;
        }
        if let Some(posterior) = self.posterior {
            alarm.posterior = posterior.into_iter().collect();
        }
        if let Some(effects) = self.effects {
            alarm.effects = effects.into_iter().map(|effect| effect.client).collect();
        }
    }
}

fn from_facts(file: &Path, text: &str) -> Result<AlarmFile, ScoreError> {
    let mut alarms: Vec<Alarm> = Vec::new();
    // Where each incident stands in the list, and the line that opened it.
    let mut places: HashMap<u64, (usize, u64)> = HashMap::new();
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
        let unopened = |incident: u64, what: &str| {
            ScoreError::line(file, number, format!("incident {incident} is {what}, never opened"))
        };
        let fact: Fact = match serde_json::from_str(line) {
            Err(error) if error.is_eof() && broken_off && number == last => {
                cut_at_line = Some(number);
                break;
            }
            fact => fact.map_err(json)?,
        };
        match fact.fact.as_ref() {
            "opened" => {
                let said: Said = serde_json::from_str(line).map_err(json)?;
                if let Some((_, before)) = places.insert(said.incident, (alarms.len(), number)) {
                    let what =
                        format!("incident {} was opened on line {before} already", said.incident);
                    return Err(ScoreError::line(file, number, what));
                }
                let mut alarm = Alarm::new(said.time.0, None);
                said.say_to(&mut alarm);
                alarms.push(alarm);
            }
            "updated" => {
                let said: Said = serde_json::from_str(line).map_err(json)?;
                let (place, _) =
                    places.get(&said.incident).ok_or_else(|| unopened(said.incident, "updated"))?;
                said.say_to(&mut alarms[*place]);
            }
            "closed" => {
                let said: Closed = serde_json::from_str(line).map_err(json)?;
                let (place, _) =
                    places.get(&said.incident).ok_or_else(|| unopened(said.incident, "closed"))?;
                let alarm = &mut alarms[*place];
                in_order(alarm.opened, said.time.0)
                    .map_err(|what| ScoreError::line(file, number, what))?;
                alarm.closed = Some(said.time.0);
            }
            "summary" => {
                let summary: Summary = serde_json::from_str(line).map_err(json)?;
                watched = stretch(&summary).map_err(|what| ScoreError::line(file, number, what))?;
            }
            _ => {}
        }
    }
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
