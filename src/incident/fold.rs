//! Grouping: which incident a verdict opens or moves, and which clients are folded under it.

use super::annunciator::Annunciator;
use super::event::What;
use super::group::{Continuation, Correction, Origin, judge};
use super::input::{ClientState, Closing, Outcome};
use super::state::{AlarmEvent, AlarmState};

impl Annunciator {
    /// Takes the decision about a disturbance.
    pub(super) fn take_outcome(&mut self, outcome: &Outcome, clients: &[ClientState]) {
        let number = match (self.disturbances.get(&outcome.disturbance.number), outcome.closed) {
            (Some(number), _) => *number,
            (None, None) => self.open_disturbance(outcome, clients),
            // Over before it was ever mentioned.
            (None, Some(_)) => return,
        };
        // An operator, or a merger, may have closed what the decision still follows.
        if self.open.contains(&number) {
            self.follow(number, outcome, clients);
        }
        if let Some(why) = outcome.closed {
            let number = self.disturbances.remove(&outcome.disturbance.number).unwrap_or(number);
            if !self.is_followed(number) {
                self.close(number, why);
            }
        }
    }

    fn open_disturbance(&mut self, outcome: &Outcome, clients: &[ClientState]) -> u64 {
        let (root, candidates) = judge(&outcome.disturbance, self.posts.len(), &self.rules);
        // One incident per root: an anomaly that was alone so far has found its verdict.
        let known = root.and_then(|root| self.rooted_at(root));
        let number = known.unwrap_or_else(|| {
            if let Some(root) = root {
                self.withdraw(root);
            }
            let number = self.open(Origin::Decided, outcome.onset, root);
            if let Some(root) = root {
                self.join(number, root, clients);
            }
            self.at_mut(number).candidates = candidates;
            number
        });
        self.disturbances.insert(outcome.disturbance.number, number);
        number
    }

    /// Until the root is final it follows the decision. After that it moves only when the decision
    /// revises it; otherwise the other root is shown beside it.
    fn follow(&mut self, number: u64, outcome: &Outcome, clients: &[ClientState]) {
        let clients_count = self.posts.len();
        let known = |client: &usize| *client < clients_count;
        let found = &outcome.disturbance;
        let is_revised = found.revised_from.is_some();
        let (root, candidates) = if is_revised {
            (found.root.filter(known), Vec::new())
        } else {
            judge(&outcome.disturbance, clients_count, &self.rules)
        };
        self.follow_course(number, outcome);
        let incident = self.at_mut(number);
        incident.posterior.clone_from(&found.posterior);
        incident.posterior.truncate(clients_count);
        incident.posterior.iter_mut().filter(|p| !p.is_finite()).for_each(|p| *p = 0.0);
        incident.would_now_say = found.would_now_say.filter(known);
        incident.silent_source = outcome.silent_source.filter(known);
        let was_final = incident.frozen;
        if was_final && !is_revised {
            return;
        }
        incident.candidates = candidates;
        if incident.root != root {
            self.move_root(number, root, is_revised, clients);
        }
        if was_final {
            return;
        }
        let age = self.step.saturating_sub(self.at(number).opened_step);
        if found.frozen || age >= self.rules.freeze_after {
            let root = self.at(number).root;
            self.at_mut(number).frozen = true;
            let silent_source = self.at(number).silent_source.filter(|_| root.is_some());
            self.enter(What::RootFinal { incident: number, root, silent_source });
        }
    }

    /// Takes that the evidence has ended and the incident stands, or that it goes on.
    fn follow_course(&mut self, number: u64, outcome: &Outcome) {
        let found = &outcome.disturbance;
        let incident = self.at_mut(number);
        let has_ended = found.stands.filter(|_| incident.stands.is_none());
        incident.stands = found.stands;
        if let Some(why) = has_ended.filter(|_| outcome.closed.is_none()) {
            self.enter(What::Stands { incident: number, why });
        }
        if found.continued > self.at(number).continuations.len() as u64 {
            self.go_on(number, found.latest.filter(|client| *client < self.posts.len()));
        }
    }

    /// The disturbance shows itself again. Its alarm asks again if the root is a new one.
    fn go_on(&mut self, number: u64, root: Option<usize>) {
        let time = self.now;
        let incident = self.at_mut(number);
        let named = |again: &Continuation| again.root == root;
        let is_new = incident.root != root && !incident.continuations.iter().any(named);
        let after_s = time.duration_since(incident.opened).as_secs_f64();
        incident.continuations.push(Continuation { time, root });
        self.enter(What::WentOn { incident: number, root, after_s });
        if is_new {
            self.fire(number, AlarmEvent::AskAgain);
        }
    }

    /// Moves the root. Number, history and members stay; the alarm asks again.
    fn move_root(
        &mut self,
        number: u64,
        root: Option<usize>,
        is_revised: bool,
        clients: &[ClientState],
    ) {
        let from = self.at(number).root;
        if let Some(root) = root {
            if let Some(other) = self.rooted_at(root) {
                self.merge(other, number);
            }
            if self.at(number).member(root).is_none() {
                self.withdraw(root);
            }
        }
        let was_out = self.at(number).alarm.state == AlarmState::OutOfService;
        let time = self.now;
        let incident = self.at_mut(number);
        incident.corrections.push(Correction { time, from, to: root });
        incident.root = root;
        if let Some(root) = root {
            self.join(number, root, clients);
        }
        self.at_mut(number).latch_first_out();
        self.enter(What::RootMoved { incident: number, from, to: root, is_revised });
        if was_out {
            self.fire(number, AlarmEvent::PutBack);
        }
        self.silence_with_root(number);
        self.fire(number, AlarmEvent::AskAgain);
    }

