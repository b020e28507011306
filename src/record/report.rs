//! A report for people: one incident, or a stretch of time such as a shift that is handed over.
//!
//! It is gathered once and written as Markdown or as one HTML page with drawings, which needs no script
//! and can be printed.

mod html;
mod markdown;
mod plot;

use jiff::{SignedDuration, Timestamp};

use super::batch::AboutTable::Both;
use super::export::{ExportError, Stretch};
use super::{RecordError, Recording};
use crate::fact::Fact;
use crate::incident::{Edit, Event, Incident};
use crate::session::Clock;

pub(crate) use self::html::write as html;
pub(crate) use self::markdown::write as markdown;

/// How much is shown before the onset of an incident, and after its end.
const AROUND: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum About {
    Incident(u64),
    Stretch(Stretch),
}

/// How an incident stood at the end of the stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Unseen,
    Acknowledged,
    Shelved,
    Over,
}

impl Standing {
    const ALL: [Self; 4] = [Self::Unseen, Self::Shelved, Self::Acknowledged, Self::Over];

    fn title(self) -> &'static str {
        match self {
            Self::Unseen => "Open or not acknowledged",
            Self::Shelved => "Shelved",
            Self::Acknowledged => "Acknowledged, still open",
            Self::Over => "Over",
        }
    }
}

/// One incident in words.
struct Case {
    number: u64,
    standing: Standing,
    onset: String,
    opened: String,
    closed: Option<String>,
    root: String,
    first_out: String,
    /// Clients with their delays.
    effects: Vec<String>,
    priority: String,
    note: String,
}

/// What is said above the figures of ledgers.
const BY_THE_HOUR: &str =
    "A recording holds this by the hour: each figure is the last one before that instant.";

/// The privacy cost of a client at the start and at the end of the stretch.
struct Spent {
    client: String,
    /// ε and releases; nothing where none was entered by then.
    before: Option<(String, u64)>,
    after: Option<(String, u64)>,
}

/// One quantity of one client over time.
struct Curve {
    client: String,
    what: &'static str,
    /// Where an alarm begins.
    limit: Option<f64>,
    points: Vec<(Timestamp, f64)>,
    /// It is the root of the incident.
    is_root: bool,
}

