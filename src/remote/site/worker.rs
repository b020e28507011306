//! The site with its data: it takes steps and keeps what they release.

use jiff::Timestamp;

use super::super::RemoteError;
use super::super::account::SpentSoFar;
use super::super::envelope::{Step, Up, pack, seal, unpack, unseal};
use super::super::outbox::{Outbox, add};
use super::live::Live;
use super::{Ended, Options};
use crate::engine::kept_run::SiteRecording;
use crate::engine::prepare::apart::SiteModels;
use crate::engine::run::follows;
use crate::session::{Mode, Tier};
use crate::site::{Sent, Site, SiteOptions};
use crate::stream::{Continuity, Frame, Stream};
use crate::wire::{Tick, ToSite};

/// A site at work.
pub(super) struct Worker {
    pub(super) site: Site,
    /// Its place in the federation.
    pub(super) client: usize,
    /// Its place in the data that is here.
    pub(super) column: usize,
    /// Steps of its data.
    pub(super) stream: Box<dyn Stream>,
    pub(super) frame: Frame,
    pub(super) outbox: Outbox,
    /// The last step that was taken, and its time; step 0 is the enrolment.
    pub(super) taken: Option<u64>,
    pub(super) time: Timestamp,
    /// The last step whose orders were carried out.
    pub(super) ordered: Option<u64>,
    /// The data ended after so many steps.
    pub(super) ended: Option<u64>,
    pub(super) found: u64,
    /// The first step that it is heard at; later than 1 where it joined a run that went on.
    pub(super) joined: u64,
    /// Its next step is the first one that it looks at.
    pub(super) begins: bool,
    /// What it released under enrolments before this one.
    past: Option<SpentSoFar>,
    /// Steps are announced, and released when it is known what is predicted of them (tier 2).
    pub(super) announces: bool,
    /// The step that was announced and not released yet.
    pub(super) pending: Option<u64>,
    pub(super) recording: SiteRecording,
    /// Rows come when they come, and cannot be read again.
    pub(super) live: Option<Live>,
}

impl Worker {
    /// A site before its enrolment, over the steps of `stream`.
    pub(super) fn new(
        options: &Options<'_>,
        models: &SiteModels,
        outbox: Outbox,
        stream: Box<dyn Stream>,
    ) -> Result<Self, RemoteError> {
        let Options { session, client, place: (place, _), mode, .. } = options;
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
        let live = session.live().map(|_| Live::new(layout));
        let announces = *mode == Mode::Evidence && session.thresholds.tier == Tier::States;
        Ok(Self {
            joined: outbox.joined()?,
            begins: false,
            past: outbox.past()?,
            announces,
            pending: None,
            site,
            client: *place,
            column,
            frame: Frame::for_layout(layout),
            live,
            stream,
            outbox,
            taken: None,
            time: from,
            ordered: None,
            ended: None,
            found: 0,
            recording: SiteRecording::default(),
        })
    }

    /// Records its steps from now on.
    pub(super) fn record(
        &mut self,
        mut recording: SiteRecording,
        options: &Options<'_>,
        models: &SiteModels,
    ) {
        let data = (self.stream.layout(), self.column);
        recording.describe((&self.site, models), options.session, data);
        self.recording = recording;
    }

    /// Takes every step again that the outbox holds, so that the models stand where they stood. What they
    /// would release now is thrown away: the stored releases are the ones that count.
    pub(super) fn catch_up(&mut self) -> Result<(), RemoteError> {
        let Some(last) = self.outbox.last()? else { return Ok(()) };
        self.found = last;
        let steps = if self.live.is_some() {
            [vec![0], self.outbox.rows(1, last)?].concat()
        } else {
            self.outbox.check_all(last)?;
            [0].into_iter().chain(self.joined..=last).collect()
        };
        for step in steps {
            match step {
                0 => {
                    self.take(0)?;
                    self.skip_to_joined()?;
                }
                _ if self.announces => self.look_again(step)?,
                _ if self.live.is_some() => self.take_again(step)?,
                _ => drop(self.take(step)?),
            }
            self.recorded_as_sent(self.outbox.envelope(step)?);
            self.recorded_as_sent(self.outbox.graded(step)?);
            if let Some(answer) = self.outbox.answer(step)? {
                let question = ToSite::name_sensors(self.client, step);
                self.site.hear(&question, self.time, &mut |_| {});
                self.recorded_as_sent(Some(answer));
            }
            if let Some(orders) = self.outbox.orders(step)? {
                self.carry_out(step, &unpack(&orders)?)?;
            }
        }
        if let Some(live) = &mut self.live {
            live.kept = self.outbox.last_row()?;
        }
        Ok(())
    }

