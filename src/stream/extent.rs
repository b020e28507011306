//! Estimates how much data a session has, without reading all of it.
//!
//! The built-in plants know. Files are judged by their size and their first rows, so that a file of
//! rows of uneven length, or one that compresses unusually well, is judged wrongly.

use std::fs;
use std::path::Path;

use super::columns::glob;
use super::live::kept;
use super::twin::{CHANNELS, slices};
use super::{Part, StreamError, open};
use crate::session::mark::civil;
use crate::session::{Mark, Session, Source};

/// Bytes of a number and what separates it from the next one, in a table of a historian.
const CELL_BYTES: f64 = 8.0;
/// How much smaller compression makes a table.
const COMPRESSED: f64 = 4.0;

/// How much data there is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extent {
    /// Sensors of every client.
    pub(crate) sensors: Vec<usize>,
    /// Rows of the fit range, as they stand in the data.
    pub(crate) fit_rows: f64,
    /// Rows of the calibration range.
    pub(crate) calibration_rows: f64,
}

/// How much data `session` has. Nothing is simulated, and of files only the beginning is read.
pub(crate) fn extent(session: &Session) -> Result<Extent, StreamError> {
    let (sensors, period_s) = if let Source::Twin(twin) = &session.source {
        (vec![CHANNELS; twin.clients], 1.0)
    } else {
        let stream = open(session, Part::Fit)?;
        let layout = stream.layout();
        let clients = layout.clients.iter();
        (clients.map(|c| c.sensors.len() + c.inputs.len()).collect(), layout.period_s)
    };
    let columns: usize = sensors.iter().sum();
    let rows = |part: Part| rows(session, part, columns, period_s);
    Ok(Extent { fit_rows: rows(Part::Fit), calibration_rows: rows(Part::Calibration), sensors })
}

fn rows(session: &Session, part: Part, columns: usize, period_s: f64) -> f64 {
    let stretch = part.stretch(session);
    let all = match &session.source {
        Source::Plant(plant) => (plant.history_h + plant.hours) * 3600.0,
        Source::Twin(twin) => slices(twin).steps() as f64,
        Source::Live(live) if live.table().is_none() => {
            kept::complete(session).map_or(0.0, |kept| kept.rows as f64)
        }
        Source::Table(_) | Source::Hai(_) | Source::Live(_) => {
            let folder = session.data_folder().unwrap_or_default();
            text_bytes(&folder, &stretch.files) / (CELL_BYTES * (columns + 1) as f64)
        }
    };
    let place = |mark: Mark| match mark {
        Mark::Step(steps) => Some(steps as f64),
        Mark::After(seconds) => Some(seconds / period_s),
        Mark::At(time) => {
            let (start, before_s) = match &session.source {
                Source::Plant(plant) => (&plant.start, plant.history_h * 3600.0),
                Source::Twin(twin) => (&twin.start, 0.0),
                // When a file begins is not known before it is read.
                Source::Table(_) | Source::Hai(_) | Source::Live(_) => return None,
            };
            let distance = time.duration_since(civil(start)?);
            Some((distance.as_secs_f64() + before_s) / period_s)
        }
    };
    let from = stretch.from.and_then(place).unwrap_or(0.0).max(0.0);
    let until = stretch.until.and_then(place).unwrap_or(all);
    // A table may have fewer columns than are used of it: rows that are asked for count.
    let until = if session.is_built_in() { until.min(all) } else { until };
    (until - from).max(0.0)
}

/// Bytes of the text in the files that `patterns` mean.
fn text_bytes(folder: &Path, patterns: &[String]) -> f64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0.0 };
    let size = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let plain = name.trim_end_matches(".gz");
        let wanted = |p: &String| glob(p, &name) || glob(p.trim_end_matches(".gz"), plain);
        let bytes = entry.metadata().ok().filter(|_| patterns.iter().any(wanted))?.len() as f64;
        Some(if name.len() > plain.len() { bytes * COMPRESSED } else { bytes })
    };
    entries.flatten().filter_map(size).sum()
}
