//! What is left on a screen too small for trends: how it stands in words, the weightiest first.
//!
//! ```text
//!  REPLAY 60x 10:42:20 ▲1
//!  ▲ #7 ROOT P1 UNACK
//!    +2 effects, 4m20s
//!  seeded ε none  ARL0 1d
//!  a ack  ? help  q quit
//! ```

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::incidents::who;
use super::pen::{Canvas, span};
use super::scene::Scene;
use super::status::{lasted, nature, seen, state_of};
use super::top::{SEEDED, state};
use crate::console::app::{Model, Stage};
use crate::console::measured::Tally;
use crate::console::text::{clean, clean_lines};
use crate::engine::knob::Knob;

/// Draws the card into `area`; lines that do not fit are left out from the end.
pub(crate) fn draw(model: &Model, area: Rect, canvas: &mut Canvas) {
    let Card { mut lines, privacy } = card(model, area);
    // Whatever else is left out, the word about privacy stays.
    let last = usize::from(area.height).min(lines.len()).saturating_sub(1);
    if let Some(line) = lines.get_mut(privacy.min(last)).filter(|_| model.seeded) {
        line.spans.insert(0, span(format!("{} ", SEEDED[1]), model.theme.label));
    }
    for (y, line) in (0..area.height).zip(&lines) {
        canvas.line(area, 0, y, line);
    }
}
struct Card {
    lines: Vec<Line<'static>>,
    /// The line that a word about privacy belongs to.
    privacy: usize,
}

fn card(model: &Model, area: Rect) -> Card {
    let theme = &model.theme;
    let mut lines = vec![first(model)];
    if let Stage::Failed(error) = &model.stage {
        let why = clean_lines(&error.to_string());
        lines.extend(why.into_iter().map(|why| Line::styled(why, theme.failure)));
    }
    let Some(scene) = Scene::new(model) else {
        if let Some(training) = &model.course.latest {
            lines.push(Line::styled(clean(&training.doing), theme.text));
        }
        let privacy = lines.len();
        lines.push(Line::styled(model.name.clone(), theme.label));
        lines.push(Line::styled("? help  q quit", theme.label));
        return Card { lines, privacy };
    };
    let listed: Vec<_> = model.listed().filter(|i| i.is_listed()).collect();
    let spare = usize::from(area.height).saturating_sub(4).max(1);
    for incident in listed.iter().take(spare) {
        let mark = theme.mark(state_of(incident));
        lines.push(Line::from_iter([
            span(format!("{} #{} {} ", mark.glyph, incident.number, nature(incident)), mark.style),
            span(format!("{} ", who(&scene, incident)), theme.strong),
            span(seen(incident, scene.moment), mark.style),
        ]));
        if listed.len() == 1 {
            let felt = match incident.effects().count() {
                0 => String::new(),
                1 => "+1 effect, ".to_owned(),
                effects => format!("+{effects} effects, "),
            };
            let text = format!("  {felt}{}", lasted(incident, scene.moment));
            lines.push(Line::styled(text, theme.text));
        }
    }
    if listed.is_empty() {
        lines.push(Line::styled(calm(&scene), theme.text));
    }
    let privacy = lines.len();
    lines.push(Line::styled(knobs(&scene), theme.label));
    if (2..40).contains(&area.width) && area.height >= 6 {
        lines.push(Line::styled("(40x8 shows more)", theme.label));
    }
    let hint = if listed.is_empty() { "? help  q quit" } else { "a ack  ? help  q quit" };
    lines.push(Line::styled(hint, theme.label));
    Card { lines, privacy }
}

fn first(model: &Model) -> Line<'static> {
    let theme = &model.theme;
    let time = model.moment().map_or(String::new(), |moment| model.clock.time(moment));
    let state = if model.look.is_some() { "BACK AT".to_owned() } else { state(model) };
    let mut spans = vec![span(format!("{state} {time} "), theme.strong)];
    if let Some(figures) = model.figures() {
        let unseen = figures.unacknowledged + figures.returned + figures.latched;
        if unseen > 0 {
            spans.push(span(format!("▲{unseen}"), theme.root_unseen));
        }
        if figures.grouped > 0 {
            spans.push(span(format!(" ↳{}", figures.grouped), theme.text));
        }
    }
    spans.into()
}
fn calm(scene: &Scene) -> String {
    let tally = scene.measured.clients.iter().fold(Tally::default(), |sum, client| {
        let tally = scene.measured.tally(client, scene.moment);
        Tally { missing: sum.missing + tally.missing, beyond: sum.beyond + tally.beyond }
    });
    let words = if scene.snapshot().is_some() { "no incident" } else { "no verdicts" };
    match (tally.missing, tally.beyond) {
        (0, 0) => words.into(),
        (missing, 0) => format!("{words}, ? {missing}"),
        (0, beyond) => format!("{words}, ↕ {beyond}"),
        (missing, beyond) => format!("{words}, ? {missing} ↕ {beyond}"),
    }
}

fn knobs(scene: &Scene) -> String {
    let shown = |knob: Knob| scene.model.setting(knob).map_or("?".into(), |turn| turn.to_string());
    format!("ε {}  ARL0 {}", shown(Knob::EpsilonFlag), shown(Knob::Arl0))
}
