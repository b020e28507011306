//! All figures of one method on one run, from what it declared.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::score::metrics::etapr::{Thetas, etapr};
use crate::score::metrics::incident::{GAP, Named, TAIL, end_to_end, group};
use crate::score::metrics::ranking::{self, Rank};
use crate::score::metrics::run_length::{self, RunLength};
use crate::score::metrics::step::{GRACE, Step, step_rates};
use crate::score::metrics::{Tick, Window, disjoint};
use crate::stream::{Event, Layout};

/// An incident that a method declared. Steps count from the first one watched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Declared {
    /// First step of its evidence.
    pub(crate) onset: usize,
    /// The step of the alarm.
    pub(crate) opened: usize,
    /// Last step that spoke for it.
    pub(crate) last: usize,
    pub(crate) root: Option<usize>,
    /// Clients by how much speaks for them.
    pub(crate) suspects: Vec<(usize, f64)>,
}

/// What a method declared over all that was watched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MethodOutput {
    pub(crate) incidents: Vec<Declared>,
    /// As a name or nothing at every step.
    pub(crate) names: Vec<Option<usize>>,
}

impl MethodOutput {
    /// Of a method that declares incidents: from onset to last evidence its root is named.
    pub(crate) fn from_incidents(incidents: Vec<Declared>, steps: usize) -> Self {
        let mut names = vec![None; steps];
        for incident in &incidents {
            let last = incident.last.min(steps.saturating_sub(1));
            for step in names.iter_mut().take(last + 1).skip(incident.onset) {
                *step = incident.root;
            }
        }
        Self { incidents, names }
    }

    /// Of a method that names a root, or none, at every step.
    pub(crate) fn from_names(names: Vec<Option<usize>>) -> Self {
        let incidents = group(&names, GAP)
            .into_iter()
            .map(|Named { window, name }| {
                let (onset, last) = (window.start as usize, window.end as usize);
                let mut suspects: Vec<(usize, f64)> = Vec::new();
                for client in names[onset..=last].iter().flatten() {
                    match suspects.iter_mut().find(|(known, _)| known == client) {
                        Some((_, votes)) => *votes += 1.0,
                        None => suspects.push((*client, 1.0)),
                    }
                }
                Declared { onset, opened: onset, last, root: Some(name), suspects }
            })
            .collect();
        Self { incidents, names }
    }
}

/// Run lengths of one run, in a form that can be added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Runs {
    /// Steps of all runs together.
    pub(crate) watched: f64,
    /// Runs that ended in an alarm.
    pub(crate) ended: usize,
    /// Runs that were still going when watching stopped.
    pub(crate) censored: usize,
}

impl Runs {
    /// Of several runs together.
    pub(crate) fn pooled<'a>(runs: impl IntoIterator<Item = &'a Self>) -> RunLength {
        let sum = runs.into_iter().fold(Self::default(), |sum, run| Self {
            watched: sum.watched + run.watched,
            ended: sum.ended + run.ended,
            censored: sum.censored + run.censored,
        });
        RunLength::new(sum.watched, sum.ended, sum.censored)
    }
}

impl From<RunLength> for Runs {
    fn from(length: RunLength) -> Self {
        let runs = (length.ended + length.censored) as f64;
        Self {
            watched: length.at_least.unwrap_or(0.0) * runs,
            ended: length.ended,
            censored: length.censored,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// EP.
    pub(crate) precision: Option<f64>,
    /// ER.
    pub(crate) recall: Option<f64>,
    /// EF.
    pub(crate) f1: Option<f64>,
    /// EF of the incidents from the first event on: those of the nominal stretch before it are left
    /// to ARL0.
    pub(crate) f1_from_first_event: Option<f64>,
    /// F1 per step over the whole stream.
    pub(crate) step_f1: Option<f64>,
    /// Precision per step inside anomalies only: the most lenient reading.
    pub(crate) inside_precision: Option<f64>,
    pub(crate) step_recall: Option<f64>,
    /// F1 of these two.
    pub(crate) inside_f1: Option<f64>,
    /// F1 of eTaPR with its usual thetas; whoever is named.
    pub(crate) etapr_f1: Option<f64>,
    pub(crate) events: usize,
    /// Events in whose window or tail an alarm was raised.
    pub(crate) detected: usize,
    /// Those whose first alarm named the origin.
    pub(crate) right: usize,
    /// Alarms that were raised in no event and in no tail.
    pub(crate) false_alarms: usize,
    /// Nominal steps before the first event, and the alarms in them.
    pub(crate) arl0: Runs,
    /// From each onset to the next alarm.
    pub(crate) arl1: Runs,
    /// Steps from an event's start to its first alarm, of the events detected.
    pub(crate) delays: Vec<f64>,
    /// AC@1 over all events.
    pub(crate) ac1: Option<f64>,
    /// AC@3.
    pub(crate) ac3: Option<f64>,
    /// Avg@5.
    pub(crate) avg5: Option<f64>,
    /// MRR.
    pub(crate) mrr: Option<f64>,
}

/// An event on the clock of what is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) window: Window,
    /// The client it started in.
    pub(crate) origin: usize,
    /// Clients that are known to feel it.
    pub(crate) affected: Vec<usize>,
}

impl Happened {
    /// The events that begin at step `first` or later, counted from there.
    pub(crate) fn later(events: &[Self], first: usize) -> Vec<Self> {
        let first = tick(first);
        let shifted = |event: &Self| Self {
            window: Window::new(event.window.start - first, event.window.end - first),
            ..event.clone()
        };
        events.iter().filter(|event| event.window.start >= first).map(shifted).collect()
    }

