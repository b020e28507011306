//! The run so far as it would have been with one knob turned.
//!
//! | knob | who answers |
//! |---|---|
//! | vote, ARL0 | the server decides again on the same messages |
//! | mode | the server on the same messages, or the rehearsal of the other method where that is free |
//! | τ, dead-band | each site flags its own distances again, and a fresh server receives the flags |
//! | ε of symbols and flags, of Z_a | each site releases its run again, and a fresh server receives that |
//!
//! Where ε was changed on the way, every message is read by the ε it was sent with; what sites
//! send again is sent with the ε that stands now.
//!
//! Sending again is free in a seeded run and where nothing was ever protected; otherwise it is paid for in the sites'
//! ledgers, and only when that was agreed to ([`Run::what_if_paid`]).

use jiff::Timestamp;

use super::super::knob::{Knob, Turn};
use super::alarms::gather;
use super::{Run, annunciator};
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::incident::{Annunciator, Closing, Step};
use crate::score::{Alarm, Alarms, Score};
use crate::server::Server;
use crate::session::Mode;
use crate::site::Trial;
use crate::site::again::{Again, AgainError, Paying, Settled};
use crate::site::flags::FlagRule;
use crate::wire::{Memory, Tick, Wire as _};

/// The run so far, decided under some setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WhatIf {
    pub(crate) alarms: usize,
    /// When each alarm opened, and the root it names.
    pub(crate) opened: Vec<(Timestamp, Option<String>)>,
    /// Where the data has labels.
    pub(crate) score: Option<Score>,
    pub(crate) thresholds: Vec<FlagThresholds>,
    /// The flags of every step so far, a row of clients a step; empty where they are not kept.
    pub(crate) flags: Vec<Option<Flags>>,
}

/// Why a trial has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("it only concerns what is still to come")]
    StillToCome,
    #[error("nothing is kept to decide again on")]
    NothingKept,
    #[error("the recording holds no models that this program can read: open the session instead")]
    NoModels,
    #[error(
        "the recording holds nothing that {} would be decided by: the run carried one method along",
        method(*.0)
    )]
    NotRecorded(Mode),
    #[error("it shapes the models: train the session with it, and run that")]
    Training,
    #[error("it changes how releases are counted, and nothing that is decided")]
    OnlyCounts,
    #[error(
        "what a budget would have let through follows from the ledger step by step, which a recording \
         holds by the hour: open the session instead"
    )]
    Budget,
    #[error("evidence mode does not decide by it")]
    NotOfEvidence,
    #[error("paper mode does not decide by it")]
    NotOfPaper,
    #[error(transparent)]
    Again(#[from] AgainError),
}

fn method(mode: Mode) -> &'static str {
    match mode {
        Mode::Evidence => "evidence mode",
        Mode::Paper => "paper mode",
    }
}

impl Run {
    /// The run so far under the settings that stand now: what a trial is held against. Where one was
    /// changed on the way this is not what the run found.
    pub(crate) fn so_far(&self) -> WhatIf {
        let again = if self.tuned { self.what_if(Knob::Mode.at(self.mode)).ok() } else { None };
        again.unwrap_or_else(|| {
            self.outlook(self.alarms.list(), self.thresholds.clone(), Vec::new())
        })
    }

    /// The run so far as it would have been with one knob turned from its start, the others as they
    /// stand.
    pub(crate) fn what_if(&self, turn: Turn) -> Result<WhatIf, NoAnswer> {
        let (outlook, _) = self.tried(turn, false)?;
        Ok(outlook)
    }

    /// The same where it costs something: what sites release again is entered in their ledgers.
    pub(crate) fn what_if_paid(&mut self, turn: Turn) -> Result<WhatIf, NoAnswer> {
        let (outlook, settled) = self.tried(turn, true)?;
        for (site, settled) in self.exchange.sites_mut().iter_mut().zip(settled) {
            site.settle(settled);
        }
        Ok(outlook)
    }

    fn tried(&self, turn: Turn, pay: bool) -> Result<(WhatIf, Vec<Settled>), NoAnswer> {
        let is_recorded = self.exchange.is_recorded();
        let mode = turn.to.mode().unwrap_or(self.mode);
        let rules = self.rules_with(Some(turn));
        let heard = self.exchange.of(mode).ok_or(NoAnswer::NothingKept)?;
        let ticks = heard.ticks().ok_or(NoAnswer::NothingKept)?;
        let start = self.spans.first().ok_or(NoAnswer::NothingKept)?.0;
        let again = Decided { ticks, annunciator: annunciator(&self.layout, mode, start) };
        let mut settled = Vec::new();
        let sites_answer = match turn.knob {
            Knob::Vote | Knob::Arl0 => false,
            // The other method was rehearsed: what it gives away is not paid for.
            Knob::Mode => mode != self.mode && (is_recorded || !self.exchange.repeats_freely()),
            // Flags say nothing to the sequential decision.
            Knob::TauC(_) | Knob::TauA(_) | Knob::Deadband | Knob::EpsilonFlagA => {
                mode == Mode::Paper
            }
            Knob::EpsilonFlag => true,
            Knob::EpsilonC | Knob::EpsilonA | Knob::EpsilonG | Knob::Delta | Knob::Budget => {
                return Err(NoAnswer::StillToCome);
            }
        };
        if is_recorded && sites_answer {
            self.exchange.can_send_again(mode)?;
        }
        let server = self.server_with(heard, turn);
        let alarms = if sites_answer {
            let privacy = &self.session.privacy;
            let tried = |knob, now| if turn.knob == knob { turn.to.number() } else { now };
            let epsilon = [
                tried(Knob::EpsilonFlag, privacy.epsilon_flag),
                tried(Knob::EpsilonFlagA, privacy.epsilon_flag_a),
            ];
            let paying = if pay { Paying::WhereItCosts } else { Paying::Never };
            let (alarms, costs) = self.sent_again(mode, epsilon, &rules, again, server, paying)?;
            settled = costs;
            alarms
        } else {
            again.by(server, |server, t| server.hear_again(heard, t))
        };
        let thresholds = if rules.is_empty() {
            self.thresholds.clone()
        } else {
            rules.iter().map(|rule| rule.thresholds).collect()
        };
        let flags = self.flags_by(&rules);
        Ok((self.outlook(alarms.list(), thresholds, flags), settled))
    }

