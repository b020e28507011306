//! Who influences whom: learned from nominal operation, declared by the session, shown by incidents.
//!
//! ```text
//! ── influence  rows are causes, columns effects ──────────────
//!           P1    P2    P3
//!  ▲ P1      \   ██9   ▒▒4      the darker the stronger; d is only declared
//!    P2             \    d
//! ── P1 → ──────────────────────────────────────────────
//!  P2   after 25 s, strength 0.031 (12.4 standard errors)   felt 3 of 3 incidents, 50 s later
//! ── incidents that began at P1 ────────────────────────
//!  #7 10:38:00  P1 ─50 s▶ P2 ─40 s▶ P3
//! ── states that move together ─────────────────────────
//! ── how #7 spread ─────────────────────────────────────
//!  ▲ P1  ▁▁▁▂▁▁▁│▅███████████████   ROOT    10:38:00
//! ── scale ─────────────────────────────────────────────
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::graph::{self, Edge};
use super::pen::{self, Canvas, MatrixCell, Section, cut, part, span, wrapped};
use super::rows::{Quantity, client_name, quantity as quantity_of};
use super::scene::Scene;
use super::status::{after, delay};
use super::together;
use super::{axis, incident, incidents};
use crate::console::mouse::Target;
use crate::console::text::clean;
use crate::console::watched::Watched;
use crate::incident::Incident;
use crate::server::influence::InfluenceGraph;

/// Rows that what is known of the chosen client has for itself before states are shown too.
const ABOUT: u16 = 6;
/// Cells of a strength: two shades and a digit, and a gap.
const CELL: u16 = 4;
/// Rows that the trend of a client gets at most.
const TALLEST: u16 = 10;

/// What incidents have shown of one pair.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Seen {
    roots: usize,
    felt: usize,
    delay_s: f64,
}

impl Seen {
    fn of(incidents: &[Incident], from: usize, to: usize) -> Self {
        let rooted = incidents.iter().filter(|incident| incident.root == Some(from));
        let roots = rooted.clone().count();
        let mut delays: Vec<f64> =
            rooted.filter_map(|incident| Some(incident.delay_s(incident.member(to)?))).collect();
        delays.sort_by(f64::total_cmp);
        let delay_s = delays.get(delays.len() / 2).copied().unwrap_or(0.0);
        Self { roots, felt: delays.len(), delay_s }
    }
}
enum Source<'a> {
    Learned(&'a InfluenceGraph),
    Counted(&'a [Incident]),
}

impl<'a> Source<'a> {
    fn of(scene: &Scene<'a>, watched: &'a Watched) -> Self {
        match scene.graph().filter(|graph| graph.unlearned.is_none()) {
            Some(graph) => Self::Learned(graph),
            None => Self::Counted(&watched.incidents),
        }
    }

    /// How strong one client's influence on another is, of the strongest; none where none is known.
    fn strength(&self, from: usize, to: usize) -> Option<f64> {
        match self {
            Self::Learned(graph) => {
                let strengths = graph.pairs.iter().map(|pair| pair.strength);
                let pair = graph.between(from, to).filter(|pair| pair.learned)?;
                Some(pair.strength / strengths.fold(f64::MIN_POSITIVE, f64::max))
            }
            Self::Counted(incidents) => {
                let seen = Seen::of(incidents, from, to);
                (seen.felt > 0).then(|| seen.felt as f64 / seen.roots as f64)
            }
        }
    }

    /// Every influence that is known or declared.
    fn edges(&self, scene: &Scene, incidents: &[Incident]) -> Vec<Edge> {
        let clients = scene.measured.clients.len();
        let pairs = (0..clients).flat_map(|from| (0..clients).map(move |to| (from, to)));
        let edge = |(from, to): (usize, usize)| {
            let pair = scene.graph().and_then(|graph| graph.between(from, to));
            let declared = pair.is_some_and(|pair| pair.declared);
            let strength = self.strength(from, to);
            let delay_s = match self {
                Self::Learned(graph) => {
                    let steps = pair.and_then(|pair| pair.delay_steps);
                    steps.map(|steps| f64::from(steps) * graph.period_s)
                }
                Self::Counted(incidents) => {
                    let seen = Seen::of(incidents, from, to);
                    (seen.felt > 0).then_some(seen.delay_s)
                }
            };
            let is_known = from != to && (declared || strength.is_some());
            let seen = Seen::of(incidents, from, to);
            let seen_s = (seen.felt > 0).then_some(seen.delay_s);
            is_known.then_some(Edge { from, to, delay_s, seen_s, strength })
        };
        pairs.filter_map(edge).collect()
    }

    fn words(&self) -> String {
        match self {
            Self::Learned(_) => "learned from nominal operation".into(),
            Self::Counted([_]) => "as one incident has shown it".into(),
            Self::Counted(incidents) => format!("as {} incidents have shown it", incidents.len()),
        }
    }

    fn scale(&self) -> &'static str {
        match self {
            Self::Learned(_) => "░ ▒ ▓ █ strength by the strongest, digit tenths   d declared only",
            Self::Counted(_) => "░ ▒ ▓ █ share of its incidents with effects   d declared only",
        }
    }
}

