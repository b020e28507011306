//! The score of a list of alarms against known events: the `score` object of `run --json`, and all
//! that `headwater score` prints.
//!
//! Which alarm belongs to which event is decided in [`episode`](self::metrics::episode). Here it
//! the first alarm of each event is judged:
//!
//! | verdict | when |
//! |---|---|
//! | missed | the event has no alarm |
//! | right | the named root is one of its origins |
//! | wrong | another client was named |
//! | unnamed | the alarm names no root |
//! | doubtful | the data set has no origin for the event |
//!
//! So `detected = root_right + root_wrong + root_unknown`, where unknown means unnamed or doubtful.
//! AC@k and MRR take every labelled event with known origins as a case; a missed one counts as 0.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::metrics::delay::Delays;
use self::metrics::episode::{Belongs, Matching};
use self::metrics::ranking::{self, Rank};
use self::metrics::{Tick, Window, disjoint};
use crate::stream::Event;

mod alarm;
mod alarms;
mod course;
mod error;
mod event;
pub(crate) mod metrics;
pub(crate) mod rate;
mod read;
mod report;
pub(crate) mod steps;
mod text;
mod truth;

pub(crate) use alarm::{Alarm, AlarmUpdate, Alarms, Effect, RootUpdate};
pub(crate) use course::{EffectScore, RootCourse, SensorScore};
pub(crate) use event::EventRow;
pub(crate) use report::run;
pub(crate) use text::quiet_days;

/// The time that was watched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Watched {
    /// These stretches, first and last instant. Events outside all of them are not counted, but an
    /// alarm in the tail of such an event is not false either.
    Spans(Vec<(Timestamp, Timestamp)>),
    /// So many days between two instants, with unknown gaps. Events between them are
    /// counted.
    Within { from: Timestamp, until: Timestamp, days: f64 },
    /// So many days at unknown times. Every event is counted.
    Days(f64),
}

/// What became of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Missed,
    /// One of its origins was named.
    Right,
    /// Another client was named.
    Wrong,
    /// The alarm names no root.
    Unnamed,
    /// The data set has no origin for it.
    Doubtful,
}

impl Verdict {
    fn of(event: &Event, alarm: Option<&Alarm>) -> Self {
        let Some(alarm) = alarm else { return Self::Missed };
        match &alarm.root {
            _ if event.origins.is_empty() => Self::Doubtful,
            None => Self::Unnamed,
            Some(root) if event.origins.contains(root) => Self::Right,
            Some(_) => Self::Wrong,
        }
    }
}

/// An event, its first alarm and what came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome<'a> {
    pub(crate) event: &'a Event,
    pub(crate) alarm: Option<&'a Alarm>,
    /// The verdict on that alarm.
    pub(crate) verdict: Verdict,
    /// Alarms of this event, the first one and its repeats.
    pub(crate) alarms: usize,
}

impl Outcome<'_> {
    /// Seconds from the start of the event to its first alarm.
    pub(crate) fn delay_s(&self) -> Option<f64> {
        self.alarm.map(|alarm| seconds(self.event.start, alarm.opened))
    }

    fn rank(&self) -> Rank {
        let alarm = self.alarm?;
        ranking::rank(alarm.root.as_ref(), &alarm.posterior, &self.event.origins)
    }
}

/// Alarms held against events: what every figure is computed from.
#[derive(Debug, Clone)]
pub(crate) struct Judgement<'a> {
    /// Every watched event, in the order given.
    pub(crate) outcomes: Vec<Outcome<'a>>,
    /// Alarms that belong to no event, in order of time.
    pub(crate) false_alarms: Vec<&'a Alarm>,
    /// Alarms of an event that already had one.
    pub(crate) repeats: usize,
    pub(crate) watched_s: f64,
    /// Seconds watched outside events and their tails.
    pub(crate) nominal_s: f64,
}

