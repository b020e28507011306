//! F1 and delay against the privacy that is really spent: ε composed over a day, at one δ for all.

use serde::{Deserialize, Serialize};

use super::{finite, published, twin};
use crate::engine::experiment::Failure;
use crate::engine::experiment::spending::DailySpending;
use crate::score::metrics::Tick;
use crate::score::metrics::delay::{Delays, per_day};
use crate::session::{Alphabet, SendPolicy, Session};
use crate::study::detection::figures::Figures;
use crate::study::detection::watch::{WatchedRun, watch};
use crate::study::detection::{Models, linear};
use crate::study::report::columns::{self, family, json, mean, method, shown};
use crate::study::report::{Axis, Chart, Columns, Figure, Spread, Table};

/// δ of every composed ε.
const DELTA: f64 = 1e-5;

/// The watch of the policy `WhileRaised`: ε of an arming, symbols after an alarm.
const WATCH: (f64, u64) = (8.0, 10);

/// Steps in a window.
const WINDOW: u64 = 5;

/// ε of an answer that is kept.
const PERMANENT: f64 = 4.0;

pub(super) const FAMILIES: [&str; 2] = ["A2", "B4"];

const EPSILONS: [Option<f64>; 7] =
    [Some(0.5), Some(1.0), Some(2.0), Some(3.0), Some(4.0), Some(8.0), None];
const QUICK: [Option<f64>; 4] = [Some(1.0), Some(2.0), Some(4.0), None];

const EVERY_STEP: &str = "evidence, every step";
const PAPER: &str = "paper, every step";

/// How symbols are sent: the name, how often, and in which alphabet.
const POLICIES: [(&str, SendPolicy, Alphabet); 5] = [
    (EVERY_STEP, SendPolicy::EveryStep, Alphabet::Graded),
    ("evidence, every step, one bit", SendPolicy::EveryStep, Alphabet::OneBit),
    ("evidence, strongest of 5 steps", SendPolicy::Window(WINDOW), Alphabet::Graded),
    ("evidence, while raised", SendPolicy::WhileRaised, Alphabet::Graded),
    ("evidence, kept answers", SendPolicy::Memoised { permanent: PERMANENT }, Alphabet::Graded),
];

/// One method at one ε.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SpendingRow {
    pub family: String,
    /// Mode and send policy.
    pub method: String,
    /// ε of each flag or symbol; none where they are unprotected.
    pub epsilon_flag: Option<f64>,
    /// ε of a day of the client that spent most; none where a release is unprotected.
    pub epsilon_day: Option<f64>,
    /// The same by adding up.
    pub basic_day: Option<f64>,
    /// Releases of that client in a day.
    pub releases_day: u64,
    /// Incidents with the right root, of all incidents.
    pub precision: Option<f64>,
    /// Events so answered, of all events.
    pub recall: Option<f64>,
    pub f1: Option<f64>,
    /// Time from an event to its alarm, seconds: the median in evidence mode, the mean to the first
    /// right name in paper mode.
    pub delay_s: Option<f64>,
    pub false_alarms_per_day: Option<f64>,
}

type Line<'a> = columns::Line<'a, SpendingRow>;

fn epsilon(line: &Line) -> Option<f64> {
    line.runs.first().and_then(|row| row.epsilon_flag)
}

fn day(line: &Line) -> Option<f64> {
    line.mean(|row| row.epsilon_day)
}

pub(super) const COLUMNS: Columns<SpendingRow> = Columns(&[
    family("family"),
    method("method"),
    json("epsilon_flag", |line| Figure::Number(epsilon(line))),
    shown("ε", 0, |line| {
        Figure::Text(epsilon(line).map_or_else(|| "none".into(), |e| e.to_string()))
    }),
    mean("delta", "", 0, |_| Some(DELTA)),
    mean("epsilon_day", "", 0, |row| row.epsilon_day),
    shown("ε a day", 0, |line| Figure::Number(day(line))),
    mean("basic_day", "", 0, |row| row.basic_day),
    shown("plain sum", 0, |line| Figure::Number(line.mean(|row| row.basic_day))),
    mean("releases_day", "", 0, releases),
    shown("releases", 0, |line| Figure::Number(line.mean(releases))),
    mean("precision", "", 0, |row| row.precision),
    mean("f1", "F1", 2, |row| row.f1),
    mean("recall", "", 0, |row| row.recall),
    shown("recall", 2, |line| Figure::Number(line.mean(|row| row.recall))),
    mean("delay", "", 0, |row| row.delay_s),
    shown("delay s", 1, |line| Figure::Number(line.mean(|row| row.delay_s))),
    mean("false_alarms_per_day", "false/day", 1, |row| row.false_alarms_per_day),
]);

