//! Adds to a fact how an effect can have come about, by known influences.

use crate::fact::{Fact, Incident, Number, Via};
use crate::server::influence::InfluenceGraph;

/// Adds to every effect of every incident the influences that lead from its root to it. An effect
/// without such a chain stays without one: what is not known to exist may still exist.
pub(super) fn explain(graph: &InfluenceGraph, facts: &mut [Fact]) {
    for fact in facts {
        if let Fact::Opened(incident) | Fact::Updated(incident) | Fact::Closed(incident) = fact {
            explain_incident(graph, incident);
        }
    }
}

fn explain_incident(graph: &InfluenceGraph, incident: &mut Incident) {
    let place = |name: &String| graph.clients.iter().position(|client| client == name);
    let Some(root) = incident.root.as_ref().and_then(place) else { return };
    for effect in &mut incident.effects {
        let path = place(&effect.client).and_then(|to| graph.path(root, to));
        effect.via = path.map(|path| Via {
            path: path.clients.iter().map(|client| graph.clients[*client].clone()).collect(),
            delay_s: path.delay_s.and_then(Number::new),
            learned: path.learned,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{Effect, Posterior, Priority, Verdict};
    use crate::session::Mode;
    use jiff::Timestamp;

    #[test]
    fn an_effect_is_explained_by_the_influences_that_lead_to_it_and_only_by_them() {
        let names = ["P1", "P2", "P3"].map(str::to_owned);
        let mut graph = InfluenceGraph::unlearned(&names, 5.0, "by hand")
            .with_declared(&[("P2".into(), "P3".into())]);
        for pair in graph.pairs.iter_mut().filter(|pair| (pair.from, pair.to) == (0, 1)) {
            (pair.learned, pair.delay_steps) = (true, Some(4));
        }
        let effect = |client: &str| Effect {
            client: client.to_owned(),
            time: Timestamp::UNIX_EPOCH,
            delay_s: Number::or_zero(0.0),
            verdict: Verdict::PropagatedEffect,
            via: None,
        };
        let incident = |root: Option<&str>, effects: &[&str]| {
            Fact::Opened(Incident {
                incident: 1,
                time: Timestamp::UNIX_EPOCH,
                step: 1,
                root: root.map(str::to_owned),
                posterior: Posterior(Vec::new()),
                candidates: Vec::new(),
                first_out: None,
                effects: effects.iter().map(|client| effect(client)).collect(),
                mode: Mode::Evidence,
                priority: Priority::P2,
                disagree: false,
                verdict: Verdict::RootCause,
                would_now_say: None,
                silent_source: None,
                continued: 0,
                stands: false,
                suspended: false,
                why: None,
                sensors: Vec::new(),
                faults: Vec::new(),
                file: None,
                run: None,
            })
        };
        let mut facts = [
            incident(Some("P1"), &["P2", "P3"]),
            incident(Some("P3"), &["P1"]),
            incident(None, &["P1"]),
        ];
        explain(&graph, &mut facts);
        let via = |fact: usize, effect: usize| match &facts[fact] {
            Fact::Opened(incident) => incident.effects[effect].via.clone(),
            _ => None,
        };
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let straight = Via { path: path(&["P1", "P2"]), delay_s: Number::new(20.0), learned: true };
        assert_eq!(via(0, 0), Some(straight));
        let further = Via { path: path(&["P1", "P2", "P3"]), delay_s: None, learned: false };
        assert_eq!(via(0, 1), Some(further));
        assert_eq!((via(1, 0), via(2, 0)), (None, None));
    }
}
