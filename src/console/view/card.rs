//! What is left on a screen too small for trends: the state in words, most important first.
//!
//! ```text
//!  REPLAY 60x 10:42:20
//!  P1 12 ok
//!  P2 ? 1 ↕ 2
//!  no verdicts
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{cut, put};
use super::top::state;
use crate::console::app::{Model, Stage};
use crate::console::measured::Tally;
use crate::console::text::clean_lines;
use crate::console::theme::Theme;

/// Draws the card into `area`; lines that do not fit are left out from the end.
pub fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    for (row, (text, style)) in lines(model, theme).iter().take(area.height.into()).enumerate() {
        put(buffer, area, 0, row as u16, &cut(text, area.width), *style);
    }
}

fn lines(model: &Model, theme: &Theme) -> Vec<(String, Style)> {
    let mut lines = Vec::new();
    let time = model.moment().map(|moment| format!(" {}", model.clock.time(moment)));
    let state = if model.look.is_some() { "BACK AT".to_owned() } else { state(model) };
    lines.push((format!("{state}{}", time.unwrap_or_default()), theme.strong));
    if let Stage::Failed(error) = &model.stage {
        lines.extend(clean_lines(&error.to_string()).into_iter().map(|why| (why, theme.failure)));
    }
    if let (Some(measured), Some(moment)) = (&model.measured, model.moment()) {
        for client in &measured.clients {
            let tally = measured.tally(client, moment);
            let style = if tally == Tally::default() { theme.text } else { theme.beyond };
            lines.push((format!("{} {}", client.name, in_words(tally)), style));
        }
    }
    let private = if model.seeded { ", not private" } else { "" };
    lines.push((format!("no verdicts{private}"), theme.label));
    lines.push((model.name.clone(), theme.label));
    lines.push(("? help  q quit".into(), theme.label));
    lines
}

fn in_words(tally: Tally) -> String {
    match (tally.missing, tally.beyond) {
        (0, 0) => "on scale".into(),
        (missing, 0) => format!("? {missing} missing"),
        (0, beyond) => format!("↕ {beyond} beyond"),
        (missing, beyond) => format!("? {missing} ↕ {beyond}"),
    }
}
