//! Facts: all events of a step about one incident make one line, in the order of the numbers.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::annunciator::{Annunciator, Place};
use super::event::{Edit, Event, What, moved};
use super::group::{Incident, SensorTrouble};
use super::input::{Closing, TableVerdict};
use super::state::AlarmState;
use crate::fact::{self, Fact, Number, Posterior};

/// The events of one incident since the last facts.
#[derive(Debug, Default)]
struct IncidentChanges {
    opened: bool,
    updates: Vec<String>,
    closed: Option<Closing>,
}

impl Annunciator {
    /// The facts of all events since they were made last.
    pub(super) fn facts(&mut self) -> Vec<Fact> {
        self.enter_first_outs();
        let mut facts = Vec::new();
        let mut news: BTreeMap<u64, IncidentChanges> = BTreeMap::new();
        for event in self.new_events() {
            self.add_fact(event, &mut facts);
            self.add_news(event, &mut news);
        }
        self.told = self.log.events().len();
        for (number, news) in news {
            if news.opened {
                let faults = self.at(number).faults.iter();
                let said = |fault: &SensorTrouble| {
                    format!("{}: {}", self.names[fault.client], fault.what.words())
                };
                let why = faults.map(said).reduce(|all, more| format!("{all}; {more}"));
                facts.push(Fact::Opened(self.incident_fact(number, why)));
            } else if !news.updates.is_empty() {
                let why = news.updates.join("; ");
                facts.push(Fact::Updated(self.incident_fact(number, Some(why))));
            }
            if let Some(why) = news.closed {
                facts.push(Fact::Closed(self.incident_fact(number, Some(why.to_string()))));
            }
        }
        facts
    }

    /// Events of which no facts were made yet.
    pub(super) fn new_events(&self) -> &[Event] {
        &self.log.events()[self.told..]
    }

    /// Only when all have joined is it known who rose first.
    fn enter_first_outs(&mut self) {
        let opened = |event: &Event| {
            if let What::Opened { incident, .. } = event.what { Some(incident) } else { None }
        };
        let opened: Vec<u64> = self.new_events().iter().filter_map(opened).collect();
        for number in opened {
            let incident = self.at(number);
            if let Some(first) = incident.first_out {
                let disagrees = incident.disagrees();
                self.enter(What::FirstOut { incident: number, client: first.client, disagrees });
            }
        }
    }

    /// Adds the facts of an event about data and settings.
    fn add_fact(&self, event: &Event, facts: &mut Vec<Fact>) {
        match &event.what {
            What::Quality { client, what } => {
                let (word, seconds) = (what.word().to_owned(), what.seconds());
                facts.push(self.quality_fact(event.time, *client, word, seconds));
            }
            // A gap or a jump of the clock has its length and no end.
            What::QualityOver { client: Some(client), what } => {
                let word = what.words_over().to_owned();
                facts.push(self.quality_fact(event.time, Some(*client), word, None));
            }
            What::TableVerdict { verdict, since, until, steps, clients } => {
                facts.push(self.table_fact(*verdict, (*since, *until), *steps, clients));
            }
            What::Did(_) => {
                for edit in &event.edits {
                    if let Edit::Setting { what, from, to } = edit {
                        let (what, from, to) = (what.clone(), from.clone(), to.clone());
                        let time = event.time;
                        facts.push(Fact::Setting(fact::Setting { what, from, to, time }));
                    }
                    if let Edit::OutOfService { client, to, .. } = edit {
                        let word = if *to { "alarms suspended" } else { "alarms ask again" };
                        let why = event.why.as_ref().map_or(String::new(), |w| format!(": {w}"));
                        let (time, what) = (event.time, format!("{word}{why}"));
                        facts.push(self.quality_fact(time, Some(*client), what, None));
                    }
                }
            }
            // Incidents have their own lines; of a note the fact was made when it was taken.
            What::QualityOver { client: None, .. }
            | What::Opened { .. }
            | What::FirstOut { .. }
            | What::Joined { .. }
            | What::Left { .. }
            | What::RootMoved { .. }
            | What::RootFinal { .. }
            | What::Stands { .. }
            | What::WentOn { .. }
            | What::Rose { .. }
            | What::Closed { .. }
            | What::WasShelved { .. }
            | What::SensorFault { .. }
            | What::Noted { .. }
            | What::FlagFlood { .. }
            | What::Flood { .. }
            | What::FloodOver => {}
        }
    }

