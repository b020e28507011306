//! A stream with a faulty sensor, for sources that make their own data.

use super::{Continuity, Event, Frame, Layout, Stream, StreamError};

/// What is wrong with one sensor, for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    NotANumber,
    Infinite,
    Gap,
    Stuck,
    OutOfRange,
    Wild,
}

impl Fault {
    pub(crate) const ALL: [Self; 6] =
        [Self::NotANumber, Self::Infinite, Self::Gap, Self::Stuck, Self::OutOfRange, Self::Wild];
}

/// Steps of the run at which the sensor is at fault.
const AT_FAULT: std::ops::Range<u64> = 200..300;

/// A stream with a fault of one sensor.
pub(crate) struct Faulty {
    stream: Box<dyn Stream>,
    fault: Fault,
    /// The column, its mean and its deviation.
    sensor: (usize, f64, f64),
    /// Frames in a step of the run.
    every: u64,
    frames: u64,
    held: f64,
}

impl Faulty {
    /// `stream` with a `fault` of the sensor that stands in `column`; `every` frames are a step.
    pub(crate) fn new(
        stream: Box<dyn Stream>,
        fault: Fault,
        (column, mean, std): (usize, f64, f64),
        every: u64,
    ) -> Self {
        Self { stream, fault, sensor: (column, mean, std), every, frames: 0, held: f64::NAN }
    }
}

impl Stream for Faulty {
    fn layout(&self) -> &Layout {
        self.stream.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let mut more = self.stream.next(frame)?;
        let step = self.frames / self.every;
        self.frames += 1;
        let (column, mean, std) = self.sensor;
        if !AT_FAULT.contains(&step) {
            self.held = frame.values[column];
            return Ok(more);
        }
        match self.fault {
            Fault::NotANumber => frame.values[column] = f64::NAN,
            Fault::Infinite => frame.values[column] = f64::INFINITY,
            Fault::Stuck => frame.values[column] = self.held,
            Fault::OutOfRange => frame.values[column] = mean + 30.0 * std,
            // One value only.
            Fault::Wild if step == AT_FAULT.start => frame.values[column] = -1e30,
            Fault::Wild => {}
            Fault::Gap => {
                let mut missing = 0.0;
                while more && self.frames / self.every < AT_FAULT.end {
                    more = self.stream.next(frame)?;
                    self.frames += 1;
                    missing += self.layout().period_s;
                }
                frame.continuity = Continuity::Gap { seconds: missing };
            }
        }
        Ok(more)
    }

    fn events(&self) -> &[Event] {
        self.stream.events()
    }
}
