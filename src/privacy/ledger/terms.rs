//! Changes of the terms that a ledger is kept by.

use jiff::Timestamp;

use super::Ledger;
use crate::privacy::PrivacyError;
use crate::privacy::budget::{Budget, Gate, Terms};
use crate::privacy::chain::Entry;
use crate::privacy::memory::FilterMemory;

impl Ledger {
    /// Begins to write at `time`, as a continuation of this client's ledger in `kept`, where there is
    /// one. It must come before the first release.
    pub(crate) fn write_from(
        &mut self,
        time: Timestamp,
        kept: &[Ledger],
    ) -> Result<(), PrivacyError> {
        let terms = self.terms;
        let Some(kept) = kept.iter().find(|kept| kept.client == self.client) else {
            *self = Self::open(&self.client, terms, time)?;
            return Ok(());
        };
        *self = kept.clone();
        if self.terms.memory != terms.memory {
            self.set_memory(terms.memory, time)?;
        }
        if self.terms.delta.to_bits() != terms.delta.to_bits() {
            // The old budget was one at the old δ.
            self.set_budget(None, time)?;
            self.set_delta(terms.delta, time)?;
        }
        if self.terms.budget != terms.budget {
            self.set_budget(terms.budget, time)?;
        }
        Ok(())
    }

    /// What is sent from now on remembers every sample without end.
    pub(crate) fn never_forget(&mut self, now: Timestamp) -> Result<(), PrivacyError> {
        if self.terms.memory.is_endless() {
            return Ok(());
        }
        self.set_memory(FilterMemory::ENDLESS, now)
    }

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
        let Some(budget) = budget else { return Ok(()) };
        let Budget { epsilon: asked, over, .. } = budget;
        let spent = self.counted(&budget, now).epsilon(delta).0;
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
    ) -> Result<(), PrivacyError> {
        self.check_budget(budget, now)?;
        self.terms.budget = budget;
        self.judge_anew();
        self.write(now, Entry::Budget { budget });
        Ok(())
    }

    /// Reads every composed ε at another δ from now on; the line says so.
    pub(crate) fn set_delta(&mut self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        self.check_delta(delta, now)?;
        self.terms.delta = delta;
        self.judge_anew();
        self.write(now, Entry::Delta { delta });
        Ok(())
    }

    /// Takes samples to be remembered in another way from now on, where the terms are the same
    /// otherwise; the line says so.
    pub(crate) fn set_memory(
        &mut self,
        memory: FilterMemory,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        self.terms.memory = memory.checked()?;
        self.judge_anew();
        self.write(now, Entry::Memory { memory });
        Ok(())
    }

    /// What fitted before need not fit now, and the other way round.
    fn judge_anew(&mut self) {
        (self.routine, self.alarm, self.stopped) = (Gate::default(), Gate::default(), false);
    }
}
