//! What recording a day costs, and how fast a recording is reopened.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::{BenchError, whole_run};
use crate::console::Reopened;
use crate::engine::handle::RecordTo;
use crate::engine::prepare::Prepared;
use crate::session::Session;

/// Runs of each kind; the best counts.
const RUNS: usize = 3;

/// Figures of the attack day as a recording.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RecordingFigures {
    /// Size of its file.
    pub(crate) day_mb: f64,
    /// How much longer a recorded run takes than one that is not, in percent.
    pub(crate) cost_percent: f64,
    /// Reading it into a console, up to the first picture.
    pub(crate) open_ms: f64,
    /// From there to the picture of any other instant, at 120x40: the slowest of many.
    pub(crate) seek_ms: f64,
}

pub(super) fn measure(
    session: &Session,
    prepared: &Arc<Prepared>,
    folder: &Path,
) -> Result<RecordingFigures, BenchError> {
    let (mut plain, mut recorded) = (f64::INFINITY, f64::INFINITY);
    let file = folder.join("day.hwrec");
    let mut see = |facts: &[crate::fact::Fact]| {
        std::hint::black_box(facts);
    };
    for _ in 0..RUNS {
        let begin = Instant::now();
        whole_run(session, prepared, None, &mut see)?;
        plain = plain.min(begin.elapsed().as_secs_f64());
        // A recording never replaces another.
        let _ = std::fs::remove_file(&file);
        let begin = Instant::now();
        whole_run(session, prepared, Some(RecordTo::File(file.clone())), &mut see)?;
        recorded = recorded.min(begin.elapsed().as_secs_f64());
    }
    let bytes = std::fs::metadata(&file).map_err(BenchError::Folder)?.len();
    let begin = Instant::now();
    let mut reopened = Reopened::open(&file).map_err(BenchError::Console)?;
    let open_ms = begin.elapsed().as_secs_f64() * 1e3;
    let seek_ms = reopened.slowest_seek_ms().map_err(BenchError::Console)?;
    let day_mb = bytes as f64 / 1e6;
    Ok(RecordingFigures {
        day_mb,
        cost_percent: 100.0 * (recorded / plain - 1.0),
        open_ms,
        seek_ms,
    })
}