#[expect(clippy::unnecessary_wraps, reason = "a column may have no figure; this one always has")]
fn releases(row: &SpendingRow) -> Option<f64> {
    Some(row.releases_day as f64)
}

pub(super) fn table(lines: &[Line]) -> Table {
    let (watch, burst) = WATCH;
    COLUMNS
        .table("Root causes against what a day really spends", 3, lines)
        .note(format!(
        "ε of a flag or symbol, and of all releases that the client which spent most makes in a day, \
         composed at δ = 1e-5, with their plain sum beside it; a filter's memory is left out. A symbol \
         of every step; the strongest of {WINDOW}, so a {WINDOW}th of the releases; while raised: ε \
         {watch} for every arming of the watch and {burst} symbols after every alarm; kept answers: \
         priced like every step, but a level that never changes spends ε {PERMANENT} at most, however \
         often it is sent. Means of {} seeds.",
            lines.first().map_or(0, |line| line.runs.len())
        ))
        .note(
        "F1 asks whether an incident overlaps its event and names its origin; an alarm is false when it \
         is raised after its event is over, even where the name is right: short events with a slow alarm \
         have both.",
        )
}

/// F1 and delay of every method against ε composed over a day.
pub(super) fn charts(lines: &[Line], family: &str) -> [Chart; 2] {
    let of_family = || lines.iter().filter(|line| line.family == family);
    let mut methods: Vec<&str> = Vec::new();
    for line in of_family() {
        if !methods.contains(&line.method.as_str()) {
            methods.push(&line.method);
        }
    }
    [("f1", "f1", "F1"), ("delay", "delay_s", "delay, s")].map(|(figure, file, axis)| {
        let series = |method: &&str| {
            let own = of_family().filter(|line| line.method == *method);
            COLUMNS.series(method, ("epsilon_day", figure), own)
        };
        Chart::lines(
            format!("spending-{file}-{}", family.to_lowercase()),
            format!("{axis} on {family} against ε composed over a day"),
            (Axis::logarithmic("ε of a day"), Axis::linear(axis)),
            methods.iter().map(series).collect(),
        )
    })
}

/// The most F1 that is given away for a cheaper day, and the most false alarms that are added.
const F1_LESS: f64 = 0.05;
const FALSE_MORE: f64 = 24.0;

/// ε of a day from which on hardly anything is hidden: odds of 22 000 to 1.
const HARDLY: f64 = 10.0;

