//! The stream on a thread of its own: opened, read up to where playing begins, then played.
//!
//! The screen never waits for it. It waits for the screen only when several batches are lying
//! unread, and then loses nothing.

use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};
use std::{io, thread};

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::clock::Clock;
use super::pace::{Pace, Pacer};
use super::training::Training;
use crate::session::{Mark, Session};
use crate::stream::{Continuity, Event, Frame, Layout, Stream};

/// Frames that travel together at most.
const BATCH: usize = 2048;
/// Frames that are due within this time travel together.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// Batches that may lie unread.
const QUEUE: usize = 4;
/// A hole in the data is waited through for so long, not for as long as it lasted.
const LONGEST_HOLE: Duration = Duration::from_secs(1);

/// What the stream looks like, and what it knows about disturbances.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its frames.
    pub layout: Layout,
    /// Its events.
    pub events: Vec<Event>,
}

/// Why there is no stream.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// What the feed tells the screen, in this order.
#[derive(Debug)]
pub enum Report {
    /// Models are being made.
    Training(Training),
    /// The stream is open.
    Opened(Box<Opened>),
    /// Frames, in their order.
    Frames(Vec<Frame>),
    /// Everything before the place where playing begins has been sent.
    Playing,
    /// The stream is over. Nothing follows.
    Ended,
    /// The stream is over because of this. Nothing follows.
    Failed(OpenError),
}

impl Report {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Ended | Self::Failed(_))
    }
}

/// The screen's end of a feed. Dropping it ends the feed's thread.
#[derive(Debug)]
pub struct Feed {
    /// What it tells. Closed before `Ended` or `Failed`: its thread died.
    pub reports: mpsc::Receiver<Report>,
    /// How it shall go.
    pub pace: std_mpsc::Sender<Pace>,
}

/// Opens a stream on a thread of its own and plays it.
pub fn spawn<F>(session: &Session, pace: Pace, open: F) -> io::Result<Feed>
where
    F: FnOnce(&mut (dyn FnMut(Training) + Send)) -> Result<Box<dyn Stream>, OpenError>
        + Send
        + 'static,
{
    let (sender, reports) = mpsc::channel(QUEUE);
    let (pace_sender, paces) = std_mpsc::channel();
    let from =
        From { mark: session.replay.from, clock: Clock::of(session), first: None, frames: 0 };
    thread::Builder::new().name("feed".into()).spawn(move || {
        // A hang-up means that the screen is gone: there is nobody left to tell.
        // A word that finds the queue full is left out: the next one says more.
        let mut tell = |training| {
            let _ = sender.try_send(Report::Training(training));
        };
        let opened = open(&mut tell);
        let _gone = match opened {
            Ok(stream) => Player { stream, sender, paces, pace, from }.play(),
            Err(error) => sender.blocking_send(Report::Failed(error)).map_err(|_| Gone),
        };
    })?;
    Ok(Feed { reports, pace: pace_sender })
}

/// The screen is gone.
struct Gone;

/// Where playing begins.
struct From {
    mark: Option<Mark>,
    clock: Clock,
    first: Option<Timestamp>,
    frames: u64,
}

impl From {
    /// Whether the next frame of the stream, at `time`, is to be played, not only read.
    fn is_reached(&mut self, time: Timestamp) -> bool {
        let first = *self.first.get_or_insert(time);
        let before = self.frames;
        self.frames += 1;
        match self.mark {
            None => true,
            Some(Mark::At(civil)) => self.clock.instant(civil).is_none_or(|from| time >= from),
            Some(Mark::After(seconds)) => time.duration_since(first).as_secs_f64() >= seconds,
            Some(Mark::Step(steps)) => before >= steps,
        }
    }
}

struct Player {
    stream: Box<dyn Stream>,
    sender: mpsc::Sender<Report>,
    paces: std_mpsc::Receiver<Pace>,
    pace: Pace,
    from: From,
}

