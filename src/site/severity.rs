//! How severe the first and the third highest symbol of a burst are, sent with them.
//!
//! A burst begins with a highest symbol after one that is not. When a severity is sent follows from the symbols
//! that were released, so it reveals nothing more. Each severity has a randomised response of its own,
//! with the ε of a symbol, and is entered in the ledger. It is sent only where the session asks for it.

use crate::evidence::severity::{LATER, SEVERITIES};
use crate::privacy::{
    Account, PrivacyError, Purpose, Randomness, Released, Response, Symbol, Unprotected as _, What,
};

/// Releases the severities of one client.
#[derive(Debug)]
pub(super) struct SeveritySender {
    /// Absent: no noise.
    response: Option<Response>,
    random: Randomness,
    /// The last symbols that were released and were of the highest level.
    burst: u32,
}

impl SeveritySender {
    pub(super) fn new(epsilon: Option<f64>, random: Randomness) -> Result<Self, PrivacyError> {
        let mut sender = Self { response: None, random, burst: 0 };
        sender.set_epsilon(epsilon)?;
        Ok(sender)
    }

    pub(super) fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.response = epsilon.map(|epsilon| Response::new(epsilon, SEVERITIES)).transpose()?;
        Ok(())
    }

    /// A new run begins.
    pub(super) fn reset(&mut self) {
        self.burst = 0;
    }

    /// The severity of a step whose symbol was released, where it is the first or the third of a burst.
    pub(super) fn release(
        &mut self,
        is_highest: bool,
        severity: Option<u8>,
        account: &mut Account<'_>,
    ) -> Option<Released<Symbol>> {
        self.burst = if is_highest { self.burst.saturating_add(1) } else { 0 };
        if self.burst != 1 && self.burst != 1 + LATER {
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