impl<'a> Judgement<'a> {
    /// Holds `alarms` against `events`; one that opens up to `tail_s` seconds after an event still
    /// belongs to it.
    pub(crate) fn new(
        events: &'a [Event],
        alarms: &'a [Alarm],
        watched: &Watched,
        tail_s: f64,
    ) -> Self {
        let mut alarms: Vec<&Alarm> = alarms.iter().collect();
        alarms.sort_by(|a, b| a.in_time(b));
        let opened: Vec<Tick> = alarms.iter().map(|a| a.opened.as_microsecond()).collect();
        let windows: Vec<Window> = events.iter().map(|e| window((e.start, e.end))).collect();
        let tail = (tail_s * 1e6).round() as Tick;
        let matching = Matching::new(&windows, &opened, tail);

        let (spans, watched_s) = match watched {
            Watched::Spans(spans) => {
                let spans = disjoint(&spans.iter().copied().map(window).collect::<Vec<_>>());
                let watched_s = spans.iter().map(|span| length_s(*span)).sum();
                (spans, watched_s)
            }
            Watched::Within { from, until, days } => {
                (vec![window((*from, *until))], days * 86_400.0)
            }
            Watched::Days(days) => (vec![Window::new(Tick::MIN, Tick::MAX)], days * 86_400.0),
        };
        let seen = |event: Window| spans.iter().any(|span| span.shared(event).ticks() > 0);
        let outcomes = (0..events.len())
            .filter(|&e| seen(windows[e]))
            .map(|e| {
                let (event, alarm) = (&events[e], matching.first[e].map(|a| alarms[a]));
                let is_of_event =
                    |b: &&Belongs| matches!(b, Belongs::First(n) | Belongs::Repeat(n) if *n == e);
                let alarms = matching.alarms.iter().filter(is_of_event).count();
                Outcome { event, alarm, verdict: Verdict::of(event, alarm), alarms }
            })
            .collect();

        let busy: Vec<Window> = windows.iter().map(|w| w.with_tail(tail)).collect();
        let busy = disjoint(&busy);
        let busy_s: f64 =
            spans.iter().flat_map(|s| busy.iter().map(|b| length_s(s.shared(*b)))).sum();
        let which = |wanted: fn(&Belongs) -> bool| {
            matching.alarms.iter().zip(&alarms).filter(move |(b, _)| wanted(b)).map(|(_, a)| *a)
        };
        Self {
            outcomes,
            false_alarms: which(|b| matches!(b, Belongs::False)).collect(),
            repeats: which(|b| matches!(b, Belongs::Repeat(_))).count(),
            watched_s,
            nominal_s: (watched_s - busy_s).max(0.0),
        }
    }

    /// Events with this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|o| o.verdict == verdict).count()
    }

    /// For each event with known origins, where the best of them stands among the suspects.
    pub(crate) fn ranks(&self) -> Vec<Rank> {
        self.outcomes.iter().filter(|o| !o.event.origins.is_empty()).map(Outcome::rank).collect()
    }

    /// The figures of the contract.
    pub(crate) fn score(&self) -> Score {
        let delays: Vec<f64> = self.outcomes.iter().filter_map(Outcome::delay_s).collect();
        let ranks = self.ranks();
        Score {
            labelled: self.outcomes.len(),
            detected: delays.len(),
            root_right: self.count(Verdict::Right),
            root_wrong: self.count(Verdict::Wrong),
            root_unknown: self.count(Verdict::Unnamed) + self.count(Verdict::Doubtful),
            false_alarms: self.false_alarms.len(),
            days: self.watched_s / 86_400.0,
            quiet_days: self.nominal_s / 86_400.0,
            delay_s: Delays::of(&delays),
            ac1: ranking::accuracy_at(&ranks, 1),
            mrr: ranking::mrr(&ranks),
            roots: RootCourse::of(&self.outcomes),
            effects: EffectScore::of(&self.outcomes),
            sensors: SensorScore::of(&self.outcomes),
            repeats: self.repeats,
            events: self.outcomes.iter().map(EventRow::from).collect(),
        }
    }
}

/// The `score` object of the JSON contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Score {
    /// Events that could have been detected.
    pub(crate) labelled: usize,
    /// Events with an alarm inside their window or the tail after it.
    pub(crate) detected: usize,
    /// Detected events of which one origin was named.
    pub(crate) root_right: usize,
    /// Detected events of which another client was named.
    pub(crate) root_wrong: usize,
    /// Detected events without a named root, or without a known origin.
    pub(crate) root_unknown: usize,
    /// Alarms that belong to no event.
    pub(crate) false_alarms: usize,
    pub(crate) days: f64,
    /// Time watched outside events and their tails, where an alarm can be false: rates of false
    /// alarms count by it.
    #[serde(default)]
    pub(crate) quiet_days: f64,
    /// From the start of an event to its first alarm.
    pub(crate) delay_s: Delays,
    /// Share of events with known origins whose origin is the first suspect.
    pub(crate) ac1: Option<f64>,
    /// Mean of one over the origin's place among the suspects.
    pub(crate) mrr: Option<f64>,
    /// Roots that were right at the alarm, five steps later and at the end.
    #[serde(default)]
    pub(crate) roots: RootCourse,
    /// How good the list of effects is, where the truth knows who is affected.
    #[serde(default)]
    pub(crate) effects: EffectScore,
    /// Whether the root's first sensor is right, where the truth knows and roots say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sensors: Option<SensorScore>,
    /// Alarms of an event that already had one.
    #[serde(default)]
    pub(crate) repeats: usize,
    #[serde(default)]
    pub(crate) events: Vec<EventRow>,
}

impl Score {
    /// Scores `alarms` against `events`; see [`Judgement::new`].
    pub(crate) fn of(events: &[Event], alarms: &[Alarm], watched: &Watched, tail_s: f64) -> Self {
        Judgement::new(events, alarms, watched, tail_s).score()
    }
}

fn window((start, end): (Timestamp, Timestamp)) -> Window {
    Window::new(start.as_microsecond(), end.as_microsecond())
}

/// Length of a stretch of clock time, whose last microsecond is its end and not a further tick.
fn length_s(window: Window) -> f64 {
    (window.ticks() - 1).max(0) as f64 / 1e6
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests;
