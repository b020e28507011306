//! A session run in both modes and judged: shared by the studies of plants on a clock.
//!
//! The paper computes root causes of Table 4 from flags per minute. Where a step is a second, the flags of
//! paper mode are gathered to those of minutes and looked up again, in both readings of it.

mod flags;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine;
use crate::engine::experiment::flags::{FlagSeries, Span};
use crate::engine::experiment::{Failure, Variant};
use crate::engine::handle::Options;
use crate::engine::prepare::{Stage, cache_file, prepare};
use crate::engine::run::Ending;
use crate::score::metrics::delay::{Delays, per_day};
use crate::score::metrics::etapr::{Thetas, etapr};
use crate::score::metrics::run_length::{self, RunLength, RunTotals};
use crate::score::metrics::{Rates, Tick, Window, share};
use crate::score::steps::Truth;
use crate::score::{Outcome, Verdict};
use crate::session::{Mode, Session};
use crate::study::detection::as_published;
use crate::study::detection::figures::Figures;
use crate::study::published::{RootCause, Table4};
use crate::study::report::columns::{self, all, family, json, mean, seeds, shown};
use crate::study::report::{Axis, Bar, Cell, Chart, Columns, Figure, Spread, Table};

pub(super) use self::flags::{flag_rows, flag_table};

/// A mode with its settings.
struct Method {
    /// For other programs.
    name: &'static str,
    /// For people.
    label: &'static str,
    /// Of paper mode: the percentile of both thresholds, and whether three of five steps must agree.
    flags: Option<(f64, bool)>,
    /// The time that one flag covers.
    span: Span,
}

impl Method {
    const fn new(name: &'static str, label: &'static str, flags: Option<(f64, bool)>) -> Self {
        Self { name, label, flags, span: Span::Step }
    }

    const fn of_minutes(
        name: &'static str,
        label: &'static str,
        percentile: f64,
        span: Span,
    ) -> Self {
        Self { name, label, flags: Some((percentile, false)), span }
    }
}

/// In the order in which they are shown.
const METHODS: [Method; 4] = [
    Method::new("evidence", "evidence", None),
    Method::new("paper-95", "paper at 95 %", Some((95.0, false))),
    Method::new("paper-99.5", "paper at 99.5 %", Some((99.5, false))),
    Method::new("paper-99-vote", "paper at 99 %, 3 of 5", Some((99.0, true))),
];

/// Each is shown behind the method whose flags it gathers.
const MINUTES: [Method; 4] = [
    Method::of_minutes(
        "paper-95-any-minute",
        "at 95 %, a minute with any flag",
        95.0,
        Span::AnyOfAMinute,
    ),
    Method::of_minutes(
        "paper-95-most-minute",
        "at 95 %, a minute of mostly flags",
        95.0,
        Span::MostOfAMinute,
    ),
    Method::of_minutes(
        "paper-99.5-any-minute",
        "at 99.5 %, a minute with any flag",
        99.5,
        Span::AnyOfAMinute,
    ),
    Method::of_minutes(
        "paper-99.5-most-minute",
        "at 99.5 %, a minute of mostly flags",
        99.5,
        Span::MostOfAMinute,
    ),
];

/// One run of one method, judged.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct JudgedRun {
    pub method: String,
    pub events: usize,
    pub detected: usize,
    pub right: usize,
    pub false_alarms: usize,
    /// Time watched outside attacks and their tails.
    pub quiet_s: f64,
    /// Seconds without event, with the false alarms in them.
    pub arl0: RunTotals,
    /// Seconds from each onset to the next alarm.
    pub arl1: RunTotals,
    /// Seconds from an event's start to its first alarm.
    pub delays_s: Vec<f64>,
    /// Seconds from an event's start until its origin was named.
    pub named_s: Vec<f64>,
    pub ac1: Option<f64>,
    pub mrr: Option<f64>,
    pub etapr_f1: Option<f64>,
    /// One by one; not of flags of minutes.
    pub attacks: Vec<Attack>,
}

/// One attack and its first alarm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Attack {
    pub id: String,
    pub what: String,
    pub origins: Vec<String>,
    pub named: Option<String>,
    pub right: bool,
    pub delay_s: Option<f64>,
}

