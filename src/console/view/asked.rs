//! The last line while something is typed or asked.
//!
//! ```text
//!  go to 10:3█  10:38  10:38:20  +5m  -30s  #7  'a  end
//!  shelve #7 for   1 10 min   2 1 h   3 end of shift   4 type a time   esc no
//! ```

use ratatui::layout::Rect;

use super::pen::{Canvas, cut, width};
use crate::console::app::{Model, Prompt, Question};

/// Cells of the way out.
const LEAVE: u16 = 10;

/// Draws what is typed or asked into the first row of `area`; whether there is any.
pub(crate) fn draw(model: &Model, area: Rect, canvas: &mut Canvas) -> bool {
    if let Some(prompt) = &model.prompt {
        typed(model, prompt, area, canvas);
    } else if let Some(question) = &model.question {
        asked(model, question, area, canvas);
    }
    model.prompt.is_some() || model.question.is_some()
}

fn typed(model: &Model, prompt: &Prompt, area: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    let start = canvas.put(area, 1, 0, &prompt.label(&model.names), theme.strong);
    // Where the line is longer than its room, its end is shown: that is where typing goes on.
    let room = usize::from(area.width.saturating_sub(start + 1)).max(1);
    let before: Vec<char> = prompt.line.text().chars().take(prompt.line.cursor()).collect();
    let hidden = before.len().saturating_sub(room.saturating_sub(1));
    let shown: String = before[hidden..].iter().collect();
    let mut rest = prompt.line.text().chars().skip(prompt.line.cursor());
    let under = rest.next().unwrap_or(' ').to_string();
    let mut x = canvas.put(area, start, 0, &shown, theme.text);
    x = canvas.put(area, x, 0, &under, theme.cursor);
    x = canvas.put(area, x, 0, &rest.collect::<String>(), theme.text);
    if let Some(error) = &prompt.error {
        canvas.cut(area, x + 2, 0, error, theme.failure);
    } else if let Some(offers) = prompt.further_offers() {
        canvas.cut(area, x + 2, 0, &offers, theme.label);
    } else if let Some(example) = prompt.example(&model.names) {
        canvas.cut(area, x + 2, 0, &example, theme.label);
    }
}

fn asked(model: &Model, question: &Question, area: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    let choices = question.choices(&model.names);
    // A key and a cell before each, two cells behind; two before the first, and the way out.
    let needed: u16 = choices.iter().map(|(_, what)| width(what) + 4).sum::<u16>() + 2 + LEAVE;
    let room = area.width.saturating_sub(needed + 1).max(area.width / 3);
    let text = question.text(&model.names);
    let mut x = canvas.put(area, 1, 0, &cut(&text, room), theme.strong) + 2;
    for (key, what) in &choices {
        x = canvas.put(area, x, 0, &key.to_string(), theme.cursor) + 1;
        x = canvas.put(area, x, 0, what, theme.text) + 2;
    }
    x = canvas.put(area, x, 0, "esc", theme.cursor) + 1;
    canvas.put(area, x, 0, "cancel", theme.label);
}