/// Draws the view into `area`, its lower part scrolled by `skip` lines.
pub(crate) fn draw(scene: &Scene, skip: usize, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let Some(watched) = scene.watched else {
        let rest = canvas.panel(area, [span("influence", theme.strong)]);
        canvas.put(rest, 1, 0, "nothing has been decided yet", theme.label);
        return;
    };
    let source = Source::of(scene, watched);
    let edges = source.edges(scene, &watched.incidents);
    let picture = graph::rows(scene, &edges, area.width).filter(|rows| rows + 8 <= area.height);
    let how =
        if picture.is_some() { "from left to right" } else { "rows are causes, columns effects" };
    let title =
        [span("influence", theme.strong), span(how, theme.text), span(source.words(), theme.label)];
    let mut rest = canvas.panel(area, title);
    if let Some(rows) = picture {
        let open = shown_incident(scene).filter(|incident| incident.is_open());
        graph::draw(scene, &edges, open, pen::take(&mut rest, rows), canvas);
    } else {
        let rows = (scene.measured.clients.len() as u16 + 1).min(rest.height * 2 / 3);
        matrix(scene, &source, pen::take(&mut rest, rows), canvas);
    }
    if rest.height >= 6 && picture.is_none() {
        let scale = [span("scale", theme.strong), span(source.scale(), theme.label)];
        canvas.panel(pen::take_last(&mut rest, 1), scale);
    }
    let states = together::rows(scene, rest, ABOUT);
    let (lines, courses) = (about(scene, watched, rest.width), courses(scene));
    let wanted = (lines.len() as u16 + 1).min(rest.height - states);
    let mut above = pen::take(&mut rest, wanted);
    let spare = rest.height - states;
    let name = scene.full_name(scene.model.chosen);
    let shown_by = shown_incident(scene);
    if spare >= 2 && !courses.is_empty() {
        let section = Section { title: format!("incidents that began at {name}"), lines: courses };
        let rows = spare.min(section.lines.len() as u16 + 1);
        canvas.sections(&[section], 0, pen::take(&mut rest, rows));
    }
    together::draw(scene, pen::take(&mut rest, states), canvas);
    below(scene, shown_by, &edges, rest, canvas);
    let skip = skip.min(lines.len().saturating_sub(usize::from(above.height.saturating_sub(1))));
    above = canvas.panel(above, [span(name, theme.cursor), span("→", theme.text)]);
    for (y, (text, style)) in (0..above.height).zip(lines.into_iter().skip(skip)) {
        canvas.cut(above, 1, y, &text, style);
    }
}

/// The incident that the view is about: the open one, else the newest that began at the chosen client.
fn shown_incident<'a>(scene: &Scene<'a>) -> Option<&'a Incident> {
    let known = || scene.model.listed().filter(|incident| !scene.is_found_later(incident));
    let open = known().find(|incident| incident.is_open());
    open.or_else(|| known().find(|incident| incident.root == Some(scene.model.chosen)))
}

