//! The messages of every step: enough to decide it again under other settings.

use super::health::Report;
use crate::evidence::enrolment::Enrolment;
use crate::evidence::threshold::Flags;
use crate::wire::Tick;

/// Rows are steps, columns are clients.
#[derive(Debug, Clone, Default)]
pub(super) struct Tape {
    ticks: Vec<Tick>,
    reports: Vec<Report>,
    flags: Vec<Option<Flags>>,
    /// Before which step a client enrolled, and how: symbols are read by the ε they were sent with.
    enrolments: Vec<(usize, usize, Enrolment)>,
}

impl Tape {
    pub(crate) fn keep(&mut self, tick: Tick, reports: &[Report], flags: &[Option<Flags>]) {
        self.ticks.push(tick);
        self.reports.extend_from_slice(reports);
        self.flags.extend_from_slice(flags);
    }

    /// A client enrols before the step that follows.
    pub(crate) fn enrol(&mut self, client: usize, enrolment: &Enrolment) {
        self.enrolments.push((self.ticks.len(), client, enrolment.clone()));
    }

    /// Who enrolled before the `t`-th step and after the one before it.
    pub(crate) fn enrolled(&self, t: usize) -> impl Iterator<Item = (usize, &Enrolment)> {
        let at = self.enrolments.partition_point(|(before, ..)| *before < t);
        let here = self.enrolments[at..].iter().take_while(move |(before, ..)| *before == t);
        here.map(|(_, client, enrolment)| (*client, enrolment))
    }

    pub(crate) fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// The messages of the `t`-th step.
    pub(crate) fn row(&self, t: usize, clients: usize) -> (&[Report], &[Option<Flags>]) {
        let row = t * clients..(t + 1) * clients;
        (self.reports.get(row.clone()).unwrap_or(&[]), self.flags.get(row).unwrap_or(&[]))
    }
}
