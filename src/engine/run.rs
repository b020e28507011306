//! Runs a prepared session over its replay range: measurements in, facts out, in order.
//!
//! ```text
//! Frame ─► a Row for each Site ─► Outgoing ─► wire ─► Message ─► Server ─► Decision ─► Annunciator ─► Fact
//! ```
//!
//! A run is pulled step by step by its caller, at any pace; nothing in here knows the
//! wall clock, so that the same session and seed give the same facts, byte for byte. It must not know
//! how anything is shown.
//!
//! | module | what it is for |
//! |---|---|
//! | `setup` | sites and server of a prepared session |
//! | `exchange` | one step over the wire: rows to sites, messages to the server, orders back |
//! | `explain` | by which influences an effect can have come about |
//! | `ledger`, `spending` | what was released, and what the knobs would change about it |
//! | `report` | thresholds, notes about data, the summary |
//! | `unused` | rows of the data that were not used |
//! | `alarms`, `ending` | the alarms that were raised, and the score of the run |
//! | [`readout`] | what can be seen of every client at a step |
//! | [`what_if`] | the run decided again under other settings |
//! | `recalled`, `resend` | the sites of a recording, and what they would have sent |
//! | `operate` | what an operator orders, carried out |
//! | [`carried`] | a live session that goes on where it was |

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod alarms;
pub(crate) mod carried;
mod ending;
mod exchange;
mod explain;
#[cfg(test)]
mod fault_tests;
mod ledger;
mod operate;
pub(crate) mod readout;
pub(crate) mod recalled;
mod report;
mod resend;
mod setup;
mod spending;
mod suspend;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tier2_tests;
mod unused;
pub(crate) mod what_if;

use jiff::Timestamp;
use thiserror::Error;

use self::alarms::gather;
pub(crate) use self::ending::Ending;
use self::exchange::Exchange;
pub(crate) use self::ledger::ledger_fact;
pub(crate) use self::operate::ActError;
use self::readout::{ClientReadout, note_standings};
use self::report::in_file;
use self::setup::annunciator;
use self::unused::Unused;
pub(crate) use self::what_if::WhatIf;
use super::prepare::{Prepared, TrainingSpent};
use super::recorded::NOT_SENT;
use crate::evidence::threshold::FlagThresholds;
use crate::fact::Fact;
use crate::incident::{Annunciator, Closing, Incident, QualityKind, QualityNote, Step};
use crate::nn::kernel::WeightsError;
use crate::privacy::{Ledger, PrivacyError};
use crate::score::Alarms;
use crate::server::influence::InfluenceGraph;
use crate::session::privacy::BudgetSettings;
use crate::session::{Clock, Mark, Mode, Session, Tau};
use crate::site::again::AgainError;
use crate::site::material::LeftOut;
use crate::site::{LONGEST_BRIDGE, Site, SiteError};
use crate::stream::resolution::Grids;
use crate::stream::{
    self, Continuity, Frame, Label, Layout, Next, Part, Stream, StreamError, UnusedRows,
};
use crate::wire::{Follows, Memory, Tick, Wire, WireError};

/// Why a session cannot be run.
#[derive(Debug, Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    #[error(
        "the replayed data has other clients or sensors than the data its models were made from"
    )]
    Layout,
    #[error("thresholds.tier: States needs to know who influences whom: {0}")]
    Tier(String),
    #[error("{client}: {source}")]
    Site { client: String, source: SiteError },
    #[error(transparent)]
    Again(#[from] AgainError),
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// How a session is run.
pub(crate) struct RunOptions {
    pub(crate) mode: Mode,
    pub(crate) until: Option<Mark>,
    /// Both methods are carried along, so that either can decide from the next step on, and what was
    /// measured and received is kept, so that the run can be decided again.
    pub(crate) both: bool,
    /// The carrier of messages between sites and server.
    pub(crate) wire: Box<dyn Wire>,
    /// Ledgers to be continued; with none of them lines are not written.
    pub(crate) ledger: Option<Vec<Ledger>>,
    /// Sites are processes of their own: the run is the server's half, and `wire` is all it has of them.
    pub(crate) elsewhere: bool,
}

impl RunOptions {
    /// One method, to the end, within the process, without a written ledger.
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            mode,
            until: None,
            both: false,
            wire: Box::new(Memory::default()),
            ledger: None,
            elsewhere: false,
        }
    }
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stepped {
    Taken(Timestamp),
    /// Its measurements have not arrived yet.
    NotYet,
    /// The end of what is to be run.
    End,
}

