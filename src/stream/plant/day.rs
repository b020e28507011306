//! A day of the plant as a stream: hours of normal operation, then the day with its attacks.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::attack::{self, Attack, CATALOGUE};
use super::tags::{PlantRow, Process, header};
use super::tampering::Staged;
use super::{Plant, Switches};
use crate::session::mark::civil;
use crate::session::{Attacks, ClientSettings, PlantSource, Span};
use crate::stream::columns::{self, Columns};
use crate::stream::{Continuity, Event, Frame, Label, Layout, Stream, StreamError};

/// The run that a session's settings ask for.
#[derive(Debug, Clone)]
pub(crate) struct Day {
    /// Time of the first row, the history's.
    pub(crate) first: Timestamp,
    /// Number of rows, history and day.
    pub(crate) steps: u64,
    /// What happens when, in the order of time.
    pub(crate) schedule: Vec<Staged>,
    switches: Switches,
}

impl Day {
    /// Understands the settings. The civil time `start` is taken as UTC.
    pub(crate) fn plan(source: &PlantSource) -> Result<Self, StreamError> {
        let history = seconds("history_h", source.history_h)?;
        let day = seconds("hours", source.hours)?;
        if history + day == 0 {
            return Err(unusable("`history_h` and `hours` are both 0"));
        }
        let midnight = civil(&source.start).ok_or_else(|| {
            unusable(&format!(
                "`start` should be a time such as \"2022-08-12 00:00:00\", not {:?}",
                source.start
            ))
        })?;
        let outside = |_| unusable("the day lies outside the calendar");
        let midnight = TimeZone::UTC.to_timestamp(midnight).map_err(outside)?;
        let first = midnight.checked_sub(Duration::from_secs(history)).map_err(outside)?;
        midnight.checked_add(Duration::from_secs(day)).map_err(outside)?;
        let schedule = timed(&source.attacks)?
            .into_iter()
            .filter(|(attack, start)| start + u64::from(attack.duration_s) <= day)
            .map(|(attack, start)| Staged { attack, start: history + start })
            .collect();
        let switches =
            Switches { confounded: source.confounded, grid_feedback: source.grid_feedback };
        Ok(Self { first, steps: history + day, schedule, switches })
    }

    /// The plant before its first second.
    pub(crate) fn plant(&self, seed: u64) -> Plant {
        Plant::new(seed, self.switches, &self.schedule)
    }

    /// Its departures from the causal order.
    pub(crate) fn switches(&self) -> Switches {
        self.switches
    }

    /// Time of a row.
    pub(crate) fn time(&self, step: u64) -> Timestamp {
        self.first + Duration::from_secs(step)
    }
}

fn seconds(key: &str, hours: f64) -> Result<u64, StreamError> {
    // This keeps all sums within their types.
    if hours >= 0.0 && hours * 3600.0 <= Span::LONGEST.seconds {
        Ok((hours * 3600.0).round() as u64)
    } else {
        Err(unusable(&format!("`{key}` should be a number of hours from 0 on, not {hours}")))
    }
}

/// The attacks of a session and when they begin, in seconds from midnight, in the order of time.
fn timed(attacks: &Attacks) -> Result<Vec<(&'static Attack, u64)>, StreamError> {
    let chosen = chosen(attacks)?.into_iter().map(|attack| (attack, u64::from(attack.start_s)));
    let mut timed: Vec<(&'static Attack, u64)> = chosen.collect();
    if let Attacks::Pairs(gap_s) = attacks {
        for pair in timed.chunks_exact_mut(2) {
            let (first, start) = pair[0];
            pair[1].1 = start + u64::from(first.duration_s) + u64::from(*gap_s);
        }
    }
    Ok(timed)
}

/// The attacks of a session, in the order of the day.
fn chosen(attacks: &Attacks) -> Result<Vec<&'static Attack>, StreamError> {
    let mut chosen: Vec<&'static Attack> = match attacks {
        Attacks::Nothing => Vec::new(),
        Attacks::Day | Attacks::Pairs(_) => CATALOGUE.iter().collect(),
        Attacks::Only(ids) => ids
            .iter()
            .map(|id| {
                attack::find(id).ok_or_else(|| {
                    let known: Vec<&str> = attack::ids().collect();
                    unusable(&format!("no attack is called {id:?}; known: {}", known.join(", ")))
                })
            })
            .collect::<Result<_, _>>()?,
    };
    chosen.sort_by_key(|attack| attack.start_s);
    chosen.dedup_by_key(|attack| attack.id);
    Ok(chosen)
}

