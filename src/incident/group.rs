//! One incident: its root, the effects folded under it, and how the root was corrected.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::input::{ClientState, Closing, Disturbance, QualityKind};
use super::rules::Rules;
use super::state::{AlarmEvent, AlarmState, NotNow};
use crate::fact::Priority;

/// A client that takes part in an incident, as its root or as an effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) client: usize,
    pub(crate) onset: Timestamp,
    /// When it was found to take part.
    pub(crate) joined: Timestamp,
    /// Since when its evidence is gone, if it is.
    pub(crate) quiet_since: Option<Timestamp>,
    /// Share of its residual that the others explain, where that is known.
    pub(crate) explained: Option<f64>,
    /// Steps on end for which it was not explained.
    pub(crate) unexplained: u64,
}

/// A sensor of a client that takes part is itself at fault. Which one stays with the client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct SensorTrouble {
    pub(crate) client: usize,
    pub(crate) what: QualityKind,
    /// When that became known of this incident.
    pub(crate) time: Timestamp,
}

/// The client whose evidence rose first; it stays until the incident closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstOut {
    pub(crate) client: usize,
    pub(crate) time: Timestamp,
}

/// A change of the named root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Correction {
    pub(crate) time: Timestamp,
    pub(crate) from: Option<usize>,
    pub(crate) to: Option<usize>,
}

/// The disturbance showed itself again before all members had recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Continuation {
    pub(crate) time: Timestamp,
    /// The root of that episode, where one is named.
    pub(crate) root: Option<usize>,
}

/// How it came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// The decision raised an alarm.
    Decided,
    /// One client's anomaly outlived the propagation window.
    Single,
    /// An effect of another incident that was explained no more.
    SplitFrom(u64),
}

/// How and when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Closed {
    pub(crate) time: Timestamp,
    pub(crate) step: u64,
    pub(crate) why: Closing,
}

/// The alarm of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alarm {
    pub(crate) state: AlarmState,
    /// When it comes back, while it is shelved.
    pub(crate) shelved_until: Option<Timestamp>,
    /// It was not acknowledged when it was silenced.
    #[serde(default)]
    pub(crate) unseen: bool,
}

impl Alarm {
    /// The alarm after `event`. One that was silenced unseen and is over by now has returned unseen:
    /// silence is no acknowledgement.
    pub(super) fn after(self, event: AlarmEvent, condition: bool) -> Result<Self, NotNow> {
        let mut state = self.state.after(event, condition)?;
        let resumes =
            matches!(event, AlarmEvent::Unshelve | AlarmEvent::Release | AlarmEvent::PutBack);
        if self.unseen && resumes && state == AlarmState::Normal {
            state = AlarmState::Returned;
        }
        let unseen = state.is_silenced()
            && if self.state.is_silenced() {
                self.unseen
            } else {
                self.state.wants_acknowledgement()
            };
        let shelved_until = self.shelved_until.filter(|_| state == AlarmState::Shelved);
        Ok(Self { state, shelved_until, unseen })
    }
}

/// An incident. Only the annunciator changes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Incident {
    /// Counted from 1, never used again.
    pub(crate) number: u64,
    /// How it came to be.
    pub(crate) origin: Origin,
    pub(crate) opened: Timestamp,
    pub(crate) opened_step: u64,
    /// The first instant of its evidence.
    pub(crate) onset: Timestamp,
    pub(crate) root: Option<usize>,
    /// While no root is named: the possible roots, the likeliest first.
    pub(crate) candidates: Vec<usize>,
    pub(crate) frozen: bool,
    /// The root that all evidence up to now speaks for.
    pub(crate) would_now_say: Option<usize>,
    /// Probability of each client as the root.
    pub(crate) posterior: Vec<f64>,
    /// All members, in order of onset: the staircase.
    pub(crate) members: Vec<Member>,
    pub(crate) first_out: Option<FirstOut>,
    /// Sensors of members that were found to be at fault while it was open.
    #[serde(default)]
    pub(crate) faults: Vec<SensorTrouble>,
    /// Earlier roots.
    pub(crate) corrections: Vec<Correction>,
    /// When the disturbance showed itself again after its evidence had ended.
    #[serde(default)]
    pub(crate) continuations: Vec<Continuation>,
    /// Its evidence has ended for this reason, and not all members have recovered.
    #[serde(default)]
    pub(crate) stands: Option<Closing>,
    /// A declared source above the root whose own sensors show nothing: it may be the root too.
    #[serde(default)]
    pub(crate) silent_source: Option<usize>,
    /// The highest priority it has had: one that was P1 is not played down.
    pub(crate) priority: Priority,
    pub(crate) alarm: Alarm,
    pub(crate) closed: Option<Closed>,
    /// The operator's note about it; empty without one.
    pub(crate) note: String,
}

impl Incident {
    /// A new incident without members.
    pub(crate) fn new(number: u64, origin: Origin, at: (Timestamp, u64), onset: Timestamp) -> Self {
        Self {
            number,
            origin,
            opened: at.0,
            opened_step: at.1,
            onset,
            root: None,
            candidates: Vec::new(),
            frozen: false,
            would_now_say: None,
            posterior: Vec::new(),
            members: Vec::new(),
            first_out: None,
            faults: Vec::new(),
            corrections: Vec::new(),
            continuations: Vec::new(),
            stands: None,
            silent_source: None,
            priority: Priority::P2,
            alarm: Alarm { state: AlarmState::Normal, shelved_until: None, unseen: false },
            closed: None,
            note: String::new(),
        }
    }