/// What is left of a large screen: how trouble spread, or how all clients stand while there is none.
fn below(scene: &Scene, shown: Option<&Incident>, edges: &[Edge], area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let clients = scene.measured.clients.len() as u16;
    let rows = shown.map_or(clients, |incident| incident.members.len() as u16).max(1);
    if area.height < 2 * rows + 2 {
        return;
    }
    if let Some(incident) = shown {
        let title = format!("how #{} spread", incident.number);
        let rest = canvas.panel(area, [span(title, theme.strong)]);
        incident::stairs(scene, incident, rest, canvas);
        return;
    }
    let quantity = Quantity::order(scene.mode())[0];
    let title = [span("all clients", theme.strong), span(quantity.long_name(), theme.label)];
    let mut rest = canvas.panel(area, title);
    let name = scene.full_name_cells(20);
    let axis = scene.axis(name + 4, rest.width.saturating_sub(name + 5));
    let height = ((rest.height - 1) / rows).clamp(2, TALLEST);
    for client in graph::order(clients.into(), edges) {
        let row = pen::take(&mut rest, height - height % 2);
        canvas.hit(row, Target::Client(client));
        canvas.put(row, 3, row.height - 1, &cut(&scene.full_name(client), name), theme.text);
        quantity_of(scene, &axis, client, quantity, axis.trend(row), canvas);
    }
    axis::draw(scene, &axis, pen::take(&mut rest, 1), canvas);
}

/// The matrix; where not all clients fit, those around the chosen one.
fn matrix(scene: &Scene, source: &Source, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let clients = scene.measured.clients.len();
    let name = scene.name_cells(10);
    let cell = CELL.max(name.min(7) + 1);
    let margin = 4 + name;
    let columns = usize::from(area.width.saturating_sub(margin + 1) / cell).min(clients);
    let rows = usize::from(area.height.saturating_sub(1)).min(clients);
    let chosen = scene.model.chosen;
    let (left, top) = ((chosen + 1).saturating_sub(columns), (chosen + 1).saturating_sub(rows));
    let place = |column: usize| margin + (column - left) as u16 * cell;
    for to in left..left + columns {
        let style = if to == chosen { theme.strong } else { theme.label };
        canvas.right(area, place(to) + cell - 1, 0, &cut(scene.name(to), cell - 1), style);
    }
    for (y, from) in (1..area.height).zip(top..top + rows) {
        let row = part(area, y, 1);
        canvas.hit(row, Target::Client(from));
        client_name(scene, from, name, theme.text, row, canvas);
        for to in left..left + columns {
            let end = place(to) + cell - 1;
            let pair = scene.graph().and_then(|graph| graph.between(from, to));
            let declared = pair.is_some_and(|pair| pair.declared);
            let cell = match source.strength(from, to) {
                _ if from == to => MatrixCell::Own,
                Some(strength) if declared => MatrixCell::Strength(strength, theme.strong),
                Some(strength) => MatrixCell::Strength(strength, theme.trend),
                None if declared => MatrixCell::Declared,
                None => MatrixCell::Nothing,
            };
            canvas.matrix_cell(row, end, 3, cell);
        }
    }
}

/// How trouble that began at the chosen client spread, incident by incident, the newest first.
fn courses(scene: &Scene) -> Vec<Line<'static>> {
    let (theme, clock) = (scene.theme, scene.model.clock);
    let began = scene.model.listed().filter(|incident| incident.root == Some(scene.model.chosen));
    let line = |incident: &Incident| {
        let spread = incidents::chain(scene, incident);
        let spread = spread.unwrap_or_else(|| "no other client is affected".to_owned());
        let when = format!("#{:<3} {}  ", incident.number, clock.time(incident.onset));
        let style = if incident.is_open() { theme.strong } else { theme.text };
        Line::from_iter([span(when, theme.label), span(spread, style)])
    };
    began.map(line).collect()
}

