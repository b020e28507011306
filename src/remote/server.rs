//! The server at work in a process of its own: it waits for every site, decides, and asks for the next
//! step.
//!
//! A [`Run`](crate::engine::run::Run) is made of a stream of steps and a carrier. Here both are the
//! broker: the stream gives the time of a step once every site has sent it, the carrier what they sent.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::account::{Account, Board};
use super::certs::SERVER;
use super::desk::leaving::WITHOUT;
use super::desk::{Desk, Grid, Opening};
use super::envelope::Topics;
use super::journal::{Journal, Members, RunId};
use super::link::{Broker, Link};
use super::training;
use super::{RemoteError, named};
use crate::engine::kept_run::ServerRecording;
use crate::engine::prepare::apart::ServerModels;
use crate::engine::run::{Run, RunOptions};
use crate::fact::Fact;
use crate::session::{LiveSource, Mark, Mode, Session};
use crate::stream::resolution::Grids;
use crate::stream::{ClientColumns, Event, Frame, Label, Layout, Part, Place, Stream, StreamError};
use crate::wire::{Message, Order, Outgoing, ToSite, Wire, WireError};

/// What a server needs to begin.
pub(crate) struct Options<'a> {
    pub(crate) session: &'a Session,
    /// The clients by name.
    pub(crate) names: &'a [String],
    /// The models that are here, from one training each.
    pub(crate) models: Vec<ServerModels>,
    pub(crate) mode: Mode,
    pub(crate) until: Option<Mark>,
    /// How long a step stays open for sites that have not sent it; for ever when absent.
    pub(crate) deadline: Option<Duration>,
    /// The names of sites that have left.
    pub(crate) without: &'a [String],
    /// The names of sites that the run begins without: they can join later.
    pub(crate) later: &'a [String],
    /// Where what was heard is kept until the run is over.
    pub(crate) journal: &'a Path,
    /// Whether what is kept there is forgotten.
    pub(crate) anew: bool,
    pub(crate) broker: &'a Broker,
    /// Where the run is recorded, if it is.
    pub(crate) record: Option<&'a Path>,
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Where a screen reads how sites stand.
    pub(crate) board: Arc<Mutex<Board>>,
}

/// A run whose sites are elsewhere.
pub(crate) struct Served {
    pub(crate) run: Run,
    pub(crate) recording: ServerRecording,
    desk: Arc<Mutex<Desk>>,
}

impl Served {
    /// Connects, waits until every site has enrolled, and stands before the first step. `say` gets words
    /// about sites.
    pub(crate) fn open(
        options: &Options<'_>,
        say: Box<dyn FnMut(&str) + Send>,
    ) -> Result<Self, RemoteError> {
        let Options { session, names, models, mode, until, deadline, .. } = options;
        let Options { without, later, journal, anew, broker, interrupt, board, .. } = options;
        let topics = Topics::of(&session.name);
        let heard = vec![topics.up_of_all(), topics.state_of_all()];
        let id = format!("headwater-{}-server-{}", session.name, std::process::id());
        let link = Link::open(broker, SERVER, &id, heard, topics.state(SERVER))?;
        let mut desk = Desk::new(Opening {
            link,
            topics,
            names: names.to_vec(),
            agreements: super::agreements(session, *mode, names)?,
            method: (*mode, session.thresholds.tier),
            deadline: deadline.or_else(|| session.live().map(usual_deadline)),
            interrupt: Arc::clone(interrupt),
            board: Arc::clone(board),
            say,
        });
        desk.left = names.iter().map(|name| without.contains(name)).collect();
        let mut id = run_id(session, *mode, names)?;
        let members = if *anew { Members::default() } else { Journal::members(journal, &id)? };
        for client in &members.gone {
            (desk.left[*client], desk.gone[*client]) = (true, true);
        }
        for (client, models) in &members.own {
            desk.joining.set_own(*client, *models);
        }
        // Who stands in a journal as a member stays one. Who was added to the session since then joins.
        let is_later = |client: &usize| match (members.clients, later.contains(&names[*client])) {
            (0, is_later) => is_later,
            (known, _) => *client >= known || members.absent.contains(client),
        };
        let absent: Vec<usize> = (0..names.len()).filter(is_later).collect();
        if absent.len() == names.len() {
            return Err(RemoteError::Refused("somebody has to begin the run".to_owned()));
        }
        for client in &absent {
            desk.joining.set_absent(*client);
        }
        let away: Vec<String> = absent.iter().map(|client| names[*client].clone()).collect();
        let of_others = (!away.is_empty()).then(|| ServerModels::kept(session, &away)).flatten();
        let models = models.iter().cloned().chain(of_others).collect();
        let mut models = training::agree(&mut desk, session, names, (models, members.models))?;
        let graph = models.prepared.influences.graph.among(names);
        models.prepared.influences.graph = graph.with_declared(&session.edges);
        let layout = layout(session, names, &models)?;
        desk.grid = session.live().map(|_| Grid::new(layout.period_s, names.len()));
        id.models = Some(models.id);
        let journal = Journal::open(journal, &id, *anew)?;
        for client in &absent {
            journal.note_absent(*client, true)?;
            let name = &names[*client];
            desk.say(&format!(
                "{name} is not there yet: the run goes on without it, and it can join at any time"
            ));
        }
        match journal.steps()?.saturating_sub(1) {
            0 => {}
            heard => desk.say(&format!("goes on after step {heard}, which it has heard already")),
        }
        if let (0, Some(name)) = (journal.steps()?, without.first()) {
            return Err(RemoteError::Refused(format!(
                "{name} has not enrolled in this run and cannot be left out of it: take it out of \
                 the session"
            )));
        }
        for client in (0..names.len()).filter(|client| desk.left[*client]).collect::<Vec<_>>() {
            desk.tell_all(client, WITHOUT);
        }
        desk.journal = Some(journal);
        let prepared = &models.prepared;
        let desk = Arc::new(Mutex::new(desk));
        let mut recording = ServerRecording::open(session, options.record);
        let wire = recording.wrap(Box::new(FromSites { desk: Arc::clone(&desk) }));
        let run_options =
            RunOptions { until: *until, wire, elsewhere: true, ..RunOptions::new(*mode) };
        let stream = Box::new(Steps { desk: Arc::clone(&desk), layout });
        let opened = Run::over_steps(stream, session, prepared, run_options);
        if let Some(failed) = lock(&desk).failed.take() {
            return Err(failed);
        }
        let run = opened?;
        recording.describe(session, *mode, &run, prepared);
        Ok(Self { run, recording, desk })
    }

