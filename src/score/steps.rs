//! Known events counted in steps from the first one watched, for studies that judge step by step.
//!
//! The tail of an event is that of its session (`replay.tail`) here as in a run: 300 s unless the session
//! says otherwise, and 6 s, which are 6 steps, on the synthetic plants.

use jiff::Timestamp;

pub(crate) use super::metrics::tick;
use super::metrics::{Tick, Window, disjoint};
use crate::session::Span;
use crate::stream::{Event, Layout};

/// A known event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TruthEvent {
    pub window: Window,
    /// The client it started in.
    pub origin: usize,
    /// Clients that are known to feel it.
    pub affected: Vec<usize>,
    /// Steps after its last one in which an alarm still answers it.
    pub tail: Tick,
}

/// The tail of a session's events in steps of `period_s` seconds.
pub(crate) fn tail_in_steps(tail: Span, period_s: f64) -> Tick {
    (tail.seconds / period_s).round() as Tick
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

    /// The same counted in blocks of `each` steps: those that hold its first and its last step.
    pub(crate) fn in_blocks(&self, each: usize) -> Self {
        let block = |t: Tick| t / tick(each);
        let window = Window::new(block(self.window.start), block(self.window.end));
        Self { window, tail: block(self.busy().end) - window.end, ..self.clone() }
    }

    /// Whether it goes on at a step.
    pub(crate) fn is_on(&self, step: usize) -> bool {
        self.window.contains(tick(step))
    }

    /// Its window and its tail.
    pub(crate) fn busy(&self) -> Window {
        self.window.with_tail(self.tail)
    }

    /// Whether an incident that opens at a step belongs to it: while it goes on, or shortly after.
    pub(crate) fn is_answered_at(&self, opened: usize) -> bool {
        self.busy().contains(tick(opened))
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
    pub(crate) fn new(layout: &Layout, times: &[Timestamp], events: &[Event], tail: Span) -> Self {
        let tail = tail_in_steps(tail, layout.period_s);
        let in_steps = |event: &Event| {
            let step = |time: Timestamp| tick(times.partition_point(|t| *t < time));
            Some(TruthEvent {
                window: Window::new(step(event.start), step(event.end)),
                origin: layout.client(event.origins.first()?)?,
                affected: event.affected.iter().filter_map(|name| layout.client(name)).collect(),
                tail,
            })
        };
        let (first, last) = (times.first(), times.last());
        let begins = |event: &&Event| {
            first.is_some_and(|t| event.start >= *t) && last.is_some_and(|t| event.start <= *t)
        };
        let watched = events.iter().filter(begins);
        Self {
            clients: layout.clients.len(),
            steps: times.len(),
            period_s: layout.period_s,
            events: watched.filter_map(in_steps).collect(),
        }
    }

    /// The same counted in blocks of `each` steps. A rest that fills no block is left out, and so are events
    /// that begin in it.
    pub(crate) fn in_blocks(&self, each: usize) -> Self {
        let steps = self.steps / each;
        let events = self.events.iter().map(|event| event.in_blocks(each));
        Self {
            clients: self.clients,
            steps,
            period_s: self.period_s * each as f64,
            events: events.filter(|event| event.window.start < tick(steps)).collect(),
        }
    }

    /// Steps outside events and their tails, where an alarm is false.
    pub(crate) fn quiet_steps(&self) -> usize {
        let busy: Vec<Window> = self.events.iter().map(TruthEvent::busy).collect();
        let all = Window::new(0, tick(self.steps) - 1);
        let busy: Tick = disjoint(&busy).into_iter().map(|w| w.shared(all).ticks().max(0)).sum();
        self.steps - busy as usize
    }
}
