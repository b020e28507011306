//! A synthetic plant as files: `twin.csv` with all measurements, `twin-truth.json` with the truth.
//!
//! Both stand complete or not at all: they are written under another name and renamed at the end.
//! It must not know how a plant is drawn.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::Serialize;

use super::{MakeError, is_wanted};
use crate::base::atomic_file::AtomicFile;
use crate::session::{Family, TwinSource};
use crate::stream::twin::TwinStream;
use crate::stream::{Frame, Label, Layout, Stream};

/// The files that are written: measurements, truth.
pub(crate) const FILES: [&str; 2] = ["twin.csv", "twin-truth.json"];

/// Digits kept of every measurement: far more than its noise leaves meaningful.
const SIGNIFICANT: i32 = 9;
/// Decimals at most: what is smaller is zero for every purpose.
const MAX_DECIMALS: i32 = 15;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) table: PathBuf,
    pub(crate) truth: PathBuf,
    /// Rows of the table, its header not counted.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) anomalies: usize,
    /// How many have their root cause in which client.
    pub(crate) by_root: BTreeMap<String, usize>,
}

/// Writes the plant of `source` and `seed` into `folder`, which is made when it is not there.
/// The same source and seed give the same bytes. Files of an earlier run are replaced once the new
/// ones are complete; when `stop` is raised before that, they remain.
pub(crate) fn write(
    source: &TwinSource,
    seed: u64,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Written, MakeError> {
    let mut stream = TwinStream::open(source, seed)?;
    let mut table = AtomicFile::create(folder, FILES[0])?;
    let mut truth = AtomicFile::create(folder, FILES[1])?;
    let rows = table.fill(|out| write_table(&mut stream, out, stop))?;
    let rows = rows.ok_or(MakeError::Stopped)?;
    truth.fill(|out| {
        serde_json::to_writer_pretty(&mut *out, &Truth::new(source, seed, &stream))?;
        writeln!(out)
    })?;
    // Both are safe on the disk before either shows.
    table.finish()?;
    truth.finish()?;
    let mut by_root = BTreeMap::new();
    for event in stream.events() {
        *by_root.entry(event.origins.join("+")).or_default() += 1;
    }
    Ok(Written {
        table: table.publish()?,
        truth: truth.publish()?,
        rows,
        columns: stream.layout().width(),
        anomalies: stream.events().len(),
        by_root,
    })
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, columns, anomalies, .. } = self;
        writeln!(f, "{}: {rows} rows, {columns} measured columns", self.table.display())?;
        writeln!(f, "{}: {anomalies} anomalies", self.truth.display())?;
        for (root, count) in &self.by_root {
            writeln!(f, "  {count:>3} with root cause {root}")?;
        }
        Ok(())
    }
}

/// Writes all frames and returns their number; nothing when it was stopped.
fn write_table(
    stream: &mut TwinStream,
    out: &mut impl Write,
    stop: &AtomicBool,
) -> io::Result<Option<usize>> {
    write!(out, "time")?;
    for sensor in sensors(stream.layout()) {
        write!(out, ",{sensor}")?;
    }
    writeln!(out, ",attack")?;
    let mut frame = Frame::for_layout(stream.layout());
    let mut rows = 0;
    while stream.next(&mut frame).map_err(io::Error::other)? {
        if is_wanted(stop) {
            return Ok(None);
        }
        write!(out, "{}", civil(frame.time))?;
        for &value in frame.raw_values() {
            write!(out, ",{value:.*}", decimals(value))?;
        }
        writeln!(out, ",{}", u8::from(matches!(frame.label, Label::Anomalous { .. })))?;
        rows += 1;
    }
    Ok(Some(rows))
}

fn sensors(layout: &Layout) -> impl Iterator<Item = &str> {
    layout.clients.iter().flat_map(|c| &c.sensors).map(|s| s.name.as_str())
}

/// Decimals that show [`SIGNIFICANT`] digits of `value`.
fn decimals(value: f64) -> usize {
    let leading = value.abs().log10().floor().max(f64::from(SIGNIFICANT - 1 - MAX_DECIMALS));
    (SIGNIFICANT - 1 - leading as i32).clamp(0, MAX_DECIMALS) as usize
}

/// `yyyy-MM-dd HH:mm:ss` of the plant's own clock.
fn civil(time: Timestamp) -> impl std::fmt::Display {
    Offset::UTC.to_datetime(time).strftime("%Y-%m-%d %H:%M:%S")
}

/// Everything that is known about a plant, as it stands in the file. Steps are counted from 0.
#[derive(Debug, Serialize)]
struct Truth {
    family: Family,
    clients: Vec<TrueClient>,
    seed: u64,
    /// Only family A has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    period_s: f64,
    graph: Vec<TrueEdge>,
    slices: TrueSlices,
    anomalies: Vec<TrueAnomaly>,
}

#[derive(Debug, Serialize)]
struct TrueClient {
    name: String,
    title: String,
}

#[derive(Debug, Serialize)]
struct TrueEdge {
    parent: String,
    child: String,
    delay_steps: usize,
}

