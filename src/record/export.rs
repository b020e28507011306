//! Tables of a recording, for other programs: CSV or JSON, a stretch of time or all of it.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::batch::AboutTable::Both;
use super::{RecordError, Recording, StepMark};
use crate::fact::Fact;
use crate::incident::Incident;
use crate::wire::{Crossed, Entries};

/// What can be written as a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Incidents,
    Flags,
    Residuals,
    Messages,
    Ledger,
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableFormat {
    Csv,
    /// A list with one object a line.
    Json,
}

/// A stretch of a recording's time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Stretch {
    pub(crate) const ALL: Self = Self { from: Timestamp::MIN, to: Timestamp::MAX };

    pub(crate) fn holds(&self, time: Timestamp) -> bool {
        self.from <= time && time <= self.to
    }
}

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Write(#[from] io::Error),
    #[error(transparent)]
    Csv(#[from] csv::Error),
}

/// The columns of a table, in their order.
fn columns(table: Table) -> &'static [&'static str] {
    match table {
        Table::Incidents => &[
            "incident",
            "onset",
            "opened",
            "closed",
            "root",
            "first_out",
            "effects",
            "priority",
            "verdict",
            "state",
            "why_closed",
            "note",
        ],
        Table::Flags => &["step", "time", "client", "z_c", "z_a", "level", "evidence"],
        Table::Residuals => &["step", "time", "client", "d_c", "d_a", "r_c", "r_a", "surprise"],
        Table::Messages => &["step", "time", "direction", "client", "message"],
        Table::Ledger => &["time", "client", "epsilon", "delta", "basic", "releases", "randomness"],
    }
}

/// Rows go out as they come.
enum Sheet<'a, W: Write> {
    Csv(Box<csv::Writer<&'a mut W>>),
    Json { out: &'a mut W, rows: usize },
}

impl<W: Write> Sheet<'_, W> {
    fn row(&mut self, columns: &[&str], values: Vec<Value>) -> Result<(), ExportError> {
        match self {
            Self::Csv(csv) => csv.write_record(values.into_iter().map(cell))?,
            Self::Json { out, rows } => {
                let row: Map<String, Value> =
                    columns.iter().map(|name| (*name).to_owned()).zip(values).collect();
                let begin = if *rows == 0 { "[\n" } else { ",\n" };
                *rows += 1;
                write!(out, "{begin}{}", Value::Object(row))?;
            }
        }
        Ok(())
    }

    fn end(self) -> Result<(), ExportError> {
        match self {
            Self::Csv(mut csv) => csv.flush()?,
            Self::Json { out, rows: 0 } => writeln!(out, "[]")?,
            Self::Json { out, .. } => writeln!(out, "\n]")?,
        }
        Ok(())
    }
}

