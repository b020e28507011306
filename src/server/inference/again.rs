//! A member of an open episode that was nearly quiet and is disturbed again.
//!
//! While the root stays saturated its own symbols cannot show a second disturbance, but those who feel
//! it become quiet and feel it again. The same happens to a root that falls to low levels and rises to
//! middle ones, which [`resurgence`](super::resurgence) does not see.
//!
//! ```text
//! v = ln L/D      L = Beta([`Rules::nearly_quiet`]), D = Beta of a root cause, of a member's p-values
//! G = max(0, G + v)    it has been nearly quiet:       G > 2
//! U = max(0, U − v)    then it is disturbed again:     U > 4, and what its symbols say since U last
//!                                                      stood at zero would raise an alarm by itself
//! ```
//!
//! An effect that joins after the propagation window was quiet until then. What is found is announced
//! as a continuation. It opens no incident and moves no root.

use super::{Affected, Change, Inference, Open};

/// G from which on a member has been nearly quiet.
const QUIET: f64 = 2.0;
/// U from which on it is disturbed again.
const DISTURBED: f64 = 4.0;

/// How one member of an open episode becomes quiet and is disturbed again.
#[derive(Debug, Clone, Default)]
pub(super) struct Again {
    /// G.
    quiet: f64,
    was_quiet: bool,
    /// U.
    disturbed: f64,
    /// What its symbols say since U last stood at zero.
    evidence: f64,
    /// When it was said last.
    said_at: Option<u64>,
}

impl Again {
    /// One that was quiet until now.
    fn late() -> Self {
        Self { was_quiet: true, ..Self::default() }
    }

    /// One that was said to be disturbed again at `step`.
    pub(super) fn said(step: u64) -> Self {
        Self { said_at: Some(step), ..Self::default() }
    }

    /// Takes a step: `calms` is v and `own` is λ^RC.
    fn add(&mut self, calms: f64, own: f64) {
        if !self.was_quiet {
            self.quiet = (self.quiet + calms).max(0.0);
            self.was_quiet = self.quiet > QUIET;
            return;
        }
        self.disturbed = (self.disturbed - calms).max(0.0);
        self.evidence = if self.disturbed == 0.0 { 0.0 } else { self.evidence + own };
    }

    /// Begins again if it is disturbed again and was not said to be for so many steps.
    fn take(&mut self, threshold: f64, step: u64, seldom: u64) -> bool {
        let is_due = self.said_at.is_none_or(|at| step >= at + seldom);
        let is_again = is_due && self.disturbed > DISTURBED && self.evidence > threshold;
        if is_again {
            *self = Self::said(step);
        }
        is_again
    }
}

impl Inference {
    /// Follows the members of an open episode and announces that it goes on where one of them is
    /// disturbed again, at most once a member in a propagation window.
    pub(super) fn announce_again(&mut self, open: &mut Open) {
        let Some(root) = open.root.filter(|_| open.frozen && open.said) else { return };
        let (incident, window) = (&open.incident, self.rules.afterglow);
        open.members.resize(self.clients.len(), None);
        let mut is_again = false;
        for (n, member) in open.members.iter_mut().enumerate() {
            let effect = incident.affected.iter().find(|effect| effect.client == n);
            if effect.is_none() && n != root {
                *member = None;
                continue;
            }
            let is_late = |effect: &Affected| {
                effect.joined == self.step && self.step > incident.opened + window
            };
            let new = || if effect.is_some_and(is_late) { Again::late() } else { Again::default() };
            let member = member.get_or_insert_with(new);
            member.add(self.calms[n], self.own[n]);
            if member.take(self.clients[n].threshold, self.step, window) {
                is_again = true;
                if n == root {
                    open.resurgence.said_at = Some(self.step);
                }
            }
        }
        if is_again {
            self.announce(open, root);
        }
    }

    /// Says that an open episode goes on.
    pub(super) fn announce(&mut self, open: &mut Open, root: usize) {
        open.incident.continue_with(Some(root));
        self.changes.push(Change::Continued(open.incident.clone()));
    }
}
