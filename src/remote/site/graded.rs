//! Tier 2: a step is announced, and released once it is known what is predicted of it.
//!
//! The row of a live source is kept when it comes, and its step is announced when the server has come to it.

use super::super::RemoteError;
use super::super::envelope::{Step, Up, pack, seal, unpack};
use super::worker::Worker;
use crate::stream::Stream as _;
use crate::wire::ToSite;

impl Worker {
    /// Reads the row of the next step, without looking at it: what is said of the step; none at the end
    /// of the data.
    pub(super) fn announce(&mut self, step: u64) -> Result<Option<Step>, RemoteError> {
        self.settle(step)?;
        if !self.stream.next(&mut self.frame)? {
            return Ok(None);
        }
        Ok(Some(self.announce_frame(step)))
    }

    fn announce_frame(&mut self, step: u64) -> Step {
        (self.taken, self.time, self.pending) = (Some(step), self.frame.time, Some(step));
        Step::new(step, self.frame.time, self.frame.continuity, Vec::new())
    }

    /// The server is at `step`: it has closed an earlier one that was announced without this site.
    pub(super) fn settle(&mut self, step: u64) -> Result<(), RemoteError> {
        if let Some(pending) = self.pending.filter(|pending| *pending < step) {
            self.grade(pending, None)?;
        }
        Ok(())
    }

    /// Announces the step of a live source that the server asks for, once its row is there. Rows of
    /// steps that were closed without this site are looked at, and the server counts them as late.
    pub(super) fn announce_kept(
        &mut self,
        asked: u64,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), RemoteError> {
        let from = self.taken.map_or(0, |taken| taken + 1);
        for step in self.outbox.rows(from, asked)? {
            self.settle(step)?;
            self.read_kept(step)?;
            let announced = seal(&Up::Step(self.announce_frame(step)))?;
            self.outbox.keep(step, &announced, self.spent())?;
            if step < asked {
                out.push(announced);
            }
        }
        self.settle(asked)?;
        let Some(live) = &mut self.live else { return Ok(()) };
        let answer = match self.outbox.envelope(asked)? {
            Some(announced) => Some(announced),
            None => live.has_no(asked).map(|word| seal(&word)).transpose()?,
        };
        if answer.is_some() {
            live.asked = None;
        }
        out.extend(answer);
        Ok(())
    }

    /// This is predicted of a step: the envelope with what is released of it; none where that is not the
    /// step at hand.
    pub(super) fn graded(
        &mut self,
        step: u64,
        order: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        if let Some(stored) = self.outbox.graded(step)? {
            return Ok(Some(stored));
        }
        if self.pending != Some(step) {
            return Ok(None);
        }
        self.grade(step, order).map(Some)
    }

    fn grade(&mut self, step: u64, order: Option<&[u8]>) -> Result<Vec<u8>, RemoteError> {
        let orders: Vec<Vec<u8>> = order.map(<[u8]>::to_vec).into_iter().collect();
        let messages = self.look(step, &orders)?;
        self.recording.sent(&messages);
        let envelope = seal(&Up::Graded { step, messages })?;
        self.outbox.keep_graded(step, (&pack(&orders)?, &envelope), self.spent())?;
        Ok(envelope)
    }

    /// Takes the row at hand with what is predicted of it.
    fn look(&mut self, step: u64, orders: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, RemoteError> {
        for order in orders {
            let order =
                ToSite::decode(order).map_err(|why| RemoteError::Refused(why.to_string()))?;
            if order.client() == self.client {
                self.site.hear(&order, self.time, &mut |_| {});
            }
        }
        self.pending = None;
        Ok(self.take_frame(step).messages)
    }

    /// Takes a step again that the outbox holds.
    pub(super) fn look_again(&mut self, step: u64) -> Result<(), RemoteError> {
        if self.live.is_some() {
            self.read_kept(step)?;
            self.announce_frame(step);
        } else {
            self.announce(step)?;
        }
        if let Some(orders) = self.outbox.predicted(step)? {
            self.look(step, &unpack(&orders)?)?;
        }
        Ok(())
    }
}
