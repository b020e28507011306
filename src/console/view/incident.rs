//! One incident: who rose when, who it is, why, and what was done about it.
//!
//! ```text
//! ── ▲ #7 ROOT P1 boiler  UNACK  4m20s ───────────────────────────
//!  who rose first (10 s a column)
//!  ▲ P1  ········▅███████████████   ROOT    10:38:00
//!  ↳ P2  ·············▃▅█████████   effect  +50 s
//!        10:33         ▴ first out
//! ── who it is ─────────────────── ── why ────────────────────────
//!  P1  0.93 ██████████████████     1 All evidence taken together …
//!  P2  0.05 █                      2 P1 rose first, at 10:38:00 …
//! ── numbers at 10:42:20 ─────────────────────────────────────────
//!       S/b   r_c/τ  r_a/τ  Z  explained
//!  P1   3.21   2.31   1.76  #
//! ── operator ────────────────────────────────────────────────────
//!  open since 10:38:00, nobody has acknowledged it
//!  check P1: set points, valves, pumps …
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{self, cut, heading, part, put, wrapped};
use super::rows::cursor;
use super::scene::{Axis, Scene};
use super::verdict::{delay, lasted, nature, seen_after, state_of};
use super::{axis, incidents, tail, words};
use crate::console::action::Action;
use crate::console::clock::round_length;
use crate::console::glyph::NONE;
use crate::console::mouse::{Hit, Target};
use crate::console::theme::State;
use crate::console::watched::{FlagCell, Trace, Watched};
use crate::console::widget::flags::FlagGrid;
use crate::console::widget::level::{Level, ratio};
use crate::console::widget::sign;
use crate::history::{Bucket, Column};
use crate::incident::{Incident, Member};
use crate::session::Mode;

/// Marks who rose first on the axis.
const FIRST_OUT: &str = "▴ first out";

/// Draws incident `number` into `area`, its lower part scrolled by `skip` lines.
pub(crate) fn draw(
    scene: &Scene,
    number: u64,
    skip: usize,
    area: Rect,
    buffer: &mut Buffer,
    hits: &mut Vec<Hit>,
) {
    hits.push(Hit { area, target: Target::Scroll });
    let found = scene.watched.and_then(|w| Some((w, w.incident(number)?)));
    let Some((watched, incident)) = found else {
        put(buffer, area, 1, 0, "there is no such incident", scene.theme.label);
        return;
    };
    let mut rest = area;
    title(scene, incident, pen::take(&mut rest, 1), buffer);
    let stairs_rows = (incident.members.len() as u16 + 1).min(rest.height / 2);
    stairs(scene, incident, pen::take(&mut rest, stairs_rows), buffer, hits);
    let blocks = [
        why(scene, incident, area.width),
        posterior(scene, incident),
        operator(scene, incident, area.width),
        numbers(scene, watched, incident),
        history(scene, watched, incident),
    ];
    if area.width >= 110 {
        let [why, posterior, operator, numbers, history] = blocks;
        let left = area.width / 2 + area.width / 10;
        let (left, right) = pen::beside(buffer, rest, left, scene.theme);
        column(scene, &[why, operator, history], skip, left, buffer);
        column(scene, &[posterior, numbers], skip, right, buffer);
    } else {
        column(scene, &blocks, skip, rest, buffer);
    }
}

fn title(scene: &Scene, incident: &Incident, area: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    let mark = theme.mark(state_of(incident));
    let name = incident.root.map_or_else(
        || incidents::who(scene, incident),
        |root| match scene.measured.clients.get(root) {
            Some(client) if !client.title.is_empty() => format!("{} {}", client.name, client.title),
            _ => scene.name(root).to_owned(),
        },
    );
    let head = format!("{} #{} {}", mark.glyph, incident.number, nature(incident));
    let priority = format!("priority {}", incident.priority.to_string().trim_start_matches('P'));
    let seen = seen_after(scene, incident);
    let lasted = lasted(incident, scene.newest);
    let seen_style =
        if incident.alarm.state.wants_acknowledgement() { mark.style } else { theme.label };
    let mut parts = vec![
        (head.as_str(), mark.style),
        (name.as_str(), theme.strong),
        (priority.as_str(), theme.text),
        (seen.as_str(), seen_style),
        (lasted.as_str(), theme.label),
    ];
    if incident.disagrees() {
        parts.push(("DISAGREE", theme.single));
    }
    if incident.frozen {
        parts.push(("root final", theme.label));
    }
    heading(buffer, area, &parts, theme);
}

