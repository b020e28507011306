//! Tier 2: a step is announced, and released once it is known what is predicted of it.

use super::super::RemoteError;
use super::super::envelope::{Step, Up, pack, seal, unpack};
use super::worker::Worker;
use crate::stream::Stream as _;
use crate::wire::ToSite;

impl Worker {
    /// Reads the row of the next step, without looking at it: what is said of the step; none at the end
    /// of the data.
    pub(super) fn announce(&mut self, step: u64) -> Result<Option<Step>, RemoteError> {
        // The server has closed the last step without this site.
        if let Some(pending) = self.pending {
            self.grade(pending, None)?;
        }
        if !self.stream.next(&mut self.frame)? {
            return Ok(None);
        }
        (self.taken, self.time, self.pending) = (Some(step), self.frame.time, Some(step));
        Ok(Some(Step::new(step, self.frame.time, self.frame.continuity, Vec::new())))
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
        self.announce(step)?;
        if let Some(orders) = self.outbox.predicted(step)? {
            self.look(step, &unpack(&orders)?)?;
        }
        Ok(())
    }
}
