//! What left each client over time, where there is room: symbols, or flags in paper mode.
//!
//! ```text
//! ── what left each client  symbols from 0 to 4 ─────────────────
//!                     ▂▂▁    ▁    ▄▄▄█████
//!  P1 boiler    ······221····1····44444444
//!  30 s a column        10:15     10:20
//! ```

use ratatui::layout::Rect;

use super::pen::{self, Canvas, cut, span};
use super::scene::Scene;
use super::{axis, rows};
use crate::console::mouse::Target;
use crate::console::watched::Trace;
use crate::console::widget::flags::FlagGrid;
use crate::console::widget::level::Level;
use crate::session::Mode;

/// Rows of a client at most.
const TALLEST: u16 = 14;

/// The fewest rows that this can be drawn in: a heading, one row a client, the axis.
pub(super) fn least(scene: &Scene) -> u16 {
    scene.measured.clients.len() as u16 + 2
}

pub(super) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let clients = scene.measured.clients.len();
    let what = match scene.mode() {
        Mode::Evidence => "symbols, a larger one says further from normal; · none or 0",
        Mode::Paper => rows::Quantity::Flags.long_name(),
    };
    let title = [span("what left each client", theme.strong), span(what, theme.label)];
    let mut rest = canvas.panel(area, title);
    let name = scene.full_name_cells(20);
    let axis = scene.axis(name + 4, rest.width.saturating_sub(name + 5));
    let height = ((rest.height.saturating_sub(1)) / clients.max(1) as u16).min(TALLEST);
    for client in 0..clients {
        let mut row = pen::take(&mut rest, height);
        canvas.hit(row, Target::Client(client));
        let last = pen::take_last(&mut row, 1);
        canvas.put(last, 3, 0, &cut(&scene.full_name(client), name), theme.text);
        if scene.mode() == Mode::Paper {
            rows::quantity(scene, &axis, client, rows::Quantity::Flags, axis.trend(last), canvas);
            continue;
        }
        let columns = axis.grades(scene, client);
        let digits = FlagGrid { columns: &columns, raised: theme.text, theme };
        digits.draw(axis.trend(last), canvas.buffer);
        rows::cursor(scene, &axis, axis.trend(last), canvas);
        if !row.is_empty() {
            // Where there are several, one stays free between two clients.
            let row = pen::part(row, u16::from(row.height > 1), row.height);
            let columns = axis.trace(scene, client, Trace::Level);
            let level = Level { columns: &columns, limit: None, over: theme.trend, theme };
            level.draw(axis.trend(row), canvas.buffer);
            rows::cursor(scene, &axis, axis.trend(row), canvas);
        }
    }
    axis::draw(scene, &axis, pen::take(&mut rest, 1), canvas);
    axis.hit(area, canvas);
}
