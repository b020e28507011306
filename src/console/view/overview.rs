//! All clients on one axis of time, in the order of the session; below them incidents, and what there
//! is room for.
//!
//! ```text
//! ▸▲ P1 boiler    S/b 3.21            ▃█████    few clients: one below the other on a long axis
//!    ROOT #7           ▂▂▂▃▂▂▂▂▂▂▂▃▂▂▅██████
//!    UNACK        r_c 2.3τ ▂▂▂▃▂▂▂▂▂▃▂▇██████
//!                 r_a 0.5τ ▂▂▂▃▂▂▂▂▂▃▂▂▂▂▂▃▂▂
//!                 Z        ············cccccc
//!   30 s a column         10:15     10:20
//! ── incidents  1 open ───────────────│── server loss ─────────
//!  ▲ #7 10:38:00 ROOT P1   UNACK      │ 0.96 ┤█▄▂▁
//!     ↳ 10:38:50 effect P2  +50 s     │── privacy and thresholds
//! ── log ─────────────────────────────│ τ_c 95%  ├────●──┤
//! ```

use ratatui::layout::Rect;

use self::plan::{Plan, Shape};
use super::pen::{self, Canvas};
use super::scene::Scene;
use super::{axis, incidents, knobs, losses, rows, summary, tail};

mod plan;
const SIDE_BY_SIDE: u16 = 110;

pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let clients = scene.measured.clients.len();
    let plan = Plan::new(clients, area.width, area.height);
    let mut rest = area;
    let order = scene.model.rows();
    let at = order.iter().position(|client| *client == scene.model.chosen).unwrap_or(0);
    let shown = order.iter().copied().skip(plan.first(at)).take(plan.clients.into());
    let around = u16::from(plan.header) + u16::from(plan.axis);
    let table = pen::take(&mut rest, around + plan.clients * plan.shape.rows());
    clients_on_one_axis(scene, &plan, shown, table, canvas);
    if plan.line {
        summary::draw(scene, pen::take_last(&mut rest, 1), canvas);
    }
    lower(scene, rest, plan.line, canvas);
}

fn clients_on_one_axis(
    scene: &Scene,
    plan: &Plan,
    shown: impl Iterator<Item = usize>,
    area: Rect,
    canvas: &mut Canvas,
) {
    let mut rest = area;
    match plan.shape {
        Shape::Stack(height) => {
            let stack = rows::Stack::new(scene, area.width, height);
            if plan.axis {
                axis::draw(scene, &stack.axis, pen::take_last(&mut rest, 1), canvas);
            }
            for client in shown {
                stack.draw(scene, client, pen::take(&mut rest, height), canvas);
            }
        }
        Shape::Lanes(height) => {
            let lanes = rows::Lanes::new(scene, area.width);
            if plan.header {
                lanes.header(scene, pen::take(&mut rest, 1), canvas);
            }
            if plan.axis {
                lanes.labels(scene, pen::take_last(&mut rest, 1), canvas);
            }
            for client in shown {
                lanes.draw(scene, client, pen::take(&mut rest, height), canvas);
            }
        }
    }
}

/// Incidents, and around them whatever there is room for, in the order of its worth.
fn lower(scene: &Scene, area: Rect, line: bool, canvas: &mut Canvas) {
    if line || area.width < SIDE_BY_SIDE || area.height < 8 {
        let mut rest = area;
        // Where there is no room for a panel, the last lines stand by themselves.
        let log = match area.height {
            12.. => Some(area.height / 3),
            6.. => Some(2),
            _ => None,
        };
        let log = log.map(|rows| pen::take_last(&mut rest, rows));
        incidents::draw(scene, rest, canvas);
        match log {
            Some(log) if log.height > 2 => tail::draw(scene, log, canvas),
            Some(log) => tail::lines(scene, log, canvas),
            None => {}
        }
        return;
    }
    let [mut left, mut right] = canvas.beside(area, area.width / 2 - 1 + area.width / 40);
    let wanted = incidents::wanted(scene).clamp(4, area.height / 2);
    incidents::draw(scene, pen::take(&mut left, wanted.max(area.height / 2)), canvas);
    tail::draw(scene, left, canvas);
    let knobs_rows = knobs::wanted(scene).min(area.height * 2 / 3);
    let loss_rows = (area.height - knobs_rows).min(7);
    losses::draw(scene, pen::take(&mut right, loss_rows), canvas);
    knobs::draw(scene, pen::take(&mut right, knobs_rows), canvas);
    summary::chosen(scene, right, canvas);
}
