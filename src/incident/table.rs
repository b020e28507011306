//! Paper mode: the verdicts of Table 1, step by step, as episodes.
//!
//! An episode is a run of steps with one declared verdict. Where the verdict names a root cause the
//! episode is an incident, and its effects are the clients that show (1,0) in it. Every other verdict
//! is a line of the log and a fact at the end of its episode, and no alarm.
//!
//! Nothing else is done: no grouping beyond the run of steps, no second fault behind the first, no
//! single anomaly, no largest age. That is Algorithm 2.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::annunciator::Annunciator;
use super::event::What;
use super::group::Origin;
use super::input::{ClientState, Closing, TableVerdict};
use crate::fact::TableCounts;

/// The verdicts of Table 1 in a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    running: Option<Episode>,
    counts: TableCounts,
}

/// A run of steps with one verdict.
#[derive(Debug, Clone)]
struct Episode {
    verdict: TableVerdict,
    since: Timestamp,
    until: Timestamp,
    steps: u64,
    /// All clients with a flag in it.
    clients: BTreeSet<usize>,
    /// The incident, where a root is named.
    incident: Option<u64>,
}

impl Annunciator {
    /// The verdict of Table 1 at the present step, in paper mode.
    pub(crate) fn declared(&self) -> Option<TableVerdict> {
        self.table.running.as_ref().map(|episode| episode.verdict)
    }

    /// Episodes and steps of every verdict so far; none where Table 1 has decided nothing.
    pub(crate) fn table_counts(&self) -> Option<TableCounts> {
        (self.table.counts != TableCounts::default()).then_some(self.table.counts)
    }

    /// Takes the verdict of this step.
    pub(super) fn follow_table(&mut self, verdict: TableVerdict, clients: &[ClientState]) {
        if self.declared() != Some(verdict) {
            let quiet = verdict == TableVerdict::NoAnomaly;
            self.end_table_episode(if quiet { Closing::Quiet } else { Closing::AnotherVerdict });
            self.begin_table_episode(verdict, clients);
        }
        self.table.counts.of_mut(verdict).steps += 1;
        let Some(episode) = &mut self.table.running else { return };
        (episode.until, episode.steps) = (self.now, episode.steps + 1);
        let has_flag = |state: &ClientState| state.raised_since.is_some() || state.own_fault;
        let flagged = clients.iter().enumerate().filter(|(_, state)| has_flag(state));
        episode.clients.extend(flagged.map(|(client, _)| client));
        let Some(number) = episode.incident else { return };
        for (client, state) in clients.iter().enumerate() {
            if state.raised_since.is_some() && !state.own_fault {
                self.join(number, client, clients);
            }
            self.follow_member(number, client, *state);
        }
    }

    fn begin_table_episode(&mut self, verdict: TableVerdict, clients: &[ClientState]) {
        self.table.counts.of_mut(verdict).episodes += 1;
        let known = verdict.root().filter(|root| *root < self.posts.len());
        let incident = known.map(|root| {
            let number = self.open(Origin::Decided, self.now, Some(root));
            self.join(number, root, clients);
            // Another root would be another episode.
            self.at_mut(number).frozen = true;
            number
        });
        self.table.running = Some(Episode {
            verdict,
            since: self.now,
            until: self.now,
            steps: 0,
            clients: BTreeSet::new(),
            incident,
        });
    }

    /// The running episode is over, if there is one.
    pub(super) fn end_table_episode(&mut self, why: Closing) {
        let Some(episode) = self.table.running.take() else { return };
        let Episode { verdict, since, until, steps, clients, incident } = episode;
        match incident {
            Some(number) => self.close(number, why),
            None if verdict == TableVerdict::NoAnomaly => {}
            None => {
                let clients = clients.into_iter().collect();
                self.enter(What::TableVerdict { verdict, since, until, steps, clients });
            }
        }
    }
}
