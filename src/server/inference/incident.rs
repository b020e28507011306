//! What the server says about a disturbance, as long as it is open and when it closes.

use serde::{Deserialize, Serialize};

use super::Closing;

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
    /// Who may be the root where several were struck at once and nobody leads clearly, the likeliest
    /// first.
    pub(crate) tied: Vec<usize>,
    /// Who else feels it, in the order in which they joined.
    pub(crate) effects: Vec<Effect>,
    /// The client that raised the alarm; it takes part whether or not anybody is named.
    pub(crate) winner: usize,
    /// The final root that was revised.
    pub(crate) revised_from: Option<usize>,
    /// How often it has begun again.
    pub(crate) continued: u64,
    /// The root of the episode that continued it last.
    pub(crate) latest: Option<usize>,
    /// How its last episode ended, while it stands.
    pub(crate) stands: Option<Closing>,
}

impl Incident {
    /// An incident whose evidence begins at `onset` and whose alarm `winner` raises at `opened`.
    pub(super) fn new(
        onset: u64,
        opened: u64,
        root: Option<usize>,
        winner: usize,
        clients: usize,
    ) -> Self {
        Self {
            number: 0,
            onset,
            opened,
            last_evidence: opened,
            root,
            frozen: false,
            would_now_say: root,
            posterior: vec![0.0; clients],
            tied: Vec::new(),
            effects: Vec::new(),
            winner,
            revised_from: None,
            continued: 0,
            latest: None,
            stands: None,
        }
    }

    /// The same in one more episode, whose root is `root`.
    pub(super) fn again(mut self, root: Option<usize>) -> Self {
        self.continue_with(root);
        self
    }

    /// It begins again, with evidence that speaks for `root`.
    pub(super) fn continue_with(&mut self, root: Option<usize>) {
        self.continued += 1;
        (self.latest, self.stands) = (root, None);
    }

    /// Its present episode speaks for `root`, which is not final.
    pub(super) fn follow(&mut self, root: Option<usize>) {
        if self.continued > 0 {
            self.latest = root;
        } else if !self.frozen {
            self.root = root;
        }
    }

    /// Everybody who takes part: the root, or whoever raised the alarm, and whoever feels it.
    pub(super) fn taking_part(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.root.unwrap_or(self.winner);
        [first].into_iter().chain(self.effects.iter().map(|effect| effect.client))
    }

    /// Its root and whoever feels it, each with the first step of its evidence.
    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let root = self.root.map(|root| (root, self.onset));
        root.into_iter().chain(self.effects.iter().map(|effect| (effect.client, effect.onset)))
    }
}
