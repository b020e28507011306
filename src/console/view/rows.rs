//! One client over time: how far it is from alarm, and what it said.
//!
//! ```text
//!  stack:  ▸▲ P1 boiler    S/b 3.21            ▃█████    name, verdict and since when at the left,
//!             ROOT #7           ▂▂▂▃▂▂▂▂▂▂▂▃▂▂▅██████    quantities below each other
//!             UNACK        r_c 2.3τ ▂▂▂▃▂▂▂▂▂▃▂▇██████
//!             10:38:00     r_a 0.5τ ▂▂▂▃▂▂▂▂▂▃▂▂▂▂▂▃▂▂
//!                          Z        ············cccccc
//!  lanes:  ▲ P1    3.21 ▂▂▂▅████  2.3 ▂▂▂▇████  0.5 ▂▂▂▂▂▂▂▂  ····cccc  ROOT #7
//! ```
//!
//! What is drawn against a limit has it at a fixed height: see [`Level`].

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{cut, fitting, put, put_right, take};
use super::scene::{Axis, Scene};
use super::verdict::{Verdict, seen};
use super::{axis, pen, words};
use crate::console::mouse::{Hit, Target};
use crate::console::theme::State;
use crate::console::truth::Role;
use crate::console::watched::{Trace, Watched};
use crate::console::widget::flags::FlagGrid;
use crate::console::widget::level::{Level, ratio};
use crate::session::Mode;

/// A row or two of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// A trace against its limit.
    Level(Trace),
    /// (Z_c, Z_a).
    Flags,
}

impl Quantity {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Level(Trace::Evidence) => "S/b",
            Self::Level(Trace::DistanceC) => "r_c",
            Self::Level(Trace::DistanceA) => "r_a",
            Self::Level(_) => "",
            Self::Flags => "Z",
        }
    }

    /// What the method that decides looks at first.
    pub(crate) fn order(mode: Mode) -> [Self; 4] {
        let [s, c, a] = [Trace::Evidence, Trace::DistanceC, Trace::DistanceA].map(Self::Level);
        match mode {
            Mode::Evidence => [s, c, a, Self::Flags],
            Mode::Paper => [c, a, Self::Flags, s],
        }
    }
}

/// The value of a trace at the moment, in its limit: `2.31`, with τ behind it where that is meant.
fn value(scene: &Scene, client: usize, trace: Trace) -> Option<(String, bool)> {
    let value = scene.watched?.value_at(client, trace, scene.moment)?;
    let times = ratio(value, scene.limit(client, trace));
    let unit = if trace == Trace::Evidence { "" } else { "τ" };
    let text = match times {
        0.0..9.995 => format!("{times:.2}{unit}"),
        ..99.95 => format!("{times:.1}{unit}"),
        ..9999.0 => format!("{times:.0}{unit}"),
        _ => format!(">9999{unit}"),
    };
    Some((text, times > 1.0))
}

/// Draws one quantity of a client on `axis` into `area`, which has the axis' columns.
pub(crate) fn quantity(
    scene: &Scene,
    axis: &Axis,
    client: usize,
    quantity: Quantity,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = scene.theme;
    match quantity {
        Quantity::Level(trace) => {
            let columns = axis.trace(scene, client, trace);
            let (limit, over) = (scene.limit(client, trace), scene.over(trace));
            Level { columns: &columns, limit, over, theme }.draw(area, buffer);
        }
        Quantity::Flags => {
            let columns = axis.flags(scene, client);
            let said = scene.over(Trace::DistanceC);
            FlagGrid { columns: &columns, said, theme }.draw(area, buffer);
        }
    }
    cursor(scene, axis, area, buffer);
}

/// Marks the column of the moment looked back at.
pub(crate) fn cursor(scene: &Scene, axis: &Axis, area: Rect, buffer: &mut Buffer) {
    if let Some(at) = axis.cursor {
        let column = Rect { x: area.x.saturating_add(at), width: 1, ..area };
        buffer.set_style(column.intersection(area), scene.theme.cursor);
    }
}

/// Clients with their quantities below each other.
pub(crate) struct Stack {
    /// The axis of all.
    pub(crate) axis: Axis,
    /// Cells of the name and of what stands below it.
    name: u16,
    heights: Vec<(Quantity, u16)>,
}

/// Cells of a quantity's name and value.
const READING: u16 = 11;

