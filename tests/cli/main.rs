//! The real binary, run as a person runs it.

use std::path::{Path, PathBuf};
use std::process::Output;

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

/// What `score` says of facts and a truth, written into `folder`.
fn score(folder: &Path, facts: &str, truth: &str) -> Output {
    std::fs::write(folder.join("facts.jsonl"), facts).expect("the facts can be written");
    std::fs::write(folder.join("truth.csv"), truth).expect("the truth can be written");
    headwater()
        .current_dir(folder)
        .args(["score", "--truth", "truth.csv", "--alarms", "facts.jsonl", "--json"])
        .output()
        .expect("the program runs")
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
