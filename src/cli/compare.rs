//! `headwater compare`: two recordings, or two settings of one session, side by side.

use std::io::Write;
use std::path::Path;

use clap::Args;
use color_eyre::eyre::{Result, bail, eyre};
use jiff::Timestamp;
use serde::Serialize;

use super::LookArgs;
use crate::base::notice::print_notice;
use crate::console::{self, Both, Ending, Keys, Subject};
use crate::engine::branch;
use crate::engine::handle::Options;
use crate::engine::knob::{Knob, Turn};
use crate::engine::pace::Speed;
use crate::engine::recorded::Recorded;
use crate::engine::{self, Handle};
use crate::fact::{self, Fact, Number, Summary, Value};
use crate::record::batch::AboutTable;
use crate::record::{self, Recording};
use crate::score::EventRow;
use crate::score::metrics::delay::Delays;
use crate::session::{Session, Span};

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// A session or a recording
    a: String,
    /// Another; the same once more when absent
    b: Option<String>,
    /// A setting of the second one, as `headwater open` names its knobs, such as arl0=8h
    #[arg(long, value_name = "KEY=VALUE")]
    set_b: Vec<String>,
    /// A table, also at a terminal
    #[arg(long)]
    table: bool,
    /// One JSON object instead
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    look: LookArgs,
}

impl CompareArgs {
    /// Whether both days are shown on a screen: there is one, and no text was asked for.
    pub(super) fn is_for_a_screen(&self) -> bool {
        !self.json && !self.table && console::is_possible(Keys::StandardInput)
    }

    fn check(&self) -> Result<()> {
        if self.b.is_none() && self.set_b.is_empty() {
            bail!("there is nothing to compare: name a second session or recording, or --set-b");
        }
        Ok(())
    }
}

/// One of the two days.
struct Day {
    name: String,
    settings: Vec<String>,
    summary: Option<Summary>,
    /// Incidents by their last facts, in order.
    incidents: Vec<fact::Incident>,
}

/// {a, b, events: [{id, a, b}], false_alarms, delay_s}
#[derive(Debug, Serialize)]
struct Comparison {
    a: Side,
    b: Side,
    events: Vec<Row>,
    false_alarms: Pair<usize>,
    delay_s: Pair<Delays>,
}

#[derive(Debug, Serialize)]
struct Side {
    name: String,
    settings: Vec<String>,
    mode: Option<String>,
    incidents: usize,
}

#[derive(Debug, Serialize)]
struct Pair<T> {
    a: Option<T>,
    b: Option<T>,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    a: Option<Said>,
    b: Option<Said>,
}

/// How one day answered an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Said {
    delay_s: Option<f64>,
    root: Option<String>,
    /// Whether that is right, where it is known.
    right: Option<bool>,
}

pub(super) fn run(out: &mut impl Write, args: &CompareArgs) -> Result<()> {
    args.check()?;
    let (a, b) = (day(&args.a, &[])?, day(args.b.as_deref().unwrap_or(&args.a), &args.set_b)?);
    let comparison = compare(&a, &b);
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&comparison)?)?;
        return Ok(());
    }
    Ok(print(out, &comparison)?)
}

/// Both days under one cursor.
pub(super) fn show(args: &CompareArgs) -> Result<Ending> {
    args.check()?;
    let b = args.b.as_deref().unwrap_or(&args.a);
    let subjects = [subject(&args.a, &[])?, subject(b, &args.set_b)?];
    let with_settings = format!("{b} {}", args.set_b.join(" "));
    let names = [args.a.clone(), with_settings.trim_end().to_owned()];
    print_notice("reading both days");
    let both = Both::read(subjects, names, args.look.into())?;
    Ok(console::compare(both, Keys::StandardInput)?)
}

/// A recording or a session with these settings.
fn subject(name: &str, settings: &[String]) -> Result<Subject> {
    let file = Path::new(name);
    if record::is_recording(file) {
        return Ok(Subject::Recording(Box::new(recorded(file, settings)?)));
    }
    Ok(Subject::Session(Box::new(session_with(name, settings)?)))
}

/// A session with these settings.
fn session_with(name: &str, settings: &[String]) -> Result<Session> {
    let mut session = Session::open(name)?;
    for setting in settings {
        let turn = turn(setting, &[])?;
        if turn.knob == Knob::Budget {
            bail!("{}: this cannot be set before a run; edit the session", turn.knob.name(&[]));
        }
        turn.write_to(&mut session);
    }
    Ok(session)
}

