//! What the server heard, step by step: enough to decide it again under other settings.

use super::health::Report;
use crate::evidence::threshold::Flags;
use crate::wire::Tick;

/// Rows are steps, columns are clients.
#[derive(Debug, Clone, Default)]
pub(super) struct Tape {
    ticks: Vec<Tick>,
    reports: Vec<Report>,
    flags: Vec<Option<Flags>>,
}

impl Tape {
    pub(crate) fn keep(&mut self, tick: Tick, reports: &[Report], flags: &[Option<Flags>]) {
        self.ticks.push(tick);
        self.reports.extend_from_slice(reports);
        self.flags.extend_from_slice(flags);
    }

    pub(crate) fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// What was heard at the `t`-th step.
    pub(crate) fn row(&self, t: usize, clients: usize) -> (&[Report], &[Option<Flags>]) {
        let row = t * clients..(t + 1) * clients;
        (self.reports.get(row.clone()).unwrap_or(&[]), self.flags.get(row).unwrap_or(&[]))
    }
}
