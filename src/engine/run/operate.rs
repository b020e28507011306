//! Orders of operators: entered in the log by the annunciator, carried out here.

use jiff::Timestamp;

use super::super::knob::{Knob, Scope, Turn, Unsettable};
use super::alarms::gather;
use super::{Run, RunError};
use crate::fact::{Fact, Value};
use crate::incident::{Closed, Closing, Edit, OperatorAction, Order, Refusal};
use crate::privacy::{PrivacyError, Provenance};
use crate::server::Server;
use crate::session::privacy::BudgetSettings;
use crate::session::{Mode, Tau};
use crate::site::Site;
use crate::site::flags::{FlagRule, thresholds_at};

/// Why an order is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ActError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Unsettable(#[from] Unsettable),
    #[error("the other method is not carried along: start again with --mode")]
    NotAlong,
    #[error("the run has not begun")]
    NotBegun,
    #[error("the look-up has no new normal: raise τ of the client instead, or decide by evidence")]
    NoNewNormal,
    #[error(
        "{client} has sent values without noise, which no budget for the whole history covers: write \
         ε and the budget into the session and open it again"
    )]
    ToldBefore { client: String },
    #[error(
        "a budget stands, and it admits nothing without noise: take it away first (:budget none)"
    )]
    BudgetStands,
    #[error("{0}")]
    Released(String),
}

impl Run {
    /// A person enters the run here: what is over by now asks for nothing.
    pub(crate) fn enter_here(&mut self) {
        self.annunciator.enter_here();
    }

    /// Makes every setting known to the annunciator, with the value it starts from.
    pub(super) fn declare_knobs(&mut self) {
        for knob in Knob::all(self.layout.clients.len()) {
            let value = self.turned(knob).value();
            self.annunciator.declare(knob.name(self.annunciator.names()), value);
        }
    }

    pub(crate) fn turned(&self, knob: Knob) -> Turn {
        match knob.own_tau() {
            Some((client, which)) => knob.at(self.own_tau.get(client).and_then(|own| own[which])),
            None if knob == Knob::Mode => knob.at(self.mode),
            None => knob.as_written(&self.session),
        }
    }

    /// Carries out an order, wholly or not at all, and says what is new.
    pub(crate) fn act(&mut self, order: Order) -> Result<Vec<Fact>, ActError> {
        if self.steps == 0 {
            return Err(ActError::NotBegun);
        }
        match &order.action {
            OperatorAction::Accept { .. } if self.mode == Mode::Paper => {
                return Err(ActError::NoNewNormal);
            }
            OperatorAction::Set { what, to } => self.check(self.turn(what, to)?)?,
            OperatorAction::Undo { entry } => self.check_undo(*entry)?,
            OperatorAction::Accept { .. }
            | OperatorAction::Acknowledge { .. }
            | OperatorAction::Shelve { .. }
            | OperatorAction::Unshelve { .. }
            | OperatorAction::TakeOut { .. }
            | OperatorAction::PutBack { .. }
            | OperatorAction::Note { .. }
            | OperatorAction::Correct { .. } => {}
        }
        let receipt = self.annunciator.act(order)?;
        let edits = self.annunciator.log().event(receipt.entry).map(|event| event.edits.clone());
        let mut facts = receipt.facts;
        for edit in edits.unwrap_or_default() {
            match edit {
                Edit::Setting { what, to, .. } => {
                    if let Ok(turn) = self.turn(&what, &to)
                        && let Err(why) = self.apply(turn, &mut facts)
                    {
                        facts.push(self.quality(None, format!("{what} stays as it was: {why}")));
                    }
                }
                Edit::Closed { incident, to: Some(closed), .. } if was_accepted(closed) => {
                    self.take_as_normal(incident);
                }
                Edit::Closed { incident, from: Some(closed), to: None } if was_accepted(closed) => {
                    self.take_back(incident);
                }
                // The annunciator has made these.
                Edit::Closed { .. }
                | Edit::Alarm { .. }
                | Edit::Shelf { .. }
                | Edit::OutOfService { .. }
                | Edit::Note { .. }
                | Edit::Root { .. } => {}
            }
        }
        gather(&mut self.alarms, &facts);
        Ok(facts)
    }

