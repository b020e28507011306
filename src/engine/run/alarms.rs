//! The alarms of a run, gathered from its facts: what is scored is what was said.

use jiff::Timestamp;

use crate::fact::{Fact, Incident};
use crate::score::Alarm;

/// Alarms in the order of their incidents' numbers, which count from 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Alarms(Vec<Alarm>);

impl Alarms {
    /// Of an incident its opening counts as the alarm, and as its root what the last update says.
    pub(crate) fn hear(&mut self, fact: &Fact) {
        match fact {
            Fact::Opened(incident) => {
                let mut alarm = Alarm::new(incident.time, incident.root.clone());
                say(incident, &mut alarm);
                self.0.push(alarm);
            }
            Fact::Updated(incident) => {
                if let Some(alarm) = self.of(incident) {
                    say(incident, alarm);
                }
            }
            Fact::Closed(incident) => {
                let time = incident.time;
                if let Some(alarm) = self.of(incident) {
                    alarm.closed = Some(time);
                }
            }
            _ => {}
        }
    }

    /// Takes facts in their order.
    pub(crate) fn hear_all(&mut self, facts: &[Fact]) {
        for fact in facts {
            self.hear(fact);
        }
    }

    pub(crate) fn list(&self) -> &[Alarm] {
        &self.0
    }

    fn of(&mut self, incident: &Incident) -> Option<&mut Alarm> {
        self.0.get_mut((incident.incident as usize).checked_sub(1)?)
    }
}

fn say(incident: &Incident, alarm: &mut Alarm) {
    if alarm.root != incident.root {
        let named: Option<Timestamp> = incident.root.is_some().then_some(incident.time);
        alarm.named = named;
        alarm.root.clone_from(&incident.root);
    }
    alarm.posterior =
        incident.posterior.0.iter().map(|(client, p)| (client.clone(), p.get())).collect();
    alarm.effects = incident.effects.iter().map(|effect| effect.client.clone()).collect();
}
