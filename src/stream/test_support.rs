//! A stream of rows written down in a test.

use jiff::Timestamp;

use super::{ClientColumns, Continuity, Event, Frame, Label, Layout, Sensor, Stream, StreamError};

pub(crate) struct Listed {
    layout: Layout,
    rows: std::vec::IntoIter<(i64, Vec<f64>)>,
    last: Option<i64>,
}

impl Listed {
    /// One client with one sensor; times in seconds.
    pub(crate) fn one_column(period_s: f64, rows: &[(i64, f64)]) -> Self {
        Self::new(&[1], period_s, rows.iter().map(|(t, v)| (*t, vec![*v])).collect())
    }

    /// Clients with so many sensors each.
    pub(crate) fn new(widths: &[usize], period_s: f64, rows: Vec<(i64, Vec<f64>)>) -> Self {
        let clients = widths
            .iter()
            .enumerate()
            .map(|(c, n)| ClientColumns {
                name: format!("C{}", c + 1),
                title: String::new(),
                sensors: (0..*n).map(|s| Sensor::new(format!("s{s}"), "")).collect(),
                inputs: Vec::new(),
            })
            .collect();
        Self { layout: Layout { clients, period_s }, rows: rows.into_iter(), last: None }
    }
}

impl Stream for Listed {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let Some((time, values)) = self.rows.next() else { return Ok(false) };
        frame.time = Timestamp::from_second(time).expect("a time near the epoch");
        frame.continuity = match self.last.replace(time) {
            None => Continuity::NewRun,
            Some(last) => {
                let hole = (time - last) as f64 - self.layout.period_s;
                if hole > 0.0 { Continuity::Gap { seconds: hole } } else { Continuity::Next }
            }
        };
        frame.values = values;
        frame.label = Label::Unlabelled;
        frame.notes.clear();
        Ok(true)
    }

    fn events(&self) -> &[Event] {
        &[]
    }
}
