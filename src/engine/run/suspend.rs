//! Start-up and maintenance: clients are out of service for stretches of time that the session names.

use jiff::Timestamp;

use super::Run;
use crate::fact::{self, Fact};
use crate::incident::action::SCHEDULE;
use crate::incident::{Edit, OperatorAction, Order};
use crate::session::{Clock, Mark};

/// Stretches that a summary names at most.
const NAMED: usize = 1000;

impl Run {
    /// Takes clients out of service and puts them back, where the session says so.
    pub(super) fn keep_schedule(&mut self, time: Timestamp, facts: &mut Vec<Fact>) {
        if self.session.suspend.is_empty() {
            return;
        }
        let first = self.spans.first().map_or(time, |span| span.0);
        let (clock, steps) = (Clock::of(&self.session), self.steps.saturating_sub(1));
        for client in 0..self.layout.clients.len() {
            let name = &self.layout.clients[client].name;
            let stands = self.session.suspend.iter().find(|suspension| {
                let concerned = suspension.clients.is_empty() || suspension.clients.contains(name);
                let reached = |mark: Mark| mark.is_reached(clock, first, steps, time);
                concerned && suspension.from.is_none_or(reached) && !reached(suspension.until)
            });
            let why = stands.map(|suspension| suspension.why.clone());
            if self.suspended[client] == why {
                continue;
            }
            let action = match (&self.suspended[client], &why) {
                (None, Some(_)) => Some(OperatorAction::TakeOut { client }),
                (Some(_), None) => Some(OperatorAction::PutBack { client }),
                // Another stretch follows without a pause.
                (Some(_), Some(_)) | (None, None) => None,
            };
            let reason = why.clone().or_else(|| self.suspended[client].clone());
            self.suspended[client] = why;
            if let Some(action) = action {
                let order = Order { who: SCHEDULE.to_owned(), action, why: reason };
                // An operator may have done it before.
                if let Ok(receipt) = self.annunciator.act(order) {
                    facts.extend(receipt.facts);
                }
            }
        }
    }

    /// When clients were out of service, and why, for the summary.
    pub(super) fn suspended_stretches(&self) -> Vec<fact::Suspended> {
        let names = self.annunciator.names();
        let mut stretches: Vec<fact::Suspended> = Vec::new();
        for event in self.annunciator.log().events() {
            for edit in &event.edits {
                let Edit::OutOfService { client, to, .. } = edit else { continue };
                let name = names.get(*client).cloned().unwrap_or_default();
                let open = stretches.iter_mut().rev().find(|of| of.client == name);
                match open.filter(|of| of.until.is_none()) {
                    Some(open) if !to => open.until = Some(event.time),
                    None if *to => {
                        let (from, why) = (event.time, event.why.clone());
                        stretches.push(fact::Suspended { client: name, from, until: None, why });
                    }
                    Some(_) | None => {}
                }
            }
        }
        let too_many = stretches.len().saturating_sub(NAMED);
        stretches.drain(..too_many);
        stretches
    }
}
