//! A stretch of a stream: from here, up to there.

use jiff::Timestamp;

use super::{Continuity, Event, Frame, Layout, Stream, StreamError};
use crate::session::{Clock, Mark, Stretch};

/// The frames of a stream that lie inside a [`Stretch`].
pub(crate) struct Window<S> {
    inner: S,
    from: Option<Mark>,
    until: Option<Mark>,
    clock: Clock,
    first: Option<Timestamp>,
    step: u64,
    begun: bool,
    over: bool,
}

impl<S: Stream> Window<S> {
    /// Looks at `stretch` of `inner`, whose civil time is that of `clock`; the stretch's files are
    /// the opener's business.
    pub(crate) fn new(inner: S, stretch: &Stretch, clock: Clock) -> Self {
        Self {
            inner,
            from: stretch.from,
            until: stretch.until,
            clock,
            first: None,
            step: 0,
            begun: false,
            over: false,
        }
    }
}

impl<S: Stream> Stream for Window<S> {
    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        if self.over {
            frame.notes.clear();
        }
        while !self.over && self.inner.next(frame)? {
            let first = *self.first.get_or_insert(frame.time);
            let step = self.step;
            self.step += 1;
            let reached = |mark: Mark| mark.is_reached(self.clock, first, step, frame.time);
            if self.until.is_some_and(reached) {
                break;
            }
            if self.from.is_none_or(reached) {
                if !self.begun {
                    self.begun = true;
                    frame.continuity = Continuity::NewRun;
                }
                return Ok(true);
            }
        }
        self.over = true;
        Ok(false)
    }

    fn events(&self) -> &[Event] {
        self.inner.events()
    }
}
