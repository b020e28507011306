//! The whole picture, from the model alone.
//!
//! ```text
//! ┌ top: state, data time, session, what this build cannot do ┐
//! │ seek bar: the day                                          │
//! │ notice: a failure, or the truth on request                 │
//! │ overview: a panel per client   |   client: one, larger     │
//! │ axis: the time of all trends                               │
//! └ footer: what works here and now ───────────────────────────┘
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::{Model, Screen};
use super::mouse::{Hit, Target};
use super::theme::Theme;
use scene::Scene;

mod axis;
mod card;
mod client;
mod footer;
mod help;
mod message;
mod notice;
mod overview;
mod panel;
mod pen;
mod scene;
mod seekbar;
mod top;

/// The smallest screen with trends; below it there is a card of words.
const SMALLEST: (u16, u16) = (40, 8);

/// Draws `model` into the whole of `buffer`, and says what the mouse can do where.
pub fn view(model: &Model, buffer: &mut Buffer) -> Vec<Hit> {
    let (area, theme) = (buffer.area, &model.theme);
    let mut hits = Vec::new();
    if let Some(skip) = model.help {
        help::draw(model, skip, area, buffer);
        hits.push(Hit { area, target: Target::Scroll });
    } else if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        card::draw(model, theme, area, buffer);
    } else {
        page(model, theme, area, buffer, &mut hits);
    }
    theme.finish(buffer);
    hits
}

fn page(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
    let mut rest = area;
    top::draw(model, theme, take_top(&mut rest), buffer);
    footer::draw(model, theme, take_bottom(&mut rest), buffer, hits);
    let Some(scene) = Scene::new(model, theme, area.width) else {
        message::draw(model, theme, rest, buffer);
        return;
    };
    seekbar::draw(&scene, take_top(&mut rest), buffer, hits);
    if let Some((text, style)) = notice::of(&scene) {
        let line = take_top(&mut rest);
        pen::put(buffer, line, 1, 0, &pen::cut(&text, line.width.saturating_sub(1)), style);
    }
    if model.screen != Screen::Overview
        || overview::has_trends(&scene, rest.height.saturating_sub(1))
    {
        axis::draw(&scene, take_bottom(&mut rest), buffer);
    }
    match model.screen {
        Screen::Client => client::draw(&scene, model.scroll, rest, buffer, hits),
        _ => overview::draw(&scene, rest, buffer, hits),
    }
}

/// Cuts the first row off `area`.
fn take_top(area: &mut Rect) -> Rect {
    let row = Rect { height: area.height.min(1), ..*area };
    area.y = area.y.saturating_add(row.height);
    area.height -= row.height;
    row
}

/// Cuts the last row off `area`.
fn take_bottom(area: &mut Rect) -> Rect {
    let height = area.height.min(1);
    area.height -= height;
    Rect { y: area.bottom(), height, ..*area }
}
