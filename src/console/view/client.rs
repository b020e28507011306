//! The chosen client alone: how far it is from alarm, what it sent, what it measures.
//!
//! ```text
//! ── ▲ P1 boiler  ROOT #7  not acknowledged  since 10:38:00 ──────
//!    evidence S/b       3.21 ▂▂▂▃▂▂▂▅████     evidence against 1
//!    own model r_c     2.31τ ▂▂▂▃▂▂▂▅████     distances against τ
//!    with others r_a   0.42τ ▂▂▂▃▂▂▂▂▂▂▂▂
//!    flags Z                 ·······ccccc     flags by the thresholds that stand
//!    symbols sent            ·······11233     grades as they were sent
//! ── 12 sensors  those that deviate most are numbered ───────────
//!  1 PIT01  ↑61.48 bar       ⡠⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤
//!    FT01    12.03 mmH2O     ⡠⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤
//!    30 s a column           10:15     10:20
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::pen::{self, Canvas, span};
use super::rows::{ABOVE_BARS, Quantity, over, quantity, truth};
use super::scene::{Axis, Scene};
use super::sensors::{Cells, Shown};
use super::status::{Status, seen};
use super::{axis, sensors, words};
use crate::console::app::Focus;
use crate::console::measured::Client;
use crate::console::mouse::Target;
use crate::console::text::clean;
use crate::console::watched::Trace;
use crate::console::widget::flags::FlagGrid;
use crate::console::widget::level::{Level, ratio};
use crate::server::health::Standing;
use crate::session::Mode;

/// A row or more of this view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Quantity(Quantity),
    Symbols,
    /// ‖r‖, which has no limit.
    Norm(Trace),
}

/// Draws the client into `area`; sensors before `skip` are scrolled off as far as there is need.
pub(crate) fn draw(scene: &Scene, skip: usize, area: Rect, canvas: &mut Canvas) {
    let client = scene.model.chosen;
    let Some(known) = scene.measured.clients.get(client) else { return };
    canvas.hit(area, Target::Scroll);
    let cells = Cells::share(scene.measured, area.width);
    let axis = scene.axis(cells.margin, cells.trend);
    let mut rest = area;
    axis::draw(scene, &axis, pen::take_last(&mut rest, 1), canvas);
    rest = canvas.panel(rest, title(scene, client, known));
    for sentence in sentences(scene, client, area.height) {
        let row = pen::take(&mut rest, 1);
        let text = pen::cut(&sentence, row.width.saturating_sub(4));
        canvas.put(row, 3, 0, &text, scene.theme.text);
    }
    let trends = rest;
    let rows = rows(scene, area.height);
    let room = room_above(&rows, known.sensors.len(), rest.height);
    for (row, height) in grown(rows, room) {
        draw_row(scene, &axis, client, row, pen::take(&mut rest, height), canvas);
    }
    if scene.model.truth_shown {
        // In one row the lowest block is a value.
        let spare = if area.height >= 30 { ABOVE_BARS } else { &[" "] };
        truth(scene, &axis, client, pen::part(trends, 0, 1), spare, canvas);
    }
    let shown = Shown::plan(known.sensors.len(), skip, rest.height.saturating_sub(1));
    rest = canvas.panel(rest, sensors_title(scene, client, known, shown));
    sensors::draw(scene, client, cells, &axis, shown, rest, canvas);
    axis.hit(trends, canvas);
}

/// What is said of the client in a view of `height` rows: a warning has a row in a small one too.
fn sentences(scene: &Scene, client: usize, height: u16) -> Vec<String> {
    let mut said = Vec::new();
    if height >= 30 {
        said = words::of_client(scene, client);
        said.truncate(2);
        said.extend(words::look_first(scene, client));
    }
    said.extend(words::insensitive(scene, client).filter(|_| height >= 12));
    said
}

/// What is drawn above the sensors in a view of `height` rows, and how high.
fn rows(scene: &Scene, height: u16) -> Vec<(Row, u16)> {
    if scene.watched.is_none() {
        return Vec::new();
    }
    let order = Quantity::order(scene.mode()).map(Row::Quantity);
    let (symbols, norms) = (Row::Symbols, [Row::Norm(Trace::NormC), Row::Norm(Trace::NormA)]);
    let high = |row| if row == Row::Quantity(Quantity::Flags) { 1 } else { 2 };
    match height {
        0..8 => Vec::new(),
        8..12 => vec![(order[0], 1)],
        12..30 => order.into_iter().chain([symbols]).map(|row| (row, 1)).collect(),
        _ => {
            let below = [symbols].into_iter().chain(norms).map(|row| (row, 1));
            order.into_iter().map(|row| (row, high(row))).chain(below).collect()
        }
    }
}

/// Rows of `height` that are left above the sensors, once each of them has as many as fit: two and
/// more make a curve of it.
fn room_above(rows: &[(Row, u16)], sensors: usize, height: u16) -> u16 {
    let least: u16 = rows.iter().map(|(_, height)| *height).sum();
    let sensors = sensors.min(usize::from(u16::MAX / 8)) as u16;
    let each = height.saturating_sub(1 + least).checked_div(sensors).unwrap_or(1).clamp(1, 3);
    height.saturating_sub(1 + each * sensors)
}

/// The same with what is left of `room` rows given to what is drawn against a limit, two at a time,
/// so that the limit stays at half the height.
fn grown(mut rows: Vec<(Row, u16)>, room: u16) -> Vec<(Row, u16)> {
    let used: u16 = rows.iter().map(|(_, height)| *height).sum();
    let mut spare = room.saturating_sub(used);
    for most in [4, 6, 8] {
        for (row, height) in &mut rows {
            let against = matches!(row, Row::Quantity(Quantity::Level(_)));
            if against && *height >= 2 && *height < most && spare >= 2 {
                *height += 2;
                spare -= 2;
            }
        }
    }
    rows
}

