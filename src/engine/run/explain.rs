//! What the server can add to a fact: how an effect can have come about, by known influences.

use crate::evidence::influence::InfluenceGraph;
use crate::fact::{Fact, Incident, Number, Via};

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
