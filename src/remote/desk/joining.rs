//! Sites that join a run that goes on, and sites that come back with other models.
//!
//! A site that holds the models of the run takes them up. One that does not makes its own, which releases
//! nothing, and tells their digest. It is not heard before an operator of the server has accepted that
//! digest. Then it enrols: its calibration and its limits are its own, and nobody else's change.
//!
//! An enrolment is stored in the journal with the first step that is heard from the site.

use std::time::Instant;

use super::super::account::Joins;
use super::super::envelope::{Down, Holds};
use super::super::journal::Journal;
use super::super::store::StoreError;
use super::super::{ASK_AGAIN, named};
use super::Desk;
use crate::session::{Mode, Tier};
use crate::wire::{Content, Message};

/// What it means that a site has joined.
const JOINED: &str = "has joined: it was calibrated by itself and is heard from this step on; the others keep their \
     models and their calibration; the wanted rate of false alarms is shared with one client more; it \
     is a root of incidents that open from now on";
/// The same where nobody's limits depend on how many clients there are.
const JOINED_IN_PAPER_MODE: &str = "has joined with the models of the run and is heard from this step on; the others keep their models \
     and their limits";
/// What it means that a site has enrolled again.
const AGAIN: &str = "has enrolled again with another model: its evidence begins anew with its own new calibration; the \
     others keep their models and their calibration";

/// Who joins, by client.
#[derive(Debug)]
pub(in crate::remote) struct Joining {
    /// Who has not enrolled: the run goes on without it.
    absent: Vec<bool>,
    /// The models that a site has which are not those of the run.
    own: Vec<Option<u64>>,
    /// Models that an operator has to accept.
    waiting: Vec<Option<u64>>,
    enrolling: Vec<Option<Enrolling>>,
    /// When it was looked whether somebody was accepted.
    looked: Instant,
}

/// A site that is heard from some step on.
#[derive(Debug)]
struct Enrolling {
    models: u64,
    /// What it enrols with, once it has come.
    enrolment: Option<Vec<Vec<u8>>>,
}

impl Joining {
    pub(in crate::remote) fn new(clients: usize) -> Self {
        Self {
            absent: vec![false; clients],
            own: vec![None; clients],
            waiting: vec![None; clients],
            enrolling: (0..clients).map(|_| None).collect(),
            looked: Instant::now(),
        }
    }

    /// The run begins, or went on, without this client.
    pub(in crate::remote) fn set_absent(&mut self, client: usize) {
        if let Some(absent) = self.absent.get_mut(client) {
            *absent = true;
        }
    }

    /// A client has enrolled with models of its own before.
    pub(in crate::remote) fn set_own(&mut self, client: usize, models: u64) {
        if let Some(own) = self.own.get_mut(client) {
            *own = Some(models);
        }
    }

    /// Whether nobody waits for it.
    pub(super) fn is_absent(&self, client: usize) -> bool {
        self.absent[client] && self.enrolling[client].is_none()
    }

    pub(super) fn is_enrolling(&self, client: usize) -> bool {
        self.enrolling[client].is_some()
    }

    pub(super) fn waits_for_enrolment(&self, client: usize) -> bool {
        self.enrolling[client].as_ref().is_some_and(|enrolling| enrolling.enrolment.is_none())
    }

    pub(super) fn stage(&self, client: usize) -> Option<Joins> {
        match (self.waiting[client], &self.enrolling[client]) {
            (_, Some(_)) => Some(Joins::Enrols),
            (Some(models), None) => Some(Joins::Waits(models)),
            (None, None) => self.absent[client].then_some(Joins::Absent),
        }
    }
}

impl Desk {
    /// The models that a client is heard with; none where nobody asks.
    pub(in crate::remote) fn expected(&self, client: usize) -> Option<u64> {
        self.joining.own[client].or(self.models)
    }

    /// A site says which models it has. Whether it has to join before anything else is asked of it.
    pub(super) fn joins(&mut self, client: usize, holds: &Holds) -> bool {
        let Some(expected) = self.expected(client) else { return false };
        if let Some(enrolling) = &self.joining.enrolling[client] {
            // It was started again on the way, perhaps with other models.
            if holds.has(enrolling.models) {
                self.ask(client);
                return true;
            }
            self.joining.enrolling[client] = None;
        }
        if holds.has(expected) {
            self.joining.waiting[client] = None;
            if self.joining.absent[client] {
                self.enrols(client, expected);
                return true;
            }
            return false;
        }
        if let Some(why) = self.cannot_join_alone(client) {
            self.tell(client, &Down::Refused { why });
            return true;
        }
        match holds.alone {
            None => self.tell(client, &Down::Alone),
            Some(models) if self.is_accepted(client, models) => self.enrols(client, models),
            Some(models) => self.waits_for_operator(client, models),
        }
        true
    }

    /// Why nobody can take part with models that were made without the others, where that is so.
    fn cannot_join_alone(&self, client: usize) -> Option<String> {
        let learned = match self.method {
            (Mode::Paper, _) => "φ of every client and f_s of the server",
            (Mode::Evidence, Tier::States) => "what states foretell of other clients",
            (Mode::Evidence, Tier::Symbols) => return None,
        };
        let name = &self.accounts[client].name;
        Some(format!(
            "{name} does not have the models of the run, and {learned} are learned by all together: {name} \
             takes part after the next training. The run goes on without it, and what is decided about the \
             others holds. To train again, stop all, remove the outboxes, and start all with serve --anew"
        ))
    }

