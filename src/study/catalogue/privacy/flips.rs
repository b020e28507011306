//! The paper's figure 4: first p_c with every Z_a true, then p_a with every Z_c true. One run without
//! noise is randomised many times, so that only the noise differs.
//!
//! Panels a and b are run lengths of Z_a, as everywhere in these studies. Panels c and d are precision
//! and recall of the look-up; inside anomalies only is the reading nearest to the paper's figures, and
//! end to end stands beside it.

use serde::{Deserialize, Serialize};

use super::{PLANTS, chart_name, published, settings};
use crate::engine::experiment::Failure;
use crate::engine::experiment::flags::{FlagRuns, epsilon};
use crate::score::metrics::run_length::RunTotals;
use crate::session::Session;
use crate::study::detection::figures::{Figures, MethodOutput};
use crate::study::detection::watch::watch;
use crate::study::detection::{Models, Twin};
use crate::study::report::columns::{self, all, family, json, mean, seeds, shown};
use crate::study::report::{Axis, Chart, Columns, Figure, Table};

const Z_C: &str = "Z_c";
const Z_A: &str = "Z_a";
const TRUTHS: [f64; 8] = [0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const QUICK: [f64; 4] = [0.6, 0.8, 0.95, 1.0];

/// One pair of probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FlipRow {
    pub family: String,
    /// The flag that is randomised.
    pub flag: String,
    /// Probability that Z_c is sent truly.
    pub p_c: f64,
    /// Probability that Z_a is sent truly.
    pub p_a: f64,
    /// ε of a Z_c; none where it is always true.
    pub epsilon_c: Option<f64>,
    pub epsilon_a: Option<f64>,
    /// Run lengths of Z_a, in steps of a client.
    pub runs: FlagRuns,
    /// Steps inside anomalies with the right name, of those with any.
    pub inside_precision: Option<f64>,
    /// Steps inside anomalies with the right name, of all.
    pub inside_recall: Option<f64>,
    /// Incidents that name the origin of an anomaly they answer, of all incidents.
    pub precision: Option<f64>,
    /// Anomalies so answered.
    pub recall: Option<f64>,
    pub f1: Option<f64>,
}

type Line<'a> = columns::Line<'a, FlipRow>;

fn setting(line: &Line, of: fn(&FlipRow) -> Option<f64>) -> Figure {
    Figure::Number(line.runs.first().and_then(|row| of(row)))
}

/// The probability of truth that is varied on this line.
fn truth(line: &Line) -> f64 {
    line.runs.first().map_or(1.0, |row| row.p_c.min(row.p_a))
}

/// Steps of a client per false flag; all that was watched where there is none.
fn arl0(line: &Line) -> Option<f64> {
    let length = RunTotals::pooled(line.runs.iter().map(|row| &row.runs.arl0));
    length.mean.or(length.at_least)
}

/// Steps from an onset to the next flag of the client it is in.
fn arl1(line: &Line) -> Option<f64> {
    let length = RunTotals::pooled(line.runs.iter().map(|row| &row.runs.arl1));
    length.mean.or(length.at_least)
}

pub(super) const COLUMNS: Columns<FlipRow> = Columns(&[
    family("family"),
    shown("lies", 0, |line| {
        Figure::Text(format!("on {}", line.runs.first().map_or("", |row| &row.flag)))
    }),
    all("p_c", "p_c", 2, |line| setting(line, |row| Some(row.p_c))),
    all("p_a", "p_a", 2, |line| setting(line, |row| Some(row.p_a))),
    json("epsilon_c", |line| setting(line, |row| row.epsilon_c)),
    json("epsilon_a", |line| setting(line, |row| row.epsilon_a)),
    all("arl0", "ARL0", 1, |line| Figure::Number(arl0(line))),
    all("arl1", "ARL1", 2, |line| Figure::Number(arl1(line))),
    mean("inside_precision", "inside P", 2, |row| row.inside_precision),
    mean("inside_recall", "inside R", 2, |row| row.inside_recall),
    mean("precision", "precision", 2, |row| row.precision),
    mean("recall", "recall", 2, |row| row.recall),
    mean("f1", "F1", 2, |row| row.f1),
    seeds("seeds"),
]);

pub(super) fn lines(seeds: &[Vec<FlipRow>]) -> Vec<Line<'_>> {
    Line::across(seeds, |row| {
        (row.family.as_str(), format!("paper, p_c {}, p_a {}", row.p_c, row.p_a))
    })
}

pub(super) fn table(lines: &[Line]) -> Table {
    COLUMNS.table("Paper mode with flags that are true with p_c and p_a (Fig. 4)", 4, lines).note(
        "Run lengths in steps of a client, of Z_a. Root causes by the look-up of the pair (Z_c, Z_a): \
         inside, per step of anomalies only; the last three, per episode end to end.",
    )
}

fn varying<'l, 'a>(lines: &'l [Line<'a>], flag: &str) -> impl Iterator<Item = &'l Line<'a>> {
    lines.iter().filter(move |line| line.runs.first().is_some_and(|row| row.flag == flag))
}

