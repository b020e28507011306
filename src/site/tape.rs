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

    /// Whether flags were sent or rehearsed at any step, or there was none to send.
    pub(crate) fn has_sent_flags(&self) -> bool {
        let mut flagged =
            self.measured.iter().filter(|measured| !measured.d2_c.is_nan()).peekable();
        flagged.peek().is_none() || flagged.any(|measured| measured.sent)
    }
}
