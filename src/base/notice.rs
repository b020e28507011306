//! A line on standard error, beside what a command prints.

use std::fmt::Display;
use std::io::{Write as _, stderr};

/// Writes `headwater: what`. If standard error is closed, the message is lost.
pub(crate) fn print_notice(what: impl Display) {
    let _ = writeln!(stderr(), "headwater: {what}");
}
