//! One list of columns per study: it makes the table, the JSON rows and the points of charts.

use std::fmt;

use serde_json::Value;

use super::{Cell, Row, Series, Spread, Table};
use crate::score::metrics::run_length::RunLength;

/// All runs of one method on one family: a line of a table and a row of JSON.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a, R> {
    pub family: String,
    pub method: String,
    /// One per seed.
    pub runs: Vec<&'a R>,
}

impl<'a, R> Line<'a, R> {
    /// Runs (family, method, run) with the same names are one line, in the order of the first of each.
    pub(crate) fn group<F: Into<String>, M: Into<String>>(
        runs: impl IntoIterator<Item = (F, M, &'a R)>,
    ) -> Vec<Self> {
        let mut lines: Vec<Self> = Vec::new();
        for (family, method, run) in runs {
            let (family, method) = (family.into(), method.into());
            match lines.iter_mut().find(|l| l.family == family && l.method == method) {
                Some(line) => line.runs.push(run),
                None => lines.push(Self { family, method, runs: vec![run] }),
            }
        }
        lines
    }

    /// Seeds that give runs of the same settings in the same order: a line per setting, under the names
    /// (family, method) of its first run.
    pub(crate) fn across<F: Into<String>, M: Into<String>>(
        seeds: &'a [Vec<R>],
        names: impl Fn(&'a R) -> (F, M),
    ) -> Vec<Self> {
        let line = |(i, first): (usize, &'a R)| {
            let (family, method) = names(first);
            let runs = seeds.iter().filter_map(|seed| seed.get(i)).collect();
            Self { family: family.into(), method: method.into(), runs }
        };
        seeds.first().into_iter().flatten().enumerate().map(line).collect()
    }

    pub(crate) fn spread(&self, of: impl Fn(&R) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|run| of(run)))
    }

    pub(crate) fn mean(&self, of: impl Fn(&R) -> Option<f64>) -> Option<f64> {
        self.spread(of).map(|spread| spread.mean)
    }

    pub(crate) fn sum(&self, of: impl Fn(&R) -> usize) -> usize {
        self.runs.iter().map(|run| of(run)).sum()
    }

    /// In how many of all runs something holds.
    pub(crate) fn holds(&self, holds: impl Fn(&R) -> bool) -> Figure {
        let count = self.runs.iter().filter(|run| holds(run)).count();
        Figure::Text(format!("{count} of {}", self.runs.len()))
    }
}

/// A figure of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Figure {
    Text(String),
    Count(usize),
    Number(Option<f64>),
    Spread(Option<Spread>),
    /// Its mean, or where no run ended, the time watched as a lower bound.
    RunLength(RunLength),
    /// There is no such figure on this line: no entry in JSON.
    Absent,
}

impl Figure {
    fn value(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Number(value) => *value,
            Self::Spread(spread) => spread.map(|spread| spread.mean),
            Self::RunLength(length) => length.mean,
            Self::Text(_) | Self::Absent => None,
        }
    }

    fn add_to(self, row: Row, name: &str) -> Row {
        match self {
            Self::Absent => row,
            Self::Text(text) => row.with(name, text),
            Self::Count(count) => row.with(name, count),
            Self::Spread(Some(Spread { mean, std: Some(std) })) => {
                row.with(name, mean).with(&format!("{name}_std"), std)
            }
            Self::Number(_) | Self::Spread(_) | Self::RunLength(_) => {
                row.with(name, self.value().map_or(Value::Null, Value::from))
            }
        }
    }

    /// As it stands in a table, with so many decimals.
    pub(crate) fn cell(&self, digits: usize) -> Cell {
        let is_words = matches!(self, Self::Text(_));
        Cell { text: format!("{self:.digits$}"), is_words }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Spread(Some(Spread { mean, std: Some(std) })) => {
                write!(f, "{mean:.digits$} ±{std:.digits$}")
            }
            Self::RunLength(RunLength { mean: None, at_least: Some(least), .. }) => {
                write!(f, ">{least:.digits$}")
            }
            Self::Number(_) | Self::Spread(_) | Self::RunLength(_) | Self::Absent => {
                match self.value() {
                    Some(value) => write!(f, "{value:.digits$}"),
                    None => f.write_str("–"),
                }
            }
        }
    }
}

/// One figure: its name in JSON, its heading in a table, its decimals there, and how it is computed. A
/// column without name is in the table only, one without heading in JSON only.
pub(crate) struct Column<R: 'static> {
    json: &'static str,
    heading: &'static str,
    digits: usize,
    of: Of<R>,
}

