//! Changes of the terms that a ledger is kept by.

use jiff::Timestamp;

use super::Ledger;
use crate::privacy::PrivacyError;
use crate::privacy::budget::{Budget, Gate, Terms};
use crate::privacy::chain::Entry;
use crate::privacy::memory::FilterMemory;

impl Ledger {
    /// Whether a budget covers what is spent: what is spent stays spent.
    pub(crate) fn check_budget(
        &self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        self.covers(budget, self.terms.delta, now)
    }

    /// Whether the budget covers what is spent when it is read at another δ.
    pub(crate) fn check_delta(&self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        Terms { delta, ..self.terms }.checked()?;
        self.covers(self.terms.budget, delta, now)
    }

    fn covers(
        &self,
        budget: Option<Budget>,
        delta: f64,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        let Some(Budget { epsilon: asked, over, .. }) = budget else { return Ok(()) };
        let spent = self.tally(over, now).epsilon(delta).0;
        if spent <= asked {
            return Ok(());
        }
        Err(PrivacyError::BelowSpent { client: self.client.clone(), over, asked, spent })
    }

    /// Changes the budget from now on; the line says so.
    pub(crate) fn set_budget(
        &mut self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<String, PrivacyError> {
        self.check_budget(budget, now)?;
        self.terms.budget = budget;
        self.judge_anew();
        Ok(self.write(now, Entry::Budget { budget }))
    }

    /// Reads every composed ε at another δ from now on; the line says so.
    pub(crate) fn set_delta(&mut self, delta: f64, now: Timestamp) -> Result<String, PrivacyError> {
        self.check_delta(delta, now)?;
        self.terms.delta = delta;
        self.judge_anew();
        Ok(self.write(now, Entry::Delta { delta }))
    }

    /// Takes samples to be remembered in another way from now on, where the terms are the same
    /// otherwise; the line says so.
    pub(crate) fn set_memory(
        &mut self,
        memory: FilterMemory,
        now: Timestamp,
    ) -> Result<String, PrivacyError> {
        self.terms.memory = memory.checked()?;
        self.judge_anew();
        Ok(self.write(now, Entry::Memory { memory }))
    }

    /// What fitted before need not fit now, and the other way round.
    fn judge_anew(&mut self) {
        (self.routine, self.alarm, self.stopped) = (Gate::default(), Gate::default(), false);
    }
}