impl Stack {
    /// Clients of `height` rows on a screen of `width` cells.
    pub(crate) fn new(scene: &Scene, width: u16, height: u16) -> Self {
        let name = if width >= 100 { 16 } else { 13 };
        let margin = 3 + name + READING;
        let axis = scene.axis(margin, width.saturating_sub(margin + 1));
        let mut heights: Vec<(Quantity, u16)> =
            Quantity::order(scene.mode()).into_iter().map(|quantity| (quantity, 1)).collect();
        let flags_last = |(quantity, _): &&mut (Quantity, u16)| *quantity == Quantity::Flags;
        let mut spare = height.saturating_sub(heights.len() as u16);
        for (_, rows) in heights.iter_mut().filter(|entry| !flags_last(entry)) {
            let more = spare.min(1);
            *rows += more;
            spare -= more;
        }
        for (_, rows) in heights.iter_mut().filter(flags_last) {
            *rows += spare.min(1);
        }
        Self { axis, name, heights }
    }

    /// Draws `client` into `area`.
    pub(crate) fn draw(
        &self,
        scene: &Scene,
        client: usize,
        area: Rect,
        buffer: &mut Buffer,
        hits: &mut Vec<Hit>,
    ) {
        hits.push(Hit { area, target: Target::Client(client) });
        self.words(scene, client, area, buffer);
        let mut rest = area;
        for (at, height) in &self.heights {
            let rows = take(&mut rest, *height);
            let trend = Rect {
                x: rows.x.saturating_add(self.axis.margin),
                width: self.axis.columns,
                ..rows
            }
            .intersection(rows);
            let (start, end) = self.axis.ends();
            hits.push(Hit { area: trend, target: Target::Trend { start, end } });
            self.reading(scene, client, *at, rows, buffer);
            quantity(scene, &self.axis, client, *at, trend, buffer);
        }
        if scene.model.truth_shown {
            truth(scene, &self.axis, client, pen::part(area, 0, 1), buffer);
        }
    }

    /// Name and value of a quantity, on the last of its rows.
    fn reading(&self, scene: &Scene, client: usize, at: Quantity, area: Rect, buffer: &mut Buffer) {
        let theme = scene.theme;
        let (x, y) = (3 + self.name, area.height.saturating_sub(1));
        if at == Quantity::Flags && area.height > 1 {
            put(buffer, area, x, 0, "Z_c", theme.label);
            put(buffer, area, x, y, "Z_a", theme.label);
            return;
        }
        put(buffer, area, x, y, at.name(), theme.label);
        let Quantity::Level(trace) = at else { return };
        match value(scene, client, trace) {
            Some((text, above)) => {
                let style = if above { scene.over(trace) } else { theme.text };
                put_right(buffer, area, x + READING - 1, y, &text, style);
            }
            None => put_right(buffer, area, x + READING - 1, y, "?", theme.missing),
        }
    }

    /// Name, verdict and since when.
    fn words(&self, scene: &Scene, client: usize, area: Rect, buffer: &mut Buffer) {
        let (theme, model) = (scene.theme, scene.model);
        let area = Rect { width: (3 + self.name).saturating_sub(1).min(area.width), ..area };
        let Some(known) = scene.measured.clients.get(client) else { return };
        let verdict = Verdict::of(scene, client);
        let mark = theme.mark(verdict.state);
        let chosen = client == model.chosen;
        put(buffer, area, 0, 0, if chosen { "▸" } else { " " }, theme.strong);
        put(buffer, area, 1, 0, mark.glyph, mark.style);
        let style = if chosen { theme.cursor } else { theme.strong };
        let x = put(buffer, area, 3, 0, &cut(&known.name, self.name - 1), style);
        let room = area.width.saturating_sub(x + 1);
        put(buffer, area, x + 1, 0, &cut(&known.title, room), theme.label);
        for (y, (text, style)) in
            (1..area.height).zip(beside(scene, client, verdict, self.name - 1))
        {
            put(buffer, area, 3, y, &cut(&text, self.name - 1), style);
        }
    }
}

