//! A site that joins a run that goes on, or comes back to it with other models.

use super::super::envelope::Up;
use super::super::envelope::seal;
use super::super::{RemoteError, named};
use super::worker::Worker;
use super::{Options, Partner};
use crate::stream::Stream as _;
use crate::wire::Follows;

impl Partner<'_> {
    /// The run is with models that this site does not have: it makes its own.
    pub(super) fn makes_own(
        &mut self,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), RemoteError> {
        if self.alone.is_some() {
            return Ok(());
        }
        say(
            "the run is with models that this site does not have: it makes its own and calibrates itself, \
             which releases nothing",
        );
        let made = self.trainee.alone(say);
        let made = made.map_err(|why| RemoteError::Prepare(Box::new(why)))?;
        say(&format!("its own model is {}", named(made.id)));
        self.alone = Some(made.id);
        self.held.push(made);
        Ok(())
    }

    /// Says why it waits, once.
    pub(super) fn tell(&mut self, why: &str, say: &mut (dyn FnMut(&str) + Send)) {
        if self.told != why {
            why.clone_into(&mut self.told);
            say(why);
        }
    }

    /// It is heard with these models from a step on: the envelope of its enrolment; none where it does not
    /// have them.
    pub(super) fn enrol(
        &mut self,
        (id, from): (u64, u64),
        options: &Options<'_>,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        if let Some(worker) = self.worker.as_mut().filter(|_| self.used == Some(id))
            && worker.joined == from
        {
            return Ok(worker.outbox.envelope(0)?);
        }
        let Some(models) = self.held.iter().find(|models| models.id == id) else { return Ok(None) };
        // A site that was started again on the way has its enrolment already.
        let steps = self.steps(models, options)?;
        let (outbox, recording) = match self.worker.take() {
            Some(worker) => (Some(worker.outbox), Some(worker.recording)),
            None => (self.outbox.take(), self.recording.take()),
        };
        let Some(outbox) = outbox else { return Err(RemoteError::OtherModels) };
        let goes_on =
            outbox.models()? == Some(id) && outbox.joined()? == from && outbox.last()?.is_some();
        if !goes_on {
            outbox.begin_at(from)?;
            outbox.keep_models(id, &models.trained)?;
        }
        let mut worker = Worker::new(options, models, outbox, steps)?;
        worker.record(recording.unwrap_or_default(), options, models);
        if goes_on {
            worker.catch_up()?;
        } else {
            worker.join()?;
        }
        say(&format!(
            "enrols with the model {} and is heard from step {from} on; other sites keep theirs",
            named(id)
        ));
        let enrolment = worker.outbox.envelope(0)?;
        (self.worker, self.used) = (Some(worker), Some(id));
        Ok(enrolment)
    }
}

impl Worker {
    /// Enrols, and goes to the first step that it is heard at. Rows before it are not looked at.
    pub(super) fn join(&mut self) -> Result<(), RemoteError> {
        let enrolled = self.enrol(self.time)?;
        self.recording.sent(&enrolled.messages);
        let enrolment = seal(&Up::Step(enrolled))?;
        self.outbox.keep(0, &enrolment, self.spent())?;
        self.skip_to_joined()
    }

    /// Goes on to the step before the first one that it is heard at.
    pub(super) fn skip_to_joined(&mut self) -> Result<(), RemoteError> {
        let before = self.joined - 1;
        if before == 0 {
            return Ok(());
        }
        if let Some(live) = &mut self.live {
            live.delivered = before;
        } else {
            for _ in 0..before {
                if !self.stream.next(&mut self.frame)? {
                    break;
                }
            }
        }
        (self.taken, self.ordered) = (Some(before), Some(before));
        self.begins = true;
        Ok(())
    }

    /// How a step follows the one before as this site has seen it: the first one of a site that joins
    /// follows none.
    pub(super) fn follows(&mut self, follows: Follows) -> Follows {
        if std::mem::take(&mut self.begins) { Follows::NewRun } else { follows }
    }
}
