//! Figure 7: norms of residuals of the proprietary and augmented models and of the oracle, and how
//! often they stand in the order the paper needs for its look-up table.

use super::correlation::Family;
use crate::engine::experiment::residual_norms::{Condition, NormTrace, ResidualNorms};
use crate::study::experiments::{by_family, experiments, oracle_note};
use crate::study::frame::{Done, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, all, family, json, mean, shown};
use crate::study::report::{Axis, Chart, Columns, Figure, Report, Row, Series, Spread, Table};

pub(super) const STUDY: Study = Study {
    name: "residuals",
    about: "norms of residuals of all models and their order (Fig. 7)",
    needs_data: false,
    first: None,
    jobs: |options| Ok(experiments(options)),
    report,
};

/// More than half of all steps: "most time instants" in the paper.
const MOST: f64 = 0.5;

/// A client under a condition, all seeds.
type Line<'a> = columns::Line<'a, ResidualNorms>;

/// The seeds in which the means stand as the paper orders them.
fn is_in_order(norms: &ResidualNorms) -> bool {
    norms.r_c > norms.r_a && norms.r_a > norms.r_o
}

fn client(line: &Line) -> Figure {
    Figure::Text(line.runs.first().map_or_else(String::new, |norms| norms.client.clone()))
}

fn condition(line: &Line) -> Figure {
    Figure::Text(line.runs.first().map_or("", |norms| norms.condition.name()).into())
}

const COLUMNS: Columns<ResidualNorms> = Columns(&[
    family("family"),
    all("client", "client", 0, client),
    all("condition", "rows", 0, condition),
    mean("r_c", "‖r_c‖", 3, |n| Some(n.r_c)),
    mean("r_a", "‖r_a‖", 3, |n| Some(n.r_a)),
    mean("r_s", "server", 3, |n| Some(n.r_s)),
    mean("r_o", "‖r_o‖", 3, |n| Some(n.r_o)),
    mean("c_over_a", "r_c > r_a", 2, |n| Some(n.c_over_a)),
    mean("a_over_o", "r_a > r_o", 2, |n| Some(n.a_over_o)),
    mean("ordered", "all in order", 2, |n| Some(n.ordered)),
    shown("means", 0, |line| line.holds(is_in_order)),
    json("means_in_order", |line| Figure::Count(line.sum(|n| usize::from(is_in_order(n))))),
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
    let lines: Vec<Line> = families.iter().flat_map(lines).collect();
    let table = COLUMNS
        .table("Norms of residuals (Fig. 7)", 3, &lines)
        .note(
            "mean norms in standard deviations of the sensors; server: y − h(x_s); then shares of \
             steps; means: seeds in which the mean norms stand in order",
        )
        .note(
            "paper: in every case r_c > r_a > r_o at most time instants, nominal and attacked (a \
             picture, no numbers)",
        )
        .note(oracle_note(families));
    (table, COLUMNS.rows(&lines))
}

fn lines((family, seeds): &Family) -> Vec<Line<'_>> {
    let clients = seeds.first().map(|found| found.clients.as_slice()).unwrap_or_default();
    let mut lines = Vec::new();
    for condition in Condition::ALL {
        for client in clients {
            let norms = seeds.iter().flat_map(|found| &found.norms);
            let own = norms.filter(|n| n.condition == condition && n.client == *client);
            lines.extend(Line::group(own.map(|n| (family, "federated", n))));
        }
    }
    lines
}

pub(super) fn charts((family, seeds): &Family) -> Vec<Chart> {
    let traces = seeds.first().map(|found| found.traces.as_slice()).unwrap_or_default();
    let chart = |trace: &NormTrace| {
        let over = |name: &str, norms: &[f32]| {
            let steps = (trace.first..).map(|step| step as f64);
            Series::new(name, steps.zip(norms.iter().map(|&norm| norm.into())))
        };
        let wrong = trace.anomalous.iter().position(|wrong| *wrong).unwrap_or(0) + trace.first;
        Chart::lines(
            format!("{}-{}", family.to_lowercase(), trace.client.to_lowercase()),
            format!(
                "{family}, first seed: residuals of {}, something wrong from step {wrong} on",
                trace.client
            ),
            (Axis::linear("step"), Axis::logarithmic("‖r‖")),
            vec![
                over("proprietary", &trace.r_c),
                over("augmented", &trace.r_a),
                over("oracle", &trace.r_o),
            ],
        )
    };
    traces.iter().map(chart).collect()
}

fn reading(families: &[Family]) -> Vec<String> {
    let all: Vec<&ResidualNorms> =
        families.iter().flat_map(|(_, seeds)| seeds).flat_map(|found| &found.norms).collect();
    if all.is_empty() {
        return vec![];
    }
    let count = |holds: fn(&ResidualNorms) -> bool| all.iter().filter(|n| holds(n)).count();
    let n = all.len();
    let most = count(|n| n.ordered > MOST);
    let ordered = Spread::of(all.iter().map(|n| Some(n.ordered))).map_or(0.0, |s| s.mean);
    let less = count(|n| n.r_a < n.r_c);
    let change = |condition: Condition| {
        let chosen = all.iter().filter(|n| n.condition == condition);
        Spread::of(chosen.map(|n| Some(100.0 * (n.r_a / n.r_c - 1.0))))
    };
    let mut sentences = vec![format!(
        "The order r_c > r_a > r_o holds at most steps in {most} of {n} cases (client, seed, \
         condition), and at {:.0} % of steps on average, where three curves in random order would \
         show 17 %: the paper's picture {} here.",
        100.0 * ordered,
        if 2 * most > n { "holds" } else { "does not hold" },
    )];
    if let (Some(nominal), Some(anomalous)) =
        (change(Condition::Nominal), change(Condition::Anomalous))
    {
        sentences.push(format!(
            "φ makes the mean residual smaller in {less} of {n} cases; on average it changes by \
             {:+.1} % on nominal rows and by {:+.1} % in anomalies, {}.",
            nominal.mean,
            anomalous.mean,
            if anomalous.mean > -10.0 {
                "too little for a flag that Z_c raises and Z_a does not"
            } else {
                "which may tell Z_a from Z_c"
            },
        ));
    }
    let oracle = count(|n| n.r_o < n.r_a);
    sentences.push(format!(
        "The oracle has smaller residuals than the augmented model in {oracle} of {n} cases; {}.",
        if 4 * oracle > 3 * n {
            "it is the bound it is meant to be"
        } else {
            "trained on the same rows, it is no reliable upper bound"
        }
    ));
    sentences
}