    /// The server waits for `step`, and has given `orders` after the step before it. The envelope to
    /// send; none where nothing can be said yet.
    pub(super) fn next(
        &mut self,
        step: u64,
        orders: &[Vec<u8>],
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        if let Some(steps) = self.ended
            && step > steps
        {
            return Ok(Some(seal(&Up::End { steps })?));
        }
        if let Some(stored) = self.outbox.envelope(step)? {
            return Ok(Some(stored));
        }
        // The step after the last one, and no other, can be taken.
        if step != self.after() {
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
        self.recording.sent(&released.messages);
        let envelope = seal(&Up::Step(released))?;
        self.outbox.keep(step, &envelope, self.spent())?;
        Ok(Some(envelope))
    }

    /// The step that can be taken next.
    pub(super) fn after(&self) -> u64 {
        self.taken.map_or(0, |taken| taken + 1)
    }

    /// What the ledger has entered so far, training aside.
    pub(super) fn spent(&self) -> SpentSoFar {
        let live = self.site.ledger().live();
        let epsilon = Some(live.epsilon).filter(|epsilon| epsilon.is_finite());
        SpentSoFar { epsilon, releases: live.releases }
    }

    /// The same with what was released under enrolments before this one.
    pub(super) fn spent_ever(&self) -> SpentSoFar {
        let now = self.spent();
        add(self.past, Some(now)).unwrap_or(now)
    }

    /// Takes one step: what it releases; none at the end of the data.
    fn take(&mut self, step: u64) -> Result<Option<Step>, RemoteError> {
        if step == 0 {
            return self.enrol(self.time).map(Some);
        }
        if self.announces {
            return self.announce(step);
        }
        if !self.stream.next(&mut self.frame)? {
            return Ok(None);
        }
        Ok(Some(self.take_frame(step)))
    }

    /// Step 0.
    pub(super) fn enrol(&mut self, time: Timestamp) -> Result<Step, RemoteError> {
        let mut messages = Vec::new();
        self.site.enrol(&mut |sent| encode(sent, &mut messages))?;
        self.taken = Some(0);
        Ok(Step::new(0, time, Continuity::NewRun, messages))
    }

    /// A step with the present frame.
    pub(super) fn take_frame(&mut self, step: u64) -> Step {
        let mut messages = Vec::new();
        let (time, continuity) = (self.frame.time, self.frame.continuity);
        let period_s = self.stream.layout().period_s;
        let follows = self.follows(follows(continuity, period_s));
        let tick = Tick { step, time, follows };
        self.site.begin(tick);
        let layout = self.stream.layout();
        let row = self.frame.row(layout, self.column);
        self.site.step(row, tick, &mut |sent| encode(sent, &mut messages));
        (self.taken, self.time) = (Some(step), time);
        self.recording.step(step, &self.site, &self.frame);
        Step::new(step, time, continuity, messages)
    }

    pub(super) fn carry_out(&mut self, step: u64, orders: &[Vec<u8>]) -> Result<(), RemoteError> {
        for bytes in orders {
            let order =
                ToSite::decode(bytes).map_err(|why| RemoteError::Refused(why.to_string()))?;
            if order.client() == self.client {
                // Nothing that is ordered after a step releases anything.
                self.site.hear(&order, self.time, &mut |_| {});
                self.recording.obeyed(bytes);
            }
        }
        self.ordered = Some(step);
        Ok(())
    }

    /// Answers a question about the present step, once; the same answer whenever it is asked again.
    pub(super) fn answer(
        &mut self,
        step: u64,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        if let Some(stored) = self.outbox.answer(step)? {
            return Ok(Some(stored));
        }
        let Ok(order) = ToSite::decode(bytes) else { return Ok(None) };
        if self.taken != Some(step) || order.client() != self.client {
            return Ok(None);
        }
        let mut messages = Vec::new();
        self.site.hear(&order, self.time, &mut |sent| encode(sent, &mut messages));
        self.recording.obeyed(bytes);
        self.recording.sent(&messages);
        let envelope = seal(&Up::Answer { step, messages })?;
        self.outbox.keep_answer(step, &envelope)?;
        Ok(Some(envelope))
    }

    /// Records what was sent before this start: it counts, and not what would be drawn now.
    fn recorded_as_sent(&mut self, envelope: Option<Vec<u8>>) {
        if let Some(Ok(
            Up::Step(Step { messages, .. })
            | Up::Answer { messages, .. }
            | Up::Graded { messages, .. },
        )) = envelope.map(|envelope| unseal(&envelope))
        {
            self.recording.sent(&messages);
        }
    }

    /// The run is over for this site: closes its ledger and its recording.
    pub(super) fn close(&mut self) {
        self.site.close_ledger(self.time);
        self.recording.end(&self.site, self.time);
    }

    /// The server has closed the run: nothing of it will be asked for again.
    pub(super) fn end(self, sent_again: u64) -> Result<Ended, RemoteError> {
        let steps = self.after().saturating_sub(self.joined);
        self.outbox.remove()?;
        Ok(Ended {
            ledger: Some(self.site.ledger().clone()),
            steps,
            sent_again,
            found: self.found,
            last: self.time,
            past: self.past,
            source: None,
            not_recorded: None,
        })
    }
}

/// What leaves the site, as it crosses.
fn encode(sent: Sent, messages: &mut Vec<Vec<u8>>) {
    if let Sent::ToServer(message) = sent {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        messages.push(bytes);
    }
}
