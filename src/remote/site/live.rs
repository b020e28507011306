//! A site whose rows arrive now: it takes a step whenever one is complete, and hands it over when the
//! server asks for it.
//!
//! Steps are numbered by the clock of the data, the same at all sites: step 1 is the first one that most
//! sites have. A site that is away, or whose source is silent, leaves numbers out. It takes steps whether or
//! not the server is there, and keeps them until the server has them. In tier 2 it takes a step when the
//! server has come to it; until then its row is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::RemoteError;
use super::super::envelope::{Up, nanosecond, pack, seal, unpack};
use super::worker::Worker;
use crate::stream::live::LiveStream;
use crate::stream::{Continuity, Event, Frame, Layout, Next, StoredFrame, Stream, StreamError};

/// Steps that may wait until the server has said which number they have.
const MOST_WAITING: usize = 1000;
/// Steps that are taken before the server is listened to again.
const AT_ONCE: usize = 256;

/// What a site with a live source knows beside its models.
pub(super) struct Live {
    /// Nanoseconds of a step.
    period: i64,
    /// The time of step 1, in nanoseconds since 1970; none before the server has told it.
    first: Option<i64>,
    /// The step that the server waits for.
    pub(super) asked: Option<u64>,
    /// The last step that was handed over.
    pub(super) delivered: u64,
    waiting: VecDeque<Frame>,
    /// The row that is read from the source. In tier 2 the frame of the site holds a step that was announced.
    arriving: Frame,
    /// The last step whose row is kept; in tier 2 it may not have been taken yet.
    pub(super) kept: u64,
    /// The source has ended.
    over: bool,
    /// Steps that came after their number was taken: the clock of the data went back.
    pub(super) backwards: u64,
}

impl Live {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            period: ((layout.period_s * 1e9).round() as i64).max(1),
            first: None,
            asked: None,
            delivered: 0,
            waiting: VecDeque::new(),
            arriving: Frame::for_layout(layout),
            kept: 0,
            over: false,
            backwards: 0,
        }
    }

    /// The number of the step at this time; none before the first, or off the grid.
    fn number(&self, frame: &Frame) -> Option<u64> {
        let after = nanosecond(frame.time).checked_sub(self.first?)?;
        if after % self.period != 0 {
            return None;
        }
        u64::try_from(after / self.period).ok()?.checked_add(1)
    }

    /// Why the server is not to wait for this step, where that is so.
    pub(super) fn has_no(&self, step: u64) -> Option<Up> {
        if self.kept > step {
            return Some(Up::Nothing { step });
        }
        (self.over && self.waiting.is_empty()).then_some(Up::End { steps: step - 1 })
    }
}

impl Worker {
    /// Takes every step that is complete by now; the envelopes to send.
    pub(super) fn poll(&mut self) -> Result<Vec<Vec<u8>>, RemoteError> {
        let mut out = Vec::new();
        let Some(live) = &mut self.live else { return Ok(out) };
        for _ in 0..AT_ONCE {
            if live.over || live.waiting.len() >= MOST_WAITING {
                break;
            }
            match self.stream.poll(&mut live.arriving)? {
                Next::Frame => live.waiting.push_back(live.arriving.clone()),
                Next::NotYet => break,
                Next::End => live.over = true,
            }
        }
        // A site without its outbox that comes back to a run enrols with itself alone: the server has its
        // enrolment.
        let enrols = self.taken.is_none() && live.asked.is_some();
        if let (true, Some(frame)) = (enrols, live.waiting.front()) {
            let time = frame.time;
            let enrolled = self.enrol(time)?;
            self.recording.sent(&enrolled.messages);
            let enrolment = seal(&Up::Step(enrolled))?;
            self.outbox.keep(0, &enrolment, self.spent())?;
        }
        self.take_waiting()?;
        self.deliver(&mut out)?;
        Ok(out)
    }

    /// Takes the steps whose numbers are known.
    fn take_waiting(&mut self) -> Result<(), RemoteError> {
        while let Some(live) = &mut self.live
            && let (Some(_), Some(taken)) = (live.first, self.taken)
            && let Some(frame) = live.waiting.pop_front()
        {
            match live.number(&frame) {
                Some(step) if step > taken.max(live.kept) => {
                    live.kept = step;
                    if self.announces {
                        self.outbox.keep_row(step, frame.store().bytes())?;
                        continue;
                    }
                    self.frame = frame;
                    self.frame.continuity = between(taken, step, self.stream.layout().period_s);
                    let stored = self.frame.store();
                    let released = self.take_frame(step);
                    self.recording.sent(&released.messages);
                    let envelope = seal(&Up::Step(released))?;
                    self.outbox.keep_with_row(step, &envelope, stored.bytes(), self.spent())?;
                }
                Some(_) => live.backwards += 1,
                // Before the first step of the run.
                None => {}
            }
        }
        Ok(())
    }

