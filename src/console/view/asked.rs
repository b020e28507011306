//! The last line while something is typed or asked.
//!
//! ```text
//!  go to 10:3█  10:38  10:38:20  +5m  -30s  #7  'a  end
//!  shelve #7 for   1 10 min   2 1 h   3 end of shift   4 type a time   esc no
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{cut, put, width};
use crate::console::app::{Model, Prompt, Question};
use crate::console::theme::Theme;

/// Cells of "esc leave".
const LEAVE: u16 = 9;

/// Draws what is typed or asked into the first row of `area`; whether there is any.
pub(crate) fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) -> bool {
    if let Some(prompt) = &model.prompt {
        typed(model, prompt, theme, area, buffer);
        true
    } else if let Some(question) = &model.question {
        asked(model, question, theme, area, buffer);
        true
    } else {
        false
    }
}

fn typed(model: &Model, prompt: &Prompt, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let label = prompt.label(&model.names);
    let start = put(buffer, area, 1, 0, &label, theme.strong);
    // Where the line is longer than its room, its end is shown: that is where typing goes on.
    let room = usize::from(area.width.saturating_sub(start + 1)).max(1);
    let before: Vec<char> = prompt.line.text().chars().take(prompt.line.cursor()).collect();
    let hidden = before.len().saturating_sub(room.saturating_sub(1));
    let shown: String = before[hidden..].iter().collect();
    let mut rest = prompt.line.text().chars().skip(prompt.line.cursor());
    let under = rest.next().unwrap_or(' ').to_string();
    let mut x = put(buffer, area, start, 0, &shown, theme.text);
    x = put(buffer, area, x, 0, &under, theme.cursor);
    x = put(buffer, area, x, 0, &rest.collect::<String>(), theme.text);
    let (words, style) = match (&prompt.error, prompt.example(&model.names)) {
        (Some(error), _) => (error.clone(), theme.failure),
        (None, Some(example)) => (example, theme.label),
        (None, None) => return,
    };
    put(buffer, area, x + 2, 0, &cut(&words, area.width.saturating_sub(x + 2)), style);
}

fn asked(model: &Model, question: &Question, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let choices = question.choices(&model.names);
    let answers: Vec<String> = choices.iter().map(|(_, what)| what.clone()).collect();
    // A key and a cell before each, two cells behind; two before the first, and the way out.
    let needed: u16 = answers.iter().map(|what| width(what) + 4).sum::<u16>() + 2 + LEAVE;
    let room = area.width.saturating_sub(needed + 1).max(area.width / 3);
    let text = cut(&question.text(&model.names), room);
    let mut x = put(buffer, area, 1, 0, &text, theme.strong) + 2;
    for ((key, what), first) in
        choices.iter().zip([true].into_iter().chain(std::iter::repeat(false)))
    {
        x = put(buffer, area, x, 0, &key.to_string(), theme.cursor) + 1;
        x = put(buffer, area, x, 0, what, if first { theme.strong } else { theme.text }) + 2;
    }
    x = put(buffer, area, x, 0, "esc", theme.cursor) + 1;
    put(buffer, area, x, 0, "leave", theme.label);
}
