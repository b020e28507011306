//! A stretch of a stream: from here, up to there.

use jiff::Timestamp;

use super::time_seen::TimeSeen;
use super::{Continuity, Event, Frame, Layout, Stream, StreamError};
use crate::session::{Clock, Mark, Stretch};

/// The frames of a stream that lie inside a [`Stretch`].
pub(crate) struct Window<S> {
    inner: S,
    from: Option<Mark>,
    until: Option<Mark>,
    clock: Clock,
    /// Marks count the time that rows cover, where this is given.
    seen: Option<TimeSeen>,
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
            seen: None,
            first: None,
            step: 0,
            begun: false,
            over: false,
        }
    }

    /// The same for rows of a source whose clock may have jumped: only the time that rows cover counts.
    pub(crate) fn by_time_seen(inner: S, stretch: &Stretch, clock: Clock) -> Self {
        let seen = Some(TimeSeen::new(inner.layout().period_s));
        Self { seen, ..Self::new(inner, stretch, clock) }
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
            let time = self.seen.as_mut().map_or(frame.time, |seen| seen.take(frame.time));
            let reached = |mark: Mark| mark.is_reached(self.clock, first, step, time);
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
