//! Runs a prepared session over its replay range: measurements in, facts out, in order.
//!
//! ```text
//! Frame ─► a Row for each Site ─► Outgoing ─► wire ─► Message ─► Server ─► Decision ─► Annunciator ─► Fact
//! ```
//!
//! A run is pulled step by step by whoever wants its facts, at any pace; nothing in here knows the
//! wall clock, so that the same session and seed give the same facts, byte for byte. It must not know
//! how anything is shown.
//!
//! | module | what it is for |
//! |---|---|
//! | `exchange` | one step over the wire: rows to sites, messages to the server, orders back |
//! | `explain` | by which influences an effect can have come about |
//! | `ledger`, `spending` | what was released, and what the knobs would change about it |
//! | `unused` | rows of the data that were not used |
//! | `alarms`, `ending` | the alarms that were raised, and the score of the run |
//! | [`sight`] | what can be seen of every client at a step |
//! | [`what_if`] | the run decided again under other settings |
//! | `operate` | what an operator orders, carried out |

mod alarms;
mod ending;
mod exchange;
mod explain;
#[cfg(test)]
mod fault_tests;
mod ledger;
mod operate;
pub(crate) mod sight;
mod spending;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tier2_tests;
mod unused;
pub(crate) mod what_if;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use self::alarms::Alarms;
pub(crate) use self::ending::Ending;
use self::exchange::Exchange;
pub(crate) use self::operate::ActError;
use self::sight::Sight;
use self::unused::Unused;
pub(crate) use self::what_if::Outlook;
use super::prepare::{self, Prepared, TrainingSpent};
use crate::evidence::symbol::Grading;
use crate::evidence::threshold::FlagThresholds;
use crate::fact::{self, Fact, Number};
use crate::federation;
use crate::incident::{Annunciator, Closing, Place, QualityKind, QualityNote, Rules, Step};
use crate::nn::kernel::WeightsError;
use crate::nn::weights::FilterWeights;
use crate::privacy::{Hooks, Ledger, PrivacyError, Provenance};
use crate::rng;
use crate::score::{Judgement, Watched};
use crate::server::health::{CalibrationHealth, Standing};
use crate::server::influence::InfluenceGraph;
use crate::server::predictions::Predictions;
use crate::server::reach::Reach;
use crate::server::{Server, Setup};
use crate::session::privacy::BudgetSettings;
use crate::session::{Clock, Mark, Mode, Session, Tau, Tier};
use crate::site::again::AgainError;
use crate::site::material::LeftOut;
use crate::site::{self, INFLUENCE, PreparedSite, Site, SiteError, SiteOptions};
#[cfg(test)]
use crate::stream::Part;
use crate::stream::decimate::Decimated;
#[cfg(test)]
use crate::stream::resolution::Grids;
use crate::stream::{
    self, Continuity, Event, Frame, Label, Layout, Stream, StreamError, UnusedRows,
};
use crate::wire::{Follows, Memory, Tick, Wire, WireError};

/// A gap of up to so many steps is bridged by prediction; a longer one is a new run.
const LONGEST_BRIDGE: usize = 40;

/// Source of the server's seed for live predictions.
const LIVE_PREDICTIONS: u64 = 0x4C;

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
    /// measured and heard is kept, so that the run can be decided again.
    pub(crate) both: bool,
    /// What carries messages between sites and server.
    pub(crate) wire: Box<dyn Wire>,
    /// Ledgers to be continued; with none of them lines are not written.
    pub(crate) ledger: Option<Vec<Ledger>>,
}

impl RunOptions {
    /// One method, to the end, within the process, without a written ledger.
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, until: None, both: false, wire: Box::new(Memory::default()), ledger: None }
    }
}

/// A session on its way through its replay range.
pub(crate) struct Run {
    session: Session,
    mode: Mode,
    until: Option<Mark>,
    stream: Decimated<Box<dyn Stream>>,
    layout: Layout,
    graph: InfluenceGraph,
    /// τ of each client that has one of its own: of r_c, of r_a.
    own_tau: Vec<[Option<Tau>; 2]>,
    thresholds: Vec<FlagThresholds>,
    /// Sites, server and what is between them.
    exchange: Exchange,
    sights: Vec<Sight>,
    /// A setting was changed on the way.
    tuned: bool,
    /// What a budget is for and what happens when it is gone, whatever its ε.
    budget: BudgetSettings,
    annunciator: Annunciator,
    /// What is wrong with the data at this step.
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
    #[cfg(test)]
    pub(crate) fn open_with(
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let stream = Grids::of(session)?.open(session, Part::Replay)?;
        Self::over(stream, session, prepared, options)
    }

