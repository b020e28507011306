//! Which steps of a synthetic plant are meant for what.

use std::ops::Range;

use crate::session::{Family, TwinSource};

/// Consecutive stretches of one stream, as ranges of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slices {
    /// Normal operation that models and scaling are fitted to.
    pub(crate) fit: Range<usize>,
    /// Normal operation that thresholds are set on.
    pub(crate) calibration: Range<usize>,
    /// Normal operation to count false alarms on.
    pub(crate) nominal: Range<usize>,
    pub(crate) anomalous: Range<usize>,
}

impl Slices {
    pub(crate) fn steps(&self) -> usize {
        self.anomalous.end
    }
}

/// Steps of a run of family S.
pub(super) const RUN: usize = 100;
/// Steps between two runs of family S that nobody sees: the plant recovers.
pub(super) const PAUSE: usize = 100;

/// Which steps are meant for what. Those between two runs of family S are not counted.
pub(crate) fn slices(source: &TwinSource) -> Slices {
    let anomalous = match source.family {
        Family::A => 6000,
        Family::B | Family::H => 9000,
        Family::S => 100 * RUN,
    };
    Slices {
        fit: 0..4000,
        calibration: 4000..6000,
        nominal: 6000..9000,
        anomalous: 9000..9000 + anomalous,
    }
}