/// What is said below the name in `room` cells, the most important first.
fn beside(scene: &Scene, client: usize, verdict: Verdict, room: u16) -> Vec<(String, Style)> {
    let theme = scene.theme;
    let mark = theme.mark(verdict.state);
    let mut lines = Vec::new();
    let incident =
        verdict.incident.and_then(|number| scene.watched.and_then(|w| w.incident(number)));
    match incident {
        None => lines.push((mark.word.to_owned(), mark.style)),
        Some(incident) => {
            lines.push((format!("{} #{}", mark.word, incident.number), mark.style));
            if verdict.state != State::Effect && incident.alarm.state.wants_acknowledgement() {
                lines.push((seen(incident, scene.newest), mark.style));
            }
            if let Some(since) = verdict.since {
                let time = scene.model.clock.time(since);
                let said = [format!("since {time}"), time];
                lines.extend(fitting(said, room).map(|text| (text, theme.label)));
            }
        }
    }
    // What stands here is the server's word: it knows a sensor's name only where its client told it.
    if let Some(incident) = incident.filter(|incident| incident.root == Some(client)) {
        let names = words::named_sensors(scene, incident);
        lines.extend(names.into_iter().take(2).map(|name| (format!("at {name}"), theme.label)));
    }
    lines
}

/// Marks the columns in which the data set knows of a disturbance that concerns the client.
pub(crate) fn truth(scene: &Scene, axis: &Axis, client: usize, area: Rect, buffer: &mut Buffer) {
    let name = scene.name(client);
    for column in 0..axis.columns {
        let at = i64::from(column);
        let role = scene
            .measured
            .truth
            .between(axis.window.start(at), axis.window.start(at + 1))
            .filter_map(|disturbance| disturbance.role(name))
            .max();
        let glyph = match role {
            Some(Role::Origin) => "▲",
            Some(Role::Affected) => "↳",
            Some(Role::Somewhere) => "◆",
            None => continue,
        };
        put(buffer, area, axis.margin + column, 0, glyph, scene.theme.truth);
    }
}

/// Clients with their quantities beside each other.
pub(crate) struct Lanes {
    name: u16,
    /// Quantities, and the axis of each.
    beside: Vec<(Quantity, Axis)>,
    verdict: u16,
}

/// Cells of a value in a lane.
const VALUE: u16 = 6;

impl Lanes {
    /// Lanes on a screen of `width` cells: flags always, more where there is room.
    pub(crate) fn new(scene: &Scene, width: u16) -> Self {
        let order = Quantity::order(scene.mode());
        let wanted: Vec<Quantity> = match width {
            110.. => order.to_vec(),
            72.. => vec![order[0], Quantity::Flags],
            _ => vec![Quantity::Flags],
        };
        let name = scene.name_cells(if width >= 72 { 10 } else { 7 });
        let verdict = match width {
            110.. => 14,
            48.. => 10,
            _ => 0,
        };
        let readings: u16 = wanted.iter().map(|lane| reading(*lane, &wanted)).sum();
        let gaps = wanted.len() as u16;
        let free = width.saturating_sub(3 + name + 1 + readings + gaps + verdict);
        let columns = free / wanted.len() as u16;
        let mut x = 3 + name + 1;
        let beside = wanted
            .iter()
            .map(|lane| {
                let margin = x + reading(*lane, &wanted);
                x = margin + columns + 1;
                (*lane, scene.axis(margin, columns))
            })
            .collect();
        Self { name, beside, verdict }
    }

    /// Names of the lanes and the length of a column.
    pub(crate) fn header(&self, scene: &Scene, area: Rect, buffer: &mut Buffer) {
        let label = scene.theme.label;
        let client = fitting(["client".to_owned()], self.name);
        put(buffer, area, 3, 0, &client.unwrap_or_default(), label);
        let mut end = area.width;
        let judged = scene.watched.and_then(Watched::judged_until).is_some();
        for (at, (lane, axis)) in self.beside.iter().enumerate() {
            let column = crate::console::clock::round_length(axis.window.column_s());
            let (long, short) = match lane {
                Quantity::Level(Trace::Evidence) => ("evidence, alarm from 1", "evidence"),
                Quantity::Level(Trace::DistanceC) => ("r_c, own model", "r_c"),
                Quantity::Level(Trace::DistanceA) => ("r_a, with the others", "r_a"),
                Quantity::Level(_) => ("", ""),
                Quantity::Flags if judged => ("Z re-judged", "Z"),
                Quantity::Flags => ("Z flags", "Z"),
            };
            let length = if at == 0 { format!(", {column}/col") } else { String::new() };
            let texts = [format!("{long}{length}"), format!("{short}{length}"), short.to_owned()];
            if reading(*lane, &self.quantities()) > 0 {
                let unit = match read(scene, *lane) {
                    Some(Trace::Evidence) => "S/b",
                    _ => "/τ",
                };
                put_right(buffer, area, axis.margin.saturating_sub(1), 0, unit, label);
            }
            let text = fitting(texts, axis.columns).unwrap_or_default();
            put(buffer, area, axis.margin, 0, &text, label);
            end = axis.margin + axis.columns + 1;
        }
        if self.verdict > 0 {
            put(buffer, area, end, 0, "verdict", label);
        }
    }

