//! Loss, privacy and thresholds in one line, where there is no room for their panels; and the chosen
//! client in a few sentences.
//!
//! ```text
//!  loss 0.0512 █▇▅▃▂▁  ε spent 58  ε flags 4  ARL0 1d  ε budget 200
//! ```

use ratatui::layout::Rect;

use super::losses::{mean, server, short};
use super::pen::{self, Canvas, columns, span, wrapped};
use super::scene::Scene;
use super::status::Status;
use super::{knobs, words};
use crate::console::action::Action;
use crate::console::number;
use crate::console::widget::curve::Curve;
use crate::engine::knob::Knob;
use crate::engine::watch::Spent;
use crate::session::Mode;
use crate::session::privacy::Scope;

const CURVE: u16 = 14;

/// Draws the line into the first row of `area`. While a knob is held, what other values of it would
/// have meant.
pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    if let Some(tuning) = &scene.model.tuning {
        canvas.line(area, 1, 0, &knobs::curve(scene, tuning));
        return;
    }
    let mut x = 1;
    if let Some(history) = scene.history() {
        let losses = server(history);
        // One loss is mostly chance.
        let last = mean(&losses[losses.len() - losses.len().div_ceil(10)..]);
        if let Some(last) = last.filter(|_| area.width >= 60) {
            x = canvas.put(area, x, 0, "loss ", theme.label);
            x = canvas.put(area, x, 0, &short(last), theme.text) + 1;
            if area.width >= 72 {
                Curve { losses: &losses, theme }.draw(columns(area, x, CURVE), canvas.buffer);
                x += CURVE + 2;
            } else {
                x += 1;
            }
        }
    }
    if let Some(spent) = spent(scene) {
        x = canvas.put(area, x, 0, "ε spent", theme.label) + 1;
        x = canvas.put(area, x, 0, &spent, theme.text) + 2;
    }
    let order: &[Knob] = match scene.mode() {
        Mode::Evidence => &[Knob::EpsilonFlag, Knob::Arl0, Knob::Budget, Knob::Delta],
        Mode::Paper => {
            &[Knob::EpsilonFlag, Knob::TauC(None), Knob::TauA(None), Knob::Vote, Knob::Deadband]
        }
    };
    for knob in order {
        let Some(turn) = scene.model.setting(*knob) else { continue };
        let title = knob.title(scene.names());
        let value = turn.to_string();
        if x + pen::width(&title) + 1 + pen::width(&value) > area.width {
            break;
        }
        x = canvas.put(area, x, 0, &title, theme.label) + 1;
        x = canvas.put(area, x, 0, &value, theme.text) + 2;
    }
}

/// The most that any client has spent so far.
fn spent(scene: &Scene) -> Option<String> {
    let of = |spent: &Spent| {
        let whole = spent.over.iter().find(|(scope, _)| *scope == Scope::Lifetime);
        whole.map_or(f64::INFINITY, |(_, composed)| composed.epsilon)
    };
    let most =
        scene.snapshot()?.spent.iter().map(of).fold(None, |most: Option<f64>, spent| {
            Some(most.map_or(spent, |most| most.max(spent)))
        })?;
    Some(if most.is_finite() { number::epsilon(most) } else { "unprotected".into() })
}

/// Draws the lines about the chosen client, below a heading.
pub(crate) fn chosen(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    if area.height < 2 {
        return;
    }
    let theme = scene.theme;
    let client = scene.model.chosen;
    let title = [span("chosen", theme.strong), span(scene.full_name(client), theme.text)];
    let rest = canvas.panel(area, title);
    let mut y = 0;
    let incident = Status::of(scene, client).incident;
    let incident = incident.and_then(|number| scene.incident(number));
    let which = incident
        .filter(|incident| incident.root == Some(client))
        .and_then(|incident| words::which_sensor(scene, incident, Action::ShowClient));
    for sentence in words::of_client(scene, client).into_iter().chain(which) {
        for text in wrapped(&sentence, rest.width.saturating_sub(2)) {
            canvas.cut(rest, 1, y, &text, theme.text);
            y += 1;
        }
    }
}
