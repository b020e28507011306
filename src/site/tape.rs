//! What a site measured and graded, step by step. It stays with the site: from it follows what the site
//! would have sent under other settings.

use super::evidence::Graded;
use super::flags::Measured;
use crate::wire::Tick;

/// One entry a step.
#[derive(Debug, Clone, Default)]
pub(super) struct SiteTape {
    pub(crate) ticks: Vec<Tick>,
    pub(crate) graded: Vec<Graded>,
    pub(crate) measured: Vec<Measured>,
}

impl SiteTape {
    pub(crate) fn keep(&mut self, tick: Tick, graded: Graded, measured: Measured) {
        self.ticks.push(tick);
        self.graded.push(graded);
        self.measured.push(measured);
    }
}