/// A recording as it would be with these settings.
fn recorded(file: &Path, settings: &[String]) -> Result<Recorded> {
    let recording = Recording::open(file)?;
    recording.needs_server()?;
    let names: Vec<String> = recording.value(AboutTable::Both, "clients")?;
    let turns = settings.iter().map(|setting| turn(setting, &names)).collect::<Result<Vec<_>>>()?;
    branch::with_settings(file, &turns).map_err(|error| eyre!(error))
}

fn day(name: &str, settings: &[String]) -> Result<Day> {
    let file = Path::new(name);
    let mut day = Day {
        name: name.to_owned(),
        settings: settings.to_vec(),
        summary: None,
        incidents: Vec::new(),
    };
    if record::is_recording(file) {
        if settings.is_empty() {
            let recording = Recording::open(file)?;
            recording.needs_server()?;
            for stored in recording.facts()? {
                let fact = Fact::from_line(&stored.line)
                    .map_err(|why| recording.damaged(format!("a fact: {why}")))?;
                day.take(&fact);
            }
            return Ok(day);
        }
        let recorded = recorded(file, settings)?;
        day.play(engine::spawn_recorded(recorded, Options::facts(Speed::Max))?)?;
        return Ok(day);
    }
    let session = session_with(name, settings)?;
    day.play(engine::spawn(&session, Options::facts(Speed::Max))?)?;
    Ok(day)
}

impl Day {
    fn play(&mut self, engine: Handle) -> Result<()> {
        let mut facts = Vec::new();
        let (_, ending) = engine
            .into_end(|_, update| facts.extend(update.news.facts.iter().cloned()))
            .map_err(|error| eyre!(error))?;
        for fact in &facts {
            self.take(fact);
        }
        self.summary = Some(ending.summary);
        Ok(())
    }

    fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::Opened(incident) => self.incidents.push(incident.clone()),
            Fact::Updated(incident) | Fact::Closed(incident) => {
                let known = self.incidents.iter_mut().find(|i| i.incident == incident.incident);
                if let Some(known) = known {
                    let time = known.time;
                    known.clone_from(incident);
                    known.time = time;
                }
            }
            Fact::Summary(summary) => self.summary = Some((**summary).clone()),
            Fact::Training(_)
            | Fact::Calibrated(_)
            | Fact::Setting(_)
            | Fact::Ledger(_)
            | Fact::Verdict(_)
            | Fact::Quality(_) => {}
        }
    }

    fn events(&self) -> Option<&[EventRow]> {
        Some(&self.summary.as_ref()?.score.as_ref()?.events)
    }

    fn side(&self) -> Side {
        Side {
            name: self.name.clone(),
            settings: self.settings.clone(),
            mode: self.summary.as_ref().map(|summary| format!("{:?}", summary.mode).to_lowercase()),
            incidents: self.incidents.len(),
        }
    }
}

/// `arl0=8h` as a knob with its value.
fn turn(setting: &str, names: &[String]) -> Result<Turn> {
    let (key, value) =
        setting.split_once('=').ok_or_else(|| eyre!("{setting}: expected KEY=VALUE"))?;
    let knob = Knob::named(key.trim(), names).ok_or_else(|| {
        let all = Knob::all(names.len());
        let known: Vec<String> = all.iter().map(|knob| knob.name(names)).collect();
        eyre!("{key}: no such setting; there are {}", known.join(", "))
    })?;
    let text = value.trim();
    let value = match text {
        "none" => Value::Unset,
        "on" | "true" => Value::Switch(true),
        "off" | "false" => Value::Switch(false),
        _ => match text.parse::<f64>().ok().and_then(Number::new) {
            Some(number) => Value::Number(number),
            None => match Span::try_from(text.to_owned()) {
                Ok(span) if knob == Knob::Arl0 => Value::Number(Number::or_zero(span.seconds)),
                _ => Value::Text(text.to_owned()),
            },
        },
    };
    Ok(knob.turn(&value, names)?)
}

fn compare(a: &Day, b: &Day) -> Comparison {
    let events = match (a.events(), b.events()) {
        (Some(of_a), Some(of_b)) if !of_a.is_empty() || !of_b.is_empty() => labelled(of_a, of_b),
        _ => unlabelled(&a.incidents, &b.incidents),
    };
    let score = |day: &Day| day.summary.as_ref().and_then(|summary| summary.score.clone());
    let (of_a, of_b) = (score(a), score(b));
    Comparison {
        a: a.side(),
        b: b.side(),
        events,
        false_alarms: Pair {
            a: of_a.as_ref().map(|score| score.false_alarms),
            b: of_b.as_ref().map(|score| score.false_alarms),
        },
        delay_s: Pair { a: of_a.map(|score| score.delay_s), b: of_b.map(|score| score.delay_s) },
    }
}

