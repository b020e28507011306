//! The annunciator: the server's decision about each step becomes incidents, events and facts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::carried::Resumable;
use super::event::{Event, Log, What};
use super::figures::date;
use super::group::{Closed, Incident, Origin};
use super::input::{ClientState, Closing, Step};
use super::quality::Trouble;
use super::rate::{FloodChange, Rates};
use super::rules::Rules;
use super::state::{AlarmEvent, AlarmState};
use super::table::Table;
use crate::fact::{Fact, Value};
use crate::session::Mode;

/// The state of one client beside its part in incidents.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ClientAlarm {
    /// Its evidence was enough at the last step.
    pub(crate) raised: bool,
    /// Its incident is over while its evidence is not: it opens nothing by itself until it was quiet.
    pub(crate) spent: bool,
    /// Its alarms are shelved until then.
    pub(crate) shelf: Option<Timestamp>,
    pub(crate) out_of_service: bool,
}

/// All incidents of a run, and what operators did about them.
#[derive(Debug, Clone)]
pub(crate) struct Annunciator {
    pub(super) names: Vec<String>,
    pub(super) mode: Mode,
    pub(super) rules: Rules,
    pub(super) now: Timestamp,
    pub(super) step: u64,
    pub(super) posts: Vec<ClientAlarm>,
    /// Incident `n` stands at `n − 1`.
    pub(super) incidents: Vec<Incident>,
    pub(super) open: BTreeSet<u64>,
    /// Open, or over and not yet dealt with.
    pub(super) listed: BTreeSet<u64>,
    /// Which incident a disturbance of the decision belongs to, until the disturbance is over.
    pub(super) disturbances: BTreeMap<u64, u64>,
    /// What Table 1 declares, in paper mode.
    pub(super) table: Table,
    pub(super) quality: Vec<Trouble>,
    /// When something went wrong with data on this day.
    pub(super) quality_lines: Vec<Timestamp>,
    pub(super) settings: BTreeMap<String, Value>,
    /// The same as the run began with them.
    pub(super) declared: BTreeMap<String, Value>,
    /// Incidents that were open in the run before.
    pub(super) resumable: Resumable,
    pub(super) rates: Rates,
    pub(super) watched_s: f64,
    pub(super) log: Log,
    /// Events of which facts were made.
    pub(super) told: usize,
    /// Incidents that may have changed since [`Annunciator::take_changed`] was called last.
    touched: BTreeSet<u64>,
    /// The file and the run that the present data comes from, where there are several.
    pub(super) place: Place,
}

/// Where data comes from, as far as it has several such places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Option<String>,
    pub(crate) run: Option<String>,
}

impl Annunciator {
    pub(crate) fn new(names: Vec<String>, mode: Mode, rules: Rules, start: Timestamp) -> Self {
        let clients = names.len();
        Self {
            names,
            mode,
            rules,
            now: start,
            step: 0,
            posts: vec![ClientAlarm::default(); clients],
            incidents: Vec::new(),
            open: BTreeSet::new(),
            listed: BTreeSet::new(),
            disturbances: BTreeMap::new(),
            table: Table::default(),
            quality: Vec::new(),
            quality_lines: Vec::new(),
            settings: BTreeMap::new(),
            declared: BTreeMap::new(),
            resumable: Resumable::default(),
            rates: Rates::new(clients),
            watched_s: 0.0,
            log: Log::default(),
            told: 0,
            touched: BTreeSet::new(),
            place: Place::default(),
        }
    }

    /// Data comes from another file or run from here on.
    pub(crate) fn move_to(&mut self, place: Place) {
        self.place = place;
    }

    /// Makes a setting known, with the value it starts from. This is no change and leaves no entry.
    pub(crate) fn declare(&mut self, what: impl Into<String>, value: Value) {
        let what = what.into();
        self.declared.insert(what.clone(), value.clone());
        self.settings.insert(what, value);
    }

    /// Takes the next step and returns the new facts.
    pub(crate) fn step(&mut self, input: &Step<'_>) -> Vec<Fact> {
        let elapsed_s = input.time.duration_since(self.now).as_secs_f64().max(0.0);
        self.watched_s += elapsed_s;
        (self.now, self.step) = (input.time, input.number);
        let clients = self.states_in_service(&input.decision.clients);
        self.rates.forget(self.now);
        let today = date(self.now);
        if self.quality_lines.first().is_some_and(|time| date(*time) != today) {
            self.quality_lines.retain(|time| date(*time) == today);
        }
        self.notice_flags(&clients);
        self.end_shelves();
        self.notice_quality(input.quality);
        if let Some(verdict) = input.decision.table {
            self.follow_table(verdict, &clients);
        } else {
            for outcome in &input.decision.outcomes {
                self.take_outcome(outcome, &clients);
            }
            self.fold(&clients);
            self.split(&clients);
            self.open_singles(&clients);
            self.close_singles(&clients);
        }
        self.mark_faults();
        self.follow_priorities();
        self.follow_floods(elapsed_s);
        self.facts()
    }

