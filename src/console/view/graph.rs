//! Who influences whom as a picture, for a handful of clients.
//!
//! ```text
//!  ╭───────────╮    10 s · strong    ╭────────────╮     5 s · strong    ╭────────────╮
//!  │ P1 boiler │ ══════════════════▶ │ P2 turbine │ ──────────────────▶ │ P3 storage │
//!  │   ROOT    │                     │   effect   │                     │   effect   │
//!  ╰───────────╯                     ╰────────────╯                     ╰────────────╯
//!        ╰───────────────────────── 15 s · weak ──────────────────────────────▶╯
//!  ═ in this incident   ─ learned   ┄ declared only
//! ```
//!
//! Clients stand so that influences run from left to right as far as they can.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Canvas, columns, cut, fitting, part, width};
use super::scene::Scene;
use super::status::Status;
use crate::console::mouse::Target;
use crate::incident::Incident;

/// The most clients that are drawn as boxes.
pub(crate) const MOST: usize = 6;
/// Cells of a box at most.
const WIDEST: u16 = 26;
/// Rows of a box.
const BOX: u16 = 4;
/// The least room between two boxes: an arrow and a few letters.
const GAP: u16 = 12;
/// The most room between two boxes.
const WIDEST_GAP: u16 = 90;

/// One influence to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    pub delay_s: Option<f64>,
    /// The middle of the delays that incidents have shown.
    pub seen_s: Option<f64>,
    /// By the strongest of all; none where it is only declared.
    pub strength: Option<f64>,
}

impl Edge {
    fn words(&self) -> String {
        let strength = match self.strength {
            Some(strength) if strength >= 0.5 => "strong",
            Some(strength) if strength >= 0.2 => "medium",
            Some(_) => "weak",
            None => "declared",
        };
        match (self.delay_s, self.seen_s) {
            (Some(delay), _) => format!("{delay:.0} s · {strength}"),
            (None, Some(seen)) => format!("{strength} · seen {seen:.0} s"),
            (None, None) => strength.to_owned(),
        }
    }

    /// The delay alone, where there is no room for more.
    fn short_words(&self) -> String {
        match (self.delay_s, self.seen_s) {
            (Some(delay), _) => format!("{delay:.0} s"),
            (None, Some(seen)) => format!("seen {seen:.0} s"),
            (None, None) => String::new(),
        }
    }
}

/// Rows that the picture takes; none where it does not fit into `width` cells.
pub(crate) fn rows(scene: &Scene, edges: &[Edge], width: u16) -> Option<u16> {
    let clients = scene.measured.clients.len();
    let fits = (2..=MOST).contains(&clients) && box_cells(width, clients) >= 9;
    let order = order(clients, edges);
    let below = edges.iter().filter(|edge| !is_next(&order, edge)).count() as u16;
    fits.then_some(BOX + below + 1)
}

fn box_cells(width: u16, clients: usize) -> u16 {
    let clients = clients as u16;
    (width.saturating_sub(2 + GAP * (clients - 1)) / clients).min(WIDEST)
}

/// Clients from left to right: each after those that influence it, as far as there is no circle; the
/// plant's order among equals.
pub(super) fn order(clients: usize, edges: &[Edge]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..clients).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let free = |client: usize| {
            !edges.iter().any(|edge| edge.to == client && left.contains(&edge.from))
        };
        let at = left.iter().position(|client| free(*client)).unwrap_or(0);
        order.push(left.remove(at));
    }
    order
}

fn is_next(order: &[usize], edge: &Edge) -> bool {
    let place = |client: usize| order.iter().position(|other| *other == client);
    matches!((place(edge.from), place(edge.to)), (Some(from), Some(to)) if to == from + 1)
}

