//! All figures of one list of alarms, together, as they should be published.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::alarms::{self, AlarmFile};
use super::error::ScoreError;
use super::{Judgement, Score, Verdict, Watched, seconds, truth};
use crate::score::metrics::confusion::{Confusion, Role};
use crate::score::metrics::delay::{Delays, per_day};
use crate::score::metrics::etapr::{Etapr, Thetas, etapr};
use crate::score::metrics::ranking;
use crate::score::metrics::run_length::{RunLength, arl0};
use crate::score::metrics::{Rates, Window, share};
use crate::session::Span;
use crate::stream::Event;

/// What `headwater score` prints: the contract's figures first, then the rest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The figures of the contract.
    #[serde(flatten)]
    pub(crate) score: Score,
    /// Where `days` comes from.
    pub(crate) days_from: DaysFrom,
    /// The line at which the alarm file breaks off, where it does: it and what should follow is not
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cut_at_line: Option<u64>,
    /// How long after an event an alarm still belongs to it.
    pub(crate) tail_s: f64,
    /// Alarms of an event that already had one.
    pub(crate) repeats: usize,
    /// False alarms over the days watched without an event.
    pub(crate) false_alarms_per_day: Option<f64>,
    /// Events found, whatever root was named.
    pub(crate) episode: Rates,
    /// Roots named rightly: of the roots named, and of the events whose origin is known.
    pub(crate) naming: Rates,
    /// Roots named rightly, of the detected events whose origin is known.
    pub(crate) attribution: Option<f64>,
    /// Share of events with an origin among the first three suspects.
    pub(crate) ac3: Option<f64>,
    /// Mean of AC@1 to AC@5.
    pub(crate) avg5: Option<f64>,
    /// From the start of an event to the moment since which the right root stands.
    pub(crate) attribution_delay_s: Delays,
    /// Nominal seconds per false alarm.
    pub(crate) arl0_s: RunLength,
    /// From the start of an event to its alarm; censored at the end of its tail.
    pub(crate) arl1_s: RunLength,
    /// What clients were and what they were taken for, over detected events with known origins.
    /// Only clients that the truth or the alarm mentions are counted.
    pub(crate) confusion: Confusion,
    /// Ranges of whole seconds, when the file has the closings of alarms.
    pub(crate) etapr: Option<Etapr>,
    pub(crate) false_alarm_list: Vec<FalseAlarm>,
}

/// How the time watched is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DaysFrom {
    /// The alarm file's summary has it.
    Summary,
    /// It is the time between the first and the last instant in the two files, so at least.
    Files,
}

/// One alarm that belongs to no event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FalseAlarm {
    pub(crate) time: Timestamp,
    /// The root it names.
    pub(crate) root: Option<String>,
}

/// Scores an alarm file against a truth file: the command `headwater score`.
pub(crate) fn run(truth: &Path, alarms: &Path, tail: Span) -> Result<Report, ScoreError> {
    let events = truth::read(truth)?;
    let file = alarms::read(alarms)?;
    Ok(Report::new(&events, &file, tail))
}

impl Report {
    /// All figures of an alarm file that has been read.
    pub(crate) fn new(events: &[Event], file: &AlarmFile, tail: Span) -> Self {
        let extent = extent(events, file);
        let (watched, days_from) = match &file.watched {
            Some(watched) => (watched.clone(), DaysFrom::Summary),
            None => (Watched::Spans(extent.into_iter().collect()), DaysFrom::Files),
        };
        let judgement = Judgement::new(events, &file.alarms, &watched, tail.seconds);
        let score = judgement.score();
        let ranks = judgement.ranks();
        let last = extent.map(|(_, last)| last).filter(|_| file.closings);
        Self {
            days_from,
            cut_at_line: file.cut_at_line,
            tail_s: tail.seconds,
            repeats: judgement.repeats,
            false_alarms_per_day: per_day(score.false_alarms, score.quiet_days),
            episode: Rates::from_counts(
                score.detected,
                score.detected + score.false_alarms,
                score.labelled,
            ),
            naming: naming(&judgement),
            attribution: share(
                score.root_right,
                score.detected - judgement.count(Verdict::Doubtful),
            ),
            ac3: ranking::accuracy_at(&ranks, 3),
            avg5: ranking::average_at(&ranks, 5),
            attribution_delay_s: attribution_delay(&judgement),
            arl0_s: arl0(judgement.nominal_s, score.false_alarms),
            arl1_s: until_alarm(&judgement, tail),
            confusion: confusion(&judgement),
            etapr: last.map(|last| ranges(&judgement, file, last)),
            false_alarm_list: judgement
                .false_alarms
                .iter()
                .map(|alarm| FalseAlarm { time: alarm.opened, root: alarm.root.clone() })
                .collect(),
            score,
        }
    }
}

