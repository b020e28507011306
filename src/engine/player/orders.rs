//! Answers of the engine to orders and questions, and messages to consoles that may join.

use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use super::{Gone, Player};
use crate::engine::protocol::{Command, EngineEvent, RecordState, Tried};
use crate::engine::watch::News;
use crate::incident::Order;

impl Player {
    /// A command that comes within `wait`.
    pub(super) fn next_command(&self, wait: Duration) -> Result<Option<Command>, Gone> {
        if wait == Duration::MAX {
            return self.commands.recv().map(Some).map_err(|_| Gone);
        }
        // At full speed it is asked at every step, and a wait reads the clock.
        if wait.is_zero() {
            return match self.commands.try_recv() {
                Ok(command) => Ok(Some(command)),
                Err(std_mpsc::TryRecvError::Empty) => Ok(None),
                Err(std_mpsc::TryRecvError::Disconnected) => Err(Gone),
            };
        }
        match self.commands.recv_timeout(wait) {
            Ok(command) => Ok(Some(command)),
            Err(std_mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(std_mpsc::RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }

    pub(super) fn answered(&mut self, tried: Tried) -> Result<(), Gone> {
        self.send_event(EngineEvent::Tried(Box::new(tried)))?;
        // The time it took is not to be caught up with.
        self.pacer.set(self.pace.speed, Instant::now());
        Ok(())
    }

    pub(super) fn carry_out(&mut self, order: Order) -> Result<(), Gone> {
        if self.watch.recording().is_some() {
            let why = "a recording shows what was done: nothing can be ordered in it";
            return self.send_event(EngineEvent::Ordered(Err(why.to_owned())));
        }
        let mut news = News::default();
        let done = self.watch.act(order, &mut news).map_err(|error| error.to_string());
        self.record.news(&news);
        self.carried.follow(&self.watch, &news);
        self.add(&mut news);
        self.batch.snapshot = Some(self.watch.snapshot());
        self.send()?;
        self.send_event(EngineEvent::Ordered(done))
    }

    /// Measurements of a run of facts go to consoles that may join, or nowhere.
    pub(super) fn pass_on(&mut self, news: &mut News) {
        if self.shown {
            self.batch.news.frames.append(&mut news.frames);
        }
        news.frames.clear();
    }

    /// Tells what has become of the recording, where something has.
    pub(super) fn report_recording(&mut self) -> Result<(), Gone> {
        let notices = self.record.take_notices().into_iter().chain(self.carried.take_notices());
        for notice in notices.collect::<Vec<_>>() {
            self.send_event(EngineEvent::Notice(notice))?;
        }
        match self.record.take_failure() {
            Some(why) => self.send_event(EngineEvent::Recording(RecordState::Failed(why))),
            None => Ok(()),
        }
    }
}
