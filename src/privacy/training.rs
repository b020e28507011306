//! What a training released, counted instead of written down line by line.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::account::Tally;
use super::randomness::Provenance;
use super::release::{Spend, What};
use crate::session::privacy::Scope;

/// The releases of one kind that a training made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trained {
    /// Which training: models that are kept and used again were trained once.
    pub(crate) training: String,
    pub(crate) what: What,
    #[serde(flatten)]
    pub(crate) spend: Spend,
    pub(crate) count: u64,
    /// How many samples they are about.
    pub(crate) samples: u64,
    pub(crate) rounds: u64,
    /// The last sample; the line's own time is the first.
    pub(crate) until: Timestamp,
    /// Where the noise came from.
    pub(crate) randomness: Provenance,
}

impl Trained {
    /// Whether a training can have been like this.
    pub(crate) fn is_sound(&self) -> bool {
        self.spend.is_sound() && self.samples > 0
    }
}

/// A training's releases with the stretch of samples they are about, taken to lie evenly in it.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(crate) training: String,
    from: Timestamp,
    until: Timestamp,
    samples: u64,
    tally: Tally,
}

impl Stretch {
    pub(crate) fn new(from: Timestamp, trained: &Trained) -> Self {
        Self {
            training: trained.training.clone(),
            from,
            until: trained.until.max(from),
            samples: trained.samples.max(1),
            tally: Tally::NOTHING,
        }
    }

    /// Counts more of the same training.
    pub(crate) fn add(&mut self, trained: &Trained) {
        // What comes back is computed from what was released already: it tells nothing more.
        if !trained.what.is_derived() {
            self.tally.add(trained.spend, trained.count);
        }
    }

    fn seconds(&self) -> f64 {
        self.until.duration_since(self.from).as_secs_f64() + 1.0
    }

    /// The releases about one sample.
    pub(crate) fn one_sample(&self) -> Tally {
        self.tally.times(1.0 / self.samples as f64)
    }

    /// The most that any such stretch of time holds.
    pub(crate) fn most(&self, scope: Scope) -> Tally {
        match scope.seconds() {
            Some(seconds) => self.tally.times((seconds / self.seconds()).min(1.0)),
            None if scope == Scope::Sample => self.one_sample(),
            None => self.tally.clone(),
        }
    }

    /// The releases about the last `seconds` before `now`.
    pub(crate) fn within(&self, seconds: f64, now: Timestamp) -> Tally {
        let age = |then: Timestamp| now.duration_since(then).as_secs_f64();
        let (oldest, youngest) = (age(self.from).min(seconds), age(self.until).max(0.0));
        let share = (oldest - youngest + 1.0).max(0.0) / self.seconds();
        if oldest < youngest { Tally::NOTHING } else { self.tally.times(share.min(1.0)) }
    }
}