    /// The run is over, or nothing comes for too long: closes what is open.
    pub(crate) fn end(&mut self, why: Closing) -> Vec<Fact> {
        self.end_table_episode(why);
        for number in self.open.clone() {
            self.close(number, why);
        }
        self.disturbances.clear();
        self.facts()
    }

    /// The decision no longer follows an incident: it ends with its root's evidence.
    pub(crate) fn unfollow(&mut self, incident: u64) {
        self.disturbances.retain(|_, number| *number != incident);
    }

    /// The decision's own number of an incident that it follows, or followed until an operator
    /// closed it.
    pub(crate) fn disturbance(&self, incident: u64) -> Option<u64> {
        self.disturbances.iter().find(|(_, number)| **number == incident).map(|(found, _)| *found)
    }

    /// Another method decides from now on: what the one before found is no longer followed.
    pub(crate) fn change_mode(&mut self, mode: Mode) -> Vec<Fact> {
        let facts = self.end(Closing::MethodChanged);
        self.mode = mode;
        facts
    }

    /// One state for each client. A client that is out of service counts as quiet.
    fn states_in_service(&self, states: &[ClientState]) -> Vec<ClientState> {
        let state = |client: usize| states.get(client).copied().unwrap_or_default();
        let state = |(client, post): (usize, &ClientAlarm)| {
            if post.out_of_service { ClientState::default() } else { state(client) }
        };
        self.posts.iter().enumerate().map(state).collect()
    }

    fn notice_flags(&mut self, clients: &[ClientState]) {
        for (client, (post, state)) in self.posts.iter_mut().zip(clients).enumerate() {
            let raised = state.raised_since.is_some();
            if raised && !post.raised {
                self.rates.flag(client, self.now);
            }
            post.raised = raised;
            post.spent &= raised;
        }
    }

    fn end_shelves(&mut self) {
        let over = |until: Option<Timestamp>| until.is_some_and(|until| until <= self.now);
        let due: Vec<u64> =
            self.listed.iter().copied().filter(|n| over(self.at(*n).alarm.shelved_until)).collect();
        for post in &mut self.posts {
            post.shelf = post.shelf.filter(|until| *until > self.now);
        }
        for number in due {
            if self.at(number).alarm.state == AlarmState::Shelved {
                self.enter(What::WasShelved { incident: number });
            }
            self.fire(number, AlarmEvent::Unshelve);
        }
    }

    fn follow_floods(&mut self, elapsed_s: f64) {
        let alarms = self.rates.alarms.count();
        let (flags, incidents) = (self.rates.flags.count(), self.rates.incidents.count());
        let flags_turn = self.rates.flag_flood.step(flags, self.now, elapsed_s);
        let alarms_turn = self.rates.flood.step(alarms, self.now, elapsed_s);
        if flags_turn == Some(FloodChange::Began) {
            self.enter(What::FlagFlood { flags, incidents });
        }
        match alarms_turn {
            Some(FloodChange::Began) => self.enter(What::Flood { alarms }),
            Some(FloodChange::Ended) => self.enter(What::FloodOver),
            None => {}
        }
    }

    /// A priority only rises; when it does, what was acknowledged is no longer what is shown.
    pub(super) fn follow_priorities(&mut self) {
        for number in self.open.clone() {
            let incident = self.at(number);
            let priority = incident.present_priority(&self.rules);
            if priority > incident.priority {
                self.at_mut(number).priority = priority;
                let opens = |event: &Event| matches!(event.what, What::Opened { incident, .. } if incident == number);
                if !self.new_events().iter().any(opens) {
                    self.enter(What::Rose { incident: number, priority });
                    self.fire(number, AlarmEvent::AskAgain);
                }
            }
        }
    }

    /// Opens an incident with this root and onset; its members join afterwards.
    pub(super) fn open(&mut self, origin: Origin, onset: Timestamp, root: Option<usize>) -> u64 {
        if let Some(number) = self.found_again(root) {
            return number;
        }
        let number = self.incidents.len() as u64 + 1;
        let mut incident = Incident::new(number, origin, (self.now, self.step), onset);
        incident.root = root;
        incident.would_now_say = root;
        self.incidents.push(incident);
        self.open.insert(number);
        self.listed.insert(number);
        self.rates.incidents.push(self.now);
        // Silenced first, so that the alarm of a silenced client does not ask for attention.
        self.silence_with_root(number);
        self.fire(number, AlarmEvent::Raise);
        self.enter(What::Opened { incident: number, origin, root });
        number
    }

