//! What sites say, taken or refused.

use super::super::envelope::{Down, Holds, Up};
use super::{Desk, Question};
use crate::wire::{Content, Message};

impl Desk {
    /// A site says something.
    pub(super) fn take_up(&mut self, client: usize, up: Up) {
        match up {
            Up::Hello { agreement, spent, waits, models } => {
                self.accounts[client].spent = Some(spent);
                if agreement != self.agreements[client] {
                    self.accounts[client].counts.foreign += 1;
                    self.refuse(client);
                } else if self.inquires {
                    if !self.gone[client] {
                        let hello = Up::Hello { agreement, spent, waits, models };
                        self.replies.push_back((client, hello));
                    }
                } else {
                    self.take_hello(client, &models, waits);
                }
            }
            Up::Ready(_) | Up::Round { .. } | Up::Lesson(_) | Up::Told { .. } if self.inquires => {
                self.replies.push_back((client, up));
            }
            // A run that another server began, or a training that is over.
            Up::Ready(_) | Up::Round { .. } | Up::Lesson(_) | Up::Told { .. } => {
                self.accounts[client].counts.duplicates += 1;
            }
            _ if self.inquires => self.accounts[client].counts.duplicates += 1,
            Up::Step(step) if !self.is_in_time(&step) => {
                self.accounts[client].counts.malformed += 1;
            }
            // It has not enrolled, and is not asked to.
            Up::Step(_) | Up::Graded { .. } | Up::Answer { .. }
                if self.joining.is_absent(client) =>
            {
                self.accounts[client].counts.malformed += 1;
            }
            Up::Step(step) if step.number == 0 && self.joining.is_enrolling(client) => {
                self.takes_enrolment(client, step.messages);
            }
            Up::Step(step) if step.number == self.next && self.came[client].is_none() => {
                if self.joining.waits_for_enrolment(client) {
                    return self.ask(client);
                }
                if let Some(messages) = self.read(client, Some(step.number), &step.messages) {
                    self.came[client] = Some((step, messages));
                }
            }
            Up::Step(step) if step.number <= self.next => {
                self.accounts[client].comes_after_the_end(step.number);
                self.is_near(client, step.number);
            }
            // Nobody asked for it yet.
            Up::Step(_) => self.accounts[client].counts.malformed += 1,
            Up::Answer { step, messages } => {
                let asked = |q: &Question| (q.client, q.step) == (client, step);
                if !self.question.as_ref().is_some_and(asked) {
                    self.accounts[client].counts.duplicates += 1;
                } else if let Some(read) = self.read(client, Some(step), &messages) {
                    self.question = None;
                    self.note_answer(step, client, &messages);
                    self.arrived.extend(read);
                }
            }
            Up::Graded { step, messages } => self.take_graded(client, step, &messages),
            Up::Leave => self.lets_go(client),
            Up::Nothing { step } => self.has_nothing(client, step),
            Up::End { steps } => {
                if steps.checked_add(1) == Some(self.next) {
                    self.ended[client] = Some(steps);
                }
            }
        }
    }

    /// A site of this session says hello while the run goes on.
    fn take_hello(&mut self, client: usize, models: &Holds, waits: bool) {
        if self.joins(client, models) {
            return;
        }
        if self.gone[client] {
            return self.takes_back(client);
        }
        if let Some(wanted) = self.expected(client).filter(|id| models.used != Some(*id)) {
            self.tell(client, &Down::Use { models: wanted });
            return self.greet(client);
        }
        if waits {
            self.greet(client);
        }
    }

    pub(super) fn refuse(&mut self, client: usize) {
        let why = "the server runs another session: other settings, seed, method or version";
        self.tell(client, &Down::Refused { why: why.to_owned() });
    }

    /// A site waits for a word: it gets the question or the wish that it may have missed.
    fn greet(&mut self, client: usize) {
        if let Some(question) = &self.question
            && question.client == client
        {
            let word = question.word.clone();
            self.tell(client, &word);
        }
        if self.came[client].is_none() {
            self.ask(client);
        }
    }

    /// The messages of one envelope; none if any of them is no message of that client and that step.
    pub(in crate::remote) fn read(
        &mut self,
        client: usize,
        step: Option<u64>,
        messages: &[Vec<u8>],
    ) -> Option<Vec<Message>> {
        let counts = &mut self.accounts[client].counts;
        let decoded: Result<Vec<_>, _> = messages.iter().map(|m| Message::decode(m)).collect();
        let Ok(messages) = decoded else {
            counts.malformed += 1;
            return None;
        };
        // Whoever enrols again is accepted first.
        let is_enrolment = |message: &Message| matches!(message.content(), Content::Enrolment(_));
        let is_right = |message: &Message| {
            message.client() == client
                && step.is_none_or(|step| {
                    message.step() == step && (step == 0 || !is_enrolment(message))
                })
        };
        if !messages.iter().all(is_right) {
            counts.wrong_site += 1;
            return None;
        }
        Some(messages)
    }
}