/// Watches `session` by every method, with models that are made once.
pub(super) fn watch(session: &Session) -> Result<Vec<JudgedRun>, Failure> {
    let go_on = &mut |_: Stage| ControlFlow::Continue(());
    let prepared = Arc::new(prepare(session, &cache_file(session), go_on)?);
    let mut judged_runs = Vec::new();
    for method in &METHODS {
        let mut session = session.clone();
        if let Some((percentile, is_voted)) = method.flags {
            as_published(&mut session, percentile, is_voted);
        }
        let gathered: Vec<&Method> =
            MINUTES.iter().filter(|minutes| minutes.flags == method.flags).collect();
        let mode = Some(if method.flags.is_some() { Mode::Paper } else { Mode::Evidence });
        let options = Options { mode, ..Options::study(Arc::clone(&prepared)) };
        let (mut times, mut flags) = (Vec::new(), FlagSeries::new(prepared.clients.len()));
        let engine = engine::spawn(&session, options)?;
        let (opened, ending) = engine.into_end(|_, update| {
            let news = &update.news;
            // Every step comes by itself, and the facts after the last one without a step.
            if !gathered.is_empty() && !news.times.is_empty() {
                times.extend_from_slice(&news.times);
                flags.push(news.readouts.iter().map(|readout| readout.server.flags));
            }
        })?;
        judged_runs.push(judged(method, &ending));
        let truth = Truth::new(&opened.steps, &times, &ending.events, session.replay.tail);
        judged_runs.extend(gathered.into_iter().filter_map(|m| by_the_minute(m, &truth, &flags)));
    }
    Ok(judged_runs)
}

/// The same flags by the minute; none where a step is longer than a second.
fn by_the_minute(method: &Method, truth: &Truth, flags: &FlagSeries) -> Option<JudgedRun> {
    let figures = Figures::of_minutes(truth, flags, method.span)?;
    let seconds = |minutes: &[f64]| minutes.iter().map(|minutes| minutes * 60.0).collect();
    let scaled = |runs: RunTotals| RunTotals { watched: runs.watched * 60.0, ..runs };
    Some(JudgedRun {
        method: method.name.to_owned(),
        events: figures.events,
        detected: figures.detected,
        right: figures.right,
        false_alarms: figures.false_alarms,
        quiet_s: figures.arl0.watched * 60.0,
        arl0: scaled(figures.arl0),
        arl1: scaled(figures.arl1),
        delays_s: seconds(&figures.delays),
        named_s: seconds(&figures.named),
        ac1: figures.ac1,
        mrr: figures.mrr,
        etapr_f1: figures.etapr_f1,
        attacks: Vec::new(),
    })
}

fn judged(method: &Method, ending: &Ending) -> JudgedRun {
    let alarms = ending.alarms();
    let opened: Vec<Tick> = alarms.iter().map(|alarm| alarm.opened.as_second()).collect();
    let declared: Vec<Window> = alarms
        .iter()
        .map(|alarm| {
            let closed = alarm.closed.unwrap_or(alarm.opened);
            Window::new(alarm.opened.as_second(), closed.as_second())
        })
        .collect();
    let method = method.name.to_owned();
    let Some(judgement) = ending.judgement() else {
        return JudgedRun { method, false_alarms: opened.len(), ..JudgedRun::default() };
    };
    let score = judgement.score();
    let window = |o: &Outcome| Window::new(o.event.start.as_second(), o.event.end.as_second());
    let events: Vec<Window> = judgement.outcomes.iter().map(window).collect();
    let onsets: Vec<Tick> = events.iter().map(|event| event.start).collect();
    let last = opened.iter().chain(events.iter().map(|e| &e.end)).copied().max().unwrap_or(0);
    let (mut named_s, mut attacks) = (Vec::new(), Vec::new());
    for outcome in &judgement.outcomes {
        let right = outcome.verdict == Verdict::Right;
        if let Some(alarm) = outcome.alarm.filter(|_| right) {
            let named = alarm.named.unwrap_or(alarm.opened);
            named_s.push(named.duration_since(outcome.event.start).as_secs_f64());
        }
        attacks.push(Attack {
            id: outcome.event.id.clone(),
            what: outcome.event.what.clone(),
            origins: outcome.event.origins.clone(),
            named: outcome.alarm.and_then(|alarm| alarm.root.clone()),
            right,
            delay_s: outcome.delay_s(),
        });
    }
    JudgedRun {
        method,
        events: attacks.len(),
        detected: score.detected,
        right: score.root_right,
        false_alarms: score.false_alarms,
        quiet_s: judgement.nominal_s,
        arl0: run_length::arl0(judgement.nominal_s, score.false_alarms).into(),
        arl1: run_length::arl1(&run_length::runs(&onsets, last), &opened).into(),
        delays_s: attacks.iter().filter_map(|attack| attack.delay_s).collect(),
        named_s,
        ac1: score.ac1,
        mrr: score.mrr,
        etapr_f1: etapr(&events, &declared, Thetas::default()).rates.f1,
        attacks,
    }
}

