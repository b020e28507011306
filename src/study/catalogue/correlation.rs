//! Figures 2 and 6: do the models of the federation show how clients depend on each other, and does
//! the proprietary model not?
//!
//! The built-in plant stands where the paper has HAI 23.05. Two controls are added that the paper
//! has not: the true states, and two plants that have nothing to do with each other.

use crate::engine::experiment::correlation_map::CorrelationMap;
use crate::engine::experiment::federation::Results;
use crate::study::experiments::{by_family, experiments, oracle_note};
use crate::study::frame::{Done, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, family, mean, method, seeds};
use crate::study::report::{Axis, Bar, Chart, Columns, Drawing, Report, Row, Spread, Table};

pub(super) const STUDY: Study = Study {
    name: "correlation",
    about: "how states of different clients move together, by model (Fig. 2 and 6)",
    needs_data: false,
    first: None,
    jobs: |options| Ok(experiments(options)),
    report,
};

/// In the order of the paper's figures, and the truth.
const MODELS: [&str; 5] = ["proprietary", "augmented", "server", "oracle", "truth"];

/// The states of one model on one seed.
struct Run {
    between: Option<f64>,
    canonical: Option<f64>,
    /// Mean difference from the oracle's map, entry by entry.
    from_oracle: Option<f64>,
}

type Line<'a> = columns::Line<'a, Run>;

const COLUMNS: Columns<Run> = Columns(&[
    family("family"),
    method("states"),
    seeds("seeds"),
    mean("correlation", "mean |corr| between clients", 3, |run| run.between),
    mean("canonical", "canonical", 3, |run| run.canonical),
    mean("from_oracle", "from oracle", 3, |run| run.from_oracle),
]);

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let families = by_family(done)?;
    let (table, rows) = table_of(&families);
    Ok(Report {
        tables: vec![table],
        charts: families.iter().flat_map(charts).collect(),
        reading: reading(&families),
        rows,
        ..Report::default()
    })
}

/// The table of these families and its rows for other programs.
pub(super) fn table_of(families: &[Family]) -> (Table, Vec<Row>) {
    let runs: Vec<(&str, &str, Run)> = families.iter().flat_map(runs).collect();
    let lines = Line::group(runs.iter().map(|(family, model, run)| (*family, *model, run)));
    let table = COLUMNS
        .table("Correlation of states (Fig. 2 and 6)", 2, &lines)
        .note(
            "on nominal rows that nothing was fitted to; canonical: first canonical correlation of \
             two clients, which does not depend on a model's coordinates; from oracle: mean \
             difference of |corr| from the oracle's map",
        )
        .note(
            "truth, unconnected: client m of this plant with n ≠ m of another one of its kind; the \
             sinusoids of all clients share one period, so they correlate without any influence",
        )
        .note(
            "the paper gives pictures, no numbers: there the proprietary map is dark between \
             clients, the others look like the oracle's",
        )
        .note(oracle_note(families));
    (table, COLUMNS.rows(&lines))
}

/// The results of all seeds on one family.
pub(super) type Family = (String, Vec<Results>);

fn runs((family, seeds): &Family) -> Vec<(&str, &'static str, Run)> {
    let of = |model: &'static str, found: &Results| {
        let map = found.map(model);
        let oracle = found.map("oracle").filter(|_| model != "oracle");
        let run = Run {
            between: map.map(|map| map.between),
            canonical: map.map(|map| map.canonical),
            from_oracle: map.zip(oracle).map(|(map, oracle)| difference(map, oracle)),
        };
        (family.as_str(), model, run)
    };
    let known = |model: &&str| seeds.iter().any(|found| found.map(model).is_some());
    let models = MODELS.into_iter().filter(known);
    let mut runs: Vec<_> =
        models.flat_map(|model| seeds.iter().map(move |found| of(model, found))).collect();
    if seeds.iter().any(|found| found.null_correlation.is_some()) {
        runs.extend(seeds.iter().map(|found| {
            let run = Run { between: found.null_correlation, canonical: None, from_oracle: None };
            (family.as_str(), "truth, unconnected", run)
        }));
    }
    runs
}

