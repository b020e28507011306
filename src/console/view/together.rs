//! How states of different clients move together, by whose estimate of them it is.
//!
//! ```text
//! ── states that move together  tenths of the correlation, - opposite ──────
//!  proprietary 0.31    augmented 0.33      server 0.35         oracle not made
//!       P1    P2            P1    P2            P1    P2
//!  P1    \ -▒3 ▓6     P1    \ -▒3 ▓6     P1    \ -▒3 ▓6
//!      -▒3   \  ·         -▒3   \  ·         -▒3   \  ·
//!  As states reached the server in 5760 rounds at the end of training. …
//! ```
//!
//! Every state where there is room for it, else a mean for every pair of clients, else one mean for
//! each estimator.

use ratatui::layout::Rect;

use super::pen::{self, Canvas, MatrixCell, columns, cut, fitting, part, span, wrapped};
use super::scene::Scene;
use crate::privacy::Spend;
use crate::server::{Estimator, Map, StateCorrelation};

/// Cells of a correlation of two states, its sign first, and of two clients after a gap.
const STATE: u16 = 3;
const PAIR: u16 = 3;
/// What is below this is no more than a dot.
const FAINT: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    States,
    Clients,
    Means,
}

/// Rows of a picture in an area that must keep `least` rows for other things; none where nothing is
/// known.
pub(crate) fn rows(scene: &Scene, area: Rect, least: u16) -> u16 {
    let Some(together) = scene.together() else { return 0 };
    let room = area.height.saturating_sub(least);
    let notes = notes(scene, together, area.width).len() as u16;
    let needed = |detail| height(detail, together) + notes;
    let fits = [Detail::States, Detail::Clients, Detail::Means].into_iter().find(|detail| {
        needed(*detail) <= room && is_wide_enough(scene, *detail, together, area.width)
    });
    fits.map_or(if room >= 2 { 2 } else { 0 }, needed)
}

/// Rows without the notes: a heading, the estimators, and the matrix with its names.
fn height(detail: Detail, together: &StateCorrelation) -> u16 {
    match detail {
        Detail::States => 3 + together.states.iter().sum::<usize>() as u16,
        Detail::Clients => 3 + together.states.len() as u16,
        Detail::Means => 2,
    }
}

fn is_wide_enough(scene: &Scene, detail: Detail, together: &StateCorrelation, cells: u16) -> bool {
    let (name, slot) = (name_cells(scene), slot(cells));
    match detail {
        Detail::States => name + STATE * together.states.iter().sum::<usize>() as u16 <= slot,
        Detail::Clients => name + PAIR * together.states.len() as u16 <= slot,
        Detail::Means => true,
    }
}

fn slot(cells: u16) -> u16 {
    (cells / Estimator::ALL.len() as u16).saturating_sub(2)
}

fn name_cells(scene: &Scene) -> u16 {
    scene.name_cells(6) + 2
}

/// Draws into `area`, which has the height that [`rows`] asked for.
pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let Some(together) = scene.together() else { return };
    let theme = scene.theme;
    let notes = notes(scene, together, area.width);
    let without = area.height.saturating_sub(notes.len() as u16);
    let detail = [Detail::States, Detail::Clients]
        .into_iter()
        .find(|detail| height(*detail, together) == without)
        .filter(|detail| is_wide_enough(scene, *detail, together, area.width))
        .unwrap_or(Detail::Means);
    let scale = match detail {
        Detail::States => {
            "correlation in tenths, - opposite; beside each name the mean between clients"
        }
        Detail::Clients => "mean |correlation| of two clients, tenths",
        Detail::Means => "mean |correlation| between clients",
    };
    let title = [span("states that move together", theme.strong), span(scale, theme.label)];
    let mut rest = canvas.panel(area, title);
    if detail == Detail::Means {
        let means = Estimator::ALL.map(|of| title_of(together, of)).join("  ");
        let row = pen::take(&mut rest, 1);
        canvas.cut(row, 1, 0, &means, theme.text);
    } else {
        let maps = pen::take(&mut rest, height(detail, together) - 1);
        let cells = slot(area.width) + 2;
        for (at, of) in (0..).zip(Estimator::ALL) {
            let slot = columns(maps, 1 + at * cells, cells - 2);
            canvas.cut(slot, 0, 0, &title_of(together, of), theme.text);
            let Some(map) = together.map(of) else { continue };
            let below = part(slot, 1, u16::MAX);
            match detail {
                Detail::States => states(scene, together, map, below, canvas),
                Detail::Clients | Detail::Means => clients(scene, map, below, canvas),
            }
        }
    }
    for (y, text) in (0..rest.height).zip(notes) {
        canvas.put(rest, 1, y, &text, theme.label);
    }
}