/// Everything that a report says.
pub(crate) struct Report {
    title: String,
    /// Name and value.
    head: Vec<(&'static str, String)>,
    cases: Vec<Case>,
    /// Time, operator, words.
    log: Vec<(String, String, String)>,
    /// Time, setting, old and new value.
    settings: Vec<[String; 4]>,
    spent: Vec<Spent>,
    curves: Vec<Curve>,
    /// What is marked on the drawings: when, and a word.
    marks: Vec<(Timestamp, String)>,
    clock: Clock,
    shown: Stretch,
}

impl Report {
    pub(crate) fn gather(recording: &Recording, about: About) -> Result<Self, ExportError> {
        let session = recording.session()?;
        let clock = Clock::of(&session);
        let clients: Vec<String> = recording.value(Both, "clients")?;
        let incidents = recording.incidents()?;
        let steps = recording.steps()?;
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Err(recording.damaged("it has no step").into());
        };
        let all = Stretch { from: first.time, to: last.time };
        let (stretch, only) = match about {
            About::Stretch(asked) => {
                (Stretch { from: asked.from.max(all.from), to: asked.to.min(all.to) }, None)
            }
            About::Incident(number) => {
                let found = incidents.iter().find(|incident| incident.number == number);
                let found = found.ok_or_else(|| no_incident(recording, number, incidents.len()))?;
                let end = found.closed.map_or(all.to, |closed| closed.time);
                let from = found.onset.checked_sub(AROUND).unwrap_or(found.onset);
                let to = end.checked_add(AROUND).unwrap_or(end);
                (Stretch { from: from.max(all.from), to: to.min(all.to) }, Some(number))
            }
        };
        let events: Vec<Event> =
            recording.events()?.into_iter().map(|stored| stored.event).collect();
        let is_about = |incident: &Incident| {
            let end = incident.closed.map_or(Timestamp::MAX, |closed| closed.time);
            let is_within = incident.opened <= stretch.to && end >= stretch.from;
            only.map_or(is_within, |number| incident.number == number)
        };
        let cases: Vec<Case> = incidents
            .iter()
            .filter(|incident| is_about(incident))
            .map(|incident| case(incident, &events, stretch.to, &clients, clock))
            .collect();
        let log = events
            .iter()
            .filter(|event| match only {
                Some(number) => event.incident() == Some(number),
                None => stretch.holds(event.time),
            })
            .map(|event| {
                let who = event.who.clone().unwrap_or_default();
                (clock.date_time(event.time), who, event.words(&clients))
            })
            .collect();
        let root = only.and_then(|number| incidents.iter().find(|i| i.number == number)?.root);
        let marks = match only {
            Some(number) => marks(incidents.iter().find(|i| i.number == number), &clients),
            None => Vec::new(),
        };
        let title = match only {
            Some(number) => format!("Incident #{number}"),
            None => "Shift hand-over".to_owned(),
        };
        let (from, to) = (clock.date_time(stretch.from), clock.date_time(stretch.to));
        let mut head = vec![("session", session.name.clone()), ("from", from), ("to", to)];
        head.push(("method", recording.mode()?.word().to_owned()));
        head.push(("noise", recording.known(Both, "randomness")?));
        head.push(("session SHA-256", recording.known(Both, "session_sha256")?));
        if let Some(models) = recording.about(Both, "models_sha256")? {
            head.push(("models SHA-256", models));
        }
        head.push(("program", format!("headwater {}", recording.known(Both, "program")?)));
        Ok(Self {
            title,
            head,
            cases,
            log,
            settings: settings(recording, stretch, clock)?,
            spent: spent(recording, stretch, &clients)?,
            curves: curves(recording, stretch, &clients, root)?,
            marks,
            clock,
            shown: stretch,
        })
    }

    fn of(&self, standing: Standing) -> Vec<&Case> {
        self.cases.iter().filter(|case| case.standing == standing).collect()
    }
}

fn no_incident(recording: &Recording, number: u64, known: usize) -> RecordError {
    RecordError::NoIncident { file: recording.file().to_path_buf(), number, known }
}

fn case(
    incident: &Incident,
    events: &[Event],
    at: Timestamp,
    clients: &[String],
    clock: Clock,
) -> Case {
    let name = |client: usize| clients.get(client).cloned().unwrap_or_default();
    let closed = incident.closed.filter(|closed| closed.time <= at);
    let first_out = incident.first_out.map(|first| name(first.client));
    Case {
        number: incident.number,
        standing: standing(incident, events, at),
        onset: clock.date_time(incident.onset),
        opened: clock.date_time(incident.opened),
        closed: closed.map(|closed| format!("{}, {}", clock.date_time(closed.time), closed.why)),
        root: incident.root.map_or_else(|| "unknown".to_owned(), name),
        first_out: first_out.unwrap_or_else(|| "unknown".to_owned()),
        effects: incident
            .effects()
            .map(|member| format!("{} {:+} s", name(member.client), incident.delay_s(member)))
            .collect(),
        priority: incident.priority.number().to_string(),
        note: note_at(incident, events, at),
    }
}

/// How an incident stood at an instant, by what operators had done until then.
fn standing(incident: &Incident, events: &[Event], at: Timestamp) -> Standing {
    use crate::incident::AlarmState as State;
    let edits = events.iter().filter(|event| event.time <= at).flat_map(|event| &event.edits);
    let alarm = edits.rev().find_map(|edit| match edit {
        Edit::Alarm { incident: number, to, .. } if *number == incident.number => Some(*to),
        _ => None,
    });
    let is_open = incident.closed.is_none_or(|closed| closed.time > at);
    match alarm.map(|alarm| (alarm.state, alarm.shelved_until)) {
        Some((State::Shelved, until)) if until.is_none_or(|until| until > at) => Standing::Shelved,
        Some((State::Acknowledged | State::Normal, _)) if is_open => Standing::Acknowledged,
        Some((State::Acknowledged | State::Normal | State::OutOfService, _)) => Standing::Over,
        _ => Standing::Unseen,
    }
}