    /// Reads the row of a step that was kept.
    pub(super) fn read_kept(&mut self, step: u64) -> Result<(), RemoteError> {
        let row = self.outbox.row(step)?.map(StoredFrame::of_file);
        if !row.is_some_and(|row| self.frame.restore(&row)) {
            let why = "the outbox holds rows of other columns than the session: remove it";
            return Err(RemoteError::Refused(why.to_owned()));
        }
        let taken = self.taken.unwrap_or(0);
        self.frame.continuity = between(taken, step, self.stream.layout().period_s);
        Ok(())
    }

    /// Takes a step again whose row was kept.
    pub(super) fn take_again(&mut self, step: u64) -> Result<(), RemoteError> {
        self.read_kept(step)?;
        self.take_frame(step);
        if let Some(live) = &mut self.live {
            live.delivered = self.outbox.first()?.unwrap_or(step).saturating_sub(1);
        }
        Ok(())
    }

    /// The server waits for `step`, has every step before it, and has given `orders`; `first` is the
    /// time of step 1. The envelopes to send now.
    pub(super) fn asked(
        &mut self,
        step: u64,
        orders: &[Vec<u8>],
        first: Option<i64>,
    ) -> Result<Vec<Vec<u8>>, RemoteError> {
        self.settle(step)?;
        self.obey(step, orders)?;
        let Some(live) = &mut self.live else { return Ok(Vec::new()) };
        live.first = first.or(live.first);
        live.asked = Some(step);
        // It is asked for again, or by a server that has begun anew.
        live.delivered = live.delivered.min(step.saturating_sub(1));
        let envelopes = self.poll()?;
        // Steps that the server closed without this site are among them: it counts them as late.
        self.outbox.acknowledge(step)?;
        Ok(envelopes)
    }

    /// Carries out what was not carried out before, and keeps it with the step that was taken last.
    fn obey(&mut self, step: u64, orders: &[Vec<u8>]) -> Result<(), RemoteError> {
        let Some(before) = step.checked_sub(1).filter(|_| !orders.is_empty()) else {
            return Ok(());
        };
        let at = self.taken.unwrap_or(0);
        let mut kept = match self.outbox.orders(at)? {
            Some(kept) => unpack(&kept)?,
            None => Vec::new(),
        };
        let is_new = |order: &&Vec<u8>| self.ordered != Some(before) && !kept.contains(order);
        let new: Vec<Vec<u8>> = orders.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        kept.extend_from_slice(&new);
        self.outbox.replace_orders(at, &pack(&kept)?)?;
        self.carry_out(before, &new)
    }

    /// Hands over everything up to the step that is asked for.
    fn deliver(&mut self, out: &mut Vec<Vec<u8>>) -> Result<(), RemoteError> {
        let (Some(live), Some(taken)) = (&mut self.live, self.taken) else { return Ok(()) };
        let Some(asked) = live.asked else { return Ok(()) };
        if asked == 0 {
            live.asked = None;
            out.extend(self.outbox.envelope(0)?);
            return Ok(());
        }
        if self.announces {
            return self.announce_kept(asked, out);
        }
        for step in live.delivered + 1..=asked.min(taken) {
            match self.outbox.envelope(step)? {
                Some(stored) => out.push(stored),
                None if step == asked => out.push(seal(&Up::Nothing { step })?),
                None => {}
            }
            live.delivered = step;
        }
        if asked <= taken {
            live.asked = None;
        } else if live.over && live.waiting.is_empty() {
            // The server goes on without it.
            live.asked = None;
            self.ended = Some(asked - 1);
            out.push(seal(&Up::End { steps: asked - 1 })?);
        }
        Ok(())
    }
}

/// How a step follows the one that was taken last.
fn between(taken: u64, step: u64, period_s: f64) -> Continuity {
    match (taken, step - taken - 1) {
        (0, _) => Continuity::NewRun,
        (_, 0) => Continuity::Next,
        (_, missing) => Continuity::Gap { seconds: missing as f64 * period_s },
    }
}

/// A live source that outlives the models it is watched with.
#[derive(Clone)]
pub(super) struct Source {
    stream: Arc<Mutex<LiveStream>>,
    layout: Layout,
}

impl Source {
    pub(super) fn new(stream: LiveStream) -> Self {
        let layout = stream.layout().clone();
        Self { stream: Arc::new(Mutex::new(stream)), layout }
    }

    fn lock(&self) -> MutexGuard<'_, LiveStream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came and what was left out, in words.
    pub(super) fn words(&self) -> String {
        self.lock().status().get().left_out()
    }
}

impl Stream for Source {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        self.lock().next(frame)
    }

    fn poll(&mut self, frame: &mut Frame) -> Result<Next, StreamError> {
        self.lock().poll(frame)
    }

    fn events(&self) -> &[Event] {
        &[]
    }
}