/// The cheapest day that is as good as an unprotected one, beside every step and the paper's best.
pub(super) fn reading(lines: &[Line], family: &str) -> Option<String> {
    let of_family = || lines.iter().filter(|line| line.family == family);
    let clear = of_family().find(|line| line.method == EVERY_STEP && epsilon(line).is_none())?;
    let f1 = clear.mean(|row| row.f1)?;
    let false_alarms = clear.mean(|row| row.false_alarms_per_day)?;
    let is_as_good = |line: &Line| {
        line.mean(|row| row.f1).is_some_and(|found| found >= f1 - F1_LESS)
            && line
                .mean(|row| row.false_alarms_per_day)
                .is_some_and(|n| n <= false_alarms + FALSE_MORE)
    };
    let cheapest = |is_wanted: &dyn Fn(&Line) -> bool| {
        of_family()
            .filter(|line| epsilon(line).is_some() && is_as_good(line) && is_wanted(line))
            .filter_map(|line| Some((day(line)?, line)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let paper = of_family()
        .filter(|line| line.method == PAPER && epsilon(line).is_some())
        .filter_map(|line| Some((line.mean(|row| row.f1)?, day(line)?)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let target = format!(
        "On {family}, F1 within {F1_LESS} of the {f1:.2} without protection and at most one false alarm \
         more an hour"
    );
    let found = match cheapest(&|_| true) {
        None => format!("{target} is reached at no ε that was tried"),
        Some((day, line)) => {
            let plain = match cheapest(&|line| line.method == EVERY_STEP) {
                Some((plain, _)) if plain > day => {
                    format!(", {:.1} times less than a symbol of every step", plain / day)
                }
                _ => String::new(),
            };
            let hides = if day > HARDLY {
                "a symbol is protected, a day of them is not"
            } else {
                "a day of them is protected too"
            };
            format!(
                "{target} cost ε = {day:.0} a day at least ({}, ε = {} each){plain}: {hides}",
                line.method,
                epsilon(line)?
            )
        }
    };
    Some(format!(
        "{found}. Paper mode's best protected F1 there is {:.2}, at ε = {:.0} a day.",
        paper.0, paper.1
    ))
}

/// Both modes on two families, with every send policy of evidence mode.
pub(super) fn rows(seed: u64, quick: bool) -> Result<Vec<SpendingRow>, Failure> {
    let epsilons: &[Option<f64>] = if quick { &QUICK } else { &EPSILONS };
    let mut rows = Vec::new();
    for family in FAMILIES {
        let mut evidence = twin(family).session(seed)?;
        linear(&mut evidence);
        (evidence.privacy.watch.epsilon, evidence.privacy.watch.burst) = WATCH;
        let mut models = Models::default();
        for (method, policy, symbol) in POLICIES {
            for &epsilon in epsilons {
                // Saving is about a price: without one only the plain policy is run.
                if epsilon.is_none() && policy != SendPolicy::EveryStep {
                    continue;
                }
                (evidence.privacy.send, evidence.privacy.symbol) = (policy, symbol);
                rows.push(row(family, method, epsilon, &evidence, &mut models, median_delay)?);
            }
        }
        let paper = published(&twin(family), seed, quick)?;
        for &epsilon in epsilons {
            rows.push(row(family, PAPER, epsilon, &paper, &mut models, named_delay)?);
        }
    }
    Ok(rows)
}

/// One method at one ε: a session run and judged.
fn row(
    family: &str,
    method: &str,
    epsilon: Option<f64>,
    session: &Session,
    models: &mut Models,
    delay: fn(&WatchedRun, &Figures) -> Option<f64>,
) -> Result<SpendingRow, Failure> {
    let mut session = session.clone();
    session.privacy.epsilon_flag = epsilon;
    let watched = watch(&session, models.of(&session)?)?;
    let DailySpending { epsilon: day, basic, releases } = watched.daily_spending(DELTA);
    let figures = watched.figures();
    Ok(SpendingRow {
        family: family.into(),
        method: method.into(),
        epsilon_flag: epsilon,
        epsilon_day: finite(day),
        basic_day: finite(basic).filter(|_| day.is_finite()),
        releases_day: releases,
        precision: figures.precision,
        recall: figures.recall,
        f1: figures.f1,
        delay_s: delay(&watched, &figures).map(|steps| steps * watched.truth.period_s),
        false_alarms_per_day: per_day(figures.false_alarms, watched.quiet_days()),
    })
}

/// Steps from an event to its alarm, the first anomalous one included.
fn median_delay(_: &WatchedRun, figures: &Figures) -> Option<f64> {
    Delays::of(&figures.delays).median.map(|delay| delay + 1.0)
}

/// Mean steps from an event to the first step that names its origin, the first anomalous one
/// included.
fn named_delay(watched: &WatchedRun, _: &Figures) -> Option<f64> {
    let names = &watched.output.names;
    let delays = watched.truth.events.iter().map(|event| {
        let (first, last) = (event.window.start, event.busy().end);
        let is_right = |t: &Tick| names.get(*t as usize) == Some(&Some(event.origin));
        let right = (first..=last).find(is_right)?;
        Some((right - first + 1) as f64)
    });
    Spread::of(delays).map(|spread| spread.mean)
}