impl Player {
    fn play(mut self) -> Result<(), Gone> {
        let layout = self.stream.layout().clone();
        let events = self.stream.events().to_vec();
        let mut frame = Frame::for_layout(&layout);
        let period_s = layout.period_s;
        self.tell(Report::Opened(Box::new(Opened { layout, events })))?;

        let mut batch: Vec<Frame> = Vec::new();
        let mut batch_since = Instant::now();
        let mut pacer = Pacer::new(self.pace.speed, Instant::now());
        let mut playing = false;
        let mut last: Option<Timestamp> = None;
        loop {
            match self.stream.next(&mut frame) {
                Ok(true) => {}
                Ok(false) => {
                    self.send(&mut batch)?;
                    return self.tell(Report::Ended);
                }
                Err(error) => {
                    self.send(&mut batch)?;
                    return self.tell(Report::Failed(error.into()));
                }
            }
            if !playing && self.from.is_reached(frame.time) {
                playing = true;
                self.send(&mut batch)?;
                self.tell(Report::Playing)?;
                pacer.set(self.pace.speed, Instant::now());
            }
            if playing {
                let data_s = last.map_or(0.0, |last| distance_s(&frame, last, period_s));
                self.wait_for(&frame, data_s, &mut pacer, &mut batch)?;
            }
            last = Some(frame.time);
            if batch.is_empty() {
                batch_since = Instant::now();
            }
            batch.push(frame.clone());
            frame.notes.clear();
            if batch.len() >= BATCH || batch_since.elapsed() >= BATCH_TIME {
                self.send(&mut batch)?;
            }
        }
    }

    /// Returns when `frame` is due. What was due before it is sent first; a new pace is taken at
    /// once, whatever is being waited for.
    fn wait_for(
        &mut self,
        frame: &Frame,
        data_s: f64,
        pacer: &mut Pacer,
        batch: &mut Vec<Frame>,
    ) -> Result<(), Gone> {
        let longest = match frame.continuity {
            Continuity::Next => Duration::MAX,
            Continuity::Gap { .. } | Continuity::NewRun => LONGEST_HOLE,
        };
        loop {
            while let Some(pace) = self.new_pace(Duration::ZERO)? {
                self.pace = pace;
                pacer.set(pace.speed, Instant::now());
            }
            let now = Instant::now();
            let due = pacer.due(data_s, longest, now);
            // What is due in a moment travels with what is due now.
            let horizon = if batch.is_empty() { now } else { now + BATCH_TIME };
            if !self.pace.paused && due <= horizon {
                pacer.shown(due, now);
                return Ok(());
            }
            self.send(batch)?;
            let wait =
                if self.pace.paused { Duration::MAX } else { due.saturating_duration_since(now) };
            if let Some(pace) = self.new_pace(wait)? {
                self.pace = pace;
                pacer.set(pace.speed, Instant::now());
            }
        }
    }

    /// A pace that was asked for within `wait`.
    fn new_pace(&self, wait: Duration) -> Result<Option<Pace>, Gone> {
        let hang_up = |_| Gone;
        if wait == Duration::MAX {
            return self.paces.recv().map(Some).map_err(hang_up);
        }
        match self.paces.recv_timeout(wait) {
            Ok(pace) => Ok(Some(pace)),
            Err(std_mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(std_mpsc::RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }

    fn send(&self, batch: &mut Vec<Frame>) -> Result<(), Gone> {
        if batch.is_empty() { Ok(()) } else { self.tell(Report::Frames(std::mem::take(batch))) }
    }

    fn tell(&self, report: Report) -> Result<(), Gone> {
        self.sender.blocking_send(report).map_err(|_| Gone)
    }
}

/// Data seconds between `frame` and the frame before it; a run that has nothing to do with the one
/// before follows it after one period.
fn distance_s(frame: &Frame, last: Timestamp, period_s: f64) -> f64 {
    match frame.continuity {
        Continuity::NewRun => period_s,
        Continuity::Next | Continuity::Gap { .. } => {
            frame.time.duration_since(last).as_secs_f64().max(0.0)
        }
    }
}
