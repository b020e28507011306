//! The server's half of evidence mode: the symbols of all clients in, incidents out.
//!
//! ```text
//! idle   S_m = max(0, S_m + λ^RC_m)           alarm when S_m > b_m
//! open   A_m = Σ from the onset on of λ^RC_m + Σ over whom m reaches of λ^PE     never floored
//!        root = argmax A, final a few steps after the alarm; posterior = softmax A
//!        E = max(0, E − H_root)               closed when E > 4
//! ```
//!
//! Detection is floored, so that it forgets; attribution is not, since flooring each hypothesis by
//! itself would destroy their order. A missing report contributes nothing. The server sees symbols and
//! enrolments, nothing else.
//!
//! # One disturbance, one incident
//!
//! What opens and closes as above is an *episode*. For each client evidence of recovery is added up,
//! B_m ← clamp(B_m + ln N/D, 0, 2·[`Rules::recovery`]), where D is Beta([`Rules::disturbed`]). When an
//! episode ends, its incident *stands* until everybody who took part has recovered. An episode that
//! opens meanwhile continues it, if its root is a member that has not recovered, or reaches one, or is
//! reached by one. Number, root and history stay; that it continues is said. A member that is declared
//! to lie on no loop and had recovered before its new evidence began opens an incident of its own, and
//! so does a root that fades and swells again inside its episode ([`resurgence`]). Where a member of
//! an open episode becomes nearly quiet and is disturbed again, that is announced ([`again`]).
//!
//! # Revision
//!
//! A final root is revised if, within [`Rules::revision`] steps of the alarm, a client alarms that
//! reaches the root and that the root does not reach: it explains the root and the root cannot
//! explain it.
//!
//! # What a root can explain
//!
//! Others join an incident once their evidence is enough: little of it from a client that the root is
//! declared to reach, and from anybody else so much that chance seldom makes an effect of a bystander.
//! Where the session declares who reaches whom, a client that alarms, that neither the root nor
//! anybody else who stirs can reach, and that cannot explain the root, has a fault of its own ([`Inference::has_own_fault`]): it is no effect,
//! and stays on watch when the incident closes.
//!
//! # What a neighbour explains
//!
//! In tier 2 a client also tells what of its step one other client, its explainer, does not explain.
//! Those second symbols are added up like the first, L_m beside S_m. A client that alarms while L_m
//! stays low is explained, and as long as all who alarm are explained an incident is *held back*: it is
//! followed, and not said. How much is explained is shown beside an effect.
//!
//! Second symbols do nothing else. When an incident begins and ends and whom it names is decided as if
//! there were none, so whatever a client says about its state, every root that is named is one that
//! tier 1 names on the same first symbols. A lying client can still suppress the alarm of one neighbour that it
//! explains, as long as nobody else alarms.

mod accident;
mod affected;
mod again;
mod asked;
mod client;
mod posterior;
mod resurgence;
mod revision;
mod rules;
mod standing;
#[cfg(test)]
mod tests;

pub(crate) use crate::server::disturbance::{Affected, Closing, Disturbance};
pub(crate) use rules::Rules;

use self::again::Again;
use self::client::{Client, Weights};
use self::posterior::{largest, softmax};
use self::resurgence::Resurgence;
use self::standing::Stands;
use super::health::{Report, Standing};
use super::reach::Reach;
use crate::evidence::enrolment::Enrolment;
use crate::evidence::symbol::Grading;

/// Steps that an onset may lie back.
const LOOK_BACK: usize = 64;

/// What is new after a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Opened(Disturbance),
    /// The root is final; it may be another than at the alarm.
    Frozen(Disturbance),
    /// What stood has begun again.
    Continued(Disturbance),
    /// A final root was revised.
    Revised(Disturbance),
    /// Its evidence has ended. It stands until everybody who took part has recovered.
    Ended(Disturbance, Closing),
    /// It is over.
    Closed(Disturbance, Closing),
}

/// An open episode and what is added up for it.
#[derive(Debug, Clone)]
struct Open {
    /// The incident that it is an episode of.
    incident: Disturbance,
    /// Whether it has been said: not as long as everything is explained.
    said: bool,
    /// The root of this episode: that of the incident, unless it continues one.
    root: Option<usize>,
    /// That root is final.
    frozen: bool,
    /// Since when it is followed.
    since: u64,
    /// The step of its incident's alarm. It may be shown later.
    alarmed: u64,
    /// A_m.
    attribution: Vec<f64>,
    /// E.
    against: f64,
    /// How its root fades and swells again.
    resurgence: Resurgence,
    /// How each of its members becomes quiet and is disturbed again.
    members: Vec<Option<Again>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Inference {
    grading: Grading,
    rules: Rules,
    reach: Reach,
    clients: Vec<Client>,
    /// H_m of the last steps, a ring of rows of M.
    recent: Vec<f64>,
    step: u64,
    incidents: u64,
    open: Option<Open>,
    /// The incident whose last episode has ended and whose clients have not all recovered.
    stands: Option<Stands>,
    /// What an operator accepted last.
    accepted: Option<Open>,
    changes: Vec<Change>,
    // Of this step.
    own: Vec<f64>,
    felt: Vec<f64>,
    fades: Vec<f64>,
    calms: Vec<f64>,
}

impl Inference {
    /// A server that has heard of these clients and nothing yet from them.
    #[cfg(test)]
    pub(crate) fn new(
        grading: Grading,
        rules: Rules,
        enrolments: &[Enrolment],
        reach: Reach,
    ) -> Self {
        let enrolments: Vec<_> = enrolments.iter().cloned().map(Some).collect();
        Self::among(grading, rules, &enrolments, reach).expect("somebody has enrolled")
    }

