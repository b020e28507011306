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
mod feed;
mod key;
mod measured;
mod number;
mod pace;
mod run;
mod scale;
mod signals;
mod term;
mod text;
mod theme;
mod training;
mod trend;
mod truth;
mod view;
mod watched;
mod window;

#[cfg(test)]
mod tests;

pub use feed::OpenError;
pub use run::{ConsoleError, Ending, is_possible, run};
pub use training::Training;