fn note_at(incident: &Incident, events: &[Event], at: Timestamp) -> String {
    let edits = events.iter().filter(|event| event.time <= at).flat_map(|event| &event.edits);
    let note = edits.rev().find_map(|edit| match edit {
        Edit::Note { incident: number, to, .. } if *number == incident.number => Some(to.clone()),
        _ => None,
    });
    note.unwrap_or_default()
}

/// Who rose when, for the drawings.
fn marks(incident: Option<&Incident>, clients: &[String]) -> Vec<(Timestamp, String)> {
    let Some(incident) = incident else { return Vec::new() };
    let mut marks = vec![(incident.opened, format!("#{} opened", incident.number))];
    let name = |client: usize| clients.get(client).cloned().unwrap_or_default();
    marks.extend(incident.members.iter().map(|m| (m.onset, format!("{} onset", name(m.client)))));
    marks.extend(incident.closed.map(|closed| (closed.time, "closed".to_owned())));
    marks
}

fn settings(
    recording: &Recording,
    within: Stretch,
    clock: Clock,
) -> Result<Vec<[String; 4]>, RecordError> {
    let mut rows = Vec::new();
    for stored in recording.facts()? {
        if let Ok(Fact::Setting(set)) = Fact::from_line(&stored.line)
            && within.holds(set.time)
        {
            let (from, to) = (set.from.words(&set.what), set.to.words(&set.what));
            rows.push([clock.date_time(set.time), set.what, from, to]);
        }
    }
    Ok(rows)
}

fn spent(
    recording: &Recording,
    within: Stretch,
    clients: &[String],
) -> Result<Vec<Spent>, RecordError> {
    let ledger = recording.ledger()?;
    let at = |client: usize, until: Timestamp| {
        let known = ledger.iter().rev().find(|stored| {
            stored.client == client
                && stored.time.parse().is_ok_and(|time: Timestamp| time <= until)
        })?;
        let Ok(Fact::Ledger(fact)) = Fact::from_line(&known.line) else { return None };
        let epsilon = fact.epsilon.map_or("no noise".to_owned(), |e| format!("{:.3}", e.get()));
        Some((epsilon, fact.releases))
    };
    Ok(clients
        .iter()
        .enumerate()
        .map(|(client, name)| Spent {
            client: name.clone(),
            before: at(client, within.from),
            after: at(client, within.to),
        })
        .collect())
}

/// The evidence of every client, or its distances where the look-up decided.
fn curves(
    recording: &Recording,
    within: Stretch,
    clients: &[String],
    root: Option<usize>,
) -> Result<Vec<Curve>, RecordError> {
    let steps = recording.steps()?;
    let mut curves = Vec::new();
    for (client, name) in clients.iter().enumerate() {
        let (local, decided) = (recording.residuals(client)?, recording.decisions(client)?);
        let evidence = decided.iter().map(|[server, _]| f64::from(server.evidence));
        let evidence: Vec<f64> = evidence.collect();
        let (what, limit, values) = if evidence.iter().any(|value| value.is_finite()) {
            ("evidence, alarm from 1 on", Some(1.0), evidence)
        } else {
            let distances = local.iter().map(|local| f64::from(local.d_c)).collect();
            ("Mahalanobis distance of r_c", None, distances)
        };
        let points = steps
            .iter()
            .zip(values)
            .filter(|(mark, _)| within.holds(mark.time))
            .map(|(mark, value)| (mark.time, value))
            .collect();
        let is_root = root == Some(client);
        curves.push(Curve { client: name.clone(), what, limit, points, is_root });
    }
    Ok(curves)
}
