//! The server at work in a process of its own: it waits for every site, decides, and asks for the next
//! step.
//!
//! A [`Run`](crate::engine::run::Run) is made of a stream of steps and a carrier. Here both are the
//! broker: the stream gives the time of a step once every site has sent it, the carrier what they sent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::envelope::{Down, Step, Topics, Up, nanosecond, open_up, seal};
use super::link::{Broker, Incoming, Link};
use super::{ASK_AGAIN, GLANCE, RemoteError};
use crate::engine::prepare::Prepared;
use crate::engine::run::{Run, RunOptions};
use crate::session::{Mark, Mode, Session};
use crate::stream::resolution::Grids;
use crate::stream::{Event, Frame, Label, Layout, Part, Place, Stream, StreamError};
use crate::wire::{Message, Order, Outgoing, ToSite, Wire, WireError};

/// What a server needs to begin.
pub(crate) struct Options<'a> {
    pub(crate) session: &'a Session,
    pub(crate) prepared: &'a Prepared,
    pub(crate) mode: Mode,
    pub(crate) until: Option<Mark>,
    pub(crate) broker: &'a Broker,
    pub(crate) interrupt: Arc<AtomicBool>,
}

/// What came that was not used, and what had to be asked for again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Steps of a site that had been taken already.
    pub(crate) duplicates: u64,
    /// Envelopes that were refused.
    pub(crate) refused: u64,
    /// Times that a site was asked again.
    pub(crate) asked_again: u64,
    pub(crate) bytes: u64,
}

/// A run whose sites are elsewhere.
pub(crate) struct Served {
    pub(crate) run: Run,
    desk: Arc<Mutex<Desk>>,
}

impl Served {
    /// Connects, waits until every site has enrolled, and stands before the first step. `say` gets words
    /// about sites.
    pub(crate) fn open(
        options: &Options<'_>,
        say: Box<dyn FnMut(&str) + Send>,
    ) -> Result<Self, RemoteError> {
        let Options { session, prepared, mode, until, broker, interrupt } = options;
        super::check(session, *mode)?;
        let mut layout = Grids::of(session)?.open(session, Part::Replay)?.layout().clone();
        layout.period_s *= f64::from(prepared.every);
        let names: Vec<String> = layout.clients.iter().map(|client| client.name.clone()).collect();
        let topics = Topics::of(&session.name);
        let mut heard: Vec<String> = names.iter().map(|name| topics.up(name)).collect();
        heard.extend(names.iter().map(|name| topics.state(name)));
        let id = format!("headwater-{}-server-{}", session.name, std::process::id());
        let link = Link::open(broker, "server", &id, heard, topics.state("server"))?;
        let clients = names.len();
        let desk = Desk {
            link,
            topics,
            names,
            agreement: super::agreement(session, *mode)?,
            next: 0,
            came: vec![None; clients],
            ended: vec![None; clients],
            arrived: VecDeque::new(),
            orders: vec![Vec::new(); clients],
            before: vec![Vec::new(); clients],
            question: None,
            counts: Counts::default(),
            interrupt: Arc::clone(interrupt),
            failed: None,
            say,
        };
        let desk = Arc::new(Mutex::new(desk));
        let wire = Box::new(FromSites { desk: Arc::clone(&desk) });
        let run_options =
            RunOptions { until: *until, wire, elsewhere: true, ..RunOptions::new(*mode) };
        let stream = Box::new(Steps { desk: Arc::clone(&desk), layout });
        let opened = Run::over_steps(stream, session, prepared, run_options);
        if let Some(failed) = lock(&desk).failed.take() {
            return Err(failed);
        }
        Ok(Self { run: opened?, desk })
    }

    /// Why the run ended before its time, where it did.
    pub(crate) fn take_failure(&self) -> Option<RemoteError> {
        lock(&self.desk).failed.take()
    }

    pub(crate) fn counts(&self) -> Counts {
        lock(&self.desk).counts
    }

