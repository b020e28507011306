//! A whole stream as standardised rows per client, decimated, with its events as steps.

use jiff::Timestamp;

use crate::evidence::sensor::Resolution;
use crate::stream::decimate::Decimated;
use crate::stream::{Continuity, Event, Frame, Layout, Stream, StreamError};

/// One client's rows.
#[derive(Debug, Clone)]
pub(in crate::study) struct ClientRows {
    /// Standardised values, one row a step; NaN where missing.
    pub values: Vec<f32>,
    pub sensors: usize,
}

impl ClientRows {
    pub fn row(&self, t: usize) -> &[f32] {
        &self.values[t * self.sensors..(t + 1) * self.sensors]
    }
}

/// All rows of a stream.
#[derive(Debug, Clone)]
pub(in crate::study) struct Rows {
    pub layout: Layout,
    pub clients: Vec<ClientRows>,
    pub times: Vec<Timestamp>,
    /// Whether a run begins at a step.
    pub starts: Vec<bool>,
    pub events: Vec<Event>,
}

impl Rows {
    /// Reads `stream` to its end by block means over `every` samples. Scaling is that of the rows
    /// before `fit_until_s` seconds; a sensor that does not move there is left out.
    pub fn read(stream: impl Stream, every: u32, fit_until_s: f64) -> Result<Self, StreamError> {
        let mut stream = Decimated::new(stream, every);
        let layout = stream.layout().clone();
        let mut frame = Frame::for_layout(&layout);
        let (mut values, mut times, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        while stream.next(&mut frame)? {
            values.extend_from_slice(&frame.values);
            times.push(frame.time);
            starts.push(frame.continuity != Continuity::Next);
        }
        let fit = (fit_until_s / layout.period_s).round() as usize;
        let width = layout.width();
        let clients = (0..layout.clients.len())
            .map(|c| standardised(&values, width, layout.span(c), fit.min(times.len())))
            .collect();
        Ok(Self { events: stream.events().to_vec(), layout, clients, times, starts })
    }

    /// The first step at or after an instant.
    pub fn step_at(&self, time: Timestamp) -> usize {
        self.times.partition_point(|t| *t < time)
    }
}

fn standardised(
    values: &[f64],
    width: usize,
    span: std::ops::Range<usize>,
    fit: usize,
) -> ClientRows {
    let steps = values.len() / width.max(1);
    let scale: Vec<(usize, f64, f64)> = span
        .filter_map(|column| {
            let cells: Vec<f64> =
                (0..fit).map(|t| values[t * width + column]).filter(|v| v.is_finite()).collect();
            let n = cells.len().max(1) as f64;
            let mean = cells.iter().sum::<f64>() / n;
            let std = (cells.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            let moves = std > 1e-9 * mean.abs().max(f64::MIN_POSITIVE);
            (moves && Resolution::estimate(&cells).suffices(std)).then_some((column, mean, std))
        })
        .collect();
    let mut out = Vec::with_capacity(steps * scale.len());
    for t in 0..steps {
        out.extend(
            scale
                .iter()
                .map(|(column, mean, std)| ((values[t * width + column] - mean) / std) as f32),
        );
    }
    ClientRows { values: out, sensors: scale.len() }
}