/// Mean difference of |correlation| between clients; signs depend on coordinates and do not count.
fn difference(map: &CorrelationMap, other: &CorrelationMap) -> f64 {
    let client = |name: &String| name.split('.').next().unwrap_or_default().to_owned();
    let owners: Vec<String> = map.names.iter().map(client).collect();
    let n = owners.len();
    let apart = (0..n * n).filter(|k| owners[k / n] != owners[k % n]);
    let found: Vec<f64> =
        apart.map(|k| (map.values[k].abs() - other.values[k].abs()).abs()).collect();
    found.iter().sum::<f64>() / found.len().max(1) as f64
}

fn between(seeds: &[Results], model: &str) -> Option<Spread> {
    Spread::of(seeds.iter().map(|found| Some(found.map(model)?.between)))
}

pub(super) fn charts((family, seeds): &Family) -> Vec<Chart> {
    let short = family.to_lowercase();
    let matrix = |found: &Results, model: &str| {
        let map = found.map(model)?;
        Some(Chart {
            name: format!("{short}-{model}"),
            title: format!("{family}, first seed: correlation of {model} states"),
            drawing: Drawing::Matrix { names: map.names.clone(), values: map.values.clone() },
        })
    };
    let first = seeds.first().into_iter();
    let mut charts: Vec<Chart> =
        first.flat_map(|found| MODELS.iter().filter_map(|model| matrix(found, model))).collect();
    let bar =
        |model: &&str| Some(Bar { name: (*model).to_owned(), value: Some(between(seeds, model)?) });
    charts.push(Chart::bars(
        format!("{short}-between"),
        format!("{family}: mean |correlation| between clients"),
        Axis::linear("mean |correlation|"),
        MODELS.iter().filter_map(bar).collect(),
    ));
    charts
}

fn reading(families: &[Family]) -> Vec<String> {
    let mut sentences: Vec<String> = families.iter().filter_map(of_family).collect();
    let all: Vec<&Results> = families.iter().flat_map(|(_, seeds)| seeds).collect();
    let nearer = |model: &str| {
        let judged = all.iter().filter_map(|found| {
            let oracle = found.map("oracle")?;
            let own = difference(found.map("proprietary")?, oracle);
            Some(difference(found.map(model)?, oracle) < own)
        });
        let judged: Vec<bool> = judged.collect();
        (judged.iter().filter(|nearer| **nearer).count(), judged.len())
    };
    let ((augmented, n), (server, _)) = (nearer("augmented"), nearer("server"));
    let connected = |found: &&Results| {
        found.null_correlation.and_then(|_| found.map("truth")).map(|map| map.between)
    };
    let truth = Spread::of(all.iter().map(connected));
    let null_correlation = Spread::of(all.iter().map(|found| found.null_correlation));
    let null_correlation = truth.zip(null_correlation).map(|(truth, null_correlation)| {
        format!(
            " True states of connected clients of the synthetic plant correlate by {:.2}, those of \
             two unconnected plants by {:.2}: {}.",
            truth.mean,
            null_correlation.mean,
            if null_correlation.mean > 0.7 * truth.mean {
                "most of it is the common period of all sinusoids, not influence"
            } else {
                "most of it is influence"
            }
        )
    });
    if n > 0 {
        sentences.push(format!(
            "The augmented map is nearer to the oracle's than the proprietary one in {augmented} of \
             {n} runs, the server's in {server}.{}",
            null_correlation.unwrap_or_default()
        ));
    }
    sentences
}

fn of_family((family, seeds): &Family) -> Option<String> {
    let of = |model: &str| between(seeds, model).map(|spread| spread.mean);
    let (own, augmented, server) = (of("proprietary")?, of("augmented")?, of("server")?);
    let shown = |part: f64| part / server.max(f64::MIN_POSITIVE);
    let verdict = match (shown(own) > 0.8, shown(augmented) - shown(own) > 0.1) {
        (true, _) => {
            "a client's measurements contain what its neighbours do to it, so this is no evidence of \
             learned coupling"
        }
        (false, true) => "federated training adds to it, as the paper says",
        (false, false) => {
            "the server, which sees all states, adds to it; φ, which sees one client's data, does not"
        }
    };
    Some(format!(
        "{family}: the proprietary states already show {:.0} % of the correlation between clients \
         that the server's show ({own:.2} of {server:.2}), the augmented ones {:.0} %: {verdict}.",
        100.0 * shown(own),
        100.0 * shown(augmented),
    ))
}