/// A value as a cell: nothing for what does not exist, lists with semicolons.
fn cell(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        Value::Array(items) => items.into_iter().map(cell).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// A number that exists; NaN has no place in JSON.
fn number(value: f32) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

/// Writes a table of what lies within a stretch.
#[allow(clippy::too_many_lines)] // One arm a table.
pub(crate) fn table(
    recording: &Recording,
    table: Table,
    format: TableFormat,
    within: Stretch,
    out: &mut impl Write,
) -> Result<(), ExportError> {
    match table {
        Table::Incidents => recording.needs_server()?,
        Table::Residuals => recording.needs_sites("distances and norms of residuals")?,
        Table::Ledger => recording.needs_sites("ledger")?,
        Table::Flags | Table::Messages => {}
    }
    let names = columns(table);
    let mut sheet = match format {
        TableFormat::Csv => {
            let mut csv = csv::Writer::from_writer(out);
            csv.write_record(names)?;
            Sheet::Csv(Box::new(csv))
        }
        TableFormat::Json => Sheet::Json { out, rows: 0 },
    };
    let clients: Vec<String> = recording.value(Both, "clients")?;
    let mut write = |values: Vec<Value>| sheet.row(names, values);
    match table {
        Table::Incidents => {
            for incident in recording.incidents()? {
                let end = incident.closed.map_or(Timestamp::MAX, |closed| closed.time);
                if incident.onset <= within.to && end >= within.from {
                    write(incident_row(&incident, &clients))?;
                }
            }
        }
        Table::Flags | Table::Residuals => {
            let steps = recording.numbered_steps()?;
            let mut columns = Vec::new();
            for client in 0..clients.len() {
                let truth = recording.truths(client)?;
                columns.push((recording.residuals(client)?, recording.decisions(client)?, truth));
            }
            // Flags that were never sent are those of the site, where nothing hides them.
            let unprotected = !recording.session()?.privacy.protects_flags();
            let within = |(_, (_, mark)): &(usize, &(u64, StepMark))| within.holds(mark.time);
            for (at, (step, mark)) in steps.iter().enumerate().filter(within) {
                for (client, (local, decided, truth)) in clients.iter().zip(&columns) {
                    // A site alone has no decisions, the server alone no residuals.
                    if local.get(at).is_none() && decided.get(at).is_none() {
                        continue;
                    }
                    let local = local.get(at).copied().unwrap_or_default();
                    let [server, other] = decided.get(at).copied().unwrap_or_default();
                    let truth = truth.get(at).filter(|_| unprotected || decided.is_empty());
                    let own = truth.and_then(|truth| truth.flags);
                    let own_level = truth.and_then(|truth| truth.own);
                    let mut row = vec![json!(step), json!(mark.time.to_string()), json!(client)];
                    if table == Table::Residuals {
                        let local = [local.d_c, local.d_a, local.r_c, local.r_a, local.surprise];
                        row.extend(local.map(number));
                    } else {
                        let flags = server.flags.or(other.flags).or(own);
                        let evidence =
                            if server.evidence.is_nan() { other.evidence } else { server.evidence };
                        row.push(json!(flags.map(|flags| flags.z_c)));
                        row.push(json!(flags.map(|flags| flags.z_a)));
                        let known = server.level.or(other.level);
                        row.push(json!(known.or(own_level.filter(|_| decided.is_empty()))));
                        row.push(number(evidence));
                    }
                    write(row)?;
                }
            }
        }
        Table::Messages => {
            let steps = recording.numbered_steps()?;
            let time = |step: u64| {
                let at = steps.binary_search_by_key(&step, |(number, _)| *number).ok()?;
                Some(steps[at].1.time)
            };
            let log = recording.messages()?;
            for entry in Entries::of(&log) {
                let entry = entry.map_err(|why| recording.damaged(why.to_string()))?;
                let (step, direction, client, text) = match &entry {
                    Crossed::Up(message) => {
                        (message.step(), "to the server", message.client(), message.text())
                    }
                    Crossed::Down(order) => {
                        (order.step(), "to a site", order.client(), order.text())
                    }
                    Crossed::Taken => continue,
                };
                let time = time(step);
                // What was sent before the first step belongs to it.
                if time.is_some_and(|time| !within.holds(time))
                    || (time.is_none() && within != Stretch::ALL)
                {
                    continue;
                }
                let client = clients.get(client).map_or(Value::Null, |name| json!(name));
                let time = json!(time.map(|time| time.to_string()));
                write(vec![json!(step), time, json!(direction), client, json!(text)])?;
            }
        }
        Table::Ledger => {
            for stored in recording.ledger()? {
                let is_within = stored.time.parse().is_ok_and(|time| within.holds(time));
                if let (true, Ok(Fact::Ledger(ledger))) = (is_within, Fact::from_line(&stored.line))
                {
                    write(vec![
                        json!(stored.time),
                        json!(ledger.client),
                        json!(ledger.epsilon),
                        json!(ledger.delta),
                        json!(ledger.basic),
                        json!(ledger.releases),
                        json!(ledger.randomness),
                    ])?;
                }
            }
        }
    }
    sheet.end()
}

fn incident_row(incident: &Incident, clients: &[String]) -> Vec<Value> {
    let name = |client: usize| clients.get(client).cloned().unwrap_or_default();
    let effects: Vec<String> = incident
        .effects()
        .map(|member| format!("{} {:+} s", name(member.client), incident.delay_s(member)))
        .collect();
    vec![
        json!(incident.number),
        json!(incident.onset.to_string()),
        json!(incident.opened.to_string()),
        json!(incident.closed.map(|closed| closed.time.to_string())),
        json!(incident.root.map(name)),
        json!(incident.first_out.map(|first| name(first.client))),
        json!(effects),
        json!(incident.priority),
        json!(incident.verdict()),
        json!(incident.alarm.state.word()),
        json!(incident.closed.map(|closed| closed.why.to_string())),
        json!(incident.note),
    ]
}
