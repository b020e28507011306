//! One session run through the engine to its end: its incidents and flags, with the truth beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::figures::{Declared, Figures, MethodOutput};
use crate::engine;
use crate::engine::experiment::Failure;
use crate::engine::experiment::flags::FlagSeries;
use crate::engine::experiment::spending::DailySpending;
use crate::engine::handle::Options;
use crate::engine::prepare::Prepared;
use crate::fact::{Fact, Incident, Ledger};
use crate::score::steps::Truth;
use crate::session::{Mode, Session};

/// A whole run.
#[derive(Debug, Clone)]
pub(crate) struct WatchedRun {
    pub truth: Truth,
    pub output: MethodOutput,
    /// The flags that were sent; in evidence mode there are none.
    pub flags: FlagSeries,
    ledgers: Vec<Ledger>,
}

impl WatchedRun {
    pub(crate) fn figures(&self) -> Figures {
        Figures::of(&self.truth, &self.output)
    }

    /// Days outside events and their tails.
    pub(crate) fn quiet_days(&self) -> f64 {
        self.truth.quiet_steps() as f64 * self.truth.period_s / 86_400.0
    }

    /// The privacy that a day at the pace of this run spends, at `delta`.
    pub(crate) fn daily_spending(&self, delta: f64) -> DailySpending {
        DailySpending::of(&self.ledgers, self.truth.steps as f64 * self.truth.period_s, delta)
    }
}

/// Runs `session` in its own mode over all of its replay range.
pub(crate) fn watch(session: &Session, prepared: &Arc<Prepared>) -> Result<WatchedRun, Failure> {
    let clients = prepared.clients.len();
    let mut gathered = Gathered {
        times: Vec::new(),
        evidence: Vec::new(),
        flags: FlagSeries::new(clients),
        alarms: Vec::new(),
        ledgers: Vec::new(),
    };
    let mut onsets: BTreeMap<u64, Timestamp> = BTreeMap::new();
    let engine = engine::spawn(session, Options::study(Arc::clone(prepared)))?;
    let (opened, ending) = engine.into_end(|_, update| {
        let news = &update.news;
        // Every step comes by itself, and the facts after the last one without a step.
        gathered.times.extend_from_slice(&news.times);
        match session.mode {
            Mode::Evidence => {
                gathered
                    .evidence
                    .extend(news.readouts.iter().map(|readout| readout.server.evidence));
            }
            Mode::Paper if !news.times.is_empty() => {
                gathered.flags.push(news.readouts.iter().map(|readout| readout.server.flags));
            }
            Mode::Paper => {}
        }
        news.facts.iter().for_each(|fact| gathered.take(fact));
        onsets.extend(news.incidents.iter().map(|incident| (incident.number, incident.onset)));
    })?;
    let onsets: Vec<Timestamp> = onsets.into_values().collect();
    let truth = Truth::new(&opened.steps, &gathered.times, &ending.events, session.replay.tail);
    let client = |name: &str| opened.steps.client(name);
    let output = match session.mode {
        Mode::Evidence => {
            let incidents = gathered.incidents(&onsets, client, clients);
            MethodOutput::from_incidents(incidents, truth.steps)
        }
        // Alarms are those of the run: one for each run of steps with one root.
        Mode::Paper => MethodOutput::from_names(gathered.flags.look_up(session.thresholds.vote)),
    };
    Ok(WatchedRun { truth, output, flags: gathered.flags, ledgers: gathered.ledgers })
}

/// One incident: the steps of its first and its last fact, and that last fact.
struct IncidentSpan {
    opened: usize,
    closed: usize,
    last: Incident,
}

/// Facts and readouts of a run so far.
struct Gathered {
    times: Vec<Timestamp>,
    /// S_m by b_m of every client at every step; in paper mode there is none.
    evidence: Vec<f32>,
    flags: FlagSeries,
    /// By number; the first incident is number 1.
    alarms: Vec<IncidentSpan>,
    ledgers: Vec<Ledger>,
}

impl Gathered {
    fn take(&mut self, fact: &Fact) {
        let step = self.times.len().saturating_sub(1);
        match fact {
            Fact::Opened(incident) => {
                self.alarms.push(IncidentSpan {
                    opened: step,
                    closed: step,
                    last: incident.clone(),
                });
            }
            Fact::Updated(incident) | Fact::Closed(incident) => {
                let place = (incident.incident as usize).checked_sub(1);
                if let Some(alarm) = place.and_then(|place| self.alarms.get_mut(place)) {
                    (alarm.closed, alarm.last) = (step, incident.clone());
                }
            }
            Fact::Ledger(ledger) => self.ledgers.push(ledger.clone()),
            Fact::Training(_)
            | Fact::Calibrated(_)
            | Fact::Verdict(_)
            | Fact::Setting(_)
            | Fact::Quality(_)
            | Fact::Summary(_) => {}
        }
    }

    /// Every alarm with its first and its last evidence. An incident stays open until it is certain
    /// that it is over; its evidence ends earlier, with the highest evidence of its root.
    fn incidents(
        &self,
        onsets: &[Timestamp],
        client: impl Fn(&str) -> Option<usize>,
        clients: usize,
    ) -> Vec<Declared> {
        let of = |(alarm, onset): (&IncidentSpan, &Timestamp)| {
            let root = alarm.last.root.as_deref().and_then(&client);
            let suspects: Vec<(usize, f64)> = (alarm.last.posterior.0.iter())
                .filter_map(|(name, p)| Some((client(name)?, p.get())))
                .collect();
            let likeliest = || suspects.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(m, _)| *m);
            let open = alarm.opened..=alarm.closed;
            let last = root.or_else(likeliest).and_then(|root| {
                let evidence = |t: &usize| self.evidence[t * clients + root];
                open.max_by(|a, b| evidence(a).total_cmp(&evidence(b)))
            });
            Declared {
                onset: self.times.partition_point(|t| t < onset).min(alarm.opened),
                opened: alarm.opened,
                last: last.unwrap_or(alarm.opened),
                root,
                candidates: alarm.last.candidates.iter().filter_map(|name| client(name)).collect(),
                suspects,
            }
        };
        self.alarms.iter().zip(onsets).map(of).collect()
    }
}