    /// Adds an event about incidents.
    fn add_news(&self, event: &Event, news: &mut BTreeMap<u64, IncidentChanges>) {
        if let What::Opened { incident, .. } = event.what {
            news.entry(incident).or_default().opened = true;
        }
        if let What::Closed { incident, why } = event.what {
            news.entry(incident).or_default().closed = Some(why);
        }
        if let (Some(incident), Some(update)) = (event.incident(), event.update(&self.names)) {
            news.entry(incident).or_default().updates.push(update);
        }
        for edit in &event.edits {
            match edit {
                Edit::Root { incident, from, to } => {
                    let update = moved(*from, *to, &self.names);
                    news.entry(*incident).or_default().updates.push(update);
                }
                Edit::Closed { incident, to: Some(closed), .. } => {
                    news.entry(*incident).or_default().closed = Some(closed.why);
                }
                Edit::Closed { incident, to: None, .. } => {
                    news.entry(*incident).or_default().updates.push("open again".to_owned());
                }
                // A receiver that did not get it while it was suspended gets it now.
                Edit::Alarm { incident, from, to }
                    if from.state == AlarmState::OutOfService
                        && to.state != AlarmState::OutOfService
                        && self.at(*incident).is_open() =>
                {
                    let update = "its alarm is no longer suspended".to_owned();
                    news.entry(*incident).or_default().updates.push(update);
                }
                Edit::Alarm { .. }
                | Edit::Shelf { .. }
                | Edit::OutOfService { .. }
                | Edit::Note { .. }
                | Edit::Setting { .. } => {}
            }
        }
    }

    pub(super) fn quality_fact(
        &self,
        time: Timestamp,
        client: Option<usize>,
        what: String,
        seconds: Option<f64>,
    ) -> Fact {
        let client = client.map(|client| self.names[client].clone());
        let seconds = seconds.and_then(Number::new);
        let Place { file, run } = self.place.clone();
        Fact::Quality(fact::Quality { client, time, what, seconds, file, run })
    }

    fn table_fact(
        &self,
        verdict: TableVerdict,
        (time, until): (Timestamp, Timestamp),
        steps: u64,
        clients: &[usize],
    ) -> Fact {
        let clients = clients.iter().map(|client| self.names[*client].clone()).collect();
        let Place { file, run } = self.place.clone();
        let verdict = verdict.word().to_owned();
        Fact::Verdict(fact::TableEpisode { verdict, time, until, steps, clients, file, run })
    }

    /// An incident as it stands.
    fn incident_fact(&self, number: u64, why: Option<String>) -> fact::Incident {
        let incident = self.at(number);
        let name = |client: usize| self.names[client].clone();
        fact::Incident {
            incident: number,
            time: self.now,
            step: self.step,
            root: incident.root.map(name),
            posterior: self.posterior(incident),
            candidates: incident.candidates.iter().map(|client| name(*client)).collect(),
            first_out: incident.first_out.map(|first| name(first.client)),
            effects: incident
                .effects()
                .map(|member| fact::Effect {
                    client: name(member.client),
                    time: member.onset,
                    delay_s: Number::or_zero(incident.delay_s(member)),
                    verdict: incident.verdict_of(member.client),
                    via: None,
                })
                .collect(),
            mode: self.mode,
            priority: incident.priority,
            disagree: incident.disagrees(),
            verdict: incident.verdict(),
            would_now_say: incident.second_thought().map(name),
            silent_source: incident.silent_source.filter(|_| incident.root.is_some()).map(name),
            continued: incident.continuations.len() as u64,
            stands: incident.is_open() && incident.stands.is_some(),
            suspended: incident.alarm.state == AlarmState::OutOfService,
            why,
            sensors: Vec::new(),
            faults: incident
                .faults
                .iter()
                .map(|fault| fact::SensorFault {
                    client: name(fault.client),
                    what: fault.what.word().to_owned(),
                })
                .collect(),
            file: self.place.file.clone(),
            run: self.place.run.clone(),
        }
    }

    /// Where no probabilities are known, a rule has named the root, and is sure of it.
    fn posterior(&self, incident: &Incident) -> Posterior {
        if incident.posterior.is_empty() {
            let sure = |root: usize| (self.names[root].clone(), Number::or_zero(1.0));
            return Posterior(incident.root.map(sure).into_iter().collect());
        }
        let pairs = self.names.iter().zip(&incident.posterior);
        Posterior(pairs.map(|(name, p)| (name.clone(), Number::or_zero(*p))).collect())
    }
}
