//! All figures of one method on one run, from what it declares.
//!
//! An alarm is raised at the first step of a run of steps with one named root, as in a run of the same
//! session. All figures about alarms count these: false alarms, ARL0, ARL1, detected, right, delays,
//! rankings, eTaPR. Only precision, recall and F1 per episode put named steps together that are up to
//! [`GAP`] apart.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::engine::experiment::flags::{FlagSeries, Span, steps_of_a_minute};
use crate::score::metrics::etapr::{Thetas, etapr};
use crate::score::metrics::incident::{GAP, Named, end_to_end, group};
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
    /// The alarms that a run of the same session raises.
    pub alarms: Vec<Declared>,
    /// What counts as one in precision, recall and F1 per episode, with its root, if one is named.
    pub episodes: Vec<Named<Option<usize>>>,
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
        let episode = |incident: &Declared| Named {
            window: Window::new(tick(incident.onset), tick(incident.last)),
            name: incident.root,
        };
        let episodes = incidents.iter().map(episode).collect();
        Self { alarms: incidents, episodes, names }
    }

    /// Of a method that names a root, or none, at every step. Named steps that are up to [`GAP`] apart are
    /// one episode.
    pub(crate) fn from_names(names: Vec<Option<usize>>) -> Self {
        let episodes = group(&names, GAP).into_iter().map(with_root).collect();
        Self { episodes, ..Self::from_runs(names) }
    }

    /// The same with every run of steps with one name as an episode.
    pub(crate) fn from_runs(names: Vec<Option<usize>>) -> Self {
        let runs = runs(&names);
        let alarm = |Named { window, name }: &Named<usize>| {
            let (onset, last) = (window.start as usize, window.end as usize);
            Declared {
                onset,
                opened: onset,
                last,
                root: Some(*name),
                candidates: Vec::new(),
                suspects: vec![(*name, 1.0)],
            }
        };
        let alarms = runs.iter().map(alarm).collect();
        Self { alarms, episodes: runs.into_iter().map(with_root).collect(), names }
    }
}

fn with_root(named: Named<usize>) -> Named<Option<usize>> {
    Named { window: named.window, name: Some(named.name) }
}

/// The longest runs of steps with one name.
fn runs(names: &[Option<usize>]) -> Vec<Named<usize>> {
    let mut runs: Vec<Named<usize>> = Vec::new();
    for (t, name) in names.iter().enumerate() {
        let Some(name) = *name else { continue };
        match runs.last_mut() {
            Some(run) if run.name == name && run.window.end + 1 == tick(t) => {
                run.window.end = tick(t);
            }
            _ => runs.push(Named { window: Window::new(tick(t), tick(t)), name }),
        }
    }
    runs
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
    /// The same of those whose first alarm named the origin.
    pub named: Vec<f64>,
    /// AC@k, Avg@5 and MRR over all events, missed ones included.
    pub ac1: Option<f64>,
    pub ac3: Option<f64>,
    pub avg5: Option<f64>,
    pub mrr: Option<f64>,
}

impl Figures {
    /// Of the flags of minutes, looked up with Table 1 minute by minute: everything counted in minutes, from the
    /// minute that holds an onset. None where a step is too long for a minute to have many.
    pub(crate) fn of_minutes(truth: &Truth, flags: &FlagSeries, span: Span) -> Option<Self> {
        let each = steps_of_a_minute(truth.period_s)?;
        let names = flags.gather(span, each).look_up(None);
        Some(Self::of(&truth.in_blocks(each), &MethodOutput::from_names(names)))
    }

    /// Judges the output of a method against the truth.
    pub(crate) fn of(truth: &Truth, output: &MethodOutput) -> Self {
        let Truth { steps, events, .. } = truth;
        let steps = *steps;
        let MethodOutput { alarms, episodes, names } = output;
        let anomalies: Vec<Named<Option<usize>>> = events
            .iter()
            .map(|event| Named { window: event.window, name: Some(event.origin) })
            .collect();
        let tail = events.iter().map(|event| event.tail).max().unwrap_or(0);
        let rates = end_to_end(&anomalies, episodes, tail).rates;
        let onsets: Vec<Tick> = events.iter().map(|event| event.window.start).collect();
        let nominal = onsets.iter().copied().min().unwrap_or(tick(steps));
        let later: Vec<Named<Option<usize>>> =
            episodes.iter().filter(|named| named.window.end >= nominal).copied().collect();
        let step = step_rates(&labelled(events, names), GRACE);
        let windows: Vec<Window> = events.iter().map(|event| event.window).collect();
        let raised: Vec<Window> =
            alarms.iter().map(|d| Window::new(tick(d.onset), tick(d.last))).collect();
        let etapr = etapr(&windows, &raised, Thetas::default());

        let (mut delays, mut named, mut ranks) = (Vec::new(), Vec::new(), Vec::<Rank>::new());
        for event in events {
            let belongs = |d: &&Declared| event.is_answered_at(d.opened);
            let first = alarms.iter().find(belongs);
            let delay = |d: &Declared| (tick(d.opened) - event.window.start) as f64;
            delays.extend(first.map(delay));
            named.extend(first.filter(|d| d.root == Some(event.origin)).map(delay));
            ranks.push(
                first.and_then(|d| ranking::rank(d.root.as_ref(), &d.suspects, &[event.origin])),
            );
        }
        let is_false = |d: &&Declared| !events.iter().any(|event| event.is_answered_at(d.opened));
        let false_alarms = alarms.iter().filter(is_false).count();
        let alarms: Vec<Tick> = alarms.iter().map(|d| tick(d.opened)).collect();
        let runs = run_length::runs(&onsets, tick(steps) - 1);
        Self {
            precision: rates.precision,
            recall: rates.recall,
            f1: rates.f1,
            f1_from_first_event: end_to_end(&anomalies, &later, tail).rates.f1,
            step_f1: step.whole.f1,
            inside_precision: step.inside.precision,
            step_recall: step.inside.recall,
            inside_f1: step.inside.f1,
            etapr_f1: etapr.rates.f1,
            events: events.len(),
            detected: delays.len(),
            right: named.len(),
            false_alarms,
            arl0: run_length::arl0(truth.quiet_steps() as f64, false_alarms).into(),
            arl1: run_length::arl1(&runs, &alarms).into(),
            delays,
            named,
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