    /// The same over frames from elsewhere.
    pub(crate) fn over(
        stream: Box<dyn Stream>,
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let RunOptions { mode, until, both, wire, ledger } = options;
        let stream = Decimated::new(stream, prepared.every);
        let layout = stream.layout().clone();
        if !prepare::fits(prepared, &layout) {
            return Err(RunError::Layout);
        }
        let period_s = layout.period_s;
        let mut sites = Vec::new();
        for (m, client) in prepared.clients.iter().enumerate() {
            let options = SiteOptions {
                client: m,
                prepared: client,
                session,
                period_s,
                mode,
                both,
                keep: both,
            };
            let trained = prepared.spent.clients.get(m).map_or(&[][..], Vec::as_slice);
            let spent = (prepared.spent.from, trained);
            let site = Site::new(&options, ledger.as_deref(), spent);
            sites.push(site.map_err(|source| match source {
                SiteError::NoSummary => RunError::Tier(unlearned(prepared)),
                source => RunError::Site { client: client.name.clone(), source },
            })?);
        }
        let server = |mode| server(session, prepared, &layout, mode, both);
        let other = match mode {
            Mode::Evidence => Mode::Paper,
            Mode::Paper => Mode::Evidence,
        };
        let shadow = both.then(|| server(other)).transpose()?;
        let exchange = Exchange::open(sites, wire, server(mode)?, shadow)?;
        let clients = layout.clients.len();
        let mut run = Self {
            session: session.clone(),
            mode,
            until,
            graph: prepared.influences.graph.clone(),
            own_tau: vec![[None; 2]; clients],
            thresholds: prepared
                .clients
                .iter()
                .map(|client| site::flags::thresholds(client, &session.thresholds))
                .collect(),
            exchange,
            sights: vec![Sight::default(); clients],
            tuned: false,
            budget: session.privacy.budget.unwrap_or_default(),
            annunciator: annunciator(&layout, mode, Timestamp::UNIX_EPOCH),
            quality: Vec::new(),
            frame: Frame::for_layout(&layout),
            place: stream::Place::default(),
            stream,
            layout,
            spans: Vec::new(),
            unused: Unused::default(),
            unused_nominal: prepared.unused,
            steps: 0,
            labelled: false,
            alarms: Alarms::default(),
            spent: prepared.spent.clone(),
            states: prepared.clients.iter().map(sending_states).collect(),
            left_out: prepared.clients.iter().map(|client| client.left_out.clone()).collect(),
        };
        run.pin_memory_for_deadband(prepared.spent.from)?;
        Ok(run)
    }

