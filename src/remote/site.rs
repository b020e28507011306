//! One client at work in a process of its own: its rows, its models, its ledger, its outbox.

mod board;
mod graded;
mod joining;
mod live;
mod sender;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

pub(crate) use self::board::{SharedBoard, SiteBoard};
use self::live::Source;
use self::sender::Sender;
use self::worker::Worker;
use super::account::SpentSoFar;
use super::envelope::{Down, Holds, Up, nanosecond, open_down, seal};
use super::link::{Broker, Incoming};
use super::outbox::Outbox;
use super::trainee::{Reply, Trainee};
use super::{ASK_AGAIN, GLANCE, RemoteError};
use crate::engine::kept_run::SiteRecording;
use crate::engine::live::{GatherFrom, STOPPED, connect};
use crate::engine::prepare::apart::{SiteModels, own};
use crate::privacy::{Ledger, Provenance, Trained};
use crate::session::{Mode, Session};
use crate::stream::decimate::Decimated;
use crate::stream::live::status::Status;
use crate::stream::resolution::Grids;
use crate::stream::{Part, Stream};

/// How often a live source is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long a server has to answer a site that leaves.
const ANSWER: Duration = Duration::from_secs(30);
/// How often it is said how far the learning is.
const TELL: Duration = Duration::from_secs(10);

/// What a site needs to begin.
pub(crate) struct Options<'a> {
    pub(crate) session: &'a Session,
    /// The name of the client, its place, and how many clients there are.
    pub(crate) client: &'a str,
    pub(crate) place: (usize, usize),
    /// The models that are here, from one training each.
    pub(crate) models: Vec<SiteModels>,
    /// Those that this site made by itself.
    pub(crate) alone: Option<SiteModels>,
    pub(crate) mode: Mode,
    pub(crate) broker: &'a Broker,
    pub(crate) outbox: &'a Path,
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Where the site is recorded, and the names of all clients.
    pub(crate) record: (Option<&'a Path>, &'a [String]),
    /// Where a screen of this site reads how it stands.
    pub(crate) board: SharedBoard,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ledger: Option<Ledger>,
    pub(crate) steps: u64,
    /// Steps that were sent again.
    pub(crate) sent_again: u64,
    /// Steps that were found in the outbox at the start.
    pub(crate) found: u64,
    pub(crate) last: Timestamp,
    /// What it released under enrolments before the last one, which its ledger does not have.
    pub(crate) past: Option<SpentSoFar>,
    /// What came from a live source and what was left out, in words.
    pub(crate) source: Option<String>,
    /// Why the site was not recorded to its end, where it was to be.
    pub(crate) not_recorded: Option<String>,
}