    /// The same where not all have enrolled; none where nobody has. What is decided is what would be
    /// decided without those who are not here.
    pub(crate) fn among(
        grading: Grading,
        rules: Rules,
        enrolments: &[Option<Enrolment>],
        reach: Reach,
    ) -> Option<Self> {
        let m = enrolments.len();
        let reach = if reach.clients() == m { reach } else { Reach::unknown(m) };
        let of = (m, enrolments.iter().flatten().count());
        // Who is not here says nothing, so that it does not matter whose tables stand in its place.
        let stands_in = enrolments.iter().flatten().next()?;
        let enrolled = enrolments.iter().enumerate().map(|(at, enrolment)| {
            let tables = enrolment.clone().unwrap_or_else(|| stands_in.clone());
            let mut client = Client::enrol(&grading, &rules, tables, at, of);
            client.is_here = enrolment.is_some();
            client
        });
        let clients = enrolled.collect();
        Some(Self {
            grading,
            rules,
            reach,
            clients,
            recent: vec![0.0; LOOK_BACK * m],
            step: 0,
            incidents: 0,
            open: None,
            stands: None,
            accepted: None,
            changes: Vec::new(),
            own: vec![0.0; m],
            felt: vec![0.0; m],
            fades: vec![0.0; m],
            calms: vec![0.0; m],
        })
    }

    /// Takes the reports of the next step, one a client, and says what is new.
    pub(crate) fn step(&mut self, reports: &[Report]) -> &[Change] {
        self.changes.clear();
        self.step += 1;
        self.weigh(reports);
        self.remember();
        if self.open.is_some() {
            self.follow();
        } else {
            self.detect();
        }
        self.stand();
        &self.changes
    }

