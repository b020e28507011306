//! The engine on a thread of its own: models are made, the stream is run up to where playing begins,
//! then played at the pace that is asked for.
//!
//! ```text
//!  Wish ──► (few may lie unread) ──► feed thread: Watch ──► (few may lie unread) ──► Report
//! ```
//!
//! The screen never waits for it. It waits for the screen only when several reports are lying unread,
//! and then loses nothing. A step of the engine takes several measurements in; they are shown each at
//! its own time, and what the step found together with the last of them. After the end of the stream
//! the thread goes on to answer: a day that is over can still be tuned and acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};
use std::{io, thread};

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::app::tuning::Found;
use super::clock::Clock;
use super::pace::{Pace, Pacer};
use super::training::{Told, Training};
use crate::engine::prepare::{self, Prepared};
use crate::engine::run::knob::Turn;
use crate::engine::watch;
use crate::engine::watch::{News, Standing, Watch};
use crate::incident::Order;
use crate::session::{Mark, Session};
use crate::stream::{Continuity, Event, Frame, Layout};

/// Frames that travel together at most.
const BATCH: usize = 2048;
/// Frames that are due within this time travel together.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// Reports that may lie unread.
const QUEUE: usize = 4;
/// Wishes that may lie unread.
const WISHES: usize = 32;
/// A hole in the data is waited through for so long, not for as long as it lasted.
const LONGEST_HOLE: Duration = Duration::from_secs(1);

/// What the stream looks like, and what it knows about disturbances.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its frames.
    pub layout: Layout,
    /// Its events.
    pub events: Vec<Event>,
    /// Seconds between two steps of the engine.
    pub period_s: f64,
    /// The models.
    pub prepared: Option<Arc<Prepared>>,
}

impl Opened {
    /// What is to be known of `watch` before its first step.
    #[must_use]
    pub fn of(watch: &Watch, prepared: Arc<Prepared>) -> Self {
        Self {
            layout: watch.measurements().clone(),
            events: watch.events().to_vec(),
            period_s: watch.period_s(),
            prepared: Some(prepared),
        }
    }
}

/// Why there is no stream.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// What the engine's work costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Mean time of a step.
    pub step: Duration,
    /// How far the replay is behind its pace.
    pub behind: Duration,
}

/// What is new, and how everything stands after it.
#[derive(Debug, Clone, Default)]
pub struct Bulletin {
    /// What is new.
    pub news: News,
    /// How everything stands, where that may have changed.
    pub standing: Option<Standing>,
    /// What it cost.
    pub load: Load,
}

/// What the feed tells the screen, in this order.
#[derive(Debug)]
pub enum Report {
    /// Models are being made.
    Training(Training),
    /// The stream is open.
    Opened(Box<Opened>),
    /// Measurements and what they say, in their order.
    News(Box<Bulletin>),
    /// Everything before the place where playing begins has been sent.
    Playing,
    /// An order was carried out, or not for this reason. What it changed came before.
    Ordered(Result<(), String>),
    /// What turning a knob would have meant.
    Found(Box<Found>),
    /// The stream is over. Only answers follow.
    Ended,
    /// The stream is over because of this. Only answers follow, if anything does.
    Failed(OpenError),
}

impl Report {
    /// Whether the feed may be gone after it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Ended | Self::Failed(_))
    }
}

/// What the screen wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// It goes like this from now on.
    Pace(Pace),
    /// One step, and then it stands.
    Step,
    /// At full speed to this time, and then as before.
    RunTo(Timestamp),
    /// An operator's order.
    Order(Order),
    /// What would this have meant?
    WhatIf(Turn),
}

/// The screen's end of a feed. Dropping it ends the feed's thread.
#[derive(Debug)]
pub struct Feed {
    /// What it tells. Closed before `Ended` or `Failed`: its thread died.
    pub reports: mpsc::Receiver<Report>,
    wishes: std_mpsc::SyncSender<Wish>,
}

impl Feed {
    /// Hands a wish over; it comes back when too many lie unread. A feed that is over needs none.
    pub fn wish(&self, wish: Wish) -> Result<(), Wish> {
        match self.wishes.try_send(wish) {
            Ok(()) | Err(std_mpsc::TrySendError::Disconnected(_)) => Ok(()),
            Err(std_mpsc::TrySendError::Full(wish)) => Err(wish),
        }
    }
}

/// A session that can be played, with its models.
pub type Ready = (Watch, Arc<Prepared>);

/// What is told on the way to a session that can be played.
pub type Tell<'a> = &'a mut (dyn FnMut(Training) + Send);