/// Takes part until the data ends, the server stops, or it is interrupted. `say` gets words about the
/// connection.
pub(crate) fn run(
    options: &Options<'_>,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Ended, RemoteError> {
    let Options { session, mode, client, place, interrupt, .. } = options;
    let agreement = super::agreement(session, *mode, (place.0, client))?;
    let outbox = Outbox::open(options.outbox, &agreement)?;
    let source = source(options, say)?;
    let mut sender = Sender::open(options, &agreement, outbox.start())?;
    let down = sender.down.clone();
    let mut site = Partner::new(options, agreement, outbox, source)?;
    let (mut heard, mut told) = (Instant::now(), Instant::now());
    let (mut sent, mut sent_again) = (None, 0);
    let ended = loop {
        if interrupt.load(Ordering::Relaxed) {
            break Err(RemoteError::Interrupted);
        }
        if told.elapsed() >= ASK_AGAIN {
            let waits = heard.elapsed() >= ASK_AGAIN;
            sender.send(&seal(&site.hello(waits))?)?;
            told = Instant::now();
        }
        let wait = site.poll(options, &mut sender)?;
        site.keep_recording(say);
        let payload = match sender.link.next(wait)? {
            Some(Incoming::Connected) => {
                say("connected to the broker");
                sender.send(&seal(&site.hello(true))?)?;
                continue;
            }
            Some(Incoming::Message { topic, payload }) if topic == down => payload,
            Some(Incoming::Message { topic, payload }) => {
                sender.hear_of_server(&topic, &payload, say);
                continue;
            }
            Some(Incoming::Dropped { .. }) | None => continue,
        };
        heard = Instant::now();
        // Whoever may publish here is the server: what cannot be read is left out, and asked for again.
        let Ok((mark, word)) = open_down(&payload) else { continue };
        sender.delay = Some(nanosecond(Timestamp::now()).saturating_sub(mark.nanosecond));
        match (word, &mut site.worker) {
            (Down::Next { step, orders, first, .. }, Some(worker)) if worker.live.is_some() => {
                for envelope in worker.asked(step, &orders, first)? {
                    sent_again += u64::from(sent >= Some(step));
                    sender.send(&envelope)?;
                    board::post(&options.board, worker, None);
                }
                sent = sent.max(Some(step));
            }
            (Down::Next { step, orders, hurry, .. }, Some(worker)) => {
                // A site that is behind takes every step up to the one that is asked for.
                // What it released last before this start may never have arrived.
                let unsent = worker.after().saturating_sub(u64::from(sent.is_none()));
                let unsent = unsent.max(worker.joined);
                let from = if hurry { unsent.min(step) } else { step };
                for each in from..=step {
                    let orders = if each == step { &orders[..] } else { &[] };
                    let Some(envelope) = worker.next(each, orders)? else { break };
                    sent_again += u64::from(sent >= Some(each));
                    sent = sent.max(Some(each));
                    sender.send(&envelope)?;
                    board::post(&options.board, worker, None);
                }
            }
            (Down::Question { step, order }, Some(worker)) => {
                if let Some(envelope) = worker.answer(step, &order)? {
                    sender.send(&envelope)?;
                }
            }
            (Down::Predicted { step, order }, Some(worker)) => {
                if let Some(envelope) = worker.graded(step, order.as_deref())? {
                    sender.send(&envelope)?;
                    board::post(&options.board, worker, None);
                }
            }
            // It says hello, and the server tells which models the run is with.
            (Down::Next { .. } | Down::Question { .. } | Down::Predicted { .. }, None) => {}
            (word @ (Down::Alone | Down::Wait { .. } | Down::Enrol { .. }), _) => {
                if let Some(sealed) = site.hear_of_joining(word, options, say)? {
                    sender.send(&sealed)?;
                    sent = None;
                }
            }
            (Down::Stop, _) => break Ok(()),
            (Down::Refused { why }, _) => break Err(RemoteError::Refused(why)),
            (Down::Models, _) => sender.send(&seal(&site.hello(true))?)?,
            (Down::Use { models }, _) => {
                site.work_with(models, options)?;
                sender.send(&seal(&site.hello(true))?)?;
            }
            (word @ Down::Learned { models, .. }, _) => {
                if site.used != Some(models) {
                    site.learn(word, options, &mut sender, say)?;
                }
                sender.send(&seal(&site.hello(true))?)?;
            }
            (word, _) => site.learn(word, options, &mut sender, say)?,
        }
    };
    sender.link.leave();
    ended?;
    site.end(sent_again, say)
}

/// Tells the server that this site leaves for good, and waits until it has understood. The outbox stays: a
/// site that comes back after all goes on with it.
pub(crate) fn leave(options: &Options<'_>) -> Result<(), RemoteError> {
    let Options { session, mode, client, place, interrupt, .. } = options;
    let agreement = super::agreement(session, *mode, (place.0, client))?;
    let outbox = Outbox::open(options.outbox, &agreement)?;
    let mut sender = Sender::open(options, &agreement, outbox.start())?;
    let down = sender.down.clone();
    let (begin, mut told) = (Instant::now(), None::<Instant>);
    let answered = loop {
        if interrupt.load(Ordering::Relaxed) {
            break Err(RemoteError::Interrupted);
        }
        if begin.elapsed() >= ANSWER {
            let why = "the server does not answer: nobody can leave a run that has not begun";
            break Err(RemoteError::Refused(why.to_owned()));
        }
        if told.is_some_and(|told| told.elapsed() >= ASK_AGAIN) {
            sender.send(&seal(&Up::Leave)?)?;
            told = Some(Instant::now());
        }
        match sender.link.next(GLANCE)? {
            Some(Incoming::Connected) => {
                sender.send(&seal(&Up::Leave)?)?;
                told = Some(Instant::now());
            }
            Some(Incoming::Message { topic, payload }) if topic == down => {
                match open_down(&payload) {
                    Ok((_, Down::Stop)) => break Ok(()),
                    Ok((_, Down::Refused { why })) => break Err(RemoteError::Refused(why)),
                    Ok(_) | Err(_) => {}
                }
            }
            Some(Incoming::Message { .. } | Incoming::Dropped { .. }) | None => {}
        }
    };
    sender.link.leave();
    answered
}

