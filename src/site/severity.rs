//! How severe the first highest symbol of a burst is, sent with it.
//!
//! A burst begins with a highest symbol after one that is not. That follows from the symbols that were released,
//! so it reveals nothing more. The severity has a randomised response of its own, with the ε of a symbol,
//! and is entered in the ledger. It is sent only where the session asks for it.

use crate::evidence::severity::SEVERITIES;
use crate::privacy::{
    Account, PrivacyError, Purpose, Randomness, Released, Response, Symbol, Unprotected as _, What,
};

/// Releases the severities of one client.
#[derive(Debug)]
pub(super) struct SeveritySender {
    /// Absent: no noise.
    response: Option<Response>,
    random: Randomness,
    /// The last symbol that was released was of the highest level.
    was_highest: bool,
}

impl SeveritySender {
    pub(super) fn new(epsilon: Option<f64>, random: Randomness) -> Result<Self, PrivacyError> {
        let mut sender = Self { response: None, random, was_highest: false };
        sender.set_epsilon(epsilon)?;
        Ok(sender)
    }

    pub(super) fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.response = epsilon.map(|epsilon| Response::new(epsilon, SEVERITIES)).transpose()?;
        Ok(())
    }

    /// A new run begins.
    pub(super) fn reset(&mut self) {
        self.was_highest = false;
    }

    /// The severity of a step whose symbol was released, where a burst begins with it.
    pub(super) fn release(
        &mut self,
        is_highest: bool,
        severity: Option<u8>,
        account: &mut Account<'_>,
    ) -> Option<Released<Symbol>> {
        let was_highest = std::mem::replace(&mut self.was_highest, is_highest);
        if was_highest || !is_highest {
            return None;
        }
        let severity = Symbol(severity.unwrap_or(0));
        let guarded = match &self.response {
            Some(response) => response.symbol(severity, &mut self.random),
            None => Ok(severity.unprotected()),
        };
        match guarded {
            Ok(guarded) => {
                account.ledger.enter(account.time, What::Severity, Purpose::Alarm, guarded)
            }
            Err(why) => {
                account.ledger.fail(&why);
                None
            }
        }
    }
}