/// Draws the picture into `area`; `open` is the incident whose way is lit.
pub(crate) fn draw(
    scene: &Scene,
    edges: &[Edge],
    open: Option<&Incident>,
    area: Rect,
    canvas: &mut Canvas,
) {
    let theme = scene.theme;
    let clients = scene.measured.clients.len();
    let cells = box_cells(area.width, clients);
    let order = order(clients, edges);
    let gap = (area.width.saturating_sub(2 + cells * clients as u16) / (clients as u16 - 1).max(1))
        .clamp(GAP, WIDEST_GAP);
    let left = |place: usize| 1 + place as u16 * (cells + gap);
    for (place, client) in order.iter().enumerate() {
        boxed(scene, *client, columns(part(area, 0, BOX), left(place), cells), canvas);
    }
    let lit = |edge: &Edge| {
        open.is_some_and(|incident| {
            let rank = |client: usize| incident.members.iter().position(|m| m.client == client);
            matches!((rank(edge.from), rank(edge.to)), (Some(from), Some(to)) if from < to)
        })
    };
    let mut y = BOX;
    for edge in edges {
        let style = if lit(edge) { theme.root } else { theme.text };
        let sign = match (lit(edge), edge.strength) {
            (true, _) => "═",
            (false, Some(_)) => "─",
            (false, None) => "┄",
        };
        let place = |client: usize| order.iter().position(|other| *other == client).unwrap_or(0);
        let (from, to) = (place(edge.from), place(edge.to));
        if is_next(&order, edge) {
            let (x, room) = (left(from) + cells + 1, gap.saturating_sub(2));
            let arrow = format!("{}▶", sign.repeat(usize::from(room.saturating_sub(1))));
            canvas.put(area, x, 1, &arrow, style);
            let words = fitting([edge.words(), edge.short_words()], room).unwrap_or_default();
            let at = x + room.saturating_sub(width(&words)) / 2;
            canvas.put(area, at, 0, &words, theme.label);
        } else {
            arc(
                &edge.words(),
                sign,
                [left(from), left(to)].map(|x| x + cells / 2),
                style,
                part(area, y, 1),
                canvas,
            );
            y += 1;
        }
    }
    let key = [("═", "in this incident"), ("─", "learned"), ("┄", "declared only")];
    let key = key.map(|(sign, what)| format!("{sign} {what}")).join("   ");
    canvas.cut(area, 1, y, &key, theme.label);
}

/// An influence that does not lead to the box at the right: a line below the boxes.
fn arc(
    words: &str,
    sign: &str,
    [from, to]: [u16; 2],
    style: Style,
    row: Rect,
    canvas: &mut Canvas,
) {
    let (left, right) = (from.min(to), from.max(to));
    let room = right.saturating_sub(left + 1);
    let forward = to > from;
    let line = sign.repeat(usize::from(room.saturating_sub(1)));
    let line = if forward { format!("╰{line}▶╯") } else { format!("╰◀{line}╯") };
    canvas.put(row, left, 0, &line, style);
    let text = format!(" {words} ");
    if width(&text) + 4 <= room {
        let at = left + 1 + (room - width(&text)) / 2;
        canvas.put(row, at, 0, &text, canvas.theme.label);
    }
}

fn boxed(scene: &Scene, client: usize, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    canvas.hit(area, Target::Client(client));
    let inner = area.width.saturating_sub(2);
    let edge = "─".repeat(usize::from(inner));
    canvas.put(area, 0, 0, &format!("╭{edge}╮"), theme.frame);
    canvas.put(area, 0, BOX - 1, &format!("╰{edge}╯"), theme.frame);
    for y in 1..BOX - 1 {
        canvas.put(area, 0, y, "│", theme.frame);
        canvas.put(area, area.width.saturating_sub(1), y, "│", theme.frame);
    }
    let Some(known) = scene.measured.clients.get(client) else { return };
    let name = format!("{} {}", known.name, known.title);
    let chosen = client == scene.model.chosen;
    let style = if chosen { theme.cursor } else { theme.strong };
    canvas.put(area, 2, 1, &cut(name.trim(), inner.saturating_sub(2)), style);
    let status = Status::of(scene, client);
    let mark = theme.mark(status.state);
    let (words, style) = match status.later() {
        Some(later) => (later, theme.label),
        None => (format!("{} {}", mark.glyph, mark.word), mark.style),
    };
    canvas.put(area, 2, 2, &cut(words.trim(), inner.saturating_sub(2)), style);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: usize, to: usize) -> Edge {
        Edge { from, to, delay_s: Some(10.0), seen_s: Some(35.0), strength: Some(0.9) }
    }

    #[test]
    fn a_cause_stands_left_of_what_it_influences() {
        assert_eq!(order(3, &[edge(2, 0), edge(0, 1)]), [2, 0, 1]);
        assert_eq!(order(3, &[]), [0, 1, 2], "the plant's order where nothing is known");
        let circle = [edge(0, 1), edge(1, 0)];
        assert_eq!(order(2, &circle), [0, 1], "a circle is no reason to stop");
        assert!(is_next(&[0, 1], &circle[0]) && !is_next(&[0, 1], &circle[1]));
    }

    #[test]
    fn a_strength_is_said_in_a_word() {
        assert_eq!(edge(0, 1).words(), "10 s · strong");
        let declared = Edge { strength: None, delay_s: None, ..edge(0, 1) };
        assert_eq!(declared.words(), "declared · seen 35 s");
        assert_eq!(declared.short_words(), "seen 35 s");
        assert_eq!(Edge { seen_s: None, ..declared }.words(), "declared");
    }
}
