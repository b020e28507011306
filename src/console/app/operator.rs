//! What an operator does about alarms. Everything becomes an order to the engine, which carries it
//! out or refuses, and enters it in the log.

use super::prompt::{Prompt, Purpose};
use super::question::{Question, until_shift_end};
use super::{Effect, Focus, Model, Screen};
use crate::console::remark::Remark;
use crate::engine::handle::Command;
use crate::engine::run::ActError;
use crate::incident::{Action as Deed, AlarmState, Order};
use crate::session::Mode;

impl Model {
    /// An order of this operator.
    pub(super) fn order(&self, action: Deed, why: Option<String>) -> Effect {
        Effect::Command(Command::Order(Order { who: self.who.clone(), action, why }))
    }

    fn with_incident(&mut self, deed: impl FnOnce(u64) -> Deed) -> Option<Effect> {
        let Some(number) = self.chosen_incident().map(|incident| incident.number) else {
            self.remark = Some(Remark::done("no incident yet"));
            return None;
        };
        Some(self.order(deed(number), None))
    }

    /// The chosen incident has been seen; where nothing was pointed at, the newest that asks for it.
    pub(super) fn acknowledge(&mut self) -> Option<Effect> {
        let asks = |state| {
            matches!(state, AlarmState::Unacknowledged | AlarmState::Returned | AlarmState::Latched)
        };
        if self.incident.is_some() || self.screen != Screen::Overview {
            return self.with_incident(|incident| Deed::Acknowledge { incident });
        }
        let asking = self.listed().find(|i| asks(i.alarm.state)).map(|i| i.number);
        self.incident = asking;
        let effect = self.with_incident(|incident| Deed::Acknowledge { incident });
        // Nothing was pointed at before, and nothing is after it.
        self.incident = None;
        effect
    }

    /// Asks for how long the chosen incident is shelved.
    pub(super) fn ask_shelf(&mut self) {
        let chosen = self.chosen_incident().map(|incident| (incident.number, incident.is_listed()));
        let incident = match chosen {
            Some((incident, true)) => incident,
            Some((incident, false)) => {
                let said = format!("#{incident} is over: there is nothing to shelve");
                self.remark = Some(Remark::done(&said));
                return;
            }
            None => {
                self.remark = Some(Remark::done("no incident to shelve"));
                return;
            }
        };
        let second = self.newest().map_or(0, |now| self.clock.civil_second(now).rem_euclid(86_400));
        self.question = Some(Question::Shelve { incident, shift_s: until_shift_end(second) });
    }

    pub(super) fn shelve(&self, incident: u64, seconds: u32) -> Effect {
        self.order(Deed::Shelve { incident, seconds }, None)
    }

    /// Ends the shelving of the chosen incident, or of the newest shelved one.
    pub(super) fn unshelve(&mut self) -> Option<Effect> {
        let shelved =
            |incident: &&crate::incident::Incident| incident.alarm.state == AlarmState::Shelved;
        let number = self.chosen_incident().filter(shelved).or_else(|| self.listed().find(shelved));
        let Some(incident) = number.map(|incident| incident.number) else {
            self.remark = Some(Remark::done("nothing is shelved"));
            return None;
        };
        Some(self.order(Deed::Unshelve { incident }, None))
    }

    /// The client that an action on clients means: the root of the incident in hand, or the chosen.
    fn client_meant(&self) -> usize {
        match self.screen {
            Screen::Incident(_) => self.chosen_incident().and_then(|i| i.root),
            Screen::Overview if self.focus() == Focus::Incidents => {
                self.chosen_incident().and_then(|i| i.root)
            }
            _ => None,
        }
        .unwrap_or(self.chosen)
    }

    /// Puts a client back in service, or asks whether to take it out.
    pub(super) fn change_service(&mut self) -> Option<Effect> {
        let client = self.client_meant();
        let standing = self.watched.as_ref().and_then(|watched| watched.snapshot.as_ref())?;
        if standing.clients.get(client) == Some(&AlarmState::OutOfService) {
            return Some(self.order(Deed::PutBack { client }, None));
        }
        self.question = Some(Question::TakeOut { client });
        None
    }

    /// Asks for a note on the chosen incident, with the one there is to begin with.
    pub(super) fn ask_note(&mut self) {
        let Some(incident) = self.chosen_incident() else {
            self.remark = Some(Remark::done("no incident to note anything on"));
            return;
        };
        self.prompt = Some(Prompt::new(Purpose::Note(incident.number), &incident.note));
    }

    /// Asks whether what the chosen incident shows is normal from now on.
    pub(super) fn ask_acceptance(&mut self) {
        if self.mode() == Mode::Paper {
            self.remark = Some(Remark::failed(&ActError::NoNewNormal.to_string()));
            return;
        }
        match self.chosen_incident().map(|incident| incident.number) {
            Some(incident) => self.question = Some(Question::Accept { incident }),
            None => self.remark = Some(Remark::done("no incident to accept")),
        }
    }

    /// Asks who the root of the chosen incident is, if not who is named.
    pub(super) fn ask_root(&mut self) {
        let Some(incident) = self.chosen_incident() else {
            self.remark = Some(Remark::done("no incident to correct"));
            return;
        };
        let members = incident.members.iter().map(|member| member.client);
        let roots: Vec<usize> = members.filter(|client| Some(*client) != incident.root).collect();
        let number = incident.number;
        if roots.is_empty() {
            let said = format!("nobody else takes part in #{number}");
            self.remark = Some(Remark::done(&said));
        } else {
            self.question = Some(Question::Correct { incident: number, roots });
        }
    }
}
