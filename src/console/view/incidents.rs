//! Incidents, the newest first: one a root, its effects folded under it.
//!
//! ```text
//! ── incidents  1 open  1 unseen ────────────────────────────────
//!  ▲ #7 10:38:00 ROOT   P1  UNACK  p 0.93  2 effects  4m20s
//!     ↳ 10:38:50 effect P2  +50 s  explained 91 %
//!     ↳ 10:39:30 effect P3  +90 s
//!  ◆ #6 05:02:10 single P3  cleared, acked  20 s
//! ```
//!
//! While an operator looks back the list ends where he looks; the heading counts what wants an answer
//! now.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::pen::{self, Canvas, part, span};
use super::scene::Scene;
use super::status::{delay, lasted, nature, seen_after, state_of};
use crate::console::app::Focus;
use crate::console::mouse::Target;
use crate::console::text::clean;
use crate::console::theme::State;
use crate::incident::{Figures, Incident};

/// Effects shown below an incident before the rest is only counted.
const EFFECTS: usize = 6;

/// Spans of an incident's line that are never left out: whose it is, and what was done about it.
const HEAD: usize = 6;
struct ListRow {
    line: Line<'static>,
    incident: u64,
    effect: bool,
}

/// Rows that the list would fill, its heading included.
pub(crate) fn wanted(scene: &Scene) -> u16 {
    (1 + rows(scene, u16::MAX, 60).len()) as u16
}

/// Draws the list into `area`, with a heading where there is room for one.
pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let rest = if area.height >= 3 { canvas.panel(area, title(scene)) } else { area };
    let rows = rows(scene, area.width, usize::from(rest.height));
    if rows.is_empty() {
        let words = match scene.watched {
            None => "no verdicts: nothing is being decided yet",
            Some(_) => "no incident so far: nothing to answer",
        };
        canvas.cut(rest, 1, 0, words, theme.label);
    }
    let chosen = scene.model.chosen_incident().map(|incident| incident.number);
    let focused = scene.model.focus() == Focus::Incidents;
    for (y, row) in (0..rest.height).zip(rows) {
        canvas.hit(part(rest, y, 1), Target::Incident(row.incident));
        canvas.line(rest, 0, y, &row.line);
        if !row.effect && chosen == Some(row.incident) {
            canvas.put(rest, 0, y, "▸", if focused { theme.cursor } else { theme.label });
        }
    }
}

fn title(scene: &Scene) -> Vec<Span<'static>> {
    let theme = scene.theme;
    let figures = figures(scene);
    let mut title = vec![span("incidents", theme.strong)];
    // Whoever looks back sees the list of then, and counts of now: what is open wants him still.
    let mut now = "";
    if let Some(look) = scene.model.look {
        title.push(span(format!("up to {}", scene.model.clock.time(look)), theme.label));
        now = "now ";
    }
    if scene.watched.is_some() {
        title.push(span(format!("{now}{} open", figures.open), theme.label));
    }
    let unseen = figures.unacknowledged + figures.returned + figures.latched;
    if unseen > 0 {
        title.push(span(format!("{unseen} UNACK"), theme.root));
    }
    if figures.shelved > 0 {
        title.push(span(format!("z {} shelved", figures.shelved), theme.shelved));
    }
    title
}

/// The figures of the header; nothing counts before the first step.
pub(crate) fn figures(scene: &Scene) -> Figures {
    scene.snapshot().map_or_else(Figures::default, |snapshot| snapshot.figures.clone())
}

/// At most `room` rows, the newest incident first; further down where the chosen one stands there.
fn rows(scene: &Scene, width: u16, room: usize) -> Vec<ListRow> {
    let chosen = scene.model.chosen_incident().map(|incident| incident.number);
    let listed: Vec<&Incident> = scene.model.listed().collect();
    let at = listed.iter().position(|i| Some(i.number) == chosen).unwrap_or(0);
    let first = (at + 1).saturating_sub(room);
    let shown = &listed[first..];
    // Every incident has its line before any effect has one.
    let mut spare = room.saturating_sub(shown.len());
    let mut rows = Vec::new();
    for incident in shown.iter().take(room) {
        let line = head(scene, incident, width);
        rows.push(ListRow { line, incident: incident.number, effect: false });
        let open = incident.is_listed() || chosen == Some(incident.number);
        if open && spare > 0 {
            let effects = effects(scene, incident, width, spare.min(EFFECTS));
            spare -= effects.len().min(spare);
            let row = |line| ListRow { line, incident: incident.number, effect: true };
            rows.extend(effects.into_iter().map(row));
        }
    }
    rows.truncate(room);
    rows
}

