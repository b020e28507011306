//! A line that is there only when there is something to say: a failure, or the truth on request.

use ratatui::style::Style;

use super::scene::Scene;
use crate::console::app::Stage;
use crate::console::text::clean_lines;
use crate::console::truth::Disturbance;

/// What is to be said, if anything.
pub fn of(scene: &Scene) -> Option<(String, Style)> {
    if let Stage::Failed(error) = &scene.model.stage {
        let why = clean_lines(&error.to_string()).join(" ");
        return Some((format!("the data ends here: {why}"), scene.theme.failure));
    }
    if !scene.model.truth_shown {
        return None;
    }
    let truth = &scene.measured.truth;
    let text = match truth.at(scene.moment) {
        Some(disturbance) => told(scene, disturbance),
        None if truth.is_known() => "truth: nothing is being done at this moment".into(),
        None => "truth: this data set does not say when anything was done".into(),
    };
    Some((text, scene.theme.truth))
}

fn told(scene: &Scene, disturbance: &Disturbance) -> String {
    let clock = scene.model.clock;
    let Disturbance { id, start, end, origins, affected, what } = disturbance;
    let origin = match origins.as_slice() {
        [] => "origin not known".to_owned(),
        origins => format!("▲ origin {}", origins.join(" + ")),
    };
    let felt = match affected.as_slice() {
        [] => String::new(),
        affected => format!("  ↳ felt by {}", affected.join(", ")),
    };
    let (from, to) = (clock.time(*start), clock.time(*end));
    let id = if id.is_empty() { String::new() } else { format!(" {id}") };
    format!("truth:{id}  {origin}{felt}  {from} to {to}  {what}")
}
