//! One incident: who rose when, who it is, why, and what was done about it.
//!
//! ```text
//! ── ▲ #7 ROOT P1 boiler  not acknowledged  4m20s ────────────────
//!  ▲ P1 boiler   ▁▁▁▂▁▁▁│▅███████████████   ROOT    10:38:00
//!  ↳ P2 turbine  ▁▁▁▁▁▁▂▁▁▁▁▁│▃▅█████████   effect  +50 s
//!  5 s           10:33         ▴ alarmed first
//! ── why ────────────────────────── ── probability of being the root ─
//!  1 All evidence taken together …   P1 boiler  0.93 ████████████
//!  2 P1 alarmed first, at 10:38:00   P2 turbine 0.05 █
//! ── operator ───────────────────── ── peak values ───────────────────
//!  open since 10:38:00                    S/b  r_c/τ  r_a/τ  Z
//!  check P1: set points, valves …    P1  3.21   2.31   1.76  #
//! ```
//!
//! The trends get the rows that the words leave.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::pen::{self, Canvas, Section, cut, part, span, wrapped};
use super::rows::cursor;
use super::scene::{Axis, Scene};
use super::status::{delay, lasted, nature, seen_after, state_of};
use super::{axis, incidents, tail, words};
use crate::console::action::Action;
use crate::console::clock::round_length;
use crate::console::mouse::Target;
use crate::console::text::clean;
use crate::console::theme::State;
use crate::console::watched::{FlagCell, Trace, Watched};
use crate::console::widget::flags::{FlagGrid, sign_of};
use crate::console::widget::level::{Level, ratio};
use crate::console::widget::sign;
use crate::console::widget::trend::Trend;
use crate::history::{Bucket, Column};
use crate::incident::{Event, Incident, Member};
use crate::session::Mode;

/// Marks who rose first on the axis.
const FIRST_OUT: &str = "▴ alarmed first";
/// The onset of a member, above its trend.
const ONSET: &str = "│";
const TWO_COLUMNS: u16 = 110;
/// Rows that the trend of a member gets at most.
const TALLEST: u16 = 16;
/// Rows that stay free for what will happen.
const TO_COME: u16 = 3;
/// From this width on, members have their whole names.
const WHOLE_NAMES: u16 = 90;

/// Draws incident `number` into `area`, its lower part scrolled by `skip` lines.
pub(crate) fn draw(scene: &Scene, number: u64, skip: usize, area: Rect, canvas: &mut Canvas) {
    canvas.hit(area, Target::Scroll);
    let Some((watched, incident)) = scene.watched.zip(scene.incident(number)) else {
        canvas.put(area, 1, 0, "there is no such incident", scene.theme.label);
        return;
    };
    let mut rest = canvas.panel(area, title(scene, incident));
    let two = area.width >= TWO_COLUMNS;
    let left = if two { area.width / 2 + area.width / 10 } else { area.width };
    let why = why(scene, incident, left.saturating_sub(5));
    let operator = operator(scene, incident, left.saturating_sub(3));
    let posterior = posterior(scene, incident, area.width - if two { left } else { 0 });
    let (history, numbers) = (history(scene, watched, incident), numbers(scene, watched, incident));
    let rows = |sections: &[&Section]| {
        sections.iter().map(|section| 1 + section.lines.len() as u16).sum::<u16>()
    };
    let words = if two {
        rows(&[&why, &operator, &history]).max(rows(&[&posterior, &numbers])) + TO_COME
    } else {
        rows(&[&why, &posterior, &operator])
    };
    let members = (incident.members.len() as u16).max(1);
    let picture = members * member_rows(rest.height, words, members) + 1;
    let most = rest.height * 2 / 3;
    let picture = pen::take(&mut rest, picture.min(most));
    // The root's own sensors stand beside, where it may name them.
    if two && !words::named_sensors(scene, incident).is_empty() {
        let [trends, sensors] = canvas.beside(picture, left);
        stairs(scene, incident, trends, canvas);
        root_sensors(scene, incident, sensors, canvas);
    } else {
        stairs(scene, incident, picture, canvas);
    }
    if two {
        let [left, right] = canvas.beside(rest, left);
        canvas.sections(&[why, operator, history], skip, left);
        canvas.sections(&[posterior, numbers], skip, right);
    } else {
        canvas.sections(&[why, posterior, operator, numbers, history], skip, rest);
    }
}

