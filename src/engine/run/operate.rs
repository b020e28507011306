//! What an operator orders: entered in the log by the annunciator, carried out here.

use jiff::Timestamp;

use super::knob::{Knob, Turn, Unsettable};
use super::{Run, RunError};
use crate::fact::{Fact, Value};
use crate::incident::{Action, Closed, Closing, Edit, Order, Refusal};
use crate::privacy::{Budget, PrivacyError};
use crate::server::Server;
use crate::session::privacy::BudgetSettings;
use crate::session::{Mode, Tau};
use crate::site::flags::{FlagRule, thresholds_at};

/// Why an order is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ActError {
    /// The state of things does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A setting cannot have that value.
    #[error(transparent)]
    Unsettable(#[from] Unsettable),
    /// A method that is not carried along cannot decide.
    #[error("the other method is not carried along: start again with --mode")]
    NotAlong,
    /// Nothing has been seen yet.
    #[error("the run has not begun")]
    NotBegun,
    /// The published method has none.
    #[error("the look-up has no new normal: raise τ of the client instead, or decide by evidence")]
    NoNewNormal,
    /// What was released does not allow it.
    #[error("{0}")]
    Released(String),
}

impl Run {
    /// Makes every setting known to the annunciator, with the value it starts from.
    pub(super) fn declare_knobs(&mut self) {
        for knob in Knob::all(self.layout.clients.len()) {
            let value = self.turned(knob).value();
            self.annunciator.declare(knob.name(self.annunciator.names()), value);
        }
    }

    /// How a knob stands.
    pub(crate) fn turned(&self, knob: Knob) -> Turn {
        let (tau, privacy) = (&self.session.thresholds, &self.session.privacy);
        let own = |client: usize, which: usize| self.own_tau.get(client).and_then(|t| t[which]);
        match knob {
            Knob::TauC(None) => Turn::TauC(None, Some(tau.tau_c)),
            Knob::TauA(None) => Turn::TauA(None, Some(tau.tau_a)),
            Knob::TauC(Some(m)) => Turn::TauC(Some(m), own(m, 0)),
            Knob::TauA(Some(m)) => Turn::TauA(Some(m), own(m, 1)),
            Knob::Vote => Turn::Vote(tau.vote),
            Knob::Deadband => Turn::Deadband(tau.deadband),
            Knob::Arl0 => Turn::Arl0(tau.arl0.seconds),
            Knob::Mode => Turn::Mode(self.mode),
            Knob::EpsilonFlag => Turn::EpsilonFlag(privacy.epsilon_flag),
            Knob::EpsilonC => Turn::EpsilonC(privacy.epsilon_c),
            Knob::EpsilonA => Turn::EpsilonA(privacy.epsilon_a),
            Knob::EpsilonG => Turn::EpsilonG(privacy.epsilon_g),
            Knob::Delta => Turn::Delta(privacy.delta),
            Knob::Budget => Turn::Budget(privacy.budget.map(|budget| budget.epsilon)),
        }
    }