/// The live source of the site, where it has one, as it stands before the first row that is watched.
fn source(
    options: &Options<'_>,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Option<Source>, RemoteError> {
    let own = own(options.session, options.client);
    let Some(live) = own.live() else { return Ok(None) };
    let mut told: Option<Instant> = None;
    let mut tell = |doing: String, _, _: &Status| {
        if options.interrupt.load(Ordering::Relaxed) {
            return Err(STOPPED.into());
        }
        if told.is_none_or(|told| told.elapsed() >= TELL) {
            told = Some(Instant::now());
            say(&doing);
        }
        Ok(())
    };
    let stream = connect(&own, live, GatherFrom::TenMinutes, &mut tell);
    let stream = stream.map_err(|why| RemoteError::Source(why.to_string()))?;
    Ok(Some(Source::new(stream)))
}

/// What trainings before this start have released: those that made models, and those that were broken off.
/// A seed draws the same noise again, which tells nothing new.
fn trained_before(outbox: &Outbox, held: &[SiteModels]) -> Result<Vec<Trained>, RemoteError> {
    let mut before: Vec<Trained> = Vec::new();
    let kept = held.iter().flat_map(|models| models.trained.clone());
    for trained in kept.chain(outbox.trainings()?).chain(outbox.used()?) {
        let is_private = trained.randomness == Provenance::OperatingSystem;
        if is_private && !before.contains(&trained) {
            before.push(trained);
        }
    }
    Ok(before)
}

/// A site as a partner of the server: the models it holds, and what it does with them.
struct Partner<'a> {
    agreement: String,
    held: Vec<SiteModels>,
    /// Those of them that it made by itself.
    alone: Option<u64>,
    /// Why it waits, as it was said last.
    told: String,
    trainee: Trainee<'a>,
    worker: Option<Worker>,
    /// The training whose models it works with.
    used: Option<u64>,
    /// Until it works.
    outbox: Option<Outbox>,
    /// Its live source.
    source: Option<Source>,
    /// Until it works.
    recording: Option<SiteRecording>,
    /// Why its recording ended before its time.
    not_recorded: Option<String>,
}

impl<'a> Partner<'a> {
    /// A site before it has said anything.
    fn new(
        options: &'a Options<'a>,
        agreement: String,
        outbox: Outbox,
        source: Option<Source>,
    ) -> Result<Self, RemoteError> {
        let Options { session, mode, client, place, .. } = options;
        let (file, names) = options.record;
        let recording = SiteRecording::open(session, *mode, (place.0, names), file);
        let before = trained_before(&outbox, &options.models)?;
        Ok(Self {
            agreement,
            held: options.models.iter().chain(&options.alone).cloned().collect(),
            alone: options.alone.as_ref().map(|models| models.id),
            told: String::new(),
            trainee: Trainee::new(session, client, *place, before),
            worker: None,
            used: None,
            outbox: Some(outbox),
            source,
            recording: Some(recording),
            not_recorded: None,
        })
    }

