//! The chosen client alone: how far it is from alarm, what it said, what it measures.
//!
//! ```text
//! ── ▲ P1 boiler  ROOT #7  UNACK  since 10:38:00 ────────────────
//!    S/b      3.21           ▂▂▂▃▂▂▂▅████     evidence against 1
//!    r_c     2.31τ  ‖r‖ 1.9  ▂▂▂▃▂▂▂▅████     distances against τ
//!    r_a     0.42τ  ‖r‖ 0.8  ▂▂▂▃▂▂▂▂▂▂▂▂
//!    Z                       ·······ccccc     flags by the thresholds that stand
//!    symbols                 ·······11233     grades as they were sent
//! ── 12 sensors  those that deviate most are numbered ───────────
//!  1 PIT01  ↑61.48 bar       ⡠⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤
//!    FT01    12.03 mmH2O     ⡠⠤⠒⠒⠊⠉⠑⠢⣀⡠⠤
//!    30 s a column           10:15     10:20
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{self, heading, put, put_right};
use super::rows::{Quantity, quantity, truth};
use super::scene::{Axis, Scene};
use super::sensors::{Cells, Shown};
use super::verdict::{Verdict, seen};
use super::{axis, sensors, words};
use crate::console::app::Focus;
use crate::console::mouse::{Hit, Target};
use crate::console::text::clean;
use crate::console::watched::Trace;
use crate::console::widget::flags::FlagGrid;
use crate::console::widget::level::{Level, ratio};
use crate::server::health::Standing;
use crate::session::Mode;

/// A row or more of this view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Quantity(Quantity),
    Symbols,
    /// ‖r‖, which has no limit.
    Norm(Trace),
}

/// Draws the client into `area`; sensors before `skip` are scrolled off as far as there is need.
pub(crate) fn draw(
    scene: &Scene,
    skip: usize,
    area: Rect,
    buffer: &mut Buffer,
    hits: &mut Vec<Hit>,
) {
    let client = scene.model.chosen;
    let Some(known) = scene.measured.clients.get(client) else { return };
    hits.push(Hit { area, target: Target::Scroll });
    let cells = Cells::share(scene.measured, area.width);
    let axis = scene.axis(cells.margin, cells.trend);
    let mut rest = area;
    axis::draw(scene, &axis, pen::take_last(&mut rest, 1), buffer);
    title(scene, client, pen::take(&mut rest, 1), buffer);
    if area.height >= 30 {
        let said = words::of_client(scene, client);
        for sentence in said.iter().take(2).chain(words::look_first(scene, client).as_ref()) {
            let row = pen::take(&mut rest, 1);
            put(
                buffer,
                row,
                3,
                0,
                &pen::cut(sentence, row.width.saturating_sub(4)),
                scene.theme.text,
            );
        }
    }
    let trends = rest;
    let room = rest.height.saturating_sub(1 + known.sensors.len() as u16);
    for (line, height) in grown(lines(scene, area.height), room) {
        let rows = pen::take(&mut rest, height);
        draw_line(scene, &axis, client, line, rows, buffer);
    }
    if scene.model.truth_shown {
        truth(scene, &axis, client, pen::part(trends, 0, 1), buffer);
    }
    let heading_row = pen::take(&mut rest, 1);
    let shown = Shown::plan(known.sensors.len(), skip, rest.height);
    sensors_title(scene, client, shown, heading_row, buffer);
    sensors::draw(scene, client, cells, &axis, shown, rest, buffer);
    let (start, end) = axis.ends();
    let area = Rect { x: trends.x.saturating_add(axis.margin), width: axis.columns, ..trends };
    hits.push(Hit { area: area.intersection(trends), target: Target::Trend { start, end } });
}

/// What is drawn above the sensors in a view of `rows` rows, and how high.
fn lines(scene: &Scene, rows: u16) -> Vec<(Line, u16)> {
    if scene.watched.is_none() {
        return Vec::new();
    }
    let order = Quantity::order(scene.mode()).map(Line::Quantity);
    match rows {
        0..8 => Vec::new(),
        8..12 => vec![(order[0], 1)],
        12..30 => order.into_iter().map(|line| (line, 1)).chain([(Line::Symbols, 1)]).collect(),
        _ => {
            let high = |line| match line {
                Line::Quantity(Quantity::Flags) => 1,
                _ => 2,
            };
            let norms = [Line::Norm(Trace::NormC), Line::Norm(Trace::NormA)];
            order
                .into_iter()
                .map(|line| (line, high(line)))
                .chain([(Line::Symbols, 1)])
                .chain(norms.map(|line| (line, 1)))
                .collect()
        }
    }
}

/// The same with what is left of `room` rows given to what is drawn against a limit, two at a time,
/// so that the limit stays at half the height.
fn grown(mut lines: Vec<(Line, u16)>, room: u16) -> Vec<(Line, u16)> {
    let used: u16 = lines.iter().map(|(_, height)| *height).sum();
    let mut spare = room.saturating_sub(used);
    for most in [4, 6] {
        for (line, height) in &mut lines {
            let against = matches!(line, Line::Quantity(Quantity::Level(_)));
            if against && *height >= 2 && *height < most && spare >= 2 {
                *height += 2;
                spare -= 2;
            }
        }
    }
    lines
}

