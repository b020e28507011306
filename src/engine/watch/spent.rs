//! The privacy cost of a client so far. Composing the figures takes a while, so they are made
//! now and then and handed on as they are.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::privacy::{Budget, Composed, Exhaustion, FilterMemory, Ledger, Provenance};
use crate::session::privacy::Scope;

/// Figures that are younger than this are good enough.
pub(super) const FRESH: SignedDuration = SignedDuration::from_mins(5);

/// The privacy cost of one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) live: Composed,
    pub(crate) trained: Composed,
    /// Over the costliest stretch of each length.
    pub(crate) over: Vec<(Scope, Composed)>,
    /// ε that one more hour at this pace adds to the whole history.
    pub(crate) burn_per_hour: f64,
    pub(crate) budget: Option<Budget>,
    /// ε of what the budget counts now.
    pub(crate) counted: f64,
    /// When that will be gone.
    pub(crate) exhaustion: Exhaustion,
    /// How far one sample reaches into later releases.
    pub(crate) memory: FilterMemory,
    /// Whether the noise cannot be drawn again.
    pub(crate) private: bool,
}

impl Spent {
    /// The figures of a ledger as of `now`.
    pub(crate) fn of(ledger: &Ledger, now: Timestamp) -> Self {
        Self {
            live: ledger.live(),
            trained: ledger.trained(),
            over: Scope::ALL.iter().map(|scope| (*scope, ledger.worst(*scope))).collect(),
            burn_per_hour: ledger.burn_per_hour(now),
            budget: ledger.terms().budget,
            counted: ledger.counted_epsilon(now),
            exhaustion: ledger.exhaustion(now),
            memory: ledger.terms().memory,
            private: ledger.provenance() == Provenance::OperatingSystem,
        }
    }
}

/// How a list that is shared inside the program is written outside of it.
pub(super) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::engine::watch) fn serialize<T: Serialize, S: Serializer>(
        list: &Arc<[T]>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        list.as_ref().serialize(to)
    }

    pub(in crate::engine::watch) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<[T]>, D::Error> {
        Ok(Vec::deserialize(from)?.into())
    }
}
