//! The parts of a run over a recording that come from its tables.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::engine::run::readout::ClientReadout;
use crate::federation::History;
use crate::record::Seen;
use crate::record::recording::StoredEvent;
use crate::stream::Frame;

/// The parts of a run that its recording knows and the server does not.
pub(super) struct FromRecording {
    pub(super) file: PathBuf,
    pub(super) frames: VecDeque<Frame>,
    /// The number of its first step.
    pub(super) first: u64,
    /// The readouts of every step, a row of clients each.
    pub(super) readouts: Arc<[Seen]>,
    pub(super) orders: VecDeque<StoredEvent>,
    /// The course of training.
    pub(super) losses: Option<History>,
    /// The run came to its end.
    pub(super) ended: bool,
}

impl FromRecording {
    /// Adds what sites showed at a step, and what was measured up to it.
    pub(super) fn add(
        &mut self,
        step: u64,
        time: Timestamp,
        to: (&mut [ClientReadout], &mut Vec<Frame>),
    ) {
        let (readouts, frames) = to;
        let first = (step - self.first) as usize * readouts.len();
        let stored = self.readouts.get(first..first + readouts.len()).unwrap_or_default();
        for (readout, stored) in readouts.iter_mut().zip(stored) {
            (readout.local, readout.rehearsed) = (stored.local, stored.rehearsed);
        }
        while self.frames.front().is_some_and(|frame| frame.time <= time) {
            frames.extend(self.frames.pop_front());
        }
    }
}