enum Of<R: 'static> {
    /// The figure of a run; shown is the mean over runs with its deviation.
    Run(fn(&R) -> Option<f64>),
    /// The figure of all runs together.
    Line(fn(&Line<'_, R>) -> Figure),
}

/// The mean over runs of a figure of each.
pub(crate) const fn mean<R>(
    json: &'static str,
    heading: &'static str,
    digits: usize,
    of: fn(&R) -> Option<f64>,
) -> Column<R> {
    Column { json, heading, digits, of: Of::Run(of) }
}

/// A figure of all runs together.
pub(crate) const fn all<R>(
    json: &'static str,
    heading: &'static str,
    digits: usize,
    of: fn(&Line<'_, R>) -> Figure,
) -> Column<R> {
    Column { json, heading, digits, of: Of::Line(of) }
}

/// A figure for other programs only.
pub(crate) const fn json<R>(json: &'static str, of: fn(&Line<'_, R>) -> Figure) -> Column<R> {
    all(json, "", 0, of)
}

/// A figure for the table only.
pub(crate) const fn shown<R>(
    heading: &'static str,
    digits: usize,
    of: fn(&Line<'_, R>) -> Figure,
) -> Column<R> {
    all("", heading, digits, of)
}

pub(crate) const fn family<R>(heading: &'static str) -> Column<R> {
    shown(heading, 0, |line| Figure::Text(line.family.clone()))
}

pub(crate) const fn method<R>(heading: &'static str) -> Column<R> {
    shown(heading, 0, |line| Figure::Text(line.method.clone()))
}

pub(crate) const fn seeds<R>(heading: &'static str) -> Column<R> {
    shown(heading, 0, |line| Figure::Count(line.runs.len()))
}

/// The columns of a table, from left to right.
pub(crate) struct Columns<R: 'static>(pub &'static [Column<R>]);

impl<R> Column<R> {
    fn figure(&self, line: &Line<'_, R>) -> Figure {
        match self.of {
            Of::Run(of) => Figure::Spread(line.spread(of)),
            Of::Line(of) => of(line),
        }
    }
}

impl<R> Columns<R> {
    /// Rows for other programs.
    pub(crate) fn rows(&self, lines: &[Line<'_, R>]) -> Vec<Row> {
        let new = |line: &Line<R>| Row::new(&line.family, &line.method, line.runs.len());
        lines.iter().map(|line| self.add_to(new(line), line)).collect()
    }

    /// A row with the figures of these columns added.
    pub(crate) fn add_to(&self, row: Row, line: &Line<'_, R>) -> Row {
        let named = self.0.iter().filter(|column| !column.json.is_empty());
        named.fold(row, |row, column| column.figure(line).add_to(row, column.json))
    }

    /// The table, whose first `keys` columns name a line.
    pub(crate) fn table(&self, title: &str, keys: usize, lines: &[Line<'_, R>]) -> Table {
        let shown = || self.0.iter().filter(|column| !column.heading.is_empty());
        let cells = |line: &Line<R>| {
            shown().map(|column| column.figure(line).cell(column.digits)).collect()
        };
        Table {
            lines: lines.iter().map(cells).collect(),
            ..Table::new(title, keys, shown().map(|column| column.heading))
        }
    }

    /// A line of a chart: the figure with the JSON name `y` over the one with the name `x`.
    pub(crate) fn series<'l, 'a: 'l>(
        &self,
        name: &str,
        (x, y): (&str, &str),
        lines: impl IntoIterator<Item = &'l Line<'a, R>>,
    ) -> Series {
        let value = |line: &Line<R>, name: &str| {
            self.0.iter().find(|column| column.json == name)?.figure(line).value()
        };
        let points = lines.into_iter().filter_map(|line| Some((value(line, x)?, value(line, y)?)));
        Series::new(name, points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: Columns<f64> = Columns(&[
        method("method"),
        mean("value", "value", 1, |run| Some(*run)),
        json("largest", |line| Figure::Number(line.runs.iter().copied().copied().reduce(f64::max))),
        shown("runs above 2", 0, |line| line.holds(|run| *run > 2.0)),
        json("paper", |_| Figure::Absent),
        seeds("n"),
    ]);

    #[test]
    fn one_list_of_columns_makes_the_table_the_rows_and_the_points() {
        let runs = [1.0, 2.0, 3.0];
        let names = ["a", "b", "a"];
        let lines = Line::group(names.into_iter().zip(&runs).map(|(name, run)| ("F", name, run)));
        let rows = serde_json::to_string(&COLUMNS.rows(&lines)).expect("plain data");
        assert_eq!(
            rows,
            r#"[{"family":"F","method":"a","seeds":2,"value":2.0,"value_std":1.4142135623730951,"largest":3.0},{"family":"F","method":"b","seeds":1,"value":2.0,"largest":2.0}]"#
        );
        let table = COLUMNS.table("t", 1, &lines);
        assert_eq!(table.headings, ["method", "value", "runs above 2", "n"]);
        let shown: Vec<Vec<&str>> =
            table.lines.iter().map(|line| line.iter().map(|c| c.text.as_str()).collect()).collect();
        assert_eq!(shown, [["a", "2.0 ±1.4", "1 of 2", "2"], ["b", "2.0", "0 of 1", "1"]]);
        let series = COLUMNS.series("largest", ("value", "largest"), &lines);
        assert_eq!(series.points, [(2.0, 3.0), (2.0, 2.0)]);
        assert!(COLUMNS.series("none", ("value", "no such column"), &lines).points.is_empty());
    }

    #[test]
    fn a_run_length_without_an_end_is_a_lower_bound_and_null() {
        let length = Figure::RunLength(RunLength::new(30.0, 0, 1));
        assert_eq!(length.cell(0).text, ">30");
        assert_eq!(length.add_to(Row::default(), "arl0").get("arl0"), Some(&Value::Null));
    }
}
