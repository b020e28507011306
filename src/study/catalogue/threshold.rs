//! The appendix' figure: how much depends on the percentile of τ_a.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::detection::{run_length, run_lengths};
use crate::score::metrics::run_length::RunLength;
use crate::session::Tau;
use crate::study::detection::figures::{Figures, Runs};
use crate::study::detection::flags::FlagRuns;
use crate::study::detection::watch::watch;
use crate::study::detection::{Models, PAPERS, as_published};
use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::report::{Axis, Cell, Chart, Drawing, Report, Row, Series, Spread, Table};

pub(crate) struct Threshold;

/// Percentiles of τ_a; τ_c stays at the 95th.
const PERCENTILES: [f64; 10] = [75.0, 77.5, 80.0, 82.5, 85.0, 87.5, 90.0, 92.5, 95.0, 97.5];
const TAU_C: f64 = 95.0;

/// What one percentile gives on one seed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Point {
    percentile: f64,
    figures: Figures,
    runs: FlagRuns,
}

impl Study for Threshold {
    fn name(&self) -> &'static str {
        "threshold"
    }

    fn about(&self) -> &'static str {
        "how paper mode depends on the percentile of τ_a, 75 to 97.5 (appendix, threshold sensitivity)"
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        let job = |seed: u64| {
            let inputs = json!({ "family": "A2", "seed": seed });
            Job::new(format!("A2, seed {seed}"), inputs, move || points(seed))
        };
        Ok(options.seeds(5, 2).into_iter().map(job).collect())
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let runs: Vec<Vec<Point>> = done.iter().map(Done::read).collect::<Result<_, _>>()?;
        let lines: Vec<Line> =
            PERCENTILES.iter().filter_map(|percentile| Line::of(*percentile, &runs)).collect();
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![table(&lines)],
            charts: charts(&lines),
            reading: reading(&lines),
            rows: lines.iter().map(Line::row).collect(),
        })
    }
}

fn points(seed: u64) -> Result<Vec<Point>, StudyError> {
    let mut session = PAPERS.session(seed)?;
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

/// All seeds of one percentile.
struct Line {
    percentile: f64,
    seeds: usize,
    events: usize,
    arl0: RunLength,
    arl1: RunLength,
    inside: [Option<Spread>; 3],
    episode: [Option<Spread>; 3],
}

impl Line {
    fn of(percentile: f64, runs: &[Vec<Point>]) -> Option<Self> {
        let points: Vec<&Point> = runs
            .iter()
            .flatten()
            .filter(|point| (point.percentile - percentile).abs() < 1e-9)
            .collect();
        let spread =
            |of: fn(&Figures) -> Option<f64>| Spread::of(points.iter().map(|p| of(&p.figures)));
        (!points.is_empty()).then(|| Self {
            percentile,
            seeds: points.len(),
            events: points.iter().map(|p| p.figures.events).sum(),
            arl0: Runs::pooled(points.iter().map(|p| &p.runs.arl0)),
            arl1: Runs::pooled(points.iter().map(|p| &p.runs.arl1)),
            inside: [
                spread(|f| f.inside_precision),
                spread(|f| f.step_recall),
                spread(|f| f.inside_f1),
            ],
            episode: [spread(|f| f.precision), spread(|f| f.recall), spread(|f| f.f1)],
        })
    }

    fn row(&self) -> Row {
        let method = format!("paper, τ_a at {} %", self.percentile);
        let row = Row::new("A2", &method, self.seeds)
            .with("tau_a_percentile", self.percentile)
            .with("episodes", self.events)
            .spread("precision", self.episode[0])
            .spread("recall", self.episode[1])
            .spread("f1", self.episode[2])
            .spread("inside_precision", self.inside[0])
            .spread("step_recall", self.inside[1])
            .spread("inside_f1", self.inside[2]);
        run_lengths(row, &self.arl0, &self.arl1)
    }
}

fn table(lines: &[Line]) -> Table {
    let columns = [
        "τ_a",
        "ARL0",
        "ARL1",
        "inside P",
        "inside R",
        "inside F1",
        "precision",
        "recall",
        "F1",
        "seeds",
    ];
    let title = "Paper mode on A2, τ_c at the 95th percentile";
    let mut table = Table::new(title, 1, &columns);
    for line in lines {
        let mut cells = vec![
            Cell::Number(line.percentile, 1),
            run_length(&line.arl0, 1),
            run_length(&line.arl1, 2),
        ];
        cells
            .extend(line.inside.iter().chain(&line.episode).map(|figure| Cell::spread(*figure, 2)));
        cells.push(Cell::count(line.seeds));
        table.line(cells);
    }
    table.note(
        "ARL0 and ARL1 of the flag Z_a in steps. Inside: per step, within anomalies only. The last \
         three: per episode, end to end.",
    );
    table
}

fn charts(lines: &[Line]) -> Vec<Chart> {
    let over = |name: &str, of: &dyn Fn(&Line) -> Option<f64>| Series {
        name: name.into(),
        points: lines.iter().filter_map(|line| Some((line.percentile, of(line)?))).collect(),
    };
    let x = || Axis::linear("percentile of τ_a");
    let mean = |spread: Option<Spread>| spread.map(|s| s.mean);
    vec![
        Chart {
            name: "arl".into(),
            title: "Run lengths of Z_a over the percentile of τ_a".into(),
            drawing: Drawing::Lines {
                x: x(),
                y: Axis::linear("steps"),
                series: vec![
                    over("ARL0", &|line| line.arl0.mean),
                    over("ARL1", &|line| line.arl1.mean),
                ],
            },
        },
        Chart {
            name: "precision-recall".into(),
            title: "Root causes over the percentile of τ_a".into(),
            drawing: Drawing::Lines {
                x: x(),
                y: Axis::linear("share"),
                series: vec![
                    over("precision inside", &|line| mean(line.inside[0])),
                    over("recall inside", &|line| mean(line.inside[1])),
                    over("F1 end to end", &|line| mean(line.episode[2])),
                ],
            },
        },
    ]
}

fn reading(lines: &[Line]) -> Vec<String> {
    let ends = || Some((lines.first()?, lines.last()?));
    let range = |of: &dyn Fn(&Line) -> Option<Spread>| {
        let means = || lines.iter().filter_map(|line| of(line).map(|s| s.mean));
        (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max))
    };
    let runs = ends().and_then(|(first, last)| {
        let (short, long) = (first.arl0.mean?, last.arl0.mean?);
        let (soon, late) = (first.arl1.at_least?, last.arl1.at_least?);
        let grows = if late > 2.0 * soon + 1.0 { "grows with it too" } else { "hardly moves" };
        Some(format!(
            "From the {}th to the {}th percentile ARL0 rises from {short:.1} to {long:.1} steps; ARL1 \
             {grows} ({soon:.2} to {late:.2}), where the paper reports an exponential rise.",
            first.percentile, last.percentile
        ))
    });
    let (low, high) = range(&|line| line.inside[0]);
    let (least, most) = range(&|line| line.inside[1]);
    let stable = if high - low <= 0.1 && most - least <= 0.1 { "are" } else { "are not" };
    let roots = (!lines.is_empty()).then(|| {
        format!(
            "Inside anomalies precision lies between {low:.2} and {high:.2}, recall between \
             {least:.2} and {most:.2}: they {stable} stable over τ_a; \
             the paper calls its own stable."
        )
    });
    runs.into_iter().chain(roots).collect()
}
