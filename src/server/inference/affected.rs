//! Who is affected by a disturbance: the one rule.
//!
//! A client is affected once its evidence is enough ([`Inference::is_affected_by`]). That decides whose
//! recovery an incident waits for, who raises no alarm of its own for a while afterwards, and which
//! clients the annunciator groups under a root: it gets them as
//! [`ClientState::raised_since`](crate::server::decision::ClientState::raised_since) and only chooses
//! the incident that each of them belongs to.

use super::{Affected, Disturbance, Inference, Open};

impl Inference {
    /// Whether a client's evidence is enough to count as affected by what is open.
    pub(crate) fn is_affected(&self, client: usize) -> bool {
        let said = self.open.as_ref().filter(|open| open.said);
        let roots = said.map_or([None; 2], |open| [open.incident.root, open.root]);
        self.is_affected_by(roots, client)
    }

    /// Whether a client's evidence is enough to count as affected by one of `roots`: little of it where
    /// a root is declared to reach the client, or is the client itself; otherwise so much that chance
    /// seldom makes it.
    fn is_affected_by(&self, roots: [Option<usize>; 2], client: usize) -> bool {
        let is_near = |root: usize| root == client || self.reach.reaches(root, client);
        let enough = if roots.into_iter().flatten().any(is_near) {
            self.rules.effect_evidence
        } else {
            self.rules.stranger_evidence(self.members())
        };
        self.evidence(client) > enough
    }

    /// Adds whoever is affected by now to an open disturbance.
    pub(super) fn join_affected(&self, open: &mut Open) {
        let incident = &mut open.incident;
        let roots = [incident.root, open.root];
        for client in 0..self.clients.len() {
            let known = incident.affected.iter().any(|other| other.client == client);
            if Some(client) == incident.root {
                incident.affected.retain(|other| other.client != client);
            } else if !known && self.is_affected_by(roots, client) {
                let onset = self.onset(client);
                incident.affected.push(Affected { client, onset, joined: self.step });
            }
        }
    }

    /// Whether a client takes part in what is open with a fault of its own.
    pub(crate) fn has_own_fault(&self, client: usize) -> bool {
        let said = self.open.as_ref().filter(|open| open.said);
        said.is_some_and(|open| self.is_not_of(&open.incident, open.root, client))
    }

    /// Whether a client alarms with something that neither the root nor anybody else who stirs can have
    /// caused, and that does not explain the root.
    pub(super) fn is_not_of(
        &self,
        incident: &Disturbance,
        episode: Option<usize>,
        client: usize,
    ) -> bool {
        let stirs = |other: usize| self.evidence(other) > self.rules.effect_evidence;
        incident.root.is_some_and(|root| {
            root != client
                && episode != Some(client)
                && self.clients[client].beyond().is_some()
                && self.reach.excludes(root, client)
                && !self.is_strict_ancestor(client, root)
                && !(0..self.clients.len()).any(|n| stirs(n) && self.reach.reaches(n, client))
        })
    }
}