/// Members on one axis in order of onset: the staircase is the argument.
fn stairs(
    scene: &Scene,
    incident: &Incident,
    area: Rect,
    buffer: &mut Buffer,
    hits: &mut Vec<Hit>,
) {
    let (theme, clock) = (scene.theme, scene.model.clock);
    let name = scene.name_cells(10);
    let words = if area.width >= 60 { 18 } else { 8 };
    let margin = 4 + name + 1;
    let columns = area.width.saturating_sub(margin + words + 1);
    let until = incident.closed.map_or(scene.newest, |closed| closed.time);
    let axis = scene.axis_over(margin, columns, incident.onset.min(until), until);
    let mut rest = area;
    let labels = pen::take_last(&mut rest, 1);
    for (y, member) in (0..rest.height).zip(&incident.members) {
        let root = incident.root == Some(member.client);
        let state = match incident.root {
            Some(_) if !root => State::Effect,
            _ => state_of(incident),
        };
        let mark = theme.mark(state);
        let row = part(rest, y, 1);
        hits.push(Hit { area: row, target: Target::Client(member.client) });
        put(buffer, row, 1, 0, mark.glyph, mark.style);
        put(buffer, row, 3, 0, &cut(scene.name(member.client), name), theme.strong);
        stair(scene, &axis, member, row, buffer);
        let x = margin + columns + 1;
        let after = if root { clock.time(member.onset) } else { delay(incident.delay_s(member)) };
        let word = if state == State::Effect { mark.word } else { nature(incident) };
        let x = put(buffer, row, x, 0, &cut(word, 8), mark.style) + 1;
        put(buffer, row, x, 0, &after, theme.text);
    }
    let column = round_length(axis.window.column_s());
    put(buffer, labels, 1, 0, &cut(&column, margin - 1), theme.label);
    let first = incident.first_out.and_then(|first| axis.window.column_of(first.time));
    let taken = first.map_or(0..0, |at| at..at + pen::width(FIRST_OUT) + 1);
    axis::labels_beside(scene, &axis, &taken, labels, buffer);
    if let Some(at) = first {
        put(buffer, labels, margin + at, 0, FIRST_OUT, theme.single);
    }
    let (start, end) = axis.ends();
    let trend = Rect { x: rest.x.saturating_add(margin), width: columns, ..rest };
    hits.push(Hit { area: trend.intersection(rest), target: Target::Trend { start, end } });
}

/// One member: nothing before its onset, then how much speaks for it.
fn stair(scene: &Scene, axis: &Axis, member: &Member, row: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    let trend = Rect { x: row.x.saturating_add(axis.margin), width: axis.columns, ..row };
    let trend = trend.intersection(row);
    match scene.mode() {
        Mode::Evidence => {
            let columns = axis.trace(scene, member.client, Trace::Evidence);
            Level { columns: &columns, limit: 1.0, over: theme.over, theme }.draw(trend, buffer);
        }
        Mode::Paper => {
            let columns = axis.flags(scene, member.client);
            FlagGrid { columns: &columns, said: theme.over, theme }.draw(trend, buffer);
        }
    }
    for column in 0..trend.width {
        let end = axis.window.start(i64::from(column) + 1);
        if end > member.onset {
            break;
        }
        let known = axis.steps.get(usize::from(column)) != Some(&Column::Outside);
        let (glyph, style) = if known { (NONE, theme.frame) } else { (" ", theme.text) };
        sign(buffer, trend.x + column, trend.y, glyph, style);
    }
    cursor(scene, axis, trend, buffer);
}

/// A heading with lines below it.
struct Block {
    title: String,
    lines: Vec<Vec<(String, Style)>>,
}

/// Draws blocks below each other, scrolled by `skip` lines as far as there is need.
fn column(scene: &Scene, blocks: &[Block], skip: usize, area: Rect, buffer: &mut Buffer) {
    let all: usize = blocks.iter().filter(|b| !b.lines.is_empty()).map(|b| 1 + b.lines.len()).sum();
    let skip = skip.min(all.saturating_sub(usize::from(area.height)));
    let mut at = 0_usize;
    let mut row = || {
        let y = at.checked_sub(skip);
        at += 1;
        y.filter(|y| *y < usize::from(area.height)).map(|y| y as u16)
    };
    for block in blocks.iter().filter(|block| !block.lines.is_empty()) {
        if let Some(y) = row() {
            let parts = [(block.title.as_str(), scene.theme.strong)];
            heading(buffer, part(area, y, 1), &parts, scene.theme);
        }
        for pieces in &block.lines {
            if let Some(y) = row() {
                pen::line(buffer, part(area, y, 1), 1, 0, pieces);
            }
        }
    }
}

fn why(scene: &Scene, incident: &Incident, width: u16) -> Block {
    let theme = scene.theme;
    let room = if width >= 110 { width / 2 + width / 10 } else { width };
    let mut lines = Vec::new();
    for (n, sentence) in (1..).zip(words::why(scene, incident)) {
        let style = if sentence.starts_with("DISAGREE") { theme.single } else { theme.text };
        for (at, text) in wrapped(&sentence, room.saturating_sub(5)).into_iter().enumerate() {
            let number = if at == 0 { format!("{n} ") } else { "  ".into() };
            lines.push(vec![(number, theme.label), (text, style)]);
        }
    }
    Block { title: "why".into(), lines }
}

