//! Facts: everything that became known of an incident in one step is said at once, in the order of
//! the numbers.

use jiff::Timestamp;

use super::annunciator::{Annunciator, Place};
use super::group::{Incident, SensorTrouble};
use super::input::{Closing, QualityNote};
use super::log::What;
use crate::fact::{self, Fact, Number, Posterior};

/// What is new about an incident since facts were last told.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct News {
    pub(crate) opened: bool,
    /// What else happened, in words.
    pub(crate) updates: Vec<String>,
    pub(crate) closed: Option<Closing>,
}

impl Annunciator {
    /// Notes something to be told about an incident.
    pub(super) fn report(&mut self, number: u64, words: String) {
        self.news.entry(number).or_default().updates.push(words);
    }

    pub(super) fn tell(&mut self) -> Vec<Fact> {
        let mut facts = std::mem::take(&mut self.facts);
        for (number, news) in std::mem::take(&mut self.news) {
            if news.opened {
                self.enter_first_out(number);
                let faults = self.at(number).faults.iter();
                let said = |fault: &SensorTrouble| {
                    format!("{}: {}", self.names[fault.client], fault.what.said())
                };
                let why = faults.map(said).reduce(|all, more| format!("{all}; {more}"));
                facts.push(Fact::Opened(self.fact(number, why)));
            } else if !news.updates.is_empty() {
                let why = news.updates.join("; ");
                facts.push(Fact::Updated(self.fact(number, Some(why))));
            }
            if let Some(why) = news.closed {
                facts.push(Fact::Closed(self.fact(number, Some(why.to_string()))));
            }
        }
        facts
    }

    /// Only when all have joined is it known who rose first.
    fn enter_first_out(&mut self, number: u64) {
        let incident = self.at(number);
        if let Some(first) = incident.first_out {
            let disagrees = incident.disagrees();
            self.enter(What::FirstOut { incident: number, client: first.client, disagrees });
        }
    }

    pub(super) fn tell_quality(&mut self, note: &QualityNote) {
        let (what, seconds) = (note.what.word().to_owned(), note.what.seconds());
        let fact = self.quality_fact(self.now, note.client, what, seconds);
        self.facts.push(fact);
    }

    /// A gap or a jump of the clock has its length and no end; everything else is well again some day.
    pub(super) fn tell_quality_over(&mut self, note: &QualityNote) {
        if note.client.is_some() {
            let what = note.what.said_over().to_owned();
            let fact = self.quality_fact(self.now, note.client, what, None);
            self.facts.push(fact);
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

    /// An incident as it stands.
    fn fact(&self, number: u64, why: Option<String>) -> fact::Incident {
        let incident = self.at(number);
        let name = |client: usize| self.names[client].clone();
        fact::Incident {
            incident: number,
            time: self.now,
            step: self.step,
            root: incident.root.map(name),
            posterior: self.posterior(incident),
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

    pub(super) fn name_or(&self, client: Option<usize>) -> &str {
        client.map_or("?", |client| &self.names[client])
    }
}
