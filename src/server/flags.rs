//! The server's decision in paper mode: flags of one step in, the verdict of the look-up table out.

use jiff::Timestamp;

use super::decision::Decision;
use super::lookup::{TableVerdict, Voting, look_up};
use crate::evidence::threshold::Flags;
use crate::session::Vote;

/// The look-up, and the vote where one is set.
#[derive(Debug, Clone)]
pub(super) struct FlagDecider {
    vote: Option<Vote>,
    voting: Option<Voting>,
    /// First of the flags Z_c that stand now, for each client; not before the run of steps with the present
    /// verdict.
    risen: Vec<Option<Timestamp>>,
    /// What was declared at the last step.
    declared: Option<TableVerdict>,
}

impl FlagDecider {
    pub(crate) fn new(clients: usize, vote: Option<Vote>) -> Self {
        Self {
            vote,
            voting: vote.map(|vote| Voting::new(vote, clients)),
            risen: vec![None; clients],
            declared: None,
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
        self.risen.fill(None);
        self.declared = None;
    }

    pub(crate) fn step(
        &mut self,
        flags: &[Option<Flags>],
        time: Timestamp,
        decision: &mut Decision,
    ) {
        let verdict = look_up(flags);
        let declared = match &mut self.voting {
            None => verdict,
            Some(voting) => match (voting.step(verdict.root()), verdict) {
                (Some(root), _) => TableVerdict::RootCause(root),
                // A root without enough votes is not declared.
                (None, TableVerdict::RootCause(_)) => TableVerdict::NoAnomaly,
                (None, other) => other,
            },
        };
        // An episode is all that Algorithm 2 knows: a flag that rose in the one before has no onset there.
        if self.declared.replace(declared) != Some(declared) {
            self.risen.fill(None);
        }
        decision.table = Some(declared);
        for (m, flags) in flags.iter().copied().enumerate() {
            // A client without flags takes no part in this step.
            let Some(flags) = flags else { continue };
            let risen = &mut self.risen[m];
            *risen = if flags.z_c { risen.or(Some(time)) } else { None };
            let state = &mut decision.clients[m];
            state.raised_since = *risen;
            state.own_fault = flags.z_a;
        }
    }
}
