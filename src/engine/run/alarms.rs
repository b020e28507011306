//! The alarms of a run, gathered from its facts: the facts are scored, not the decisions behind them.

use crate::fact::{Fact, Incident};
use crate::score::{self, Alarm, AlarmUpdate, RootUpdate};

#[derive(Debug, Clone, Default)]
pub(super) struct Alarms(score::Alarms);

impl Alarms {
    pub(super) fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::Opened(incident) => self.0.open(update(incident)),
            Fact::Updated(incident) => {
                self.0.update(update(incident));
            }
            Fact::Closed(incident) => {
                self.0.close(incident.incident, incident.time);
            }
            Fact::Training(_)
            | Fact::Calibrated(_)
            | Fact::Verdict(_)
            | Fact::Setting(_)
            | Fact::Ledger(_)
            | Fact::Quality(_)
            | Fact::Summary(_) => {}
        }
    }

    /// Takes facts in their order.
    pub(super) fn take_all(&mut self, facts: &[Fact]) {
        for fact in facts {
            self.take(fact);
        }
    }

    pub(super) fn list(&self) -> &[Alarm] {
        self.0.list()
    }
}

fn update(incident: &Incident) -> AlarmUpdate {
    let posterior = incident.posterior.0.iter().map(|(client, p)| (client.clone(), p.get()));
    let effects = incident.effects.iter().map(|effect| effect.client.clone());
    AlarmUpdate {
        incident: incident.incident,
        time: incident.time,
        root: RootUpdate::To(incident.root.clone()),
        posterior: Some(posterior.collect()),
        effects: Some(effects.collect()),
        step: Some(incident.step),
        silent_source: incident.silent_source.clone(),
        sensor: incident.sensors.first().cloned(),
    }
}
