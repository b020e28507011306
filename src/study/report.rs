//! What a study says: tables, charts, rows for other programs, and a reading of the numbers.
//!
//! A report is plain data; how it looks is a pure function of it ([`text`], [`plot`], [`svg`]). It
//! must not know where its numbers come from.

pub(crate) mod plot;
mod scale;
pub(crate) mod svg;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// All that one study has to say.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Report {
    /// The name under which it is run.
    pub(crate) study: String,
    /// What it is about, in a line.
    pub(crate) title: String,
    /// The command that makes it again.
    pub(crate) command: String,
    pub(crate) tables: Vec<Table>,
    pub(crate) charts: Vec<Chart>,
    /// What holds and what does not, in sentences computed from the numbers.
    pub(crate) reading: Vec<String>,
    /// The same figures for other programs.
    pub(crate) rows: Vec<Row>,
}

/// The one object that `--json` prints.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(2))?;
        object.serialize_entry("study", &self.study)?;
        object.serialize_entry("rows", &self.rows)?;
        object.end()
    }
}

/// A row for other programs: `family`, `method`, `seeds` and the figures that apply, in this order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Row(Vec<(String, Value)>);

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Row {
    /// A row without figures yet.
    pub(crate) fn new(family: &str, method: &str, seeds: usize) -> Self {
        Self::default().with("family", family).with("method", method).with("seeds", seeds)
    }

    /// With one more figure; one that does not exist is null.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// A figure by its name.
    #[cfg(test)]
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// With a mean under `name` and, of several seeds, its deviation under `name_std`.
    pub(crate) fn spread(self, name: &str, spread: Option<Spread>) -> Self {
        let row = self.with(name, spread.map(|s| s.mean));
        match spread.and_then(|s| s.std) {
            Some(std) => row.with(&format!("{name}_std"), std),
            None => row,
        }
    }
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// The mean.
    pub(crate) mean: f64,
    /// Sample standard deviation; none of a single value.
    pub(crate) std: Option<f64>,
    pub(crate) n: usize,
}

impl Spread {
    /// Of the values there are; none of nothing. What is not finite is not counted.
    pub(crate) fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().flatten().filter(|v| v.is_finite()).collect();
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let std = (n > 1).then(|| (square / (n - 1) as f64).sqrt());
        (n > 0).then_some(Self { mean, std, n })
    }
}

/// A table, a row per line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// So many columns at the left name a line; they are repeated when a table must be broken.
    pub(crate) keys: usize,
    pub(crate) lines: Vec<Vec<Cell>>,
    /// What must be known to read it.
    pub(crate) notes: Vec<String>,
}

impl Table {
    /// An empty table whose first `keys` columns name a line.
    pub(crate) fn new(title: &str, keys: usize, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { title: title.into(), columns, keys, ..Self::default() }
    }

    pub(crate) fn line(&mut self, cells: Vec<Cell>) {
        self.lines.push(cells);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// What stands in a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Cell {
    /// There is no such figure.
    #[default]
    Nothing,
    /// Words, at the left.
    Text(String),
    /// A figure with so many decimals, at the right.
    Number(f64, usize),
    /// A mean with its deviation, with so many decimals.
    Spread(Spread, usize),
    /// A figure that is only known to be larger.
    AtLeast(f64, usize),
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A figure, if there is one.
    pub(crate) fn number(value: Option<f64>, digits: usize) -> Self {
        value.map_or(Self::Nothing, |value| Self::Number(value, digits))
    }

    /// A mean, if there is one.
    pub(crate) fn spread(spread: Option<Spread>, digits: usize) -> Self {
        spread.map_or(Self::Nothing, |spread| Self::Spread(spread, digits))
    }

    pub(crate) fn count(count: usize) -> Self {
        Self::Number(count as f64, 0)
    }

    fn is_words(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("–"),
            Self::Text(text) => f.write_str(text),
            Self::Number(value, digits) => write!(f, "{value:.digits$}"),
            Self::Spread(Spread { mean, std: Some(std), .. }, digits) => {
                write!(f, "{mean:.digits$} ±{std:.digits$}")
            }
            Self::Spread(Spread { mean, .. }, digits) => write!(f, "{mean:.digits$}"),
            Self::AtLeast(value, digits) => write!(f, ">{value:.digits$}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    /// File name without ending, unique in the study: lower case, digits, hyphens.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) drawing: Drawing,
}

/// Kinds of pictures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Drawing {
    /// y over x, a line per series.
    Lines { x: Axis, y: Axis, series: Vec<Series> },
    /// A bar per name.
    Bars {
        /// What the length of a bar is.
        value: Axis,
        /// The bars, from top to bottom.
        bars: Vec<Bar>,
    },
    /// A matrix of values between −1 and 1.
    Matrix {
        /// Names of rows and columns.
        names: Vec<String>,
        /// Values, row by row; NaN where there is none.
        values: Vec<f64>,
    },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Axis {
    /// What it measures, with its unit.
    pub(crate) label: String,
    /// Whether equal steps are equal factors.
    pub(crate) logarithmic: bool,
}

impl Axis {
    /// Equal steps, equal differences.
    pub(crate) fn linear(label: &str) -> Self {
        Self { label: label.into(), logarithmic: false }
    }

    /// Equal steps, equal factors.
    pub(crate) fn logarithmic(label: &str) -> Self {
        Self { label: label.into(), logarithmic: true }
    }
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// (x, y) in the order in which they are joined.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A bar of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    /// What it stands for.
    pub(crate) name: String,
    /// Its length, and how much that varies.
    pub(crate) value: Option<Spread>,
}
