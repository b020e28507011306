//! What the server says about a disturbance, as long as it is open and when it closes.

use serde::{Deserialize, Serialize};

/// A client that feels a disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(crate) client: usize,
    /// The first step of its evidence.
    pub(crate) onset: u64,
    /// The step at which that evidence was enough.
    pub(crate) joined: u64,
}

/// A disturbance, from its alarm on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Incident {
    /// Counted from 1.
    pub(crate) number: u64,
    /// The first step of the evidence that raised the alarm.
    pub(crate) onset: u64,
    /// The step of the alarm.
    pub(crate) opened: u64,
    /// The last step that still spoke for it.
    pub(crate) last_evidence: u64,
    /// The named root cause; none when a client that could explain everything cannot be heard.
    pub(crate) root: Option<usize>,
    /// Whether the root is final: later evidence no longer changes it.
    pub(crate) frozen: bool,
    /// The root that all evidence up to now speaks for.
    pub(crate) would_now_say: Option<usize>,
    /// Probability of each client as the root, given all evidence up to now.
    pub(crate) posterior: Vec<f64>,
    /// Who else feels it, in the order in which they joined.
    pub(crate) effects: Vec<Effect>,
}

impl Incident {
    /// Its root and whoever feels it, each with the first step of its evidence.
    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let root = self.root.map(|root| (root, self.onset));
        root.into_iter().chain(self.effects.iter().map(|effect| (effect.client, effect.onset)))
    }
}