    /// All members of an incident take what they show as normal.
    fn take_as_normal(&mut self, incident: u64) {
        let (now, period_s) = (self.now(), self.layout.period_s);
        let disturbance = self.annunciator.disturbance(incident);
        let members = self.annunciator.incident(incident).map(|incident| &incident.members);
        let members: Vec<(usize, usize)> = members
            .into_iter()
            .flatten()
            .map(|member| {
                let seconds = now.duration_since(member.onset).as_secs_f64();
                (member.client, (seconds / period_s).round() as usize + 1)
            })
            .collect();
        // Within one process a message always arrives.
        let _ = self.exchange.accept(&members, disturbance, now);
    }

    /// Takes an acceptance back: the incident is open again, and followed as long as there is evidence
    /// for it.
    fn take_back(&mut self, incident: u64) {
        let disturbance = self.annunciator.disturbance(incident);
        let members = self.annunciator.incident(incident).map(|incident| &incident.members);
        let members: Vec<usize> = members.into_iter().flatten().map(|m| m.client).collect();
        let followed = self.exchange.take_back(&members, disturbance, self.now());
        if !followed.unwrap_or(false) {
            self.annunciator.unfollow(incident);
        }
    }

    fn turn(&self, what: &str, to: &Value) -> Result<Turn, ActError> {
        let names = self.annunciator.names();
        let unknown = || Unsettable::Unknown(what.to_owned());
        Ok(Knob::named(what, names).ok_or_else(unknown)?.turn(to, names)?)
    }

    /// Whether a knob can be turned at all.
    fn check(&self, turn: Turn) -> Result<(), ActError> {
        let number = turn.to.number();
        let allowed = match turn.knob {
            Knob::Mode => {
                let along = turn.to.mode().is_some_and(|mode| self.exchange.of(mode).is_some());
                return if along { Ok(()) } else { Err(ActError::NotAlong) };
            }
            Knob::EpsilonFlag if number.is_none() && self.session.privacy.budget.is_some() => {
                return Err(ActError::BudgetStands);
            }
            Knob::EpsilonFlag => {
                let mut sites = self.exchange.sites().iter();
                sites.try_for_each(|site| site.check_epsilon(number))
            }
            Knob::Budget => self.budget_of(number).map(|_| ()),
            Knob::Delta => number.map_or(Ok(()), |delta| {
                self.ledgers().try_for_each(|ledger| ledger.check_delta(delta, self.now()))
            }),
            Knob::TauC(_)
            | Knob::TauA(_)
            | Knob::Vote
            | Knob::Deadband
            | Knob::Arl0
            // Every value that the knob can have is one that a flag can have.
            | Knob::EpsilonFlagA
            | Knob::EpsilonC
            | Knob::EpsilonA
            | Knob::EpsilonG => Ok(()),
        };
        allowed.map_err(|why| {
            // Whatever the number: the user has to know what to do instead.
            if let PrivacyError::BelowSpent { client, spent, .. } = &why
                && spent.is_infinite()
            {
                return ActError::ToldBefore { client: client.clone() };
            }
            ActError::Released(why.to_string())
        })
    }

