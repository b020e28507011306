//! All clients, one panel below the other, in the order of the session.
//!
//! ```text
//! ▸ P1 boiler  12 sensors ─────────────
//!   FT01      61.48 mmH2O  ▃▃▄▄▅▃▂▂▂▃▄▄
//!   …
//!   P2 turbine  6 sensors ─────────────
//!   SIT01     884.1 rpm    ▃▃▃▃▃▃▃▃▃▃▃▃
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::panel::{self, Shown};
use super::scene::Scene;
use crate::console::mouse::Hit;

/// Rows that a sensor gets at most.
const HIGHEST: u16 = 4;

/// Whether there is room for trends in so many rows, or for a line per client only.
#[must_use]
pub fn has_trends(scene: &Scene, rows: u16) -> bool {
    2 * scene.measured.clients.len() <= usize::from(rows)
}

/// Draws the panels into `area`.
pub fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let clients = &scene.measured.clients;
    let sensors: Vec<usize> = clients.iter().map(|client| client.sensors.len()).collect();
    match plan(&sensors, scene.model.chosen, area.height) {
        Plan::Panels(panels) => {
            let mut y = area.y;
            for (client, shown) in panels.into_iter().enumerate() {
                let height = 1 + shown.sensors as u16 * shown.height;
                let panel = area.intersection(Rect { y, height, ..area });
                panel::draw(scene, client, shown, panel, buffer, hits);
                y = y.saturating_add(height);
            }
        }
        Plan::Lines { first } => {
            for (client, y) in (first..clients.len()).zip(area.rows()) {
                panel::line(scene, client, y, buffer, hits);
            }
        }
    }
}

/// How the clients share the rows of the screen.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// A panel for each.
    Panels(Vec<Shown>),
    /// A line for each, from this one on.
    Lines {
        /// The first client shown.
        first: usize,
    },
}

/// Shares `rows` among clients with so many `sensors` each. Nothing moves with the data: the plan
/// depends on sizes only, and on `chosen` only where not even the names fit.
fn plan(sensors: &[usize], chosen: usize, rows: u16) -> Plan {
    let rows = usize::from(rows);
    if 2 * sensors.len() > rows {
        let first = (chosen + 1).saturating_sub(rows);
        return Plan::Lines { first };
    }
    let budget = rows - sensors.len();
    let all: usize = sensors.iter().sum();
    if all > budget {
        return Plan::Panels(share_out(sensors, budget));
    }
    // As high as all can be alike, then the smallest panels first while there is room.
    let even = budget.checked_div(all).map_or(1, |even| even.min(usize::from(HIGHEST)));
    let mut heights = vec![even; sensors.len()];
    let mut left = budget - even * all;
    loop {
        let smallest = (0..sensors.len())
            .filter(|at| heights[*at] < usize::from(HIGHEST))
            .filter(|at| (1..=left).contains(&sensors[*at]))
            .min_by_key(|at| (heights[*at] + 1) * sensors[*at]);
        let Some(at) = smallest else { break };
        heights[at] += 1;
        left -= sensors[at];
    }
    let shown = |(count, height): (&usize, usize)| Shown {
        skip: 0,
        sensors: *count,
        height: height as u16,
    };
    Plan::Panels(sensors.iter().zip(heights).map(shown).collect())
}

/// One row each in turn, until all `rows` are given: the largest client gives up most.
fn share_out(sensors: &[usize], rows: usize) -> Vec<Shown> {
    let mut given = vec![0; sensors.len()];
    let mut left = rows;
    while left > 0 {
        let mut served = false;
        for (given, wanted) in given.iter_mut().zip(sensors) {
            if left > 0 && *given < *wanted {
                *given += 1;
                left -= 1;
                served = true;
            }
        }
        if !served {
            break;
        }
    }
    given.into_iter().map(|sensors| Shown { skip: 0, sensors, height: 1 }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heights(sensors: &[usize], rows: u16) -> Vec<(usize, u16)> {
        match plan(sensors, 0, rows) {
            Plan::Panels(panels) => panels.iter().map(|p| (p.sensors, p.height)).collect(),
            Plan::Lines { .. } => Vec::new(),
        }
    }

    #[test]
    fn the_plant_is_shared_out_sensibly() {
        assert_eq!(heights(&[12, 6, 3], 20), [(8, 1), (6, 1), (3, 1)]);
        assert_eq!(heights(&[12, 6, 3], 36), [(12, 1), (6, 2), (3, 3)]);
        assert_eq!(heights(&[12, 6, 3], 56), [(12, 2), (6, 2), (3, 4)]);
    }

    proptest! {
        #[test]
        fn a_plan_fits_and_shows_the_chosen_client(
            sensors in prop::collection::vec(0_usize..50, 1..60), chosen in 0_usize..60, rows in 1_u16..90,
        ) {
            let chosen = chosen % sensors.len();
            match plan(&sensors, chosen, rows) {
                Plan::Panels(panels) => {
                    let used: usize =
                        panels.iter().map(|p| 1 + p.sensors * usize::from(p.height)).sum();
                    prop_assert!(used <= usize::from(rows));
                    prop_assert_eq!(panels.len(), sensors.len());
                    for (panel, sensors) in panels.iter().zip(&sensors) {
                        prop_assert!(panel.sensors <= *sensors);
                        prop_assert!(*sensors == 0 || panel.sensors > 0);
                    }
                }
                Plan::Lines { first } => {
                    prop_assert!((first..first + usize::from(rows)).contains(&chosen));
                }
            }
        }
    }
}
