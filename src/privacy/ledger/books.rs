//! One client's ledger at work.

use jiff::Timestamp;

use super::{Budget, Entered, Ledger, Purpose, Refusal, Terms, Trained};
use crate::privacy::PrivacyError;
use crate::privacy::memory::FilterMemory;
use crate::privacy::randomness::Provenance;
use crate::privacy::release::{Guarded, Released, Spend, What};

/// One client's ledger at work: its lines that nobody has stored yet, and why something could not be
/// released.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    ledger: Ledger,
    lines: String,
    writes: bool,
    /// Why something could not be released, until somebody asks.
    trouble: Option<String>,
}

impl Book {
    /// A ledger that counts and admits but writes nothing, on the client's terms.
    pub(crate) fn unwritten(client: &str, terms: Terms) -> Result<Self, PrivacyError> {
        let ledger = Ledger::unwritten(client, terms)?;
        Ok(Self { ledger, lines: String::new(), writes: false, trouble: None })
    }

    /// Begins to write at `time`, as a continuation of this client's ledger in `kept`, where there is
    /// one. It must come before the first release.
    pub(crate) fn write_from(
        &mut self,
        time: Timestamp,
        kept: &[Ledger],
    ) -> Result<(), PrivacyError> {
        self.writes = true;
        let terms = self.ledger.terms;
        let continued = kept.iter().find(|kept| kept.client == self.ledger.client);
        if let Some(kept) = continued {
            self.ledger = kept.clone();
            if self.ledger.terms.memory != terms.memory {
                self.lines += &self.ledger.set_memory(terms.memory, time)?;
            }
            if self.ledger.terms.delta.to_bits() != terms.delta.to_bits() {
                // The old budget was one at the old δ.
                self.lines += &self.ledger.set_budget(None, time)?;
                self.lines += &self.ledger.set_delta(terms.delta, time)?;
            }
            if self.ledger.terms.budget != terms.budget {
                self.lines += &self.ledger.set_budget(terms.budget, time)?;
            }
        } else {
            let (opened, line) = Ledger::open(&self.ledger.client, terms, time)?;
            self.ledger = opened;
            self.lines += &line;
        }
        Ok(())
    }

    /// Enters the trainings that are not entered yet.
    pub(crate) fn enter_training(&mut self, from: Timestamp, trained: &[Trained]) {
        for line in self.ledger.enter_training(from, trained) {
            self.lines += &line;
        }
    }

    /// Enters a release, if the budget allows it.
    pub(crate) fn enter<T>(
        &mut self,
        time: Timestamp,
        what: What,
        purpose: Purpose,
        guarded: Guarded<T>,
    ) -> Result<Released<T>, Refusal> {
        let Entered { released, line } = self.ledger.enter(time, what, purpose, guarded)?;
        self.lines += &line;
        Ok(released)
    }

    /// Releases what is made of releases that `trained` lists, once they are entered: it tells
    /// nothing more than they do.
    pub(crate) fn enter_made_of<T>(
        &mut self,
        from: Timestamp,
        trained: &[Trained],
        value: T,
        provenance: Provenance,
    ) -> Released<T> {
        self.enter_training(from, trained);
        Released::new(value, provenance)
    }

    /// Notes something that is made of released values: it is counted and costs nothing.
    pub(crate) fn note_derived(&mut self, time: Timestamp, what: What, spend: Spend) {
        debug_assert!(what.is_derived(), "{what:?} tells something new");
        self.lines += &self.ledger.note_derived(time, what, spend);
    }

    /// Another budget from now on; refused where more is spent.
    pub(crate) fn set_budget(
        &mut self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        self.lines += &self.ledger.set_budget(budget, now)?;
        Ok(())
    }

    /// Another δ of every composed ε from now on; refused where the budget is below what that makes
    /// of what is spent.
    pub(crate) fn set_delta(&mut self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        self.lines += &self.ledger.set_delta(delta, now)?;
        Ok(())
    }

    /// What is sent from now on remembers every sample without end.
    pub(crate) fn never_forget(&mut self, now: Timestamp) -> Result<(), PrivacyError> {
        if !self.ledger.terms().memory.is_endless() {
            self.lines += &self.ledger.set_memory(FilterMemory::ENDLESS, now)?;
        }
        Ok(())
    }

    /// The run has ended at `time`.
    pub(crate) fn close(&mut self, time: Timestamp) {
        self.lines += &self.ledger.close(time);
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The ledger, for what it counts beside releases.
    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Something could not be released.
    pub(crate) fn fail(&mut self, why: &PrivacyError) {
        self.trouble.get_or_insert(why.to_string());
    }

    /// Why something could not be released since this was asked last.
    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// The lines written since this was asked last: they must be stored before what they tell of is
    /// sent.
    pub(crate) fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }
}
