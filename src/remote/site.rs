//! One client at work in a process of its own: its rows, its models, its ledger, its outbox.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;

use super::account::SpentSoFar;
use super::envelope::{
    Down, Mark, Step, Topics, Up, nanosecond, open_down, pack, seal, stamp, unpack,
};
use super::link::{Broker, Incoming, Link};
use super::outbox::Outbox;
use super::{ASK_AGAIN, GLANCE, RemoteError};
use crate::engine::prepare::Prepared;
use crate::engine::run::follows;
use crate::privacy::Ledger;
use crate::session::{Mode, Session};
use crate::site::{Sent, Site, SiteOptions};
use crate::stream::decimate::Decimated;
use crate::stream::resolution::Grids;
use crate::stream::{Frame, Part, Stream};
use crate::wire::{Tick, ToSite};

/// What a site needs to begin.
pub(crate) struct Options<'a> {
    pub(crate) session: &'a Session,
    pub(crate) prepared: &'a Prepared,
    pub(crate) mode: Mode,
    /// The name of the client.
    pub(crate) client: &'a str,
    pub(crate) broker: &'a Broker,
    pub(crate) outbox: &'a Path,
    pub(crate) interrupt: Arc<AtomicBool>,
}

/// How a site ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ledger: Ledger,
    pub(crate) steps: u64,
    /// Steps that were sent again.
    pub(crate) sent_again: u64,
    /// Steps that were found in the outbox at the start.
    pub(crate) found: u64,
    pub(crate) last: Timestamp,
}

/// Takes part until the data ends, the server stops, or it is interrupted. `say` gets words about the
/// connection.
pub(crate) fn run(options: &Options<'_>, say: &mut dyn FnMut(&str)) -> Result<Ended, RemoteError> {
    let Options { session, mode, client, broker, interrupt, .. } = options;
    let agreement = super::agreement(session, *mode)?;
    let mut worker = Worker::new(options, &agreement)?;
    worker.catch_up()?;
    let topics = Topics::of(&session.name);
    let (up, down) = (topics.up(client), topics.down(client));
    let id = format!("headwater-{}-{client}-{}", session.name, std::process::id());
    let link = Link::open(broker, client, &id, vec![down.clone()], topics.state(client))?;
    let mark = Mark::first(&agreement, client, worker.outbox.start());
    let mut sender = Sender { link, up, mark, delay: None };
    let (mut heard, mut told) = (Instant::now(), Instant::now());
    let (mut sent, mut sent_again) = (None, 0);
    let ended = loop {
        if interrupt.load(Ordering::Relaxed) {
            break Err(RemoteError::Interrupted);
        }
        let hello =
            |waits| Up::Hello { agreement: agreement.clone(), spent: worker.spent(), waits };
        if told.elapsed() >= ASK_AGAIN {
            let waits = heard.elapsed() >= ASK_AGAIN;
            sender.send(&seal(&hello(waits))?)?;
            told = Instant::now();
        }
        let payload = match sender.link.next(GLANCE)? {
            Some(Incoming::Connected) => {
                say("connected to the broker");
                sender.send(&seal(&hello(true))?)?;
                continue;
            }
            Some(Incoming::Message { topic, payload }) if topic == down => payload,
            Some(Incoming::Message { .. } | Incoming::Dropped { .. }) | None => continue,
        };
        heard = Instant::now();
        // Whoever may publish here is the server: what cannot be read is left out, and asked for again.
        let Ok((mark, word)) = open_down(&payload) else { continue };
        sender.delay = Some(nanosecond(Timestamp::now()).saturating_sub(mark.nanosecond));
        match word {
            Down::Next { step, orders, hurry } => {
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
            Down::Question { step, order } => {
                if let Some(envelope) = worker.answer(step, &order)? {
                    sender.send(&envelope)?;
                }
            }
            Down::Stop => break Ok(()),
            Down::Refused { why } => break Err(RemoteError::Refused(why)),
        }
    };
    sender.link.leave();
    ended?;
    worker.end(sent_again)
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
}

/// The site with its data.
struct Worker {
    site: Site,
    client: usize,
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
    fn new(options: &Options<'_>, agreement: &str) -> Result<Self, RemoteError> {
        let Options { session, prepared, mode, client, .. } = options;
        super::check(session, *mode)?;
        let place = prepared.clients.iter().position(|known| known.name == **client);
        let Some(place) = place else {
            let known: Vec<_> = prepared.clients.iter().map(|client| &*client.name).collect();
            let (name, known) = ((*client).to_owned(), known.join(", "));
            return Err(RemoteError::NoClient { name, known });
        };
        let stream = Grids::of(session)?.open(session, Part::Replay)?;
        let stream: Box<dyn Stream> = Box::new(Decimated::new(stream, prepared.every));
        let period_s = stream.layout().period_s;
        let site_options = SiteOptions {
            client: place,
            prepared: &prepared.clients[place],
            session,
            period_s,
            mode: *mode,
            both: false,
            keep: false,
        };
        let trained = prepared.spent.clients.get(place).map_or(&[][..], Vec::as_slice);
        let from = prepared.spent.from;
        let failed = |source| RemoteError::Site { client: (*client).to_owned(), source };
        let mut site = Site::new(&site_options, None, (from, trained)).map_err(failed)?;
        if *mode == Mode::Paper && session.thresholds.deadband < 1.0 {
            site.never_forget(from)?;
        }
        let outbox = Outbox::open(options.outbox, agreement)?;
        Ok(Self {
            site,
            client: place,
            frame: Frame::for_layout(stream.layout()),
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
        self.site.step(self.frame.row(layout, self.client), tick, &mut send);
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
            ledger: self.site.ledger().clone(),
            steps: self.taken.unwrap_or(0),
            sent_again,
            found: self.found,
            last: self.time,
        })
    }
}
