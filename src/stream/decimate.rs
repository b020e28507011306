//! Block means: several samples become one.
//!
//! Blocks are anchored to the clock, not to the first sample, so that the same instant always falls
//! into the same block wherever reading began.

use jiff::Timestamp;

use super::{Continuity, Event, Frame, Label, Layout, Next, Note, Place, Stream, StreamError};

/// How long a stream that has nothing yet is left alone.
const NAP: std::time::Duration = std::time::Duration::from_millis(5);

/// A stream of block means.
pub(crate) struct Decimated<S> {
    inner: S,
    layout: Layout,
    /// Nanoseconds between two frames of `inner`, and in a block.
    period: i128,
    block: i128,
    pending: Frame,
    has_pending: bool,
    sum: Sum,
    /// What was left out since the block before.
    notes: Vec<Note>,
    /// Block emitted last in this run.
    last: Option<i128>,
}

/// What has been seen of the current block.
struct Sum {
    cell: Option<i128>,
    frames: u32,
    new_run: bool,
    label: Label,
    /// Where its first frame comes from.
    place: Place,
    values: Vec<(f64, u32)>,
    inputs: Vec<(f64, u32)>,
}

impl Sum {
    fn clear(&mut self) {
        self.cell = None;
        self.frames = 0;
        self.new_run = false;
        self.label = Label::Unlabelled;
        self.values.fill((0.0, 0));
        self.inputs.fill((0.0, 0));
    }

    fn add(&mut self, cell: i128, frame: &Frame) {
        if self.cell.is_none() {
            self.place.clone_from(&frame.place);
        }
        self.cell = Some(cell);
        self.frames += 1;
        self.new_run |= frame.continuity == Continuity::NewRun;
        self.label = stronger(self.label, frame.label);
        add_present(&mut self.values, &frame.values);
        add_present(&mut self.inputs, &frame.inputs);
    }
}

fn add_present(sums: &mut [(f64, u32)], row: &[f64]) {
    for ((sum, n), value) in sums.iter_mut().zip(row) {
        if value.is_finite() {
            *sum += value;
            *n += 1;
        }
    }
}

/// A block with one anomalous sample is anomalous; one normal sample is enough to be labelled.
fn stronger(a: Label, b: Label) -> Label {
    match (a, b) {
        (Label::Anomalous { event: Some(_) }, _) => a,
        (_, Label::Anomalous { .. }) => b,
        (Label::Anomalous { .. } | Label::Normal, _) => a,
        _ => b,
    }
}

impl<S: Stream> Decimated<S> {
    /// Means over `every` samples of `inner`.
    pub(crate) fn new(inner: S, every: u32) -> Self {
        let mut layout = inner.layout().clone();
        let period = nanoseconds(layout.period_s);
        layout.period_s *= f64::from(every);
        let sum = Sum {
            cell: None,
            frames: 0,
            new_run: false,
            label: Label::Unlabelled,
            place: Place::default(),
            values: vec![(0.0, 0); layout.width()],
            inputs: vec![(0.0, 0); layout.input_width()],
        };
        Self {
            pending: Frame::for_layout(&layout),
            has_pending: false,
            block: period * i128::from(every),
            period,
            sum,
            notes: Vec::new(),
            last: None,
            inner,
            layout,
        }
    }

    fn cell(&self, time: Timestamp) -> i128 {
        time.as_nanosecond().div_euclid(self.block)
    }

    /// Fills `frame` with the block gathered so far.
    fn emit(&mut self, frame: &mut Frame) {
        let cell = self.sum.cell.expect("a block is emitted only after a frame was added");
        frame.time = Timestamp::from_nanosecond(cell * self.block + self.block - self.period)
            .unwrap_or(self.pending.time);
        frame.continuity = match self.last {
            Some(last) if !self.sum.new_run => {
                let missing = cell - last - 1;
                if missing > 0 {
                    Continuity::Gap { seconds: missing as f64 * self.layout.period_s }
                } else {
                    Continuity::Next
                }
            }
            _ => Continuity::NewRun,
        };
        self.last = Some(cell);
        frame.notes.append(&mut self.notes);
        frame.label = self.sum.label;
        frame.place.clone_from(&self.sum.place);
        let frames = self.sum.frames;
        write_means(&self.sum.values, frames, &mut frame.values);
        write_means(&self.sum.inputs, frames, &mut frame.inputs);
        self.sum.clear();
    }
}

