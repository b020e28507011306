//! One client at work in a process of its own: its rows, its models, its ledger, its outbox.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;

use super::account::SpentSoFar;
use super::envelope::{
    Down, Holds, Mark, Step, Topics, Up, nanosecond, open_down, pack, seal, stamp, unpack,
};
use super::link::{Broker, Incoming, Link};
use super::outbox::Outbox;
use super::trainee::{Reply, Trainee};
use super::{ASK_AGAIN, GLANCE, RemoteError};
use crate::engine::prepare::apart::{SiteModels, own};
use crate::engine::run::follows;
use crate::privacy::{Ledger, Provenance, Trained};
use crate::session::{Mode, Session};
use crate::site::{Sent, Site, SiteOptions};
use crate::stream::decimate::Decimated;
use crate::stream::resolution::Grids;
use crate::stream::{Frame, Part, Stream};
use crate::wire::{Tick, ToSite};

/// What a site needs to begin.
pub(crate) struct Options<'a> {
    pub(crate) session: &'a Session,
    /// The name of the client, its place, and how many clients there are.
    pub(crate) client: &'a str,
    pub(crate) place: (usize, usize),
    /// The models that are here, from one training each.
    pub(crate) models: Vec<SiteModels>,
    pub(crate) mode: Mode,
    pub(crate) broker: &'a Broker,
    pub(crate) outbox: &'a Path,
    pub(crate) interrupt: Arc<AtomicBool>,
}

/// How a site ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ledger: Option<Ledger>,
    pub(crate) steps: u64,
    /// Steps that were sent again.
    pub(crate) sent_again: u64,
    /// Steps that were found in the outbox at the start.
    pub(crate) found: u64,
    pub(crate) last: Timestamp,
}

