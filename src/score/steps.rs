//! Known events counted in steps from the first one watched, for studies that judge step by step.

use jiff::Timestamp;

use super::metrics::incident::TAIL;
pub(crate) use super::metrics::tick;
use super::metrics::{Tick, Window, disjoint};
use crate::stream::{Event, Layout};

/// A known event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TruthEvent {
    pub window: Window,
    /// The client it started in.
    pub origin: usize,
    /// Clients that are known to feel it.
    pub affected: Vec<usize>,
}

impl TruthEvent {
    /// The events that begin at step `first` or later, counted from there.
    pub(crate) fn later(events: &[Self], first: usize) -> Vec<Self> {
        let first = tick(first);
        let shifted = |event: &Self| Self {
            window: Window::new(event.window.start - first, event.window.end - first),
            ..event.clone()
        };
        events.iter().filter(|event| event.window.start >= first).map(shifted).collect()
    }

    /// Whether it goes on at a step.
    pub(crate) fn is_on(&self, step: usize) -> bool {
        self.window.contains(tick(step))
    }

    /// Whether an incident that opens at a step belongs to it: while it goes on, or shortly after.
    pub(crate) fn is_answered_at(&self, opened: usize) -> bool {
        self.window.with_tail(TAIL).contains(tick(opened))
    }
}

/// All known events of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Truth {
    /// Number of clients.
    pub clients: usize,
    /// Steps watched.
    pub steps: usize,
    /// Seconds between two steps.
    pub period_s: f64,
    pub events: Vec<TruthEvent>,
}

impl Truth {
    /// Of steps at these times. Events count that begin in what is watched and whose origin is a client.
    pub(crate) fn new(layout: &Layout, times: &[Timestamp], events: &[Event]) -> Self {
        let first = times.first();
        let in_steps = |event: &Event| {
            let step = |time: Timestamp| tick(times.partition_point(|t| *t < time));
            Some(TruthEvent {
                window: Window::new(step(event.start), step(event.end)),
                origin: layout.client(event.origins.first()?)?,
                affected: event.affected.iter().filter_map(|name| layout.client(name)).collect(),
            })
        };
        let watched = events.iter().filter(|event| first.is_some_and(|t| event.start >= *t));
        Self {
            clients: layout.clients.len(),
            steps: times.len(),
            period_s: layout.period_s,
            events: watched.filter_map(in_steps).collect(),
        }
    }

    /// Steps outside events and their tails, where an alarm is false.
    pub(crate) fn quiet_steps(&self) -> usize {
        let busy: Vec<Window> = self.events.iter().map(|e| e.window.with_tail(TAIL)).collect();
        let all = Window::new(0, tick(self.steps) - 1);
        let busy: Tick = disjoint(&busy).into_iter().map(|w| w.shared(all).ticks().max(0)).sum();
        self.steps - busy as usize
    }
}