/// Rows of each member's trend in a view of `height` rows, `words` of which are wanted for words.
fn member_rows(height: u16, words: u16, members: u16) -> u16 {
    let spare = height.saturating_sub(words + 1) / members;
    let least = ((height / 2).saturating_sub(1) / members).clamp(1, 2);
    even(spare.max(least).min(TALLEST))
}

/// The limit is the line between two rows: with an odd number of them there is none.
fn even(rows: u16) -> u16 {
    if rows > 1 { rows - rows % 2 } else { 1 }
}

fn title(scene: &Scene, incident: &Incident) -> Vec<Span<'static>> {
    let theme = scene.theme;
    let mark = theme.mark(state_of(incident));
    let name =
        incident.root.map_or_else(|| incidents::who(scene, incident), |root| scene.full_name(root));
    let priority = incident.priority.to_string();
    let seen_style =
        if incident.alarm.state.wants_acknowledgement() { mark.style } else { theme.label };
    let mut title = vec![
        span(format!("{} #{} {}", mark.glyph, incident.number, nature(incident)), mark.style),
        span(name, theme.strong),
        span(incidents::above(scene, incident).unwrap_or_default(), theme.text),
        span(format!("priority {}", priority.trim_start_matches('P')), theme.text),
        span(seen_after(scene, incident), seen_style),
        span(lasted(incident, scene.moment), theme.label),
    ];
    if incident.disagrees() {
        title.push(span("DISAGREE", theme.single));
    }
    if incident.frozen {
        title.push(span("root confirmed", theme.label));
    }
    title.retain(|span| !span.content.is_empty());
    title
}

/// Members on one axis in order of onset: the staircase is the argument.
pub(super) fn stairs(scene: &Scene, incident: &Incident, area: Rect, canvas: &mut Canvas) {
    let (theme, clock) = (scene.theme, scene.model.clock);
    let whole = area.width >= WHOLE_NAMES;
    let name = if whole { scene.full_name_cells(20) } else { scene.name_cells(10) };
    let words = if area.width >= 60 { 18 } else { 8 };
    let margin = 4 + name + 1;
    let columns = area.width.saturating_sub(margin + words + 1);
    let until = incident.closed.map_or(scene.moment, |closed| closed.time).max(incident.onset);
    let axis = scene.axis_over(margin, columns, incident.onset.min(until), until);
    let members = (incident.members.len() as u16).max(1);
    let mut rest = pen::part(area, 0, area.height.saturating_sub(1));
    let height = even((rest.height / members).clamp(1, TALLEST));
    rest.height = rest.height.min(members * height);
    let labels = pen::part(area, rest.height, 1);
    for (at, member) in (0..rest.height / height).zip(&incident.members) {
        let root = incident.root == Some(member.client);
        let state = match incident.root {
            Some(_) if !root => State::Effect,
            _ => state_of(incident),
        };
        let mark = theme.mark(state);
        let row = part(rest, at * height, height);
        let last = height - 1;
        canvas.hit(row, Target::Client(member.client));
        canvas.put(row, 1, last, mark.glyph, mark.style);
        let client = member.client;
        let said = if whole { scene.full_name(client) } else { scene.name(client).to_owned() };
        canvas.put(row, 3, last, &cut(&said, name), theme.strong);
        stair(scene, &axis, member, row, canvas);
        let after = if root { clock.time(member.onset) } else { delay(incident.delay_s(member)) };
        let word = if state == State::Effect { mark.word } else { nature(incident) };
        let x = canvas.put(row, margin + columns + 1, last, &cut(word, 8), mark.style) + 1;
        canvas.put(row, x, last, &after, theme.text);
    }
    let column = round_length(axis.window.column_s());
    canvas.put(labels, 1, 0, &cut(&column, margin - 1), theme.label);
    let first = incident.first_out.and_then(|first| axis.window.column_of(first.time));
    let taken = first.map_or(0..0, |at| at..at + pen::width(FIRST_OUT) + 1);
    axis::labels(scene, &axis, &taken, labels, canvas);
    if let Some(at) = first {
        canvas.put(labels, margin + at, 0, FIRST_OUT, theme.single);
    }
    axis.hit(rest, canvas);
}

