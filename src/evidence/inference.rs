//! The server's half of evidence mode: the symbols of all clients in, incidents out.
//!
//! ```text
//! idle   S_m = max(0, S_m + λ^RC_m)           alarm when S_m > b_m
//!        (tier 2: and its own symbols alone come to within ln 10 of their own threshold)
//! open   A_m = Σ from the onset on of λ^RC_m + Σ over whom m reaches of λ^PE     never floored
//!        root = argmax A, final a few steps after the alarm; posterior = softmax A
//!        E = max(0, E − H_root)               closed when E > 4
//! ```
//!
//! Detection is floored, so that it forgets; attribution is not, since flooring each hypothesis by
//! itself would destroy their order. In tier 2, where a second symbol depends on what others say, it
//! may hasten an alarm and may speak against a root, and never for one. A missing report contributes nothing. The server sees symbols
//! and enrolments, nothing else.

mod incident;
#[cfg(test)]
mod tests;

pub use incident::{Closing, Effect, Incident};

use serde::{Deserialize, Serialize};

use super::cusum::{Cusum, alarm_threshold};
use super::health::{Report, Standing, Watch};
use super::likelihood::{Hypotheses, JointRatios, JointTables, Ratios, Tables};
use super::reach::Reach;
use super::site::Enrolment;
use super::symbol::{Grading, LevelCounts, RandomisedResponse};
use super::watch::Odds;

/// How the server decides: one set of numbers for all data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Shapes of the hypotheses.
    pub hypotheses: Hypotheses,
    /// Wanted steps between two false alarms of the whole federation.
    pub arl0: f64,
    /// The root is final this many steps after the alarm.
    pub freeze_after: u64,
    /// Evidence against the root at which an incident closes.
    pub closing_evidence: f64,
    /// Evidence at which another client counts as affected.
    pub effect_evidence: f64,
    /// Steps after which an incident is taken for a change that stays.
    pub oldest: u64,
    /// Steps for which a client that was still affected when its incident closed raises no alarm of
    /// its own.
    pub afterglow: u64,
}

impl Rules {
    /// The defaults at a wanted false-alarm rate.
    #[must_use]
    pub fn with_arl0(arl0: f64) -> Self {
        Self {
            hypotheses: Hypotheses::default(),
            arl0,
            freeze_after: 5,
            closing_evidence: 4.0,
            effect_evidence: 5.0,
            oldest: 150,
            afterglow: 60,
        }
    }
}

/// Steps that an onset may lie back.
const LOOK_BACK: usize = 64;

/// What is new after a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// An alarm.
    Opened(Incident),
    /// The root is final; it may be another than at the alarm.
    Frozen(Incident),
    /// One more client feels it.
    Affected {
        /// Number of the incident.
        incident: u64,
        /// Who, and since when.
        effect: Effect,
    },
    /// It is over.
    Closed(Incident, Closing),
    /// A client's symbols are to be believed more, or less.
    Standing {
        /// Who.
        client: usize,
        /// How it stands now.
        standing: Standing,
    },
}

/// What the server knows of one client.
#[derive(Debug, Clone)]
struct Client {
    enrolment: Enrolment,
    tables: Tables,
    ratios: Ratios,
    /// Of pairs, where it sends them.
    joint: Option<Box<JointRatios>>,
    threshold: f64,
    /// What its own symbols must come to besides, where it sends pairs.
    own_threshold: f64,
    cusum: Cusum,
    /// What its own symbols alone have said since S_m was zero.
    alone: f64,
    watch: Watch,
    /// Evidence that it is quiet again, while an incident is open or glows on.
    quiet: f64,
    /// Until when it raises no alarm.
    glows_until: u64,
    /// Its symbols since the alarm.
    since_alarm: LevelCounts,
    /// A change that stays is being tolerated.
    tolerates: bool,
    /// What silence and a raised watch say.
    odds: Odds,
    /// Its watch was raised: what it sends now was chosen by that, and tells nothing of its standing.
    raised: bool,
}

