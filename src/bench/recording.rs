//! What recording a day costs, and how fast a recording is reopened.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::{BenchError, processor_s, whole_run};
use crate::console::Reopened;
use crate::engine::handle::RecordTo;
use crate::engine::prepare::Prepared;
use crate::session::{Mode, Session};

/// Runs of each kind, one after the other in turn. The best one counts for the time, all of them for the
/// work.
const RUNS: usize = 4;

/// Figures of the attack day as a recording.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RecordingFigures {
    /// Size of its file.
    pub(crate) day_mb: f64,
    /// How much longer a recorded run takes than one that is not, in percent.
    pub(crate) cost_percent: ByMode<f64>,
    /// How much more time of processors it takes, all threads together, in percent; nothing where the
    /// system does not say. With an idle core it is not waited for.
    pub(crate) cpu_percent: ByMode<Option<f64>>,
    /// Reading it into a console, up to the first picture.
    pub(crate) open_ms: f64,
    /// From there to the picture of any other instant, at 120x40: the slowest of many.
    pub(crate) seek_ms: f64,
}

/// A figure of each method.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct ByMode<T> {
    pub(crate) evidence: T,
    pub(crate) paper: T,
}

/// What some runs took.
struct Taken {
    best_s: f64,
    processors_s: Option<f64>,
}

impl RecordingFigures {
    /// How much more of the processors is used, in words.
    pub(super) fn work(&self) -> String {
        match (self.cpu_percent.evidence, self.cpu_percent.paper) {
            (Some(evidence), Some(paper)) => {
                format!(", {evidence:.0} % more work of all cores (paper mode {paper:.0} %)")
            }
            _ => String::new(),
        }
    }
}

pub(super) fn measure(
    session: &Session,
    prepared: &Arc<Prepared>,
    folder: &Path,
) -> Result<RecordingFigures, BenchError> {
    let file = folder.join("day.hwrec");
    let (cost_paper, cpu_paper) = cost(session, Mode::Paper, prepared, &file)?;
    // The file that stays is that of the method which decides by default.
    let (cost_evidence, cpu_evidence) = cost(session, Mode::Evidence, prepared, &file)?;
    let bytes = std::fs::metadata(&file).map_err(BenchError::Folder)?.len();
    let begin = Instant::now();
    let mut reopened = Reopened::open(&file).map_err(BenchError::Console)?;
    let open_ms = begin.elapsed().as_secs_f64() * 1e3;
    let seek_ms = reopened.slowest_seek_ms().map_err(BenchError::Console)?;
    let day_mb = bytes as f64 / 1e6;
    Ok(RecordingFigures {
        day_mb,
        cost_percent: ByMode { evidence: cost_evidence, paper: cost_paper },
        cpu_percent: ByMode { evidence: cpu_evidence, paper: cpu_paper },
        open_ms,
        seek_ms,
    })
}

/// How much more time a recorded run takes, and how much more of the processors', in percent.
fn cost(
    session: &Session,
    mode: Mode,
    prepared: &Arc<Prepared>,
    file: &Path,
) -> Result<(f64, Option<f64>), BenchError> {
    let session = Session { mode, ..session.clone() };
    let mut taken = [Taken::new(), Taken::new()];
    for _ in 0..RUNS {
        for (recorded, taken) in taken.iter_mut().enumerate() {
            // A recording never replaces another.
            let _ = std::fs::remove_file(file);
            let record = (recorded == 1).then(|| RecordTo::File(file.to_path_buf()));
            let used_s = || processor_s(std::process::id());
            let (begin, before) = (Instant::now(), used_s());
            whole_run(&session, prepared, record, &mut |facts| {
                std::hint::black_box(facts);
            })?;
            taken.best_s = taken.best_s.min(begin.elapsed().as_secs_f64());
            let used = used_s().zip(before).map(|(after, before)| after - before);
            taken.processors_s = taken.processors_s.zip(used).map(|(sum, used)| sum + used);
        }
    }
    let [plain, recorded] = taken;
    let percent = |recorded: f64, plain: f64| 100.0 * (recorded / plain - 1.0);
    let work = recorded.processors_s.zip(plain.processors_s);
    Ok((percent(recorded.best_s, plain.best_s), work.map(|(r, p)| percent(r, p))))
}

impl Taken {
    fn new() -> Self {
        Self { best_s: f64::INFINITY, processors_s: Some(0.0) }
    }
}
