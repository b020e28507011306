//! The tags of a live source that clients watch, and the place of each in a frame.

use std::collections::HashMap;

use crate::session::ClientSettings;
use crate::stream::columns::assign;
use crate::stream::{Frame, Layout, Sensor};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tags {
    layout: Layout,
    /// Every tag once.
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// For each value of a frame, its tag.
    values: Vec<usize>,
    /// For each input of a frame, its tag.
    inputs: Vec<usize>,
}

impl Tags {
    /// Those of `header` that clients name; the error names a client and the nearest tag there is.
    pub(crate) fn of_header(
        header: &[String],
        clients: &[ClientSettings],
        period_s: f64,
    ) -> Result<Self, String> {
        let header: Vec<Sensor> = header.iter().map(|name| Sensor::new(name.clone(), "")).collect();
        Ok(Self::of_layout(assign(&header, clients, period_s)?.layout))
    }

    /// Those that clients name one by one; `None` where they use patterns.
    pub(crate) fn named(clients: &[ClientSettings], period_s: f64) -> Option<Result<Self, String>> {
        let names: Vec<String> =
            clients.iter().flat_map(|c| c.columns.iter().chain(&c.inputs)).cloned().collect();
        let is_pattern = |name: &String| name.contains(['*', '?', '[']);
        let mut header = names.clone();
        header.sort_unstable();
        header.dedup();
        (!names.iter().any(is_pattern)).then(|| Self::of_header(&header, clients, period_s))
    }

    pub(crate) fn of_layout(layout: Layout) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut places = HashMap::new();
        let mut place = |sensor: &Sensor| {
            *places.entry(sensor.name.clone()).or_insert_with(|| {
                names.push(sensor.name.clone());
                names.len() - 1
            })
        };
        let values = layout.clients.iter().flat_map(|c| &c.sensors).map(&mut place).collect();
        let inputs = layout.clients.iter().flat_map(|c| &c.inputs).map(&mut place).collect();
        Self { layout, names, places, values, inputs }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The tags that a client watches.
    pub(crate) fn of_client(&self, client: usize) -> &[usize] {
        &self.values[self.layout.span(client)]
    }

    /// Puts one value a tag where it belongs.
    pub(crate) fn fill(&self, row: &[f64], frame: &mut Frame) {
        frame.values.clear();
        frame.values.extend(self.values.iter().map(|tag| row[*tag]));
        frame.inputs.clear();
        frame.inputs.extend(self.inputs.iter().map(|tag| row[*tag]));
    }
}
