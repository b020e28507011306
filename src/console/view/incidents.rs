//! Incidents, the newest first: one a root, its effects folded under it.
//!
//! ```text
//! ── incidents  1 open  1 not acknowledged  P1 ─50 s▶ P2 ─40 s▶ P3 ──
//!  ▲ #7 10:38:00 ROOT   P1  not acknowledged  p 0.93  2 effects  4m20s
//!     ↳ 10:38:50 effect P2 turbine  +50 s  explained 91 %
//!     ↳ 10:39:30 effect P3 pumped storage  +90 s
//!  ◆ #6 05:02:10 single P3  back to normal  20 s
//! ```
//!
//! While an operator looks back the list ends where he looks, and everything stands as it did then;
//! what was learned later stands in brackets.

use std::fmt::Write as _;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::pen::{self, Canvas, part, span};
use super::scene::Scene;
use super::status::{NOT_ACKNOWLEDGED, delay, lasted, nature, seen_after, state_of};
use crate::console::app::Focus;
use crate::console::mouse::Target;
use crate::console::text::clean;
use crate::console::theme::State;
use crate::incident::Incident;

/// Effects shown below an incident before the rest is only counted.
const EFFECTS: usize = 6;

/// Spans of an incident's line that are never left out: whose it is, and what was done about it.
const HEAD: usize = 6;
/// From this width on, a line has room for the client's whole name.
const WHOLE_NAMES: u16 = 90;
/// Below this width a heading with a chain says "not acknowledged" in short.
const ROOMY: u16 = 80;

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
    let rest = if area.height >= 3 { canvas.panel(area, title(scene, area.width)) } else { area };
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

fn title(scene: &Scene, width: u16) -> Vec<Span<'static>> {
    let theme = scene.theme;
    let figures = scene.figures();
    let focused = scene.model.focus() == Focus::Incidents;
    let mut title = vec![span("incidents", if focused { theme.cursor } else { theme.strong })];
    if let Some(look) = scene.model.look {
        title.push(span(format!("as of {}", scene.model.clock.time(look)), theme.label));
    }
    if scene.watched.is_some() {
        title.push(span(format!("{} open", figures.open), theme.label));
    }
    let open = scene.model.listed().find(|i| i.is_open() && !scene.is_found_later(i));
    let chain = open.and_then(|incident| chain(scene, incident));
    let unseen = figures.unacknowledged + figures.returned + figures.latched;
    if unseen > 0 {
        let [long, short] = NOT_ACKNOWLEDGED;
        let words = if chain.is_some() && width < ROOMY { short } else { long };
        title.push(span(format!("{unseen} {words}"), theme.root));
    }
    if figures.shelved > 0 {
        title.push(span(format!("z {} shelved", figures.shelved), theme.shelved));
    }
    title.extend(chain.map(|chain| span(format!(" {chain}"), theme.strong)));
    title
}

/// `P1 ─10 s▶ P2 ─5 s▶ P3`: the root, and its effects in the order they came, each with the time since
/// the one before.
pub(crate) fn chain(scene: &Scene, incident: &Incident) -> Option<String> {
    let root = incident.root?;
    let mut text = scene.name(root).to_owned();
    let mut before_s = 0.0;
    for member in incident.effects().take(4) {
        let delay_s = incident.delay_s(member);
        let _ = write!(text, " ─{:.0} s▶ {}", delay_s - before_s, scene.name(member.client));
        before_s = delay_s;
    }
    incident.effects().next().map(|_| text)
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

/// `▲ #7 10:38:00 ROOT   P1  not acknowledged  p 0.93  2 effects  4m20s`
fn head(scene: &Scene, incident: &Incident, width: u16) -> Line<'static> {
    let (theme, clock) = (scene.theme, scene.model.clock);
    let mark = theme.mark(state_of(incident));
    let over = !incident.is_listed() || scene.is_found_later(incident);
    let text = if over { theme.label } else { theme.text };
    let marked = if over { theme.label } else { mark.style };
    let root = incident.root.filter(|_| width >= WHOLE_NAMES);
    let name = root.map_or_else(|| who(scene, incident), |root| scene.full_name(root));
    let mut spans = vec![
        span(" ", text),
        span(mark.glyph, marked),
        span(format!(" #{:<2} {} ", incident.number, clock.time(incident.onset)), text),
        span(format!("{:<6}", nature(incident)), marked),
        span(format!(" {name}"), if over { text } else { theme.strong }),
    ];
    let state = incident.alarm.state;
    let seen = seen_after(scene, incident);
    let style = match (state.wants_acknowledgement(), state.is_silenced()) {
        _ if scene.is_found_later(incident) => theme.label,
        (true, _) => mark.style,
        (false, true) => theme.shelved,
        (false, false) => theme.label,
    };
    let used: usize = spans.iter().map(Span::width).sum();
    let room = width.saturating_sub(used as u16 + 2);
    let truth = scene.model.truth_shown.then(|| truth(scene, incident));
    // The truth was asked for: it is shortened before it is left out.
    let short = truth.as_ref().map_or(0, |[.., short]| pen::width(short) + 2);
    let first = seen.split(',').next().unwrap_or_default().to_owned();
    let brief = if scene.is_found_later(incident) {
        "(later)".to_owned()
    } else {
        first.replace(NOT_ACKNOWLEDGED[0], NOT_ACKNOWLEDGED[1])
    };
    let room = room.saturating_sub(short);
    let seen = pen::fitting([seen, first, brief.clone()], room).unwrap_or(brief);
    let room = (room + short).saturating_sub(pen::width(&seen) + 2);
    let mut add = |words: String, style: Style| spans.push(span(format!("  {words}"), style));
    add(seen, style);
    if let Some(words) = truth.and_then(|words| pen::fitting(words, room)) {
        add(words, theme.truth);
    }
    if let Some(words) = above(scene, incident) {
        add(words, text);
    }
    if let Some(words) = probability(incident, |client| scene.name(client)) {
        add(words, text);
    }
    if incident.disagrees()
        && let Some(first) = incident.first_out
    {
        add(format!("{} alarmed first: DISAGREE", scene.name(first.client)), theme.single);
    }
    let effects = incident.effects().count();
    if incident.root.is_some() && effects > 0 {
        add(format!("{effects} {}", if effects == 1 { "effect" } else { "effects" }), text);
    }
    if width >= 60 {
        add(lasted(incident, scene.moment), text);
    }
    if !incident.note.is_empty() {
        add(format!("note: {}", clean(&incident.note)), theme.label);
    }
    pen::whole(spans, HEAD, width)
}