/// From the first to the last instant that either file mentions.
fn extent(events: &[Event], file: &AlarmFile) -> Option<(Timestamp, Timestamp)> {
    let events = events.iter().flat_map(|e| [Some(e.start), Some(e.end)]);
    let alarms = file.alarms.iter().flat_map(|a| [Some(a.opened), a.closed]);
    let times = || events.clone().chain(alarms.clone()).flatten();
    let watched = match &file.watched {
        Some(Watched::Spans(spans)) => spans.iter().map(|(_, until)| *until).max(),
        Some(Watched::Within { until, .. }) => Some(*until),
        Some(Watched::Days(_)) | None => None,
    };
    Some((times().min()?, times().chain(watched).max()?))
}

fn naming(judgement: &Judgement<'_>) -> Rates {
    let right = judgement.count(Verdict::Right);
    let false_names = judgement.false_alarms.iter().filter(|alarm| alarm.root.is_some()).count();
    let named = right + judgement.count(Verdict::Wrong) + false_names;
    let known = judgement.outcomes.iter().filter(|o| !o.event.origins.is_empty()).count();
    Rates::from_counts(right, named, known)
}

fn attribution_delay(judgement: &Judgement<'_>) -> Delays {
    let delays: Vec<f64> = judgement
        .outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Right)
        .filter_map(|outcome| {
            let alarm = outcome.alarm?;
            Some(seconds(outcome.event.start, alarm.named.unwrap_or(alarm.opened)))
        })
        .collect();
    Delays::of(&delays)
}

/// Each event is answered by its own first alarm only, so the runs need not be searched for alarms.
fn until_alarm(judgement: &Judgement<'_>, tail: Span) -> RunLength {
    let watched = judgement.outcomes.iter().map(|outcome| {
        let whole = seconds(outcome.event.start, outcome.event.end) + tail.seconds;
        outcome.delay_s().unwrap_or(whole)
    });
    let censored = judgement.count(Verdict::Missed);
    RunLength::new(watched.sum(), judgement.outcomes.len() - censored, censored)
}

fn confusion(judgement: &Judgement<'_>) -> Confusion {
    let mut table = Confusion::default();
    for outcome in &judgement.outcomes {
        let event = outcome.event;
        let Some(alarm) = outcome.alarm.filter(|_| !event.origins.is_empty()) else { continue };
        let mut clients: Vec<&String> = event
            .origins
            .iter()
            .chain(&event.affected)
            .chain(&alarm.root)
            .chain(&alarm.effects)
            .collect();
        clients.sort_unstable();
        clients.dedup();
        for client in clients {
            let role = |root: bool, effect: bool| match (root, effect) {
                (true, _) => Role::Root,
                (false, true) => Role::Effect,
                (false, false) => Role::Quiet,
            };
            table.count(
                role(event.origins.contains(client), event.affected.contains(client)),
                role(alarm.root.as_ref() == Some(client), alarm.effects.contains(client)),
            );
        }
    }
    table
}

fn ranges(judgement: &Judgement<'_>, file: &AlarmFile, last: Timestamp) -> Etapr {
    let range = |from: Timestamp, to: Timestamp| Window::new(from.as_second(), to.as_second());
    let anomalies: Vec<Window> =
        judgement.outcomes.iter().map(|o| range(o.event.start, o.event.end)).collect();
    let predictions: Vec<Window> =
        file.alarms.iter().map(|a| range(a.opened, a.closed.unwrap_or(last))).collect();
    etapr(&anomalies, &predictions, Thetas::default())
}
