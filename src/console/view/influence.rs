//! Who influences whom: what incidents of this run have shown.
//!
//! ```text
//! ── influence  rows cause, columns feel ──────────────
//!           P1    P2    P3
//!  ▲ P1      \   ██9   ▒▒4
//!    P2             \  ░░2
//! ── P1 → ──────────────────────────────────────────────
//!  P2   felt it in 3 of 3 incidents, after +50 s
//! ── scale  ░ below .3  ▒ .3  ▓ .5  █ .8 and up ────────
//! ```

use jiff::SignedDuration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{self, cut, heading, part, put, put_right, wrapped};
use super::scene::Scene;
use super::verdict::{Verdict, delay};
use crate::console::mouse::{Hit, Target};
use crate::console::watched::Watched;
use crate::console::widget::heat;
use crate::incident::Incident;

/// Cells of a strength: two shades and a digit, and a gap.
const CELL: u16 = 4;

/// What incidents have shown of one pair.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Seen {
    /// Incidents that began at the one.
    roots: usize,
    /// Of these, felt by the other.
    felt: usize,
    /// Median of how long it took.
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

    fn share(self) -> f64 {
        if self.roots == 0 { 0.0 } else { self.felt as f64 / self.roots as f64 }
    }
}

/// Draws the view into `area`, its lower part scrolled by `skip` lines.
pub fn draw(scene: &Scene, skip: usize, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let theme = scene.theme;
    let mut rest = area;
    let counted = scene.watched.map_or(0, |watched| watched.incidents.len());
    let said = format!("as {counted} incidents have shown it");
    let parts = [
        ("influence", theme.strong),
        ("rows cause, columns feel", theme.text),
        (said.as_str(), theme.label),
    ];
    heading(buffer, pen::take(&mut rest, 1), &parts, theme);
    let Some(watched) = scene.watched else {
        put(buffer, rest, 1, 0, "nothing has been decided yet", theme.label);
        return;
    };
    let clients = scene.measured.clients.len();
    let rows = (clients as u16 + 1).min(rest.height * 2 / 3);
    matrix(scene, watched, pen::take(&mut rest, rows), buffer, hits);
    let scale = [
        ("scale", theme.strong),
        ("░ below .3", theme.label),
        ("▒ .3", theme.label),
        ("▓ .5", theme.label),
        ("█ .8 and up: share of its incidents that were felt", theme.label),
    ];
    if rest.height >= 6 {
        heading(buffer, pen::take_last(&mut rest, 1), &scale, theme);
    }
    let lines = about(scene, watched, rest.width);
    let skip = skip.min(lines.len().saturating_sub(usize::from(rest.height.saturating_sub(1))));
    let name = scene.name(scene.model.chosen);
    heading(buffer, pen::take(&mut rest, 1), &[(name, theme.cursor), ("→", theme.text)], theme);
    for (y, (text, style)) in (0..rest.height).zip(lines.into_iter().skip(skip)) {
        put(buffer, rest, 1, y, &cut(&text, rest.width.saturating_sub(1)), style);
    }
}

/// The matrix; where not all clients fit, those around the chosen one.
fn matrix(scene: &Scene, watched: &Watched, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
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
        put_right(buffer, area, place(to) + cell - 1, 0, &cut(scene.name(to), cell - 1), style);
    }
    for (y, from) in (1..area.height).zip(top..top + rows) {
        let row = part(area, y, 1);
        hits.push(Hit { area: row, target: Target::Client(from) });
        let mark = theme.mark(Verdict::of(scene, from).state);
        put(buffer, row, 0, 0, if from == chosen { "▸" } else { " " }, theme.strong);
        put(buffer, row, 1, 0, mark.glyph, mark.style);
        let style = if from == chosen { theme.cursor } else { theme.text };
        put(buffer, row, 3, 0, &cut(scene.name(from), name), style);
        for to in left..left + columns {
            let end = place(to) + cell - 1;
            if from == to {
                put_right(buffer, row, end, 0, "\\", theme.frame);
                continue;
            }
            let seen = Seen::of(&watched.incidents, from, to);
            if seen.felt == 0 {
                put_right(buffer, row, end, 0, "·", theme.frame);
                continue;
            }
            let cells = Rect { x: row.x.saturating_add(end.saturating_sub(3)), width: 3, ..row };
            heat::draw(seen.share(), theme.trend, cells.intersection(row), buffer);
        }
    }
}

/// What is known of the chosen client's influence, and of influence at all.
fn about(scene: &Scene, watched: &Watched, width: u16) -> Vec<(String, Style)> {
    let theme = scene.theme;
    let (chosen, clients) = (scene.model.chosen, scene.measured.clients.len());
    let name = usize::from(scene.name_cells(10));
    let mut lines = Vec::new();
    for to in (0..clients).filter(|to| *to != chosen) {
        let seen = Seen::of(&watched.incidents, chosen, to);
        let text = match seen {
            Seen { roots: 0, .. } => "no incident began there so far".to_owned(),
            Seen { felt: 0, roots, .. } => format!("has not felt any of {roots}"),
            Seen { roots, felt, delay_s } => {
                format!("felt {felt} of {roots} incidents, {} later in the middle", delay(delay_s))
            }
        };
        lines.push((format!("{:<name$}  {text}", scene.name(to)), theme.text));
    }
    if let Some(last) = watched.incidents.iter().rev().find(|i| i.root == Some(chosen)) {
        let way: Vec<String> = last
            .effects()
            .map(|m| format!("{} {}", scene.name(m.client), delay(last.delay_s(m))))
            .collect();
        if !way.is_empty() {
            lines.push((
                format!("last: #{} {} → {}", last.number, scene.name(chosen), way.join(" → ")),
                theme.text,
            ));
        }
    }
    lines.push((String::new(), theme.text));
    let period = watched.history.period();
    let words = format!(
        "These are counts of what happened here, step by step of {}: they show how trouble travelled, not \
         that it must. Influence learned from nominal data is shown here once the models hold it.",
        step(period)
    );
    lines.extend(wrapped(&words, width.saturating_sub(2)).into_iter().map(|l| (l, theme.label)));
    lines
}

fn step(period: SignedDuration) -> String {
    format!("{} s", period.as_secs_f64())
}
