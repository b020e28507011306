//! What a step consists of once it was heard: what sites agree on, answers to questions, and what a
//! journal has of it.

use std::time::Instant;

use super::super::RemoteError;
use super::super::envelope::{Down, Step, nanosecond, pack, unpack};
use super::{Desk, Question};
use crate::wire::{Content, Message};

impl Desk {
    /// A question that must be answered before the step is closed.
    pub(in crate::remote) fn pose(&mut self, client: usize, step: u64, order: Vec<u8>) {
        let stored = self.journal.as_ref().map(|journal| journal.answer(step, client));
        match stored.transpose() {
            Ok(Some(Some(messages))) => {
                let messages = unpack(&messages).unwrap_or_default();
                let messages = self.read(client, Some(step), &messages).unwrap_or_default();
                return self.arrived.extend(messages);
            }
            Ok(_) => {}
            Err(why) => return self.failed = Some(why.into()),
        }
        let word = Down::Question { step, order };
        self.tell(client, &word);
        self.question = Some(Question { client, step, word, asked: Instant::now() });
    }

    /// Waits for the answer, as long as a step stays open.
    pub(in crate::remote) fn wait_for_answer(&mut self) {
        let deadline = self.deadline;
        let waits = |desk: &Self| {
            desk.question
                .as_ref()
                .is_some_and(|q| deadline.is_none_or(|deadline| q.asked.elapsed() < deadline))
        };
        self.listen_while(waits, |desk| {
            if let Some(Question { client, word, .. }) = &desk.question {
                let (client, word) = (*client, word.clone());
                desk.accounts[client].counts.asked_again += 1;
                desk.tell(client, &word);
            }
        });
        // That there was no answer in time is as final as an answer.
        if let Some(Question { client, step, .. }) = self.question.take()
            && self.failed.is_none()
        {
            self.note_answer(step, client, &[]);
        }
    }

    pub(super) fn note_answer(&mut self, step: u64, client: usize, messages: &[Vec<u8>]) {
        if let (Some(journal), Ok(packed)) = (&self.journal, pack(messages))
            && let Err(why) = journal.keep_answer(step, client, &packed)
        {
            self.failed = Some(why.into());
        }
    }

    /// What was heard of the next step before this start, where it was.
    pub(super) fn find_step(&mut self) -> Option<Step> {
        let stored = self.journal.as_ref()?.step(self.next);
        let mut heard = stored.map_err(|why| self.failed = Some(why.into())).ok()??;
        if heard.len() > self.accounts.len() {
            return None;
        }
        // A client that was added to the session since then had no part in it.
        heard.resize(self.accounts.len(), None);
        self.announce(heard.iter().map(Option::is_some).collect());
        let times = heard.iter().flatten().map(|step| nanosecond(step.time())).collect();
        let step = match &self.grid {
            Some(_) => self.step_of_grid(times)?,
            None => heard.iter().flatten().next()?.clone(),
        };
        for (client, heard) in heard.into_iter().enumerate() {
            match heard {
                Some(heard) => {
                    let (number, begin) = (heard.number, enrolment_of(&heard));
                    let [enrolment, rest] = [&heard.messages[..begin], &heard.messages[begin..]];
                    let enrolment = self.read(client, Some(0), enrolment).unwrap_or_default();
                    let messages = self.read(client, Some(number), rest).unwrap_or_default();
                    self.note_enrolled(client, !enrolment.is_empty());
                    self.arrived.extend(enrolment.into_iter().chain(messages));
                    self.before[client].clear();
                }
                None if self.joining.is_absent(client) => {}
                None => self.accounts[client].miss(self.next),
            }
        }
        self.next += 1;
        Some(step)
    }

    /// The step as most sites have it. Without a deadline all must agree; with one, a site that does not
    /// is left out of the step.
    pub(super) fn agreed(&mut self) -> Option<Step> {
        let steps: Vec<&Step> = self.came.iter().flatten().map(|(step, _)| step).collect();
        let agree = |step: &Step| steps.iter().filter(|other| other.is_beside(step)).count();
        let most = steps.iter().copied().max_by_key(|step| agree(step))?;
        let (votes, most) = (agree(most), most.clone());
        let is_beside =
            |came: &Option<(Step, _)>| came.as_ref().is_some_and(|(step, _)| step.is_beside(&most));
        let others: Vec<usize> = self
            .clients()
            .filter(|client| !is_beside(&self.came[*client]) && !self.has_left(*client))
            .collect();
        if others.is_empty() {
            return Some(most);
        }
        let is_majority = 2 * votes > steps.len();
        if self.deadline.is_none() || !is_majority {
            let names: Vec<&str> = others.iter().map(|m| &*self.accounts[*m].name).collect();
            let why = format!(
                "sites disagree about step {}: its time, what lies before it, or whether it exists \
                 ({} differs)",
                self.next,
                names.join(", ")
            );
            self.failed = Some(RemoteError::Refused(why));
            return None;
        }
        for client in others {
            if self.came[client].take().is_some() {
                self.accounts[client].counts.malformed += 1;
            }
        }
        Some(most)
    }
}

/// How many messages of a step are the enrolment of a site that joined with it.
fn enrolment_of(step: &Step) -> usize {
    let is_one = |bytes: &Vec<u8>| {
        let message = Message::decode(bytes);
        message.is_ok_and(|message| matches!(message.content(), Content::Enrolment(_)))
    };
    if step.number == 0 { 0 } else { step.messages.iter().take_while(|m| is_one(m)).count() }
}