fn unusable(why: &str) -> StreamError {
    StreamError::Setting(why.into())
}

/// The clients when a session names none: the three processes with their physical sensors.
pub(crate) fn default_clients() -> Vec<ClientSettings> {
    Process::ALL
        .into_iter()
        .map(|process| ClientSettings {
            name: process.name().into(),
            title: process.title().into(),
            columns: process.kept().iter().map(|tag| tag.name().into()).collect(),
            except: Vec::new(),
            inputs: Vec::new(),
        })
        .collect()
}

/// The built-in plant, frame by frame.
#[derive(Debug)]
pub(crate) struct PlantStream {
    day: Day,
    plant: Plant,
    row: PlantRow,
    columns: Columns,
    events: Vec<Event>,
}

impl PlantStream {
    /// Opens the day that `source` describes, for these clients or the default ones.
    pub(crate) fn open(
        source: &PlantSource,
        clients: &[ClientSettings],
        seed: u64,
    ) -> Result<Self, StreamError> {
        let day = Day::plan(source)?;
        let header = header();
        let columns = if clients.is_empty() {
            columns::assign(&header, &default_clients(), 1.0)
        } else {
            columns::assign(&header, clients, 1.0)
        }
        .map_err(|what| StreamError::Header { file: "built-in plant".into(), what })?;
        let events = day.schedule.iter().map(|staged| event(&day, staged, &columns)).collect();
        Ok(Self { plant: day.plant(seed), day, row: PlantRow::default(), columns, events })
    }
}

/// A staged attack in terms of the session's clients, which need not be the processes.
fn event(day: &Day, staged: &Staged, columns: &Columns) -> Event {
    let watching = |processes: &[Process]| -> Vec<String> {
        columns
            .layout
            .clients
            .iter()
            .filter(|client| {
                let of = |name: &str| Process::of(name).is_some_and(|p| processes.contains(&p));
                client.sensors.iter().any(|sensor| of(&sensor.name))
            })
            .map(|client| client.name.clone())
            .collect()
    };
    let origins = watching(&[staged.attack.origin]);
    let mut affected = watching(staged.attack.affected);
    affected.retain(|client| !origins.contains(client));
    Event {
        id: staged.attack.id.into(),
        start: day.time(staged.start),
        end: day.time(staged.end() - 1),
        origins,
        affected,
        sensors: staged.attack.sensors().iter().map(|tag| tag.name().to_owned()).collect(),
        what: staged.attack.what(),
    }
}

impl Stream for PlantStream {
    fn layout(&self) -> &Layout {
        &self.columns.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let step = self.plant.next_step();
        if step >= self.day.steps {
            return Ok(false);
        }
        let attack = self.plant.step(&mut self.row);
        frame.time = self.day.time(step);
        frame.continuity = if step == 0 { Continuity::NewRun } else { Continuity::Next };
        frame.label = match attack {
            Some(event) => Label::Anomalous { event: Some(event as u32) },
            None => Label::Normal,
        };
        let row = &self.row.0;
        frame.values.clear();
        frame.values.extend(self.columns.values.iter().map(|&column| row[column]));
        frame.inputs.clear();
        frame.inputs.extend(self.columns.inputs.iter().map(|&column| row[column]));
        frame.notes.clear();
        Ok(true)
    }

    fn events(&self) -> &[Event] {
        &self.events
    }
}
