//! Every table and figure of the paper in one line each: the paper's value, ours at the paper's settings,
//! ours at our settings.
//!
//! The lines are made of the rows of other studies. A line whose study was not run says so.

mod sections;
#[cfg(test)]
mod tests;
mod values;

use serde_json::Value;

use self::sections::SECTIONS;
use super::report::{Cell, Report, Row, Table};

/// The name under which `headwater study` knows it.
pub(crate) const NAME: &str = "overview";

pub(crate) const ABOUT: &str =
    "one line for every table and figure of the paper, from the results of the other studies";

/// A table or figure of the paper, and the study that makes its lines.
#[derive(Clone, Copy)]
struct Section {
    of: &'static str,
    study: &'static str,
    /// At the paper's settings and at ours.
    families: [&'static str; 2],
    lines: &'static [Line],
}

struct Line {
    figure: &'static str,
    printed: fn() -> String,
    value: fn(&Found, &str) -> Option<String>,
}

/// The rows of a study.
struct Found<'a>(&'a [Row]);

impl Found<'_> {
    fn rows<'r>(&'r self, wanted: &'r [(&'r str, &'r str)]) -> impl Iterator<Item = &'r Row> {
        let has = |row: &Row, (name, value): &(&str, &str)| {
            row.get(name).and_then(Value::as_str) == Some(value)
        };
        self.0.iter().filter(move |row| wanted.iter().all(|pair| has(row, pair)))
    }

    /// A figure of the first row of a family and a method.
    fn figure(&self, family: &str, method: &str, name: &str) -> Option<f64> {
        number(self.rows(&[("family", family), ("method", method)]).next()?, name)
    }

    /// Figures of one row with one number of decimals.
    fn figures(&self, family: &str, method: &str, names: &[&str], digits: usize) -> Option<String> {
        let words = names
            .iter()
            .map(|name| self.figure(family, method, name).map(|value| format!("{value:.digits$}")));
        Some(words.collect::<Option<Vec<_>>>()?.join(" / "))
    }

    /// The mean of a figure over all rows of a family.
    fn mean(&self, family: &str, name: &str) -> Option<f64> {
        let wanted = [("family", family)];
        let values: Vec<f64> = self.rows(&wanted).filter_map(|row| number(row, name)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

fn number(row: &Row, name: &str) -> Option<f64> {
    row.get(name).and_then(Value::as_f64)
}

fn lines() -> impl Iterator<Item = (&'static Section, &'static Line)> {
    SECTIONS.iter().flat_map(|section| section.lines.iter().map(move |line| (section, line)))
}

/// Words where a study was not run, or has no such line.
const ABSENT: &str = "not run";

/// The overview of these reports.
pub(crate) fn overview(reports: &[Report]) -> Report {
    let headings = ["paper", "figure", "study", "paper's", "at the paper's settings", "at ours"];
    let mut table = Table::new("Every table and figure of the paper", 2, headings);
    let mut rows = Vec::new();
    for (section, line) in lines() {
        let (Section { of, study, families, .. }, figure) = (*section, line.figure);
        let report = reports.iter().find(|report| report.study == study);
        let found = Found(report.map_or(&[], |report| &report.rows));
        let printed = (line.printed)();
        let mut values = families.map(|f| (line.value)(&found, f));
        let [published, ours] = families;
        if published == ours && values[0].is_some() {
            // There is one setting, which is not the paper's alone.
            values[0] = Some("as ours".into());
        }
        let words = |value: &Option<String>| value.clone().unwrap_or_else(|| ABSENT.into());
        let cells = [of.into(), figure.into(), study.into(), printed.clone()];
        table
            .lines
            .push(cells.into_iter().chain(values.iter().map(words)).map(Cell::words).collect());
        let [published, ours] = values.map(|value| value.map_or(Value::Null, Value::from));
        rows.push(Row::of(&[
            ("paper", of.into()),
            ("figure", figure.into()),
            ("study", study.into()),
            ("printed", printed.into()),
            ("at_papers_settings", published),
            ("at_our_settings", ours),
        ]));
    }
    let table = table
        .note(
            "The paper's settings: φ of width 1, one pass of Algorithm 1, a constant step size; on the \
             plant also its first 10,000 s, every second. Families A2-paper and A2, plant-paper and \
             plant (in Table 4 plant-attack-day).",
        )
        .note(
            "A flag a minute: any step of it is flagged; most steps are. (steps): a step is not a second \
             there, and every step is looked up. As ours: the model has no φ and no federation, so that \
             there is one setting.",
        )
        .note(
            "Fig. 1 is a diagram. Table 1 is `--mode paper` itself: a test compares every episode with \
             Algorithm 2 by hand. The built-in plant stands for HAI 23.05, which `--data DIR` adds.",
        );
    let command = "headwater study overview --data DIR".into();
    let title = "every table and figure of the paper, beside ours".into();
    Report { study: NAME.into(), title, command, tables: vec![table], rows, ..Report::default() }
}
