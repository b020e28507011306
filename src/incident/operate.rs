//! How an order of an operator is carried out: it becomes a list of edits, each with its old and new
//! value, which are made together and entered in the log. Undoing makes the inverse edits, if the
//! values are still those that were set.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::action::{LONGEST_SHELF_S, OperatorAction, Refusal};
use super::annunciator::Annunciator;
use super::event::{Edit, Event, What};
use super::group::{Alarm, Closed, Correction, Incident};
use super::input::Closing;
use super::state::{AlarmEvent, AlarmState};
use crate::fact::Fact;

/// An order of an operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) who: String,
    pub(crate) action: OperatorAction,
    /// The operator's reason, if one was given.
    pub(crate) why: Option<String>,
}

/// The result of an order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Receipt {
    /// Number of its entry in the log. The entry's edits say what the engine has to apply.
    pub(crate) entry: u64,
    pub(crate) facts: Vec<Fact>,
}

impl Annunciator {
    /// Carries out an order, wholly or not at all.
    pub(crate) fn act(&mut self, order: Order) -> Result<Receipt, Refusal> {
        let edits = self.plan(&order.action)?;
        for edit in &edits {
            self.make(edit);
        }
        let Order { who, action, why } = order;
        let what = What::Did(action);
        let event = Event { number: 0, time: self.now, who: Some(who), what, edits, why };
        let entry = self.log.add(event);
        Ok(Receipt { entry, facts: self.facts() })
    }

    fn plan(&self, action: &OperatorAction) -> Result<Vec<Edit>, Refusal> {
        match action {
            OperatorAction::Acknowledge { incident } => {
                Ok(vec![alarm_edit(self.found(*incident)?, AlarmEvent::Acknowledge, None)?])
            }
            OperatorAction::Shelve { incident, seconds } => self.plan_shelf(*incident, *seconds),
            OperatorAction::Unshelve { incident } => {
                let incident = self.found(*incident)?;
                let mut edits = vec![alarm_edit(incident, AlarmEvent::Unshelve, None)?];
                edits.extend(incident.root.and_then(|root| self.shelf_edit(root, None)));
                Ok(edits)
            }
            OperatorAction::TakeOut { client } => self.plan_service(*client, true),
            OperatorAction::PutBack { client } => self.plan_service(*client, false),
            OperatorAction::Note { incident, text } => {
                let from = self.found(*incident)?.note.clone();
                if from == *text {
                    return Err(Refusal::NoChange);
                }
                Ok(vec![Edit::Note { incident: *incident, from, to: text.clone() }])
            }
            OperatorAction::Accept { incident } => self.plan_acceptance(*incident),
            OperatorAction::Correct { incident, root } => self.plan_correction(*incident, *root),
            OperatorAction::Set { what, to } => {
                let from =
                    self.settings.get(what).ok_or_else(|| Refusal::NoSetting(what.clone()))?;
                if from == to {
                    return Err(Refusal::NoChange);
                }
                Ok(vec![Edit::Setting { what: what.clone(), from: from.clone(), to: to.clone() }])
            }
            OperatorAction::Undo { entry } => self.plan_undo(*entry),
        }
    }

    /// The root's next alarms are shelved with this one: a chattering client opens incident after
    /// incident, and one order must be enough.
    fn plan_shelf(&self, number: u64, seconds: u32) -> Result<Vec<Edit>, Refusal> {
        let incident = self.found(number)?;
        if !(1..=LONGEST_SHELF_S).contains(&seconds) {
            return Err(Refusal::ShelfTime);
        }
        if !incident.is_listed() {
            return Err(Refusal::Over(number));
        }
        let length = SignedDuration::from_secs(i64::from(seconds));
        let until = self.now.checked_add(length).unwrap_or(Timestamp::MAX);
        let mut edits = vec![alarm_edit(incident, AlarmEvent::Shelve, Some(until))?];
        edits.extend(incident.root.and_then(|root| self.shelf_edit(root, Some(until))));
        Ok(edits)
    }

    fn shelf_edit(&self, client: usize, to: Option<Timestamp>) -> Option<Edit> {
        let from = self.posts[client].shelf;
        (from != to).then_some(Edit::Shelf { client, from, to })
    }

    fn plan_service(&self, client: usize, out: bool) -> Result<Vec<Edit>, Refusal> {
        let post = self.posts.get(client).ok_or(Refusal::NoClient)?;
        if post.out_of_service == out {
            return Err(Refusal::NoChange);
        }
        let event = if out { AlarmEvent::TakeOut } else { AlarmEvent::PutBack };
        let mut edits = vec![Edit::OutOfService { client, from: !out, to: out }];
        for incident in self.concerned(client, out) {
            edits.push(alarm_edit(incident, event, None)?);
        }
        Ok(edits)
    }