/// All runs of one method on one session.
pub(super) type Line<'a> = columns::Line<'a, JudgedRun>;

/// One line per method, of the methods that were run.
pub(super) fn lines<'a>(family: &'a str, runs: &'a [Vec<JudgedRun>]) -> Vec<Line<'a>> {
    Line::across(runs, |run| (family, run.method.as_str()))
}

fn method_of(line: &Line) -> Option<&'static Method> {
    METHODS.iter().chain(&MINUTES).find(|method| method.name == line.method)
}

fn label(line: &Line) -> &'static str {
    method_of(line).map_or("", |method| method.label)
}

pub(super) fn attacks(line: &Line) -> usize {
    line.sum(|run| run.events)
}

pub(super) fn right(line: &Line) -> usize {
    line.sum(|run| run.right)
}

fn detected(line: &Line) -> usize {
    line.sum(|run| run.detected)
}

/// RCA accuracy: right names of all attacks.
fn accuracy(run: &JudgedRun) -> Option<f64> {
    share(run.right, run.events)
}

pub(super) fn false_alarms_per_day(run: &JudgedRun) -> Option<f64> {
    per_day(run.false_alarms, run.quiet_s / 86_400.0)
}

/// Precision over first and false alarms with the right name, recall over attacks.
fn rates(run: &JudgedRun) -> Rates {
    let declared = run.detected + run.false_alarms;
    Rates::from_counts(run.right, declared, run.events)
}

fn arl0_min(line: &Line) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|run| &run.arl0)).scaled(1.0 / 60.0)
}

fn arl1_min(line: &Line) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|run| &run.arl1)).scaled(1.0 / 60.0)
}

pub(super) fn median_delay_s(line: &Line) -> Option<f64> {
    let delays: Vec<f64> = line.runs.iter().flat_map(|s| s.delays_s.iter().copied()).collect();
    Delays::of(&delays).median
}

/// Minutes until the origin was named, over all attacks whose origin was.
fn named_min(line: &Line) -> Figure {
    let named = line.runs.iter().flat_map(|run| &run.named_s);
    Figure::Spread(Spread::of(named.map(|s| Some(s / 60.0))))
}

/// The paper's own line for the same percentile.
fn printed(line: &Line) -> Option<&'static Table4> {
    let (percentile, is_voted) = method_of(line)?.flags?;
    let is_printed = !is_voted && attacks(line) > 0;
    Table4::find(Variant::Federated, percentile).filter(|_| is_printed)
}

fn root_cause(line: &Line) -> Option<RootCause> {
    printed(line)?.root_cause
}

/// The paper's Table 4 beside our own figures.
pub(super) const COLUMNS: Columns<JudgedRun> = Columns(&[
    family("data"),
    shown("method", 0, |line| Figure::Text(label(line).into())),
    json("episodes", |line| Figure::Count(attacks(line))),
    mean("precision", "", 0, |run| rates(run).precision),
    mean("recall", "", 0, |run| rates(run).recall),
    mean("f1", "", 0, |run| rates(run).f1),
    all("arl0", "ARL0 min", 1, |line| Figure::RunLength(arl0_min(line))),
    json("arl0_at_least", |line| Figure::Number(arl0_min(line).at_least)),
    shown("paper", 1, |line| Figure::Number(printed(line).map(|p| p.arl0_min))),
    all("arl1", "ARL1 min", 1, |line| Figure::RunLength(arl1_min(line))),
    shown("paper", 1, |line| Figure::Number(printed(line).map(|p| p.arl1_min))),
    all("arl1_censored", "missed", 0, |line| Figure::Count(arl1_min(line).censored)),
    json("unit", |_| Figure::Text("min".into())),
    json("delay_s", |line| Figure::Number(median_delay_s(line))),
    mean("rca_accuracy", "RCA accuracy", 2, accuracy),
    shown("paper", 2, |line| Figure::Number(root_cause(line).map(|root| root.accuracy))),
    all("delay", "RCA delay min", 2, named_min),
    shown("paper", 2, |line| {
        Figure::Spread(root_cause(line).map(|root| {
            let (mean, std) = root.delay_min;
            Spread { mean, std: Some(std) }
        }))
    }),
    json("detected", |line| Figure::Count(detected(line))),
    shown("detected", 0, |line| Figure::Text(format!("{} of {}", detected(line), attacks(line)))),
    all("right", "right", 0, |line| Figure::Count(right(line))),
    json("attribution", |line| Figure::Number(share(right(line), detected(line)))),
    mean("false_alarms_per_day", "false a day", 1, false_alarms_per_day),
    mean("etapr_f1", "eTaPR F1", 2, |run| run.etapr_f1),
    mean("ac1", "", 0, |run| run.ac1),
    mean("mrr", "", 0, |run| run.mrr),
    seeds("runs"),
]);

