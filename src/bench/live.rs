//! How long values of a live source wait until something is decided: the plant over a pipe.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::BenchError;
use crate::fact::{Fact, LatencyMs};
use crate::session::SHIPPED;

/// Six hours of history instead of the two days of the shipped session: the models are as large.
const SHORTER: [(&str, &str); 2] = [("+16h", "+2h"), ("+48h", "+6h")];
/// Rows of the day, 200 a second; a step takes five.
const DAY: [&str; 6] = ["--history", "6", "--hours", "0.5", "--speed", "200"];

/// Everything that the programs keep goes into the folder of the measurement.
const FOLDERS: [&str; 5] = [
    "HEADWATER_CACHE",
    "HEADWATER_CONFIG",
    "HEADWATER_LEDGERS",
    "HEADWATER_LIVE",
    "HEADWATER_RECORDINGS",
];

/// A child process that is ended when this value is dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // What has ended by itself cannot be ended again.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `make plant --live stdout | run` as two programs, and gives what the run says in its summary.
pub(super) fn latency(folder: &Path) -> Result<LatencyMs, BenchError> {
    let trouble = |why: io::Error| BenchError::Live(why.to_string());
    let file = folder.join("live.ron");
    fs::write(&file, session()?).map_err(trouble)?;
    let program = std::env::current_exe().map_err(trouble)?;
    let command = || {
        let mut command = Command::new(&program);
        command.envs(FOLDERS.map(|name| (name, folder)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    let mut plant = command();
    plant.args(["make", "plant", "--seed", "7", "--attacks", "--live", "stdout"]).args(DAY);
    let mut plant = Started(plant.spawn().map_err(trouble)?);
    let rows = plant.0.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let run = command().args(["run", "--json"]).arg(&file).stdin(rows).output().map_err(trouble)?;
    let facts = String::from_utf8_lossy(&run.stdout);
    let summary = facts.lines().last().and_then(|line| serde_json::from_str(line).ok());
    match summary {
        Some(Fact::Summary(summary)) => summary.latency_ms,
        _ => None,
    }
    .ok_or_else(|| BenchError::Live("the run ended without a summary".into()))
}

fn session() -> Result<String, BenchError> {
    let shipped = SHIPPED.iter().find(|shipped| shipped.name == "plant-live");
    let mut text = shipped.map_or_else(String::new, |shipped| shipped.text.to_owned());
    for (long, short) in SHORTER {
        if !text.contains(long) {
            return Err(BenchError::Live(format!("plant-live does not say {long}")));
        }
        text = text.replace(long, short);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::session::Session;

    #[test]
    fn the_session_that_is_timed_is_the_shipped_one_with_less_history() {
        let text = session().expect("the shipped session says how long it learns");
        let timed = Session::parse("live", Path::new(""), &text).expect("a sound session");
        let shipped = Session::open("plant-live").expect("a shipped session");
        assert_eq!(timed.clients, shipped.clients);
        assert_ne!(timed.ranges, shipped.ranges);
    }
}
