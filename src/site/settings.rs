//! Settings of a site that change while it runs: which method decides, ε, budget and the rule of flags.

use jiff::Timestamp;

use super::flags::FlagRule;
use super::{Sent, Site};
use crate::privacy::{Budget, Faults, PrivacyError, Provenance};
use crate::session::Mode;

impl Site {
    /// Another method decides from now on: its messages are sent from the next step on.
    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Whether every symbol and flag may have another ε from now on.
    pub(crate) fn check_epsilon(&self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        if let Some(evidence) = &self.evidence {
            evidence.sender.check_epsilon(epsilon)?;
        }
        self.flags.as_ref().map_or(Ok(()), |flags| flags.sender.check_epsilon(epsilon))
    }

    /// Another ε of every symbol and flag from now on; the site enrols again.
    pub(crate) fn set_epsilon(
        &mut self,
        epsilon: Option<f64>,
        send: &mut dyn FnMut(Sent),
    ) -> Result<(), PrivacyError> {
        self.check_epsilon(epsilon)?;
        if let Some(flags) = &mut self.flags {
            flags.sender.set_epsilon(epsilon)?;
        }
        if let Some(evidence) = &mut self.evidence {
            evidence.sender.set_epsilon(epsilon)?;
        }
        self.session.privacy.epsilon_flag = epsilon;
        self.was_protected |= epsilon.is_some();
        if !self.session.privacy.tells_faults() {
            // It is told anew when it may be told again.
            self.told_faults = Faults::default();
        }
        self.enrol(send)
    }

    /// Another ε of Z_a from now on; with none it has that of Z_c.
    pub(crate) fn set_epsilon_a(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        if let Some(flags) = &mut self.flags {
            flags.sender.set_epsilon_a(epsilon)?;
        }
        self.session.privacy.epsilon_flag_a = epsilon;
        self.was_protected |= epsilon.is_some();
        if !self.session.privacy.tells_faults() {
            self.told_faults = Faults::default();
        }
        Ok(())
    }

    /// Flags follow another rule from now on.
    pub(crate) fn set_rule(&mut self, rule: FlagRule) {
        if let Some(flags) = &mut self.flags {
            flags.set_rule(rule);
        }
    }

    /// Another budget from now on.
    pub(crate) fn set_budget(
        &mut self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        self.ledger.set_budget(budget, now)?;
        if let Some(evidence) = &mut self.evidence {
            evidence.sender.set_budget(budget.is_some());
        }
        Ok(())
    }

    /// Another δ of every composed ε from now on.
    pub(crate) fn set_delta(&mut self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        self.ledger.set_delta(delta, now)?;
        self.rehearsal.set_delta(delta, now)
    }

    /// What is sent from now on remembers every sample without end.
    pub(crate) fn never_forget(&mut self, now: Timestamp) -> Result<(), PrivacyError> {
        self.ledger.never_forget(now)
    }

    /// Whether its run so far can be sent again without telling more about its samples: in a seeded
    /// run, since nothing in it is private, and where nothing was ever protected.
    pub(crate) fn repeats_freely(&self) -> bool {
        Provenance::of(&self.session) == Provenance::Seeded || !self.was_protected
    }

    /// ε of each symbol and flag as it is now.
    pub(crate) fn epsilon(&self) -> Option<f64> {
        self.session.privacy.epsilon_flag
    }

    /// ε of each Z_a, where it has one of its own.
    pub(crate) fn epsilon_flag_a(&self) -> Option<f64> {
        self.session.privacy.epsilon_flag_a
    }
}
