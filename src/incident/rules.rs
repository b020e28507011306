//! How incidents are formed: one set of numbers for all data, lengths counted in steps.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::server::lifetime;

/// The numbers that decide.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// An effect's onset lies this close to its incident's, or to that of another member: effects
    /// come in cascades.
    pub(crate) window: SignedDuration,
    /// The root is final this many steps after the opening.
    pub(crate) freeze_after: u64,
    /// Roots whose probabilities differ by less than this cannot be told apart.
    pub(crate) margin: f64,
    /// Probability from which a root counts as confirmed.
    pub(crate) confident: f64,
    /// An effect is a fault of its own once it was unexplained for this many steps on end.
    pub(crate) unexplained_steps: u64,
    /// A sensor is well again once nothing was wrong with it for this long: a value at the edge of
    /// its range is one trouble and not many.
    pub(crate) settled: SignedDuration,
    /// Steps after which an incident that the decision does not follow is taken for a change that stays.
    pub(crate) oldest: u64,
}

impl Rules {
    /// The defaults for decimated steps of `period_s` seconds.
    pub(crate) fn with_period(period_s: f64) -> Self {
        let window_s = lifetime::WINDOW as f64 * period_s;
        let window =
            SignedDuration::try_from_secs_f64(window_s).unwrap_or(SignedDuration::MAX).abs();
        Self {
            window,
            settled: window,
            freeze_after: lifetime::FREEZE_AFTER,
            margin: 0.1,
            confident: 0.8,
            unexplained_steps: 3,
            oldest: lifetime::OLDEST,
        }
    }
}