fn draw_line(
    scene: &Scene,
    axis: &Axis,
    client: usize,
    line: Line,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = scene.theme;
    let y = area.height.saturating_sub(1);
    let trend = Rect { x: area.x.saturating_add(axis.margin), width: axis.columns, ..area };
    let trend = trend.intersection(area);
    let mut say = |name: &str, value: Option<(String, Style)>| {
        put(buffer, area, 3, y, name, theme.label);
        if let Some((text, style)) = value {
            put_right(buffer, area, axis.margin.saturating_sub(1), y, &text, style);
        }
    };
    match line {
        Line::Quantity(of) => {
            let value = match of {
                Quantity::Level(trace) => Some(reading(scene, client, trace)),
                Quantity::Flags => None,
            };
            let name = match of {
                Quantity::Level(Trace::Evidence) => "evidence S/b",
                Quantity::Level(Trace::DistanceC) => "r_c",
                Quantity::Level(Trace::DistanceA) => "r_a",
                Quantity::Level(_) => "",
                Quantity::Flags if scene.mode() == Mode::Evidence => "flags Z, rehearsed",
                Quantity::Flags => "flags Z",
            };
            say(name, value);
            quantity(scene, axis, client, of, trend, buffer);
        }
        Line::Symbols => {
            // The method that does not decide is rehearsed, and nothing of it is sent.
            let is_rehearsed = scene.mode() == Mode::Paper;
            say(if is_rehearsed { "symbols, rehearsed" } else { "symbols sent" }, None);
            let columns = axis.grades(scene, client);
            FlagGrid { columns: &columns, said: theme.text, theme }.draw(trend, buffer);
        }
        Line::Norm(trace) => {
            let value = scene.watched.and_then(|w| w.value_at(client, trace, scene.moment));
            let text =
                value.map_or(("?".to_owned(), theme.missing), |v| (format!("{v:.3}"), theme.text));
            say(if trace == Trace::NormC { "norm of r_c" } else { "norm of r_a" }, Some(text));
            let columns = axis.trace(scene, client, trace);
            let over = theme.trend;
            Level { columns: &columns, limit: f32::INFINITY, over, theme }
                .draw_freely(trend, buffer);
        }
    }
}

/// A trace at the moment, against its limit: `d 4.91 = 2.31τ`.
fn reading(scene: &Scene, client: usize, trace: Trace) -> (String, Style) {
    let theme = scene.theme;
    let Some(value) = scene.watched.and_then(|w| w.value_at(client, trace, scene.moment)) else {
        return ("?".into(), theme.missing);
    };
    let limit = scene.limit(client, trace);
    let times = ratio(value, limit);
    let style = if times > 1.0 { scene.over(trace) } else { theme.text };
    let text = match trace {
        Trace::Evidence => format!("{times:.2}"),
        _ => format!("{value:.1} = {times:.2}τ"),
    };
    (text, style)
}

fn title(scene: &Scene, client: usize, area: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    let Some(known) = scene.measured.clients.get(client) else { return };
    let verdict = Verdict::of(scene, client);
    let mark = theme.mark(verdict.state);
    let focused = scene.model.focus() == Focus::Clients;
    let mut parts = vec![
        (mark.glyph.to_owned(), mark.style),
        (known.name.clone(), if focused { theme.cursor } else { theme.strong }),
        (known.title.clone(), theme.text),
    ];
    if !mark.word.is_empty() {
        let number = verdict.incident.map_or(String::new(), |number| format!(" #{number}"));
        parts.push((format!("{}{number}", mark.word), mark.style));
    }
    if let Some(incident) =
        verdict.incident.and_then(|number| scene.watched.and_then(|w| w.incident(number)))
    {
        parts.push((seen(incident, scene.newest), mark.style));
    }
    if let Some(since) = verdict.since {
        parts.push((format!("since {}", scene.model.clock.time(since)), theme.label));
    }
    match scene.watched.and_then(|w| w.latest.get(client)).map(|sight| sight.server.standing) {
        Some(Standing::OutOfCalibration) => {
            parts.push(("? out of calibration".into(), theme.missing));
        }
        Some(Standing::Unreliable) => {
            parts.push(("? not to be believed: unlike its calibration".into(), theme.missing));
        }
        Some(Standing::Trusted) | None => {}
    }
    let parts: Vec<(&str, Style)> =
        parts.iter().filter(|(t, _)| !t.trim().is_empty()).map(|(t, s)| (t.as_str(), *s)).collect();
    heading(buffer, area, &parts, theme);
}

fn sensors_title(scene: &Scene, client: usize, shown: Shown, area: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    let Some(known) = scene.measured.clients.get(client) else { return };
    let all = known.sensors.len();
    let count = if shown.sensors < all {
        let (from, to) = (shown.skip + 1, (shown.skip + shown.sensors).min(all));
        format!("{from} to {to} of {all} sensors, pgdn scrolls")
    } else {
        format!("{all} sensors")
    };
    let tally = scene.measured.tally(known, scene.moment);
    let mut parts = vec![(count, theme.strong)];
    if tally.missing > 0 {
        parts.push((format!("? {} missing", tally.missing), theme.missing));
    }
    if tally.beyond > 0 {
        parts.push((format!("↕ {} beyond scale", tally.beyond), theme.beyond));
    }
    if scene.ranked(client).is_some_and(|ranked| !ranked.is_empty()) {
        parts.push(("1 deviates most".to_owned(), theme.label));
    }
    if !scene.measured.is_settled() {
        parts.push(("scales settling".to_owned(), theme.label));
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
        parts.push((text, theme.label));
    }
    let parts: Vec<(&str, Style)> = parts.iter().map(|(t, s)| (t.as_str(), *s)).collect();
    heading(buffer, area, &parts, theme);
}
