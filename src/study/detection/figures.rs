//! All figures of one method on one run, from its declared incidents.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::score::metrics::etapr::{Thetas, etapr};
use crate::score::metrics::incident::{GAP, Named, TAIL, end_to_end, group};
use crate::score::metrics::ranking::{self, Rank};
use crate::score::metrics::run_length::{self, RunTotals};
use crate::score::metrics::step::{GRACE, Step, step_rates};
use crate::score::metrics::{Tick, Window};
use crate::score::steps::{Truth, TruthEvent, tick};

/// An incident that a method declared. Steps count from the first one watched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Declared {
    /// First step of its evidence.
    pub onset: usize,
    /// The step of the alarm.
    pub opened: usize,
    /// Last step with evidence for it.
    pub last: usize,
    pub root: Option<usize>,
    /// Who may be the root while nobody is named.
    pub candidates: Vec<usize>,
    /// Clients with their weights as the root.
    pub suspects: Vec<(usize, f64)>,
}

/// The output of a method over a whole run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MethodOutput {
    pub incidents: Vec<Declared>,
    /// The named root, or none, at every step.
    pub names: Vec<Option<usize>>,
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
                let candidates = Vec::new();
                Declared { onset, opened: onset, last, root: Some(name), candidates, suspects }
            })
            .collect();
        Self { incidents, names }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// EP: incidents with the right name, of all.
    pub precision: Option<f64>,
    /// ER: events so answered, of all.
    pub recall: Option<f64>,
    /// EF: their harmonic mean.
    pub f1: Option<f64>,
    /// EF of the incidents from the first event on: those of the nominal stretch before it are left
    /// to ARL0.
    pub f1_from_first_event: Option<f64>,
    /// F1 per step over the whole stream.
    pub step_f1: Option<f64>,
    /// Precision per step inside anomalies only: the most lenient reading.
    pub inside_precision: Option<f64>,
    pub step_recall: Option<f64>,
    pub inside_f1: Option<f64>,
    /// F1 of eTaPR with its usual thetas; names do not count.
    pub etapr_f1: Option<f64>,
    pub events: usize,
    /// Events in whose window or tail an alarm was raised.
    pub detected: usize,
    /// Those whose first alarm named the origin.
    pub right: usize,
    /// Alarms that were raised in no event and in no tail.
    pub false_alarms: usize,
    /// Steps outside events and their tails, and the alarms that were raised in them.
    pub arl0: RunTotals,
    /// From each onset to the next alarm.
    pub arl1: RunTotals,
    /// Steps from an event's start to its first alarm, of the events detected.
    pub delays: Vec<f64>,
    /// AC@k, Avg@5 and MRR over all events, missed ones included.
    pub ac1: Option<f64>,
    pub ac3: Option<f64>,
    pub avg5: Option<f64>,
    pub mrr: Option<f64>,
}

impl Figures {
    /// Judges the output of a method against the truth.
    pub(crate) fn of(truth: &Truth, output: &MethodOutput) -> Self {
        let Truth { clients: no_client, steps, events, .. } = truth;
        let steps = *steps;
        let anomalies: Vec<Named<usize>> =
            events.iter().map(|event| Named { window: event.window, name: event.origin }).collect();
        let declared: Vec<Named<usize>> = output
            .incidents
            .iter()
            .map(|incident| Named {
                window: Window::new(tick(incident.onset), tick(incident.last)),
                // A root that is unknown is no client's name.
                name: incident.root.unwrap_or(*no_client),
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
            let belongs = |d: &&Declared| event.is_answered_at(d.opened);
            let first = output.incidents.iter().find(belongs);
            right += usize::from(first.is_some_and(|d| d.root == Some(event.origin)));
            delays.extend(first.map(|d| (tick(d.opened) - event.window.start) as f64));
            ranks.push(
                first.and_then(|d| ranking::rank(d.root.as_ref(), &d.suspects, &[event.origin])),
            );
        }
        let alarms: Vec<Tick> = output.incidents.iter().map(|d| tick(d.opened)).collect();
        let is_false = |d: &&Declared| !events.iter().any(|event| event.is_answered_at(d.opened));
        let false_alarms = output.incidents.iter().filter(is_false).count();
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
            false_alarms,
            arl0: run_length::arl0(truth.quiet_steps() as f64, false_alarms).into(),
            arl1: run_length::arl1(&runs, &alarms).into(),
            delays,
            ac1: ranking::accuracy_at(&ranks, 1),
            ac3: ranking::accuracy_at(&ranks, 3),
            avg5: ranking::average_at(&ranks, 5),
            mrr: ranking::mrr(&ranks),
        }
    }
}

fn labelled(events: &[TruthEvent], names: &[Option<usize>]) -> Vec<Step<usize>> {
    let mut steps: Vec<Step<usize>> =
        names.iter().map(|name| Step { truth: None, declared: *name }).collect();
    for event in events {
        let (start, end) = (event.window.start as usize, event.window.end as usize);
        for step in steps.iter_mut().take(end + 1).skip(start) {
            step.truth = Some(event.origin);
        }
    }
    steps
}