    /// Whether an incident opened while it went on, or shortly after.
    fn is_answered_by(&self, incident: &Declared) -> bool {
        self.window.with_tail(TAIL).contains(tick(incident.opened))
    }

    /// Whether it goes on at a step.
    pub(crate) fn is_on(&self, step: usize) -> bool {
        self.window.contains(tick(step))
    }
}

/// What happened while a plant was watched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Truth {
    pub(crate) clients: usize,
    pub(crate) steps: usize,
    /// Seconds between two steps.
    pub(crate) period_s: f64,
    pub(crate) events: Vec<Happened>,
}

impl Truth {
    /// Steps outside events and their tails, where an alarm is false.
    pub(crate) fn quiet_steps(&self) -> usize {
        let busy: Vec<Window> = self.events.iter().map(|e| e.window.with_tail(TAIL)).collect();
        let all = Window::new(0, tick(self.steps) - 1);
        let busy: Tick = disjoint(&busy).into_iter().map(|w| w.shared(all).ticks().max(0)).sum();
        self.steps - busy as usize
    }

    /// Of steps at these times. Events count that begin in what is watched and whose origin is a
    /// client.
    pub(crate) fn new(layout: &Layout, times: &[Timestamp], events: &[Event]) -> Self {
        let first = times.first();
        let happened = |event: &Event| {
            let step = |time: Timestamp| tick(times.partition_point(|t| *t < time));
            let affected = event.affected.iter().filter_map(|name| layout.client(name)).collect();
            Some(Happened {
                window: Window::new(step(event.start), step(event.end)),
                origin: layout.client(event.origins.first()?)?,
                affected,
            })
        };
        let watched = events.iter().filter(|event| first.is_some_and(|t| event.start >= *t));
        Self {
            clients: layout.clients.len(),
            steps: times.len(),
            period_s: layout.period_s,
            events: watched.filter_map(happened).collect(),
        }
    }
}

impl Figures {
    /// Holds what was declared against what happened.
    pub(crate) fn of(truth: &Truth, output: &MethodOutput) -> Self {
        let Truth { clients: nobody, steps, events, .. } = truth;
        let steps = *steps;
        let anomalies: Vec<Named<usize>> =
            events.iter().map(|event| Named { window: event.window, name: event.origin }).collect();
        let declared: Vec<Named<usize>> = output
            .incidents
            .iter()
            .map(|incident| Named {
                window: Window::new(tick(incident.onset), tick(incident.last)),
                // A root that is unknown is no client's name.
                name: incident.root.unwrap_or(*nobody),
            })
            .collect();
        let rates = end_to_end(&anomalies, &declared, TAIL).rates;
        let onsets: Vec<Tick> = events.iter().map(|event| event.window.start).collect();
        let nominal = onsets.iter().copied().min().unwrap_or(tick(steps));
        let later: Vec<Named<usize>> =
            declared.iter().filter(|named| named.window.end >= nominal).copied().collect();
        let step = step_rates(&labelled(events, &output.names), GRACE);
        let windows = |list: &[Named<usize>]| list.iter().map(|n| n.window).collect::<Vec<_>>();
        let etapr = etapr(&windows(&anomalies), &windows(&declared), Thetas::default());

        let (mut right, mut delays, mut ranks) = (0, Vec::new(), Vec::<Rank>::new());
        for event in events {
            let belongs = |d: &&Declared| event.is_answered_by(d);
            let first = output.incidents.iter().find(belongs);
            right += usize::from(first.is_some_and(|d| d.root == Some(event.origin)));
            delays.extend(first.map(|d| (tick(d.opened) - event.window.start) as f64));
            ranks.push(
                first.and_then(|d| ranking::rank(d.root.as_ref(), &d.suspects, &[event.origin])),
            );
        }
        let alarms: Vec<Tick> = output.incidents.iter().map(|d| tick(d.opened)).collect();
        let early = alarms.iter().filter(|alarm| **alarm < nominal).count();
        let is_false = |d: &&Declared| !events.iter().any(|event| event.is_answered_by(d));
        let runs = run_length::runs(&onsets, tick(steps) - 1);
        Self {
            precision: rates.precision,
            recall: rates.recall,
            f1: rates.f1,
            f1_from_first_event: end_to_end(&anomalies, &later, TAIL).rates.f1,
            step_f1: step.whole.f1,
            inside_precision: step.inside.precision,
            step_recall: step.inside.recall,
            inside_f1: step.inside.f1,
            etapr_f1: etapr.rates.f1,
            events: events.len(),
            detected: delays.len(),
            right,
            false_alarms: output.incidents.iter().filter(is_false).count(),
            arl0: run_length::arl0(nominal as f64, early).into(),
            arl1: run_length::arl1(&runs, &alarms).into(),
            delays,
            ac1: ranking::accuracy_at(&ranks, 1),
            ac3: ranking::accuracy_at(&ranks, 3),
            avg5: ranking::average_at(&ranks, 5),
            mrr: ranking::mrr(&ranks),
        }
    }
}

fn labelled(events: &[Happened], said: &[Option<usize>]) -> Vec<Step<usize>> {
    let mut steps: Vec<Step<usize>> =
        said.iter().map(|said| Step { truth: None, said: *said }).collect();
    for event in events {
        let (start, end) = (event.window.start as usize, event.window.end as usize);
        for step in steps.iter_mut().take(end + 1).skip(start) {
            step.truth = Some(event.origin);
        }
    }
    steps
}

/// A step as a tick; no stream is as long as ticks can count.
fn tick(step: usize) -> Tick {
    Tick::try_from(step).unwrap_or(Tick::MAX)
}
