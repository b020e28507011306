//! A recording that was run again from a moment with another setting.
//!
//! ```text
//! ── run again from 14 Aug 10:42:05  ARL₀ 2d → 8h ─────────────────
//!  incidents 12 → 9   3 gone   0 new   1 with another root
//!    as it was                        run again
//!  ≠ 10:42:10 #3 P1 (P2, P3)          10:43:00 #3 P2
//!    11:20:00 #4 P3                   11:20:00 #4 P3
//! ```

use ratatui::layout::Rect;

use super::pen::{Canvas, columns, part, span};
use crate::console::app::Model;
use crate::engine::branch::Branch;
use crate::incident::Incident;

pub(crate) fn draw(model: &Model, branch: &Branch, skip: usize, area: Rect, canvas: &mut Canvas) {
    let theme = canvas.theme;
    let knob = branch.turn.knob().title(&model.names);
    let title = format!(
        "run again from {}  {knob} {} → {}",
        model.clock.date_time(branch.from),
        branch.before,
        branch.turn
    );
    let body = canvas.panel(area, [span(title, theme.strong)]);
    let pairs = branch.pairs();
    let count = |is: fn(&(Option<&Incident>, Option<&Incident>)) -> bool| {
        pairs.iter().filter(|pair| is(pair)).count()
    };
    let summary = format!(
        "incidents {} → {}   {} gone   {} new   {} with another root",
        branch.old.len(),
        branch.new.len(),
        count(|pair| pair.1.is_none()),
        count(|pair| pair.0.is_none()),
        count(|pair| matches!(pair, (Some(old), Some(new)) if old.root != new.root)),
    );
    canvas.cut(body, 1, 0, &summary, theme.text);
    let half = body.width.saturating_sub(4) / 2;
    let table = part(body, 1, u16::MAX);
    let (left, right) = (columns(table, 3, half), columns(table, 4 + half, half));
    canvas.cut(left, 0, 0, "as it was", theme.label);
    canvas.cut(right, 0, 0, "run again", theme.label);
    let rows = part(table, 1, u16::MAX);
    let room = usize::from(rows.height);
    let skip = skip.min(pairs.len().saturating_sub(room));
    for (y, (old, new)) in (1..=rows.height).zip(pairs.iter().skip(skip)) {
        let differs = old.map(|i| (i.root, i.opened)) != new.map(|i| (i.root, i.opened));
        let style = if differs { theme.strong } else { theme.text };
        if differs {
            canvas.put(table, 1, y, "≠", style);
        }
        for (side, incident) in [(left, old), (right, new)] {
            let text = incident.map_or_else(|| "–".to_owned(), |i| words(model, i));
            canvas.cut(side, 0, y, &text, style);
        }
    }
    if pairs.is_empty() {
        let text = "no incident was open then or came later, in either";
        canvas.cut(rows, 1, 0, text, theme.label);
    }
}

/// "10:42:10 #3 P1 (P2, P3)"
fn words(model: &Model, incident: &Incident) -> String {
    let name = |client: usize| model.names.get(client).map_or("?", String::as_str);
    let root = incident.root.map_or("root unknown", name);
    let effects: Vec<&str> = incident.effects().map(|member| name(member.client)).collect();
    let effects =
        if effects.is_empty() { String::new() } else { format!(" ({})", effects.join(", ")) };
    format!("{} #{} {root}{effects}", model.clock.time(incident.opened), incident.number)
}