    /// A server before the first step, with one knob turned.
    fn server_with(&self, heard: &Server, turn: Turn) -> Server {
        let mut server = heard.afresh();
        if turn.knob == Knob::Vote {
            server.set_vote(turn.to.vote());
        }
        if let (Knob::Arl0, Some(seconds)) = (turn.knob, turn.to.number()) {
            server.set_arl0(seconds / self.layout.period_s);
        }
        server
    }

    /// Lets every site send its run again to `server`.
    fn sent_again(
        &self,
        mode: Mode,
        [epsilon, epsilon_a]: [Option<f64>; 2],
        rules: &[FlagRule],
        again: Decided<'_>,
        mut server: Server,
        paying: Paying,
    ) -> Result<(Alarms, Vec<Settled>), NoAnswer> {
        let mut wire = Memory::default();
        let mut sites = self
            .exchange
            .kept_sites()
            .iter()
            .zip(rules)
            .map(|(site, rule)| {
                site.again(&Trial { mode, rule: *rule, epsilon, epsilon_a }, paying)
            })
            .collect::<Result<Vec<Again<'_>>, _>>()?;
        // Within one process a message always arrives.
        for site in &mut sites {
            if let Some(enrolment) = site.enrol()? {
                let _ = wire.send(enrolment);
            }
        }
        while let Some(message) = wire.receive() {
            server.hear(&message);
        }
        let alarms = again.by(server, |server, t| {
            for site in &mut sites {
                if let Some(message) = site.step(t) {
                    let _ = wire.send(message);
                }
            }
            while let Some(message) = wire.receive() {
                server.hear(&message);
            }
        });
        Ok((alarms, sites.into_iter().map(Again::end).collect()))
    }

    /// The flags of every step so far by the rule that stands now, whatever stood when they were
    /// made. A row of clients a step; for a screen on the sites' own machine.
    pub(crate) fn flags_so_far(&self) -> Vec<Option<Flags>> {
        self.flags_by(&self.rules_with(None))
    }

    fn flags_by(&self, rules: &[FlagRule]) -> Vec<Option<Flags>> {
        let sites = self.exchange.kept_sites().iter().zip(rules);
        let mut flags: Vec<_> = sites.map(|(site, rule)| site.local_flags_by(*rule)).collect();
        let mut rows = Vec::new();
        loop {
            for column in &mut flags {
                let Some(flags) = column.next() else { return rows };
                rows.push(flags);
            }
            if flags.is_empty() {
                return rows;
            }
        }
    }

    fn outlook(
        &self,
        alarms: &[Alarm],
        thresholds: Vec<FlagThresholds>,
        flags: Vec<Option<Flags>>,
    ) -> WhatIf {
        let until = self.spans.last().map(|span| span.1);
        // What has not begun yet can be neither found nor missed.
        let events: Vec<_> = self
            .stream
            .events()
            .iter()
            .filter(|e| until.is_some_and(|t| e.start <= t))
            .cloned()
            .collect();
        let score = (self.labelled || !self.stream.events().is_empty()).then(|| {
            let watched = self.watched();
            Score::of(&events, alarms, &watched, self.session.replay.tail.seconds)
        });
        let opened = alarms.iter().map(|alarm| (alarm.opened, alarm.root.clone())).collect();
        WhatIf { alarms: alarms.len(), opened, score, thresholds, flags }
    }
}

/// The steps of a run, and who says what comes of them.
struct Decided<'a> {
    ticks: &'a [Tick],
    annunciator: Annunciator,
}

impl Decided<'_> {
    /// Decides every step again: the alarms there would have been. `feed` gives the server the
    /// messages of the `t`-th step.
    fn by(mut self, mut server: Server, mut feed: impl FnMut(&mut Server, usize)) -> Alarms {
        let mut alarms = Alarms::default();
        for (t, tick) in self.ticks.iter().enumerate() {
            if tick.follows.is_anew() && t > 0 {
                gather(&mut alarms, &self.annunciator.end(Closing::EndOfRun));
            }
            server.begin(*tick, &mut |_| {});
            feed(&mut server, t);
            let decision = server.decide();
            let (time, number) = (tick.time, t as u64 + 1);
            let step = Step { time, number, decision, quality: &[] };
            gather(&mut alarms, &self.annunciator.step(&step));
        }
        gather(&mut alarms, &self.annunciator.end(Closing::EndOfRun));
        alarms
    }
}