/// A mean stands for its block only when at least half of the samples were there.
fn write_means(sums: &[(f64, u32)], frames: u32, out: &mut Vec<f64>) {
    out.clear();
    out.extend(
        sums.iter().map(
            |(sum, n)| {
                if *n > 0 && 2 * n >= frames { sum / f64::from(*n) } else { f64::NAN }
            },
        ),
    );
}

fn nanoseconds(seconds: f64) -> i128 {
    ((seconds * 1e9).round() as i128).max(1)
}

impl<S: Stream> Stream for Decimated<S> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        loop {
            match self.poll(frame)? {
                Next::Frame => return Ok(true),
                Next::End => return Ok(false),
                Next::NotYet => std::thread::sleep(NAP),
            }
        }
    }

    fn poll(&mut self, frame: &mut Frame) -> Result<Next, StreamError> {
        frame.notes.clear();
        loop {
            if !self.has_pending {
                let next = self.inner.poll(&mut self.pending)?;
                if next == Next::NotYet {
                    return Ok(next);
                }
                // What was left out after the last frame counts too.
                self.notes.append(&mut self.pending.notes);
                if next == Next::End {
                    if self.sum.cell.is_some() {
                        self.emit(frame);
                        return Ok(Next::Frame);
                    }
                    frame.notes.append(&mut self.notes);
                    return Ok(next);
                }
            }
            let cell = self.cell(self.pending.time);
            let starts_anew = self.sum.cell.is_some_and(|held| held != cell)
                || (self.sum.cell.is_some() && self.pending.continuity == Continuity::NewRun);
            if starts_anew {
                self.has_pending = true;
                self.emit(frame);
                return Ok(Next::Frame);
            }
            self.has_pending = false;
            self.sum.add(cell, &self.pending);
            // The last sample of a block completes it: there is no need to wait for the next one.
            let next = self.pending.time.as_nanosecond() + self.period;
            if next.div_euclid(self.block) != cell {
                self.emit(frame);
                return Ok(Next::Frame);
            }
        }
    }

    fn events(&self) -> &[Event] {
        self.inner.events()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::test_support::Listed;
    use proptest::prelude::*;

    fn means(every: u32, rows: &[(i64, f64)]) -> Vec<(i64, Continuity, f64)> {
        let mut stream = Decimated::new(Listed::one_column(1.0, rows), every);
        let mut frame = Frame::for_layout(stream.layout());
        let mut out = Vec::new();
        while stream.next(&mut frame).expect("a listed stream does not fail") {
            out.push((frame.time.as_second(), frame.continuity, frame.values[0]));
        }
        out
    }

    #[test]
    fn blocks_are_anchored_to_the_clock() {
        let rows: Vec<_> = (3..12).map(|t| (t, t as f64)).collect();
        let blocks = means(5, &rows);
        assert_eq!(
            blocks,
            [
                (4, Continuity::NewRun, 3.5),
                (9, Continuity::Next, 7.0),
                (14, Continuity::Next, 10.5)
            ]
        );
    }

    #[test]
    fn a_hole_of_whole_blocks_is_a_gap_and_missing_samples_are_left_out_of_the_mean() {
        let rows = [(0, 1.0), (1, f64::NAN), (2, 3.0), (3, f64::NAN), (4, f64::NAN), (15, 8.0)];
        let blocks = means(5, &rows);
        assert!(blocks[0].2.is_nan(), "two of five samples are not enough");
        assert_eq!(blocks[1].1, Continuity::Gap { seconds: 10.0 });
        assert!((blocks[1].2 - 8.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn every_sample_counts_once_and_blocks_of_one_change_nothing(
            steps in proptest::collection::vec((1i64..4, -5.0f64..5.0), 1..60), every in 1u32..7,
        ) {
            let mut time = 0;
            let rows: Vec<_> = steps.iter().map(|(dt, v)| { time += dt; (time, *v) }).collect();
            let mut sums = std::collections::BTreeMap::new();
            for (t, v) in &rows {
                let entry = sums.entry(t.div_euclid(i64::from(every))).or_insert((0.0, 0));
                *entry = (entry.0 + v, entry.1 + 1);
            }
            let blocks = means(every, &rows);
            prop_assert_eq!(blocks.len(), sums.len());
            for ((time, _, mean), (cell, (sum, n))) in blocks.iter().zip(&sums) {
                prop_assert_eq!(time.div_euclid(i64::from(every)), *cell);
                prop_assert!((mean - sum / f64::from(*n)).abs() < 1e-12);
            }
        }
    }
}
