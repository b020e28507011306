//! The state that a run of a live session hands on to the next one: incidents with their acknowledgements and
//! notes, what is shelved or out of service, and the settings that an operator changed.
//!
//! Nothing of the evidence is handed on: the next run begins to weigh anew. An incident that was open
//! when the run ended is over in the next run until its root, or a member of it, is found again within
//! [`AGAIN`]. Then it goes on under its number, as it was answered before.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::annunciator::Annunciator;
use super::event::What;
use super::group::{Alarm, Closed, Incident, Origin};
use super::input::Closing;
use super::state::{AlarmEvent, AlarmState};
use crate::fact::{Fact, Value};

/// For so long after a restart what was open before may be found again.
const AGAIN: SignedDuration = SignedDuration::from_hours(1);

/// Incidents that are over and dealt with are handed on up to this number, the newest ones. Of older ones
/// only the number is known.
const HISTORY: usize = 5000;

/// No run has had more incidents: one a minute for nearly two years.
const MOST: u64 = 1_000_000;

/// The state that is handed on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Carried {
    clients: Vec<String>,
    /// The last instant of the run.
    until: Timestamp,
    /// How many incidents there were: numbers are never used again.
    count: u64,
    incidents: Vec<Incident>,
    /// Until when the alarms of each client are shelved.
    shelves: Vec<Option<Timestamp>>,
    out_of_service: Vec<bool>,
    /// Settings that were changed.
    settings: Vec<Changed>,
    /// There was no restart: what came before was removed from a recording.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// A setting that an operator changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Changed {
    pub(crate) what: String,
    /// As the session had it.
    pub(crate) from: Value,
    pub(crate) to: Value,
}

impl Carried {
    /// What a recording still knows of the time before its first step, where the steps of that time were
    /// removed: incidents that had opened before `from`.
    pub(crate) fn of_cut(clients: Vec<String>, from: Timestamp, incidents: Vec<Incident>) -> Self {
        let mut incidents: Vec<Incident> =
            incidents.into_iter().filter(|incident| incident.opened < from).collect();
        for incident in &mut incidents {
            incident.closed = incident.closed.filter(|closed| closed.time < from);
        }
        let count = incidents.last().map_or(0, |incident| incident.number);
        let none = clients.len();
        Self {
            clients,
            until: from,
            count,
            incidents,
            shelves: vec![None; none],
            out_of_service: vec![false; none],
            settings: Vec::new(),
            cut: true,
        }
    }

    pub(crate) fn settings(&self) -> &[Changed] {
        &self.settings
    }

    /// Whether nothing would be different in the next run without it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.count == 0
            && self.settings.is_empty()
            && self.shelves.iter().all(Option::is_none)
            && !self.out_of_service.contains(&true)
    }
}

/// Incidents that were open before the restart, and may be found again.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Resumable {
    /// By number, how each alarm stood.
    alarms: BTreeMap<u64, Alarm>,
    /// The restart.
    since: Timestamp,
    /// The last instant before it.
    until: Option<Timestamp>,
}

impl Resumable {
    /// Whether an incident is of the time before the restart.
    pub(super) fn is_before(&self, incident: &Incident) -> bool {
        self.until.is_some_and(|until| incident.opened <= until)
    }
}

impl Annunciator {
    /// The state for the next run of the same live session.
    pub(crate) fn carry(&self) -> Carried {
        let old = self.incidents.len().saturating_sub(HISTORY);
        let kept = |(place, incident): &(usize, &Incident)| *place >= old || incident.is_listed();
        let incidents = self.incidents.iter().enumerate().filter(kept);
        let changed = |(what, to): (&String, &Value)| {
            let from = self.declared.get(what)?;
            let (what, from, to) = (what.clone(), from.clone(), to.clone());
            (from != to).then_some(Changed { what, from, to })
        };
        Carried {
            clients: self.names.clone(),
            until: self.now,
            count: self.incidents.len() as u64,
            incidents: incidents.map(|(_, incident)| incident.clone()).collect(),
            shelves: self.posts.iter().map(|post| post.shelf).collect(),
            out_of_service: self.posts.iter().map(|post| post.out_of_service).collect(),
            settings: self.settings.iter().filter_map(changed).collect(),
            cut: false,
        }
    }

    /// Goes on where an earlier run of the same session ended. Settings are not made here: they are
    /// orders. Says what it took over, or why nothing.
    pub(crate) fn resume(&mut self, carried: &Carried) -> Fact {
        let said = match self.take_over(carried) {
            Ok(said) => said,
            Err(why) => format!("nothing is taken over from the run before: {why}"),
        };
        self.note(self.now, None, &said)
    }