    /// `from` has turned out to have the root that `into` has: one incident per root.
    fn merge(&mut self, from: u64, into: u64) {
        for member in self.at(from).members.clone() {
            if self.at(into).member(member.client).is_none() {
                self.at_mut(into).admit(member);
            }
        }
        self.disturbances.values_mut().filter(|n| **n == from).for_each(|n| *n = into);
        self.close(from, Closing::Merged { into });
    }

    /// Gives every client its place: members are followed, and a client that is affected joins the
    /// nearest incident within the propagation window.
    pub(super) fn fold(&mut self, clients: &[ClientState]) {
        for (client, state) in clients.iter().enumerate() {
            if let Some(number) = self.home(client).map(|incident| incident.number) {
                self.follow_member(number, client, *state);
            } else if let Some(onset) = state.raised_since {
                let open = self.open.iter().map(|number| self.at(*number));
                // A client with a fault of its own is not an effect. While the root is unknown it may
                // be the root.
                let reached = open.filter(|incident| {
                    incident.stands.is_none()
                        && incident.reaches(onset, &self.rules)
                        && !(state.own_fault && incident.root.is_some())
                });
                let nearest = reached.min_by_key(|i| (i.distance(onset), i.number));
                if let Some(number) = nearest.map(|incident| incident.number) {
                    self.join(number, client, clients);
                }
            }
        }
    }

    pub(super) fn follow_member(&mut self, number: u64, client: usize, state: ClientState) {
        let now = self.now;
        let incident = self.at_mut(number);
        let can_be_explained = incident.root.is_some_and(|root| root != client);
        let Some(member) = incident.member_mut(client) else { return };
        let raised = state.raised_since.is_some();
        member.quiet_since = if raised { None } else { member.quiet_since.or(Some(now)) };
        member.explained = state.explained.filter(|share| share.is_finite()).or(member.explained);
        member.unexplained =
            if raised && state.own_fault && can_be_explained { member.unexplained + 1 } else { 0 };
    }

    pub(super) fn join(&mut self, number: u64, client: usize, clients: &[ClientState]) {
        let (now, state) = (self.now, clients.get(client).copied().unwrap_or_default());
        let incident = self.at_mut(number);
        if incident.join(client, state, now) && incident.root != Some(client) {
            let Some(member) = incident.member(client) else { return };
            let delay_s = incident.delay_s(member);
            self.enter(What::Joined { incident: number, client, delay_s });
        }
    }

    /// An effect that is explained no more is a second fault behind the first.
    pub(super) fn split(&mut self, clients: &[ClientState]) {
        let steps = self.rules.unexplained_steps.max(1);
        for number in self.open.clone() {
            let unexplained = |incident: &super::Incident| {
                incident.effects().find(|m| m.unexplained >= steps).map(|m| m.client)
            };
            while let Some(client) = unexplained(self.at(number)) {
                let onset = self.withdraw(client).unwrap_or(self.now);
                let own = self.open(Origin::SplitFrom(number), onset, Some(client));
                self.join(own, client, clients);
            }
        }
    }

    /// Takes a client out of the incident that it is a member of, and returns its onset there.
    fn withdraw(&mut self, client: usize) -> Option<jiff::Timestamp> {
        let number = self.home(client).map(|incident| incident.number)?;
        let member = self.at_mut(number).leave(client)?;
        self.enter(What::Left { incident: number, client });
        Some(member.onset)
    }

    /// An anomaly of one client that nothing explains, and that is beyond doubt by itself or has
    /// outlived the propagation window.
    pub(super) fn open_singles(&mut self, clients: &[ClientState]) {
        for (client, state) in clients.iter().enumerate() {
            let Some(onset) = state.raised_since else { continue };
            let certain = state.alarms || self.now.duration_since(onset) > self.rules.window;
            if certain
                && state.own_fault
                && !self.posts[client].spent
                && self.home(client).is_none()
            {
                let number = self.open(Origin::Single, onset, Some(client));
                self.join(number, client, clients);
            }
        }
    }

    /// An incident that the decision does not follow ends with its root's evidence, or when it is too
    /// old.
    pub(super) fn close_singles(&mut self, clients: &[ClientState]) {
        for number in self.open.clone() {
            if self.is_followed(number) {
                continue;
            }
            let incident = self.at(number);
            let age = self.step.saturating_sub(incident.opened_step);
            let raised = incident
                .root
                .and_then(|root| clients.get(root))
                .is_some_and(|root| root.raised_since.is_some());
            if !raised {
                self.close(number, Closing::Quiet);
            } else if age >= self.rules.oldest {
                self.close(number, Closing::PersistentChange);
            } else if !incident.frozen && age >= self.rules.freeze_after {
                self.at_mut(number).frozen = true;
            }
        }
    }

    pub(super) fn rooted_at(&self, client: usize) -> Option<u64> {
        self.open_incidents().find(|i| i.root == Some(client)).map(|incident| incident.number)
    }

    fn is_followed(&self, number: u64) -> bool {
        self.disturbances.values().any(|n| *n == number)
    }
}
