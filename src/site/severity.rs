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
    burst: Burst,
}

/// The burst of highest symbols that goes on: its first and its last step.
#[derive(Debug, Default)]
struct Burst(Option<(u64, u64)>);

impl Burst {
    /// Takes a symbol that was released; says whether a severity goes with it. A step without a symbol ends a
    /// burst.
    fn step(&mut self, step: u64, is_highest: bool) -> bool {
        let goes_on = self.0.filter(|(_, last)| last + 1 == step);
        let begun = goes_on.map_or(step, |(begun, _)| begun);
        self.0 = is_highest.then_some((begun, step));
        is_highest && (step == begun || step == begun + u64::from(LATER))
    }
}

impl SeveritySender {
    pub(super) fn new(epsilon: Option<f64>, random: Randomness) -> Result<Self, PrivacyError> {
        let mut sender = Self { response: None, random, burst: Burst::default() };
        sender.set_epsilon(epsilon)?;
        Ok(sender)
    }

    pub(super) fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.response = epsilon.map(|epsilon| Response::new(epsilon, SEVERITIES)).transpose()?;
        Ok(())
    }

    /// A new run begins.
    pub(super) fn reset(&mut self) {
        self.burst = Burst::default();
    }

    /// The severity of a step whose symbol was released, where it is the first or the third of a burst.
    pub(super) fn release(
        &mut self,
        step: u64,
        is_highest: bool,
        severity: Option<u8>,
        account: &mut Account<'_>,
    ) -> Option<Released<Symbol>> {
        if !self.burst.step(step, is_highest) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps that come with a severity. An entry says whether its symbol is the highest; none is a step
    /// without a symbol.
    fn told(symbols: &[Option<bool>]) -> Vec<usize> {
        let mut burst = Burst::default();
        let steps = symbols.iter().enumerate().filter_map(|(t, symbol)| Some((t, (*symbol)?)));
        steps.filter(|(t, highest)| burst.step(*t as u64, *highest)).map(|(t, _)| t).collect()
    }

    #[test]
    fn the_first_and_the_third_of_a_burst_come_with_a_severity() {
        let [low, high] = [Some(false), Some(true)];
        assert_eq!(told(&[low, high, high, high, high, low, high, low]), [1, 3, 6]);
    }

    #[test]
    fn a_step_without_a_symbol_ends_a_burst_as_it_does_for_the_server() {
        let high = Some(true);
        assert_eq!(told(&[high, None, high, high, high, high]), [0, 2, 4]);
        assert_eq!(told(&[high, high, None, high, high]), [0, 3]);
    }
}
