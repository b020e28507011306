//! The bottom line: what works here and now.
//!
//! ```text
//!  space pause  ← → look back  + - speed  tab client  enter open  t truth  ? help  q quit
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::asked;
use super::pen::{cut, put, width};
use crate::console::action::{Action, Hint, TABLE};
use crate::console::app::Model;
use crate::console::mouse::{Hit, Target};
use crate::console::theme::Theme;

/// A hint with its keys as they are now.
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

/// Draws the line into the first row of `area`: what is asked of the operator, what is said to him,
/// else what can be done.
pub(crate) fn draw(
    model: &Model,
    theme: &Theme,
    area: Rect,
    buffer: &mut Buffer,
    hits: &mut Vec<Hit>,
) {
    if asked::draw(model, theme, area, buffer) {
        return;
    }
    if let Some(remark) = &model.remark {
        let style = if remark.bad { theme.failure } else { theme.strong };
        put(buffer, area, 1, 0, &cut(&remark.text, area.width.saturating_sub(1)), style);
        return;
    }
    let mut x = 1;
    if let Some(key) = model.begun {
        x = put(buffer, area, x, 0, &format!("{key} …"), theme.cursor) + 2;
    }
    for offer in fitted(offers(model), area.width.saturating_sub(x - 1)) {
        let whole = Rect { x: area.x.saturating_add(x), width: offer.cells(), ..area };
        hits.push(Hit { area: whole.intersection(area), target: Target::Do(offer.action) });
        x = put(buffer, area, x, 0, &offer.keys, theme.strong) + 1;
        x = put(buffer, area, x, 0, offer.hint.what, theme.label) + 2;
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
            let keys = both.into_iter().flatten().collect::<Vec<_>>().join(" ");
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
