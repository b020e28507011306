//! The real binary, run as a person runs it.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

#[cfg(unix)]
mod attach;
mod broken_sessions;
#[cfg(unix)]
mod broker;
#[cfg(unix)]
mod broker_faults;
mod cache;
#[cfg(unix)]
mod continuity;
mod data;
#[cfg(unix)]
mod eavesdropper;
mod elsewhere;
mod faults;
#[cfg(unix)]
mod identity;
mod init;
#[cfg(unix)]
mod joining;
mod kept_history;
mod ledger;
mod ledger_budget;
#[cfg(unix)]
mod lessons;
mod live;
#[cfg(unix)]
mod live_states;
mod manners;
#[cfg(unix)]
mod opened;
#[cfg(unix)]
#[path = "../support/proxy.rs"]
mod proxy;
mod readme;
mod recording;
#[cfg(unix)]
mod remote;
#[cfg(unix)]
mod remote_live;
#[cfg(unix)]
mod rogue;
mod run;
#[cfg(unix)]
mod site_recording;
mod started;
#[cfg(unix)]
mod states;
mod steady;
#[cfg(unix)]
mod storm;
mod study;
#[path = "../support/program.rs"]
mod support;
mod tables;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod topics;
#[cfg(unix)]
mod tty;
#[cfg(unix)]
mod walkthrough;
mod writing;
mod wrong_rows;

/// The program, in an empty place of its own: it leaves nothing in the folders of whoever runs the
/// tests.
fn headwater() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.env_remove("RUST_BACKTRACE").env("NO_COLOR", "1");
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"));
    command.env("HEADWATER_CACHE", own.join("cache"));
    command.env("HEADWATER_CONFIG", own.join("config"));
    command.env("HEADWATER_LEDGERS", own.join("ledgers"));
    command.env("HEADWATER_RECORDINGS", own.join("recordings"));
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

/// Real and standard data beside the project, which must be there. Tests that need it are ignored
/// where the whole folder is absent, see `src/build.rs`.
fn shared(path: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    assert!(path.exists(), "{} is absent, although ../shared was there at build", path.display());
    path
}