    /// Carries out an order, wholly or not at all, and says what is new.
    pub(crate) fn act(&mut self, order: Order) -> Result<Vec<Fact>, ActError> {
        if self.steps == 0 {
            return Err(ActError::NotBegun);
        }
        match &order.action {
            Action::Accept { .. } if self.mode == Mode::Paper => return Err(ActError::NoNewNormal),
            Action::Set { what, to } => self.check(self.turn(what, to)?)?,
            Action::Undo { entry } => self.check_undo(*entry)?,
            _ => {}
        }
        let receipt = self.annunciator.act(order)?;
        let edits = self.annunciator.log().entry(receipt.entry).map(|entry| entry.edits.clone());
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
                _ => {}
            }
        }
        self.alarms.hear_all(&facts);
        Ok(facts)
    }

    /// Whoever takes part in an incident lives with what it shows.
    fn take_as_normal(&mut self, incident: u64) {
        let (now, period_s) = (self.now(), self.layout.period_s);
        let episode = self.annunciator.episode(incident);
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
        let _ = self.exchange.accept(&members, episode, now);
    }

    /// It does not: the incident is open again, and followed as long as there is evidence for it.
    fn take_back(&mut self, incident: u64) {
        let episode = self.annunciator.episode(incident);
        let members = self.annunciator.incident(incident).map(|incident| &incident.members);
        let members: Vec<usize> = members.into_iter().flatten().map(|m| m.client).collect();
        let followed = self.exchange.take_back(&members, episode, self.now());
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
        let along = |is: bool| if is { Ok(()) } else { Err(ActError::NotAlong) };
        let allowed = match turn {
            Turn::Mode(mode) => return along(self.exchange.of(mode).is_some()),
            Turn::EpsilonFlag(epsilon) => {
                let mut sites = self.exchange.sites().iter();
                sites.try_for_each(|site| site.check_epsilon(epsilon))
            }
            Turn::Budget(epsilon) => self.check_budget(epsilon),
            Turn::Delta(delta) => {
                self.ledgers().try_for_each(|ledger| ledger.check_delta(delta, self.now()))
            }
            _ => Ok(()),
        };
        allowed.map_err(|why| ActError::Released(why.to_string()))
    }

    /// What was spent since an entry was made may forbid to go back to the value before it.
    fn check_undo(&self, entry: u64) -> Result<(), ActError> {
        let entry = self.annunciator.log().entry(entry);
        for edit in entry.iter().flat_map(|entry| &entry.edits) {
            if let Edit::Setting { what, to, .. } = edit.inverse() {
                self.check(self.turn(&what, &to)?)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, turn: Turn, facts: &mut Vec<Fact>) -> Result<(), RunError> {
        self.tuned = true;
        let (period_s, now) = (self.layout.period_s, self.now());
        let (tau, privacy) = (&mut self.session.thresholds, &mut self.session.privacy);
        match turn {
            Turn::TauC(None, Some(to)) => tau.tau_c = to,
            Turn::TauA(None, Some(to)) => tau.tau_a = to,
            Turn::TauC(Some(m), to) => self.own_tau[m][0] = to,
            Turn::TauA(Some(m), to) => self.own_tau[m][1] = to,
            // Every client needs one.
            Turn::TauC(None, None) | Turn::TauA(None, None) => {}
            Turn::Vote(vote) => tau.vote = vote,
            Turn::Deadband(share) => tau.deadband = share,
            Turn::Arl0(seconds) => {
                tau.arl0.seconds = seconds;
                for server in self.exchange.servers_mut() {
                    server.set_arl0(seconds / period_s);
                }
            }
            Turn::Mode(mode) => self.change_mode(mode, facts)?,
            Turn::EpsilonFlag(epsilon) => {
                self.exchange.each_site(|site, send| site.set_epsilon(epsilon, send))?;
                privacy.epsilon_flag = epsilon;
                if !privacy.tells_faults() {
                    self.exchange.servers_mut().for_each(Server::forget_faults);
                }
            }
            Turn::EpsilonC(epsilon) => privacy.epsilon_c = epsilon,
            Turn::EpsilonA(epsilon) => privacy.epsilon_a = epsilon,
            Turn::EpsilonG(epsilon) => privacy.epsilon_g = epsilon,
            Turn::Delta(delta) => {
                for site in self.exchange.sites_mut() {
                    site.set_delta(delta, now)?;
                }
                privacy.delta = delta;
            }
            Turn::Budget(epsilon) => {
                let settings = epsilon.map(|epsilon| BudgetSettings { epsilon, ..self.budget });
                let budget = settings.map(Budget::try_from).transpose()?;
                // Either all change or none: each was asked before.
                for site in self.exchange.sites_mut() {
                    site.set_budget(budget, now)?;
                }
                privacy.budget = settings;
            }
        }
        if let Turn::Vote(vote) = turn {
            for server in self.exchange.servers_mut() {
                server.set_vote(vote);
            }
        }
        if turn.knob().judges_flags() {
            let rules = self.rules_with(None);
            self.thresholds = rules.iter().map(|rule| rule.thresholds).collect();
            for (site, rule) in self.exchange.sites_mut().iter_mut().zip(rules) {
                site.set_rule(rule);
            }
        }
        Ok(self.pin_memory_for_deadband(now)?)
    }

    /// What is open belongs to the method that found it.
    fn change_mode(&mut self, mode: Mode, facts: &mut Vec<Fact>) -> Result<(), RunError> {
        let rules = self.rules_with(None);
        self.exchange.change_mode(mode, &rules)?;
        self.mode = mode;
        facts.append(&mut self.annunciator.change_mode(mode));
        Ok(())
    }

    /// A raised flag that falls late tells of whatever raised it, however long ago that was.
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
        let mut deadband = self.session.thresholds.deadband;
        let mut common = [self.session.thresholds.tau_c, self.session.thresholds.tau_a];
        let mut own = self.own_tau.clone();
        match trial {
            Some(Turn::TauC(None, Some(tau))) => common[0] = tau,
            Some(Turn::TauA(None, Some(tau))) => common[1] = tau,
            Some(Turn::TauC(Some(m), tau)) => own[m][0] = tau,
            Some(Turn::TauA(Some(m), tau)) => own[m][1] = tau,
            Some(Turn::Deadband(to)) => deadband = to,
            _ => {}
        }
        let tau = |m: usize, which: usize| -> Tau { own[m][which].unwrap_or(common[which]) };
        let sites = self.exchange.sites().iter().enumerate();
        sites
            .map(|(m, site)| FlagRule {
                thresholds: thresholds_at(site.prepared(), [tau(m, 0), tau(m, 1)]),
                deadband: deadband as f32,
            })
            .collect()
    }
}

fn was_accepted(closed: Closed) -> bool {
    closed.why == Closing::Accepted
}
