//! The program as tests of live sources run it, and what it wrote.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The program with folders of its own.
pub(crate) fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"));
    command
        .env_remove("RUST_BACKTRACE")
        .env("NO_COLOR", "1")
        .env("HEADWATER_CONFIG", own.join("config"))
        .env("HEADWATER_LEDGERS", own.join("ledgers"))
        .env("HEADWATER_CACHE", folder.join("cache"))
        .env("HEADWATER_LIVE", folder.join("live"));
    command
}

/// What a run wrote: facts, and words beside them.
pub(crate) struct Told {
    pub(crate) facts: Vec<Value>,
    pub(crate) words: String,
}

impl Told {
    pub(crate) fn of(&self, fact: &str) -> Vec<&Value> {
        self.facts.iter().filter(|of| of["fact"] == fact).collect()
    }

    /// Whether a fact about the quality of data has `what` in it.
    pub(crate) fn says(&self, what: &str) -> bool {
        self.of("quality").iter().any(|of| of["what"].as_str().is_some_and(|w| w.contains(what)))
    }

    /// The number that stands before `what` in the summary of the source.
    pub(crate) fn count(&self, what: &str) -> u64 {
        let before = self.words.split(&format!(" {what}")).next().expect("a beginning");
        let number = before.rsplit([' ', ';', ':']).next().expect("an end");
        number.parse().unwrap_or_else(|_| panic!("no count of {what} in {}", self.words))
    }
}

pub(crate) fn told(output: &Output) -> Told {
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}");
    Told { facts: facts(&String::from_utf8_lossy(&output.stdout)), words }
}

/// The facts of a text, one a line.
pub(crate) fn facts(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