fn about(scene: &Scene, watched: &Watched, width: u16) -> Vec<(String, Style)> {
    let theme = scene.theme;
    let (chosen, clients) = (scene.model.chosen, scene.measured.clients.len());
    let name = usize::from(scene.name_cells(10));
    let mut lines = Vec::new();
    for to in (0..clients).filter(|to| *to != chosen) {
        let text = format!("{}{}", learned(scene, to), felt(watched, chosen, to));
        let room = width.saturating_sub(name as u16 + 4);
        for (at, text) in wrapped(&text, room).into_iter().enumerate() {
            let whose = if at == 0 { scene.name(to) } else { "" };
            lines.push((format!("{whose:<name$}  {text}"), theme.text));
        }
    }
    lines.extend(paths(scene, watched).into_iter().map(|text| (text, theme.text)));
    lines.push((String::new(), theme.text));
    let words = match scene.graph().map(|graph| &graph.unlearned) {
        Some(None) => {
            "Strength: by how much the loss on unseen nominal data grows without the influence. It says \
             how an effect may have come about, not that it did. What never moves in nominal operation \
             cannot be learned from it."
                .to_owned()
        }
        Some(Some(why)) => format!(
            "Nothing was learned: {}. What is shown are counts of this run's incidents: how trouble \
             travelled, not that it must.",
            clean(why)
        ),
        None => "What is shown are counts of this run's incidents.".to_owned(),
    };
    lines.extend(wrapped(&words, width.saturating_sub(2)).into_iter().map(|l| (l, theme.label)));
    lines
}
fn learned(scene: &Scene, to: usize) -> String {
    let Some(graph) = scene.graph() else { return String::new() };
    let Some(pair) = graph.between(scene.model.chosen, to) else { return String::new() };
    if graph.unlearned.is_some() {
        return if pair.declared { "declared   ".into() } else { String::new() };
    }
    let known = match (pair.learned, pair.is_evident(), pair.delay_steps) {
        (true, _, Some(steps)) => format!("after {:.0} s", f64::from(steps) * graph.period_s),
        (true, _, None) => "learned, delay not known".to_owned(),
        (false, true, _) => "left out: it closes a cycle".to_owned(),
        (false, false, _) => "no evidence".to_owned(),
    };
    let declared = if pair.declared { ", declared" } else { "" };
    let (strength, errors) = (pair.strength, pair.evidence);
    format!("{known}, strength {strength:.4} ({errors:.1} standard errors){declared}   ")
}

fn felt(watched: &Watched, from: usize, to: usize) -> String {
    match Seen::of(&watched.incidents, from, to) {
        Seen { roots: 0, .. } => "no incident began there so far".to_owned(),
        Seen { felt: 0, roots, .. } => format!("affected in none of {roots} incidents"),
        Seen { roots, felt, delay_s } => {
            format!("affected in {felt} of {roots} incidents, {}", after(delay_s))
        }
    }
}

/// The ways of the last incident that began at the chosen client, expected and seen.
fn paths(scene: &Scene, watched: &Watched) -> Vec<String> {
    let chosen = scene.model.chosen;
    let Some(last) = watched.incidents.iter().rev().find(|i| i.root == Some(chosen)) else {
        return Vec::new();
    };
    last.effects()
        .map(|member| {
            let seen = delay(last.delay_s(member));
            let way = scene.graph().and_then(|graph| graph.path(chosen, member.client));
            let Some(way) = way else {
                let name = scene.name(member.client);
                return format!("#{}: {name} seen {seen}, by no known way", last.number);
            };
            let names: Vec<&str> = way.clients.iter().map(|client| scene.name(*client)).collect();
            let expected = way
                .delay_s
                .map_or_else(|| "delay not known".to_owned(), |s| format!("expected {}", delay(s)));
            format!("#{}: {}  {expected}, seen {seen}", last.number, names.join(" → "))
        })
        .collect()
}