/// How likely each client is the root, as bars.
fn posterior(scene: &Scene, incident: &Incident) -> Block {
    let theme = scene.theme;
    let name = usize::from(scene.name_cells(10));
    let mut order: Vec<(usize, f64)> = incident.posterior.iter().copied().enumerate().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let lines = order
        .into_iter()
        .take(12)
        .map(|(client, p)| {
            let root = incident.root == Some(client);
            let style = if root { theme.root } else { theme.text };
            let bar = "█".repeat((p.clamp(0.0, 1.0) * 24.0).round() as usize);
            let named = if root { "  named" } else { "" };
            vec![
                (format!("{:<name$} ", cut(scene.name(client), name as u16)), style),
                (format!("{p:.3} "), theme.text),
                (bar, if root { theme.root } else { theme.trend }),
                (named.into(), theme.label),
            ]
        })
        .collect();
    Block { title: "who it is".into(), lines }
}

/// What every member shows: at the moment looked at if that lies in the incident, else the most it
/// showed while it lasted.
fn numbers(scene: &Scene, watched: &Watched, incident: &Incident) -> Block {
    let theme = scene.theme;
    let name = usize::from(scene.name_cells(10));
    let end = incident.closed.map_or(scene.newest, |closed| closed.time);
    let during = scene.model.look.filter(|look| (incident.onset..=end).contains(look));
    // Ratios and flags are by the thresholds that stand; what was sent then is history.
    let judged = watched.judged_until().is_some_and(|until| incident.onset <= until);
    let (from, until, title) = match during {
        Some(look) => (look, look, format!("numbers at {}", scene.model.clock.time(look))),
        None if judged => (incident.onset, end, "the most of the incident".to_owned()),
        None => (incident.onset, end, "numbers, the most of the incident".to_owned()),
    };
    let title = if judged { format!("{title}, Z re-judged") } else { title };
    let until = until.saturating_add(watched.history.period()).unwrap_or(until);
    let column = watched.history.column(from, until);
    let most = |client: usize, trace: Trace| match watched.bucket(client, trace, &column) {
        Bucket::Values { high, .. } => Some(high),
        Bucket::Missing | Bucket::Outside => None,
    };
    let mut lines = vec![vec![(
        format!("{:<name$}  {:>6} {:>6} {:>6}  Z symbol explained", "", "S/b", "r_c/τ", "r_a/τ"),
        theme.label,
    )]];
    for member in &incident.members {
        let client = member.client;
        let said = |trace: Trace| match most(client, trace) {
            Some(value) => {
                let times = ratio(value, scene.limit(client, trace));
                let style = if times > 1.0 { scene.over(trace) } else { theme.text };
                (format!(" {times:>6.2}"), style)
            }
            None => (format!(" {:>6}", "?"), theme.missing),
        };
        let flags = match watched.flags(client, &column) {
            FlagCell::Flags { z_c: true, z_a: true } => "#",
            FlagCell::Flags { z_c: true, .. } => "c",
            FlagCell::Flags { z_a: true, .. } => "a",
            FlagCell::Flags { .. } => NONE,
            FlagCell::Missing | FlagCell::Outside => "?",
        };
        let symbol =
            most(client, Trace::Level).map_or("?".to_owned(), |level| format!("{level:.0}"));
        let explained =
            member.explained.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        lines.push(vec![
            (format!("{:<name$} ", cut(scene.name(client), name as u16)), theme.strong),
            said(Trace::Evidence),
            said(Trace::DistanceC),
            said(Trace::DistanceA),
            (format!("  {flags} {symbol:>6} {explained:>9}"), theme.text),
        ]);
    }
    Block { title, lines }
}

fn operator(scene: &Scene, incident: &Incident, width: u16) -> Block {
    let theme = scene.theme;
    let room = if width >= 110 { width / 2 + width / 10 } else { width }.saturating_sub(3);
    let plain = |text: String| vec![(text, theme.text)];
    let standing = wrapped(&words::standing(scene, incident), room);
    let mut lines: Vec<Vec<(String, Style)>> = standing.into_iter().map(plain).collect();
    if let Some(which) = words::which_sensor(scene, incident, Action::Open) {
        lines.extend(wrapped(&which, room).into_iter().map(|text| vec![(text, theme.label)]));
    }
    lines.extend(wrapped(&words::check(scene, incident), room).into_iter().map(plain));
    for correction in &incident.corrections {
        let name = |client: Option<usize>| client.map_or("?", |client| scene.name(client));
        let time = scene.model.clock.time(correction.time);
        let text = format!("root {} → {} at {time}", name(correction.from), name(correction.to));
        lines.push(vec![(text, theme.text)]);
    }
    let note = crate::console::text::clean(&incident.note);
    if note.is_empty() {
        lines.push(vec![("no note; n writes one".into(), theme.label)]);
    } else {
        for text in wrapped(&format!("note: {note}"), room) {
            lines.push(vec![(text, theme.strong)]);
        }
    }
    Block { title: "operator".into(), lines }
}

/// The lines of the log about this incident, in order.
fn history(scene: &Scene, watched: &Watched, incident: &Incident) -> Block {
    let about = |entry: &&crate::incident::Event| entry.incident() == Some(incident.number);
    let lines = watched.log.iter().filter(about).map(|entry| tail::pieces(scene, entry)).collect();
    Block { title: "what happened".into(), lines }
}
