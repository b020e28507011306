//! A client's sensors over time, each on its own fixed scale.
//!
//! ```text
//!  1 PIT01     ↑61.48 bar    ⡠⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤⠒⠒⠊⠉⠑⠢⣀  ??  ⡠⠊↑ ┐80      the rank of those that deviate most,
//!                            ⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤⠒⠒⠊⠉⠑⠢⣀  ?? ⡠⠊   ┘40      value, trend, ends of the scale
//! ```

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{cut, part, put, put_right, width};
use super::rows::cursor;
use super::scene::{Axis, Scene};
use super::verdict::Verdict;
use crate::console::measured::{Client, Measured};
use crate::console::number;
use crate::console::scale::Place;
use crate::console::text::clean;
use crate::console::theme::State;
use crate::console::trend::Trend;
use crate::history::{Bucket, Column};
use crate::stream::Sensor;

/// Cells of a measured value and the arrow before it.
const VALUE: u16 = 9;
/// Cells of the scale's ends.
const ENDS: u16 = 15;

/// Cells of each part of a sensor's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) name: u16,
    /// Its unit; none where there is little room.
    pub(crate) unit: u16,
    /// Everything left of the trend.
    pub(crate) margin: u16,
    pub(crate) trend: u16,
    /// The ends of the scale; none where there is little room.
    pub(crate) ends: u16,
}

impl Cells {
    /// How a row of `room` cells is shared out.
    pub(crate) fn share(measured: &Measured, room: u16) -> Self {
        let sensors = || measured.clients.iter().flat_map(|client| &client.sensors);
        let widest =
            |w: fn(&Sensor) -> &str| sensors().map(|sensor| width(w(sensor))).max().unwrap_or(0);
        let roomy = room >= 60;
        let name = widest(|sensor| &sensor.name).clamp(4, if roomy { 16 } else { 9 });
        let unit = if roomy { widest(|sensor| &sensor.unit).min(7) } else { 0 };
        let ends = if room >= 100 { ENDS } else { 0 };
        // Three cells before the name, one after every part.
        let margin = 3 + name + 1 + VALUE + 1 + if unit > 0 { unit + 1 } else { 0 };
        let trend = room.saturating_sub(margin + ends + 1);
        Self { name, unit, margin, trend, ends }
    }
}

/// Which sensors of a client are drawn, and how high.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) skip: usize,
    pub(crate) sensors: usize,
    pub(crate) height: u16,
}

/// Rows that a sensor gets at most.
const HIGHEST: u16 = 6;

impl Shown {
    /// As many of `sensors` sensors as fit into `rows` rows; those before `skip` are scrolled off as
    /// far as there is need.
    pub(crate) fn plan(sensors: usize, skip: usize, rows: u16) -> Self {
        let rows = usize::from(rows);
        let fit = sensors.min(rows);
        let skip = skip.min(sensors - fit);
        let height =
            rows.checked_div(fit).map_or(1, |height| height.clamp(1, usize::from(HIGHEST)));
        Self { skip, sensors: fit, height: height as u16 }
    }
}

/// Draws the sensors of a client into `area`.
pub(crate) fn draw(
    scene: &Scene,
    client: usize,
    cells: Cells,
    axis: &Axis,
    shown: Shown,
    area: Rect,
    buffer: &mut Buffer,
) {
    let Some(known) = scene.measured.clients.get(client) else { return };
    let edges = axis.window.half_edges();
    let halves: Vec<Column> =
        edges.windows(2).map(|edge| scene.measured.history.column(edge[0], edge[1])).collect();
    let ranked = scene.ranked(client);
    let not_watched = scene.not_watched(client);
    let calm = Verdict::of(scene, client).state == State::Normal;
    let channels = known.channels.clone().skip(shown.skip).take(shown.sensors);
    for (row, channel) in channels.enumerate() {
        let area = part(area, row as u16 * shown.height, shown.height);
        let rank = ranked.and_then(|ranked| {
            let sensor = known.sensors.get(channel - known.channels.start)?;
            ranked.iter().position(|name| clean(name) == sensor.name)
        });
        let watched = known
            .sensors
            .get(channel - known.channels.start)
            .is_none_or(|sensor| not_watched.iter().all(|(name, _)| clean(name) != sensor.name));
        let sensor = One { known, channel, rank, watched, calm, cells };
        sensor.draw(scene, axis, &halves, area, buffer);
    }
}

