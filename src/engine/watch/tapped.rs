//! A stream whose frames are also shown.

use std::sync::mpsc;

use crate::stream::{Event, Frame, Layout, Next, Stream, StreamError};

/// Hands on every frame and keeps a copy.
pub(super) struct Tapped {
    pub(super) stream: Box<dyn Stream>,
    pub(super) frames: mpsc::Sender<Frame>,
}

impl Stream for Tapped {
    fn layout(&self) -> &Layout {
        self.stream.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let more = self.stream.next(frame)?;
        if more {
            // The receiver is gone: the watch has ended, and the run with it.
            let _ = self.frames.send(frame.clone());
        }
        Ok(more)
    }

    fn poll(&mut self, frame: &mut Frame) -> Result<Next, StreamError> {
        let next = self.stream.poll(frame)?;
        if next == Next::Frame {
            let _ = self.frames.send(frame.clone());
        }
        Ok(next)
    }

    fn events(&self) -> &[Event] {
        self.stream.events()
    }
}
