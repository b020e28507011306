//! The screen: live measurements of every client, as they are replayed.
//!
//! ```text
//!  keys, signals ─► run ─► Msg ─► update(model) ─► view(model) ─► term: one write per frame
//!  feed (thread) ──►                    └─► Effect ─► feed: pace, term: suspend
//! ```
//!
//! `app` and `view` are pure: no clock, no terminal, no thread. What the outside world does is in
//! `run`, `term`, `feed` and `signals`, and nowhere else. Nothing imports this module.

mod action;
mod app;
mod clock;
mod day;
mod export;
mod feed;
mod glyph;
mod key;
mod keymap;
mod measured;
mod mouse;
mod number;
mod pace;
mod pulse;
mod remark;
mod run;
mod scale;
mod sessions;
mod signals;
mod still;
mod term;
mod text;
mod theme;
mod timing;
mod training;
mod trend;
mod truth;
mod view;
mod watched;
mod widget;
mod window;

#[cfg(test)]
mod tests;

pub use export::Format;
pub use feed::OpenError;
pub use keymap::{KEYS_FILE, KeysError, actions, example_keys, keys_in_force, keys_table};
pub use run::{Appearance, ConsoleError, Ending, is_possible, run};
pub use still::{Moment, Picture, Still, still, view_names};
pub use theme::Choice as ThemeChoice;
pub use timing::Twelve;