impl Client {
    fn is_heard(&self) -> bool {
        self.watch.standing() != Standing::Unreliable
    }

    /// What its report says.
    fn weigh(&self, report: Report) -> Weights {
        let alone = |symbol| {
            let root_cause = self.ratios.root_cause(symbol);
            Weights {
                detection: root_cause,
                alone: root_cause,
                root_cause,
                propagated_effect: self.ratios.propagated_effect(symbol),
            }
        };
        match report {
            Report::Symbol(symbol) => alone(symbol),
            Report::Raised(symbol) => alone(symbol).and(self.odds.raised()),
            Report::Quiet => Weights::default().and(self.odds.quiet()),
            Report::Informed(own, beside) => {
                let alone = alone(own);
                // What is tolerated is known of its own symbols alone.
                let Some(joint) = self.joint.as_ref().filter(|_| !self.tolerates) else {
                    return alone;
                };
                let detection = joint.root_cause(own, beside);
                Weights {
                    detection,
                    alone: alone.alone,
                    root_cause: detection.min(alone.root_cause),
                    propagated_effect: joint
                        .propagated_effect(own, beside)
                        .min(alone.propagated_effect),
                }
            }
            Report::Missing | Report::Invalid => Weights::default(),
        }
    }

    /// Adds what a step says to its evidence.
    fn add(&mut self, weights: Weights, step: u64) {
        self.cusum.add(weights.detection, step);
        self.alone = if self.cusum.value() > 0.0 { self.alone + weights.alone } else { 0.0 };
    }

    fn forget(&mut self, step: u64) {
        self.cusum.reset(step);
        self.alone = 0.0;
    }

    /// How far its evidence is beyond its threshold, if its own symbols speak for it too.
    fn beyond(&self) -> Option<f64> {
        let own = self.joint.is_none() || self.alone > self.own_threshold;
        let over = self.cusum.value() - self.threshold;
        (own && over > 0.0).then_some(over)
    }
}

/// What one report says.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    /// λ^RC of all of it.
    detection: f64,
    /// λ^RC of the client's own symbol alone.
    alone: f64,
    /// λ^RC as far as it does not depend on what others say.
    root_cause: f64,
    /// λ^PE, likewise.
    propagated_effect: f64,
}

impl Weights {
    /// With what a raised or silent watch says besides, for a root cause and for who feels one.
    fn and(self, (root_cause, propagated_effect): (f64, f64)) -> Self {
        Self {
            detection: self.detection + root_cause,
            alone: self.alone + root_cause,
            root_cause: self.root_cause + root_cause,
            propagated_effect: self.propagated_effect + propagated_effect,
        }
    }
}

/// Whatever others say, a client raises alarms at most so many times as often as is wanted.
const OFTEN: f64 = 10.0;

/// An open incident and what is added up for it.
#[derive(Debug, Clone)]
struct Open {
    incident: Incident,
    /// A_m.
    attribution: Vec<f64>,
    /// E.
    against: f64,
}

/// The server's state.
#[derive(Debug, Clone)]
pub struct Inference {
    grading: Grading,
    rules: Rules,
    reach: Reach,
    clients: Vec<Client>,
    /// H_m of the last steps, a ring of rows of M.
    recent: Vec<f64>,
    step: u64,
    incidents: u64,
    open: Option<Open>,
    changes: Vec<Change>,
    // Of this step.
    own: Vec<f64>,
    felt: Vec<f64>,
}

impl Inference {
    /// A server that has heard of these clients and nothing yet from them.
    #[must_use]
    pub fn new(grading: Grading, rules: Rules, enrolments: &[Enrolment], reach: Reach) -> Self {
        let m = enrolments.len();
        let reach = if reach.clients() == m { reach } else { Reach::unknown(m) };
        let clients = enrolments.iter().map(|e| enrol(&grading, &rules, e.clone(), m)).collect();
        Self {
            grading,
            rules,
            reach,
            clients,
            recent: vec![0.0; LOOK_BACK * m],
            step: 0,
            incidents: 0,
            open: None,
            changes: Vec::new(),
            own: vec![0.0; m],
            felt: vec![0.0; m],
        }
    }

