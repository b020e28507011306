//! The line that tells the truth.
//!
//! ```text
//!  REPLAY 60x  2022-08-12 10:42:20  plant-attack-day  3 clients  seeded: not private  truth hidden  …
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{put, width};
use crate::console::app::{Model, Stage};
use crate::console::clock::length;
use crate::console::theme::Theme;

/// The rank of what can be seen elsewhere too.
const ELSEWHERE: u8 = 7;

/// A part of the line, and its short form if it has one.
struct Part {
    text: String,
    short: Option<String>,
    /// Parts of a lower rank keep their room longer; rank 0 is never dropped, and what can be seen
    /// elsewhere too is dropped before anything else is shortened.
    rank: u8,
    style: Style,
}

impl Part {
    fn new(rank: u8, text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), short: None, rank, style }
    }

    /// With a short form for where there is little room.
    fn or(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    fn shorten(&mut self) {
        if let Some(short) = self.short.take() {
            self.text = short;
        }
    }
}

/// Draws the line into the first row of `area`.
pub fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut x = 1;
    for part in fitted(parts(model, theme), area.width.saturating_sub(1)) {
        x = put(buffer, area, x, 0, &part.text, part.style) + 2;
    }
}

/// What the replay is doing, in a word or two.
pub fn state(model: &Model) -> String {
    match &model.stage {
        Stage::Preparing => "PREPARING".into(),
        Stage::Reading => "READING".into(),
        Stage::Playing if model.pace.paused => "PAUSED".into(),
        Stage::Playing => format!("REPLAY {}", model.pace.speed),
        Stage::Ended => "ENDED".into(),
        Stage::Failed(_) => "FAILED".into(),
    }
}

fn parts(model: &Model, theme: &Theme) -> Vec<Part> {
    let mut parts = Vec::new();
    let state_style =
        if matches!(model.stage, Stage::Failed(_)) { theme.failure } else { theme.strong };
    parts.push(Part::new(0, state(model), state_style));
    if let Some(moment) = model.moment() {
        let (date_time, time) = (model.clock.date_time(moment), model.clock.time(moment));
        parts.push(Part::new(1, date_time, theme.strong).or(time));
    }
    if let (Some(look), Some(newest)) = (model.look, model.newest()) {
        let back = length(newest.duration_since(look));
        let part = Part::new(1, format!("LOOKING BACK {back}"), theme.cursor);
        parts.push(part.or(format!("BACK {back}")));
    }
    parts.push(Part::new(4, &*model.name, theme.text));
    if let Some(measured) = &model.measured {
        let clients = measured.clients.len();
        let noun = if clients == 1 { "client" } else { "clients" };
        parts.push(Part::new(ELSEWHERE, format!("{clients} {noun}"), theme.label));
        if measured.left_out > 0 {
            let rows = measured.left_out;
            let part = Part::new(3, format!("? {rows} rows left out"), theme.missing);
            parts.push(part.or(format!("? {rows}")));
        }
    }
    if model.seeded {
        parts.push(Part::new(2, "seeded: not private", theme.text).or("not private"));
    }
    parts.push(Part::new(2, "measurements, no verdicts yet", theme.text).or("no verdicts"));
    if let Some(measured) = &model.measured {
        let truth = match (measured.truth.is_known(), model.truth_shown) {
            (false, _) => "no truth known",
            (true, false) => "truth hidden",
            (true, true) => "truth shown",
        };
        let style = if model.truth_shown { theme.truth } else { theme.label };
        parts.push(Part::new(5, truth, style));
    }
    if !model.mouse {
        parts.push(Part::new(6, "mouse off", theme.label));
    }
    parts
}

/// Shortens, then drops, those of the highest rank first, until the rest fits into `room`.
fn fitted(mut parts: Vec<Part>, room: u16) -> Vec<Part> {
    fn needed(parts: &[Part]) -> usize {
        parts.iter().map(|part| usize::from(width(&part.text)) + 2).sum::<usize>().saturating_sub(2)
    }
    let highest = |parts: &[Part], wanted: &dyn Fn(&Part) -> bool| {
        (0..parts.len()).filter(|at| wanted(&parts[*at])).max_by_key(|at| parts[*at].rank)
    };
    while needed(&parts) > usize::from(room) {
        if let Some(at) = highest(&parts, &|part| part.rank >= ELSEWHERE) {
            parts.remove(at);
        } else if let Some(at) = highest(&parts, &|part| part.short.is_some()) {
            parts[at].shorten();
        } else if let Some(at) = highest(&parts, &|part| part.rank > 0) {
            parts.remove(at);
        } else {
            break;
        }
    }
    parts
}