    /// Incidents whose alarm changes when their root is taken out of service or put back. What is
    /// over is not silenced any more: it still wants to be seen.
    fn concerned(&self, client: usize, out: bool) -> impl Iterator<Item = &Incident> {
        let mut others = self.posts.iter().enumerate().filter(move |(m, _)| *m != client);
        let is_last = others.all(|(_, post)| post.out_of_service);
        self.listed_incidents().filter(move |incident| {
            let is_out = incident.alarm.state == AlarmState::OutOfService;
            // Without a root it asks unless all clients are out of service.
            let is_meant = incident.root.map_or(!out || is_last, |root| root == client);
            is_meant && is_out != out && (!out || incident.is_open())
        })
    }

    fn plan_acceptance(&self, number: u64) -> Result<Vec<Edit>, Refusal> {
        let incident = self.found(number)?;
        let latched = incident.alarm.state == AlarmState::Latched;
        if !incident.is_open() && !latched {
            return Err(Refusal::Over(number));
        }
        let mut edits = vec![alarm_edit(incident, AlarmEvent::Accept, None)?];
        if incident.is_open() {
            let to = Closed { time: self.now, step: self.step, why: Closing::Accepted };
            edits.push(Edit::Closed { incident: number, from: None, to: Some(to) });
        }
        Ok(edits)
    }

    fn plan_correction(&self, number: u64, root: usize) -> Result<Vec<Edit>, Refusal> {
        let incident = self.found(number)?;
        if !incident.frozen && incident.is_open() {
            return Err(Refusal::NotFinal(number));
        }
        if incident.root == Some(root) {
            return Err(Refusal::NoChange);
        }
        let out = |client: usize| self.posts[client].out_of_service;
        let edit = Edit::Root { incident: number, from: incident.root, to: Some(root) };
        self.check_root(number, Some(root))?;
        let event = match (incident.alarm.state == AlarmState::OutOfService, out(root)) {
            (true, false) => Some(AlarmEvent::PutBack),
            (false, true) => Some(AlarmEvent::TakeOut),
            _ => None,
        };
        let alarm = event.map(|event| alarm_edit(incident, event, None)).transpose()?;
        Ok(std::iter::once(edit).chain(alarm).collect())
    }

    /// A root belongs to an open incident, takes part in it, and has no other.
    fn check_root(&self, number: u64, root: Option<usize>) -> Result<(), Refusal> {
        let incident = self.found(number)?;
        if !incident.is_open() {
            return Err(Refusal::Over(number));
        }
        let Some(root) = root else { return Ok(()) };
        if incident.member(root).is_none() {
            return Err(Refusal::NoMember(number));
        }
        match self.rooted_at(root) {
            Some(other) if other != number => Err(Refusal::Taken(other)),
            _ => Ok(()),
        }
    }

    fn plan_undo(&self, number: u64) -> Result<Vec<Edit>, Refusal> {
        let entry = self.log.event(number).filter(|event| !event.edits.is_empty());
        let entry = entry.ok_or(Refusal::NotUndoable(number))?;
        if self.log.is_undone(number) {
            return Err(Refusal::AlreadyUndone(number));
        }
        let edits: Vec<Edit> = entry.edits.iter().rev().map(Edit::inverse).collect();
        for edit in &edits {
            if !self.is_present(edit) || !self.is_sound(edit, &edits) {
                return Err(Refusal::Overtaken(number));
            }
            match edit {
                Edit::Root { incident, to, .. } => self.check_root(*incident, *to)?,
                Edit::Closed { incident, to: None, .. } => self.check_reopening(*incident)?,
                Edit::Closed { to: Some(_), .. }
                | Edit::Alarm { .. }
                | Edit::Shelf { .. }
                | Edit::OutOfService { .. }
                | Edit::Note { .. }
                | Edit::Setting { .. } => {}
            }
        }
        Ok(edits)
    }

    /// Whether the old value of an edit is the one that stands.
    fn is_present(&self, edit: &Edit) -> bool {
        match edit {
            Edit::Alarm { incident, from, .. } => self.at(*incident).alarm == *from,
            Edit::Shelf { client, from, .. } => self.posts[*client].shelf == *from,
            Edit::OutOfService { client, from, .. } => self.posts[*client].out_of_service == *from,
            Edit::Note { incident, from, .. } => self.at(*incident).note == *from,
            Edit::Closed { incident, from, .. } => self.at(*incident).closed == *from,
            Edit::Root { incident, from, .. } => self.at(*incident).root == *from,
            Edit::Setting { what, from, .. } => self.settings.get(what) == Some(from),
        }
    }