    /// Tells every site that the run is over, and leaves.
    pub(crate) fn stop(&self) {
        let desk = lock(&self.desk);
        for client in 0..desk.names.len() {
            desk.tell(client, &Down::Stop);
        }
        desk.link.leave();
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything that comes from sites and goes to them.
struct Desk {
    link: Link,
    topics: Topics,
    names: Vec<String>,
    agreement: String,
    /// The step that is waited for; 0 is the enrolment.
    next: u64,
    /// What came for it, by client.
    came: Vec<Option<(Step, Vec<Message>)>>,
    /// After how many steps the data of a client ended.
    ended: Vec<Option<u64>>,
    /// What the server has still to hear.
    arrived: VecDeque<Message>,
    /// Orders of the present step, and those of the step before it.
    orders: Vec<Vec<Vec<u8>>>,
    before: Vec<Vec<Vec<u8>>>,
    /// A question that waits for its answer: whom, and the envelope.
    question: Option<(usize, u64, Down)>,
    counts: Counts,
    interrupt: Arc<AtomicBool>,
    failed: Option<RemoteError>,
    say: Box<dyn FnMut(&str) + Send>,
}

impl Desk {
    fn tell(&self, client: usize, word: &Down) {
        if let Ok(bytes) = seal(word) {
            self.link.send(&self.topics.down(&self.names[client]), bytes);
        }
    }

    fn ask(&self, client: usize) {
        let orders = self.before[client].clone();
        self.tell(client, &Down::Next { step: self.next, orders });
    }

    /// Waits until every site has sent the next step, and hands its messages over, client by client.
    /// The step; none where the data of all sites has ended or something failed.
    fn wait_for_step(&mut self) -> Option<Step> {
        (0..self.names.len()).for_each(|client| self.ask(client));
        let waiting = |desk: &Self| {
            (0..desk.names.len()).any(|m| desk.came[m].is_none() && desk.ended[m].is_none())
        };
        self.listen_while(waiting, |desk| {
            for client in 0..desk.names.len() {
                if desk.came[client].is_none() && desk.ended[client].is_none() {
                    desk.counts.asked_again += 1;
                    desk.ask(client);
                }
            }
        });
        if self.failed.is_some() {
            return None;
        }
        let came: Vec<_> = self.came.iter_mut().map(Option::take).collect();
        let steps: Vec<&Step> = came.iter().flatten().map(|(step, _)| step).collect();
        let first = (*steps.first()?).clone();
        if steps.len() < self.names.len() || !steps.iter().all(|step| step.is_beside(&first)) {
            let why = format!(
                "sites disagree about step {}: its time, what lies before it, or whether it exists",
                self.next
            );
            self.failed = Some(RemoteError::Refused(why));
            return None;
        }
        self.arrived.extend(came.into_iter().flatten().flat_map(|(_, messages)| messages));
        self.next += 1;
        Some(first)
    }

    /// Listens to the broker while `waiting`; asks again by `remind` when nothing has come for a while.
    fn listen_while(&mut self, waiting: impl Fn(&Self) -> bool, remind: impl Fn(&mut Self)) {
        let mut asked = Instant::now();
        while self.failed.is_none() && waiting(self) {
            if self.interrupt.load(Ordering::Relaxed) {
                self.failed = Some(RemoteError::Interrupted);
                return;
            }
            match self.link.next(GLANCE) {
                Ok(Some(incoming)) => self.take(incoming),
                Ok(None) => {}
                Err(why) => self.failed = Some(why.into()),
            }
            if asked.elapsed() >= ASK_AGAIN {
                asked = Instant::now();
                remind(self);
            }
        }
    }

    fn take(&mut self, incoming: Incoming) {
        let (topic, payload) = match incoming {
            Incoming::Connected => {
                (self.say)("connected to the broker");
                return (0..self.names.len()).for_each(|client| self.ask(client));
            }
            Incoming::Message { topic, payload } => (topic, payload),
        };
        let of = |topics: &dyn Fn(&str) -> String| {
            self.names.iter().position(|name| topics(name) == topic)
        };
        if let Some(client) = of(&|name| self.topics.state(name)) {
            let what = String::from_utf8_lossy(&payload[..payload.len().min(16)]).into_owned();
            let words = format!("{} is {what}", self.names[client]);
            return (self.say)(&words);
        }
        let Some(client) = of(&|name| self.topics.up(name)) else { return };
        self.counts.bytes += payload.len() as u64;
        match open_up(&payload) {
            Ok(up) => self.take_up(client, up),
            Err(_) => self.counts.refused += 1,
        }
    }

    fn take_up(&mut self, client: usize, up: Up) {
        match up {
            Up::Hello { agreement, nanosecond: theirs } => self.greet(client, &agreement, theirs),
            Up::Step(step) if step.number == self.next && self.came[client].is_none() => {
                match Self::read(client, &step.messages) {
                    Some(messages) => self.came[client] = Some((step, messages)),
                    None => self.counts.refused += 1,
                }
            }
            Up::Step(_) => self.counts.duplicates += 1,
            Up::Answer { step, messages } => {
                let asked =
                    |(whom, about, _): &(usize, u64, Down)| (*whom, *about) == (client, step);
                if !self.question.as_ref().is_some_and(asked) {
                    self.counts.duplicates += 1;
                } else if let Some(messages) = Self::read(client, &messages) {
                    self.question = None;
                    self.arrived.extend(messages);
                } else {
                    self.counts.refused += 1;
                }
            }
            Up::End { steps } => {
                if steps.checked_add(1) == Some(self.next) {
                    self.ended[client] = Some(steps);
                }
            }
        }
    }

    fn greet(&mut self, client: usize, agreement: &str, theirs: i64) {
        if agreement != self.agreement {
            self.counts.refused += 1;
            let why = "the server runs another session: other settings, seed, method or version";
            return self.tell(client, &Down::Refused { why: why.to_owned() });
        }
        let skew = theirs.saturating_sub(nanosecond(jiff::Timestamp::now())) as f64 / 1e9;
        if skew.abs() > 1.0 {
            let words = format!("the clock of {} is {skew:+.1} s off", self.names[client]);
            (self.say)(&words);
        }
        if let Some((whom, _, question)) = &self.question
            && *whom == client
        {
            self.tell(client, question);
        }
        if self.came[client].is_none() {
            self.ask(client);
        }
    }

    /// The messages of one envelope; none if any of them is no message of that client.
    fn read(client: usize, messages: &[Vec<u8>]) -> Option<Vec<Message>> {
        let read = messages.iter().map(|bytes| Message::decode(bytes).ok());
        read.map(|message| message.filter(|message| message.client() == client)).collect()
    }
}

/// The carrier as the server has it.
struct FromSites {
    desk: Arc<Mutex<Desk>>,
}

impl Wire for FromSites {
    fn send(&mut self, _: Outgoing) -> Result<(), WireError> {
        Err(WireError::NoSite)
    }

    fn receive(&mut self) -> Option<Message> {
        let mut desk = lock(&self.desk);
        // The first thing that a server hears is what sites enrol with.
        if desk.next == 0 && desk.arrived.is_empty() {
            desk.wait_for_step()?;
        }
        if desk.question.is_some() {
            desk.listen_while(
                |desk| desk.question.is_some(),
                |desk| {
                    if let Some((client, _, question)) = &desk.question {
                        desk.tell(*client, question);
                        desk.counts.asked_again += 1;
                    }
                },
            );
        }
        desk.arrived.pop_front()
    }

    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
        let mut desk = lock(&self.desk);
        let client = message.client();
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        if *message.order() == Order::NameSensors {
            let question = Down::Question { step: message.step(), order: bytes };
            desk.tell(client, &question);
            desk.question = Some((client, message.step(), question));
        } else if let Some(orders) = desk.orders.get_mut(client) {
            orders.push(bytes);
        }
        Ok(())
    }

    fn receive_at_site(&mut self) -> Option<ToSite> {
        None
    }
}

/// The time grid as sites send it. It has no measurements.
struct Steps {
    desk: Arc<Mutex<Desk>>,
    layout: Layout,
}

impl Stream for Steps {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let mut desk = lock(&self.desk);
        // The step before is closed: its orders go out with the wish for the next one.
        let clients = desk.names.len();
        let closed = std::mem::replace(&mut desk.orders, vec![Vec::new(); clients]);
        desk.before = closed;
        let Some(step) = desk.wait_for_step() else { return Ok(false) };
        frame.time = step.time();
        frame.continuity = step.continuity();
        frame.label = Label::Unlabelled;
        frame.notes.clear();
        frame.place = Place::default();
        Ok(true)
    }

    fn events(&self) -> &[Event] {
        &[]
    }
}

/// How long a step at this speed lasts.
pub(crate) fn pause(period_s: f64, times: f64) -> Duration {
    Duration::try_from_secs_f64(period_s / times).unwrap_or(Duration::ZERO)
}
