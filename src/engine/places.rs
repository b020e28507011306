//! Places in a stream that the engine waits for: where playing begins, and where a picture is taken.

use jiff::Timestamp;

use super::protocol::Moment;
use crate::session::{Clock, Mark, Session};

/// Where playing begins.
pub(crate) struct From {
    mark: Option<Mark>,
    clock: Clock,
    first: Option<Timestamp>,
    frames: u64,
}

impl From {
    /// Where playing of a session's replay range begins.
    pub(crate) fn of(session: &Session) -> Self {
        Self { mark: session.replay.from, clock: Clock::of(session), first: None, frames: 0 }
    }

    /// Whether the next frame of the stream, at `time`, is to be played, not only read.
    pub(crate) fn is_reached(&mut self, time: Timestamp) -> bool {
        let first = *self.first.get_or_insert(time);
        let before = self.frames;
        self.frames += 1;
        self.mark.is_none_or(|mark| mark.is_reached(self.clock, first, before, time))
    }
}

/// The moment at which a picture is taken.
pub(crate) struct StopAt {
    at: Moment,
    clock: Clock,
    first: Option<Timestamp>,
    frames: u64,
}

impl StopAt {
    /// Where a picture of `session` is taken.
    pub(crate) fn new(session: &Session, at: Moment) -> Self {
        Self { at, clock: Clock::of(session), first: None, frames: 0 }
    }

    /// Whether the next frame of the stream, at `time`, still belongs to the picture.
    pub(crate) fn holds(&mut self, time: Timestamp) -> bool {
        self.first.get_or_insert(time);
        self.frames += 1;
        !self.is_past(time)
    }

    /// Whether an instant lies after the moment.
    pub(super) fn is_past(&self, time: Timestamp) -> bool {
        let first = self.first.unwrap_or(time);
        let mark = self.at.mark(self.clock, first);
        // The newest frame is the last one counted, and the first frame is step 0.
        mark.is_passed(self.clock, first, self.frames.saturating_sub(1), time)
    }
}
