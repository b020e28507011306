//! A disturbance as the sequential decision follows it: clients by number, times in steps.
//!
//! It is not the incident: the annunciator makes one incident of several disturbances with the same root,
//! and incidents without any, of a client that is alone or of Table 1.

use serde::{Deserialize, Serialize};

/// A client that is affected by a disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Affected {
    pub(crate) client: usize,
    /// The first step of its evidence.
    pub(crate) onset: u64,
    /// The step at which that evidence was enough.
    pub(crate) joined: u64,
}

/// A disturbance, from its alarm on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Disturbance {
    /// Counted from 1.
    pub(crate) number: u64,
    /// The first step of the evidence that raised the alarm.
    pub(crate) onset: u64,
    /// The step of the alarm.
    pub(crate) opened: u64,
    /// The last step that still spoke for it.
    pub(crate) last_evidence: u64,
    /// The named root cause; none when a client that could explain everything sends nothing.
    pub(crate) root: Option<usize>,
    /// Whether the root is final: later evidence no longer changes it.
    pub(crate) frozen: bool,
    /// The root that all evidence up to now speaks for.
    pub(crate) would_now_say: Option<usize>,
    /// Probability of each client as the root, given all evidence up to now.
    pub(crate) posterior: Vec<f64>,
    /// Who may be the root where several were struck at once and no client leads clearly, the likeliest
    /// first.
    pub(crate) tied: Vec<usize>,
    /// Who else is affected, in the order in which they joined.
    pub(crate) affected: Vec<Affected>,
    /// The client that raised the alarm; it takes part whether or not a root is named.
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

impl Disturbance {
    /// A disturbance whose evidence begins at `onset` and whose alarm `winner` raises at `opened`.
    pub(in crate::server) fn new(
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
            affected: Vec::new(),
            winner,
            revised_from: None,
            continued: 0,
            latest: None,
            stands: None,
        }
    }

    /// The same in one more episode, whose root is `root`.
    pub(in crate::server) fn again(mut self, root: Option<usize>) -> Self {
        self.continue_with(root);
        self
    }

    /// It begins again, with evidence that speaks for `root`.
    pub(in crate::server) fn continue_with(&mut self, root: Option<usize>) {
        self.continued += 1;
        (self.latest, self.stands) = (root, None);
    }

    /// Its present episode speaks for `root`, which is not final.
    pub(in crate::server) fn follow(&mut self, root: Option<usize>) {
        if self.continued > 0 {
            self.latest = root;
        } else if !self.frozen {
            self.root = root;
        }
    }

    /// All clients that take part: the root, or the one that raised the alarm, and the affected ones.
    pub(in crate::server) fn taking_part(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.root.unwrap_or(self.winner);
        [first].into_iter().chain(self.affected.iter().map(|other| other.client))
    }

    /// Its root and the affected clients, each with the first step of its evidence.
    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let root = self.root.map(|root| (root, self.onset));
        root.into_iter().chain(self.affected.iter().map(|other| (other.client, other.onset)))
    }
}

/// Why an incident is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Closing {
    /// Its evidence has ended.
    Quiet,
    /// It would not end, and is taken as normal from here on.
    PersistentChange,
    /// Nothing came from its root any more, or from any client.
    NoData,
    /// Its root turned out to be a client that cannot be believed.
    Unreliable,
    /// An operator took it as the new normal.
    Accepted,
    EndOfRun,
    /// Table 1 declares another verdict from then on.
    AnotherVerdict,
    /// Another method decides from then on.
    MethodChanged,
    /// It has the same root as another incident and is counted there.
    Merged {
        into: u64,
    },
}

impl std::fmt::Display for Closing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quiet => f.write_str("quiet"),
            Self::PersistentChange => f.write_str("persistent change"),
            Self::NoData => f.write_str("no more data"),
            Self::Unreliable => f.write_str("root unreliable"),
            Self::Accepted => f.write_str("accepted as new normal"),
            Self::EndOfRun => f.write_str("end of run"),
            Self::AnotherVerdict => f.write_str("another verdict of Table 1"),
            Self::MethodChanged => f.write_str("another method decides"),
            Self::Merged { into } => write!(f, "same root as #{into}"),
        }
    }
}