/// The probability of the root. A confirmed root keeps its name, also where the evidence points to another
/// client by now: then that client stands here.
fn probability<'n>(incident: &Incident, name: impl Fn(usize) -> &'n str) -> Option<String> {
    let of = |client: usize| incident.posterior.get(client).map(|p| format!("p {p:.2}"));
    match incident.second_thought() {
        Some(now) => of(now).map(|p| format!("now {} {p}", name(now))),
        None => incident.root.and_then(of),
    }
}

/// What the data set says about an incident, in words and ever shorter: which attack it is, and
/// whether its root is right.
pub(crate) fn truth(scene: &Scene, incident: &Incident) -> [String; 3] {
    let Some(event) = scene.measured.truth.behind(incident.opened, scene.model.tail()) else {
        let known = scene.measured.truth.is_known();
        let words = if known { "truth: no attack" } else { "truth: not known" };
        return [words; 3].map(str::to_owned);
    };
    let id = if event.id.is_empty() { "labelled" } else { &event.id };
    let right = incident.root.filter(|_| !event.origins.is_empty()).map(|root| {
        let named = event.origins.iter().any(|origin| origin == scene.name(root));
        if named { "right" } else { "wrong" }
    });
    let judged = right.map_or("root not known".to_owned(), |right| format!("root {right}"));
    let origins = event.origins.join(" + ");
    let long = format!("truth: {id} {origins}, {judged}");
    let shortest = format!("truth: {id}, {}", right.unwrap_or("not known"));
    [long, format!("truth: {id}, {judged}"), shortest]
}

pub(crate) fn who(scene: &Scene, incident: &Incident) -> String {
    if let Some(root) = incident.root {
        return scene.name(root).to_owned();
    }
    let names: Vec<&str> = incident.candidates.iter().map(|c| scene.name(*c)).collect();
    if names.is_empty() { "no client can be named".into() } else { names.join(" or ") }
}

/// A second name beside the root, of a client above it that shows nothing itself: `or P1 above it`.
pub(crate) fn above(scene: &Scene, incident: &Incident) -> Option<String> {
    let source = silent_source(incident)?;
    Some(format!("or {} above it", scene.name(source)))
}

/// The client above the root that may be the root too.
pub(crate) fn silent_source(incident: &Incident) -> Option<usize> {
    let root = incident.root?;
    incident.silent_source.filter(|source| *source != root)
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
            let mut end = format!("  {}", delay(incident.delay_s(member)));
            if let Some(explained) = member.explained.filter(|_| width >= 60) {
                let _ = write!(end, "  explained {:.0} %", 100.0 * explained);
            }
            if let Some(quiet) = member.quiet_since.filter(|_| width >= 60) {
                let _ = write!(end, "  quiet since {}", clock.time(quiet));
            }
            let begin = format!("    {glyph} {} {word:<6} ", clock.time(member.onset));
            let name = scene.name(member.client).to_owned();
            let names = [scene.full_name(member.client), name.clone()];
            let room = width.saturating_sub(pen::width(&begin) + pen::width(&end));
            format!("{begin}{}{end}", pen::fitting(names, room).unwrap_or(name))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::Origin;

    #[test]
    fn a_confirmed_root_stands_without_a_probability_once_the_evidence_is_of_another() {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let mut incident = Incident::new(1, Origin::Decided, (at, 0), at);
        let said = |incident: &Incident| probability(incident, |client| ["P1", "P2"][client]);
        assert_eq!(said(&incident), None);
        incident.root = Some(0);
        incident.posterior = vec![0.25, 0.75];
        assert_eq!(said(&incident).as_deref(), Some("p 0.25"));
        incident.would_now_say = Some(1);
        assert_eq!(
            said(&incident).as_deref(),
            Some("p 0.25"),
            "the root still follows the evidence"
        );
        incident.frozen = true;
        assert_eq!(said(&incident).as_deref(), Some("now P2 p 0.75"));
    }
}