    /// Takes the reports of the next step, one a client, and says what is new.
    pub fn step(&mut self, reports: &[Report]) -> &[Change] {
        self.changes.clear();
        self.step += 1;
        self.weigh(reports);
        self.remember();
        if self.open.is_some() {
            self.follow();
        } else {
            self.detect();
        }
        &self.changes
    }

    /// Ratios of this step; zero for whoever says nothing or is not to be believed.
    fn weigh(&mut self, reports: &[Report]) {
        let elevated = self.grading.elevated();
        for (m, client) in self.clients.iter_mut().enumerate() {
            let report = reports.get(m).copied().unwrap_or_default();
            client.raised = match report {
                Report::Raised(_) => true,
                Report::Symbol(_) | Report::Informed(..) | Report::Invalid => client.raised,
                Report::Quiet | Report::Missing => false,
            };
            let before = client.watch.standing();
            let judged = match report {
                Report::Symbol(_) | Report::Raised(_) | Report::Informed(..) if client.raised => {
                    Report::Missing
                }
                other => other,
            };
            let standing = client.watch.step(judged, &client.tables.nominal, elevated);
            if standing != before {
                self.changes.push(Change::Standing { client: m, standing });
            }
            client.forgive(&self.rules);
            let heard = standing != Standing::Unreliable;
            let weights = if heard { client.weigh(report) } else { Weights::default() };
            if let (true, Some(symbol)) = (heard, report.own()) {
                client.since_alarm.add(symbol);
            }
            (self.own[m], self.felt[m]) = (weights.root_cause, weights.propagated_effect);
            client.quiet = (client.quiet - self.own[m]).max(0.0);
            if client.quiet > self.rules.closing_evidence {
                client.glows_until = 0;
            }
            if self.step >= client.glows_until && heard {
                client.add(weights, self.step);
            } else {
                client.forget(self.step);
            }
        }
    }

    /// Keeps H_m of this step for attributions that will begin in the past.
    fn remember(&mut self) {
        let m = self.clients.len();
        let from = (self.step as usize % LOOK_BACK) * m;
        for root in 0..m {
            self.recent[from + root] = self.hypothesis(root);
        }
    }

    /// H_m = λ^RC_m + Σ over whom m reaches of λ^PE.
    fn hypothesis(&self, root: usize) -> f64 {
        self.own[root] + self.reach.affected(root).map(|n| self.felt[n]).sum::<f64>()
    }

