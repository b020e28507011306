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
use ratatui::layout::{Constraint, Layout, Rect};

use super::app::{Model, Screen, Stage};
use super::mouse::{Hit, Target};
use pen::Canvas;
use scene::Scene;

mod again;
mod asked;
mod axis;
mod card;
mod client;
mod footer;
mod graph;
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
pub(super) mod pen;
mod privacy;
mod rows;
mod scene;
mod seekbar;
mod sensors;
mod sent;
mod sessions;
mod status;
mod summary;
mod tail;
mod together;
pub(super) mod top;
mod training;
mod words;

/// The smallest screen with trends; below it there is a card of words.
const SMALLEST: (u16, u16) = (40, 8);

/// Draws `model` into the whole of `buffer`, and returns what the mouse can do where.
pub(crate) fn view(model: &Model, buffer: &mut Buffer) -> Vec<Hit> {
    let area = buffer.area;
    let mut canvas = Canvas { buffer, theme: &model.theme, hits: Vec::new() };
    let mut rest = area;
    if let Some(skip) = model.help {
        if model.prompt.is_some() {
            asked::draw(model, pen::take_last(&mut rest, 1), &mut canvas);
        }
        help::draw(model, skip, rest, &mut canvas);
        canvas.hit(area, Target::Scroll);
    } else if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        if model.prompt.is_some() || model.question.is_some() {
            asked::draw(model, pen::take_last(&mut rest, 1), &mut canvas);
        }
        card::draw(model, rest, &mut canvas);
    } else {
        page(model, area, &mut canvas);
    }
    model.theme.finish(canvas.buffer);
    canvas.hits
}

fn page(model: &Model, area: Rect, canvas: &mut Canvas) {
    let rows = [Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [top, body, footer] = Layout::vertical(rows).areas(area);
    top::draw(model, top, canvas);
    draw_body(model, body, canvas);
    // Last, because a long message covers more than its line.
    footer::draw(model, footer, canvas);
}

fn draw_body(model: &Model, mut rest: Rect, canvas: &mut Canvas) {
    if model.screen == Screen::Sessions && !matches!(model.stage, Stage::Preparing) {
        return sessions::draw(model, rest, canvas);
    }
    let Some(scene) = Scene::new(model) else {
        return message::draw(model, rest, canvas);
    };
    seekbar::draw(&scene, pen::take(&mut rest, 1), canvas);
    for (text, style) in notice::of(&scene) {
        canvas.cut(pen::take(&mut rest, 1), 1, 0, &text, style);
    }
    let skip = model.scroll;
    if let Some(branch) = &model.branch {
        return again::draw(model, branch, skip, rest, canvas);
    }
    match model.screen {
        Screen::Overview => overview::draw(&scene, rest, canvas),
        Screen::Client => client::draw(&scene, skip, rest, canvas),
        Screen::Influence => influence::draw(&scene, skip, rest, canvas),
        Screen::Incident(number) => incident::draw(&scene, number, skip, rest, canvas),
        Screen::Training => training::draw(&scene, skip, rest, canvas),
        Screen::Privacy => privacy::draw(&scene, skip, rest, canvas),
        Screen::Log => log::draw(&scene, rest, canvas),
        Screen::Sessions => sessions::draw(model, rest, canvas),
    }
}