pub(super) fn charts(twin: &Twin, lines: &[Line]) -> [Chart; 3] {
    let p_c = |name: &str, y: &str| COLUMNS.series(name, ("p_c", y), varying(lines, Z_C));
    let p_a = |name: &str, y: &str| COLUMNS.series(name, ("p_a", y), varying(lines, Z_A));
    let axes = |y: &str| (Axis::linear("probability that a flag is true"), Axis::linear(y));
    [
        Chart::lines(
            chart_name(twin, "flags"),
            "F1 of the look-up against the truth of its flags",
            axes("F1"),
            vec![p_c("p_c varies", "f1"), p_a("p_a varies", "f1")],
        ),
        Chart::lines(
            chart_name(twin, "inside"),
            "Precision and recall inside anomalies against the truth of flags",
            axes("share"),
            vec![
                p_c("precision, p_c varies", "inside_precision"),
                p_a("precision, p_a varies", "inside_precision"),
                p_c("recall, p_c varies", "inside_recall"),
                p_a("recall, p_a varies", "inside_recall"),
            ],
        ),
        Chart::lines(
            chart_name(twin, "run-lengths"),
            "Run lengths of Z_a against the truth of flags",
            axes("steps"),
            vec![
                p_c("ARL0, p_c varies", "arl0"),
                p_a("ARL0, p_a varies", "arl0"),
                p_c("ARL1, p_c varies", "arl1"),
                p_a("ARL1, p_a varies", "arl1"),
            ],
        ),
    ]
}

fn f1(line: &Line) -> Option<f64> {
    line.mean(|row| row.f1)
}

/// How far the most lies change root causes and run lengths, on each flag.
pub(super) fn reading(twin: &Twin, lines: &[Line]) -> Option<String> {
    let change = |flag: &str, figure: fn(&Line) -> Option<f64>| -> Option<(f64, f64)> {
        let by_truth: Vec<(f64, f64)> =
            varying(lines, flag).filter_map(|line| Some((truth(line), figure(line)?))).collect();
        let least = by_truth.iter().min_by(|a, b| a.0.total_cmp(&b.0))?.1;
        let most = by_truth.iter().max_by(|a, b| a.0.total_cmp(&b.0))?.1;
        Some((most, least))
    };
    let changes = |flag| {
        let (f1, arl0) = (change(flag, f1)?, change(flag, arl0)?);
        Some(format!(
            "F1 {} and ARL0 {}",
            moved(f1.0, f1.1, 2, 0.02),
            moved(arl0.0, arl0.1, 1, 0.05 * arl0.0)
        ))
    };
    let lost = |flag| change(flag, f1).map(|(clean, noised)| clean - noised);
    let (c, a) = (lost(Z_C)?, lost(Z_A)?);
    let verdict = if a > 0.02 && a > 2.0 * c.max(0.0) {
        "that root causes suffer from noise on Z_a and hardly from noise on Z_c holds here"
    } else if a <= 0.02 && c <= 0.02 {
        "root causes suffer from neither here, though the paper's suffer from noise on Z_a"
    } else {
        "that root causes suffer from noise on Z_a and hardly from noise on Z_c does not hold here"
    };
    Some(format!(
        "{}, from no lies to the most: on Z_c, {}; on Z_a, {}: {verdict}.",
        settings(twin),
        changes(Z_C)?,
        changes(Z_A)?
    ))
}

/// "falls from 0.64 to 0.41", or "stays at 0.64".
fn moved(from: f64, to: f64, digits: usize, least: f64) -> String {
    if (to - from).abs() <= least {
        return format!("stays at {from:.digits$}");
    }
    let verb = if to < from { "falls" } else { "rises" };
    format!("{verb} from {from:.digits$} to {to:.digits$}")
}

pub(super) fn rows(seed: u64, quick: bool) -> Result<Vec<FlipRow>, Failure> {
    let truths: &[f64] = if quick { &QUICK } else { &TRUTHS };
    let mut rows = Vec::new();
    for twin in PLANTS {
        let session = published(&twin, seed, quick)?;
        rows.extend(of_plant(&twin, &session, truths)?);
    }
    Ok(rows)
}

fn of_plant(twin: &Twin, session: &Session, truths: &[f64]) -> Result<Vec<FlipRow>, Failure> {
    let watched = watch(session, Models::default().of(session)?)?;
    let settings =
        truths.iter().map(|p| (Z_C, *p, 1.0)).chain(truths.iter().map(|p| (Z_A, 1.0, *p)));
    let mut rows = Vec::new();
    let truth = &watched.truth;
    for (source, (flag, p_c, p_a)) in (0..).zip(settings) {
        let flags = watched.flags.randomised((p_c, p_a), session.seed, source)?;
        let figures = Figures::of(truth, &MethodOutput::from_names(flags.look_up(None)));
        rows.push(FlipRow {
            family: twin.name.into(),
            flag: flag.into(),
            p_c,
            p_a,
            epsilon_c: epsilon(p_c),
            epsilon_a: epsilon(p_a),
            runs: flags.run_lengths(|z| z.z_a, &truth.events),
            inside_precision: figures.inside_precision,
            inside_recall: figures.step_recall,
            precision: figures.precision,
            recall: figures.recall,
            f1: figures.f1,
        });
    }
    Ok(rows)
}
