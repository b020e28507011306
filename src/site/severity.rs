//! How severe the first step of a burst of highest symbols is, told beside its symbol.
//!
//! Which step is told of follows from the symbols that were released, so it tells nothing more. The
//! octave itself goes through a randomised response of its own with the ε of a symbol, and is entered in the
//! ledger. Where a session declares who affects whom, ties are broken by that and no severity is sent.

use crate::evidence::severity::{Burst, OCTAVES};
use crate::privacy::{
    Account, PrivacyError, Purpose, Randomness, Released, Response, Symbol, Unprotected as _, What,
};

/// Releases the severities of one client.
#[derive(Debug)]
pub(super) struct SeveritySender {
    /// Absent: no noise.
    response: Option<Response>,
    random: Randomness,
    burst: Burst,
}

impl SeveritySender {
    pub(super) fn new(epsilon: Option<f64>, random: Randomness) -> Result<Self, PrivacyError> {
        let mut sender = Self { response: None, random, burst: Burst::default() };
        sender.set_epsilon(epsilon)?;
        Ok(sender)
    }

    pub(super) fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.response = epsilon.map(|epsilon| Response::new(epsilon, OCTAVES)).transpose()?;
        Ok(())
    }

    /// A new run begins.
    pub(super) fn reset(&mut self) {
        self.burst = Burst::default();
    }

    /// The severity of a step whose symbol was released, where it is told.
    pub(super) fn release(
        &mut self,
        is_highest: bool,
        octave: Option<u8>,
        account: &mut Account<'_>,
    ) -> Option<Released<Symbol>> {
        if !self.burst.step(is_highest) {
            return None;
        }
        let octave = Symbol(octave.unwrap_or(0));
        let guarded = match &self.response {
            Some(response) => response.symbol(octave, &mut self.random),
            None => Ok(octave.unprotected()),
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
