//! Loss, privacy and thresholds in one line, where there is no room for their panels; and the chosen
//! client in a few sentences.
//!
//! ```text
//!  loss 0.0512 █▇▅▃▂▁  ε none  ARL0 1d  τ_c 95%  τ_a 95%
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{self, cut, heading, line, put, wrapped};
use super::scene::Scene;
use super::verdict::Verdict;
use super::words;
use crate::console::action::Action;
use crate::console::widget::curve::Curve;
use crate::engine::knob::{Knob, KnobValue, Turn};
use crate::session::Mode;

/// Cells of the loss curve.
const CURVE: u16 = 14;

/// Draws the line into the first row of `area`. While a knob is held the line is about it.
pub(crate) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let theme = scene.theme;
    if let Some(tuning) = &scene.model.tuning {
        let title = tuning.knob().title(scene.names());
        let steps = scene.model.steps();
        let pieces = [
            (format!(" {title} {} → ", tuning.from), theme.text),
            (tuning.trial.to_string(), theme.cursor),
            (format!("  {}", tuning.words(steps)), theme.ghost),
        ];
        line(buffer, area, 0, 0, &pieces);
        return;
    }
    let mut x = 1;
    if let Some(history) = scene.history() {
        let losses: Vec<f64> = history.reached.iter().map(|word| word.server_loss).collect();
        if let Some(last) = losses.last().filter(|_| area.width >= 60) {
            x = put(buffer, area, x, 0, "loss ", theme.label);
            x = put(buffer, area, x, 0, &super::losses::short(*last), theme.text) + 1;
            if area.width >= 72 {
                let curve = Rect { x: area.x.saturating_add(x), width: CURVE, ..area };
                Curve { losses: &losses, ends: None, theme }.draw(curve.intersection(area), buffer);
                x += CURVE + 2;
            } else {
                x += 1;
            }
        }
    }
    let order: &[Knob] = match scene.mode() {
        Mode::Evidence => {
            &[Knob::EpsilonFlag, Knob::Arl0, Knob::TauC(None), Knob::TauA(None), Knob::Delta]
        }
        Mode::Paper => {
            &[Knob::EpsilonFlag, Knob::TauC(None), Knob::TauA(None), Knob::Vote, Knob::Deadband]
        }
    };
    let turns = scene.model.knobs();
    for knob in order {
        let Some(turn) = turns.iter().find(|turn| turn.knob() == *knob) else { continue };
        let title = knob.title(scene.names());
        let value = value(*turn);
        if x + pen::width(&title) + 1 + pen::width(&value) > area.width {
            break;
        }
        x = put(buffer, area, x, 0, &title, theme.label) + 1;
        x = put(buffer, area, x, 0, &value, theme.text) + 2;
    }
}

fn value(turn: Turn) -> String {
    match (turn.knob, turn.to) {
        (Knob::EpsilonFlag, KnobValue::None) => "none: not private".into(),
        _ => turn.to_string(),
    }
}

/// Draws what is to be said about the chosen client, below a heading.
pub(crate) fn chosen(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let theme = scene.theme;
    let mut rest = area;
    let name = scene.name(scene.model.chosen);
    let parts = [("chosen", theme.strong), (name, theme.text)];
    heading(buffer, pen::take(&mut rest, 1), &parts, theme);
    let mut y = 0;
    let client = scene.model.chosen;
    let incident = Verdict::of(scene, client).incident;
    let incident = incident.and_then(|number| scene.watched?.incident(number));
    let which = incident
        .filter(|incident| incident.root == Some(client))
        .and_then(|incident| words::which_sensor(scene, incident, Action::ShowClient));
    for sentence in words::of_client(scene, client).into_iter().chain(which) {
        for text in wrapped(&sentence, rest.width.saturating_sub(2)) {
            put(buffer, rest, 1, y, &cut(&text, rest.width.saturating_sub(1)), theme.text);
            y += 1;
        }
    }
}
