//! The console over a stretch of a recording, for terminal players (asciicast v2).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::Model;
use super::run::ConsoleError;
use super::still::{FULL_SPEED, run_to};
use super::subject::Subject;
use super::term::page;
use super::theme::{Depth, Terminal, Theme, ThemeChoice};
use super::view::view;
use crate::engine::handle::Options;

/// Pictures of a cast at most, and how long each is shown.
const PICTURES: i64 = 600;
const SHOWN: Duration = Duration::from_millis(100);

/// What a cast shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cast {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) size: (u16, u16),
}

/// The lines of a cast: a header, then one line a picture.
pub(crate) fn cast(subject: Subject, cast: &Cast) -> Result<String, ConsoleError> {
    let terminal = Terminal { depth: Depth::Bits24, light: None, ascii: false };
    let mut model = Model::new(subject.session(), Theme::new(ThemeChoice::Auto, terminal));
    let title = subject.title();
    run_to(&mut model, subject.spawn(Options::watched(FULL_SPEED), false)?)?;
    let known = model.measured.as_ref().map(|measured| &measured.history);
    let ends = known.and_then(|history| Some((history.first()?, history.last()?)));
    let Some((first, last)) = ends else { return Ok(String::new()) };
    let (from, to) = (cast.from.max(first), cast.to.min(last));
    let (width, height) = cast.size;
    let header = serde_json::json!({
        "version": 2, "width": width, "height": height, "title": title,
        "env": { "TERM": "xterm-256color" },
    });
    let mut lines = format!("{header}\n");
    let area = Rect::new(0, 0, width, height);
    let mut shown = Buffer::empty(area);
    let span = to.duration_since(from);
    let pictures = (span.as_secs() / 10).clamp(1, PICTURES);
    for at in 0..=pictures {
        let after = SignedDuration::from_secs_f64(span.as_secs_f64() * at as f64 / pictures as f64);
        let moment = from.checked_add(after).unwrap_or(to);
        model.look = (moment < last).then_some(moment);
        let mut next = Buffer::empty(area);
        view(&model, &mut next);
        let bytes = page(&shown, &next, at == 0)?;
        let time = SHOWN.as_secs_f64() * at as f64;
        let text = String::from_utf8_lossy(&bytes);
        lines.push_str(&serde_json::json!([time, "o", text]).to_string());
        lines.push('\n');
        shown = next;
    }
    Ok(lines)
}