/// `is_papers` when it is the paper's own experiment.
pub(super) fn table(title: &str, lines: &[Line], is_papers: bool) -> Table {
    let origin = if is_papers {
        "The paper's figures are of the same recording."
    } else {
        "The paper's figures are of HAI 23.05, 12 August: another plant, given for orientation."
    };
    COLUMNS.table(title, 2, lines).note(format!(
        "ARL0: nominal time per false alarm (>: none). ARL1: from an onset to the next alarm, \
         censored at the next onset when missed. RCA accuracy: attacks whose first alarm names their \
         origin, of all; RCA delay: mean time until it does. {origin}"
    ))
    .note(
        "A minute: both flags of every client are gathered over 60 s and looked up once a minute, as the \
         paper computes its root causes; whole minutes from that of the onset. Only where a step is a \
         second.",
    )
}

/// Every attack and each method's result on it.
pub(super) fn attack_table(title: &str, runs: &[Vec<JudgedRun>]) -> Table {
    let methods = METHODS.iter().map(|method| method.label);
    let mut table = Table::new(title, 1, ["attack", "origin", "what"].into_iter().chain(methods))
        .note("Right root of all runs, and the median time to the alarm; of one run, the name.");
    let Some(first) = runs.first().and_then(|run| run.first()) else { return table };
    for (i, attack) in first.attacks.iter().enumerate() {
        let mut cells = vec![
            Cell::words(attack.id.as_str()),
            Cell::words(attack.origins.join(", ")),
            Cell::words(shortened(&attack.what)),
        ];
        cells.extend(METHODS.iter().map(|method| {
            let of_method = |run: &Vec<JudgedRun>| {
                let run = run.iter().find(|run| run.method == method.name)?;
                run.attacks.get(i).filter(|other| other.id == attack.id).cloned()
            };
            verdict(&runs.iter().filter_map(of_method).collect::<Vec<_>>())
        }));
        table.lines.push(cells);
    }
    table
}

/// Longest description in a table.
const LONGEST: usize = 34;

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST - 1).collect();
    format!("{}…", start.trim_end())
}

fn verdict(attacks: &[Attack]) -> Cell {
    let delays: Vec<f64> = attacks.iter().filter_map(|attack| attack.delay_s).collect();
    let Some(delay) = Delays::of(&delays).median else {
        return Cell::words("missed");
    };
    let result = match attacks {
        [attack] if attack.right => "right".to_owned(),
        [attack] => attack.named.clone().map_or_else(|| "no name".into(), |n| format!("names {n}")),
        _ => format!("{} of {}", attacks.iter().filter(|a| a.right).count(), attacks.len()),
    };
    Cell::words(format!("{result}, {delay:.0} s"))
}

/// Right roots of each method.
pub(super) fn chart(family: &str, lines: &[Line]) -> Chart {
    let bar = |line: &Line| Bar { name: label(line).into(), value: line.spread(accuracy) };
    Chart::bars(
        format!("accuracy-{family}"),
        format!("{family}: events whose origin is named"),
        Axis::linear("share of events"),
        lines.iter().map(bar).collect(),
    )
}

/// Both modes side by side, in a sentence.
pub(super) fn comparison(lines: &[Line]) -> Option<String> {
    let of = |name: &str| {
        let line = lines.iter().find(|line| line.method == name)?;
        let false_alarms = line.mean(false_alarms_per_day).unwrap_or(0.0);
        Some(format!(
            "{} of {} with the right root at {false_alarms:.1} false alarms a day",
            right(line),
            attacks(line)
        ))
    };
    Some(format!(
        "{}: evidence mode names {}; the published method {} at the 95th percentile, {} at the \
         99.5th, and {} when three of five steps must agree.",
        lines.first()?.family,
        of("evidence")?,
        of("paper-95")?,
        of("paper-99.5")?,
        of("paper-99-vote")?
    ))
}
