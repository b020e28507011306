//! The privacy that a day of a run spends, from the ledgers of a shorter or longer run.

use crate::fact::Ledger;
use crate::privacy::{Tally, What};

/// Releases of a day and their price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DailySpending {
    /// ε composed; infinite where a release is unprotected.
    pub epsilon: f64,
    /// ε by adding up.
    pub basic: f64,
    pub releases: u64,
}

impl DailySpending {
    /// Of the client that spends most, at `delta`, where the ledgers are those of a run of `seconds`.
    pub(crate) fn of(ledgers: &[Ledger], seconds: f64, delta: f64) -> Self {
        let of = |ledger: &Ledger| {
            let day = live_releases(ledger).times(86_400.0 / seconds);
            let (epsilon, basic) = (day.epsilon(delta).0, day.basic(delta));
            Self { epsilon, basic, releases: day.releases() }
        };
        let most = |a: Self, b: Self| if b.epsilon > a.epsilon { b } else { a };
        let nothing = Self { epsilon: 0.0, basic: 0.0, releases: 0 };
        ledgers.iter().map(of).reduce(most).unwrap_or(nothing)
    }
}

/// The live releases of a client: its states and gradients are of training.
fn live_releases(ledger: &Ledger) -> Tally {
    let mut tally = Tally::NOTHING;
    for counted in &ledger.mechanisms {
        match counted.what {
            What::ProprietaryFlag
            | What::AugmentedFlag
            | What::Symbol
            | What::Severity
            | What::Watch => {
                tally.add(counted.spend, counted.count);
            }
            What::ProprietaryState
            | What::AugmentedState
            | What::Gradient
            | What::Sensors
            | What::Faults
            | What::Enrolment => {}
        }
    }
    tally
}