/// The sensors that the root named, over the same time.
fn root_sensors(scene: &Scene, incident: &Incident, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let Some(root) = incident.root else { return };
    let named = words::named_sensors(scene, incident);
    let Some(known) = scene.measured.clients.get(root) else { return };
    let margin = 12;
    let cells = area.width.saturating_sub(margin + 1);
    let until = incident.closed.map_or(scene.moment, |closed| closed.time).max(incident.onset);
    let axis = scene.axis_over(margin, cells, incident.onset, until);
    let edges = axis.window.half_edges();
    let history = &scene.measured.history;
    let halves: Vec<Column> = edges.windows(2).map(|e| history.column(e[0], e[1])).collect();
    let shown = named.len().min(3) as u16;
    let height = (area.height / shown.max(1)).clamp(1, TALLEST);
    for (at, name) in (0..).zip(named.iter().take(3)) {
        let Some(place) = known.sensors.iter().position(|sensor| sensor.name == *name) else {
            continue;
        };
        let channel = known.channels.start + place;
        let Some(scale) = scene.measured.scales.get(channel) else { continue };
        let row = part(area, at * height, height);
        canvas.put(row, 1, height - 1, &cut(name, margin - 2), theme.text);
        let buckets: Vec<Bucket> = halves.iter().map(|h| history.bucket(channel, h)).collect();
        let trend = axis.trend(row);
        Trend { halves: &buckets, scale, theme }.draw(trend, canvas.buffer);
        if let Some(column) = axis.window.column_of(incident.onset) {
            canvas.buffer.set_style(pen::columns(trend, column, 1), theme.cursor);
        }
    }
}

/// One member: its evidence or its flags around the onset, which is a line.
fn stair(scene: &Scene, axis: &Axis, member: &Member, row: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let trend = axis.trend(row);
    match scene.mode() {
        Mode::Evidence => {
            let columns = axis.trace(scene, member.client, Trace::Evidence);
            let level = Level { columns: &columns, limit: Some(1.0), over: theme.over, theme };
            level.draw(trend, canvas.buffer);
        }
        Mode::Paper => {
            let columns = axis.flags(scene, member.client);
            FlagGrid { columns: &columns, raised: theme.over, theme }.draw(trend, canvas.buffer);
        }
    }
    if let Some(column) = axis.window.column_of(member.onset).filter(|_| trend.height > 1) {
        for position in pen::columns(trend, column, 1).positions() {
            if canvas.buffer[position].symbol() == " " {
                sign(canvas.buffer, position.x, position.y, ONSET, theme.label);
            }
        }
    }
    cursor(scene, axis, trend, canvas);
}

fn why(scene: &Scene, incident: &Incident, room: u16) -> Section {
    let theme = scene.theme;
    let mut lines = Vec::new();
    for (n, sentence) in (1..).zip(words::why(scene, incident)) {
        let style = if sentence.starts_with("DISAGREE") { theme.single } else { theme.text };
        for (at, text) in wrapped(&sentence, room).into_iter().enumerate() {
            let number = if at == 0 { format!("{n} ") } else { "  ".into() };
            lines.push(Line::from_iter([span(number, theme.label), span(text, style)]));
        }
    }
    Section { title: "why".into(), lines }
}

fn posterior(scene: &Scene, incident: &Incident, width: u16) -> Section {
    let theme = scene.theme;
    let mut order: Vec<(usize, f64)> = incident.posterior.iter().copied().enumerate().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let cells = scene.full_name_cells(20);
    // A blank, the figure, and "named" behind the bar.
    let bar = f64::from(width.saturating_sub(cells + 17).clamp(8, 40));
    let lines = order.into_iter().take(12).map(|(client, p)| {
        let root = incident.root == Some(client);
        let (text, style) = if root { (theme.root, theme.root) } else { (theme.text, theme.trend) };
        let name = scene.full_name(client);
        Line::from_iter([
            span(format!("{:<cells$} ", cut(&name, cells), cells = usize::from(cells)), text),
            span(format!("{p:.3} "), theme.text),
            span("█".repeat((p.clamp(0.0, 1.0) * bar).round() as usize), style),
            span(if root { "  named" } else { "" }, theme.label),
        ])
    });
    Section { title: "probability of being the root".into(), lines: lines.collect() }
}

