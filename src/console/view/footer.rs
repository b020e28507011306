//! The bottom line: what works here and now.
//!
//! ```text
//!  space pause  ← → look back  + - speed  tab client  enter open  t truth  ? help  q quit
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};

use super::asked;
use super::pen::{Canvas, columns, width, wrapped};
use crate::console::action::{Action, Hint, TABLE};
use crate::console::app::Model;
use crate::console::mouse::Target;

struct Offer {
    action: Action,
    keys: String,
    hint: Hint,
}

impl Offer {
    fn cells(&self) -> u16 {
        width(&self.keys) + 1 + width(self.hint.what)
    }
}

/// Draws the line into the first row of `area`: a question, else a message, else what can be done.
pub(crate) fn draw(model: &Model, area: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    if asked::draw(model, area, canvas) {
        return;
    }
    if let Some(remark) = &model.remark {
        let style = if remark.bad { theme.failure } else { theme.strong };
        draw_message(&remark.text, style, area, canvas);
        return;
    }
    let mut x = 1;
    if let Some(key) = model.begun {
        x = canvas.put(area, x, 0, &format!("{key} …"), theme.cursor) + 2;
    }
    for offer in fitted(offers(model), area.width.saturating_sub(x - 1)) {
        canvas.hit(columns(area, x, offer.cells()), Target::Do(offer.action));
        x = canvas.put(area, x, 0, &offer.keys, theme.strong) + 1;
        x = canvas.put(area, x, 0, offer.hint.what, theme.label) + 2;
    }
}

/// A message; what does not fit into one line covers the last lines of the view, at most half of it.
fn draw_message(text: &str, style: Style, area: Rect, canvas: &mut Canvas) {
    let lines = wrapped(text, area.width.saturating_sub(2));
    let most = usize::from(canvas.buffer.area.height / 2).max(1);
    let rows = lines.len().min(most) as u16;
    let first = area.y.saturating_sub(rows.saturating_sub(1)).max(canvas.buffer.area.y);
    let covered = Rect { y: first, height: area.bottom() - first, ..area };
    if rows > 1 {
        Clear.render(covered, canvas.buffer);
    }
    for (y, line) in (0..covered.height).zip(lines) {
        canvas.cut(covered, 1, y, &line, style);
    }
}

fn offers(model: &Model) -> Vec<Offer> {
    let key = |action| model.keymap.keys(action).first().map(|chord| model.theme.key(*chord));
    TABLE
        .iter()
        .filter(|row| model.offers(row.action))
        .filter_map(|row| {
            let hint = row.hint?;
            let hint = Hint { what: model.wording(row.action).unwrap_or(hint.what), ..hint };
            let both = [key(row.action), hint.beside.and_then(key)];
            let both: Vec<String> = both.into_iter().flatten().collect();
            // Digits stand for all between them.
            let digits = both.iter().all(|key| key.parse::<u8>().is_ok());
            let keys = both.join(if digits { "-" } else { " " });
            Some(Offer { action: row.action, keys, hint })
        })
        .collect()
}

fn fitted(mut offers: Vec<Offer>, room: u16) -> Vec<Offer> {
    let cells = |offers: &[Offer]| offers.iter().map(|offer| offer.cells() + 2).sum::<u16>();
    while cells(&offers) > room
        && let Some(last) = (0..offers.len()).max_by_key(|at| offers[*at].hint.rank)
    {
        offers.remove(last);
    }
    offers
}