/// First step and the step after the last one.
#[derive(Debug, Serialize)]
struct TrueSlices {
    fit: [usize; 2],
    calibration: [usize; 2],
    nominal: [usize; 2],
    anomalous: [usize; 2],
}

#[derive(Debug, Serialize)]
struct TrueAnomaly {
    id: String,
    start: String,
    /// The last instant, inclusive.
    end: String,
    start_step: usize,
    /// The last step, inclusive.
    end_step: usize,
    root: String,
    kind: String,
    affected: Vec<String>,
}

impl Truth {
    fn new(source: &TwinSource, seed: u64, stream: &TwinStream) -> Self {
        let clients = &stream.layout().clients;
        let plant = stream.plant();
        let ends = |range: &Range<usize>| [range.start, range.end];
        let slices = plant.slices();
        let anomalies = stream.events().iter().zip(plant.faults());
        Self {
            family: source.family,
            clients: clients
                .iter()
                .map(|c| TrueClient { name: c.name.clone(), title: c.title.clone() })
                .collect(),
            seed,
            delta: (source.family == Family::A).then_some(source.delta),
            period_s: stream.layout().period_s,
            graph: plant
                .graph()
                .edges()
                .iter()
                .map(|edge| TrueEdge {
                    parent: clients[edge.parent].name.clone(),
                    child: clients[edge.child].name.clone(),
                    delay_steps: edge.delay,
                })
                .collect(),
            slices: TrueSlices {
                fit: ends(&slices.fit),
                calibration: ends(&slices.calibration),
                nominal: ends(&slices.nominal),
                anomalous: ends(&slices.anomalous),
            },
            anomalies: anomalies
                .map(|(event, fault)| TrueAnomaly {
                    id: event.id.clone(),
                    start: civil(event.start).to_string(),
                    end: civil(event.end).to_string(),
                    start_step: fault.start,
                    end_step: fault.steps().end - 1,
                    root: clients[fault.root].name.clone(),
                    kind: event.what.clone(),
                    affected: event.affected.clone(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn source() -> TwinSource {
        TwinSource { family: Family::B, clients: 3, ..TwinSource::default() }
    }

    #[test]
    fn the_files_hold_the_stream_and_its_truth_and_are_the_same_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("new/folder");
        let written = write(&source(), 5, &out, &AtomicBool::new(false)).unwrap();
        assert_eq!((written.rows, written.columns, written.anomalies), (18_000, 12, 75));
        let table = fs::read_to_string(&written.table).unwrap();
        let truth = fs::read_to_string(&written.truth).unwrap();

        let mut lines = table.lines();
        let header = lines.next().unwrap();
        assert!(header.starts_with("time,C1_y1,C1_y2,C1_y3,C1_y4,C2_y1"));
        assert!(header.ends_with(",C3_y4,attack"));
        let mut stream = TwinStream::open(&source(), 5).unwrap();
        let mut frame = Frame::for_layout(stream.layout());
        let mut attacked = 0;
        for line in lines {
            assert!(stream.next(&mut frame).unwrap());
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells[0], civil(frame.time).to_string());
            assert_eq!(cells[13] == "1", frame.label != Label::Normal);
            attacked += usize::from(cells[13] == "1");
            for (cell, value) in cells[1..13].iter().zip(frame.raw_values()) {
                let read: f64 = cell.parse().unwrap();
                assert!((read - value).abs() <= 5e-9 * value.abs().max(1e-6), "{cell} {value}");
            }
        }
        assert!(!stream.next(&mut frame).unwrap());

        let truth_json: serde_json::Value = serde_json::from_str(&truth).unwrap();
        assert_eq!(truth_json["family"], "B");
        assert_eq!(truth_json["clients"].as_array().unwrap().len(), 3);
        assert_eq!(truth_json["slices"]["calibration"], serde_json::json!([4000, 6000]));
        let anomalies = truth_json["anomalies"].as_array().unwrap();
        let steps = |a: &serde_json::Value| {
            a["end_step"].as_u64().unwrap() - a["start_step"].as_u64().unwrap() + 1
        };
        assert_eq!(anomalies.iter().map(steps).sum::<u64>(), attacked as u64);

        write(&source(), 5, &out, &AtomicBool::new(false)).unwrap();
        assert_eq!(fs::read_to_string(&written.table).unwrap(), table);
        assert_eq!(fs::read_to_string(&written.truth).unwrap(), truth);
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "nothing else is left behind");
    }

    #[test]
    fn a_folder_that_is_a_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("twin.csv");
        fs::write(&path, "old").unwrap();
        let message = write(&source(), 1, &path, &AtomicBool::new(false))
            .expect_err("a file is no folder")
            .to_string();
        assert!(message.contains("twin.csv"), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }

    proptest! {
        #[test]
        fn a_number_keeps_nine_digits(value in prop::num::f64::NORMAL) {
            prop_assume!(value.abs() < 1e12);
            let text = format!("{value:.*}", decimals(value));
            let read: f64 = text.parse().unwrap();
            prop_assert!((read - value).abs() <= 5.000_001e-9 * value.abs().max(1e-7));
        }
    }
}
