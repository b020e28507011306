//! The terms of a ledger: its δ, its budget, and the gate that keeps to it.

use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::account::Tally;
use super::memory::FilterMemory;
use crate::session::privacy::{AtZero, BudgetSettings, Scope};

/// How much may be spent over which stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Budget {
    /// ε at the ledger's δ.
    pub(crate) epsilon: f64,
    /// The stretch of time it is for.
    #[serde(with = "ScopeInLine")]
    pub(crate) over: Scope,
    #[serde(with = "AtZeroInLine")]
    pub(crate) at_zero: AtZero,
    /// It was set after values had been sent without noise. It cannot cover those: it counts what is
    /// sent with noise, and admits nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) noised_only: bool,
}

/// How a line of a ledger writes a [`Scope`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Scope", rename_all = "kebab-case")]
enum ScopeInLine {
    Sample,
    Minute,
    Hour,
    Day,
    Lifetime,
}

/// How a line of a ledger writes an [`AtZero`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "AtZero", rename_all = "kebab-case")]
enum AtZeroInLine {
    Stop,
    Slower,
    AlarmsOnly { reserve: f64 },
}

impl TryFrom<BudgetSettings> for Budget {
    type Error = PrivacyError;

    fn try_from(budget: BudgetSettings) -> Result<Self, PrivacyError> {
        Self::new(budget.epsilon, budget.over, budget.at_zero)
    }
}

/// What a ledger is kept by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// δ of every composed ε.
    pub(crate) delta: f64,
    /// How far one sample reaches into later releases.
    pub(crate) memory: FilterMemory,
    pub(crate) budget: Option<Budget>,
}

impl Terms {
    /// The same terms, if a ledger can be kept by them.
    pub(crate) fn checked(self) -> Result<Self, PrivacyError> {
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(PrivacyError::Setting {
                what: "δ of a ledger",
                expected: "a number between 0 and 1",
                found: self.delta,
            });
        }
        self.memory.checked()?;
        if let Some(budget) = self.budget {
            Budget::new(budget.epsilon, budget.over, budget.at_zero)?;
        }
        Ok(self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is released at every step, or every window.
    Routine,
    /// It reports an alarm.
    Alarm,
}

impl Budget {
    /// A budget that can be kept.
    pub(crate) fn new(epsilon: f64, over: Scope, at_zero: AtZero) -> Result<Self, PrivacyError> {
        let wrong = |what, expected, found| Err(PrivacyError::Setting { what, expected, found });
        if !(epsilon.is_finite() && epsilon > 0.0) {
            return wrong("budget", "an ε above 0", epsilon);
        }
        match at_zero {
            AtZero::AlarmsOnly { reserve } if !(reserve > 0.0 && reserve < epsilon) => {
                wrong("reserve for alarms", "above 0 and below the budget", reserve)
            }
            AtZero::Slower if over == Scope::Lifetime => {
                wrong("slower", "a budget for a minute, an hour or a day", epsilon)
            }
            _ => Ok(Self { epsilon, over, at_zero, noised_only: false }),
        }
    }

    /// The same budget where values were sent without noise before it: it counts the others.
    pub(crate) fn of_noised(self) -> Self {
        Self { noised_only: true, ..self }
    }

    /// How much of it a release may use.
    pub(crate) fn limit(&self, purpose: Purpose) -> f64 {
        match (self.at_zero, purpose) {
            (AtZero::AlarmsOnly { reserve }, Purpose::Routine) => self.epsilon - reserve,
            _ => self.epsilon,
        }
    }
}

/// Decides whether a release still fits, without composing everything anew each time.
///
/// Costs only grow with counts, so once some larger tally is known to fit, every tally below it
/// fits as well; and a tally that was refused is refused until something leaves it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    fits: Tally,
    refused: Option<Tally>,
}

/// How far ahead the gate looks: so many more releases like the one asked for.
const AHEAD: [f64; 4] = [4096.0, 512.0, 64.0, 8.0];

impl Gate {
    /// Whether `spent` and `next` together stay within `limit` at `delta`.
    pub(crate) fn admits(&mut self, spent: &Tally, next: &Tally, delta: f64, limit: f64) -> bool {
        let wanted = spent.and(next);
        if wanted.within(&self.fits) {
            return true;
        }
        if self.refused.as_ref() == Some(&wanted) {
            return false;
        }
        let fits = |tally: &Tally| tally.epsilon(delta).0 <= limit;
        if !fits(&wanted) {
            self.refused = Some(wanted);
            return false;
        }
        // As many more of what has been released so far, so that one search serves all streams.
        let share = 1.0 / spent.releases().max(1) as f64;
        self.fits = AHEAD
            .iter()
            .map(|ahead| wanted.and(&spent.times(ahead * share)).and(&next.times(*ahead)))
            .find(fits)
            .unwrap_or(wanted);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::release::Spend;

    const FLAG: Spend = Spend::Response { epsilon: 0.5, symbols: 2 };

    #[test]
    fn a_budget_that_cannot_be_kept_is_refused() {
        assert!(Budget::new(0.0, Scope::Day, AtZero::Stop).is_err());
        assert!(Budget::new(1.0, Scope::Lifetime, AtZero::Slower).is_err());
        assert!(Budget::new(1.0, Scope::Day, AtZero::AlarmsOnly { reserve: 1.0 }).is_err());
        assert!(Budget::new(1.0, Scope::Day, AtZero::Slower).is_ok());
    }

    #[test]
    fn the_gate_lets_through_exactly_what_fits() {
        let limit = Tally::of(FLAG, 1000).epsilon(1e-6).0;
        let mut gate = Gate::default();
        let mut spent = Tally::default();
        let next = Tally::of(FLAG, 1);
        while gate.admits(&spent, &next, 1e-6, limit) {
            spent.add(FLAG, 1);
        }
        assert_eq!(spent.releases(), 1000);
        assert!(!gate.admits(&spent, &next, 1e-6, limit));
    }

    #[test]
    fn what_is_in_the_clear_fits_no_budget() {
        let mut gate = Gate::default();
        let clear = Tally::of(Spend::Clear, 1);
        assert!(!gate.admits(&Tally::default(), &clear, 1e-6, 1e9));
    }
}
