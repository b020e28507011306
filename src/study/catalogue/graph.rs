//! The graph that the server learned beside the true one, on every family of synthetic plants.

use serde_json::json;

use crate::engine::experiment::graph::GraphPair;
use crate::score::metrics::share;
use crate::session::settings::Federation;
use crate::study::detection::{Models, TWINS, Twin};
use crate::study::frame::{Done, Job, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, all, family, mean, seeds};
use crate::study::report::{Columns, Figure, Report};

pub(super) const STUDY: Study = Study {
    name: "graph",
    about: "the learned graph beside the true one: Hamming distance, precision, recall",
    needs_data: false,
    first: None,
    jobs: |options| Ok(jobs(options)),
    report,
};

/// Families of a study in a hurry.
const QUICK: [&str; 2] = ["A2", "B4"];

fn jobs(options: &StudyOptions) -> Vec<Job> {
    let job = |twin: Twin, seed: u64| {
        let inputs = json!({ "family": twin.name, "seed": seed });
        Job::new(format!("{}, seed {seed}", twin.name), inputs, move || {
            let mut session = twin.session(seed)?;
            // φ takes no part in the graph, so it is made as quickly as possible.
            session.model.federation = Federation::Batched { rounds: 1 };
            GraphPair::of(&session, Models::default().of(&session)?)
        })
        .costing(twin.clients as u32)
    };
    let seeds = options.seeds(5, 1);
    let families = TWINS.into_iter().filter(|twin| !options.quick || QUICK.contains(&twin.name));
    families.flat_map(|twin| seeds.iter().map(move |seed| job(twin, *seed))).collect()
}

type Line<'a> = columns::Line<'a, GraphPair>;

/// Over all seeds together: a plant has few edges.
fn pooled(line: &Line, of: fn(&GraphPair) -> usize) -> Option<f64> {
    share(line.sum(GraphPair::right), line.sum(of))
}

const COLUMNS: Columns<GraphPair> = Columns(&[
    family("family"),
    seeds("seeds"),
    all("edges", "true edges", 0, |line| Figure::Count(line.sum(|pair| pair.truth.len()))),
    all("learned", "learned", 0, |line| Figure::Count(line.sum(|pair| pair.learned.len()))),
    all("right", "right", 0, |line| Figure::Count(line.sum(GraphPair::right))),
    all("precision", "precision", 2, |line| {
        Figure::Number(pooled(line, |pair| pair.learned.len()))
    }),
    all("recall", "recall", 2, |line| Figure::Number(pooled(line, |pair| pair.truth.len()))),
    mean("shd", "SHD", 1, |pair| Some(pair.hamming() as f64)),
    mean("shd_of_none", "SHD of no edge", 1, |pair| Some(pair.truth.len() as f64)),
]);

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let mut runs: Vec<(String, GraphPair)> = Vec::new();
    for done in done {
        runs.push((done.input("family")?, done.read()?));
    }
    let lines = Line::group(runs.iter().map(|(family, pair)| (family.as_str(), "learned", pair)));
    let table = COLUMNS.table("Learned edges beside the true graph", 1, &lines).note(
        "SHD: structural Hamming distance, edges to add, to take away or to turn round, mean over \
         seeds; beside it that of a graph without edges. Precision and recall of directed edges over \
         all seeds together.",
    );
    Ok(Report {
        tables: vec![table],
        reading: reading(&lines).into_iter().collect(),
        rows: COLUMNS.rows(&lines),
        ..Report::default()
    })
}

fn reading(lines: &[Line]) -> Option<String> {
    let sum = |of: fn(&GraphPair) -> usize| lines.iter().map(|line| line.sum(of)).sum::<usize>();
    let right = sum(GraphPair::right);
    let precision = share(right, sum(|pair| pair.learned.len()))?;
    let recall = share(right, sum(|pair| pair.truth.len()))?;
    let better = lines.iter().filter(|line| {
        line.mean(|pair| Some(pair.hamming() as f64))
            < line.mean(|pair| Some(pair.truth.len() as f64))
    });
    Some(format!(
        "Of all learned edges {:.0} % are true, and {:.0} % of the true edges are learned; in {} of {} \
         families the learned graph is nearer to the true one than a graph without edges. The paper's \
         Algorithm 2 names a causal network as its output and gives no figure for it.",
        100.0 * precision,
        100.0 * recall,
        better.count(),
        lines.len()
    ))
}
