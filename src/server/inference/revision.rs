//! A final root that is revised, and who may stand behind a root.

use super::{Change, Inference, Open};

impl Inference {
    /// A final root gives way to a client that alarms, that reaches it and that it does not reach.
    pub(super) fn revise(&mut self, open: &mut Open) {
        let incident = &mut open.incident;
        // The time counts from the alarm. An incident that was held back has `opened` later than that.
        if !incident.frozen || self.step > open.alarmed + self.rules.revision {
            return;
        }
        let mut revised = false;
        while let Some(root) = incident.root {
            let strict = (0..self.clients.len())
                .filter(|n| self.clients[*n].is_heard() && self.is_strict_ancestor(*n, root));
            let alarming = strict.filter_map(|n| Some((n, self.clients[n].beyond()?)));
            let most = alarming.max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a)));
            let Some(ancestor) = most.and_then(|(n, _)| self.nameable(n)) else { break };
            if open.root == Some(root) {
                open.root = Some(ancestor);
            }
            incident.root = Some(ancestor);
            incident.revised_from = Some(root);
            incident.affected.retain(|effect| effect.client != ancestor);
            revised = true;
        }
        if revised && open.said {
            self.changes.push(Change::Revised(open.incident.clone()));
        }
    }

    /// Whether `client` reaches `root`, and `root` does not reach it.
    pub(super) fn is_strict_ancestor(&self, client: usize, root: usize) -> bool {
        client != root && self.reach.reaches(client, root) && !self.reach.reaches(root, client)
    }

    /// A source that could explain the named root and shows nothing itself: a declared parent of the
    /// root that nobody reaches.
    pub(crate) fn silent_source(&self, root: usize) -> Option<usize> {
        let is_silent = |n: &usize| {
            self.reach.is_source(*n)
                && self.clients[*n].is_candidate()
                && self.evidence(*n) < self.rules.effect_evidence
        };
        self.reach.parents(root).find(is_silent)
    }
}
