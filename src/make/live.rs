//! The built-in plant as a live source: its normal history at once, then its day, second by second.
//!
//! Values are written so that they read back as the very same numbers: a console that reads them
//! finds what the built-in session finds.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{MakeError, is_wanted};
use crate::session::PlantSource;
use crate::stream::plant::{Day, PlantRow, Tag};

/// Hours of normal operation that are delivered before the day: as in the session `plant-attack-day`.
pub(crate) const HISTORY_H: f64 = 48.0;
/// No single wait is longer, so that a wish to stop is noticed.
const NAP: Duration = Duration::from_millis(50);

/// Who takes the rows.
pub(crate) trait Sink {
    /// Takes the row of an instant: one value a tag of [`Tag::ALL`].
    fn take(&mut self, time: Timestamp, row: &PlantRow) -> Result<(), MakeError>;

    /// Hands on what was taken so far.
    fn flush(&mut self) -> Result<(), MakeError>;

    /// No row follows.
    fn end(&mut self) -> Result<(), MakeError> {
        Ok(())
    }
}

/// Runs the plant of `source` into `sink`: the history and the first `over_h` hours of the day as fast as
/// it goes, the rest `speed` times as fast as the clock, or as fast as it goes.
pub(crate) fn run(
    source: &PlantSource,
    seed: u64,
    speed: Option<f64>,
    over_h: f64,
    sink: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<(), MakeError> {
    let day = Day::plan(source)?;
    let mut plant = day.plant(seed);
    let mut row = PlantRow::default();
    let history = ((source.history_h + over_h) * 3600.0).floor() as u64;
    let mut begun = Instant::now();
    for step in 0..day.steps {
        plant.step(&mut row);
        if step == history {
            sink.flush()?;
            begun = Instant::now();
        }
        if let Some(speed) = speed.filter(|_| step >= history) {
            let due = Duration::from_secs_f64((step - history) as f64 / speed);
            while let Some(wait) = due.checked_sub(begun.elapsed()).filter(|w| !w.is_zero()) {
                sink.flush()?;
                thread::sleep(wait.min(NAP));
                if is_wanted(stop) {
                    return Ok(());
                }
            }
        }
        if is_wanted(stop) {
            break;
        }
        sink.take(day.time(step), &row)?;
    }
    sink.flush()?;
    sink.end()
}

/// CSV with a header, as a person would pipe it.
pub(crate) struct Lines<W> {
    out: W,
    line: Vec<u8>,
    headed: bool,
}

impl<W: Write> Lines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, line: Vec::new(), headed: false }
    }
}

impl<W: Write> Sink for Lines<W> {
    fn take(&mut self, time: Timestamp, row: &PlantRow) -> Result<(), MakeError> {
        self.line.clear();
        if !self.headed {
            self.headed = true;
            self.line.extend_from_slice(b"timestamp");
            for tag in Tag::ALL {
                self.line.push(b',');
                self.line.extend_from_slice(tag.name().as_bytes());
            }
            self.line.push(b'\n');
        }
        csv_line(&mut self.line, time, row).and_then(|()| self.out.write_all(&self.line))?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MakeError> {
        Ok(self.out.flush()?)
    }
}

fn csv_line(line: &mut Vec<u8>, time: Timestamp, row: &PlantRow) -> io::Result<()> {
    write!(line, "{}", TimeZone::UTC.to_datetime(time).strftime("%Y-%m-%d %H:%M:%S"))?;
    for value in &row.0 {
        // The shortest text that reads back as the same number.
        write!(line, ",{value}")?;
    }
    line.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Attacks;

    #[test]
    fn lines_read_back_as_the_very_numbers_of_the_plant() {
        let source = PlantSource {
            attacks: Attacks::Nothing,
            history_h: 0.1,
            hours: 0.1,
            ..PlantSource::default()
        };
        let mut text = Vec::new();
        run(&source, 3, None, 0.0, &mut Lines::new(&mut text), &AtomicBool::new(false))
            .expect("written");
        let day = Day::plan(&source).expect("sound settings");
        let (mut plant, mut row) = (day.plant(3), PlantRow::default());
        let mut reader = csv::Reader::from_reader(&text[..]);
        let mut rows = 0;
        for record in reader.records() {
            let record = record.expect("a row");
            plant.step(&mut row);
            for (cell, value) in record.iter().skip(1).zip(&row.0) {
                let read: f64 = cell.parse().expect("a number");
                assert_eq!(read.to_bits(), value.to_bits());
            }
            rows += 1;
        }
        assert_eq!(rows, 720);
    }
}