    fn detect(&mut self) {
        let beyond = |(m, client): (usize, &Client)| client.beyond().map(|over| (m, over));
        let winner = self
            .clients
            .iter()
            .enumerate()
            .filter_map(beyond)
            .max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a)));
        let Some((winner, _)) = winner else { return };
        let client = &self.clients[winner];
        let earliest = (self.step + 1).saturating_sub(LOOK_BACK as u64).max(1);
        let onset = client.cusum.onset().max(earliest);
        let m = self.clients.len();
        let mut attribution = vec![0.0; m];
        for t in onset..=self.step {
            let from = (t as usize % LOOK_BACK) * m;
            attribution.iter_mut().zip(&self.recent[from..from + m]).for_each(|(a, h)| *a += h);
        }
        // A client whose standing was lost on the way is no candidate, whatever it said before.
        for (a, client) in attribution.iter_mut().zip(&self.clients) {
            if !client.is_heard() {
                *a = f64::NEG_INFINITY;
            }
        }
        for client in &mut self.clients {
            client.quiet = 0.0;
            client.since_alarm.clear();
        }
        self.incidents += 1;
        let root = largest(&attribution, winner);
        let mut incident = Incident {
            number: self.incidents,
            onset,
            opened: self.step,
            last_evidence: self.step,
            root: self.nameable(root),
            frozen: false,
            would_now_say: None,
            posterior: vec![0.0; m],
            effects: Vec::new(),
        };
        incident.would_now_say = incident.root;
        softmax(&attribution, &mut incident.posterior);
        let mut open = Open { incident, attribution, against: 0.0 };
        let changes = self.changes.len();
        self.join_effects(&mut open);
        // An alarm already tells who is affected.
        self.changes.truncate(changes);
        self.changes.push(Change::Opened(open.incident.clone()));
        self.open = Some(open);
    }

    /// A root is named only if no client that could explain it is beyond belief.
    fn nameable(&self, root: usize) -> Option<usize> {
        let explained = (0..self.clients.len())
            .any(|other| !self.clients[other].is_heard() && self.reach.reaches(other, root));
        (!explained).then_some(root)
    }

    fn follow(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let m = self.clients.len();
        let from = (self.step as usize % LOOK_BACK) * m;
        for (n, a) in open.attribution.iter_mut().enumerate() {
            *a += self.recent[from + n];
            if !self.clients[n].is_heard() {
                *a = f64::NEG_INFINITY;
            }
        }
        let leader = largest(&open.attribution, open.incident.root.unwrap_or(0));
        softmax(&open.attribution, &mut open.incident.posterior);
        let now = self.nameable(leader);
        open.incident.would_now_say = now;
        if !open.incident.frozen {
            open.incident.root = now;
        }
        let followed = open.incident.root.unwrap_or(leader);
        open.against = (open.against - self.recent[from + followed]).max(0.0);
        if open.against == 0.0 {
            open.incident.last_evidence = self.step;
        }
        self.join_effects(&mut open);
        let age = self.step - open.incident.opened;
        if !open.incident.frozen && age >= self.rules.freeze_after {
            open.incident.frozen = true;
            self.changes.push(Change::Frozen(open.incident.clone()));
        }
        let closing = if !self.clients[followed].is_heard() {
            Some(Closing::Unreliable)
        } else if open.against > self.rules.closing_evidence {
            Some(Closing::Quiet)
        } else if age >= self.rules.oldest {
            Some(Closing::PersistentChange)
        } else {
            None
        };
        match closing {
            Some(closing) => self.close(open, closing),
            None => self.open = Some(open),
        }
    }

    fn join_effects(&mut self, open: &mut Open) {
        for (n, client) in self.clients.iter().enumerate() {
            let known = open.incident.effects.iter().any(|effect| effect.client == n);
            if Some(n) == open.incident.root {
                open.incident.effects.retain(|effect| effect.client != n);
            } else if !known && client.cusum.value() > self.rules.effect_evidence {
                let onset = client.cusum.onset();
                let effect = Effect { client: n, onset, joined: self.step };
                open.incident.effects.push(effect);
                let incident = open.incident.number;
                self.changes.push(Change::Affected { incident, effect });
            }
        }
    }

    fn close(&mut self, open: Open, closing: Closing) {
        let Open { mut incident, .. } = open;
        incident.frozen = true;
        if matches!(closing, Closing::PersistentChange | Closing::Accepted) {
            for n in incident.root.iter().copied().chain(incident.effects.iter().map(|e| e.client))
            {
                self.clients[n].tolerate(&self.rules);
            }
        }
        for (n, client) in self.clients.iter_mut().enumerate() {
            let affected = incident.effects.iter().any(|effect| effect.client == n);
            if affected && client.quiet <= self.rules.closing_evidence {
                client.glows_until = self.step + self.rules.afterglow;
            }
            client.forget(self.step);
        }
        self.changes.push(Change::Closed(incident, closing));
    }

    /// Closes what is open: the run ends, or an operator accepts it.
    pub fn end(&mut self, closing: Closing) -> &[Change] {
        self.changes.clear();
        if let Some(open) = self.open.take() {
            self.close(open, closing);
        }
        &self.changes
    }

    /// Hears a client under a new enrolment: its present behaviour is the new normal.
    pub fn enrol_again(&mut self, client: usize, enrolment: Enrolment) {
        let m = self.clients.len();
        if let Some(slot) = self.clients.get_mut(client) {
            *slot = enrol(&self.grading, &self.rules, enrolment, m);
            slot.forget(self.step);
        }
    }

    /// Changes the wanted number of steps between two false alarms.
    pub fn set_arl0(&mut self, arl0: f64) {
        self.rules.arl0 = arl0;
        let m = self.clients.len();
        for client in &mut self.clients {
            (client.threshold, client.own_threshold) = thresholds(&client.enrolment, m, arl0);
        }
    }

    /// The open incident.
    #[must_use]
    pub fn incident(&self) -> Option<&Incident> {
        self.open.as_ref().map(|open| &open.incident)
    }

    /// Steps taken; the last one has this number.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// How it decides.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// S_m of a client.
    #[must_use]
    pub fn evidence(&self, client: usize) -> f64 {
        self.clients[client].cusum.value()
    }

    /// b_m of a client.
    #[must_use]
    pub fn threshold(&self, client: usize) -> f64 {
        self.clients[client].threshold
    }

    /// How a client stands.
    #[must_use]
    pub fn standing(&self, client: usize) -> Standing {
        self.clients[client].watch.standing()
    }

    /// A client's live share of elevated symbols.
    #[must_use]
    pub fn elevated_share(&self, client: usize) -> Option<f64> {
        self.clients[client].watch.share_from(self.grading.elevated())
    }
}

