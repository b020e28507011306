//! The screen: live measurements of every client, as they are replayed.
//!
//! ```text
//!  keys, signals ─► run ─► Msg ─► update(model) ─► view(model) ─► term: one write per frame
//!  engine (thread) ►                    └─► Effect ─► engine: commands, term: suspend
//! ```
//!
//! `app` and `view` are pure: no clock, no terminal, no thread. What the outside world does is in
//! `run`, `term` and `signals`, and nowhere else. Only `cli` and `bench` import this module.

// A new action, screen, question, knob or event must be decided on wherever it matters.
#![deny(clippy::wildcard_enum_match_arm)]

mod action;
mod app;
mod cast;
mod clock;
mod compare;
mod day;
mod export;
mod federation;
mod glyph;
mod input;
mod key;
mod keymap;
mod known;
mod measured;
mod mouse;
mod number;
mod own_site;
mod pulse;
mod remark;
mod run;
mod scale;
mod sessions;
mod signals;
mod still;
mod subject;
mod term;
mod text;
mod theme;
mod timing;
mod training;
mod truth;
mod view;
mod watched;
mod widget;
mod window;
mod written;

#[cfg(test)]
mod tests;

pub(crate) use app::Goal;
pub(crate) use cast::{Cast, cast};
pub(crate) use compare::{Both, compare};
pub(crate) use export::Format;
pub(crate) use federation::{Lines, PartyView, title, watch_federation};
pub(crate) use input::Keys;
#[cfg(unix)]
pub(crate) use input::read_keys;
pub(crate) use keymap::{KEYS_FILE, actions, example_keys, keys_in_force, keys_of, keys_table};
pub(crate) use own_site::watch_site;
pub(crate) use run::{Appearance, Ending, is_possible, run};
pub(crate) use still::{Still, drawn, goal, moment, still, view_names};
pub(crate) use subject::Subject;
pub(crate) use theme::ThemeChoice;
pub(crate) use timing::{Reopened, Twelve};