/// What every member shows: at the moment looked at if that lies in the incident, else the most it
/// showed while it lasted.
fn numbers(scene: &Scene, watched: &Watched, incident: &Incident) -> Section {
    let theme = scene.theme;
    let name = usize::from(scene.name_cells(10));
    let end = incident.closed.map_or(scene.newest, |closed| closed.time);
    let during = scene.model.look.filter(|look| (incident.onset..=end).contains(look));
    // Ratios and flags are by the thresholds that stand; what was sent then is history.
    let judged = watched.judged_until().is_some_and(|until| incident.onset <= until);
    let (from, until, title) = match during {
        Some(look) => (look, look, format!("numbers at {}", scene.model.clock.time(look))),
        None => (incident.onset, end, "peak values".to_owned()),
    };
    let title = if judged { format!("{title}, Z re-judged") } else { title };
    let until = until.saturating_add(watched.history.period()).unwrap_or(until);
    let column = watched.history.column(from, until);
    let most = |client: usize, trace: Trace| match watched.bucket(client, trace, &column) {
        Bucket::Values { high, .. } => Some(high),
        Bucket::Missing | Bucket::Outside => None,
    };
    let head =
        format!("{:<name$}  {:>6} {:>6} {:>6}  Z symbol explained", "", "S/b", "r_c/τ", "r_a/τ");
    let mut lines = vec![Line::styled(head, theme.label)];
    for member in &incident.members {
        let client = member.client;
        let times = |trace: Trace| match most(client, trace) {
            Some(value) => {
                let times = ratio(value, scene.limit(client, trace));
                let style = if times > 1.0 { scene.over(trace) } else { theme.text };
                span(format!(" {times:>6.2}"), style)
            }
            None => span(format!(" {:>6}", "?"), theme.missing),
        };
        let flags = match watched.flags(client, &column) {
            FlagCell::Flags { stands, .. } => sign_of(stands),
            FlagCell::Missing | FlagCell::Outside | FlagCell::Grade(_) => "?",
        };
        let symbol =
            most(client, Trace::Level).map_or("?".to_owned(), |level| format!("{level:.0}"));
        let explained =
            member.explained.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        lines.push(Line::from_iter([
            span(scene.padded_name(client), theme.strong),
            times(Trace::Evidence),
            times(Trace::DistanceC),
            times(Trace::DistanceA),
            span(format!("  {flags} {symbol:>6} {explained:>9}"), theme.text),
        ]));
    }
    Section { title, lines }
}

fn operator(scene: &Scene, incident: &Incident, room: u16) -> Section {
    let theme = scene.theme;
    let mut lines = Vec::new();
    let mut add = |text: &str, style: Style| {
        lines.extend(wrapped(text, room).into_iter().map(|text| Line::styled(text, style)));
    };
    add(&words::standing(scene, incident), theme.text);
    if let Some(which) = words::which_sensor(scene, incident, Action::Open) {
        add(&which, theme.label);
    }
    add(&words::check(scene, incident), theme.text);
    for correction in &incident.corrections {
        let name = |client: Option<usize>| client.map_or("?", |client| scene.name(client));
        let time = scene.model.clock.time(correction.time);
        let text = format!("root {} → {} at {time}", name(correction.from), name(correction.to));
        add(&text, theme.text);
    }
    match clean(&incident.note) {
        note if note.is_empty() => add("no note; n writes one", theme.label),
        note => add(&format!("note: {note}"), theme.strong),
    }
    Section { title: "operator".into(), lines }
}
fn history(scene: &Scene, watched: &Watched, incident: &Incident) -> Section {
    let about = |entry: &&Event| entry.incident() == Some(incident.number);
    let lines = watched.log.iter().filter(about).map(|entry| tail::line(scene, entry)).collect();
    Section { title: "what happened".into(), lines }
}
