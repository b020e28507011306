//! Known attacks, made exact by the labels of the data as they come.

use jiff::{SignedDuration, Timestamp};

use super::attacks::{Attack, attacks};
use super::tags::{Version, tag};
use crate::stream::{Continuity, Event, Label, Layout};

/// How far a labelled row may stand outside the listed time of its attack: lists round to the
/// minute, and no two attacks of a release are nearer than five minutes.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(120);

/// The attacks of a stream. Matches labelled rows to them and corrects their times.
#[derive(Debug)]
pub(super) struct Known {
    version: Version,
    /// For each process, the clients that watch it.
    origins: Vec<(&'static str, Vec<String>)>,
    events: Vec<Event>,
    /// For each event, whether its start is known from labels.
    met: Vec<bool>,
    before: Before,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    /// There is none, or it is not known.
    Unknown,
    Normal,
    Anomalous {
        event: u32,
        time: Timestamp,
    },
}

impl Known {
    /// Knows the attacks of these files (names without ending) from the start.
    pub(crate) fn new(version: Version, files: &[String], layout: &Layout) -> Self {
        let origins = ["P1", "P2", "P3"].map(|process| (process, watchers(layout, process)));
        let mut known = Self {
            version,
            origins: origins.to_vec(),
            events: Vec::new(),
            met: Vec::new(),
            before: Before::Unknown,
        };
        for file in files {
            for attack in attacks(version).filter(|a| a.file == file) {
                known.add(attack);
            }
        }
        known
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Takes note of what the data says about a row: `None` when it does not say.
    pub(crate) fn label(
        &mut self,
        time: Timestamp,
        continuity: Continuity,
        anomalous: Option<bool>,
    ) -> Label {
        if continuity != Continuity::Next {
            self.before = Before::Unknown;
        }
        let (label, before) = match anomalous {
            None => (Label::Unlabelled, Before::Unknown),
            Some(false) => {
                if let Before::Anomalous { event, time } = self.before {
                    self.events[event as usize].end = time;
                }
                (Label::Normal, Before::Normal)
            }
            Some(true) => {
                let event = match self.before {
                    Before::Anomalous { event, .. } => event,
                    Before::Normal | Before::Unknown => self.begin(time),
                };
                let end = &mut self.events[event as usize].end;
                *end = time.max(*end);
                (Label::Anomalous { event: Some(event) }, Before::Anomalous { event, time })
            }
        };
        self.before = before;
        label
    }

    /// The event that a first anomalous row belongs to. A renamed piece of a release finds its
    /// attacks too: time alone tells them apart.
    fn begin(&mut self, time: Timestamp) -> u32 {
        let near = |attack: &&Attack| {
            attack.start.duration_since(time) <= TOLERANCE
                && time.duration_since(attack.end()) <= TOLERANCE
        };
        let nearest = attacks(self.version)
            .filter(near)
            .min_by_key(|attack| attack.start.duration_since(time).abs());
        let Some(attack) = nearest else { return self.add_unlisted(time) };
        let event = self.events.iter().position(|event| event.id == attack.id);
        let event = event.unwrap_or_else(|| self.add(attack));
        // A row after normal rows is the start; a row after nothing may be anywhere within.
        if self.before == Before::Normal && !self.met[event] {
            self.events[event].start = time;
            self.events[event].end = time + SignedDuration::from_secs(attack.duration_s);
        }
        self.met[event] = true;
        event as u32
    }

    /// A labelled stretch that no list knows, such as one of a file in the layout of a release.
    fn add_unlisted(&mut self, time: Timestamp) -> u32 {
        self.events.push(Event {
            id: format!("unlisted {}", 1 + self.events.len()),
            start: time,
            end: time,
            origins: Vec::new(),
            affected: Vec::new(),
            sensors: Vec::new(),
            what: "labelled in the data, in no list of attacks".into(),
        });
        self.met.push(true);
        (self.events.len() - 1) as u32
    }

    fn add(&mut self, attack: &Attack) -> usize {
        let mut origins = Vec::new();
        for (_, clients) in self.origins.iter().filter(|(p, _)| attack.processes.contains(p)) {
            for client in clients {
                if !origins.contains(client) {
                    origins.push(client.clone());
                }
            }
        }
        self.events.push(attack.event(origins));
        self.met.push(false);
        self.events.len() - 1
    }
}

/// The clients that an attack on a process starts in: the one that bears its name, or else those
/// that watch columns of it, or else, without such clients, the process itself.
fn watchers(layout: &Layout, process: &str) -> Vec<String> {
    let watches = |name: &str| tag(name).is_some_and(|tag| tag.process == process);
    if layout.client(process).is_none() {
        let clients = layout.clients.iter();
        let watchers: Vec<String> = clients
            .filter(|client| client.sensors.iter().any(|sensor| watches(&sensor.name)))
            .map(|client| client.name.clone())
            .collect();
        if !watchers.is_empty() {
            return watchers;
        }
    }
    vec![process.to_owned()]
}