    /// Ratios of this step; zero for whoever says nothing or is not to be believed.
    fn weigh(&mut self, reports: &[Report]) {
        let elevated = self.grading.elevated();
        for (m, client) in self.clients.iter_mut().enumerate() {
            // Whoever has not enrolled is not heard.
            let report = reports.get(m).copied().filter(|_| client.is_here).unwrap_or_default();
            client.raised = match report {
                Report::Raised(_) => true,
                Report::Symbol(_) | Report::Severe(..) | Report::Informed(..) | Report::Invalid => {
                    client.raised
                }
                Report::Quiet | Report::Missing => false,
            };
            // What a raised watch sends was chosen by its data, and does not show how it stands.
            let is_level = report.own().is_some();
            let judged = if client.raised && is_level { Report::Missing } else { report };
            let standing = client.watch.step(judged, &client.tables.nominal, elevated);
            client.strikes.step(report, self.grading.highest(), self.step);
            let is_silent = matches!(report, Report::Missing | Report::Invalid);
            client.silent = if is_silent { client.silent + 1 } else { 0 };
            let heard = standing != Standing::Unreliable;
            let weights = if heard { client.weigh(report) } else { Weights::default() };
            (self.own[m], self.felt[m]) = (weights.root_cause, weights.propagated_effect);
            if heard {
                client.recover(report, &self.rules);
            }
            self.fades[m] = if heard { client.fades(report) } else { 0.0 };
            self.calms[m] = if heard { client.calms(report, weights) } else { 0.0 };
            client.quiet = (client.quiet - self.own[m]).max(0.0);
            if client.quiet > self.rules.closing_evidence {
                client.glows_until = 0;
            }
            if self.step >= client.glows_until && heard {
                client.add(weights, self.step);
            } else {
                client.forget(self.step);
            }
            if client.cusum.value() == 0.0 {
                client.had_recovered = client.recovered > self.rules.recovery;
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
            if !client.is_candidate() {
                *a = f64::NEG_INFINITY;
            }
        }
        for client in &mut self.clients {
            client.quiet = 0.0;
        }
        self.clients[winner].recovered = 0.0;
        let (named, values, tied) = self.leader(&attribution, winner, self.step);
        let root = self.nameable(named).filter(|_| tied.is_empty());
        let continued = self.continued(root.unwrap_or(winner));
        let said = continued.as_ref().is_some_and(|stands| stands.said);
        let alarmed = continued.as_ref().map_or(self.step, |stands| stands.alarmed);
        let mut incident = continued.map_or_else(
            || Disturbance::new(onset, self.step, root, winner, m),
            |stands| stands.incident.again(root),
        );
        incident.would_now_say = root;
        softmax(values.as_ref().unwrap_or(&attribution), &mut incident.posterior);
        incident.tied = tied;
        if said {
            self.changes.push(Change::Continued(incident.clone()));
        }
        let since = self.step;
        let mut open = Open {
            incident,
            said,
            root,
            frozen: false,
            since,
            alarmed,
            attribution,
            against: 0.0,
            resurgence: Resurgence::default(),
            members: Vec::new(),
        };
        self.join_affected(&mut open);
        self.say(&mut open);
        self.open = Some(open);
    }

    /// A root is named only if no client that could explain it is beyond belief.
    fn nameable(&self, root: usize) -> Option<usize> {
        let explained = (0..self.clients.len())
            .any(|other| !self.clients[other].is_heard() && self.reach.reaches(other, root));
        (!explained).then_some(root)
    }

    /// Who leads, what speaks for each client where several were struck at once, and who may be the root
    /// where no client then leads clearly.
    fn leader(
        &self,
        attribution: &[f64],
        favourite: usize,
        alarm: u64,
    ) -> (usize, Option<Vec<f64>>, Vec<usize>) {
        let leader = largest(attribution, favourite);
        let Some(values) = self.struck_together(attribution, leader, alarm) else {
            return (leader, None, Vec::new());
        };
        let tied = accident::tied(&values);
        (largest(&values, leader), Some(values), tied)
    }

    fn follow(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let m = self.clients.len();
        let from = (self.step as usize % LOOK_BACK) * m;
        for (n, a) in open.attribution.iter_mut().enumerate() {
            *a += self.recent[from + n];
            if !self.clients[n].is_candidate() {
                *a = f64::NEG_INFINITY;
            }
        }
        let incident = &mut open.incident;
        let favourite = open.root.unwrap_or(0);
        let (leader, values, tied) = if open.frozen {
            (largest(&open.attribution, favourite), None, Vec::new())
        } else {
            self.leader(&open.attribution, favourite, open.since)
        };
        // That a root is no longer believed is no reason to blame another. A tie stays one.
        let stays_tied = open.frozen && !incident.tied.is_empty();
        if !stays_tied && open.root.is_none_or(|root| self.clients[root].is_heard()) {
            softmax(values.as_ref().unwrap_or(&open.attribution), &mut incident.posterior);
            incident.would_now_say = self.nameable(leader).filter(|_| tied.is_empty());
            if !open.frozen {
                incident.tied = tied;
                open.root = incident.would_now_say;
                incident.follow(open.root);
            }
        }
        let followed = open.root.unwrap_or(leader);
        open.against = (open.against - self.recent[from + followed]).max(0.0);
        if open.against == 0.0 {
            incident.last_evidence = self.step;
        }
        self.join_affected(&mut open);
        self.say(&mut open);
        let age = self.step - open.since;
        if !open.frozen && age >= self.rules.freeze_after {
            open.frozen = true;
            if let Some(values) = values {
                open.attribution = values;
            }
            if !open.incident.frozen {
                open.incident.frozen = true;
                if open.said {
                    self.changes.push(Change::Frozen(open.incident.clone()));
                }
            }
        }
        self.revise(&mut open);
        let Some(mut open) = self.resurge(open) else { return };
        self.announce_again(&mut open);
        let followed = open.root.unwrap_or(leader);
        let root = &self.clients[followed];
        let closing = if !root.is_heard() {
            Some(Closing::Unreliable)
        } else if root.silent >= root.patience(&self.rules) {
            Some(Closing::NoData)
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

    /// Whether somebody alarms whom nobody explains.
    fn is_unexplained(&self) -> bool {
        self.clients.iter().any(|c| c.beyond().is_some() && c.explained_by().is_none())
    }

    /// Says what is open once there is something that nobody explains.
    fn say(&mut self, open: &mut Open) {
        if !open.said && self.is_unexplained() {
            open.said = true;
            self.incidents += 1;
            (open.incident.number, open.incident.opened) = (self.incidents, self.step);
            self.changes.push(Change::Opened(open.incident.clone()));
        }
    }

    fn close(&mut self, mut open: Open, closing: Closing) {
        self.let_go(&mut open, closing);
        open.incident.frozen = true;
        let stands =
            matches!(closing, Closing::Quiet | Closing::PersistentChange | Closing::Unreliable);
        if stands {
            self.begin_to_stand(open, closing);
            return;
        }
        if open.said {
            self.changes.push(Change::Closed(open.incident.clone(), closing));
        }
        self.accepted = (closing == Closing::Accepted).then_some(open);
    }

    /// What clients have shown in an episode speaks for nothing more.
    fn let_go(&mut self, open: &mut Open, closing: Closing) {
        let incident = &mut open.incident;
        for n in 0..self.clients.len() {
            // What was never an effect of this is not over with it.
            if self.is_not_of(incident, open.root, n) && closing != Closing::EndOfRun {
                incident.affected.retain(|effect| effect.client != n);
                continue;
            }
            let affected = incident.affected.iter().any(|effect| effect.client == n);
            let (step, rules) = (self.step, &self.rules);
            let client = &mut self.clients[n];
            if affected && client.quiet <= rules.closing_evidence {
                client.glows_until = step + rules.afterglow;
            }
            client.forget(step);
        }
    }
}
