//! The chosen client alone, its sensors as high as the screen allows.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::panel::{self, Shown};
use super::scene::Scene;
use crate::console::mouse::{Hit, Target};

/// Rows that a sensor gets at most.
const HIGHEST: u16 = 10;

/// Draws the client into `area`; sensors before `skip` are scrolled off as far as there is need.
pub fn draw(scene: &Scene, skip: usize, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let Some(client) = scene.model.chosen_client() else { return };
    hits.push(Hit { area, target: Target::Scroll });
    panel::draw(
        scene,
        scene.model.chosen,
        plan(client.sensors.len(), skip, area.height),
        area,
        buffer,
        hits,
    );
}

fn plan(sensors: usize, skip: usize, rows: u16) -> Shown {
    let rows = usize::from(rows.saturating_sub(1));
    let fit = sensors.min(rows);
    let skip = skip.min(sensors - fit);
    let height = rows.checked_div(fit).map_or(1, |height| height.clamp(1, usize::from(HIGHEST)));
    Shown { skip, sensors: fit, height: height as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_that_do_not_fit_can_be_scrolled_to() {
        assert_eq!(plan(12, 6, 20), Shown { skip: 0, sensors: 12, height: 1 });
        assert_eq!(plan(38, 6, 20), Shown { skip: 6, sensors: 19, height: 1 });
        assert_eq!(plan(38, 37, 20), Shown { skip: 19, sensors: 19, height: 1 });
        assert_eq!(plan(3, 0, 20), Shown { skip: 0, sensors: 3, height: 6 });
        assert_eq!(plan(0, 5, 0), Shown { skip: 0, sensors: 0, height: 1 });
    }
}
