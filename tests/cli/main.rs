//! The real binary, run as a person runs it.

use std::path::PathBuf;

use assert_cmd::Command;

mod broken_sessions;
mod data;
mod elsewhere;
mod ledger;
mod manners;
mod run;
mod steady;
mod study;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod tty;

/// The program, in an empty place of its own.
fn headwater() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.env_remove("RUST_BACKTRACE").env("NO_COLOR", "1");
    command
}

/// The folder of real and standard data beside the project; says loudly when it is absent.
fn shared(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("\n*** NOT TESTED: {} is absent ***\n", path.display());
    None
}
