//! A client's sensors over time, each on its own fixed scale.
//!
//! ```text
//!  1 PIT01     ↑61.48 bar    ⡠⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤⠒⠒⠊⠉⠑⠢⣀  ??  ⡠⠊↑ ┐80      the rank of those that deviate most,
//!                            ⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤⠒⠒⠊⠉⠑⠢⣀  ?? ⡠⠊   ┘40      value, trend, ends of the scale
//! ```

use ratatui::layout::Rect;

use super::pen::{Canvas, columns, cut, part, width};
use super::rows::cursor;
use super::scene::{Axis, Scene};
use super::status::Status;
use crate::console::measured::Measured;
use crate::console::number;
use crate::console::scale::{Place, Scale};
use crate::console::text::clean;
use crate::console::theme::State;
use crate::console::widget::trend::Trend;
use crate::history::{Bucket, Column};
use crate::stream::Sensor;

const VALUE: u16 = 9;
const ENDS: u16 = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cells {
    pub name: u16,
    /// Its unit; none where there is little room.
    pub unit: u16,
    pub margin: u16,
    pub trend: u16,
    /// The ends of the scale; none where there is little room.
    pub ends: u16,
}

impl Cells {
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
    pub skip: usize,
    pub sensors: usize,
    pub height: u16,
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

pub(crate) fn draw(
    scene: &Scene,
    client: usize,
    cells: Cells,
    axis: &Axis,
    shown: Shown,
    area: Rect,
    canvas: &mut Canvas,
) {
    let (theme, measured) = (scene.theme, scene.measured);
    let Some(known) = measured.clients.get(client) else { return };
    let edges = axis.window.half_edges();
    let halves: Vec<Column> =
        edges.windows(2).map(|edge| measured.history.column(edge[0], edge[1])).collect();
    let (ranked, not_watched) =
        (scene.ranked(client).unwrap_or_default(), scene.not_watched(client));
    // A rank is no more than a rank while nothing is the matter with the client.
    let calm = Status::of(scene, client).state == State::Normal;
    let sensors = known.sensors.iter().zip(known.channels.clone());
    for (row, (sensor, channel)) in (0..).zip(sensors.skip(shown.skip).take(shown.sensors)) {
        let area = part(area, row * shown.height, shown.height);
        let Some(scale) = measured.scales.get(channel) else { return };
        let rank = ranked.iter().position(|name| clean(name) == sensor.name);
        if let Some(rank) = rank.filter(|rank| *rank < 9) {
            let style = if calm { theme.label } else { theme.over };
            canvas.put(area, 1, 0, &(rank + 1).to_string(), style);
        }
        let mut style = theme.text;
        if not_watched.iter().any(|(name, _)| clean(name) == sensor.name) {
            style = theme.label;
            canvas.put(area, 1, 0, "–", style);
        }
        canvas.put(area, 3, 0, &cut(&sensor.name, cells.name), style);
        let value = measured.history.value_at(channel, scene.moment).map(f64::from);
        reading(value, scale, &sensor.unit, cells, area, canvas);
        let trend = columns(area, cells.margin, cells.trend);
        let buckets: Vec<Bucket> =
            halves.iter().map(|half| measured.history.bucket(channel, half)).collect();
        Trend { halves: &buckets, scale, theme }.draw(trend, canvas.buffer);
        cursor(scene, axis, trend, canvas);
        ends(scale, cells, area, canvas);
    }
}

/// A value with an arrow where it is beyond its scale, and its unit.
fn reading(
    value: Option<f64>,
    scale: &Scale,
    unit: &str,
    cells: Cells,
    area: Rect,
    canvas: &mut Canvas,
) {
    let (theme, start) = (canvas.theme, 3 + cells.name + 1);
    let Some(value) = value else {
        return canvas.right(area, start + VALUE, 0, "? missing", theme.missing);
    };
    let (arrow, style) = match scale.place(value) {
        Place::Below => ("↓", theme.beyond),
        Place::Above => ("↑", theme.beyond),
        Place::On(_) => (" ", theme.text),
    };
    canvas.put(area, start, 0, arrow, style);
    let text = number::format(value, scale.decimals(), usize::from(VALUE - 1));
    canvas.right(area, start + VALUE, 0, &text, style);
    canvas.put(area, start + VALUE + 1, 0, &cut(unit, cells.unit), theme.label);
}

/// The ends of the scale: side by side in one row, or where they belong.
fn ends(scale: &Scale, cells: Cells, area: Rect, canvas: &mut Canvas) {
    let Some((low, high)) = scale.ends().filter(|_| cells.ends > 0) else { return };
    let (label, x) = (canvas.theme.label, cells.margin + cells.trend + 1);
    let (low, high) = (number::bound(low, high - low), number::bound(high, high - low));
    let both = format!("{low}‥{high}");
    if area.height > 1 {
        canvas.put(area, x, 0, &format!("┐{high}"), label);
        canvas.put(area, x, area.height - 1, &format!("┘{low}"), label);
    } else if width(&both) < cells.ends {
        canvas.put(area, x, 0, &both, label);
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
