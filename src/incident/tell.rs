//! Facts: everything that became known of an incident in one step is said at once, in the order of
//! the numbers.

use super::annunciator::Annunciator;
use super::group::Incident;
use super::input::{Closing, QualityNote};
use super::log::What;
use crate::fact::{self, Fact, Number, Posterior};

/// What is new about an incident since facts were last told.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct News {
    /// It opened.
    pub opened: bool,
    /// What else happened, in words.
    pub updates: Vec<String>,
    /// It closed.
    pub closed: Option<Closing>,
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
                facts.push(Fact::Opened(self.fact(number, None)));
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
        self.facts.push(Fact::Quality(fact::Quality {
            client: note.client.map(|client| self.names[client].clone()),
            time: self.now,
            what: note.what.word().to_owned(),
            seconds: note.what.seconds().and_then(Number::new),
        }));
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
                    via: None,
                })
                .collect(),
            mode: self.mode,
            priority: incident.priority,
            disagree: incident.disagrees(),
            would_now_say: incident.second_thought().map(name),
            why,
            sensors: Vec::new(),
        }
    }

    fn posterior(&self, incident: &Incident) -> Posterior {
        let pairs = self.names.iter().zip(&incident.posterior);
        Posterior(pairs.map(|(name, p)| (name.clone(), Number::or_zero(*p))).collect())
    }

    pub(super) fn name_or(&self, client: Option<usize>) -> &str {
        client.map_or("?", |client| &self.names[client])
    }
}