/// Makes or reads the models of `session` and opens it.
pub fn ready(session: &Session, tell: Tell) -> Result<Ready, OpenError> {
    let mut told = Told::new(session, Instant::now());
    tell(told.word(&prepare::Stage::Reading, Instant::now()));
    fault();
    let file = prepare::cache_file(session);
    let prepared = prepare::prepare(session, &file, &mut |stage| {
        tell(told.word(&stage, Instant::now()));
        std::ops::ControlFlow::Continue(())
    })?;
    let watch = watch::Watch::open(session, &prepared)?;
    Ok((watch, Arc::new(prepared)))
}

/// A fault on request, for the test that a console survives one: the engine's thread panics.
fn fault() {
    let asked = std::env::var_os("HEADWATER_FAULT").is_some_and(|fault| fault == "engine-panic");
    assert!(!asked, "a fault was asked for by HEADWATER_FAULT");
}

/// Opens a session on a thread of its own and plays it.
pub fn spawn<F>(session: &Session, pace: Pace, open: F) -> io::Result<Feed>
where
    F: FnOnce(Tell) -> Result<Ready, OpenError> + Send + 'static,
{
    let (sender, reports) = mpsc::channel(QUEUE);
    let (wish_sender, wishes) = std_mpsc::sync_channel(WISHES);
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
            Ok((watch, prepared)) => {
                let pacer = Pacer::new(pace.speed, Instant::now());
                let player = Player {
                    watch,
                    sender,
                    wishes,
                    pace,
                    pacer,
                    from,
                    playing: false,
                    once: false,
                    goal: None,
                    amid: false,
                    orders: Vec::new(),
                    last: None,
                    batch: Bulletin::default(),
                    batch_since: Instant::now(),
                    spent: (Duration::ZERO, 0),
                };
                player.play(prepared)
            }
            Err(error) => sender.blocking_send(Report::Failed(error)).map_err(|_| Gone),
        };
    })?;
    Ok(Feed { reports, wishes: wish_sender })
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
    watch: Watch,
    sender: mpsc::Sender<Report>,
    wishes: std_mpsc::Receiver<Wish>,
    pace: Pace,
    pacer: Pacer,
    from: From,
    playing: bool,
    /// One step is wanted although it stands.
    once: bool,
    /// The time that is being run to.
    goal: Option<Timestamp>,
    /// A step is being shown that the engine has already taken.
    amid: bool,
    /// Orders that wait for its end.
    orders: Vec<Order>,
    /// The frame shown last.
    last: Option<Timestamp>,
    batch: Bulletin,
    batch_since: Instant,
    /// Time spent in steps since the last batch, and their number.
    spent: (Duration, u32),
}

impl Player {
    fn play(mut self, prepared: Arc<Prepared>) -> Result<(), Gone> {
        let raw_period_s = self.watch.measurements().period_s;
        self.tell(Report::Opened(Box::new(Opened::of(&self.watch, prepared))))?;
        // Frames that were read on the way to the next step but lie behind this one.
        let mut ahead: VecDeque<Frame> = VecDeque::new();
        loop {
            // Between two steps the engine knows what the screen shows, and nothing more.
            if self.playing {
                self.wait(raw_period_s, Duration::MAX)?;
            }
            self.amid = true;
            let mut news = News::default();
            let begun = Instant::now();
            let step = self.watch.step(&mut news);
            self.spent.0 += begun.elapsed();
            self.spent.1 += 1;
            ahead.extend(std::mem::take(&mut news.frames));
            let time = step.as_ref().ok().copied().flatten().unwrap_or(Timestamp::MAX);
            let mut waited = self.playing;
            while ahead.front().is_some_and(|frame| frame.time <= time)
                && let Some(frame) = ahead.pop_front()
            {
                self.show(frame, raw_period_s, waited)?;
                waited = false;
            }
            self.add(news);
            self.amid = false;
            for order in std::mem::take(&mut self.orders) {
                self.carry_out(order)?;
            }
            match step {
                Ok(Some(_)) => self.once = false,
                Ok(None) => {
                    let mut news = News::default();
                    self.watch.end(&mut news);
                    self.add(news);
                    self.batch.standing = Some(self.watch.standing());
                    self.send()?;
                    self.tell(Report::Ended)?;
                    return self.answer();
                }
                Err(error) => {
                    self.send()?;
                    self.tell(Report::Failed(error.into()))?;
                    return self.answer();
                }
            }
            if self.batch.news.frames.len() >= BATCH || self.batch_since.elapsed() >= BATCH_TIME {
                self.send()?;
            }
        }
    }

