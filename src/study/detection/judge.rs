//! Incidents against events: end-to-end figures, right roots, delays, false alarms.

use jiff::Timestamp;
use serde::Serialize;

use super::rows::Rows;
use crate::evidence::inference::Incident;
use crate::study::metrics::incident::{Named, end_to_end};
use crate::study::metrics::{Tick, Window, share};

/// An event that was missed or pinned on another client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Missed {
    /// Which.
    pub event: String,
    /// What it was.
    pub what: String,
    /// Where it started.
    pub origins: Vec<String>,
    /// Who was named, if anybody.
    pub named: Option<String>,
}

/// An alarm that belongs to no event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FalseAlarm {
    /// When it was raised.
    pub opened: Timestamp,
    /// Steps for which it had evidence.
    pub steps: u64,
    /// Who was named.
    pub named: Option<String>,
}

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// EP: incidents that overlap an event and name its origin, of all incidents.
    pub precision: Option<f64>,
    /// ER: events so answered, of all events.
    pub recall: Option<f64>,
    /// EF: their harmonic mean.
    pub f1: Option<f64>,
    /// Events.
    pub events: usize,
    /// Events in whose window or tail an alarm was raised.
    pub detected: usize,
    /// Those whose first alarm named the origin.
    pub right: usize,
    /// Alarms that belong to no event.
    pub false_alarms: Vec<FalseAlarm>,
    /// Days watched.
    pub days: f64,
    /// Median time from an event's start to its first alarm.
    pub delay_s: Option<f64>,
    /// Samples in a block mean.
    pub decimation: u32,
    /// What went wrong.
    pub missed: Vec<Missed>,
}

/// Judges incidents whose steps count from `watched_from`. Steps of an incident start at 1.
pub(super) fn judge(
    rows: &Rows,
    watched_from: usize,
    incidents: &[Incident],
    tail_s: f64,
    decimation: u32,
) -> Judged {
    let period = rows.layout.period_s;
    let tail = (tail_s / period).ceil() as Tick;
    let name = |client: usize| rows.layout.clients[client].name.clone();
    let tick = |step: u64| ticks(watched_from) + ticks(step as usize) - 1;
    let events: Vec<(&crate::stream::Event, Window)> = rows
        .events
        .iter()
        .map(|event| {
            let (start, end) = (rows.step_at(event.start), rows.step_at(event.end));
            (event, Window::new(ticks(start), ticks(end)))
        })
        .filter(|(_, window)| window.start >= ticks(watched_from))
        .collect();
    let anomalies: Vec<Named<String>> = events
        .iter()
        .map(|(event, window)| Named {
            window: *window,
            name: event.origins.first().cloned().unwrap_or_default(),
        })
        .collect();
    let declared: Vec<Named<String>> = incidents
        .iter()
        .map(|incident| Named {
            window: Window::new(tick(incident.onset), tick(incident.last_evidence)),
            name: incident.root.map(name).unwrap_or_default(),
        })
        .collect();
    let rates = end_to_end(&anomalies, &declared, tail).rates;

    let opened = |incident: &Incident| tick(incident.opened);
    let belongs =
        |incident: &Incident, window: &Window| window.with_tail(tail).contains(opened(incident));
    let false_alarms = incidents
        .iter()
        .filter(|incident| !events.iter().any(|(_, window)| belongs(incident, window)))
        .map(|incident| FalseAlarm {
            opened: rows.times[opened(incident) as usize],
            steps: incident.last_evidence + 1 - incident.onset.min(incident.last_evidence),
            named: incident.root.map(name),
        })
        .collect();
    let (mut detected, mut right, mut delays, mut missed) = (0, 0, Vec::new(), Vec::new());
    for (event, window) in &events {
        let first = incidents.iter().find(|incident| belongs(incident, window));
        let named = first.and_then(|incident| incident.root).map(name);
        let is_right = named.as_ref().is_some_and(|named| event.origins.contains(named));
        detected += usize::from(first.is_some());
        right += usize::from(is_right);
        delays.extend(first.map(|incident| (opened(incident) - window.start + 1) as f64 * period));
        if !is_right {
            missed.push(Missed {
                event: event.id.clone(),
                what: event.what.clone(),
                origins: event.origins.clone(),
                named,
            });
        }
    }
    delays.sort_unstable_by(f64::total_cmp);
    let watched = rows.times.len().saturating_sub(watched_from) as f64 * period;
    Judged {
        precision: rates.precision,
        recall: rates.recall,
        f1: rates.f1,
        events: events.len(),
        detected,
        right,
        false_alarms,
        days: watched / 86_400.0,
        delay_s: delays.get(delays.len() / 2).copied(),
        decimation,
        missed,
    }
}

/// A step as a tick; no stream is as long as ticks can count.
fn ticks(step: usize) -> Tick {
    Tick::try_from(step).unwrap_or(Tick::MAX)
}

/// A line of the study: the means of several runs of one family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The family.
    pub family: String,
    /// How it was decided.
    pub method: String,
    /// Runs.
    pub seeds: usize,
    /// EP.
    pub precision: Option<f64>,
    /// ER.
    pub recall: Option<f64>,
    /// EF.
    pub f1: Option<f64>,
    /// Right roots, of the events detected in all runs.
    pub attribution: Option<f64>,
    /// Median time to the first alarm, averaged over runs.
    pub delay_s: Option<f64>,
    /// Right roots a run.
    pub right: f64,
    /// Events a run.
    pub events: f64,
    /// False alarms a day.
    pub false_alarms_per_day: f64,
}

impl Row {
    /// Sums up runs.
    #[must_use]
    pub fn of(family: &str, method: &str, runs: &[Judged]) -> Self {
        let sum = |count: fn(&Judged) -> usize| runs.iter().map(count).sum::<usize>();
        let n = runs.len().max(1) as f64;
        let days: f64 = runs.iter().map(|run| run.days).sum();
        Self {
            family: family.into(),
            method: method.into(),
            seeds: runs.len(),
            precision: mean(runs.iter().map(|run| run.precision)),
            recall: mean(runs.iter().map(|run| run.recall)),
            f1: mean(runs.iter().map(|run| run.f1)),
            attribution: share(sum(|run| run.right), sum(|run| run.detected)),
            delay_s: mean(runs.iter().map(|run| run.delay_s)),
            right: sum(|run| run.right) as f64 / n,
            events: sum(|run| run.events) as f64 / n,
            false_alarms_per_day: sum(|run| run.false_alarms.len()) as f64
                / days.max(f64::MIN_POSITIVE),
        }
    }
}

/// Mean of what there is; none of nothing.
fn mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().flatten().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
