//! What is left on a screen too small for trends: how it stands in words, the weightiest first.
//!
//! ```text
//!  REPLAY 60x 10:42:20 ▲1
//!  ▲ #7 ROOT P1 UNACK
//!    +2 effects, 4m20s
//!  seeded ε none  ARL0 1d
//!  a ack  ? help  q quit
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::incidents::who;
use super::pen::{cut, line, part, width};
use super::scene::Scene;
use super::top::{SEEDED, figures, state};
use super::verdict::{lasted, nature, seen, state_of};
use crate::console::app::{Model, Stage};
use crate::console::measured::Tally;
use crate::console::text::clean_lines;
use crate::console::theme::Theme;
use crate::engine::knob::Knob;

type Line = Vec<(String, Style)>;

/// Draws the card into `area`; lines that do not fit are left out from the end.
pub(crate) fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let Card { mut lines, privacy } = card(model, theme, area);
    // It is said whatever else is left out.
    let last = usize::from(area.height).min(lines.len()).saturating_sub(1);
    if let Some(line) = lines.get_mut(privacy.min(last)).filter(|_| model.seeded) {
        line.insert(0, (format!("{} ", SEEDED[1]), theme.label));
    }
    for (y, pieces) in (0..area.height).zip(lines) {
        let mut room = area.width;
        let mut cells: Line = Vec::new();
        for (text, style) in pieces {
            let text = cut(&text, room);
            room -= width(&text).min(room);
            cells.push((text, style));
        }
        line(buffer, part(area, y, 1), 0, 0, &cells);
    }
}

/// What could be said, the weightiest first.
struct Card {
    lines: Vec<Line>,
    /// The line that a word about privacy belongs to.
    privacy: usize,
}

fn card(model: &Model, theme: &Theme, area: Rect) -> Card {
    let mut lines = vec![first(model, theme)];
    if let Stage::Failed(error) = &model.stage {
        let why = clean_lines(&error.to_string());
        lines.extend(why.into_iter().map(|why| vec![(why, theme.failure)]));
    }
    let Some(scene) = Scene::new(model, theme) else {
        if let Some(training) = &model.course.latest {
            lines.push(vec![(crate::console::text::clean(&training.doing), theme.text)]);
        }
        let privacy = lines.len();
        lines.push(vec![(model.name.clone(), theme.label)]);
        lines.push(vec![("? help  q quit".into(), theme.label)]);
        return Card { lines, privacy };
    };
    let listed: Vec<_> = model.listed().filter(|i| i.is_listed()).collect();
    let spare = usize::from(area.height).saturating_sub(4).max(1);
    for incident in listed.iter().take(spare) {
        let mark = theme.mark(state_of(incident));
        lines.push(vec![
            (format!("{} #{} {} ", mark.glyph, incident.number, nature(incident)), mark.style),
            (format!("{} ", who(&scene, incident)), theme.strong),
            (seen(incident, scene.newest), mark.style),
        ]);
        let effects = incident.effects().count();
        if listed.len() == 1 {
            let felt = match effects {
                0 => String::new(),
                1 => "+1 effect, ".to_owned(),
                _ => format!("+{effects} effects, "),
            };
            let text = format!("  {felt}{}", lasted(incident, scene.newest));
            lines.push(vec![(text, theme.text)]);
        }
    }
    if listed.is_empty() {
        lines.push(vec![(calm(&scene), theme.text)]);
    }
    let privacy = lines.len();
    lines.push(vec![(knobs(&scene), theme.label)]);
    if (2..40).contains(&area.width) && area.height >= 6 {
        lines.push(vec![("(40x8 shows more)".into(), theme.label)]);
    }
    let hint = if listed.is_empty() { "? help  q quit" } else { "a ack  ? help  q quit" };
    lines.push(vec![(hint.into(), theme.label)]);
    Card { lines, privacy }
}

fn first(model: &Model, theme: &Theme) -> Line {
    let time = model.moment().map_or(String::new(), |moment| model.clock.time(moment));
    let state = if model.look.is_some() { "BACK AT".to_owned() } else { state(model) };
    let mut pieces = vec![(format!("{state} {time} "), theme.strong)];
    if let Some(figures) = figures(model) {
        let unseen = figures.unacknowledged + figures.returned + figures.latched;
        if unseen > 0 {
            pieces.push((format!("▲{unseen}"), theme.root_unseen));
        }
        if figures.grouped > 0 {
            pieces.push((format!(" ↳{}", figures.grouped), theme.text));
        }
    }
    pieces
}

/// Nothing to answer: how the measurements stand.
fn calm(scene: &Scene) -> String {
    let tally = scene.measured.clients.iter().fold(Tally::default(), |sum, client| {
        let tally = scene.measured.tally(client, scene.moment);
        Tally { missing: sum.missing + tally.missing, beyond: sum.beyond + tally.beyond }
    });
    let words = if scene.watched.is_some_and(|w| w.snapshot.is_some()) {
        "no incident"
    } else {
        "no verdicts"
    };
    match (tally.missing, tally.beyond) {
        (0, 0) => words.into(),
        (missing, 0) => format!("{words}, ? {missing}"),
        (0, beyond) => format!("{words}, ↕ {beyond}"),
        (missing, beyond) => format!("{words}, ? {missing} ↕ {beyond}"),
    }
}

fn knobs(scene: &Scene) -> String {
    let turn = |knob: Knob| scene.model.knobs().iter().find(|turn| turn.knob() == knob).copied();
    let shown = |knob: Knob| turn(knob).map_or_else(|| "?".to_owned(), |turn| turn.to_string());
    format!("ε {}  ARL0 {}", shown(Knob::EpsilonFlag), shown(Knob::Arl0))
}