    fn take_over(&mut self, carried: &Carried) -> Result<String, &'static str> {
        if carried.clients != self.names {
            return Err("it had other clients");
        }
        if !self.incidents.is_empty() {
            return Err("an incident has opened already");
        }
        let is_sound = |incident: &Incident| {
            (1..=carried.count).contains(&incident.number) && incident.is_of(self.posts.len())
        };
        if carried.count > MOST || !carried.incidents.iter().all(is_sound) {
            return Err("what was stored of its incidents makes no sense");
        }
        let forgotten = |number| {
            let time = Timestamp::UNIX_EPOCH;
            let mut incident = Incident::new(number, Origin::Decided, (time, 0), time);
            incident.closed = Some(Closed { time, step: 0, why: Closing::Quiet });
            incident
        };
        self.incidents = (1..=carried.count).map(forgotten).collect();
        (1..=carried.count).for_each(|number| _ = self.at_mut(number));
        let mut alarms = BTreeMap::new();
        for incident in &carried.incidents {
            let number = incident.number;
            let mut incident = incident.clone();
            if let Some(alarm) = alarm_before(&incident, carried.until) {
                alarms.insert(number, alarm);
            }
            if incident.is_open() {
                let why = Closing::EndOfRun;
                incident.closed = Some(Closed { time: carried.until, step: 0, why });
                incident.alarm = incident.alarm.after(AlarmEvent::Return, false).unwrap_or(alarm());
            }
            *self.at_mut(number) = incident;
            self.relist(number);
        }
        for (post, (shelf, out)) in
            self.posts.iter_mut().zip(carried.shelves.iter().zip(&carried.out_of_service))
        {
            (post.shelf, post.out_of_service) = (*shelf, *out);
        }
        self.resumable = Resumable { alarms, since: self.now, until: Some(carried.until) };
        Ok(self.taken_over(carried))
    }

    /// The state that was taken over, in words.
    fn taken_over(&self, carried: &Carried) -> String {
        let count = |is: fn(AlarmState) -> bool| {
            self.listed_incidents().filter(|incident| is(incident.alarm.state)).count()
        };
        let until = carried.until;
        let mut said = if carried.cut {
            format!("steps before {until} were removed from the recording")
        } else {
            format!("goes on from the run that ended at {until}")
        };
        let unseen = count(AlarmState::wants_acknowledgement);
        let shelved = count(|state| state == AlarmState::Shelved);
        let open = self.resumable.alarms.len();
        let out = carried.out_of_service.iter().filter(|out| **out).count();
        let parts = [
            (carried.count as usize, "incidents so far"),
            (open, "open then"),
            (unseen, "not acknowledged"),
            (shelved, "shelved"),
            (out, "clients out of service"),
            (carried.settings.len(), "settings changed"),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !parts.is_empty() {
            said = format!("{said}: {}", parts.join(", "));
        }
        said
    }

    /// The incident of the run before that goes on with this root, if one does: it has its number, its
    /// note and its answer again.
    pub(super) fn found_again(&mut self, root: Option<usize>) -> Option<u64> {
        let root = root?;
        if self.now.duration_since(self.resumable.since) > AGAIN {
            self.resumable.alarms.clear();
            return None;
        }
        let takes_part = |number: &&u64| {
            let incident = self.at(**number);
            incident.root == Some(root) || incident.member(root).is_some()
        };
        // The root of one is rather meant than a member of another.
        let same = |number: &&u64| self.at(**number).root != Some(root);
        let number = *self.resumable.alarms.keys().filter(takes_part).min_by_key(same)?;
        let alarm = self.resumable.alarms.remove(&number)?;
        let (now, step) = (self.now, self.step);
        let incident = self.at_mut(number);
        let after_s = now.duration_since(incident.opened).as_secs_f64();
        let is_other = incident.root != Some(root);
        incident.closed = None;
        incident.alarm = alarm;
        incident.opened_step = step;
        incident.members.clear();
        incident.continuations.clear();
        (incident.root, incident.would_now_say) = (Some(root), Some(root));
        (incident.frozen, incident.stands) = (false, None);
        self.open.insert(number);
        self.relist(number);
        self.silence_with_root(number);
        self.enter(What::WentOn { incident: number, root: Some(root), after_s });
        if is_other {
            self.fire(number, AlarmEvent::AskAgain);
        }
        Some(number)
    }
}

fn alarm() -> Alarm {
    Alarm { state: AlarmState::Normal, shelved_until: None, unseen: false }
}

/// How the alarm of an incident stood when its run ended, where it was open then.
fn alarm_before(incident: &Incident, until: Timestamp) -> Option<Alarm> {
    let Some(closed) = incident.closed else { return Some(incident.alarm) };
    if closed.why != Closing::EndOfRun || closed.time != until {
        return None;
    }
    // It was closed by the end alone: this is what the end made of its alarm.
    let state = match incident.alarm.state {
        AlarmState::Normal => AlarmState::Acknowledged,
        AlarmState::Returned => AlarmState::Unacknowledged,
        state @ (AlarmState::Unacknowledged
        | AlarmState::Acknowledged
        | AlarmState::Shelved
        | AlarmState::SuppressedByDesign
        | AlarmState::OutOfService
        | AlarmState::Latched) => state,
    };
    Some(Alarm { state, ..incident.alarm })
}