    fn quantities(&self) -> Vec<Quantity> {
        self.beside.iter().map(|(lane, _)| *lane).collect()
    }

    /// Times below each lane.
    pub(crate) fn labels(&self, scene: &Scene, area: Rect, buffer: &mut Buffer) {
        for (_, lane) in &self.beside {
            axis::labels(scene, lane, area, buffer);
        }
    }

    /// Draws `client` into `area`.
    pub(crate) fn draw(
        &self,
        scene: &Scene,
        client: usize,
        area: Rect,
        buffer: &mut Buffer,
        hits: &mut Vec<Hit>,
    ) {
        let theme = scene.theme;
        hits.push(Hit { area, target: Target::Client(client) });
        let Some(known) = scene.measured.clients.get(client) else { return };
        let verdict = Verdict::of(scene, client);
        let mark = theme.mark(verdict.state);
        let chosen = client == scene.model.chosen;
        put(buffer, area, 0, 0, if chosen { "▸" } else { " " }, theme.strong);
        put(buffer, area, 1, 0, mark.glyph, mark.style);
        let style = if chosen { theme.cursor } else { theme.text };
        put(buffer, area, 3, 0, &cut(&known.name, self.name), style);
        let mut end = 0;
        for (lane, axis) in &self.beside {
            let trend = Rect { x: area.x.saturating_add(axis.margin), width: axis.columns, ..area }
                .intersection(area);
            self.reading(scene, client, *lane, axis, area, buffer);
            quantity(scene, axis, client, *lane, trend, buffer);
            let (start, stop) = axis.ends();
            hits.push(Hit { area: trend, target: Target::Trend { start, end: stop } });
            if scene.model.truth_shown && *lane == Quantity::Flags {
                truth(
                    scene,
                    axis,
                    client,
                    pen::part(area, area.height.saturating_sub(1), 1),
                    buffer,
                );
            }
            end = axis.margin + axis.columns + 1;
        }
        if self.verdict > 0 {
            let number = verdict.incident.map_or(String::new(), |number| format!(" #{number}"));
            let unseen = unseen(scene, verdict);
            let one_row = area.height < 2;
            let more = if one_row && unseen { " UNACK" } else { "" };
            let room = area.width.saturating_sub(end);
            let said = format!("{}{number}", mark.word);
            let words = [format!("{said}{more}"), said, mark.word.to_owned()];
            let text = fitting(words, room).unwrap_or_else(|| cut(mark.word, room));
            put(buffer, area, end, 0, &text, mark.style);
            if !one_row && unseen {
                put(buffer, area, end, 1, "UNACK", mark.style);
            }
        }
    }

    fn reading(
        &self,
        scene: &Scene,
        client: usize,
        lane: Quantity,
        axis: &Axis,
        area: Rect,
        buffer: &mut Buffer,
    ) {
        let wanted = self.quantities();
        if reading(lane, &wanted) == 0 {
            return;
        }
        let Some(trace) = read(scene, lane) else { return };
        let theme = scene.theme;
        let end = axis.margin.saturating_sub(1);
        match value(scene, client, trace) {
            Some((text, above)) => {
                let style = if above { scene.over(trace) } else { theme.text };
                put_right(buffer, area, end, 0, text.trim_end_matches('τ'), style);
            }
            None => put_right(buffer, area, end, 0, "?", theme.missing),
        }
    }
}

fn unseen(scene: &Scene, verdict: Verdict) -> bool {
    let incident =
        verdict.incident.and_then(|number| scene.watched.and_then(|w| w.incident(number)));
    verdict.state != State::Effect
        && incident.is_some_and(|incident| incident.alarm.state.wants_acknowledgement())
}

/// The trace whose value stands before a lane: alone, flags stand beside the number that decides.
fn read(scene: &Scene, lane: Quantity) -> Option<Trace> {
    [lane, Quantity::order(scene.mode())[0]].into_iter().find_map(|lane| match lane {
        Quantity::Level(trace) => Some(trace),
        Quantity::Flags => None,
    })
}

/// Cells of the value before a lane.
fn reading(lane: Quantity, lanes: &[Quantity]) -> u16 {
    match lane {
        Quantity::Level(_) => VALUE,
        Quantity::Flags if lanes.len() == 1 => VALUE,
        Quantity::Flags => 0,
    }
}