/// A session on its way through its replay range.
pub(crate) struct Run {
    session: Session,
    mode: Mode,
    until: Option<Mark>,
    stream: Box<dyn Stream>,
    layout: Layout,
    graph: InfluenceGraph,
    /// τ of each client that has one of its own: of r_c, of r_a.
    own_tau: Vec<[Option<Tau>; 2]>,
    thresholds: Vec<FlagThresholds>,
    /// Sites, server and what is between them.
    exchange: Exchange,
    readouts: Vec<ClientReadout>,
    /// A setting was changed on the way.
    tuned: bool,
    /// What a budget is for and what happens when it is gone, whatever its ε.
    budget: BudgetSettings,
    annunciator: Annunciator,
    /// Why each client is out of service by the session's plan, where it is.
    suspended: Vec<Option<String>>,
    /// Faults of the data at this step.
    quality: Vec<QualityNote>,
    frame: Frame,
    /// Where the data of the last step came from.
    place: stream::Place,
    /// First and last instant of every stretch without a gap.
    spans: Vec<(Timestamp, Timestamp)>,
    /// Rows that were left out.
    unused: Unused,
    /// Rows of the nominal data that were left out.
    unused_nominal: UnusedRows,
    steps: u64,
    labelled: bool,
    alarms: Alarms,
    spent: TrainingSpent,
    /// States of every client's sending model.
    states: Vec<usize>,
    /// Sensors that are not watched, client by client.
    left_out: Vec<Vec<(String, LeftOut)>>,
    /// Messages about calibrations that look abnormal in places.
    abnormal: Vec<Option<String>>,
    /// The privacy cost of clients at the end, where their sites are in a recording.
    site_ledgers: Option<Vec<Fact>>,
}

impl Run {
    /// Sets up the sites and the server of a prepared session, and stands before the first step. The
    /// whole replay range is run: where a person would enter it is of no account here.
    #[cfg(test)]
    pub(crate) fn open(
        session: &Session,
        prepared: &Prepared,
        mode: Mode,
        until: Option<Mark>,
    ) -> Result<Self, RunError> {
        Self::open_with(session, prepared, RunOptions { until, ..RunOptions::new(mode) })
    }

    /// The same in any other way.
    pub(crate) fn open_with(
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let stream = Grids::of(session)?.open(session, Part::Replay)?;
        Self::over(stream, session, prepared, options)
    }

    /// The last instant that was watched.
    pub(crate) fn now(&self) -> Timestamp {
        self.spans.last().map_or(self.spent.from, |span| span.1)
    }

    /// The ledgers, one a client.
    pub(crate) fn ledgers(&self) -> impl Iterator<Item = &Ledger> {
        self.exchange.sites().iter().map(Site::ledger)
    }

    /// The ledgers' lines since this was asked last, where they are written.
    pub(crate) fn take_ledger_lines(&mut self) -> String {
        self.exchange.sites_mut().iter_mut().map(Site::take_ledger_lines).collect()
    }

    /// The readout of every client after the last step.
    pub(crate) fn readouts(&self) -> &[ClientReadout] {
        &self.readouts
    }

    /// The thresholds of every client as squared distances.
    pub(crate) fn thresholds(&self) -> &[FlagThresholds] {
        &self.thresholds
    }

    pub(crate) fn annunciator(&self) -> &Annunciator {
        &self.annunciator
    }