/// Every known disturbance, with the incidents of both sides.
fn labelled(a: &[EventRow], b: &[EventRow]) -> Vec<Row> {
    let said =
        |row: &EventRow| Said { delay_s: row.delay_s, root: row.root.clone(), right: row.right };
    let find = |rows: &[EventRow], id: &str| {
        rows.iter().find(|row| row.id == id).filter(|row| row.detected).map(said)
    };
    let only_b = b.iter().filter(|row| a.iter().all(|other| other.id != row.id));
    a.iter()
        .chain(only_b)
        .map(|row| Row { id: row.id.clone(), a: find(a, &row.id), b: find(b, &row.id) })
        .collect()
}

/// Without labels: incidents that were opened within five minutes of each other are one event.
fn unlabelled(a: &[fact::Incident], b: &[fact::Incident]) -> Vec<Row> {
    const NEAR_S: f64 = 300.0;
    let said = |incident: &fact::Incident, first: Timestamp| Said {
        delay_s: Some(incident.time.duration_since(first).as_secs_f64()),
        root: incident.root.clone(),
        right: None,
    };
    let mut rest: Vec<&fact::Incident> = b.iter().collect();
    let mut rows: Vec<(Timestamp, Row)> = Vec::new();
    for of_a in a {
        let distance =
            |other: &fact::Incident| other.time.duration_since(of_a.time).as_secs_f64().abs();
        let near = (0..rest.len())
            .filter(|at| distance(rest[*at]) <= NEAR_S)
            .min_by(|x, y| distance(rest[*x]).total_cmp(&distance(rest[*y])));
        let of_b = near.map(|at| rest.remove(at));
        let first = of_b.map_or(of_a.time, |of_b| of_b.time.min(of_a.time));
        let row = Row {
            id: first.to_string(),
            a: Some(said(of_a, first)),
            b: of_b.map(|of_b| said(of_b, first)),
        };
        rows.push((first, row));
    }
    rows.extend(rest.into_iter().map(|of_b| {
        let row = Row { id: of_b.time.to_string(), a: None, b: Some(said(of_b, of_b.time)) };
        (of_b.time, row)
    }));
    rows.sort_by_key(|(time, _)| *time);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn print(out: &mut impl Write, comparison: &Comparison) -> std::io::Result<()> {
    for (letter, side) in [("a", &comparison.a), ("b", &comparison.b)] {
        let settings = side.settings.join(", ");
        let mode = side.mode.as_deref().unwrap_or("not ended");
        writeln!(out, "{letter}: {} ({mode}) {settings}", side.name)?;
    }
    writeln!(out, "\n{:<24} {:<26} {:<26}", "event", "a", "b")?;
    for row in &comparison.events {
        let differs =
            row.a.as_ref().map(|said| &said.root) != row.b.as_ref().map(|said| &said.root);
        let mark = if differs { "  differs" } else { "" };
        writeln!(
            out,
            "{:<24} {:<26} {:<26}{mark}",
            row.id,
            words(row.a.as_ref()),
            words(row.b.as_ref())
        )?;
    }
    let count = |n: Option<usize>| n.map_or_else(|| "–".to_owned(), |n| n.to_string());
    let Pair { a, b } = comparison.false_alarms;
    writeln!(out, "{:<24} {:<26} {:<26}", "false alarms", count(a), count(b))?;
    let median = |delays: &Option<Delays>| {
        let median = delays.as_ref().and_then(|delays| delays.median);
        median.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds:.0} s"))
    };
    let Pair { a, b } = &comparison.delay_s;
    writeln!(out, "{:<24} {:<26} {:<26}", "median delay", median(a), median(b))
}

fn words(said: Option<&Said>) -> String {
    let Some(Said { delay_s, root, right }) = said else { return "–".to_owned() };
    let root = root.as_deref().unwrap_or("?");
    let right = match right {
        Some(true) => " right",
        Some(false) => " wrong",
        None => "",
    };
    let delay = delay_s.map_or_else(String::new, |seconds| format!("{seconds:+.0} s  "));
    format!("{delay}{root}{right}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_like_knobs() {
        assert_eq!(turn("arl0=8h", &[]).expect("a span"), Knob::Arl0.at(28_800.0));
        assert_eq!(turn("mode = paper", &[]).expect("a mode").knob, Knob::Mode);
        assert!(turn("arl0", &[]).expect_err("no value").to_string().contains("KEY=VALUE"));
        assert!(turn("speed=3", &[]).expect_err("no knob").to_string().contains("there are"));
        let with = |setting: &str| session_with("plant-attack-day", &[setting.to_owned()]);
        assert!(with("budget=3").expect_err("not before a run").to_string().contains("edit"));
        let session = with("arl0=4h").expect("settable");
        assert!((session.thresholds.arl0.seconds - 14_400.0).abs() < 1e-9);
    }
}
