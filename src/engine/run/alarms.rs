//! The alarms of a run, gathered from its facts: the facts are scored, not the decisions behind them.

use crate::fact::{Fact, Incident};
use crate::score::{AlarmUpdate, Alarms, Effect, RootUpdate};

/// Takes facts in their order.
pub(super) fn gather(alarms: &mut Alarms, facts: &[Fact]) {
    for fact in facts {
        match fact {
            Fact::Opened(incident) => alarms.open(update(incident)),
            Fact::Updated(incident) => {
                alarms.update(update(incident));
            }
            Fact::Closed(incident) => {
                alarms.close(incident.incident, incident.time);
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
}

fn update(incident: &Incident) -> AlarmUpdate {
    let posterior = incident.posterior.0.iter().map(|(client, p)| (client.clone(), p.get()));
    let effects = incident.effects.iter().map(|effect| Effect { client: effect.client.clone() });
    AlarmUpdate {
        incident: incident.incident,
        time: incident.time,
        root: RootUpdate::To(incident.root.clone()),
        posterior: Some(posterior.collect()),
        effects: Some(effects.collect()),
        step: Some(incident.step),
        silent_source: incident.silent_source.clone(),
        sensors: incident.sensors.clone(),
    }
}
