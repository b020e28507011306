//! The flags of each model on the rows of a session: the left half of Table 4.

use crate::engine::experiment::Variant;
use crate::engine::experiment::flags::ModelFlags;
use crate::score::metrics::run_length::RunLength;
use crate::study::detection::flags;
use crate::study::published::Table4;
use crate::study::report::columns::{all, json, seeds, shown};
use crate::study::report::{Columns, Figure, Line, Row, Table};

fn arl0_min(line: &Line<'_, ModelFlags>) -> RunLength {
    flags::arl0(line).scaled(1.0 / 60.0)
}

fn arl1_min(line: &Line<'_, ModelFlags>) -> RunLength {
    flags::arl1(line).scaled(1.0 / 60.0)
}

/// Flags of the models, in minutes, with the paper's own beside them.
const COLUMNS: Columns<ModelFlags> = Columns(&[
    shown("percentile", 0, |line| Figure::Text(flags::percentile(line))),
    shown("model", 0, |line| Figure::Text(flags::model(line))),
    all("arl0", "ARL0 min", 1, |line| Figure::RunLength(arl0_min(line))),
    json("arl0_at_least", |line| Figure::Number(arl0_min(line).at_least)),
    shown("paper", 1, |line| Figure::Number(printed(line).map(|p| p.arl0_min))),
    all("arl1", "ARL1 min", 1, |line| Figure::RunLength(arl1_min(line))),
    json("arl1_at_least", |line| Figure::Number(arl1_min(line).at_least)),
    json("arl1_censored", |line| Figure::Count(flags::arl1(line).censored)),
    json("unit", |_| Figure::Text("min".into())),
    shown("paper", 1, |line| Figure::Number(printed(line).map(|p| p.arl1_min))),
    shown("censored", 0, |line| Figure::Text(flags::censored(line))),
    seeds("runs"),
]);

fn printed(line: &Line<'_, ModelFlags>) -> Option<&'static Table4> {
    let flags = line.runs.first()?;
    let model = Variant::ALL.into_iter().find(|model| model.name() == flags.model)?;
    Table4::find(model, flags.percentile)
}

/// The same for other programs.
pub(in crate::study::catalogue) fn flag_rows(family: &str, flags: &[ModelFlags]) -> Vec<Row> {
    COLUMNS.rows(&flags::lines(family, &flags.iter().collect::<Vec<_>>()))
}

pub(in crate::study::catalogue) fn flag_table(title: &str, flags: &[&ModelFlags]) -> Table {
    COLUMNS.table(title, 2, &flags::lines("", flags)).note(
        "ARL0: nominal time of a client per flag. ARL1: from an onset to the next flag of the client \
         it is in; a run without one until the next onset is censored and counts with its full \
         length. Flags of single steps, before any look-up.",
    )
    .note(
        "Of training: thresholds of the training rows, and ARL0 the time from the first of them to the \
         first flagged minute, mean over clients. That is what the paper says of its ARL0.",
    )
}