    /// What was spent since an entry was made may forbid to go back to the value before it.
    fn check_undo(&self, entry: u64) -> Result<(), ActError> {
        let event = self.annunciator.log().event(entry);
        for edit in event.iter().flat_map(|event| &event.edits) {
            if let Edit::Setting { what, to, .. } = edit.inverse() {
                self.check(self.turn(&what, &to)?)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, turn: Turn, facts: &mut Vec<Fact>) -> Result<(), RunError> {
        self.tuned = true;
        let (period_s, now, number) = (self.layout.period_s, self.now(), turn.to.number());
        match turn.knob {
            Knob::TauC(_) | Knob::TauA(_) => set_own(&mut self.own_tau, turn),
            Knob::Vote => {
                for server in self.exchange.servers_mut() {
                    server.set_vote(turn.to.vote());
                }
            }
            Knob::Arl0 => {
                let seconds = number.unwrap_or(self.session.thresholds.arl0.seconds);
                for server in self.exchange.servers_mut() {
                    server.set_arl0(seconds / period_s);
                }
            }
            Knob::Mode => self.change_mode(turn.to.mode().unwrap_or(self.mode), facts)?,
            Knob::EpsilonFlag => {
                self.exchange.each_site(|site, send| site.set_epsilon(number, send))?;
            }
            Knob::EpsilonFlagA => {
                for site in self.exchange.sites_mut() {
                    site.set_epsilon_a(number)?;
                }
            }
            Knob::Delta => {
                let delta = number.unwrap_or(self.session.privacy.delta);
                for site in self.exchange.sites_mut() {
                    site.set_delta(delta, now)?;
                }
            }
            Knob::Budget => {
                let budget = self.budget_of(number)?;
                // Either all change or none: each was asked before.
                for site in self.exchange.sites_mut() {
                    site.set_budget(budget, now)?;
                }
                let form = self.budget;
                let settings = number.map(|epsilon| BudgetSettings { epsilon, ..form });
                self.session.privacy.budget = settings;
            }
            Knob::Deadband | Knob::EpsilonC | Knob::EpsilonA | Knob::EpsilonG => {}
        }
        // The session keeps the method and the form of the budget that it was opened with.
        if !matches!(turn.knob, Knob::Mode | Knob::Budget) {
            turn.write_to(&mut self.session);
        }
        if matches!(turn.knob, Knob::EpsilonFlag | Knob::EpsilonFlagA) {
            if number.is_some() && Provenance::of(&self.session) != Provenance::Seeded {
                self.exchange.protects();
            }
            if !self.session.privacy.tells_faults() {
                self.exchange.servers_mut().for_each(Server::forget_faults);
            }
        }
        let privacy = &self.session.privacy;
        self.exchange.recall_epsilon(privacy.epsilon_flag, privacy.epsilon_flag_a);
        let rules = self.rules_with(None);
        if turn.knob.row().scope == Scope::Flags && !rules.is_empty() {
            self.thresholds = rules.iter().map(|rule| rule.thresholds).collect();
            for (site, rule) in self.exchange.sites_mut().iter_mut().zip(rules) {
                site.set_rule(rule);
            }
        }
        Ok(self.pin_memory_for_deadband(now)?)
    }

    /// Open incidents belong to the method that found them.
    fn change_mode(&mut self, mode: Mode, facts: &mut Vec<Fact>) -> Result<(), RunError> {
        let rules = self.rules_with(None);
        self.exchange.change_mode(mode, &rules)?;
        self.mode = mode;
        facts.append(&mut self.annunciator.change_mode(mode));
        Ok(())
    }

    /// A raised flag that falls late reveals what raised it, however long ago that was.
    pub(super) fn pin_memory_for_deadband(&mut self, now: Timestamp) -> Result<(), PrivacyError> {
        if self.mode == Mode::Paper && self.session.thresholds.deadband < 1.0 {
            for site in self.exchange.sites_mut() {
                site.never_forget(now)?;
            }
        }
        Ok(())
    }

    /// When each client is flagged, with one knob turned on trial.
    pub(super) fn rules_with(&self, trial: Option<Turn>) -> Vec<FlagRule> {
        self.rules_of(self.exchange.kept_sites(), trial)
    }

    /// The same for sites that are held elsewhere; none where there are none.
    pub(super) fn rules_of(&self, sites: &[Site], trial: Option<Turn>) -> Vec<FlagRule> {
        let (mut session, mut own) = (self.session.clone(), self.own_tau.clone());
        if let Some(turn) = trial {
            turn.write_to(&mut session);
            set_own(&mut own, turn);
        }
        let common = [session.thresholds.tau_c, session.thresholds.tau_a];
        let deadband = session.thresholds.deadband;
        let tau = |m: usize, which: usize| own[m][which].unwrap_or(common[which]);
        sites
            .iter()
            .enumerate()
            .map(|(m, site)| FlagRule {
                thresholds: thresholds_at(site.prepared(), [tau(m, 0), tau(m, 1)]),
                deadband: deadband as f32,
            })
            .collect()
    }
}

/// Sets a client's own τ, where the knob is one.
fn set_own(own: &mut [[Option<Tau>; 2]], turn: Turn) {
    if let Some((client, which)) = turn.knob.own_tau() {
        own[client][which] = turn.to.tau();
    }
}

fn was_accepted(closed: Closed) -> bool {
    closed.why == Closing::Accepted
}
