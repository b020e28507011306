//! Tier 2: sites announce a step, hear what is predicted of it, and release it then.
//!
//! ```text
//!  site: step 7 at 10:38 ──► server: every site is at step 7 ── what is predicted of it ──► site
//!  site: symbols and state of step 7 ──► server: decides step 7
//! ```
//!
//! What is predicted depends on how a step follows the one before, which sites tell. So it cannot be
//! predicted before it was announced.
//!
//! With a deadline a site that announced [`PATIENCE`] steps in a row and released none in time is not
//! awaited: it costs the others no time.

use std::time::Instant;

use super::super::envelope::{Down, pack, unpack};
use super::Desk;
use super::live::PATIENCE;
use crate::wire::Message;

/// The messages of one client, as they crossed and as they were read.
type Graded = (Vec<Vec<u8>>, Vec<Message>);

/// What is gathered of an announced step, by client.
#[derive(Debug)]
pub(in crate::remote) struct Announced {
    /// The step whose releases are still to be gathered.
    step: Option<u64>,
    /// Who has announced it.
    awaited: Vec<bool>,
    /// What is predicted of it.
    predicted: Vec<Option<Vec<u8>>>,
    /// What came.
    graded: Vec<Option<Graded>>,
    /// Steps in a row that a site announced and did not release in time.
    unreleased: Vec<u32>,
}

impl Announced {
    pub(super) fn new(clients: usize) -> Self {
        Self {
            step: None,
            awaited: vec![false; clients],
            predicted: vec![None; clients],
            graded: vec![None; clients],
            unreleased: vec![0; clients],
        }
    }

    /// Sites have announced a step.
    pub(super) fn begin(&mut self, step: u64, awaited: Vec<bool>) {
        let clients = awaited.len();
        let unreleased = std::mem::take(&mut self.unreleased);
        *self = Self { step: Some(step), awaited, unreleased, ..Self::new(clients) };
    }

    /// The step is closed: who announced it and has not released it.
    fn close(&mut self) -> Vec<usize> {
        self.step = None;
        let open: Vec<usize> = (0..self.awaited.len()).filter(|m| self.is_open(*m)).collect();
        for client in 0..self.awaited.len() {
            if open.contains(&client) {
                self.unreleased[client] = self.unreleased[client].saturating_add(1);
            } else if self.awaited[client] {
                self.unreleased[client] = 0;
            }
        }
        open
    }

    fn is_open(&self, client: usize) -> bool {
        self.awaited[client] && self.graded[client].is_none()
    }
}

impl Desk {
    /// Sites release the step that is closed now once they know what is predicted of it.
    pub(super) fn announce(&mut self, awaited: Vec<bool>) {
        let step = self.next;
        if let Some(announced) = self.announced.as_mut().filter(|_| step > 0) {
            announced.begin(step, awaited);
        }
    }

    /// Whether releases of an announced step are still to come.
    pub(super) fn is_gathering(&self) -> bool {
        self.announced.as_ref().is_some_and(|announced| announced.step.is_some())
    }

    /// Something is predicted of the step that was announced.
    pub(in crate::remote) fn predict(&mut self, client: usize, order: Vec<u8>) {
        if let Some(announced) = &mut self.announced
            && let Some(predicted) = announced.predicted.get_mut(client)
        {
            *predicted = Some(order);
        }
    }

    /// Waits until every site that announced the step has released it, or its deadline has passed, and
    /// hands the messages over, client by client.
    pub(in crate::remote) fn wait_for_graded(&mut self) {
        let Some(step) = self.announced.as_ref().and_then(|announced| announced.step) else {
            return;
        };
        let found = self.find_graded(step);
        for client in self.clients() {
            self.ask_for_graded(client);
        }
        let (asked, deadline) = (Instant::now(), self.deadline);
        let waiting = |desk: &Self| {
            let is_patient =
                |a: &Announced, m: usize| deadline.is_none() || a.unreleased[m] < PATIENCE;
            let is_open = |m: usize| {
                desk.announced.as_ref().is_some_and(|a| a.is_open(m) && is_patient(a, m))
            };
            let is_over = deadline.is_some_and(|deadline| asked.elapsed() >= deadline);
            !is_over && desk.clients().any(|m| is_open(m) && !desk.has_left(m))
        };
        self.listen_while(waiting, |desk| {
            for client in desk.clients() {
                if desk.ask_for_graded(client) {
                    desk.accounts[client].counts.asked_again += 1;
                }
            }
        });
        if self.failed.is_some() {
            return;
        }
        let Some(announced) = &mut self.announced else { return };
        let unreleased = announced.close();
        let mut heard = Vec::new();
        for (client, graded) in announced.graded.iter_mut().enumerate() {
            let Some((bytes, messages)) = graded.take() else { continue };
            self.arrived.extend(messages);
            if let (false, Ok(packed)) = (found, pack(&bytes)) {
                heard.push((client, packed));
            }
        }
        for client in unreleased {
            self.accounts[client].miss(step);
            // That nothing came in time is as final as what came.
            if let Ok(nothing) = pack(&[]) {
                heard.push((client, nothing));
            }
        }
        self.note(|journal| journal.keep_graded(step, &heard));
    }

    /// What was heard of an announced step before this start; whether that is all.
    fn find_graded(&mut self, step: u64) -> bool {
        let Some(announced) = &self.announced else { return true };
        let awaited: Vec<usize> =
            self.clients().filter(|client| announced.is_open(*client)).collect();
        let mut is_all = true;
        for client in awaited {
            let stored = self.journal.as_ref().map(|journal| journal.graded(step, client));
            match stored.transpose() {
                Ok(Some(Some(packed))) => {
                    let bytes = unpack(&packed).unwrap_or_default();
                    self.take_graded(client, step, &bytes);
                }
                Ok(_) => is_all = false,
                Err(why) => self.failed = Some(why.into()),
            }
        }
        is_all
    }

    /// Tells a site what is predicted of the step that it has announced; whether it is still awaited.
    pub(super) fn ask_for_graded(&mut self, client: usize) -> bool {
        let Some(announced) = &self.announced else { return false };
        let (Some(step), true) = (announced.step, announced.is_open(client)) else { return false };
        let order = announced.predicted[client].clone();
        self.tell(client, &Down::Predicted { step, order });
        true
    }

    /// A site has released a step that it announced.
    pub(super) fn take_graded(&mut self, client: usize, step: u64, messages: &[Vec<u8>]) {
        let is_asked = |a: &Announced| a.step == Some(step) && a.is_open(client);
        if !self.announced.as_ref().is_some_and(is_asked) {
            self.accounts[client].comes_after_the_end(step);
            let is_near = step.saturating_add(u64::from(PATIENCE)) >= self.next;
            if let Some(announced) = self.announced.as_mut().filter(|_| is_near) {
                announced.unreleased[client] = 0;
            }
        } else if let Some(read) = self.read(client, Some(step), messages)
            && let Some(announced) = &mut self.announced
        {
            announced.graded[client] = Some((messages.to_vec(), read));
        }
    }
}