    fn is_accepted(&mut self, client: usize, models: u64) -> bool {
        let accepted = self.journal.as_ref().map(|journal| journal.accepted(client)).transpose();
        match accepted {
            Ok(accepted) => accepted.flatten() == Some(models),
            Err(why) => {
                self.failed = Some(why.into());
                false
            }
        }
    }

    /// A site has models that nobody has accepted.
    fn waits_for_operator(&mut self, client: usize, models: u64) {
        let name = self.accounts[client].name.clone();
        if self.joining.waiting[client].replace(models) != Some(models) {
            let what = if self.joining.absent[client] { "asks to join" } else { "is back" };
            let words = format!(
                "{what} with another model, {}: it is not heard before an operator accepts it with \
                 headwater serve SESSION --accept {name}; then it enrols by itself, with its own \
                 calibration, and the other clients keep theirs",
                named(models)
            );
            self.tell_all(client, &words);
            self.note(|journal| journal.note_waiting(client, models));
        }
        let why = format!(
            "waits until an operator of the server accepts its model {} (headwater serve SESSION \
             --accept {name})",
            named(models)
        );
        self.tell(client, &Down::Wait { why });
    }

    /// Somebody at the screen accepts the models that a site waits with.
    pub(super) fn accept(&mut self, client: usize) {
        self.note(|journal| journal.accept(client).map(|_| ()));
        self.look_at_accepted();
    }

    /// Looks now and then whether somebody accepted who waits.
    pub(super) fn look_for_acceptance(&mut self) {
        if self.joining.looked.elapsed() >= ASK_AGAIN {
            self.look_at_accepted();
        }
    }

    fn look_at_accepted(&mut self) {
        self.joining.looked = Instant::now();
        for client in self.clients() {
            if let Some(models) = self.joining.waiting[client]
                && !self.joining.is_enrolling(client)
                && self.is_accepted(client, models)
            {
                self.enrols(client, models);
            }
        }
    }

    /// From the present step on the site is heard with these models, once it has enrolled.
    fn enrols(&mut self, client: usize, models: u64) {
        if self.next == 0 || self.inquires {
            return;
        }
        self.joining.waiting[client] = None;
        if self.models != Some(models) {
            self.joining.own[client] = Some(models);
            self.note(|journal| journal.note_own(client, models));
        }
        if self.left[client] {
            (self.left[client], self.gone[client]) = (false, false);
            self.note(|journal| journal.note_gone(client, false));
        }
        self.came[client] = None;
        self.before[client].clear();
        self.joining.enrolling[client] = Some(Enrolling { models, enrolment: None });
        let words = format!(
            "{} enrols with the model {} at step {}",
            self.accounts[client].name,
            named(models),
            self.next
        );
        self.say(&words);
        self.ask(client);
    }

    /// The word to a site that has yet to enrol.
    pub(super) fn asks_to_enrol(&self, client: usize) -> Option<Down> {
        let enrolling = self.joining.enrolling[client].as_ref()?;
        let models = enrolling.models;
        enrolling.enrolment.is_none().then_some(Down::Enrol { models, from: self.next })
    }

    /// What a site enrols with; it waits for the first step.
    pub(super) fn takes_enrolment(&mut self, client: usize, messages: Vec<Vec<u8>>) {
        if self.read(client, Some(0), &messages).is_none() {
            return;
        }
        if let Some(enrolling) = &mut self.joining.enrolling[client] {
            enrolling.enrolment = Some(messages);
        }
        self.ask(client);
    }

    /// Puts the enrolment of a site before the first step that came from it.
    pub(super) fn enrol_who_came(&mut self) {
        for client in self.clients() {
            let Some((step, messages)) = &mut self.came[client] else { continue };
            let Some(enrolling) = self.joining.enrolling[client].take() else { continue };
            let enrolment = enrolling.enrolment.unwrap_or_default();
            // They were read when they came.
            let read = enrolment.iter().filter_map(|bytes| Message::decode(bytes).ok());
            *messages = read.chain(messages.drain(..)).collect();
            step.messages = [enrolment, std::mem::take(&mut step.messages)].concat();
        }
    }

    /// Says who has enrolled with the step that is closed now.
    pub(super) fn note_who_came(&mut self) {
        for client in self.clients() {
            let Some((_, messages)) = &self.came[client] else { continue };
            let is_enrolment = |message: &Message| {
                matches!(message.content(), Content::Enrolment(_)) && self.next > 0
            };
            let enrols = messages.iter().any(is_enrolment);
            self.note_enrolled(client, enrols);
        }
    }

    /// A step came from a client; `enrols` with an enrolment in it.
    pub(super) fn note_enrolled(&mut self, client: usize, enrols: bool) {
        if std::mem::take(&mut self.joining.absent[client]) {
            self.note(|journal| journal.note_absent(client, false));
            let words = match self.method.0 {
                Mode::Evidence => JOINED,
                Mode::Paper => JOINED_IN_PAPER_MODE,
            };
            if self.next > 0 {
                self.tell_all(client, words);
            }
        } else if enrols {
            self.tell_all(client, AGAIN);
        }
    }

    /// Notes something in the journal, where there is one.
    pub(super) fn note(&mut self, note: impl FnOnce(&Journal) -> Result<(), StoreError>) {
        if let Some(journal) = &self.journal
            && let Err(why) = note(journal)
        {
            self.failed = Some(why.into());
        }
    }
}