    /// Whether its condition still holds.
    pub(crate) fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Whether it is still on the list: open, or over and not yet seen.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_open() || self.alarm.state != AlarmState::Normal
    }

    /// Whether every client that it names is one of so many. One that was read from a file or a socket
    /// may name any.
    pub(crate) fn is_of(&self, clients: usize) -> bool {
        let named = [self.root, self.would_now_say, self.silent_source];
        let first = self.first_out.map(|first| first.client);
        let members = self.members.iter().map(|member| member.client);
        let faults = self.faults.iter().map(|fault| fault.client);
        let thought = self.corrections.iter().flat_map(|thought| [thought.from, thought.to]);
        let again = self.continuations.iter().map(|again| again.root);
        self.number > 0
            && self.posterior.len() <= clients
            && named
                .into_iter()
                .chain([first])
                .chain(thought)
                .chain(again)
                .flatten()
                .all(|c| c < clients)
            && self.candidates.iter().copied().chain(members).chain(faults).all(|c| c < clients)
    }

    /// The client as a member, if it is one.
    pub(crate) fn member(&self, client: usize) -> Option<&Member> {
        self.members.iter().find(|member| member.client == client)
    }

    pub(super) fn member_mut(&mut self, client: usize) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.client == client)
    }

    /// Members other than the root, in order of onset.
    pub(crate) fn effects(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| Some(member.client) != self.root)
    }

    /// How long after the root's onset a member's came; negative when it came before.
    pub(crate) fn delay_s(&self, member: &Member) -> f64 {
        let root = self.root.and_then(|root| self.member(root));
        let from = root.map_or(self.onset, |root| root.onset);
        member.onset.duration_since(from).as_secs_f64()
    }

    /// First-out and the named root are different clients: both are shown, neither is hidden.
    pub(crate) fn disagrees(&self) -> bool {
        matches!((self.root, self.first_out), (Some(root), Some(first)) if root != first.client)
    }

    /// The root that evidence speaks for by now, where it is another than the named one.
    pub(crate) fn second_thought(&self) -> Option<usize> {
        self.would_now_say.filter(|now| self.frozen && self.root != Some(*now))
    }

    /// Whether an onset is close enough for its client to be an effect of this incident.
    pub(super) fn reaches(&self, onset: Timestamp, rules: &Rules) -> bool {
        let near = |other: Timestamp| onset.duration_since(other).abs() <= rules.window;
        near(self.onset)
            || self.members.iter().any(|member| near(member.onset))
            || self.continuations.iter().any(|again| near(again.time))
    }

    /// How far an onset lies from the incident's.
    pub(super) fn distance(&self, onset: Timestamp) -> SignedDuration {
        onset.duration_since(self.onset).abs()
    }

    /// Takes a client in; false when it was in already.
    pub(super) fn join(&mut self, client: usize, state: ClientState, now: Timestamp) -> bool {
        if self.member(client).is_some() {
            return false;
        }
        let onset = state.raised_since.unwrap_or(self.onset);
        let quiet_since = state.raised_since.is_none().then_some(now);
        let explained = state.explained.filter(|share| share.is_finite());
        let member = Member { client, onset, joined: now, quiet_since, explained, unexplained: 0 };
        self.admit(member);
        true
    }

    /// Takes a member in at its place in the staircase.
    pub(super) fn admit(&mut self, member: Member) {
        let place = self
            .members
            .partition_point(|other| (other.onset, other.client) < (member.onset, member.client));
        self.members.insert(place, member);
        self.latch_first_out();
    }

    /// Lets a client go. It stays first-out if it was.
    pub(super) fn leave(&mut self, client: usize) -> Option<Member> {
        let place = self.members.iter().position(|member| member.client == client)?;
        Some(self.members.remove(place))
    }

    /// The earliest onset of all who ever took part. Of those that share it the root comes first:
    /// a tie is no disagreement.
    pub(super) fn latch_first_out(&mut self) {
        let Some(earliest) = self.members.first().map(|member| member.onset) else { return };
        let root = self.root.and_then(|root| self.member(root));
        let first = root.filter(|root| root.onset == earliest).or(self.members.first());
        let Some(first) = first.map(|m| FirstOut { client: m.client, time: m.onset }) else {
            return;
        };
        let better = self.first_out.is_none_or(|known| {
            first.time < known.time || (first.time == known.time && self.root == Some(first.client))
        });
        if better {
            self.first_out = Some(first);
        }
    }

    /// P1 is a confirmed root with effects; everything less certain, or alone, is P2.
    pub(super) fn present_priority(&self, rules: &Rules) -> Priority {
        let confirmed = self.root.is_some_and(|root| {
            self.posterior.is_empty()
                || self.posterior.get(root).is_some_and(|p| *p >= rules.confident)
        });
        let felt = self.effects().next().is_some();
        if confirmed && felt { Priority::P1 } else { Priority::P2 }
    }
}

/// The root that the decision names. Without one, the possible roots, the likeliest first.
pub(super) fn judge(
    found: &Disturbance,
    clients: usize,
    rules: &Rules,
) -> (Option<usize>, Vec<usize>) {
    let p = |client: usize| {
        found.posterior.get(client).copied().filter(|p| p.is_finite()).unwrap_or(0.0)
    };
    if !found.tied.is_empty() {
        return (None, found.tied.iter().copied().filter(|client| *client < clients).collect());
    }
    let root = found.root.filter(|root| *root < clients);
    let most = (0..clients).map(p).fold(0.0, f64::max);
    if most <= 0.0 {
        return (root, Vec::new());
    }
    let mut candidates: Vec<usize> = (0..clients).filter(|c| most - p(*c) < rules.margin).collect();
    candidates.sort_by(|a, b| p(*b).total_cmp(&p(*a)).then(a.cmp(b)));
    match root {
        Some(root) if !(0..clients).any(|c| c != root && p(root) - p(c) < rules.margin) => {
            (Some(root), Vec::new())
        }
        _ => (None, candidates),
    }
}
