//! One client: a rule with its name, and below it a row for each sensor.
//!
//! ```text
//! ▸ P1 boiler  12 sensors  ? 1 missing  ↕ 2 beyond scale ──────────▲▲▲▲▲▲───────────────
//!   FT01      61.48 mmH2O  ▃▃▄▄▅▃▂▂▂▃▄▄▅▃▂▂▂▃▄▄▅▃▂▂▂▃▄▄▅▃▂▂▂▃▄▄▅▃▂▂??▂▃▄▄▅▃▂▂   40‥80
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{cut, put, put_right, width};
use super::scene::{Scene, VALUE};
use crate::console::app::Screen;
use crate::console::measured::Client;
use crate::console::mouse::{Hit, Target};
use crate::console::number;
use crate::console::scale::Place;
use crate::console::trend::Trend;
use crate::console::truth::Role;

/// Which sensors of a client are drawn, and how high.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The first one.
    pub skip: usize,
    /// How many.
    pub sensors: usize,
    /// Rows of each.
    pub height: u16,
}

/// Draws client number `at` into `area`.
pub fn draw(
    scene: &Scene,
    at: usize,
    shown: Shown,
    area: Rect,
    buffer: &mut Buffer,
    hits: &mut Vec<Hit>,
) {
    let Some(client) = scene.measured.clients.get(at) else { return };
    if scene.model.screen == Screen::Overview {
        hits.push(Hit { area, target: Target::Client(at) });
    }
    hits.push(trends(scene, area));
    rule(scene, at, client, shown, area, buffer);
    let sensors = client.channels.clone().skip(shown.skip).take(shown.sensors);
    for (row, channel) in sensors.enumerate() {
        let top = 1 + row as u16 * shown.height;
        let area =
            area.intersection(Rect { y: area.y.saturating_add(top), height: shown.height, ..area });
        sensor(scene, client, channel, area, buffer);
    }
}

/// The client's name and how it stands, in one line: what is left of a panel without room.
pub fn line(scene: &Scene, at: usize, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let Some(client) = scene.measured.clients.get(at) else { return };
    hits.push(Hit { area, target: Target::Client(at) });
    let shown = Shown { skip: 0, sensors: client.sensors.len(), height: 0 };
    rule(scene, at, client, shown, area, buffer);
}

/// The part of a panel below its rule where time runs from left to right.
fn trends(scene: &Scene, area: Rect) -> Hit {
    let trends = Rect {
        x: area.x.saturating_add(scene.cells.margin),
        y: area.y.saturating_add(1),
        width: scene.columns(),
        ..area
    };
    let (start, end) = (scene.window.start(0), scene.window.start(i64::from(scene.columns())));
    Hit { area: trends.intersection(area), target: Target::Trend { start, end } }
}

fn rule(scene: &Scene, at: usize, client: &Client, shown: Shown, area: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    for x in 0..area.width {
        put(buffer, area, x, 0, "─", theme.frame);
    }
    if scene.model.truth_shown {
        truth_marks(scene, client, area, buffer);
    }
    let chosen = at == scene.model.chosen;
    let mut x = put(buffer, area, 0, 0, if chosen { "▸ " } else { "  " }, theme.strong);
    let name_style = if chosen { theme.cursor } else { theme.strong };
    x = put(buffer, area, x, 0, &client.name, name_style);
    let mut say = |text: String, style: Style| {
        x = put(buffer, area, x, 0, &text, style);
    };
    if !client.title.is_empty() {
        say(format!(" {}", client.title), theme.text);
    }
    let tally = scene.measured.tally(client, scene.moment);
    // Over the truth there is room for glyphs only: its marks stand on the axis of time.
    let brief = scene.model.truth_shown;
    let all = client.sensors.len();
    let hidden = all.saturating_sub(shown.sensors);
    if !brief && hidden > 0 {
        let (from, to) = (shown.skip + 1, (shown.skip + shown.sensors).min(all));
        let how = match scene.model.screen {
            Screen::Client => "pgdn and pgup scroll",
            _ => "enter shows all",
        };
        say(format!("  {from} to {to} of {all} sensors, {how}"), theme.label);
    } else if !brief {
        say(format!("  {all} sensors"), theme.label);
    }
    if tally.missing > 0 {
        let word = if brief { "" } else { " missing" };
        say(format!("  ? {}{word}", tally.missing), theme.missing);
    }
    if tally.beyond > 0 {
        let word = if brief { "" } else { " beyond scale" };
        say(format!("  ↕ {}{word}", tally.beyond), theme.beyond);
    }
    say(" ".into(), theme.frame);
}

/// Marks the columns in which the data set knows of a disturbance that concerns the client.
fn truth_marks(scene: &Scene, client: &Client, area: Rect, buffer: &mut Buffer) {
    for column in 0..scene.columns() {
        let at = i64::from(column);
        let role = scene
            .measured
            .truth
            .between(scene.window.start(at), scene.window.start(at + 1))
            .filter_map(|disturbance| disturbance.role(&client.name))
            .max();
        let glyph = match role {
            Some(Role::Origin) => "▲",
            Some(Role::Affected) => "↳",
            Some(Role::Somewhere) => "◆",
            None => continue,
        };
        put(buffer, area, scene.cells.margin + column, 0, glyph, scene.theme.truth);
    }
}

fn sensor(scene: &Scene, client: &Client, channel: usize, area: Rect, buffer: &mut Buffer) {
    let (theme, cells) = (scene.theme, scene.cells);
    let (Some(sensor), Some(scale)) = (
        client.sensors.get(channel.saturating_sub(client.channels.start)),
        scene.measured.scales.get(channel),
    ) else {
        return;
    };
    put(buffer, area, 2, 0, &cut(&sensor.name, cells.name), theme.text);

    let start = 2 + cells.name + 1;
    if let Some(value) = scene.measured.history.value_at(channel, scene.moment) {
        let value = f64::from(value);
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
    Trend { halves: &scene.buckets(channel), scale, theme }.draw(trend, buffer);
    if let Some(cursor) = scene.cursor() {
        let column = Rect { x: trend.x.saturating_add(cursor), width: 1, ..trend };
        buffer.set_style(column.intersection(trend), theme.cursor);
    }
    if cells.ends > 0
        && let Some((low, high)) = scale.ends()
    {
        ends(scene, low, high, area, buffer);
    }
}

/// The ends of the scale: side by side in one row, or where they belong.
fn ends(scene: &Scene, low: f64, high: f64, area: Rect, buffer: &mut Buffer) {
    let x = scene.cells.margin + scene.cells.trend + 1;
    let (low, high) = (number::bound(low, high - low), number::bound(high, high - low));
    if area.height == 1 {
        let both = format!("{low}‥{high}");
        if width(&both) < scene.cells.ends {
            put(buffer, area, x, 0, &both, scene.theme.label);
        }
    } else {
        put(buffer, area, x, 0, &format!("┐{high}"), scene.theme.label);
        put(buffer, area, x, area.height.saturating_sub(1), &format!("┘{low}"), scene.theme.label);
    }
}
