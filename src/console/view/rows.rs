//! One client over time: how far it is from alarm, and its flags.
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

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::pen::{Canvas, columns, cut, fitting, part, take, width};
use super::scene::{Axis, Scene};
use super::status::{NOT_ACKNOWLEDGED, Status, seen};
use super::{axis, words};
use crate::console::clock::round_length;
use crate::console::glyph::{BLOCKS, NONE};
use crate::console::measured::Client;
use crate::console::mouse::Target;
use crate::console::text::clean;
use crate::console::theme::State;
use crate::console::truth::{Involvement, involvement};
use crate::console::watched::{Trace, Watched};
use crate::console::widget::flags::FlagGrid;
use crate::console::widget::level::{Level, ratio};
use crate::session::Mode;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Level(Trace),
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

    /// What it is and what it is measured by.
    pub(crate) fn long_name(self) -> &'static str {
        match self {
            Self::Level(Trace::Evidence) => "evidence, alarm from 1",
            Self::Level(Trace::DistanceC) => "r_c, own model",
            Self::Level(Trace::DistanceA) => "r_a, with the others",
            Self::Level(_) => "",
            Self::Flags => "▀ Z_c  ▄ Z_a  █ both",
        }
    }

    /// What it is, in words; flags have a legend of their own.
    fn words(self) -> &'static str {
        match self {
            Self::Level(Trace::Evidence) => "evidence",
            Self::Level(Trace::DistanceC) => "own model",
            Self::Level(Trace::DistanceA) => "with others",
            Self::Level(_) | Self::Flags => "",
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

/// Writes a trace at the moment in limits, ending before column `end`: `2.31`, with `unit` behind it.
fn value(
    scene: &Scene,
    (client, trace): (usize, Trace),
    unit: &str,
    area: Rect,
    (end, y): (u16, u16),
    canvas: &mut Canvas,
) {
    let Some(value) = scene.watched.and_then(|w| w.value_at(client, trace, scene.moment)) else {
        return canvas.right(area, end, y, "?", scene.theme.missing);
    };
    let times = ratio(value, scene.limit(client, trace));
    let text = match times {
        0.0..9.995 => format!("{times:.2}{unit}"),
        ..99.95 => format!("{times:.1}{unit}"),
        ..9999.0 => format!("{times:.0}{unit}"),
        _ => format!(">9999{unit}"),
    };
    let style = if times > 1.0 { over(scene, client, trace) } else { scene.theme.text };
    canvas.right(area, end, y, &text, style);
}

/// The style of what passes its limit: in colour only where the method that decides looks at it, and
/// only while the client is the root of an incident that is not acknowledged.
pub(crate) fn over(scene: &Scene, client: usize, trace: Trace) -> Style {
    let unseen = matches!(
        Status::of(scene, client).state,
        State::RootUnseen | State::UnknownUnseen | State::SingleUnseen
    );
    let style = scene.over(trace);
    if unseen || style == scene.theme.text { style } else { scene.theme.strong }
}

/// Draws one quantity of a client on `axis` into `area`, which has the axis' columns.
pub(crate) fn quantity(
    scene: &Scene,
    axis: &Axis,
    client: usize,
    quantity: Quantity,
    area: Rect,
    canvas: &mut Canvas,
) {
    let theme = scene.theme;
    match quantity {
        Quantity::Level(trace) => {
            let columns = axis.trace(scene, client, trace);
            let (limit, over) = (Some(scene.limit(client, trace)), over(scene, client, trace));
            Level { columns: &columns, limit, over, theme }.draw(area, canvas.buffer);
        }
        Quantity::Flags => {
            let columns = axis.flags(scene, client);
            let raised = over(scene, client, Trace::DistanceC);
            FlagGrid { columns: &columns, raised, theme }.draw(area, canvas.buffer);
        }
    }
    cursor(scene, axis, area, canvas);
}

pub(crate) fn cursor(scene: &Scene, axis: &Axis, area: Rect, canvas: &mut Canvas) {
    if let Some(at) = axis.cursor {
        canvas.buffer.set_style(columns(area, at, 1), scene.theme.cursor);
    }
}

/// Writes whether a client is chosen, the sign of its verdict and its name; returns the column after.
pub(crate) fn client_name(
    scene: &Scene,
    client: usize,
    cells: u16,
    style: Style,
    area: Rect,
    canvas: &mut Canvas,
) -> u16 {
    let theme = scene.theme;
    let mark = theme.mark(Status::of(scene, client).state);
    let chosen = client == scene.model.chosen;
    canvas.put(area, 0, 0, if chosen { "▸" } else { " " }, theme.strong);
    canvas.put(area, 1, 0, mark.glyph, mark.style);
    let style = if chosen { theme.cursor } else { style };
    canvas.put(area, 3, 0, &cut(scene.name(client), cells), style)
}

/// Clients with their quantities below each other.
pub(crate) struct Stack {
    pub axis: Axis,
    /// Cells of the name and of what stands below it.
    name: u16,
    heights: Vec<(Quantity, u16)>,
}

/// "with others" and a space.
const READING: u16 = 12;

impl Stack {
    /// Clients of `height` rows on a screen of `width` cells.
    pub(crate) fn new(scene: &Scene, width: u16, height: u16) -> Self {
        let name = if width >= 100 { 18 } else { 13 };
        let margin = 3 + name + READING;
        let axis = scene.axis(margin, width.saturating_sub(margin + 1));
        let mut heights = Quantity::order(scene.mode()).map(|quantity| (quantity, 1)).to_vec();
        let mut spare = height.saturating_sub(heights.len() as u16);
        // A second row for what has a limit; one more is left blank between two clients.
        for (quantity, rows) in &mut heights {
            if *quantity != Quantity::Flags && spare > 0 {
                *rows += 1;
                spare -= 1;
            }
        }
        // Two more on a large screen: the limit stays at half the height.
        for (quantity, rows) in &mut heights {
            if *quantity != Quantity::Flags && spare > 2 {
                *rows += 2;
                spare -= 2;
            }
        }
        Self { axis, name, heights }
    }

    pub(crate) fn draw(&self, scene: &Scene, client: usize, area: Rect, canvas: &mut Canvas) {
        canvas.hit(area, Target::Client(client));
        self.words(scene, client, area, canvas);
        let mut rest = area;
        for (at, height) in &self.heights {
            let rows = take(&mut rest, *height);
            self.axis.hit(rows, canvas);
            self.reading(scene, client, *at, rows, canvas);
            quantity(scene, &self.axis, client, *at, self.axis.trend(rows), canvas);
        }
        ghosts(scene, &self.axis, client, part(area, 0, 1), canvas);
        tint(scene, &self.axis, client, area, canvas);
        if scene.model.truth_shown {
            // Above what has a row to itself, else among the flags.
            let (used, high) = self
                .heights
                .iter()
                .fold((0, false), |(used, high), (_, rows)| (used + rows, high || *rows > 1));
            let (row, spare) = if high { (0, ABOVE_BARS) } else { (used - 1, AMONG_FLAGS) };
            truth(scene, &self.axis, client, part(area, row, 1), spare, canvas);
        }
    }

    fn reading(&self, scene: &Scene, client: usize, at: Quantity, area: Rect, canvas: &mut Canvas) {
        let label = scene.theme.label;
        let (x, y) = (3 + self.name, area.height.saturating_sub(1));
        let name = match at {
            Quantity::Flags if scene.theme.terminal.ascii => "Z_c c Z_a a",
            Quantity::Flags => "Z_c▀  Z_a▄",
            Quantity::Level(_) => at.name(),
        };
        canvas.put(area, x, y, name, label);
        if y > 0 {
            canvas.put(area, x, y - 1, at.words(), label);
        }
        if let Quantity::Level(trace) = at {
            let unit = if trace == Trace::Evidence { "" } else { "τ" };
            value(scene, (client, trace), unit, area, (x + READING - 1, y), canvas);
        }
    }

    fn words(&self, scene: &Scene, client: usize, area: Rect, canvas: &mut Canvas) {
        let theme = scene.theme;
        let area = columns(area, 0, (3 + self.name).saturating_sub(1));
        let Some(Client { title, .. }) = scene.measured.clients.get(client) else { return };
        let room = self.name - 1;
        let x = client_name(scene, client, room, theme.strong, area, canvas);
        canvas.cut(area, x + 1, 0, title, theme.label);
        for (y, (text, style)) in (1..area.height).zip(beside(scene, client, room)) {
            canvas.put(area, 3, y, &cut(&text, room), style);
        }
    }
}

/// What stands below the name in `room` cells, the most important first.
fn beside(scene: &Scene, client: usize, room: u16) -> Vec<(String, Style)> {
    let theme = scene.theme;
    let status = Status::of(scene, client);
    let mark = theme.mark(status.state);
    let Some(incident) = status.incident.and_then(|number| scene.incident(number)) else {
        let later = status.later().map(|later| (later, theme.label));
        return std::iter::once((mark.word.to_owned(), mark.style)).chain(later).collect();
    };
    let mut lines = vec![(format!("{} #{}", mark.word, incident.number), mark.style)];
    if unseen(scene, status) {
        let texts = [seen(incident, scene.moment), NOT_ACKNOWLEDGED[1].to_owned()];
        lines.extend(fitting(texts, room).map(|text| (text, mark.style)));
    }
    if let Some(since) = status.since {
        let time = scene.model.clock.time(since);
        let texts = [format!("since {time}"), time];
        lines.extend(fitting(texts, room).map(|text| (text, theme.label)));
    }
    // The server knows a sensor's name only where its client sent it.
    if incident.root == Some(client) {
        let names = words::named_sensors(scene, incident);
        lines.extend(names.into_iter().take(2).map(|name| (format!("at {name}"), theme.label)));
    }
    lines
}

/// Marks where a setting on trial would have raised an alarm about the client.
fn ghosts(scene: &Scene, axis: &Axis, client: usize, area: Rect, canvas: &mut Canvas) {
    let Some(tuning) = scene.model.tuning.as_ref() else { return };
    let name = scene.name(client);
    for (opened, root) in tuning.new_alarms() {
        let of_client = root.is_some_and(|root| clean(root) == name);
        if let Some(column) = axis.window.column_of(opened).filter(|_| of_client) {
            canvas.put(area, axis.margin + column, 0, "▵", scene.theme.ghost);
        }
    }
}

/// Tints the lane of an open root from its onset on.
fn tint(scene: &Scene, axis: &Axis, client: usize, area: Rect, canvas: &mut Canvas) {
    let status = Status::of(scene, client);
    let is_root = matches!(
        status.state,
        State::Root | State::RootUnseen | State::Single | State::SingleUnseen
    );
    let open = status
        .incident
        .and_then(|n| scene.incident(n))
        .is_some_and(crate::incident::group::Incident::is_open);
    let Some(since) = status.since.filter(|_| is_root && open) else { return };
    let first = axis.window.column_of(since).unwrap_or(0);
    let lane = axis.trend(area);
    for column in lane.columns().skip(usize::from(first)) {
        for y in column.rows().map(|row| row.y) {
            let cell = &mut canvas.buffer[(column.x, y)];
            if !cell.modifier.contains(Modifier::REVERSED) {
                cell.set_style(scene.theme.tint);
            }
        }
    }
}

/// Cells that say nothing, in the upper row of a trend: blank, or the line at the limit.
pub(crate) const ABOVE_BARS: &[&str] = &[" ", BLOCKS[0]];
/// The same among flags.
const AMONG_FLAGS: &[&str] = &[" ", NONE];

/// Marks the columns in which the data set knows of a disturbance that concerns the client, in the
/// first row of `area` and only in place of `spare` cells: what was measured is not painted over.
pub(crate) fn truth(
    scene: &Scene,
    axis: &Axis,
    client: usize,
    area: Rect,
    spare: &[&str],
    canvas: &mut Canvas,
) {
    let name = scene.name(client);
    for column in 0..axis.columns {
        let at = i64::from(column);
        let within = scene.measured.truth.between(axis.window.start(at), axis.window.start(at + 1));
        let glyph = match within.filter_map(|event| involvement(event, name)).max() {
            Some(Involvement::Origin) => "▲",
            Some(Involvement::Affected) => "↳",
            Some(Involvement::Somewhere) => "◆",
            None => continue,
        };
        let (x, y) = (area.x + axis.margin + column, area.y);
        if canvas.buffer.cell((x, y)).is_some_and(|cell| spare.contains(&cell.symbol())) {
            canvas.put(area, axis.margin + column, 0, glyph, scene.theme.truth);
        }
    }
}

/// Clients with their quantities beside each other.
pub(crate) struct Lanes {
    name: u16,
    beside: Vec<Lane>,
    verdict: u16,
}
struct Lane {
    quantity: Quantity,
    axis: Axis,
    /// The trace whose value stands before it. Flags that stand alone have the one that decides.
    value: Option<Trace>,
}

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
        let value = |quantity: Quantity| match (quantity, order[0]) {
            (Quantity::Level(trace), _) => Some(trace),
            (Quantity::Flags, Quantity::Level(trace)) if wanted.len() == 1 => Some(trace),
            (Quantity::Flags, _) => None,
        };
        let cells = |quantity: Quantity| if value(quantity).is_some() { VALUE } else { 0 };
        let values: u16 = wanted.iter().map(|quantity| cells(*quantity)).sum();
        let gaps = wanted.len() as u16;
        let free = width.saturating_sub(3 + name + 1 + values + gaps + verdict);
        let columns = free / gaps;
        let mut x = 3 + name + 1;
        let lanes = wanted.iter().map(|quantity| {
            let margin = x + cells(*quantity);
            x = margin + columns + 1;
            let axis = scene.axis(margin, columns);
            Lane { quantity: *quantity, axis, value: value(*quantity) }
        });
        Self { name, beside: lanes.collect(), verdict }
    }

    fn end(&self) -> u16 {
        self.beside.last().map_or(0, |Lane { axis, .. }| axis.margin + axis.columns + 1)
    }

    pub(crate) fn header(&self, scene: &Scene, area: Rect, canvas: &mut Canvas) {
        let label = scene.theme.label;
        let client = fitting(["client".to_owned()], self.name);
        canvas.put(area, 3, 0, &client.unwrap_or_default(), label);
        let judged = scene.watched.and_then(Watched::judged_until).is_some();
        for (at, Lane { quantity, axis, value }) in self.beside.iter().enumerate() {
            let column = round_length(axis.window.column_s());
            let (long, short) = match quantity {
                Quantity::Level(Trace::Evidence) => (quantity.long_name(), "evidence"),
                Quantity::Level(_) => (quantity.long_name(), quantity.name()),
                Quantity::Flags if judged => ("Z re-judged", "Z"),
                Quantity::Flags => (quantity.long_name(), "Z"),
            };
            let length = if at == 0 { format!(", {column}/col") } else { String::new() };
            let texts = [format!("{long}{length}"), format!("{short}{length}"), short.to_owned()];
            if let Some(trace) = value {
                let unit = if *trace == Trace::Evidence { "S/b" } else { "/τ" };
                canvas.right(area, axis.margin.saturating_sub(1), 0, unit, label);
            }
            let text = fitting(texts, axis.columns).unwrap_or_default();
            canvas.put(area, axis.margin, 0, &text, label);
        }
        if self.verdict > 0 {
            canvas.put(area, self.end(), 0, "verdict", label);
        }
    }

    pub(crate) fn labels(&self, scene: &Scene, area: Rect, canvas: &mut Canvas) {
        for lane in &self.beside {
            axis::labels(scene, &lane.axis, &(0..0), area, canvas);
        }
    }

    pub(crate) fn draw(&self, scene: &Scene, client: usize, area: Rect, canvas: &mut Canvas) {
        canvas.hit(area, Target::Client(client));
        client_name(scene, client, self.name, scene.theme.text, area, canvas);
        for lane in &self.beside {
            let axis = &lane.axis;
            if let Some(trace) = lane.value {
                let end = axis.margin.saturating_sub(1);
                value(scene, (client, trace), "", area, (end, 0), canvas);
            }
            quantity(scene, axis, client, lane.quantity, axis.trend(area), canvas);
            if lane.quantity != Quantity::Flags {
                ghosts(scene, axis, client, part(area, 0, 1), canvas);
                tint(scene, axis, client, area, canvas);
            }
            axis.hit(area, canvas);
            if scene.model.truth_shown && lane.quantity == Quantity::Flags {
                let last = part(area, area.height.saturating_sub(1), 1);
                truth(scene, axis, client, last, AMONG_FLAGS, canvas);
            }
        }
        if self.verdict > 0 {
            self.verdict(scene, client, area, canvas);
        }
    }

    fn verdict(&self, scene: &Scene, client: usize, area: Rect, canvas: &mut Canvas) {
        let status = Status::of(scene, client);
        let mark = scene.theme.mark(status.state);
        let number = status.incident.map_or(String::new(), |number| format!(" #{number}"));
        let (unseen, one_row, end) = (unseen(scene, status), area.height < 2, self.end());
        let room = area.width.saturating_sub(end);
        let short = format!("{}{number}", mark.word);
        let long = if one_row && unseen {
            format!("{short} {}", NOT_ACKNOWLEDGED[1])
        } else {
            short.clone()
        };
        let text = fitting([long, short, mark.word.to_owned()], room)
            .unwrap_or_else(|| cut(mark.word, room).into_owned());
        let (text, style) = match status.later() {
            Some(later) if width(&later) <= room => (later, scene.theme.label),
            Some(_) | None => (text, mark.style),
        };
        canvas.put(area, end, 0, &text, style);
        if !one_row && unseen {
            canvas.put(area, end, 1, NOT_ACKNOWLEDGED[1], mark.style);
        }
    }
}

fn unseen(scene: &Scene, status: Status) -> bool {
    let incident = status.incident.and_then(|number| scene.incident(number));
    status.state != State::Effect
        && incident.is_some_and(|incident| incident.alarm.state.wants_acknowledgement())
}