fn title_of(together: &StateCorrelation, of: Estimator) -> String {
    match together.map(of) {
        Some(map) => format!("{} {:.2}", of.word(), map.mean()),
        None => format!("{} not made", of.word()),
    }
}

/// Every state of every client; those of one client stand back.
fn states(scene: &Scene, together: &StateCorrelation, map: Map, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let name = name_cells(scene);
    let owners: Vec<usize> = together
        .states
        .iter()
        .enumerate()
        .flat_map(|(m, states)| std::iter::repeat_n(m, *states))
        .collect();
    let mut last = None;
    for ((y, one), owner) in (1..area.height).zip(0..map.size()).zip(&owners) {
        let row = part(area, y, 1);
        if last.replace(*owner) != Some(*owner) {
            let said = cut(scene.name(*owner), name - 2);
            canvas.put(row, 0, 0, &said, theme.text);
            let x = name + one as u16 * STATE + 1;
            canvas.put(area, x, 0, &said, theme.label);
        }
        for (other, of) in owners.iter().enumerate() {
            let cell = match map.at(one, other) {
                _ if one == other => MatrixCell::Own,
                value if value.abs() < FAINT => MatrixCell::Nothing,
                value => {
                    MatrixCell::Strength(value, if owner == of { theme.frame } else { theme.trend })
                }
            };
            canvas.matrix_cell(row, name + (other as u16 + 1) * STATE, 2, cell);
        }
    }
}

fn clients(scene: &Scene, map: Map, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let name = name_cells(scene);
    let all = scene.measured.clients.len();
    // Columns stand in the order of the rows; a name that has no room above one is left out.
    for to in 0..all {
        let end = name + (to as u16 + 1) * PAIR - 1;
        let said = fitting([scene.name(to).to_owned()], PAIR - 1).unwrap_or_default();
        canvas.right(area, end, 0, &said, theme.label);
    }
    for (y, from) in (1..area.height).zip(0..all) {
        let row = part(area, y, 1);
        canvas.put(row, 0, 0, &cut(scene.name(from), name - 1), theme.text);
        for to in 0..all {
            let end = name + (to as u16 + 1) * PAIR - 1;
            let cell = match map.between(from, to) {
                _ if from == to => MatrixCell::Own,
                value if value < FAINT => MatrixCell::Nothing,
                value => MatrixCell::Strength(value, theme.trend),
            };
            canvas.matrix_cell(row, end, 2, cell);
        }
    }
}

fn notes(scene: &Scene, together: &StateCorrelation, cells: u16) -> Vec<String> {
    let noise = scene.model.prepared.as_ref().is_some_and(|prepared| {
        let trained = prepared.spent.clients.iter().flatten();
        trained.into_iter().any(|trained| trained.spend != Spend::Clear)
    });
    let noise = if noise { ", with their noise" } else { "" };
    let oracle = match together.map(Estimator::Oracle) {
        Some(_) => "The oracle's are of the calibration range.".to_owned(),
        None => format!(
            "The oracle needs the measurements of all clients in one place. Where that is allowed, \
             headwater train {} --oracle makes it.",
            scene.model.name
        ),
    };
    let said = format!(
        "As states reached the server in {} rounds at the end of training{noise}; nothing more was \
         sent for this. {oracle}",
        together.rounds
    );
    wrapped(&said, cells.saturating_sub(2))
}
