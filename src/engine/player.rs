//! The loop of the engine's thread: steps are taken and shown when they are due, commands are obeyed in
//! between.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::branch;
use super::carried::CarriedFiles;
use super::error::OpenError;
use super::kept_run::KeptRun;
use super::ledger_file::KeptLedger;
use super::pace::{Pace, Pacer};
use super::places::{From, StopAt};
use super::prepare::Prepared;
use super::protocol::{Command, EngineEvent, Opened, Options, Tried, Update};
use super::run::Stepped;
use super::watch::{News, Watch};
use crate::fact::Fact;
use crate::incident::Order;
use crate::output::Outputs;
use crate::output::metrics::Metrics;
use crate::privacy::Head;
use crate::session::Session;
use crate::stream::{Continuity, Frame};

mod following;
mod orders;

use following::Following;
pub(super) use following::source_figures;

/// Frames that travel together at most.
const BATCH: usize = 2048;
/// Frames that are due within this time travel together.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// A hole in the data is waited through for so long, not for as long as it lasted.
const LONGEST_HOLE: Duration = Duration::from_secs(1);
/// How long the last facts may take to be delivered; what is left waits for the next start.
const LAST_FACTS: Duration = Duration::from_secs(3);
/// No single wait is longer where an interrupt may come.
const NAP: Duration = Duration::from_millis(50);

/// The holder is gone.
pub(super) struct Gone;

/// For whom the engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// A screen: measurements are shown, each at its time, and questions are answered.
    Screen,
    /// Readers of facts, none of which is left out.
    Facts,
}

/// How what is new about steps travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Travels {
    Together,
    Alone,
}

/// A session on its way, at the pace that is asked for.
// Four states that do not exclude each other.
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Player {
    watch: Watch,
    kept: KeptLedger,
    record: KeptRun,
    sender: mpsc::Sender<EngineEvent>,
    commands: std_mpsc::Receiver<Command>,
    interrupt: Option<Arc<AtomicBool>>,
    audience: Audience,
    /// Consoles may join: measurements and how everything stands travel with facts.
    shown: bool,
    travels: Travels,
    /// Where to stop without ending the run.
    stop_at: Option<StopAt>,
    pace: Pace,
    pacer: Pacer,
    from: From,
    playing: bool,
    /// The place where a person enters has been reached.
    entered: bool,
    /// One step is wanted although it stands.
    once: bool,
    /// The time that is being run to.
    goal: Option<Timestamp>,
    /// A step is being shown that the engine has already taken.
    amid: bool,
    /// Orders that wait for its end.
    orders: Vec<Order>,
    last: Option<Timestamp>,
    batch: Update,
    batch_since: Instant,
    /// Time spent in steps since the last batch, and their number.
    spent: (Duration, u32),
    /// When the first step was taken.
    begun: Instant,
    /// The source, where it is a live one.
    live: Option<Following>,
    /// Who gets facts outside, and who may ask for figures.
    outputs: Option<Outputs>,
    metrics: Option<Metrics>,
    /// The state that is kept for the next start.
    carried: CarriedFiles,
}

impl Player {
    pub(crate) fn new(
        watch: Watch,
        (kept, record): (KeptLedger, KeptRun),
        session: &Session,
        options: &Options,
        sender: mpsc::Sender<EngineEvent>,
        commands: std_mpsc::Receiver<Command>,
    ) -> Self {
        let stop_at = options.stop_at.map(|at| StopAt::new(session, at));
        Self {
            watch,
            kept,
            record,
            sender,
            commands,
            interrupt: options.interrupt.clone(),
            audience: if options.watched { Audience::Screen } else { Audience::Facts },
            shown: options.shown,
            travels: if options.batched { Travels::Together } else { Travels::Alone },
            pace: options.pace,
            pacer: Pacer::new(options.pace.speed, Instant::now()),
            from: From::of(session),
            // Facts and pictures are of the whole replay range, wherever a person would enter it.
            playing: !options.watched || stop_at.is_some(),
            stop_at,
            entered: !options.watched,
            once: false,
            goal: None,
            amid: false,
            orders: Vec::new(),
            last: None,
            batch: Update::default(),
            batch_since: Instant::now(),
            spent: (Duration::ZERO, 0),
            begun: Instant::now(),
            live: None,
            outputs: None,
            metrics: None,
            carried: CarriedFiles::default(),
        }
    }

