//! What all panels of one picture have in common: one moment, one axis of time, one set of columns.

use jiff::Timestamp;

use super::pen::width;
use crate::console::app::Model;
use crate::console::measured::Measured;
use crate::console::theme::Theme;
use crate::console::window::Window;
use crate::history::{Bucket, Column};

/// Cells of a measured value and the arrow before it.
pub const VALUE: u16 = 9;
/// Cells of the scale's ends.
const ENDS: u16 = 15;

/// Cells of each part of a sensor's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cells {
    /// The sensor's name.
    pub name: u16,
    /// Its unit; none where there is little room.
    pub unit: u16,
    /// Everything left of the trend.
    pub margin: u16,
    /// The trend.
    pub trend: u16,
    /// The ends of the scale; none where there is little room.
    pub ends: u16,
}

impl Cells {
    /// How a row of `room` cells is shared out.
    fn share(measured: &Measured, room: u16) -> Self {
        let sensors = || measured.clients.iter().flat_map(|client| &client.sensors);
        let widest = |w: fn(&crate::stream::Sensor) -> &str| {
            sensors().map(|sensor| width(w(sensor))).max().unwrap_or(0)
        };
        let roomy = room >= 60;
        let name = widest(|sensor| &sensor.name).clamp(4, if roomy { 16 } else { 9 });
        let unit = if roomy { widest(|sensor| &sensor.unit).min(7) } else { 0 };
        let ends = if room >= 100 { ENDS } else { 0 };
        // Two cells before the name, one after every part.
        let margin = 2 + name + 1 + VALUE + 1 + if unit > 0 { unit + 1 } else { 0 };
        let trend = room.saturating_sub(margin + ends + 1);
        Self { name, unit, margin, trend, ends }
    }
}

/// One picture's shared parts.
pub struct Scene<'a> {
    /// What is shown.
    pub model: &'a Model,
    /// How.
    pub theme: &'a Theme,
    /// What has been measured.
    pub measured: &'a Measured,
    /// The instant that values are shown of.
    pub moment: Timestamp,
    /// The instant of the newest data.
    pub newest: Timestamp,
    /// The axis of time.
    pub window: Window,
    /// How a row is shared out.
    pub cells: Cells,
    halves: Vec<Column>,
}

impl<'a> Scene<'a> {
    /// The scene on a screen of `room` columns; `None` while nothing has been measured.
    #[must_use]
    pub fn new(model: &'a Model, theme: &'a Theme, room: u16) -> Option<Self> {
        let measured = model.measured.as_ref()?;
        let (moment, newest) = (model.moment()?, model.newest()?);
        let data = measured.history.first()?..=newest;
        let cells = Cells::share(measured, room);
        let window = Window::around(moment, data, model.column_s(), cells.trend);
        let halves = window
            .half_edges()
            .windows(2)
            .map(|edges| measured.history.column(edges[0], edges[1]))
            .collect();
        Some(Self { model, theme, measured, moment, newest, window, cells, halves })
    }

    /// Number of columns of the trends.
    #[must_use]
    pub fn columns(&self) -> u16 {
        self.cells.trend
    }

    /// A channel's values, two buckets to a column.
    #[must_use]
    pub fn buckets(&self, channel: usize) -> Vec<Bucket> {
        self.halves.iter().map(|half| self.measured.history.bucket(channel, half)).collect()
    }

    /// The column of the moment looked back at.
    #[must_use]
    pub fn cursor(&self) -> Option<u16> {
        self.model.look.and_then(|look| self.window.column_of(look))
    }
}