/// `▲ #7 10:38:00 ROOT   P1  UNACK  p 0.93  2 effects  4m20s`
fn head(scene: &Scene, incident: &Incident, width: u16) -> Line<'static> {
    let (theme, clock) = (scene.theme, scene.model.clock);
    let mark = theme.mark(state_of(incident));
    let over = !incident.is_listed();
    let text = if over { theme.label } else { theme.text };
    let marked = if over { theme.label } else { mark.style };
    let mut spans = vec![
        span(" ", text),
        span(mark.glyph, marked),
        span(format!(" #{:<2} {} ", incident.number, clock.time(incident.onset)), text),
        span(format!("{:<6}", nature(incident)), marked),
        span(format!(" {}", who(scene, incident)), if over { text } else { theme.strong }),
    ];
    let state = incident.alarm.state;
    let seen = seen_after(scene, incident);
    let style = match (state.wants_acknowledgement(), state.is_silenced()) {
        (true, _) => mark.style,
        (false, true) => theme.shelved,
        (false, false) => theme.label,
    };
    let used: usize = spans.iter().map(Span::width).sum();
    let room = width.saturating_sub(used as u16 + 2);
    let short = seen.split(',').next().unwrap_or_default().to_owned();
    let seen = pen::fitting([seen, short.clone()], room).unwrap_or(short);
    let mut add = |words: String, style: Style| spans.push(span(format!("  {words}"), style));
    add(seen, style);
    if let Some(p) = incident.root.and_then(|root| incident.posterior.get(root)) {
        add(format!("p {p:.2}"), text);
    }
    if incident.disagrees()
        && let Some(first) = incident.first_out
    {
        add(format!("first out {} DISAGREE", scene.name(first.client)), theme.single);
    }
    let effects = incident.effects().count();
    if incident.root.is_some() && effects > 0 {
        add(format!("{effects} {}", if effects == 1 { "effect" } else { "effects" }), text);
    }
    if width >= 60 {
        add(lasted(incident, scene.newest), text);
    }
    if !incident.note.is_empty() {
        add(format!("note: {}", clean(&incident.note)), theme.label);
    }
    pen::whole(spans, HEAD, width)
}
pub(crate) fn who(scene: &Scene, incident: &Incident) -> String {
    if let Some(root) = incident.root {
        return scene.name(root).to_owned();
    }
    let names: Vec<&str> = incident.candidates.iter().map(|c| scene.name(*c)).collect();
    if names.is_empty() { "nobody can be named".into() } else { names.join(" or ") }
}

fn effects(scene: &Scene, incident: &Incident, width: u16, room: usize) -> Vec<Line<'static>> {
    let (theme, clock) = (scene.theme, scene.model.clock);
    let mark = theme.mark(State::Effect);
    let members: Vec<_> = incident.effects().collect();
    // Without a root there are only members, no effects.
    let (glyph, word) =
        if incident.root.is_some() { (mark.glyph, mark.word) } else { ("·", "member") };
    let whole = if members.len() > room { room.saturating_sub(1) } else { members.len() };
    let mut lines: Vec<String> = members[..whole]
        .iter()
        .map(|member| {
            let (time, name) = (clock.time(member.onset), scene.name(member.client));
            let mut text =
                format!("    {glyph} {time} {word:<6} {name}  {}", delay(incident.delay_s(member)));
            if let Some(explained) = member.explained.filter(|_| width >= 60) {
                text = format!("{text}  explained {:.0} %", 100.0 * explained);
            }
            if let Some(quiet) = member.quiet_since.filter(|_| width >= 60) {
                text = format!("{text}  quiet since {}", clock.time(quiet));
            }
            text
        })
        .collect();
    if whole < members.len() && room > 0 {
        let rest: Vec<String> = members[whole..]
            .iter()
            .map(|m| format!("{} {}", scene.name(m.client), delay(incident.delay_s(m))))
            .collect();
        let more = if whole == 0 { String::new() } else { format!("{} more: ", rest.len()) };
        lines.push(format!("    {glyph} {more}{}", rest.join(", ")));
    }
    lines.into_iter().map(|text| Line::styled(text, theme.effect)).collect()
}
