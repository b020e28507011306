//! What an operator does about alarms. Everything becomes an order to the engine, which carries it
//! out or refuses, and enters it in the log.

use super::prompt::{Prompt, Purpose};
use super::question::{Question, until_shift_end};
use super::{Effect, Focus, Model, Screen};
use crate::console::subject::Reach;
use crate::engine::handle::Command;
use crate::engine::run::ActError;
use crate::incident::{AlarmState, Incident, OperatorAction, Order};
use crate::session::Mode;

impl Model {
    /// Why a command is not handed over, where the run is that of a service.
    pub(crate) fn refuses(&self, command: &Command) -> Option<&'static str> {
        let reach = self.service?;
        match command {
            Command::Order(_) if reach == Reach::LookOn => {
                Some("this console was opened with --read-only: it orders nothing")
            }
            Command::Order(_) => None,
            Command::Pace(_) | Command::Step | Command::RunTo(_) => {
                Some("a service goes at its own speed")
            }
            Command::WhatIf(_) | Command::WhatIfPaid(_) | Command::Branch { .. } => {
                Some("a service keeps no past to try this on; enter sets it for all consoles")
            }
        }
    }

    pub(super) fn order(&self, action: OperatorAction, why: Option<String>) -> Effect {
        Effect::Command(Command::Order(Order { who: self.who.clone(), action, why }))
    }

    /// The number of the chosen incident; a message where there is none.
    pub(super) fn incident_for(&mut self, what: &str) -> Option<u64> {
        let number = self.chosen_incident().map(|incident| incident.number);
        if number.is_none() {
            self.message(format!("no incident {what}"));
        }
        number
    }

    /// The chosen incident has been seen; where nothing was pointed at, the newest that asks for it.
    pub(super) fn acknowledge(&mut self) -> Option<Effect> {
        let pointed_at = self.incident.is_some() || self.screen != Screen::Overview;
        let asks = |i: &&Incident| i.alarm.state.wants_acknowledgement();
        let asking = self.listed().filter_map(|i| self.present(i.number)).find(asks);
        let incident = match asking.map(|i| i.number).filter(|_| !pointed_at) {
            Some(number) => number,
            None => self.incident_for("yet")?,
        };
        Some(self.order(OperatorAction::Acknowledge { incident }, None))
    }

    /// Every incident on the list that asks for it has been seen.
    pub(super) fn acknowledge_all(&mut self) -> Option<Effect> {
        let asks = |i: &&Incident| i.alarm.state.wants_acknowledgement();
        let asking = self.listed().filter_map(|i| self.present(i.number)).filter(asks);
        let order = |incident: &Incident| {
            let action = OperatorAction::Acknowledge { incident: incident.number };
            Command::Order(Order { who: self.who.clone(), action, why: None })
        };
        let orders: Vec<Command> = asking.map(order).collect();
        if orders.is_empty() {
            self.message("nothing asks to be acknowledged");
            return None;
        }
        Some(Effect::Commands(orders))
    }

    pub(super) fn ask_shelf(&mut self) {
        let Some(incident) = self.incident_for("to shelve") else { return };
        if !self.present(incident).is_some_and(Incident::is_listed) {
            self.message(format!("#{incident} is over: there is nothing to shelve"));
            return;
        }
        let second = self.newest().map_or(0, |now| self.clock.civil_second(now).rem_euclid(86_400));
        self.question = Some(Question::Shelve { incident, shift_s: until_shift_end(second) });
    }

    pub(super) fn shelve(&self, incident: u64, seconds: u32) -> Effect {
        self.order(OperatorAction::Shelve { incident, seconds }, None)
    }

    /// Ends the shelving of the chosen incident, or of the newest shelved one.
    pub(super) fn unshelve(&mut self) -> Option<Effect> {
        let shelved = |incident: &&Incident| incident.alarm.state == AlarmState::Shelved;
        let present = |incident: &Incident| self.present(incident.number);
        let found = self.chosen_incident().and_then(present).filter(shelved);
        let found = found.or_else(|| self.listed().filter_map(present).find(shelved));
        let Some(incident) = found.map(|incident| incident.number) else {
            self.message("nothing is shelved");
            return None;
        };
        Some(self.order(OperatorAction::Unshelve { incident }, None))
    }

    /// The client that an action on clients means: the root of the incident in hand, or the chosen.
    fn client_meant(&self) -> usize {
        let on_incident = match self.screen {
            Screen::Incident(_) => true,
            Screen::Overview => self.focus() == Focus::Incidents,
            Screen::Client
            | Screen::Influence
            | Screen::Training
            | Screen::Privacy
            | Screen::Log
            | Screen::Sessions => false,
        };
        let incident = self.chosen_incident().filter(|_| on_incident);
        incident.and_then(|incident| incident.root).unwrap_or(self.chosen)
    }

    /// Puts a client back in service, or asks whether to take it out.
    pub(super) fn change_service(&mut self) -> Option<Effect> {
        let client = self.client_meant();
        if self.snapshot()?.clients.get(client) == Some(&AlarmState::OutOfService) {
            return Some(self.order(OperatorAction::PutBack { client }, None));
        }
        self.question = Some(Question::TakeOut { client });
        None
    }

    /// Takes all clients out of service for a reason, or puts back all that are.
    pub(super) fn suspend_all(&mut self, why: Option<&str>) -> Option<Effect> {
        let out = why.is_some();
        let states = &self.snapshot()?.clients;
        let to_change = |state: &AlarmState| (*state == AlarmState::OutOfService) != out;
        let order = |(client, _): (usize, &AlarmState)| {
            let action = if out {
                OperatorAction::TakeOut { client }
            } else {
                OperatorAction::PutBack { client }
            };
            Command::Order(Order { who: self.who.clone(), action, why: why.map(str::to_owned) })
        };
        let changed = states.iter().enumerate().filter(|(_, state)| to_change(state));
        let orders: Vec<Command> = changed.map(order).collect();
        if orders.is_empty() {
            let all = if out { "all clients are" } else { "no client is" };
            self.message(format!("{all} out of service"));
            return None;
        }
        Some(Effect::Commands(orders))
    }

    /// Asks for a note on the chosen incident. The line begins with the note there is.
    pub(super) fn ask_note(&mut self) {
        let Some(number) = self.incident_for("to note anything on") else { return };
        let note = self.present(number).map_or("", |incident| incident.note.as_str());
        self.prompt = Some(Prompt::new(Purpose::Note(number), note));
    }

    /// Asks whether what the chosen incident shows is normal from now on.
    pub(super) fn ask_acceptance(&mut self) {
        if self.mode() == Mode::Paper {
            self.failure(ActError::NoNewNormal.to_string());
        } else if let Some(incident) = self.incident_for("to accept") {
            self.question = Some(Question::Accept { incident });
        }
    }

    /// Asks who the root of the chosen incident is, if not who is named.
    pub(super) fn ask_root(&mut self) {
        let Some(number) = self.incident_for("to correct") else { return };
        let roots: Vec<usize> = self.present(number).map_or_else(Vec::new, |incident| {
            let members = incident.members.iter().map(|member| member.client);
            members.filter(|client| Some(*client) != incident.root).collect()
        });
        if roots.is_empty() {
            self.message(format!("no other client takes part in #{number}"));
        } else {
            self.question = Some(Question::Correct { incident: number, roots });
        }
    }
}
