//! One session run through the engine to its end: what it said, with the truth beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::figures::{Declared, Figures, MethodOutput, Truth};
use super::flags::FlagSeries;
use crate::engine;
use crate::engine::handle::Options;
use crate::engine::prepare::Prepared;
use crate::fact::{self, Fact};
use crate::privacy::{Tally, What};
use crate::session::{Mode, Session};
use crate::stream::Layout;
use crate::study::frame::StudyError;

/// What a run came to.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) truth: Truth,
    pub(crate) output: MethodOutput,
    /// The flags that were sent; in evidence mode there are none.
    pub(crate) flags: FlagSeries,
    /// What each client released while it was watched.
    pub(crate) released: Vec<Tally>,
}

impl Watched {
    /// Holds what was declared against what happened.
    pub(crate) fn figures(&self) -> Figures {
        Figures::of(&self.truth, &self.output)
    }

    /// How long it was watched.
    pub(crate) fn seconds(&self) -> f64 {
        self.truth.steps as f64 * self.truth.period_s
    }

    /// How much of that was outside events and their tails.
    pub(crate) fn quiet_seconds(&self) -> f64 {
        self.truth.quiet_steps() as f64 * self.truth.period_s
    }
}

/// Runs `session` in its own mode over all of its replay range.
pub(crate) fn watch(session: &Session, prepared: &Arc<Prepared>) -> Result<Watched, StudyError> {
    let clients = prepared.clients.len();
    let mut seen = Seen {
        times: Vec::new(),
        evidence: Vec::new(),
        flags: FlagSeries::new(clients),
        alarms: Vec::new(),
        released: Vec::new(),
    };
    let mut onsets: BTreeMap<u64, Timestamp> = BTreeMap::new();
    let engine = engine::spawn(session, Options::study(Arc::clone(prepared)))?;
    let ended = engine.to_end(|opened, update| {
        let news = &update.news;
        // Every step is told by itself, and what follows the last one after it.
        seen.times.extend_from_slice(&news.times);
        match session.mode {
            Mode::Evidence => seen.evidence.extend(news.sights.iter().map(|s| s.server.evidence)),
            Mode::Paper if !news.times.is_empty() => {
                seen.flags.push(news.sights.iter().map(|sight| sight.server.flags));
            }
            Mode::Paper => {}
        }
        news.facts.iter().for_each(|fact| seen.take(fact, &opened.steps));
        onsets.extend(news.incidents.iter().map(|incident| (incident.number, incident.onset)));
    });
    let (opened, ending) = ended.map_err(StudyError::Run)?;
    let onsets: Vec<Timestamp> = onsets.into_values().collect();
    let truth = Truth::new(&opened.steps, &seen.times, &ending.events);
    let named = match session.mode {
        Mode::Evidence => None,
        Mode::Paper => Some(seen.flags.look_up(session.thresholds.vote)),
    };
    let incidents = seen.incidents(&onsets, clients, named.as_deref());
    let output = match named {
        None => MethodOutput::from_incidents(incidents, truth.steps),
        Some(names) => MethodOutput { incidents, names },
    };
    Ok(Watched { truth, output, flags: seen.flags, released: seen.released })
}

/// One alarm, as its facts tell it.
struct Alarm {
    opened: usize,
    closed: usize,
    root: Option<usize>,
    posterior: Vec<(usize, f64)>,
}

/// What is gathered on the way.
struct Seen {
    times: Vec<Timestamp>,
    /// S_m by b_m of every client at every step; in paper mode there is none.
    evidence: Vec<f32>,
    flags: FlagSeries,
    /// By number; the first incident is number 1.
    alarms: Vec<Alarm>,
    released: Vec<Tally>,
}

impl Seen {
    fn take(&mut self, fact: &Fact, layout: &Layout) {
        match fact {
            Fact::Opened(incident) => {
                let step = self.times.len().saturating_sub(1);
                let nothing =
                    Alarm { opened: step, closed: step, root: None, posterior: Vec::new() };
                self.alarms.push(nothing);
                self.follow(incident, layout);
            }
            Fact::Updated(incident) | Fact::Closed(incident) => self.follow(incident, layout),
            Fact::Ledger(ledger) => self.released.push(while_watched(ledger)),
            _ => {}
        }
    }

    /// The root and its probabilities are those of the last word.
    fn follow(&mut self, incident: &fact::Incident, layout: &Layout) {
        let step = self.times.len().saturating_sub(1);
        let place = (incident.incident as usize).checked_sub(1);
        let Some(alarm) = place.and_then(|place| self.alarms.get_mut(place)) else { return };
        alarm.closed = step;
        alarm.root = incident.root.as_ref().and_then(|root| layout.client(root));
        let suspects = incident.posterior.0.iter();
        alarm.posterior =
            suspects.filter_map(|(name, p)| Some((layout.client(name)?, p.get()))).collect();
    }

    /// Every alarm with its first and its last evidence. An incident stays open until it is certain
    /// that it is over; what spoke for it ends earlier: in paper mode with the last step that was
    /// `named`, in evidence mode with the highest evidence of its root.
    fn incidents(
        &self,
        onsets: &[Timestamp],
        clients: usize,
        named: Option<&[Option<usize>]>,
    ) -> Vec<Declared> {
        let of = |(alarm, onset): (&Alarm, &Timestamp)| {
            let open = alarm.opened..=alarm.closed;
            let last = match named {
                Some(named) => open.rev().find(|t| named.get(*t).is_some_and(Option::is_some)),
                None => likeliest(alarm).and_then(|root| {
                    let evidence = |t: &usize| self.evidence[t * clients + root];
                    open.max_by(|a, b| evidence(a).total_cmp(&evidence(b)))
                }),
            };
            Declared {
                onset: self.times.partition_point(|t| t < onset).min(alarm.opened),
                opened: alarm.opened,
                last: last.unwrap_or(alarm.opened),
                root: alarm.root,
                suspects: alarm.posterior.clone(),
            }
        };
        self.alarms.iter().zip(onsets).map(of).collect()
    }
}

/// Whom an alarm names, or would name first.
fn likeliest(alarm: &Alarm) -> Option<usize> {
    let most = || alarm.posterior.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    alarm.root.or_else(|| most().map(|(client, _)| *client))
}

/// What a client released live: its states and gradients are of training.
fn while_watched(ledger: &fact::Ledger) -> Tally {
    let mut tally = Tally::NOTHING;
    for counted in &ledger.mechanisms {
        match counted.what {
            What::ProprietaryFlag | What::AugmentedFlag | What::Symbol | What::Watch => {
                tally.add(counted.spend, counted.count);
            }
            What::ProprietaryState
            | What::AugmentedState
            | What::Gradient
            | What::Sensors
            | What::Faults
            | What::Enrolment => {}
        }
    }
    tally
}
