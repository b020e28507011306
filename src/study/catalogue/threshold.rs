//! Appendix, threshold sensitivity: how much depends on the percentile of τ_a.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::engine::experiment::flags::FlagRuns;
use crate::score::metrics::run_length::{RunLength, RunTotals};
use crate::session::Tau;
use crate::study::detection::figures::Figures;
use crate::study::detection::watch::watch;
use crate::study::detection::{AT_PAPERS, Models, PAPERS, Twin, as_published};
use crate::study::frame::{Done, Failure, Job, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, all, json, mean, seeds};
use crate::study::report::{Axis, Chart, Columns, Figure, Report};

pub(super) const STUDY: Study = Study {
    name: "threshold",
    about: "how paper mode depends on the percentile of τ_a, 75 to 97.5 (appendix, threshold sensitivity)",
    needs_data: false,
    first: None,
    jobs: |options| {
        let job = |twin: Twin, seed: u64| {
            let inputs = json!({ "family": twin.name, "seed": seed });
            Job::new(format!("{}, seed {seed}", twin.name), inputs, move || points(&twin, seed))
        };
        let seeds = options.seeds(5, 2);
        let jobs = FAMILIES.into_iter().flat_map(|twin| seeds.iter().map(move |s| job(twin, *s)));
        Ok(jobs.collect())
    },
    report,
};

/// The paper's plant at our settings and at the paper's.
const FAMILIES: [Twin; 2] = [PAPERS, AT_PAPERS];

/// Percentiles of τ_a; τ_c stays at the 95th.
const PERCENTILES: [f64; 10] = [75.0, 77.5, 80.0, 82.5, 85.0, 87.5, 90.0, 92.5, 95.0, 97.5];
const TAU_C: f64 = 95.0;

/// One percentile on one seed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Point {
    percentile: f64,
    figures: Figures,
    runs: FlagRuns,
}

type Line<'a> = columns::Line<'a, Point>;

fn percentile(line: &Line) -> f64 {
    line.runs.first().map_or(f64::NAN, |point| point.percentile)
}

fn arl0(line: &Line) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|point| &point.runs.arl0))
}

fn arl1(line: &Line) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|point| &point.runs.arl1))
}

const COLUMNS: Columns<Point> = Columns(&[
    all("tau_a_percentile", "τ_a", 1, |line| Figure::Number(Some(percentile(line)))),
    json("episodes", |line| Figure::Count(line.sum(|point| point.figures.events))),
    all("arl0", "ARL0", 1, |line| Figure::RunLength(arl0(line))),
    json("arl0_at_least", |line| Figure::Number(arl0(line).at_least)),
    json("false_alarms", |line| Figure::Count(arl0(line).ended)),
    all("arl1", "ARL1", 2, |line| Figure::RunLength(arl1(line))),
    json("arl1_at_least", |line| Figure::Number(arl1(line).at_least)),
    json("arl1_censored", |line| Figure::Count(arl1(line).censored)),
    mean("inside_precision", "inside P", 2, |point| point.figures.inside_precision),
    mean("step_recall", "inside R", 2, |point| point.figures.step_recall),
    mean("inside_f1", "inside F1", 2, |point| point.figures.inside_f1),
    mean("precision", "precision", 2, |point| point.figures.precision),
    mean("recall", "recall", 2, |point| point.figures.recall),
    mean("f1", "F1", 2, |point| point.figures.f1),
    seeds("seeds"),
]);

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let mut report = Report::default();
    let method = |point: &Point| format!("paper, τ_a at {} %", point.percentile);
    for twin in FAMILIES {
        let runs: Vec<Vec<Point>> = Done::with_input(done, "family", twin.name)?;
        let lines = Line::across(&runs, |point| (twin.name, method(point)));
        let settings = if twin.as_published { "the paper's settings" } else { "our settings" };
        let title = format!("Paper mode on A2 at {settings}, τ_c at the 95th percentile");
        report.tables.push(COLUMNS.table(&title, 1, &lines).note(
            "ARL0 and ARL1 of the flag Z_a in steps. Inside: per step, within anomalies only. The \
             last three: per episode, end to end.",
        ));
        report.charts.extend(charts(&twin, &lines));
        report.reading.extend(reading(settings, &lines));
        report.rows.extend(COLUMNS.rows(&lines));
    }
    Ok(report)
}

fn points(twin: &Twin, seed: u64) -> Result<Vec<Point>, Failure> {
    let mut session = twin.session(seed)?;
    as_published(&mut session, TAU_C, false);
    let mut models = Models::default();
    let prepared = models.of(&session)?;
    let mut points = Vec::new();
    for percentile in PERCENTILES {
        session.thresholds.tau_a = Tau::Percentile(percentile);
        let watched = watch(&session, prepared)?;
        let runs = watched.flags.run_lengths(|z| z.z_a, &watched.truth.events);
        points.push(Point { percentile, figures: watched.figures(), runs });
    }
    Ok(points)
}

fn charts(twin: &Twin, lines: &[Line]) -> Vec<Chart> {
    let name = |what: &str| if twin.as_published { format!("{what}-paper") } else { what.into() };
    let over = |name: &str, y: &str| COLUMNS.series(name, ("tau_a_percentile", y), lines);
    let axes = |y: &str| (Axis::linear("percentile of τ_a"), Axis::linear(y));
    vec![
        Chart::lines(
            name("arl"),
            format!("{}: run lengths of Z_a over the percentile of τ_a", twin.name),
            axes("steps"),
            vec![over("ARL0", "arl0"), over("ARL1", "arl1")],
        ),
        Chart::lines(
            name("precision-recall"),
            format!("{}: root causes over the percentile of τ_a", twin.name),
            axes("share"),
            vec![
                over("precision inside", "inside_precision"),
                over("recall inside", "step_recall"),
                over("F1 end to end", "f1"),
            ],
        ),
    ]
}

fn reading(settings: &str, lines: &[Line]) -> Vec<String> {
    let ends = || Some((lines.first()?, lines.last()?));
    let range = |of: fn(&Figures) -> Option<f64>| {
        let means = || lines.iter().filter_map(|line| line.mean(|point| of(&point.figures)));
        (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max))
    };
    let runs = ends().and_then(|(first, last)| {
        let (short, long) = (arl0(first).mean?, arl0(last).mean?);
        let (soon, late) = (arl1(first).at_least?, arl1(last).at_least?);
        let grows = if late > 2.0 * soon + 1.0 { "grows with it too" } else { "hardly moves" };
        Some(format!(
            "At {settings}, from the {}th to the {}th percentile, ARL0 rises from {short:.1} to {long:.1} steps; ARL1 \
             {grows} ({soon:.2} to {late:.2}), where the paper reports an exponential rise.",
            percentile(first),
            percentile(last)
        ))
    });
    let (low, high) = range(|figures| figures.inside_precision);
    let (least, most) = range(|figures| figures.step_recall);
    let stable = if high - low <= 0.1 && most - least <= 0.1 { "are" } else { "are not" };
    let roots = (!lines.is_empty()).then(|| {
        format!(
            "At {settings}, inside anomalies, precision lies between {low:.2} and {high:.2}, recall between \
             {least:.2} and {most:.2}: they {stable} stable over τ_a; \
             the paper calls its own stable."
        )
    });
    runs.into_iter().chain(roots).collect()
}