    /// Incidents that may have changed since this was asked last.
    pub(crate) fn take_changed_incidents(&mut self) -> Vec<Incident> {
        self.annunciator.take_changed()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// The layout of decimated frames.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Disturbances that the data is known to hold.
    pub(crate) fn events(&self) -> &[stream::Event] {
        self.stream.events()
    }

    /// Which sensors of a client deviate most, the first ones first; nothing where no method ranks
    /// them. They stay with the client: this is for its own screen.
    pub(crate) fn ranked_sensors(&self, client: usize) -> Vec<String> {
        self.exchange.sites().get(client).map(Site::ranked_sensors).unwrap_or_default()
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.layout.clients.iter().map(|client| client.name.clone())
    }

    /// Takes the next step and appends what is new to `facts`; the time of the step, or none at the
    /// end of what is to be run.
    pub(crate) fn step(&mut self, facts: &mut Vec<Fact>) -> Result<Option<Timestamp>, RunError> {
        loop {
            match self.poll(facts)? {
                Stepped::Taken(time) => return Ok(Some(time)),
                Stepped::End => return Ok(None),
                Stepped::NotYet => {}
            }
        }
    }

    /// The same without waiting for measurements that have not arrived yet.
    pub(crate) fn poll(&mut self, facts: &mut Vec<Fact>) -> Result<Stepped, RunError> {
        match self.stream.poll(&mut self.frame)? {
            Next::Frame => {}
            Next::NotYet => return Ok(Stepped::NotYet),
            Next::End => {
                // What was left out after the last frame.
                self.frame.time = self.now();
                self.add_notes(facts);
                return Ok(Stepped::End);
            }
        }
        if self.is_past_the_end() {
            return Ok(Stepped::End);
        }
        let said = facts.len();
        let (time, continuity) = (self.frame.time, self.frame.continuity);
        if self.spans.is_empty() {
            self.annunciator = annunciator(&self.layout, self.mode, time);
            self.place.clone_from(&self.frame.place);
            self.annunciator.move_to(self.place());
            self.declare_knobs();
            self.add_health(facts);
        }
        let follows = self.bridge(continuity, facts);
        if self.frame.place != self.place {
            self.place.clone_from(&self.frame.place);
            self.annunciator.move_to(self.place());
        }
        self.steps += 1;
        match self.spans.last_mut() {
            Some(span) if continuity == Continuity::Next => span.1 = time,
            _ => self.spans.push((time, time)),
        }
        self.labelled |= self.frame.label != Label::Unlabelled;
        self.quality.clear();
        if let Continuity::Gap { seconds } = continuity {
            let what = QualityKind::Gap { seconds };
            self.quality.push(QualityNote { client: None, what });
        }
        self.add_notes(facts);
        let tick = Tick { step: self.steps, time, follows };
        self.exchange.step(&self.frame, &self.layout, tick)?;
        self.exchange.show(&mut self.readouts);
        if let Some(why) = self.exchange.take_trouble() {
            let what = format!("{NOT_SENT}{why}");
            facts.push(self.annunciator.note(time, None, &what));
        }
        let decision = self.exchange.server().decision();
        self.quality.extend_from_slice(&decision.quality);
        if self.mode == Mode::Evidence {
            note_standings(&self.readouts, &mut self.quality);
        }
        self.keep_schedule(time, facts);
        let decision = self.exchange.server().decision();
        let step = Step { time, number: self.steps, decision, quality: &self.quality };
        facts.append(&mut self.annunciator.step(&step));
        self.add_to(&mut facts[said..])?;
        gather(&mut self.alarms, &facts[said..]);
        Ok(Stepped::Taken(time))
    }

    /// Adds what is known beside the decision: how effects can have come about, and, where the
    /// session lets a root say so, which of its sensors deviate.
    fn add_to(&mut self, facts: &mut [Fact]) -> Result<(), RunError> {
        explain::explain(&self.graph, facts);
        if !self.session.privacy.reveal_sensor || self.mode != Mode::Evidence {
            return Ok(());
        }
        for fact in facts {
            if let Fact::Opened(incident) | Fact::Updated(incident) = fact {
                let root = incident.root.as_ref().and_then(|root| self.layout.client(root));
                let Some(root) = root else { continue };
                let ranks = self.exchange.ask_for_sensors(root, incident.time)?;
                let sensors = &self.layout.clients[root].sensors;
                let name = |place: &u16| sensors.get(usize::from(*place)).map(|s| s.name.clone());
                incident.sensors = ranks.0.iter().filter_map(name).collect();
            }
        }
        Ok(())
    }

    fn is_past_the_end(&self) -> bool {
        let first = self.spans.first().map_or(self.frame.time, |span| span.0);
        let clock = Clock::of(&self.session);
        self.until.is_some_and(|mark| mark.is_reached(clock, first, self.steps, self.frame.time))
    }

    /// From the step before to this one: next to it, over a gap, or into another run, which is noted.
    fn bridge(&mut self, continuity: Continuity, facts: &mut Vec<Fact>) -> Follows {
        let follows = follows(continuity, self.layout.period_s);
        let why = match follows {
            Follows::Next | Follows::After { .. } => return follows,
            Follows::NewRun => Closing::EndOfRun,
            Follows::Anew => Closing::NoData,
        };
        // What is open belongs to the run that ended, and closes at its last instant.
        facts.append(&mut self.annunciator.end(why));
        follows
    }

    /// The run is over: closes what is open and states what was released.
    pub(crate) fn end(&mut self) -> Vec<Fact> {
        let last = self.now();
        let mut facts = Vec::new();
        for (file, what) in self.unused.end() {
            facts.push(in_file(self.annunciator.note(last, None, &what), file));
        }
        facts.append(&mut self.annunciator.end(Closing::EndOfRun));
        explain::explain(&self.graph, &mut facts);
        gather(&mut self.alarms, &facts);
        self.close_ledgers();
        facts.extend(self.ledger_facts(last).into_iter().flatten());
        facts.extend(self.site_ledgers.take().unwrap_or_default());
        facts
    }

    /// The privacy cost of every client as of `now`; none where it has released nothing.
    pub(crate) fn ledger_facts(&self, now: Timestamp) -> Vec<Option<Fact>> {
        self.ledgers().map(|ledger| ledger_fact(ledger, now)).collect()
    }

    /// Puts something between the stream and the run.
    pub(crate) fn tap(&mut self, tap: impl FnOnce(Box<dyn Stream>) -> Box<dyn Stream>) {
        let nothing: Box<dyn Stream> = Box::new(NoFrames(self.layout.clone()));
        let stream = std::mem::replace(&mut self.stream, nothing);
        self.stream = tap(stream);
    }

    /// The fact that an order of a recording cannot be carried out again.
    pub(crate) fn refused_again(&self, why: &ActError) -> Fact {
        self.quality(None, format!("an order of the recording cannot be carried out again: {why}"))
    }

    /// The frame of the last step.
    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Whether the run so far can be sent again without telling more.
    pub(crate) fn repeats_freely(&self) -> bool {
        self.exchange.repeats_freely()
    }

    /// Nothing more is released: closes every ledger that is not closed.
    pub(crate) fn close_ledgers(&mut self) {
        let last = self.now();
        let open = self.exchange.sites_mut().iter_mut().filter(|s| !s.ledger().is_closed());
        open.for_each(|site| site.close_ledger(last));
    }
}

/// A stream that is over.
struct NoFrames(Layout);

impl Stream for NoFrames {
    fn layout(&self) -> &Layout {
        &self.0
    }

    fn next(&mut self, _: &mut Frame) -> Result<bool, StreamError> {
        Ok(false)
    }

    fn events(&self) -> &[stream::Event] {
        &[]
    }
}

/// How a frame follows the one before, on a grid of steps of `period_s`.
pub(crate) fn follows(continuity: Continuity, period_s: f64) -> Follows {
    match continuity {
        Continuity::Next => Follows::Next,
        Continuity::NewRun => Follows::NewRun,
        Continuity::Gap { seconds } => {
            let missing = (seconds / period_s).round() as usize;
            if missing <= LONGEST_BRIDGE { Follows::After { missing } } else { Follows::Anew }
        }
    }
}
