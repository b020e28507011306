//! From a session to its stream.

use super::hai::HaiStream;
use super::live::kept;
use super::plant::PlantStream;
use super::table::{self, TableStream};
use super::twin::TwinStream;
use super::window::Window;
use super::{Stream, StreamError};
use crate::session::{Clock, Session, Source, Stretch, TableSource};

/// What a stretch of a session's data is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Models and scaling are fitted to it.
    Fit,
    /// Thresholds are set on it.
    Calibration,
    Replay,
}

impl Part {
    /// All of them, in the order they are used.
    pub(crate) const ALL: [Part; 3] = [Part::Fit, Part::Calibration, Part::Replay];

    /// Its key in a session.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Fit => "fit",
            Part::Calibration => "calibration",
            Part::Replay => "replay",
        }
    }

    pub(crate) fn stretch(self, session: &Session) -> &Stretch {
        match self {
            Part::Fit => &session.ranges.fit,
            Part::Calibration => &session.ranges.calibration,
            Part::Replay => &session.ranges.replay,
        }
    }
}

/// Opens one part of a session's data, at full rate: decimation is up to the caller.
pub(crate) fn open(session: &Session, part: Part) -> Result<Box<dyn Stream>, StreamError> {
    let stretch = part.stretch(session);
    let folder = session.data_folder().unwrap_or_default();
    let clock = Clock::of(session);
    Ok(match &session.source {
        Source::Plant(plant) => Box::new(Window::new(
            PlantStream::open(plant, &session.clients, session.seed)?,
            stretch,
            clock,
        )),
        Source::Twin(twin) => {
            Box::new(Window::new(TwinStream::open(twin, session.seed)?, stretch, clock))
        }
        Source::Table(source) => {
            Box::new(Window::new(table(session, source, part)?, stretch, clock))
        }
        Source::Live(_) if part == Part::Replay => {
            let what =
                "rows of a live source come when they come: `run`, `open` and `site` read it";
            return Err(StreamError::Setting(what.into()));
        }
        Source::Live(live) => {
            if let Some(source) = live.table() {
                Box::new(Window::new(table(session, source, part)?, stretch, clock))
            } else {
                let rows = kept::KeptReader::of(session, part.name())?;
                Box::new(Window::by_time_seen(rows, stretch, clock))
            }
        }
        Source::Hai(hai) => Box::new(Window::new(
            HaiStream::open(hai, &folder, &stretch.files, &session.clients)?,
            stretch,
            clock,
        )),
    })
}

fn table(session: &Session, source: &TableSource, part: Part) -> Result<TableStream, StreamError> {
    let folder = session.data_folder().unwrap_or_default();
    let period_s = session.sampling.period_s.or(session.live().map(|live| live.grid_s));
    let files = &part.stretch(session).files;
    let stream =
        TableStream::open(source, &folder, files, &session.clients, &session.labels, period_s)?;
    if let Some(period_s) = session.sampling.period_s {
        stream.check_period(period_s)?;
    }
    Ok(stream)
}

/// Periods that differ by a smaller factor are one period, found or said twice.
const SAME_PERIOD: f64 = 1.5;

/// Whether two periods are one: loggers jitter, and people round.
pub(crate) fn is_same_period(a: f64, b: f64) -> bool {
    a < b * SAME_PERIOD && b < a * SAME_PERIOD
}

/// How the times of each file of a part are written, where its files can differ: the name of a file
/// and the format in words.
pub(crate) fn time_formats(
    session: &Session,
    part: Part,
) -> Result<Vec<(String, String)>, StreamError> {
    let Source::Table(table) = &session.source else { return Ok(Vec::new()) };
    let folder = session.data_folder().unwrap_or_default();
    table::time_formats(table, &folder, &part.stretch(session).files)
}