    /// An incident shares the fate of its root: out of service, or shelved.
    pub(super) fn silence_with_root(&mut self, number: u64) {
        let post = self.at(number).root.map(|root| self.posts[root].clone()).unwrap_or_default();
        let all_out = self.posts.iter().all(|post| post.out_of_service);
        if post.out_of_service || all_out {
            self.fire(number, AlarmEvent::TakeOut);
        } else if let Some(until) = post.shelf {
            self.fire(number, AlarmEvent::Shelve);
            let alarm = &mut self.at_mut(number).alarm;
            if alarm.state == AlarmState::Shelved {
                alarm.shelved_until = Some(until);
            }
        }
    }

    pub(super) fn close(&mut self, number: u64, why: Closing) {
        if !self.open.remove(&number) {
            return;
        }
        let closed = Closed { time: self.now, step: self.step, why };
        self.at_mut(number).closed = Some(closed);
        self.spend_members(number);
        self.enter(What::Closed { incident: number, why });
        match why {
            Closing::PersistentChange => self.fire(number, AlarmEvent::Latch),
            Closing::Accepted => self.fire(number, AlarmEvent::Accept),
            // The other incident's alarm stands for this one too.
            Closing::Merged { .. } => {
                self.fire(number, AlarmEvent::Suppress);
                self.fire(number, AlarmEvent::Accept);
            }
            Closing::Quiet
            | Closing::NoData
            | Closing::Unreliable
            | Closing::EndOfRun
            | Closing::AnotherVerdict
            | Closing::MethodChanged => self.fire(number, AlarmEvent::Return),
        }
        self.relist(number);
    }

    pub(super) fn spend_members(&mut self, number: u64) {
        for member in &self.incidents[place(number)].members {
            let post = &mut self.posts[member.client];
            post.spent |= post.raised;
        }
    }

    /// Something happens to an alarm; what its state does not allow does not happen.
    pub(super) fn fire(&mut self, number: u64, event: AlarmEvent) {
        let incident = self.at_mut(number);
        let before = incident.alarm;
        let Ok(after) = before.after(event, incident.is_open()) else { return };
        incident.alarm = after;
        self.count_asking(before.state, after.state);
        self.relist(number);
    }

    /// An alarm counts each time it begins to ask.
    pub(super) fn count_asking(&mut self, before: AlarmState, after: AlarmState) {
        if after == AlarmState::Unacknowledged && before != after {
            self.rates.alarms.push(self.now);
        }
    }

    pub(super) fn relist(&mut self, number: u64) {
        if self.at(number).is_listed() {
            self.listed.insert(number);
        } else {
            self.listed.remove(&number);
        }
    }

    /// Something that the data did.
    pub(super) fn enter(&mut self, what: What) {
        self.log.add(Event::of_data(self.now, what));
    }

    /// Every number handed out by this type has its incident: they are only ever added.
    pub(super) fn at(&self, number: u64) -> &Incident {
        &self.incidents[place(number)]
    }

    pub(super) fn at_mut(&mut self, number: u64) -> &mut Incident {
        self.touched.insert(number);
        &mut self.incidents[place(number)]
    }

    pub(crate) fn incident(&self, number: u64) -> Option<&Incident> {
        self.incidents.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Incidents that may have changed since this was asked last, as they stand now.
    pub(crate) fn take_changed(&mut self) -> Vec<Incident> {
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().map(|number| self.at(number).clone()).collect()
    }

    /// All incidents, in the order of their numbers.
    pub(crate) fn incidents(&self) -> &[Incident] {
        &self.incidents
    }

    pub(crate) fn open_incidents(&self) -> impl Iterator<Item = &Incident> {
        self.open.iter().map(|number| self.at(*number))
    }

    /// Those that are open, or over and not yet dealt with.
    pub(crate) fn listed_incidents(&self) -> impl Iterator<Item = &Incident> {
        self.listed.iter().map(|number| self.at(*number))
    }

    /// The open incident a client takes part in.
    pub(crate) fn home(&self, client: usize) -> Option<&Incident> {
        self.open_incidents().find(|incident| incident.member(client).is_some())
    }

    /// How a client's own alarm stands: an effect is suppressed by design.
    pub(crate) fn client_state(&self, client: usize) -> AlarmState {
        let Some(post) = self.posts.get(client) else { return AlarmState::Normal };
        match self.home(client) {
            _ if post.out_of_service => AlarmState::OutOfService,
            Some(incident) if incident.root == Some(client) => incident.alarm.state,
            Some(_) => AlarmState::SuppressedByDesign,
            None if post.shelf.is_some() => AlarmState::Shelved,
            None => AlarmState::Normal,
        }
    }

    #[cfg(test)]
    pub(crate) fn setting(&self, what: &str) -> Option<&Value> {
        self.settings.get(what)
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

fn place(number: u64) -> usize {
    number as usize - 1
}