    fn now(&self) -> Timestamp {
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

    /// The thresholds of every client. They are percentiles of its distances: where flags are
    /// protected they are no fact, and stand on the client's own screen alone.
    pub(crate) fn calibrated(&self) -> Vec<Fact> {
        let hidden = self.session.privacy.epsilon_flag.is_some();
        let told = |tau: f32| if hidden { None } else { Number::new(f64::from(tau)) };
        self.names()
            .zip(&self.thresholds)
            .map(|(client, tau)| {
                Fact::Calibrated(fact::Calibrated {
                    client,
                    tau_c: told(tau.tau_c),
                    tau_a: told(tau.tau_a),
                    arl0_target: Number::new(self.session.thresholds.arl0.seconds),
                })
            })
            .collect()
    }

    /// What can be seen of every client after the last step.
    pub(crate) fn sights(&self) -> &[Sight] {
        &self.sights
    }

    /// The thresholds of every client as squared distances.
    pub(crate) fn thresholds(&self) -> &[FlagThresholds] {
        &self.thresholds
    }

    pub(crate) fn annunciator(&self) -> &Annunciator {
        &self.annunciator
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// What decimated frames look like.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Disturbances that the data is known to hold.
    pub(crate) fn events(&self) -> &[Event] {
        self.stream.events()
    }

    /// Which sensors of a client deviate most, the first ones first; nothing where no method ranks
    /// them. They stay with the client: this is for its own screen.
    pub(crate) fn ranked_sensors(&self, client: usize) -> Vec<String> {
        self.exchange.sites()[client].ranked_sensors()
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.layout.clients.iter().map(|client| client.name.clone())
    }

    /// Takes the next step and appends what is new to `facts`; the time of the step, or none at the
    /// end of what is to be run.
    pub(crate) fn step(&mut self, facts: &mut Vec<Fact>) -> Result<Option<Timestamp>, RunError> {
        if !self.stream.next(&mut self.frame)? {
            // What was left out after the last frame.
            self.frame.time = self.now();
            self.tell_notes(facts);
            return Ok(None);
        }
        if self.is_past_the_end() {
            return Ok(None);
        }
        let said = facts.len();
        let (time, continuity) = (self.frame.time, self.frame.continuity);
        if self.steps == 0 {
            self.annunciator = annunciator(&self.layout, self.mode, time);
            self.place.clone_from(&self.frame.place);
            self.annunciator.move_to(self.place());
            self.declare_knobs();
            self.tell_health(facts);
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
        self.tell_notes(facts);
        let tick = Tick { step: self.steps, time, follows };
        self.exchange.step(&self.frame, &self.layout, tick)?;
        self.exchange.show(&mut self.sights);
        if let Some(why) = self.exchange.take_trouble() {
            let what = format!("nothing was sent: {why}");
            facts.push(self.annunciator.note(time, None, &what));
        }
        let decision = self.exchange.server().decision();
        self.quality.extend_from_slice(&decision.quality);
        if self.mode == Mode::Evidence {
            note_standings(&self.sights, &mut self.quality);
        }
        let step = Step {
            time,
            step: self.steps,
            clients: &decision.clients,
            outcomes: decision.outcomes(),
            quality: &self.quality,
        };
        facts.append(&mut self.annunciator.step(&step));
        self.add_to(&mut facts[said..])?;
        for fact in &facts[said..] {
            self.alarms.hear(fact);
        }
        Ok(Some(time))
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

    /// From the step before to this one: next to it, over a gap, or into another run, which is said.
    fn bridge(&mut self, continuity: Continuity, facts: &mut Vec<Fact>) -> Follows {
        let missing = match continuity {
            Continuity::Next => return Follows::Next,
            Continuity::Gap { seconds } => (seconds / self.layout.period_s).round() as usize,
            Continuity::NewRun => usize::MAX,
        };
        if missing <= LONGEST_BRIDGE {
            return Follows::After { missing };
        }
        // What is open belongs to the run that ended, and closes at its last instant.
        let (follows, why) = if continuity == Continuity::NewRun {
            (Follows::NewRun, Closing::EndOfRun)
        } else {
            (Follows::Anew, Closing::NoData)
        };
        facts.append(&mut self.annunciator.end(why));
        follows
    }

    /// Sensors that cannot be watched, and clients whose calibration cannot be relied on.
    fn tell_health(&mut self, facts: &mut Vec<Fact>) {
        let time = self.frame.time;
        // Which sensors are not watched follows from measurements: it is told like their faults.
        let told = if self.session.privacy.tells_faults() { &self.left_out[..] } else { &[] };
        for (client, left_out) in told.iter().enumerate() {
            // What data has shown to be too coarse is news; the rest is as the plant is built.
            let (coarse, usual): (Vec<_>, Vec<_>) =
                left_out.iter().partition(|(_, why)| *why == LeftOut::TooCoarse);
            for (sensor, why) in coarse {
                let what = format!("without {sensor}: {why}");
                facts.push(self.annunciator.note(time, Some(client), &what));
            }
            // Which ones is for the client's own view: the log names no sensor.
            let what = match usual.len() {
                0 => continue,
                1 => "1 sensor is not watched".to_owned(),
                n => format!("{n} sensors are not watched"),
            };
            self.annunciator.remark(time, Some(client), &what);
        }
        if !self.unused_nominal.is_none() {
            let UnusedRows { rows, .. } = self.unused_nominal;
            let noun = if rows == 1 { "row" } else { "rows" };
            let why = self.unused_nominal.words();
            let what = format!("{rows} {noun} of the nominal data not used: {why}");
            facts.push(self.annunciator.note(time, None, &what));
        }
        if !self.session.privacy.tells_faults() {
            let what = "sensors at fault are known to their client alone (privacy.reveal_faults)";
            facts.push(self.annunciator.note(time, None, what));
        }
        for client in 0..self.layout.clients.len() {
            let Some(health) = self.exchange.server().calibration(client) else { continue };
            let what = match health {
                CalibrationHealth::Healthy => continue,
                CalibrationHealth::Short { .. } => health.to_string(),
                CalibrationHealth::HalvesDisagree { .. } | CalibrationHealth::Empty => {
                    format!("out of calibration: {health}")
                }
            };
            facts.push(self.annunciator.note(time, Some(client), &what));
        }
    }

    /// Rows that had to be left out, and clocks that moved: a fact and a line of the log a stretch.
    fn tell_notes(&mut self, facts: &mut Vec<Fact>) {
        for (file, what) in self.unused.hear(self.steps, &self.frame.notes) {
            let fact = self.annunciator.note(self.frame.time, None, &what);
            facts.push(in_file(fact, file));
        }
    }

    fn quality(&self, client: Option<String>, what: String) -> Fact {
        let time = self.frame.time;
        let Place { file, run } = self.place();
        Fact::Quality(fact::Quality { client, time, what, seconds: None, file, run })
    }

    /// Where the data of the last step came from, as facts say it.
    fn place(&self) -> Place {
        let text = |name: &Option<std::sync::Arc<str>>| name.as_ref().map(ToString::to_string);
        Place { file: text(&self.place.file), run: text(&self.place.run) }
    }

    /// How many rows were left out so far.
    pub(crate) fn unused_rows(&self) -> UnusedRows {
        self.unused.counts()
    }

    /// How many rows of the nominal data were left out.
    pub(crate) fn unused_nominal_rows(&self) -> UnusedRows {
        self.unused_nominal
    }

    fn not_watched(&self) -> Vec<fact::NotWatched> {
        let of = |(client, left_out): (String, &Vec<(String, LeftOut)>)| {
            let sensor = |(sensor, why): &(String, LeftOut)| fact::NotWatched {
                client: client.clone(),
                sensor: sensor.clone(),
                why: why.to_string(),
            };
            left_out.iter().map(sensor).collect::<Vec<_>>()
        };
        let told = self.session.privacy.tells_faults();
        self.names().zip(&self.left_out).filter(|_| told).flat_map(of).collect()
    }

    /// The run is over: closes what is open and says what was released.
    pub(crate) fn end(&mut self) -> Vec<Fact> {
        let last = self.now();
        let mut facts = Vec::new();
        for (file, what) in self.unused.end() {
            facts.push(in_file(self.annunciator.note(last, None, &what), file));
        }
        facts.append(&mut self.annunciator.end(Closing::EndOfRun));
        explain::explain(&self.graph, &mut facts);
        for fact in &facts {
            self.alarms.hear(fact);
        }
        self.close_ledgers();
        facts.extend(self.ledgers().filter_map(|of| ledger::fact(of, last)));
        facts
    }

    /// Nothing more is released: closes every ledger that is not closed.
    pub(crate) fn close_ledgers(&mut self) {
        let last = self.now();
        let open = self.exchange.sites_mut().iter_mut().filter(|s| !s.ledger().is_closed());
        open.for_each(|site| site.close_ledger(last));
    }

    /// What was watched: every step says something of the time since the step before it, and of
    /// gaps nothing is said.
    fn watched(&self) -> Watched {
        let period = SignedDuration::try_from_secs_f64(self.layout.period_s).unwrap_or_default();
        let since = |from: Timestamp| from.checked_sub(period).unwrap_or(from);
        Watched::Spans(self.spans.iter().map(|(from, until)| (since(*from), *until)).collect())
    }

    /// What was said held against what is known; nothing where the data has no labels.
    pub(crate) fn judgement(&self) -> Option<Judgement<'_>> {
        let events: &[Event] = self.stream.events();
        (self.labelled || !events.is_empty()).then(|| {
            let watched = self.watched();
            let tail_s = self.session.replay.tail.seconds;
            Judgement::new(events, self.alarms.list(), &watched, tail_s)
        })
    }

    /// What is needed to sum the run up; `wall` is how long it took.
    pub(crate) fn ending(&self, wall: Duration) -> Ending {
        let events = self.stream.events().to_vec();
        Ending {
            summary: self.summary(wall),
            is_labelled: self.labelled || !events.is_empty(),
            events,
            alarms: self.alarms.list().to_vec(),
            watched: self.watched(),
            tail_s: self.session.replay.tail.seconds,
        }
    }

    /// The last fact; `wall` is how long the run took.
    pub(crate) fn summary(&self, wall: Duration) -> fact::Summary {
        fact::Summary {
            session: self.session.name.clone(),
            mode: self.mode,
            seed: self.session.is_seeded().then_some(self.session.seed),
            clients: self.layout.clients.len() as u64,
            steps: self.steps,
            incidents: self.annunciator.incidents().len() as u64,
            wall_s: Number::new(wall.as_secs_f64()),
            steps_per_s: Number::new(self.steps as f64 / wall.as_secs_f64()),
            score: self.judgement().map(|judgement| judgement.score()),
            from: self.spans.first().map(|span| span.0),
            until: self.spans.last().map(|span| span.1),
            randomness: Some(Provenance::of(&self.session).label().to_owned()),
            unused_rows: self.unused_rows(),
            unused_nominal_rows: self.unused_nominal,
            not_watched: self.not_watched(),
            ledger: None,
        }
    }
}

/// A note about `file`, which may not be the file of the step that it is told at.
fn in_file(mut fact: Fact, file: String) -> Fact {
    if let Fact::Quality(fact) = &mut fact
        && fact.file.as_ref().is_some_and(|known| *known != file)
    {
        (fact.file, fact.run) = (Some(file), None);
    }
    fact
}

/// How far clients are believed is known by the method that weighs what they send.
fn note_standings(sights: &[Sight], quality: &mut Vec<QualityNote>) {
    for (client, sight) in sights.iter().enumerate() {
        let what = match sight.server.standing {
            Standing::Trusted => continue,
            Standing::OutOfCalibration => QualityKind::OutOfCalibration,
            Standing::Unreliable => QualityKind::Unbelievable,
        };
        quality.push(QualityNote { client: Some(client), what });
    }
}

/// Why nothing was learned about influence.
fn unlearned(prepared: &Prepared) -> String {
    prepared.influences.graph.unlearned.clone().unwrap_or_default()
}

/// A server for a session that has heard nothing.
fn server(
    session: &Session,
    prepared: &Prepared,
    layout: &Layout,
    mode: Mode,
    keep: bool,
) -> Result<Server, RunError> {
    let predictions = match (mode, session.thresholds.tier) {
        (Mode::Evidence, Tier::States) => Some(predictions(session, prepared)?),
        (Mode::Evidence, Tier::Symbols) | (Mode::Paper, _) => None,
    };
    Ok(Server::new(Setup {
        mode,
        clients: layout.clients.len(),
        grading: Grading::from(session.privacy.symbol),
        arl0_steps: session.thresholds.arl0.seconds / layout.period_s,
        reach: declared_reach(session, layout),
        vote: session.thresholds.vote,
        predictions,
        keep,
    }))
}

fn predictions(session: &Session, prepared: &Prepared) -> Result<Predictions, RunError> {
    let Some(foreteller) = &prepared.influences.foreteller else {
        return Err(RunError::Tier(unlearned(prepared)));
    };
    let fitted = |(m, client): (usize, &PreparedSite)| {
        foreteller.explainer(m).is_none() || client.fit.informed.is_some()
    };
    if !prepared.clients.iter().enumerate().all(fitted) {
        return Err(RunError::Tier("its models were prepared for tier: Symbols".to_owned()));
    }
    let seed = rng::child(rng::child(session.seed, INFLUENCE), LIVE_PREDICTIONS);
    Ok(Predictions::new(foreteller, &Hooks::of(session), seed)?)
}

/// Influences that the session declares.
fn declared_reach(session: &Session, layout: &Layout) -> Reach {
    let edges = session
        .edges
        .iter()
        .filter_map(|(from, to)| Some((layout.client(from)?, layout.client(to)?)));
    Reach::from_edges(layout.clients.len(), edges)
}

fn sending_states(client: &PreparedSite) -> usize {
    client.sending.filter().map_or(0, FilterWeights::states)
}

fn annunciator(layout: &Layout, mode: Mode, start: Timestamp) -> Annunciator {
    let names = layout.clients.iter().map(|client| client.name.clone()).collect();
    Annunciator::new(names, mode, Rules::with_period(layout.period_s), start)
}

/// A word of progress of the federation as a fact, without the clients' loss where that is hidden.
pub(crate) fn training(progress: &federation::Progress, hides_losses: bool) -> Fact {
    let losses = progress.client_loss;
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let mean = if hides_losses { f64::NAN } else { mean };
    Fact::Training(fact::Training {
        round: progress.round as u64,
        rounds: progress.rounds as u64,
        server_loss: Number::new(progress.server_loss),
        client_loss: Number::new(mean),
    })
}