    /// Whether what the data did since leaves room for the old value.
    fn is_sound(&self, edit: &Edit, all: &[Edit]) -> bool {
        let touches = |number: u64| {
            all.iter()
                .any(|edit| matches!(edit, Edit::Alarm { incident, .. } if *incident == number))
        };
        match edit {
            // An alarm cannot be on when its incident is over, nor over when that is on.
            Edit::Alarm { incident, to, .. } => {
                let ends = all.iter().find_map(|edit| match edit {
                    Edit::Closed { incident: other, to, .. } => {
                        (other == incident).then_some(to.is_none())
                    }
                    Edit::Alarm { .. }
                    | Edit::Shelf { .. }
                    | Edit::OutOfService { .. }
                    | Edit::Note { .. }
                    | Edit::Root { .. }
                    | Edit::Setting { .. } => None,
                });
                let open = ends.unwrap_or(self.at(*incident).is_open());
                match to.state {
                    AlarmState::Unacknowledged | AlarmState::Acknowledged => open,
                    AlarmState::Normal | AlarmState::Returned | AlarmState::Latched => !open,
                    AlarmState::Shelved
                    | AlarmState::SuppressedByDesign
                    | AlarmState::OutOfService => true,
                }
            }
            // Incidents that came since would be forgotten in the wrong state.
            Edit::OutOfService { client, to, .. } => {
                self.concerned(*client, *to).all(|incident| touches(incident.number))
            }
            Edit::Shelf { .. }
            | Edit::Note { .. }
            | Edit::Closed { .. }
            | Edit::Root { .. }
            | Edit::Setting { .. } => true,
        }
    }

    /// Its members may have found their place elsewhere.
    fn check_reopening(&self, number: u64) -> Result<(), Refusal> {
        let mut homes = self.at(number).members.iter().filter_map(|m| self.home(m.client));
        homes.next().map_or(Ok(()), |home| Err(Refusal::Taken(home.number)))
    }

    fn make(&mut self, edit: &Edit) {
        match edit {
            Edit::Alarm { incident, to, .. } => {
                self.at_mut(*incident).alarm = *to;
                self.relist(*incident);
            }
            Edit::Shelf { client, to, .. } => self.posts[*client].shelf = *to,
            Edit::OutOfService { client, to, .. } => self.posts[*client].out_of_service = *to,
            Edit::Note { incident, to, .. } => self.at_mut(*incident).note.clone_from(to),
            Edit::Closed { incident, to, .. } => self.make_closed(*incident, *to),
            Edit::Root { incident, from, to } => {
                let correction = Correction { time: self.now, from: *from, to: *to };
                let changed = self.at_mut(*incident);
                changed.root = *to;
                changed.corrections.push(correction);
                changed.latch_first_out();
            }
            Edit::Setting { what, to, .. } => _ = self.settings.insert(what.clone(), to.clone()),
        }
    }

    fn make_closed(&mut self, number: u64, closed: Option<Closed>) {
        self.at_mut(number).closed = closed;
        if closed.is_some() {
            self.open.remove(&number);
            self.spend_members(number);
        } else {
            self.open.insert(number);
        }
        self.relist(number);
    }

    /// A person enters the run here: what is over by now is history, and asks for nothing.
    pub(crate) fn enter_here(&mut self) {
        let over = |incident: &&Incident| {
            !incident.is_open()
                && incident.alarm.state.wants_acknowledgement()
                && !self.resumable.is_before(incident)
        };
        let past: Vec<u64> = self.listed_incidents().filter(over).map(|i| i.number).collect();
        for number in &past {
            self.at_mut(*number).alarm.state = AlarmState::Normal;
            self.relist(*number);
        }
        let noun = if past.len() == 1 { "incident" } else { "incidents" };
        if !past.is_empty() {
            let text = format!("{} earlier {noun}: history, nothing to answer", past.len());
            self.remark(self.now, None, &text);
        }
    }

    fn found(&self, number: u64) -> Result<&Incident, Refusal> {
        self.incident(number).ok_or(Refusal::NoIncident(number))
    }
}

fn alarm_edit(
    incident: &Incident,
    event: AlarmEvent,
    shelved_until: Option<Timestamp>,
) -> Result<Edit, Refusal> {
    let from = incident.alarm;
    let to = Alarm { shelved_until, ..from.after(event, incident.is_open())? };
    Ok(Edit::Alarm { incident: incident.number, from, to })
}
