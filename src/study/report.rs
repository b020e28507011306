//! The result of a study: tables, charts, rows for other programs, and sentences about the numbers.
//!
//! A report is plain data. It does not know where its numbers come from; [`text`], [`plot`] and
//! [`svg`] draw it.

pub(crate) mod columns;
pub(crate) mod plot;
mod scale;
pub(crate) mod svg;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

pub(crate) use self::columns::{Columns, Figure, Line};

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Report {
    pub study: String,
    pub title: String,
    /// The command that makes it again.
    pub command: String,
    pub tables: Vec<Table>,
    pub charts: Vec<Chart>,
    /// What holds and what does not, in sentences computed from the numbers.
    pub reading: Vec<String>,
    pub rows: Vec<Row>,
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
    /// Of names and figures, in this order.
    pub(crate) fn of(figures: &[(&str, Value)]) -> Self {
        Self(figures.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    fn new(family: &str, method: &str, seeds: usize) -> Self {
        Self::default().with("family", family).with("method", method).with("seeds", seeds)
    }

    /// With one more figure; one that does not exist is null.
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub mean: f64,
    /// Sample standard deviation; none of a single value.
    pub std: Option<f64>,
}

impl Spread {
    /// Of the finite values; none where there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().flatten().filter(|v| v.is_finite()).collect();
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let std = (n > 1).then(|| (square / (n - 1) as f64).sqrt());
        (n > 0).then_some(Self { mean, std })
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    pub title: String,
    pub headings: Vec<String>,
    /// So many columns at the left name a line; they are repeated when a table must be broken.
    pub keys: usize,
    pub lines: Vec<Vec<Cell>>,
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table whose first `keys` columns name a line.
    pub(crate) fn new<'a>(
        title: &str,
        keys: usize,
        headings: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let headings = headings.into_iter().map(str::to_owned).collect();
        Self { title: title.into(), headings, keys, ..Self::default() }
    }

    /// With a note below it.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// Words stand at the left of their column, figures at the right.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Cell {
    text: String,
    is_words: bool,
}

impl Cell {
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_words: true }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    /// File name without ending, unique in the study: lower case, digits, hyphens.
    pub name: String,
    pub title: String,
    pub drawing: Drawing,
}

impl Chart {
    /// y over x, a line per series.
    pub(crate) fn lines(
        name: impl Into<String>,
        title: impl Into<String>,
        (x, y): (Axis, Axis),
        series: Vec<Series>,
    ) -> Self {
        Self { name: name.into(), title: title.into(), drawing: Drawing::Lines { x, y, series } }
    }

    /// A bar per name, from top to bottom.
    pub(crate) fn bars(
        name: impl Into<String>,
        title: impl Into<String>,
        value: Axis,
        bars: Vec<Bar>,
    ) -> Self {
        Self { name: name.into(), title: title.into(), drawing: Drawing::Bars { value, bars } }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Drawing {
    Lines {
        x: Axis,
        y: Axis,
        series: Vec<Series>,
    },
    Bars {
        /// The quantity that the length of a bar shows.
        value: Axis,
        bars: Vec<Bar>,
    },
    /// A matrix of values between −1 and 1, row by row; NaN where there is none.
    Matrix {
        names: Vec<String>,
        values: Vec<f64>,
    },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Axis {
    /// The quantity with its unit.
    pub label: String,
    /// Whether equal steps are equal factors.
    pub logarithmic: bool,
}

impl Axis {
    pub(crate) fn linear(label: &str) -> Self {
        Self { label: label.into(), logarithmic: false }
    }

    pub(crate) fn logarithmic(label: &str) -> Self {
        Self { label: label.into(), logarithmic: true }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub name: String,
    /// (x, y) in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    pub(crate) fn new(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub name: String,
    pub value: Option<Spread>,
}
