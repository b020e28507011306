//! What the data set itself knows: when something was done, where it began, who feels it.
//!
//! The console keeps it apart and shows it only when asked to: a verdict must be made without it.

use jiff::Timestamp;

use super::text::clean;
use crate::stream::{Event, Frame, Label};

/// How a client stands to a known disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// It is known to feel it.
    Affected,
    /// Something is wrong, and the data set does not say where.
    Somewhere,
    Origin,
}

/// A stretch that the data set calls anomalous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disturbance {
    /// Its name; empty for a bare label.
    pub(crate) id: String,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    /// Clients it began in; empty when the data set does not say.
    pub(crate) origins: Vec<String>,
    /// Clients that are known to feel it.
    pub(crate) affected: Vec<String>,
    pub(crate) what: String,
}

impl Disturbance {
    /// Whether `time` lies in it.
    pub(crate) fn covers(&self, time: Timestamp) -> bool {
        self.start <= time && time <= self.end
    }

    /// How `client` stands to it.
    pub(crate) fn role(&self, client: &str) -> Option<Role> {
        if self.origins.iter().any(|name| name == client) {
            Some(Role::Origin)
        } else if self.affected.iter().any(|name| name == client) {
            Some(Role::Affected)
        } else {
            self.origins.is_empty().then_some(Role::Somewhere)
        }
    }
}

/// All disturbances known so far, in the order of their start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    known: Vec<Disturbance>,
    /// The stretch that bare labels are describing right now.
    open: Option<usize>,
    labelled: bool,
}

impl Truth {
    /// What is known from the start.
    pub(crate) fn new(events: &[Event]) -> Self {
        let mut known: Vec<Disturbance> = events
            .iter()
            .map(|event| Disturbance {
                id: clean(&event.id),
                start: event.start,
                end: event.end,
                origins: event.origins.iter().map(|name| clean(name)).collect(),
                affected: event.affected.iter().map(|name| clean(name)).collect(),
                what: clean(&event.what),
            })
            .collect();
        known.sort_by_key(|disturbance| disturbance.start);
        Self { labelled: !known.is_empty(), known, open: None }
    }

    /// Takes a frame's label. A label without an event makes a stretch of its own.
    pub(crate) fn take(&mut self, frame: &Frame) {
        self.labelled |= frame.label != Label::Unlabelled;
        if frame.label != (Label::Anomalous { event: None }) || self.at(frame.time).is_some() {
            self.open = None;
        } else if let Some(open) = self.open.and_then(|at| self.known.get_mut(at)) {
            open.end = frame.time;
        } else {
            let at = self.known.partition_point(|known| known.start <= frame.time);
            self.known.insert(
                at,
                Disturbance {
                    id: String::new(),
                    start: frame.time,
                    end: frame.time,
                    origins: Vec::new(),
                    affected: Vec::new(),
                    what: "labelled anomalous".into(),
                },
            );
            self.open = Some(at);
        }
    }

    /// Whether the data set says anything at all.
    pub(crate) fn is_known(&self) -> bool {
        self.labelled
    }

    /// The disturbance at `time`, the latest begun if there are several.
    pub(crate) fn at(&self, time: Timestamp) -> Option<&Disturbance> {
        self.known.iter().rev().find(|known| known.covers(time))
    }

    /// Disturbances that touch `from..until`.
    pub(crate) fn between(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = &Disturbance> {
        self.known.iter().filter(move |known| known.start < until && from <= known.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small second is an instant")
    }

    fn frame(second: i64, label: Label) -> Frame {
        let mut frame = Frame::default();
        (frame.time, frame.label) = (at(second), label);
        frame
    }

    #[test]
    fn bare_labels_become_stretches() {
        let mut truth = Truth::default();
        for second in 0..10 {
            let label = match second {
                3..=5 | 8 => Label::Anomalous { event: None },
                _ => Label::Normal,
            };
            truth.take(&frame(second, label));
        }
        let stretches: Vec<_> = truth.between(at(0), at(10)).map(|d| (d.start, d.end)).collect();
        assert_eq!(stretches, [(at(3), at(5)), (at(8), at(8))]);
        assert_eq!(truth.at(at(4)).and_then(|d| d.role("P1")), Some(Role::Somewhere));
    }

    #[test]
    fn an_unlabelled_stream_has_no_truth() {
        let mut truth = Truth::new(&[]);
        truth.take(&frame(0, Label::Unlabelled));
        assert!(!truth.is_known());
        truth.take(&frame(1, Label::Normal));
        assert!(truth.is_known());
    }
}
