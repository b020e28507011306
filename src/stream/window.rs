//! A stretch of a stream: from here, up to there.

use jiff::{SignedDuration, Timestamp};

use super::{Continuity, Event, Frame, Layout, Stream, StreamError};
use crate::session::{Mark, Stretch};

/// The frames of a stream that lie inside a [`Stretch`].
pub struct Window<S> {
    inner: S,
    from: Option<Mark>,
    until: Option<Mark>,
    first: Option<Timestamp>,
    step: u64,
    begun: bool,
    over: bool,
}

impl<S: Stream> Window<S> {
    /// Looks at `stretch` of `inner`; the stretch's files are the opener's business.
    pub fn new(inner: S, stretch: &Stretch) -> Self {
        Self {
            inner,
            from: stretch.from,
            until: stretch.until,
            first: None,
            step: 0,
            begun: false,
            over: false,
        }
    }

    /// Whether `frame` (the `step`-th since `first`) lies at or after `mark`.
    fn reached(mark: Mark, frame: &Frame, first: Timestamp, step: u64) -> bool {
        match mark {
            Mark::Step(n) => step >= n,
            Mark::After(seconds) => {
                frame.time.duration_since(first) >= SignedDuration::from_secs_f64(seconds)
            }
            Mark::At(civil) => frame.time >= super::utc(civil),
        }
    }
}

impl<S: Stream> Stream for Window<S> {
    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        while !self.over && self.inner.next(frame)? {
            let first = *self.first.get_or_insert(frame.time);
            let step = self.step;
            self.step += 1;
            if self.until.is_some_and(|mark| Self::reached(mark, frame, first, step)) {
                break;
            }
            if self.from.is_none_or(|mark| Self::reached(mark, frame, first, step)) {
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