struct One<'a> {
    known: &'a Client,
    channel: usize,
    rank: Option<usize>,
    /// A model looks at it.
    watched: bool,
    /// Nothing is the matter with its client: a rank is no more than a rank.
    calm: bool,
    cells: Cells,
}

impl One<'_> {
    fn draw(&self, scene: &Scene, axis: &Axis, halves: &[Column], area: Rect, buffer: &mut Buffer) {
        let (theme, cells) = (scene.theme, self.cells);
        let (Some(sensor), Some(scale)) = (
            self.known.sensors.get(self.channel.saturating_sub(self.known.channels.start)),
            scene.measured.scales.get(self.channel),
        ) else {
            return;
        };
        if let Some(rank) = self.rank.filter(|rank| *rank < 9) {
            let style = if self.calm { theme.label } else { theme.over };
            put(buffer, area, 1, 0, &(rank + 1).to_string(), style);
        }
        if !self.watched {
            put(buffer, area, 1, 0, "–", theme.label);
        }
        let name = if self.watched { theme.text } else { theme.label };
        put(buffer, area, 3, 0, &cut(&sensor.name, cells.name), name);
        let start = 3 + cells.name + 1;
        if let Some(value) = self.value(scene, scene.moment) {
            let (arrow, style) = match scale.place(value) {
                Place::Below => ("↓", theme.beyond),
                Place::Above => ("↑", theme.beyond),
                Place::On(_) => (" ", theme.text),
            };
            put(buffer, area, start, 0, arrow, style);
            let text = number::format(value, scale.decimals(), usize::from(VALUE - 1));
            put_right(buffer, area, start + VALUE, 0, &text, style);
            put(buffer, area, start + VALUE + 1, 0, &cut(&sensor.unit, cells.unit), theme.label);
        } else {
            put_right(buffer, area, start + VALUE, 0, "? missing", theme.missing);
        }
        let trend = area.intersection(Rect {
            x: area.x.saturating_add(cells.margin),
            width: cells.trend,
            ..area
        });
        let buckets: Vec<Bucket> =
            halves.iter().map(|half| scene.measured.history.bucket(self.channel, half)).collect();
        Trend { halves: &buckets, scale, theme }.draw(trend, buffer);
        cursor(scene, axis, trend, buffer);
        if cells.ends > 0
            && let Some((low, high)) = scale.ends()
        {
            self.ends(scene, low, high, area, buffer);
        }
    }

    fn value(&self, scene: &Scene, moment: Timestamp) -> Option<f64> {
        scene.measured.history.value_at(self.channel, moment).map(f64::from)
    }

    /// The ends of the scale: side by side in one row, or where they belong.
    fn ends(&self, scene: &Scene, low: f64, high: f64, area: Rect, buffer: &mut Buffer) {
        let label = scene.theme.label;
        let x = self.cells.margin + self.cells.trend + 1;
        let (low, high) = (number::bound(low, high - low), number::bound(high, high - low));
        if area.height == 1 {
            let both = format!("{low}‥{high}");
            if width(&both) < self.cells.ends {
                put(buffer, area, x, 0, &both, label);
            }
        } else {
            put(buffer, area, x, 0, &format!("┐{high}"), label);
            put(buffer, area, x, area.height.saturating_sub(1), &format!("┘{low}"), label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_that_do_not_fit_can_be_scrolled_to() {
        let shown = |skip, sensors, height| Shown { skip, sensors, height };
        assert_eq!(Shown::plan(12, 6, 19), shown(0, 12, 1));
        assert_eq!(Shown::plan(38, 6, 19), shown(6, 19, 1));
        assert_eq!(Shown::plan(38, 37, 19), shown(19, 19, 1));
        assert_eq!(Shown::plan(3, 0, 19), shown(0, 3, 6));
        assert_eq!(Shown::plan(0, 5, 0), shown(0, 0, 1));
    }
}
