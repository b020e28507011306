//! Speed and memory on this machine, measured the same way everywhere.
//!
//! Figures are the best of many short samples: other load can only make a sample slower. It must not
//! be used to judge correctness.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;

use crate::console::Twelve;
use crate::engine;
use crate::engine::handle::{OpenError, Options, RecordTo};
use crate::engine::pace::Speed;
use crate::engine::prepare::{self, PrepareError, Prepared};
use crate::fact::{Fact, LatencyMs, Summary};
use crate::federation::{FederationError, timing::round_us};
use crate::nn::timing::client_step_ns;
use crate::session::{SHIPPED, Session, SessionError};
use crate::stream::StreamError;

mod federation;
mod live;
mod recording;
mod sitting;

pub(crate) use self::federation::federation;
use recording::RecordingFigures;
use sitting::Sitting;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    /// One client's step (filter, φ, both residuals, both distances), by number of sensors.
    pub(crate) client_step_ns: ClientStepNs,
    /// One round of Algorithm 1, by number of clients.
    pub(crate) round_us: RoundUs,
    /// A whole run of the attack day in the mode of its session, with prepared models: opening,
    /// simulation, every step of clients and server, incidents, facts and score.
    pub(crate) day_replay_s: f64,
    /// The default start: federated training and calibration with delivered models.
    pub(crate) train_s: f64,
    /// The same, read from the cache.
    pub(crate) cached_s: f64,
    /// One picture of twelve clients: drawn, compared with the one before, turned into bytes.
    pub(crate) frame_us: FrameUs,
    /// The attack day as a recording.
    pub(crate) recording: RecordingFigures,
    /// From the start of the program to its first picture on a terminal, where there are
    /// pseudo-terminals.
    pub(crate) first_frame_ms: Option<f64>,
    /// From writing a key into the pseudo-terminal to the end of the picture that shows its effect, while
    /// the day is replayed at full speed: the median of several keys.
    pub(crate) key_to_frame_ms: Option<f64>,
    /// Share of one core that a console uses while nothing changes, in percent, where the system has it.
    pub(crate) idle_cpu_percent: Option<f64>,
    /// A live plant over a pipe, 200 rows a second: milliseconds from the arrival of a step's last row to
    /// the facts of that step.
    pub(crate) live_latency_ms: LatencyMs,
    /// Most memory the program has held, where the system has it.
    pub(crate) peak_rss_mb: Option<f64>,
}

/// Nanoseconds of a client's step.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ClientStepNs {
    pub(crate) d4: f64,
    pub(crate) d38: f64,
}

/// Microseconds of a round.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RoundUs {
    pub(crate) m3: f64,
    pub(crate) m16: f64,
    pub(crate) m256: f64,
    pub(crate) m1024: f64,
}

/// Microseconds of a picture, by columns and rows.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FrameUs {
    /// The smallest screen there commonly is.
    #[serde(rename = "80x24")]
    pub(crate) small: f64,
    #[serde(rename = "120x40")]
    pub(crate) middle: f64,
    #[serde(rename = "200x60")]
    pub(crate) large: f64,
}