impl Client {
    /// After a change that stays, what the client has shown since the alarm is no evidence.
    fn tolerate(&mut self, rules: &Rules) {
        self.ratios = self.tables.tolerant_ratios(&rules.hypotheses, &self.since_alarm);
        self.tolerates = true;
    }

    /// Once its symbols look as calibrated again, they are weighed as before.
    fn forgive(&mut self, rules: &Rules) {
        if self.tolerates && self.watch.variation(&self.tables.nominal) < Self::AS_CALIBRATED {
            self.ratios = self.tables.ratios(&rules.hypotheses);
            self.tolerates = false;
        }
    }

    const AS_CALIBRATED: f64 = 0.1;
}

fn enrol(grading: &Grading, rules: &Rules, enrolment: Enrolment, clients: usize) -> Client {
    let tables = enrolment.tables(grading, &rules.hypotheses);
    let joint = enrolment.informed.as_ref().map(|pairs| {
        let response = RandomisedResponse::new(grading.levels(), enrolment.epsilon);
        let tables = JointTables::new(grading, &rules.hypotheses, &pairs.counts, &response);
        Box::new(tables.ratios(&rules.hypotheses))
    });
    let (threshold, own_threshold) = thresholds(&enrolment, clients, rules.arl0);
    Client {
        odds: enrolment.odds(grading, &rules.hypotheses),
        raised: false,
        joint,
        threshold,
        own_threshold,
        ratios: tables.ratios(&rules.hypotheses),
        watch: Watch::new(&tables.nominal),
        tables,
        enrolment,
        cusum: Cusum::default(),
        alone: 0.0,
        quiet: 0.0,
        glows_until: 0,
        since_alarm: LevelCounts::new(grading.levels()),
        tolerates: false,
    }
}

/// b_m, and what its own symbols must come to besides where it sends pairs.
fn thresholds(enrolment: &Enrolment, clients: usize, arl0: f64) -> (f64, f64) {
    let own = alarm_threshold(&enrolment.tail, clients, arl0);
    match &enrolment.informed {
        Some(pairs) => (alarm_threshold(&pairs.tail, clients, arl0), own - OFTEN.ln()),
        None => (own, own),
    }
}

/// The index of the largest value; `favourite` if it is among the largest.
fn largest(values: &[f64], favourite: usize) -> usize {
    let mut best = favourite.min(values.len().saturating_sub(1));
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}

/// softmax(A), by differences from the largest so that nothing overflows.
fn softmax(values: &[f64], out: &mut [f64]) {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        out.fill(1.0 / values.len().max(1) as f64);
        return;
    }
    let mut total = 0.0;
    for (out, value) in out.iter_mut().zip(values) {
        *out = (value - largest).exp();
        total += *out;
    }
    for p in out {
        *p /= total;
    }
}
