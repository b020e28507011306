//! Progress on standard error, where that is a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use super::text::clock;

/// One line that says what is going on.
pub(in crate::cli) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new_spinner().with_style(
            ProgressStyle::with_template("{spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        if std::io::stderr().is_terminal() {
            bar.enable_steady_tick(Duration::from_millis(200));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self(bar)
    }

    /// A hidden one, beside a screen.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// What is being done.
    pub(crate) fn show(&self, what: &str) {
        if !self.0.is_hidden() {
            self.0.set_message(what.to_owned());
        }
    }

    /// A step is done.
    pub(crate) fn at(&self, time: Timestamp) {
        if !self.0.is_hidden() {
            self.0.set_message(clock(time).to_string());
        }
    }

    /// Does something with the line out of the way.
    pub(crate) fn aside<R>(&self, what: impl FnOnce() -> R) -> R {
        self.0.suspend(what)
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
