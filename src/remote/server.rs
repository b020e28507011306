//! The server at work in a process of its own: it waits for every site, decides, and asks for the next
//! step.
//!
//! A [`Run`](crate::engine::run::Run) is made of a stream of steps and a carrier. Here both are the
//! broker: the stream gives the time of a step once every site has sent it, the carrier what they sent.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::RemoteError;
use super::account::{Account, Board};
use super::certs::SERVER;
use super::desk::{Desk, Opening};
use super::envelope::Topics;
use super::link::{Broker, Link};
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
    /// How long a step stays open for sites that have not sent it; for ever when absent.
    pub(crate) deadline: Option<Duration>,
    pub(crate) broker: &'a Broker,
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Where a screen reads how sites stand.
    pub(crate) board: Arc<Mutex<Board>>,
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
        let Options { session, prepared, mode, until, deadline, broker, interrupt, board } =
            options;
        super::check(session, *mode)?;
        let mut layout = Grids::of(session)?.open(session, Part::Replay)?.layout().clone();
        layout.period_s *= f64::from(prepared.every);
        let names: Vec<String> = layout.clients.iter().map(|client| client.name.clone()).collect();
        let topics = Topics::of(&session.name);
        let heard = vec![topics.up_of_all(), topics.state_of_all()];
        let id = format!("headwater-{}-server-{}", session.name, std::process::id());
        let link = Link::open(broker, SERVER, &id, heard, topics.state(SERVER))?;
        let desk = Desk::new(Opening {
            link,
            topics,
            names,
            agreement: super::agreement(session, *mode)?,
            deadline: *deadline,
            interrupt: Arc::clone(interrupt),
            board: Arc::clone(board),
            say,
        });
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

    /// Every site as the server knows it.
    pub(crate) fn accounts(&self) -> Vec<Account> {
        lock(&self.desk).accounts.clone()
    }

    /// Tells every site that the run is over, and leaves.
    pub(crate) fn stop(&self) {
        lock(&self.desk).stop();
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
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
        desk.wait_for_answer();
        desk.arrived.pop_front()
    }

    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
        let mut desk = lock(&self.desk);
        let client = message.client();
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        if *message.order() == Order::NameSensors {
            desk.pose(client, message.step(), bytes);
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
        desk.close_step();
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