    pub(crate) fn play(&mut self, prepared: Option<Arc<Prepared>>) -> Result<(), Gone> {
        let raw_period_s = self.watch.measurements().period_s;
        self.send_event(EngineEvent::Opened(Box::new(Opened::of(&self.watch, prepared))))?;
        if self.stop_at.is_some() {
            self.send_event(EngineEvent::Playing)?;
        }
        self.begun = Instant::now();
        self.report_recording()?;
        if let Err(error) = self.kept.store(&mut self.watch) {
            return self.send_event(EngineEvent::Failed(error));
        }
        // Frames that were read on the way to the next step but lie behind this one.
        let mut ahead: VecDeque<Frame> = VecDeque::new();
        let mut news = News::default();
        loop {
            if self.is_interrupted() {
                return self.end(None);
            }
            // Between two steps the engine knows what the screen shows, and nothing more.
            if self.playing && self.is_watched() && self.stop_at.is_none() {
                self.wait(raw_period_s, Duration::MAX)?;
            }
            self.amid = true;
            let begun = Instant::now();
            let step = self.watch.poll(&mut news);
            self.spent.0 += begun.elapsed();
            let step = match step {
                Ok(Stepped::NotYet) => {
                    self.amid = false;
                    self.wait_for_rows(&mut news)?;
                    continue;
                }
                Ok(Stepped::Taken(time)) => Ok(Some(time)),
                Ok(Stepped::End) => Ok(None),
                Err(error) => Err(error),
            };
            self.spent.1 += 1;
            if let Err(error) = self.kept.store(&mut self.watch) {
                return self.send_event(EngineEvent::Failed(error));
            }
            if let Ok(time) = step {
                self.record.step(&self.watch, &news, time);
                self.carried.follow(&self.watch, &news);
                if !self.is_watched() {
                    self.pass_on(&mut news);
                }
            }
            if let Some(stop) = &mut self.stop_at {
                news.frames.retain(|frame| stop.holds(frame.time));
                if let Ok(Some(time)) = step
                    && stop.is_past(time)
                {
                    // What the step found is not known at the moment yet, only what was measured.
                    self.batch.news.frames.append(&mut news.frames);
                    self.watch.compose_anew();
                    // Whether steps were sent just before is chance, and no picture depends on it.
                    self.batch.snapshot = Some(self.watch.snapshot());
                    self.send()?;
                    return self.send_event(EngineEvent::Stopped);
                }
            }
            ahead.extend(news.frames.drain(..));
            let time = step.as_ref().ok().copied().flatten().unwrap_or(Timestamp::MAX);
            let mut waited = self.playing;
            while ahead.front().is_some_and(|frame| frame.time <= time)
                && let Some(frame) = ahead.pop_front()
            {
                self.show(frame, raw_period_s, waited)?;
                waited = false;
            }
            if let (false, Ok(Some(time))) = (self.is_watched(), &step) {
                self.hold_back(*time)?;
            }
            self.look_at_source(&mut news);
            self.add(&mut news);
            self.amid = false;
            for order in std::mem::take(&mut self.orders) {
                self.carry_out(order)?;
            }
            match step {
                Ok(Some(_)) => self.once = false,
                Ok(None) => return self.end(None),
                Err(error) => return self.end(Some(error.into())),
            }
            let is_full = self.batch.news.frames.len() >= BATCH;
            let is_due = self.batch_since.elapsed() >= BATCH_TIME;
            if is_full || is_due || self.travels == Travels::Alone {
                self.send()?;
            }
        }
    }

    fn is_watched(&self) -> bool {
        self.audience == Audience::Screen
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
    }

    /// Waits until the step at `time` is due, where measurements are not shown.
    fn hold_back(&mut self, time: Timestamp) -> Result<(), Gone> {
        let data_s = self.last.map_or(0.0, |last| time.duration_since(last).as_secs_f64());
        self.last = Some(time);
        self.wait(data_s.max(0.0), LONGEST_HOLE.max(Duration::from_hours(1)))
    }

    /// The stream is over: open incidents are closed, and questions are still answered.
    fn end(&mut self, error: Option<OpenError>) -> Result<(), Gone> {
        // A screen shows what it has seen, and why there is no more.
        if self.is_watched()
            && let Some(error) = error
        {
            self.send()?;
            self.send_event(EngineEvent::Failed(error))?;
            return self.answer();
        }
        self.sum_up_source()?;
        let mut news = News::default();
        self.watch.end(&mut news);
        let stored = self.kept.finish(&mut self.watch);
        let mut ending = self.watch.run().ending(self.begun.elapsed());
        ending.summary.ledger = stored.as_ref().ok().cloned().flatten();
        ending.summary.latency_ms = self.live.as_ref().and_then(Following::latency_ms);
        let summary = Fact::Summary(Box::new(ending.summary.clone()));
        self.record.end(&self.watch, &news, &summary);
        self.add(&mut news);
        self.watch.compose_anew();
        if self.is_watched() {
            self.batch.snapshot = Some(self.watch.snapshot());
        }
        self.send()?;
        self.send_event(EngineEvent::Ended(Box::new(ending)))?;
        if !self.is_watched() {
            self.record.finish();
            self.report_recording()?;
        }
        if let Some(error) = error.or(stored.err()) {
            self.send_event(EngineEvent::Failed(error))?;
        }
        if self.is_watched() { self.answer() } else { Ok(()) }
    }