    /// Shows a frame when it is due; the first one of a step was waited for before the step.
    fn show(&mut self, frame: Frame, period_s: f64, waited: bool) -> Result<(), Gone> {
        if !self.playing && self.from.is_reached(frame.time) {
            self.playing = true;
            self.send()?;
            self.tell(Report::Playing)?;
            self.pacer.set(self.pace.speed, Instant::now());
        }
        if self.goal.is_some_and(|goal| frame.time >= goal) {
            self.goal = None;
            self.pacer.set(self.pace.speed, Instant::now());
        }
        if self.playing {
            let data_s = self.last.map_or(0.0, |last| distance_s(&frame, last, period_s));
            let longest = match frame.continuity {
                Continuity::Next => Duration::MAX,
                Continuity::Gap { .. } | Continuity::NewRun => LONGEST_HOLE,
            };
            if !waited {
                self.wait(data_s, longest)?;
            } else if data_s > period_s {
                // What follows is a hole, of which one period has been waited for.
                self.wait(data_s - period_s, longest)?;
            }
        }
        self.last = Some(frame.time);
        if self.batch.news.frames.is_empty() {
            self.batch_since = Instant::now();
        }
        self.batch.news.frames.push(frame);
        Ok(())
    }

    /// Returns when what is `data_s` seconds later than what was shown last is due. What was due
    /// before it is sent first; a wish is heard at once, whatever is being waited for.
    fn wait(&mut self, data_s: f64, longest: Duration) -> Result<(), Gone> {
        loop {
            while let Some(wish) = self.wish(Duration::ZERO)? {
                self.hear(wish)?;
            }
            if self.once || self.goal.is_some() || !self.orders.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            let due = self.pacer.due(data_s, longest, now);
            // What is due in a moment travels with what is due now.
            let horizon = if self.batch.news.frames.is_empty() { now } else { now + BATCH_TIME };
            if !self.pace.paused && due <= horizon {
                self.batch.load.behind = now.saturating_duration_since(due);
                self.pacer.shown(due, now);
                return Ok(());
            }
            self.send()?;
            let wait =
                if self.pace.paused { Duration::MAX } else { due.saturating_duration_since(now) };
            if let Some(wish) = self.wish(wait)? {
                self.hear(wish)?;
            }
        }
    }

    /// A wish that comes within `wait`.
    fn wish(&self, wait: Duration) -> Result<Option<Wish>, Gone> {
        if wait == Duration::MAX {
            return self.wishes.recv().map(Some).map_err(|_| Gone);
        }
        match self.wishes.recv_timeout(wait) {
            Ok(wish) => Ok(Some(wish)),
            Err(std_mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(std_mpsc::RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }

    fn hear(&mut self, wish: Wish) -> Result<(), Gone> {
        match wish {
            Wish::Pace(pace) => {
                self.pace = pace;
                self.goal = None;
                self.pacer.set(pace.speed, Instant::now());
            }
            Wish::Step => {
                self.pace.paused = true;
                self.goal = None;
                self.once = true;
            }
            Wish::RunTo(time) => self.goal = Some(time),
            // In the middle of a step the rest of it is shown first: an order is given on all that
            // the engine has seen.
            Wish::Order(order) if self.amid => self.orders.push(order),
            Wish::Order(order) => self.carry_out(order)?,
            Wish::WhatIf(turn) => {
                let (before, after) = (self.watch.so_far(), self.watch.what_if(turn));
                self.tell(Report::Found(Box::new(Found { turn, before, after })))?;
                // The time it took is not to be caught up with.
                self.pacer.set(self.pace.speed, Instant::now());
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, order: Order) -> Result<(), Gone> {
        let mut news = News::default();
        let done = self.watch.act(order, &mut news).map_err(|error| error.to_string());
        self.add(news);
        self.batch.standing = Some(self.watch.standing());
        self.send()?;
        self.tell(Report::Ordered(done))
    }

    /// The stream is over; whoever asks is answered until the screen is gone.
    fn answer(&mut self) -> Result<(), Gone> {
        loop {
            if let Some(wish) = self.wish(Duration::MAX)? {
                self.hear(wish)?;
            }
        }
    }

    /// What a step or an order said goes with the frames that came before it.
    fn add(&mut self, mut news: News) {
        let batch = &mut self.batch.news;
        batch.times.append(&mut news.times);
        batch.sights.append(&mut news.sights);
        batch.flags = news.flags.or(batch.flags.take());
        for incident in news.incidents {
            batch.incidents.retain(|earlier| earlier.number != incident.number);
            batch.incidents.push(incident);
        }
        batch.incidents.sort_by_key(|incident| incident.number);
        batch.entries.append(&mut news.entries);
        batch.facts.append(&mut news.facts);
    }

    fn send(&mut self) -> Result<(), Gone> {
        if self.batch.news.is_empty() && self.batch.standing.is_none() {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut self.batch);
        if !batch.news.times.is_empty() {
            batch.standing = Some(self.watch.standing());
        }
        if let (spent, steps @ 1..) = self.spent {
            batch.load.step = spent / steps;
            self.spent = (Duration::ZERO, 0);
        }
        self.tell(Report::News(Box::new(batch)))
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
