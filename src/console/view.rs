//! The whole picture, from the model alone.
//!
//! ```text
//! ┌ top: state, data time, alarms, engine ─────────────────────┐
//! │ seek bar: the day                                          │
//! │ notices: a failure, a flood, the truth on request          │
//! │ overview | client | influence | incident | training |      │
//! │ privacy | log | sessions                                   │
//! └ footer: what is asked, else what works here and now ───────┘
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::{Model, Screen, Stage};
use super::mouse::{Hit, Target};
use super::theme::Theme;
use scene::Scene;

mod asked;
mod axis;
mod card;
mod client;
mod footer;
mod help;
mod incident;
mod incidents;
mod influence;
mod knobs;
mod log;
mod losses;
mod message;
mod notice;
mod overview;
mod pen;
mod privacy;
mod rows;
mod scene;
mod seekbar;
mod sensors;
mod sessions;
mod summary;
mod tail;
mod together;
mod top;
mod training;
mod verdict;
mod words;

/// The smallest screen with trends; below it there is a card of words.
const SMALLEST: (u16, u16) = (40, 8);

/// Draws `model` into the whole of `buffer`, and says what the mouse can do where.
pub(crate) fn view(model: &Model, buffer: &mut Buffer) -> Vec<Hit> {
    let (area, theme) = (buffer.area, &model.theme);
    let mut hits = Vec::new();
    if let Some(skip) = model.help {
        let mut rest = area;
        if model.prompt.is_some() {
            asked::draw(model, theme, pen::take_last(&mut rest, 1), buffer);
        }
        help::draw(model, skip, rest, buffer);
        hits.push(Hit { area, target: Target::Scroll });
    } else if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let mut rest = area;
        if model.prompt.is_some() || model.question.is_some() {
            asked::draw(model, theme, pen::take_last(&mut rest, 1), buffer);
        }
        card::draw(model, theme, rest, buffer);
    } else {
        page(model, theme, area, buffer, &mut hits);
    }
    theme.finish(buffer);
    hits
}

fn page(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let mut rest = area;
    top::draw(model, theme, pen::take(&mut rest, 1), buffer);
    footer::draw(model, theme, pen::take_last(&mut rest, 1), buffer, hits);
    if model.screen == Screen::Sessions && !matches!(model.stage, Stage::Preparing) {
        sessions::draw(model, theme, rest, buffer, hits);
        return;
    }
    let Some(scene) = Scene::new(model, theme) else {
        message::draw(model, theme, rest, buffer);
        return;
    };
    seekbar::draw(&scene, pen::take(&mut rest, 1), buffer, hits);
    for (text, style) in notice::of(&scene) {
        let line = pen::take(&mut rest, 1);
        pen::put(buffer, line, 1, 0, &pen::cut(&text, line.width.saturating_sub(1)), style);
    }
    let skip = model.scroll;
    match model.screen {
        Screen::Overview => overview::draw(&scene, rest, buffer, hits),
        Screen::Client => client::draw(&scene, skip, rest, buffer, hits),
        Screen::Influence => influence::draw(&scene, skip, rest, buffer, hits),
        Screen::Incident(number) => incident::draw(&scene, number, skip, rest, buffer, hits),
        Screen::Training => training::draw(&scene, skip, rest, buffer),
        Screen::Privacy => privacy::draw(&scene, skip, rest, buffer, hits),
        Screen::Log => log::draw(&scene, rest, buffer, hits),
        Screen::Sessions => sessions::draw(model, theme, rest, buffer, hits),
    }
}