    /// Nothing more will be released: closes the ledgers where the run did not come to its end, and
    /// says where their file ends.
    pub(crate) fn close(&mut self) -> Option<Head> {
        self.record.finish();
        self.carried.store(&self.watch);
        self.watch.run_mut().close_ledgers();
        if let Some(outputs) = self.outputs.take() {
            outputs.finish(LAST_FACTS);
        }
        // The holder is gone: a file that cannot be written is noticed by who goes on with it.
        self.kept.finish(&mut self.watch).ok().flatten()
    }

    /// Shows a frame when it is due; the first one of a step was waited for before the step.
    fn show(&mut self, frame: Frame, period_s: f64, waited: bool) -> Result<(), Gone> {
        if !self.entered && self.from.is_reached(frame.time) {
            self.entered = true;
            self.watch.enter_here(&mut self.batch.news);
        }
        if !self.playing && self.from.is_reached(frame.time) {
            self.playing = true;
            self.send()?;
            self.send_event(EngineEvent::Playing)?;
            self.pacer.set(self.pace.speed, Instant::now());
        }
        if self.goal.is_some_and(|goal| frame.time >= goal) {
            self.goal = None;
            self.pacer.set(self.pace.speed, Instant::now());
        }
        if self.playing && self.stop_at.is_none() {
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
    /// before it is sent first; a command is obeyed at once, whatever is being waited for.
    fn wait(&mut self, data_s: f64, longest: Duration) -> Result<(), Gone> {
        loop {
            while let Some(command) = self.next_command(Duration::ZERO)? {
                self.obey(command)?;
            }
            if self.once || self.goal.is_some() || !self.orders.is_empty() || self.is_interrupted()
            {
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
            // An interrupt comes without a command.
            let wait = if self.interrupt.is_some() { wait.min(NAP) } else { wait };
            if self.pace.paused
                && let Err(error) = self.kept.rest()
            {
                return self.send_event(EngineEvent::Failed(error));
            }
            if let Some(command) = self.next_command(wait)? {
                self.obey(command)?;
            }
        }
    }

    fn obey(&mut self, command: Command) -> Result<(), Gone> {
        match command {
            // What is live goes at its own speed.
            Command::Pace(_) | Command::Step | Command::RunTo(_) if self.live.is_some() => {}
            Command::Pace(pace) => {
                self.pace = pace;
                self.goal = None;
                self.pacer.set(pace.speed, Instant::now());
            }
            Command::Step => {
                self.pace.paused = true;
                self.goal = None;
                self.once = true;
            }
            Command::RunTo(time) => self.goal = Some(time),
            // In the middle of a step the rest of it is shown first: an order is given on all that
            // the engine has seen.
            Command::Order(order) if self.amid => self.orders.push(order),
            Command::Order(order) => self.carry_out(order)?,
            Command::Branch { from, turn } => {
                let found = match self.watch.recording() {
                    Some(file) => branch::branch(file, from, turn).map_err(|why| why.to_string()),
                    None => Err("only a recording can be run again from a moment".to_owned()),
                };
                self.send_event(EngineEvent::Branched(found.map(Box::new)))?;
            }
            Command::WhatIf(turn) => {
                let (before, after) = (self.watch.so_far(), self.watch.what_if(turn));
                self.answered(Tried { turn, before, after })?;
            }
            Command::WhatIfPaid(turn) => {
                let before = self.watch.so_far();
                let after = self.watch.run_mut().what_if_paid(turn);
                if let Err(error) = self.kept.store(&mut self.watch) {
                    return self.send_event(EngineEvent::Failed(error));
                }
                self.answered(Tried { turn, before, after })?;
            }
        }
        Ok(())
    }

    /// The stream is over. Questions are answered until the holder is gone.
    fn answer(&mut self) -> Result<(), Gone> {
        loop {
            if let Some(command) = self.next_command(Duration::MAX)? {
                self.obey(command)?;
            }
        }
    }

    /// Facts of a step or an order go with the frames before it.
    fn add(&mut self, news: &mut News) {
        if self.batch.news.is_empty() {
            self.batch_since = Instant::now();
        }
        if let Some(outputs) = &mut self.outputs {
            news.facts.iter().for_each(|fact| outputs.take(fact));
        }
        self.batch.news.append(news);
    }

    fn send(&mut self) -> Result<(), Gone> {
        self.record.flush();
        self.report_recording()?;
        let is_empty = self.batch.news.is_empty() && self.batch.snapshot.is_none();
        if is_empty && self.batch.live.is_none() {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut self.batch);
        if (self.is_watched() || self.shown) && !batch.news.times.is_empty() {
            batch.snapshot = Some(self.watch.snapshot());
        }
        if let (spent, steps @ 1..) = self.spent {
            batch.load.step = spent / steps;
            self.spent = (Duration::ZERO, 0);
        }
        self.send_event(EngineEvent::News(Box::new(batch)))
    }

    fn send_event(&self, event: EngineEvent) -> Result<(), Gone> {
        self.sender.blocking_send(event).map_err(|_| Gone)
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
