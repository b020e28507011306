//! The server's decision in paper mode: flags of one step in, the look-up table, episodes out.

use jiff::Timestamp;

use super::decision::Decision;
use super::episode::Episodes;
use super::lookup::{Voting, look_up};
use crate::evidence::threshold::Flags;
use crate::session::Vote;

/// The look-up and how long its verdicts hold.
#[derive(Debug, Clone)]
pub(super) struct FlagDecider {
    vote: Option<Vote>,
    voting: Option<Voting>,
    episodes: Episodes,
    /// First of the flags Z_c that stand now, for each client.
    risen: Vec<Option<Timestamp>>,
}

impl FlagDecider {
    pub(crate) fn new(clients: usize, vote: Option<Vote>) -> Self {
        Self {
            vote,
            voting: vote.map(|vote| Voting::new(vote, clients)),
            episodes: Episodes::new(clients),
            risen: vec![None; clients],
        }
    }

    /// Another vote from now on. A vote over another horizon begins with an empty one.
    pub(crate) fn set_vote(&mut self, vote: Option<Vote>) {
        if vote != self.vote {
            self.voting = vote.map(|vote| Voting::new(vote, self.risen.len()));
            self.vote = vote;
        }
    }

    pub(crate) fn vote(&self) -> Option<Vote> {
        self.vote
    }

    /// A new run begins: nothing of the one before counts.
    pub(crate) fn reset(&mut self) {
        if let Some(voting) = &mut self.voting {
            voting.reset();
        }
        self.episodes.forget();
        self.risen.fill(None);
    }

    pub(crate) fn step(
        &mut self,
        flags: &[Option<Flags>],
        time: Timestamp,
        decision: &mut Decision,
    ) {
        for (m, flags) in flags.iter().copied().enumerate() {
            if let Some(flags) = flags {
                let risen = &mut self.risen[m];
                *risen = if flags.z_c { risen.or(Some(time)) } else { None };
            }
            let state = &mut decision.clients[m];
            state.raised_since = self.risen[m];
            state.own_fault = flags.is_some_and(|flags| flags.z_a);
        }
        let named = look_up(flags).root();
        let declared = self.voting.as_mut().map_or(named, |voting| voting.step(named));
        self.episodes.step(declared, time, decision);
    }
}
