//! The time grid that sites and server share.

use jiff::Timestamp;

/// How a step follows the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    Next,
    /// After so many steps without data, which models bridge by prediction.
    After {
        missing: usize,
    },
    /// After more than can be bridged: nothing of the time before counts, except what was accepted as
    /// normal.
    Anew,
    /// As the first of a run that has nothing to do with the one before.
    NewRun,
}

impl Follows {
    /// Whether nothing of the time before counts.
    pub(crate) fn is_anew(self) -> bool {
        matches!(self, Self::Anew | Self::NewRun)
    }
}

/// One step of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tick {
    /// Its number, from 1.
    pub(crate) step: u64,
    pub(crate) time: Timestamp,
    /// How it follows the one before.
    pub(crate) follows: Follows,
}