    /// Takes the next step, as [`Run::step`] does, with what is to be said of sites.
    pub(crate) fn step(&mut self, facts: &mut Vec<Fact>) -> Result<Option<Timestamp>, RemoteError> {
        let time = self.run.step(facts)?;
        let notes = std::mem::take(&mut lock(&self.desk).notes);
        for (client, what) in notes {
            let name = lock(&self.desk).accounts[client].name.clone();
            facts.extend(self.run.note(&format!("{name} {what}")));
        }
        Ok(time)
    }

    /// Why the run ended before its time, where it did.
    pub(crate) fn take_failure(&self) -> Option<RemoteError> {
        lock(&self.desk).failed.take()
    }

    /// Whether the last step was heard before this start: nobody waits for it.
    pub(crate) fn is_catching_up(&self) -> bool {
        lock(&self.desk).found
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

/// What tells this run from others, without its models.
fn run_id(session: &Session, mode: Mode, names: &[String]) -> Result<RunId, RemoteError> {
    Ok(RunId {
        agreements: super::agreements(session, mode, names)?,
        edges: session.edges.clone(),
        names: names.to_vec(),
        models: None,
    })
}

/// An operator beside a server that runs accepts the models that a site waits with: their digest.
pub(crate) fn accept(
    session: &Session,
    mode: Mode,
    names: &[String],
    (journal, name): (&Path, &str),
) -> Result<String, RemoteError> {
    let place = names.iter().position(|known| known == name);
    let unknown = || RemoteError::NoClient { name: name.to_owned(), known: names.join(", ") };
    let place = place.ok_or_else(unknown)?;
    let running = Journal::of_running(journal, &run_id(session, mode, names)?)?;
    let running = running.ok_or_else(|| {
        let why = "no server of this session runs on this machine: give the session, the mode and the seed \
                   that it was started with";
        RemoteError::Refused(why.to_owned())
    })?;
    let accepted = running.accept(place)?;
    let accepted = accepted
        .ok_or_else(|| RemoteError::Refused(format!("{name} does not wait to be accepted")))?;
    Ok(named(accepted))
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What steps look like. The server needs no data: where it has none, it knows clients by name.
fn layout(
    session: &Session,
    names: &[String],
    models: &ServerModels,
) -> Result<Layout, RemoteError> {
    let opened = Grids::of(session).and_then(|grids| grids.open(session, Part::Replay));
    let of_grid = session.live().map(|live| live.grid_s * f64::from(models.prepared.every));
    let mut layout = match (opened, models.period_s.or(of_grid)) {
        (Ok(stream), _) => {
            let mut layout = stream.layout().clone();
            layout.period_s *= f64::from(models.prepared.every);
            layout
        }
        (Err(_), Some(period_s)) => {
            let client = |name: &String| ClientColumns {
                name: name.clone(),
                title: String::new(),
                sensors: Vec::new(),
                inputs: Vec::new(),
            };
            Layout { clients: names.iter().map(client).collect(), period_s }
        }
        (Err(why), None) => return Err(why.into()),
    };
    if let Some(period_s) = models.period_s {
        layout.period_s = period_s;
    }
    Ok(layout)
}

/// How long a live step stays open where nobody says: rows wait for their values, and so much longer may
/// one site need than another.
fn usual_deadline(live: &LiveSource) -> Duration {
    let lateness = Duration::try_from_secs_f64(live.lateness_s).unwrap_or_default();
    lateness.saturating_add(Duration::from_secs(3))
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
        desk.wait_for_graded();
        desk.wait_for_answer();
        desk.arrived.pop_front()
    }

    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
        let mut desk = lock(&self.desk);
        let client = message.client();
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        match message.order() {
            Order::NameSensors => desk.pose(client, message.step(), bytes),
            Order::Prediction(_) => desk.predict(client, bytes),
            Order::Gradient(_) | Order::TakeAsNormal { .. } | Order::TakeBackNormal => {
                if let Some(orders) = desk.orders.get_mut(client) {
                    orders.push(bytes);
                }
            }
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
