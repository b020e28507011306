//! What the data set itself knows: when something was done, where it began, who feels it.
//!
//! The console keeps it apart and shows it only when asked to: a verdict must be made without it.

use jiff::{SignedDuration, Timestamp};

use super::text::clean;
use crate::stream::{Event, Frame, Label};

/// How a client stands to a known disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Involvement {
    Affected,
    /// Something is wrong, and the data set does not say where.
    Somewhere,
    Origin,
}

/// How `client` stands to a disturbance.
pub(crate) fn involvement(event: &Event, client: &str) -> Option<Involvement> {
    if event.origins.iter().any(|name| name == client) {
        Some(Involvement::Origin)
    } else if event.affected.iter().any(|name| name == client) {
        Some(Involvement::Affected)
    } else {
        event.origins.is_empty().then_some(Involvement::Somewhere)
    }
}

/// All disturbances known so far, in the order of their start. Their texts are safe to show; a bare
/// label has no name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    known: Vec<Event>,
    /// The stretch that bare labels are describing right now.
    open: Option<usize>,
    labelled: bool,
}

impl Truth {
    pub(crate) fn new(events: &[Event]) -> Self {
        let all = |names: &[String]| names.iter().map(|name| clean(name)).collect();
        let safe = |event: &Event| Event {
            id: clean(&event.id),
            origins: all(&event.origins),
            affected: all(&event.affected),
            sensors: all(&event.sensors),
            what: clean(&event.what),
            ..*event
        };
        let mut known: Vec<Event> = events.iter().map(safe).collect();
        known.sort_by_key(|event| event.start);
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
                Event {
                    id: String::new(),
                    start: frame.time,
                    end: frame.time,
                    origins: Vec::new(),
                    affected: Vec::new(),
                    sensors: Vec::new(),
                    what: "labelled anomalous".into(),
                },
            );
            self.open = Some(at);
        }
    }

    /// Whether the data set has labels or events.
    pub(crate) fn is_known(&self) -> bool {
        self.labelled
    }

    /// The disturbance at `time`, the latest begun if there are several.
    pub(crate) fn at(&self, time: Timestamp) -> Option<&Event> {
        self.known.iter().rev().find(|known| (known.start..=known.end).contains(&time))
    }

    /// The disturbance that an alarm raised at `opened` belongs to: one that had begun, and was not over
    /// for longer than `tail`.
    pub(crate) fn behind(&self, opened: Timestamp, tail: SignedDuration) -> Option<&Event> {
        let last = |known: &Event| known.end.checked_add(tail).unwrap_or(Timestamp::MAX);
        self.known.iter().rev().find(|known| known.start <= opened && opened <= last(known))
    }

    /// Disturbances that had begun by `moment` and that none of the alarms `opened` belongs to.
    pub(crate) fn missed<'a>(
        &'a self,
        opened: &'a [Timestamp],
        tail: SignedDuration,
        moment: Timestamp,
    ) -> impl Iterator<Item = &'a Event> {
        let begun = self.known.iter().filter(move |known| known.start <= moment);
        begun.filter(move |known| {
            !opened.iter().any(|alarm| self.behind(*alarm, tail).is_some_and(|b| b == *known))
        })
    }

    /// Disturbances that touch `from..until`.
    pub(crate) fn between(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = &Event> {
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
        assert_eq!(
            truth.at(at(4)).and_then(|d| involvement(d, "P1")),
            Some(Involvement::Somewhere)
        );
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