/// Takes part until the data ends, the server stops, or it is interrupted. `say` gets words about the
/// connection.
pub(crate) fn run(
    options: &Options<'_>,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Ended, RemoteError> {
    let Options { session, mode, client, place, broker, interrupt, .. } = options;
    super::check(session, *mode)?;
    let agreement = super::agreement(session, *mode)?;
    let outbox = Outbox::open(options.outbox, &agreement)?;
    let topics = Topics::of(&session.name);
    let (up, down) = (topics.up(client), topics.down(client));
    let id = format!("headwater-{}-{client}-{}", session.name, std::process::id());
    let link = Link::open(broker, client, &id, vec![down.clone()], topics.state(client))?;
    let mark = Mark::first(&agreement, client, outbox.start());
    let mut sender = Sender { link, up, mark, delay: None };
    let before = trained_before(&outbox, &options.models)?;
    let mut site = Partner {
        agreement,
        held: options.models.clone(),
        trainee: Trainee::new(session, client, *place, before),
        worker: None,
        used: None,
        outbox: Some(outbox),
    };
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
        let payload = match sender.link.next(GLANCE)? {
            Some(Incoming::Connected) => {
                say("connected to the broker");
                sender.send(&seal(&site.hello(true))?)?;
                continue;
            }
            Some(Incoming::Message { topic, payload }) if topic == down => payload,
            Some(Incoming::Message { .. } | Incoming::Dropped { .. }) | None => continue,
        };
        heard = Instant::now();
        // Whoever may publish here is the server: what cannot be read is left out, and asked for again.
        let Ok((mark, word)) = open_down(&payload) else { continue };
        sender.delay = Some(nanosecond(Timestamp::now()).saturating_sub(mark.nanosecond));
        match (word, &mut site.worker) {
            (Down::Next { step, orders, hurry }, Some(worker)) => {
                // A site that is behind takes every step up to the one that is asked for.
                let from = if hurry { worker.after().min(step) } else { step };
                for each in from..=step {
                    let orders = if each == step { &orders[..] } else { &[] };
                    let Some(envelope) = worker.next(each, orders)? else { break };
                    sent_again += u64::from(sent >= Some(each));
                    sent = sent.max(Some(each));
                    sender.send(&envelope)?;
                }
            }
            (Down::Question { step, order }, Some(worker)) => {
                if let Some(envelope) = worker.answer(step, &order)? {
                    sender.send(&envelope)?;
                }
            }
            // It says hello, and the server tells which models the run is with.
            (Down::Next { .. } | Down::Question { .. }, None) => {}
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
    match site.worker {
        Some(worker) => worker.end(sent_again),
        None => Ok(Ended { ledger: None, steps: 0, sent_again, found: 0, last: Timestamp::now() }),
    }
}

/// What trainings before this start have released: those that made models, and those that were broken off.
/// A seed draws the same noise again, which tells nothing new.
fn trained_before(outbox: &Outbox, held: &[SiteModels]) -> Result<Vec<Trained>, RemoteError> {
    let mut before: Vec<Trained> = Vec::new();
    let kept = held.iter().flat_map(|models| models.trained.clone());
    for trained in kept.chain(outbox.trainings()?) {
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
    trainee: Trainee<'a>,
    worker: Option<Worker>,
    /// The training whose models it works with.
    used: Option<u64>,
    /// Until it works.
    outbox: Option<Outbox>,
}

impl Partner<'_> {
    fn hello(&self, waits: bool) -> Up {
        let spent = self.worker.as_ref().map_or(SpentSoFar::default(), Worker::spent);
        let models = Holds {
            kept: self.held.iter().map(|models| models.id).collect(),
            used: self.used,
            attempt: self.trainee.attempt(),
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
        outbox.keep_models(id)?;
        let mut worker = Worker::new(options, models, outbox)?;
        worker.catch_up()?;
        (self.worker, self.used) = (Some(worker), Some(id));
        Ok(())
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

/// The way to the server.
struct Sender {
    link: Link,
    up: String,
    mark: Mark,
    /// Our clock less the server's when its last envelope arrived.
    delay: Option<i64>,
}

impl Sender {
    fn send(&mut self, sealed: &[u8]) -> Result<(), RemoteError> {
        let mark = self.mark.next(self.delay);
        self.link.send(&self.up, stamp(&mark, sealed)?);
        Ok(())
    }

    /// The same without a copy at the broker.
    fn send_once(&mut self, sealed: &[u8]) -> Result<(), RemoteError> {
        let mark = self.mark.next(self.delay);
        self.link.send_once(&self.up, stamp(&mark, sealed)?);
        Ok(())
    }
}

/// The site with its data.
struct Worker {
    site: Site,
    /// Its place in the federation.
    client: usize,
    /// Its place in the data that is here.
    column: usize,
    stream: Box<dyn Stream>,
    frame: Frame,
    outbox: Outbox,
    /// The last step that was taken, and its time; step 0 is the enrolment.
    taken: Option<u64>,
    time: Timestamp,
    /// The last step whose orders were carried out.
    ordered: Option<u64>,
    /// The data ended after so many steps.
    ended: Option<u64>,
    found: u64,
}

impl Worker {
    fn new(
        options: &Options<'_>,
        models: &SiteModels,
        outbox: Outbox,
    ) -> Result<Self, RemoteError> {
        let Options { session, client, place: (place, _), mode, .. } = options;
        let own = own(session, client);
        let stream = Grids::of(&own)?.open(&own, Part::Replay)?;
        let stream: Box<dyn Stream> = Box::new(Decimated::new(stream, models.every));
        let layout = stream.layout();
        let column = layout.clients.iter().position(|known| known.name == **client);
        let column = column.ok_or_else(|| {
            let known: Vec<_> = layout.clients.iter().map(|client| &*client.name).collect();
            RemoteError::NoClient { name: (*client).to_owned(), known: known.join(", ") }
        })?;
        let site_options = SiteOptions {
            client: *place,
            prepared: &models.site,
            session,
            period_s: layout.period_s,
            mode: *mode,
            both: false,
            keep: false,
        };
        let from = models.from;
        let failed = |source| RemoteError::Site { client: (*client).to_owned(), source };
        let mut site = Site::new(&site_options, None, (from, &models.trained)).map_err(failed)?;
        if *mode == Mode::Paper && session.thresholds.deadband < 1.0 {
            site.never_forget(from)?;
        }
        Ok(Self {
            site,
            client: *place,
            column,
            frame: Frame::for_layout(layout),
            stream,
            outbox,
            taken: None,
            time: from,
            ordered: None,
            ended: None,
            found: 0,
        })
    }

    /// Takes every step again that the outbox holds, so that the models stand where they stood. What they
    /// would release now is thrown away: the stored releases are the ones that count.
    fn catch_up(&mut self) -> Result<(), RemoteError> {
        let Some(last) = self.outbox.last()? else { return Ok(()) };
        self.found = last;
        for step in 0..=last {
            self.take(step)?;
            if self.outbox.answer(step)?.is_some() {
                let question = ToSite::name_sensors(self.client, step);
                self.site.hear(&question, self.time, &mut |_| {});
            }
            if let Some(orders) = self.outbox.orders(step)? {
                self.carry_out(step, &unpack(&orders)?)?;
            }
        }
        Ok(())
    }

    /// The server waits for `step`, and has given `orders` after the step before it. The envelope to
    /// send; none where nothing can be said yet.
    fn next(&mut self, step: u64, orders: &[Vec<u8>]) -> Result<Option<Vec<u8>>, RemoteError> {
        if let Some(steps) = self.ended
            && step > steps
        {
            return Ok(Some(seal(&Up::End { steps })?));
        }
        if let Some(stored) = self.outbox.envelope(step)? {
            return Ok(Some(stored));
        }
        // The step after the last one, and no other, can be taken.
        if step > self.after() {
            return Err(RemoteError::Behind { step, after: self.after() });
        }
        if let Some(before) = step.checked_sub(1)
            && self.ordered != Some(before)
        {
            self.outbox.keep_orders(before, &pack(orders)?)?;
            self.carry_out(before, orders)?;
        }
        let Some(released) = self.take(step)? else {
            let steps = step - 1;
            self.ended = Some(steps);
            return Ok(Some(seal(&Up::End { steps })?));
        };
        let envelope = seal(&Up::Step(released))?;
        self.outbox.keep(step, &envelope)?;
        Ok(Some(envelope))
    }

    /// The step that can be taken next.
    fn after(&self) -> u64 {
        self.taken.map_or(0, |taken| taken + 1)
    }

    /// What the ledger has entered so far, training aside.
    fn spent(&self) -> SpentSoFar {
        let live = self.site.ledger().live();
        let epsilon = Some(live.epsilon).filter(|epsilon| epsilon.is_finite());
        SpentSoFar { epsilon, releases: live.releases }
    }

    /// Takes one step: what it releases; none at the end of the data.
    fn take(&mut self, step: u64) -> Result<Option<Step>, RemoteError> {
        let mut messages = Vec::new();
        let mut send = |sent: Sent| {
            if let Sent::ToServer(message) = sent {
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                messages.push(bytes);
            }
        };
        if step == 0 {
            self.site.enrol(&mut send)?;
            self.taken = Some(0);
            return Ok(Some(Step::new(0, self.time, self.frame.continuity, messages)));
        }
        if !self.stream.next(&mut self.frame)? {
            return Ok(None);
        }
        let (time, continuity) = (self.frame.time, self.frame.continuity);
        let layout = self.stream.layout();
        let tick = Tick { step, time, follows: follows(continuity, layout.period_s) };
        self.site.begin(tick);
        self.site.step(self.frame.row(layout, self.column), tick, &mut send);
        (self.taken, self.time) = (Some(step), time);
        Ok(Some(Step::new(step, time, continuity, messages)))
    }

    fn carry_out(&mut self, step: u64, orders: &[Vec<u8>]) -> Result<(), RemoteError> {
        for order in orders {
            let order =
                ToSite::decode(order).map_err(|why| RemoteError::Refused(why.to_string()))?;
            if order.client() == self.client {
                // Nothing that is ordered after a step releases anything.
                self.site.hear(&order, self.time, &mut |_| {});
            }
        }
        self.ordered = Some(step);
        Ok(())
    }

    /// Answers a question about the present step, once; the same answer whenever it is asked again.
    fn answer(&mut self, step: u64, order: &[u8]) -> Result<Option<Vec<u8>>, RemoteError> {
        if let Some(stored) = self.outbox.answer(step)? {
            return Ok(Some(stored));
        }
        let Ok(order) = ToSite::decode(order) else { return Ok(None) };
        if self.taken != Some(step) || order.client() != self.client {
            return Ok(None);
        }
        let mut messages = Vec::new();
        self.site.hear(&order, self.time, &mut |sent| {
            if let Sent::ToServer(message) = sent {
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                messages.push(bytes);
            }
        });
        let envelope = seal(&Up::Answer { step, messages })?;
        self.outbox.keep_answer(step, &envelope)?;
        Ok(Some(envelope))
    }

    /// The server has closed the run: nothing of it will be asked for again.
    fn end(mut self, sent_again: u64) -> Result<Ended, RemoteError> {
        self.site.close_ledger(self.time);
        self.outbox.remove()?;
        Ok(Ended {
            ledger: Some(self.site.ledger().clone()),
            steps: self.taken.unwrap_or(0),
            sent_again,
            found: self.found,
            last: self.time,
        })
    }
}