    /// The run is over for this site.
    fn end(
        mut self,
        sent_again: u64,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Ended, RemoteError> {
        let source = self.source.as_ref().map(Source::words);
        if let Some(worker) = &mut self.worker {
            worker.close();
        }
        self.keep_recording(say);
        let not_recorded = self.not_recorded;
        let Some(worker) = self.worker else {
            let (ledger, past, last) = (None, None, Timestamp::now());
            let (steps, found) = (0, 0);
            return Ok(Ended {
                ledger,
                steps,
                sent_again,
                found,
                last,
                past,
                source,
                not_recorded,
            });
        };
        Ok(Ended { source, not_recorded, ..worker.end(sent_again)? })
    }

    /// Takes and sends the steps of a live source that are complete by now; how long to wait for a word of
    /// the server.
    fn poll(
        &mut self,
        options: &Options<'_>,
        sender: &mut Sender,
    ) -> Result<Duration, RemoteError> {
        let Some(worker) = self.worker.as_mut().filter(|worker| worker.live.is_some()) else {
            return Ok(GLANCE);
        };
        let envelopes = worker.poll()?;
        envelopes.iter().try_for_each(|envelope| sender.send(envelope))?;
        if !envelopes.is_empty() {
            let source = self.source.as_ref().filter(|_| options.board.is_some());
            board::post(&options.board, worker, source.map(Source::words));
        }
        Ok(LOOK)
    }

    /// Hands over what was recorded, and tells what there is to tell about it.
    fn keep_recording(&mut self, say: &mut (dyn FnMut(&str) + Send)) {
        let of_worker = self.worker.as_mut().map(|worker| &mut worker.recording);
        let Some(recording) = of_worker.or(self.recording.as_mut()) else { return };
        recording.flush();
        let (words, failure) = recording.take_words();
        for word in &words {
            say(word);
        }
        if let Some(why) = failure {
            say(&format!("the site goes on without a recording: {why}"));
            self.not_recorded = Some(why);
        }
    }

    fn hello(&self, waits: bool) -> Up {
        let spent = self.worker.as_ref().map_or(SpentSoFar::default(), Worker::spent_ever);
        let ids = self.held.iter().map(|models| models.id);
        let models = Holds {
            kept: ids.filter(|id| Some(*id) != self.alone).collect(),
            used: self.used,
            attempt: self.trainee.attempt(),
            alone: self.alone,
        };
        Up::Hello { agreement: self.agreement.clone(), spent, waits, models }
    }

    /// Works with the models of a training from now on, where it holds them.
    fn work_with(&mut self, id: u64, options: &Options<'_>) -> Result<(), RemoteError> {
        if self.used == Some(id) {
            return Ok(());
        }
        let Some(models) = self.held.iter().find(|models| models.id == id) else { return Ok(()) };
        let Some(outbox) = self.outbox.take() else { return Err(RemoteError::OtherModels) };
        if outbox.models()?.is_some_and(|of| of != id) && outbox.last()?.is_some() {
            return Err(RemoteError::OtherModels);
        }
        outbox.keep_models(id, &models.trained)?;
        let steps = self.steps(models, options)?;
        let mut worker = Worker::new(options, models, outbox, steps)?;
        worker.record(self.recording.take().unwrap_or_default(), options, models);
        worker.catch_up()?;
        (self.worker, self.used) = (Some(worker), Some(id));
        Ok(())
    }

    /// The steps of its data as its models take them, from the first.
    fn steps(
        &self,
        models: &SiteModels,
        options: &Options<'_>,
    ) -> Result<Box<dyn Stream>, RemoteError> {
        let own = own(options.session, options.client);
        let grids = Grids::of(&own)?;
        let rows = match &self.source {
            Some(source) => grids.rounded(Box::new(source.clone())),
            None => grids.open(&own, Part::Replay)?,
        };
        Ok(Box::new(Decimated::new(rows, models.every)))
    }

    /// Takes part in a training.
    fn learn(
        &mut self,
        word: Down,
        options: &Options<'_>,
        sender: &mut Sender,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), RemoteError> {
        // What it has released belongs to the models it works with.
        let released = match (&self.worker, &self.outbox) {
            (Some(worker), _) => worker.taken.is_some(),
            (None, Some(outbox)) => outbox.last()?.is_some(),
            (None, None) => false,
        };
        if released {
            return Err(RemoteError::OtherModels);
        }
        if let Some(worker) = self.worker.take() {
            (self.used, self.outbox) = (None, Some(worker.outbox));
            self.recording = Some(worker.recording);
        }
        let reply = self.trainee.hear(word, say)?;
        if let (Some(reserved), Some(outbox)) = (self.trainee.take_reserved(), &self.outbox) {
            outbox.keep_trainings(&reserved)?;
        }
        match reply {
            Reply::None => {}
            Reply::Send { sealed, once: false } => sender.send(&sealed)?,
            Reply::Send { sealed, once: true } => sender.send_once(&sealed)?,
            Reply::Learned(models) => {
                let id = models.id;
                self.held.retain(|held| held.id != id);
                self.held.push(*models);
                // What was released is kept with the models from now on.
                if let Some(outbox) = &self.outbox {
                    outbox.keep_trainings(&[])?;
                }
                self.work_with(id, options)?;
            }
        }
        Ok(())
    }
}