/// Why something could not be measured.
#[derive(Debug, Error)]
pub(crate) enum BenchError {
    /// The shipped session is wrong.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Its data cannot be had.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// It cannot be prepared.
    #[error(transparent)]
    Prepare(#[from] Box<PrepareError>),
    /// A round cannot be held.
    #[error(transparent)]
    Federation(#[from] FederationError),
    /// It cannot be run.
    #[error(transparent)]
    Run(OpenError),
    /// A console cannot be drawn.
    #[error("the console could not be measured: {0}")]
    Console(OpenError),
    /// A live source cannot be watched.
    #[error("live values could not be timed: {0}")]
    Live(String),
    /// There is no room for a temporary file.
    #[error("cannot make a temporary folder: {0}")]
    Folder(std::io::Error),
}

/// Measures everything; takes some ten seconds.
pub(crate) fn measure() -> Result<Figures, BenchError> {
    let client_step_ns = ClientStepNs { d4: client_step_ns(4), d38: client_step_ns(38) };
    let round = |m| round_us(m, Duration::from_millis(700));
    let round_us =
        RoundUs { m3: round(3)?, m16: round(16)?, m256: round(256)?, m1024: round(1024)? };

    let session = Session::open(SHIPPED[0].name)?;
    let folder = std::env::temp_dir().join(format!("headwater-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(BenchError::Folder)?;
    let measured = on_disk(&session, &folder);
    // A folder that cannot be removed is the system's to clean up.
    let _ = std::fs::remove_dir_all(&folder);
    let ((train_s, cached_s, day_replay_s), recording, frame_us, sitting, live_latency_ms) =
        measured?;

    Ok(Figures {
        client_step_ns,
        round_us,
        day_replay_s,
        train_s,
        cached_s,
        frame_us,
        recording,
        first_frame_ms: sitting.first_frame_ms,
        key_to_frame_ms: sitting.key_to_frame_ms,
        idle_cpu_percent: sitting.idle_cpu_percent,
        live_latency_ms,
        peak_rss_mb: peak_rss(),
    })
}

/// Training, cache and replay in seconds; a recording; pictures; the program in a terminal; live values.
type OnDisk = ((f64, f64, f64), RecordingFigures, FrameUs, Sitting, LatencyMs);

/// What needs a folder for models.
fn on_disk(session: &Session, folder: &Path) -> Result<OnDisk, BenchError> {
    // Under the name by which a console started on this folder finds them.
    let file = prepare::cache_file(session);
    let file = folder.join(file.file_name().unwrap_or("models.safetensors".as_ref()));
    let (engine, prepared) = prepare_and_replay(session, &file)?;
    let recording = recording::measure(session, &prepared, folder)?;
    let mut twelve = Twelve::new(folder).map_err(BenchError::Console)?;
    let mut frame_us = |columns, rows| twelve.frame_us(columns, rows).map_err(BenchError::Console);
    let frames =
        FrameUs { small: frame_us(80, 24)?, middle: frame_us(120, 40)?, large: frame_us(200, 60)? };
    Ok((engine, recording, frames, sitting::sit(session, folder), live::latency(folder)?))
}

type Replayed = ((f64, f64, f64), Arc<Prepared>);

fn prepare_and_replay(session: &Session, file: &Path) -> Result<Replayed, BenchError> {
    let mut go_on = |_: prepare::Stage| std::ops::ControlFlow::Continue(());
    let begin = Instant::now();
    prepare::prepare(session, file, &mut go_on).map_err(Box::new)?;
    let train_s = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let prepared = Arc::new(prepare::prepare(session, file, &mut go_on).map_err(Box::new)?);
    let cached_s = begin.elapsed().as_secs_f64();

    let begin = Instant::now();
    let summary = whole_run(session, &prepared, None, &mut |facts| {
        std::hint::black_box(facts);
    })?;
    std::hint::black_box(summary);
    Ok(((train_s, cached_s, begin.elapsed().as_secs_f64()), prepared))
}

/// Runs `session` as `headwater run` does, from opening to the summary with its score. Every fact
/// is handed to `see`.
fn whole_run(
    session: &Session,
    prepared: &Arc<Prepared>,
    record: Option<RecordTo>,
    see: &mut dyn FnMut(&[Fact]),
) -> Result<Summary, BenchError> {
    let prepared = Some(Arc::clone(prepared));
    let options = Options { record, prepared, ..Options::facts(Speed::Max) };
    let engine = engine::spawn(session, options).map_err(|error| BenchError::Run(error.into()))?;
    let ended = engine.into_end(|_, update| see(&update.news.facts));
    let (_, ending) = ended.map_err(BenchError::Run)?;
    Ok(ending.summary)
}

/// Seconds of processors that a process has used, where the system says so.
fn processor_s(process: u32) -> Option<f64> {
    /// Ticks a second of the times in `/proc`: 100 on every Linux.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold anything; user and system time are the 12th and 13th number behind.
    let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || numbers.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}

/// The high-water mark of resident memory, where the system writes one.
fn peak_rss() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { client_step_ns: step, round_us: round, frame_us: frame, .. } = self;
        let measured = |value: Option<f64>, digits: usize, unit: &str, absent: &str| match value {
            Some(value) => format!("{value:>9.digits$} {unit}"),
            None => absent.to_owned(),
        };
        let no_terminal = "not measured: no pseudo-terminal";
        let unknown = "not known on this system";
        let lines = [
            (
                "client step",
                format!("{:>9.0} ns with 4 sensors, {:.0} ns with 38", step.d4, step.d38),
            ),
            (
                "round",
                format!(
                    "{:>9.1} µs with 3 clients, {:.1} with 16, {:.0} with 256, {:.0} with 1024",
                    round.m3, round.m16, round.m256, round.m1024
                ),
            ),
            (
                "default start",
                format!("{:>9.2} s, {:.2} s from the cache", self.train_s, self.cached_s),
            ),
            (
                "picture",
                format!(
                    "{:>9.0} µs at 80x24, {:.0} at 120x40, {:.0} at 200x60, twelve clients",
                    frame.small, frame.middle, frame.large
                ),
            ),
            ("first picture", measured(self.first_frame_ms, 0, "ms after the start", no_terminal)),
            (
                "key",
                measured(
                    self.key_to_frame_ms,
                    1,
                    "ms to its picture at full replay speed",
                    no_terminal,
                ),
            ),
            ("idle", measured(self.idle_cpu_percent, 1, "% of one core", unknown)),
            (
                "attack day",
                format!("{:>9.2} s for a whole run, from opening to the score", self.day_replay_s),
            ),
            (
                "recording",
                format!(
                    "{:>9.2} MB a day, {:.0} % more time (paper mode {:.0} %){}; opened in {:.0} ms, any \
                     instant in {:.1} ms",
                    self.recording.day_mb,
                    self.recording.cost_percent.evidence,
                    self.recording.cost_percent.paper,
                    self.recording.work(),
                    self.recording.open_ms,
                    self.recording.seek_ms
                ),
            ),
            (
                "live values",
                format!(
                    "{:>9.1} ms from arrival to decision (p50), {:.1} ms (p99), {} steps",
                    self.live_latency_ms.p50.get(),
                    self.live_latency_ms.p99.get(),
                    self.live_latency_ms.steps
                ),
            ),
            ("memory", measured(self.peak_rss_mb, 0, "MB at most", unknown)),
        ];
        lines.iter().try_for_each(|(name, figure)| writeln!(f, "{name:<13} {figure}"))
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::session::Mode;

    #[test]
    fn the_day_that_is_timed_is_run_to_its_last_fact_in_the_mode_of_its_session() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let text = "Session(about: \"short\", source: Plant(attacks: Only([\"S101\"]), \
            history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
            ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")))";
        let mut session = Session::parse("short", Path::new(""), text).expect("a sound session");
        let go_on = &mut |_: prepare::Stage| ControlFlow::Continue(());
        let prepared = prepare::prepare(&session, &folder.path().join("kept"), go_on);
        let prepared = Arc::new(prepared.expect("prepared"));
        for mode in [Mode::Evidence, Mode::Paper] {
            session.mode = mode;
            let mut facts = Vec::new();
            let see = &mut |new: &[Fact]| facts.extend_from_slice(new);
            let summary = whole_run(&session, &prepared, None, see).expect("a built-in plant");
            assert_eq!((summary.mode, summary.steps), (mode, 2 * 3600 / 5));
            let opened = facts.iter().filter(|fact| matches!(fact, Fact::Opened(_))).count();
            let closed = facts.iter().filter(|fact| matches!(fact, Fact::Closed(_))).count();
            assert!(opened > 0, "the attack is an incident");
            assert_eq!((opened, closed), (closed, summary.incidents as usize), "{mode:?}");
            assert!(summary.score.is_some(), "the score is part of the run");
        }
    }
}
