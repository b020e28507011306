//! Lines that are there only when needed: a failure, a knob on trial, the score at the end, a flood, the truth on request.

use ratatui::style::Style;

use super::scene::Scene;
use super::words;
use crate::console::app::Stage;
use crate::console::text::clean_lines;
use crate::stream::Event;
pub(crate) fn of(scene: &Scene) -> Vec<(String, Style)> {
    let theme = scene.theme;
    let mut said = Vec::new();
    if let Stage::Failed(error) = &scene.model.stage {
        let why = clean_lines(&error.to_string()).join(" ");
        said.push((format!("the data ends here: {why}"), theme.failure));
    }
    if let Some(tuning) = scene.model.tuning.as_ref().filter(|tuning| tuning.has_moved()) {
        let (title, steps) = (tuning.knob().title(scene.names()), scene.model.steps());
        let (from, to, words) = (tuning.from, tuning.trial, tuning.words(steps));
        said.push((format!("TRIAL {title} {from} → {to}   {words}"), theme.cursor));
    }
    if let Some(score) = &scene.model.score {
        said.push((words::score(score), theme.strong));
    }
    let figures = scene.figures();
    if figures.flood || figures.flag_flood {
        let share = 100.0 * figures.flood_share;
        let rest = if share >= 0.1 {
            format!(", {share:.1} % of the time in floods")
        } else {
            String::new()
        };
        said.push((format!("FLOOD: {} in 10 min{rest}", figures.grouping()), theme.single));
    }
    if scene.model.truth_shown {
        let truth = &scene.measured.truth;
        let text = match truth.at(scene.moment) {
            Some(event) => truth_words(scene, event),
            None if truth.is_known() => "truth: no attack at this moment".into(),
            None => "truth: this data set does not label attacks".into(),
        };
        said.push((text, theme.truth));
    }
    said
}

fn truth_words(scene: &Scene, event: &Event) -> String {
    let clock = scene.model.clock;
    let Event { id, start, end, origins, affected, sensors: _, what } = event;
    let origin = match origins.as_slice() {
        [] => "origin not known".to_owned(),
        origins => format!("▲ origin {}", origins.join(" + ")),
    };
    let felt = match affected.as_slice() {
        [] => String::new(),
        affected => format!("  ↳ effects at {}", affected.join(", ")),
    };
    let (from, to) = (clock.time(*start), clock.time(*end));
    let id = if id.is_empty() { String::new() } else { format!(" {id}") };
    format!("truth:{id}  {origin}{felt}  {from} to {to}  {what}")
}