fn draw_row(scene: &Scene, axis: &Axis, client: usize, row: Row, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let y = area.height.saturating_sub(1);
    let trend = axis.trend(area);
    // What the method that does not decide would send is worked out and not sent.
    let evidence = scene.mode() == Mode::Evidence;
    let (name, value) = match row {
        Row::Quantity(of) => {
            quantity(scene, axis, client, of, trend, canvas);
            match of {
                Quantity::Level(trace) if trace == Trace::Evidence => {
                    ("evidence S/b", Some(reading(scene, client, trace)))
                }
                Quantity::Level(trace) => {
                    let is_own = trace == Trace::DistanceC;
                    let name = if is_own { "own model r_c" } else { "with others r_a" };
                    (name, Some(reading(scene, client, trace)))
                }
                Quantity::Flags if evidence => ("flags Z, not sent", None),
                Quantity::Flags => ("flags Z", None),
            }
        }
        Row::Symbols => {
            let columns = axis.grades(scene, client);
            FlagGrid { columns: &columns, raised: theme.text, theme }.draw(trend, canvas.buffer);
            (if evidence { "symbols sent" } else { "symbols, not sent" }, None)
        }
        Row::Norm(trace) => {
            let columns = axis.trace(scene, client, trace);
            let level = Level { columns: &columns, limit: None, over: theme.trend, theme };
            level.draw(trend, canvas.buffer);
            let name = if trace == Trace::NormC { "norm of r_c" } else { "norm of r_a" };
            (name, Some(reading(scene, client, trace)))
        }
    };
    let end = canvas.put(area, 3, y, name, theme.label) + 1;
    if let Some((values, style)) = value {
        let right = axis.margin.saturating_sub(1);
        let value = pen::fitting(values, right.saturating_sub(end)).unwrap_or_default();
        canvas.right(area, right, y, &value, style);
    }
}

/// A trace at the moment, against its limit where it has one: `4.91 = 2.31τ`, and in short.
fn reading(scene: &Scene, client: usize, trace: Trace) -> (Vec<String>, Style) {
    let theme = scene.theme;
    let Some(value) = scene.watched.and_then(|w| w.value_at(client, trace, scene.moment)) else {
        return (vec!["?".into()], theme.missing);
    };
    if matches!(trace, Trace::NormC | Trace::NormA) {
        return (vec![format!("{value:.3}")], theme.text);
    }
    let times = ratio(value, scene.limit(client, trace));
    let style = if times > 1.0 { over(scene, client, trace) } else { theme.text };
    if trace == Trace::Evidence {
        return (vec![format!("{times:.2}")], style);
    }
    (
        vec![format!("{value:.1} = {times:.2}τ"), format!("{times:.2}τ"), format!("{times:.0}τ")],
        style,
    )
}

fn title<'a>(scene: &Scene<'a>, client: usize, known: &'a Client) -> Vec<Span<'a>> {
    let theme = scene.theme;
    let status = Status::of(scene, client);
    let mark = theme.mark(status.state);
    let focused = scene.model.focus() == Focus::Clients;
    let mut title = vec![
        span(mark.glyph, mark.style),
        span(&known.name, if focused { theme.cursor } else { theme.strong }),
        span(&known.title, theme.text),
    ];
    if !mark.word.is_empty() {
        let number = status.incident.map_or(String::new(), |number| format!(" #{number}"));
        title.push(span(format!("{}{number}", mark.word), mark.style));
    }
    if let Some(incident) = status.incident.and_then(|number| scene.incident(number)) {
        title.push(span(seen(incident, scene.moment), mark.style));
    }
    if let Some(since) = status.since {
        title.push(span(format!("since {}", scene.model.clock.time(since)), theme.label));
    }
    match scene.watched.and_then(|w| w.latest.get(client)).map(|sight| sight.server.standing) {
        Some(Standing::OutOfCalibration) => {
            title.push(span("? out of calibration", theme.missing));
        }
        Some(Standing::Unreliable) => {
            title.push(span("? unreliable: unlike its calibration", theme.missing));
        }
        Some(Standing::Trusted) | None => {}
    }
    title.retain(|span| !span.content.trim().is_empty());
    title
}

fn sensors_title(scene: &Scene, client: usize, known: &Client, shown: Shown) -> Vec<Span<'static>> {
    let theme = scene.theme;
    let all = known.sensors.len();
    let count = if shown.sensors < all {
        let (from, to) = (shown.skip + 1, (shown.skip + shown.sensors).min(all));
        format!("{from} to {to} of {all} sensors, pgdn scrolls")
    } else {
        format!("{all} sensors")
    };
    let tally = scene.measured.tally(known, scene.moment);
    let mut title = vec![span(count, theme.strong)];
    if tally.missing > 0 {
        title.push(span(format!("? {} missing", tally.missing), theme.missing));
    }
    if tally.beyond > 0 {
        title.push(span(format!("↕ {} beyond scale", tally.beyond), theme.beyond));
    }
    if scene.ranked(client).is_some_and(|ranked| !ranked.is_empty()) {
        title.push(span("1 deviates most", theme.label));
    }
    if !scene.measured.is_settled() {
        title.push(span("scales settling", theme.label));
    }
    let not_watched = scene.not_watched(client);
    if !not_watched.is_empty() {
        let mut reasons: Vec<String> = Vec::new();
        for (_, why) in not_watched {
            let why = clean(&why.to_string());
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        let text = format!("– {} not watched: {}", not_watched.len(), reasons.join(", "));
        title.push(span(text, theme.label));
    }
    title
}
