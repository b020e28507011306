//! Runs a prepared session over its replay range: measurements in, facts out, in order.
//!
//! ```text
//!          ┌─ evidence: watching model ─► site ─► Symbol ─► Inference ─┐
//! Frame ───┤                                                           ├─► Told ─► Annunciator ─► Fact
//!          └─ paper: sending model + φ ─► flags ─► look-up ─► Episodes ─┘
//! ```
//!
//! A run is pulled step by step by whoever wants its facts, at any pace; nothing in here knows the
//! wall clock, so that the same session and seed say the same, byte for byte. It must not know how
//! anything is shown.
//!
//! | module | what it is for |
//! |---|---|
//! | `evidence` | evidence mode: sites, symbols, the sequential decision |
//! | `confer` | tier 2: states out, what others explain back |
//! | `explain` | by which influences an effect can have come about |
//! | `paper`, `episode` | paper mode: flags, the look-up, and how long a verdict holds |
//! | `ledger`, `spending` | what was released, and what the knobs would change about it |
//! | `sensors` | sensors that are themselves at fault, in either mode |
//! | `told` | what either says about a step, as the annunciator takes it |
//! | `alarms` | the alarms that were raised, for the score |
//! | [`sight`] | what can be seen of every client at a step |
//! | [`knob`] | what can be tuned while it runs |
//! | `tape`, [`outlook`] | the run decided again under other settings |
//! | `operate` | what an operator orders, carried out |

mod alarms;
mod confer;
mod episode;
pub(super) mod evidence;
mod explain;
pub mod knob;
mod ledger;
mod operate;
pub mod outlook;
mod paper;
mod sensors;
pub mod sight;
mod spending;
mod tape;
#[cfg(test)]
mod tests;
mod told;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use self::alarms::Alarms;
use self::evidence::Evidence;
pub use self::operate::ActError;
pub use self::outlook::Outlook;
use self::paper::Paper;
use self::sensors::Sensors;
use self::sight::Sight;
use self::tape::Tape;
use self::told::Told;
use super::material::{LeftOut, Material};
use super::prepare::{self, Prepared, PreparedClient, TrainingSpent};
use super::resolution::Grids;
use crate::evidence::health::{CalibrationHealth, Standing};
use crate::evidence::influence::InfluenceGraph;
use crate::evidence::threshold::{FlagThresholds, NominalDistances};
use crate::evidence::whitening;
use crate::fact::{self, Fact, Number};
use crate::federation::{self, FederationError};
use crate::incident::{Annunciator, Closing, QualityKind, QualityNote, Rules};
use crate::link::Tap;
use crate::model::kernel::WeightsError;
use crate::model::weights::FilterWeights;
use crate::privacy::{Account, Books, Ledger, PrivacyError, Provenance, Terms, Trained};
use crate::session::privacy::BudgetSettings;
use crate::session::{Mark, Mode, Session, Tau};
use crate::stream::decimate::Decimated;
use crate::stream::{
    self, Continuity, Event, Frame, Label, Layout, NoteKind, Part, Stream, StreamError,
};
use crate::study::score::{Judgement, Watched};

/// A gap of up to so many steps is bridged by prediction; a longer one is a new run.
const LONGEST_BRIDGE: usize = 40;

/// Why a session cannot be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// Its data cannot be had.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A model cannot be run.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// What stands between a client and the server cannot be set up.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The models were made for other clients or other sensors.
    #[error(
        "the replayed data has other clients or sensors than the data its models were made from"
    )]
    Layout,
    /// Its tier wants what could not be learned.
    #[error("thresholds.tier: States needs to know who influences whom: {0}")]
    Tier(String),
    /// A message cannot be made.
    #[error(transparent)]
    Federation(#[from] FederationError),
}

/// The methods at work; the one that the mode names decides.
#[derive(Debug)]
struct Methods {
    evidence: Option<Box<Evidence>>,
    paper: Option<Box<Paper>>,
}

/// Which methods a run carries along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// The one that decides.
    Deciding,
    /// Both, so that either can decide from the next step on, and both can be seen.
    Both,
}

macro_rules! each {
    ($methods:expr, $found:ident => $call:expr) => {
        if let Some($found) = &mut $methods.evidence {
            $call;
        }
        if let Some($found) = &mut $methods.paper {
            $call;
        }
    };
}

/// A session on its way through its replay range.
pub struct Run {
    session: Session,
    mode: Mode,
    until: Option<Mark>,
    stream: Decimated<Box<dyn Stream>>,
    layout: Layout,
    /// Who influences whom.
    graph: InfluenceGraph,
    /// τ of each client that has one of its own: of r_c, of r_a.
    own_tau: Vec<[Option<Tau>; 2]>,
    nominal: Vec<[NominalDistances; 2]>,
    thresholds: Vec<FlagThresholds>,
    methods: Methods,
    sensors: Sensors,
    sights: Vec<Sight>,
    tape: Option<Tape>,
    /// A setting was changed on the way.
    tuned: bool,
    /// What a budget is for and what happens when it is gone, whatever its ε.
    budget: BudgetSettings,
    annunciator: Annunciator,
    told: Told,
    /// What the method that does not decide says: nobody hears it.
    unheard: Told,
    frame: Frame,
    /// First and last instant of every stretch without a gap.
    spans: Vec<(Timestamp, Timestamp)>,
    /// Why rows were left out at the last step.
    left_out: Vec<NoteKind>,
    steps: u64,
    labelled: bool,
    alarms: Alarms,
    books: Books,
    /// Of the method that does not decide: nothing of what it would send is sent.
    unsent: Books,
    spent: TrainingSpent,
    /// What was released about each client before the first step.
    told_again: Vec<Vec<Trained>>,
    /// States of every client's sending model.
    states: Vec<usize>,
    tap: Tap,
    /// Sensors that are too coarse to be watched, each after its client.
    too_coarse: Vec<(String, String)>,
}

impl Run {
    /// Fits and calibrates the clients of `prepared`, and stands before the first step. The whole
    /// replay range is run: where a person would enter it is of no account here.
    pub fn open(
        session: &Session,
        prepared: &Prepared,
        mode: Mode,
        until: Option<Mark>,
    ) -> Result<Self, RunError> {
        Self::open_listened_to(session, prepared, mode, until, Tap::default())
    }

    /// The same, with every message from the first one on shown to `tap`: in tier 2 clients tell what
    /// they said about nominal data again before the first step.
    pub fn open_listened_to(
        session: &Session,
        prepared: &Prepared,
        mode: Mode,
        until: Option<Mark>,
        tap: Tap,
    ) -> Result<Self, RunError> {
        let stream = Grids::of(session)?.open(session, Part::Replay)?;
        Self::assemble(stream, session, prepared, (mode, Along::Deciding), until, tap)
    }

    /// The same over frames from elsewhere. With both methods along, what crosses is kept, so that
    /// the run can be decided again.
    pub fn over(
        stream: Box<dyn Stream>,
        session: &Session,
        prepared: &Prepared,
        mode: Mode,
        until: Option<Mark>,
        along: Along,
    ) -> Result<Self, RunError> {
        Self::assemble(stream, session, prepared, (mode, along), until, Tap::default())
    }

    fn assemble(
        stream: Box<dyn Stream>,
        session: &Session,
        prepared: &Prepared,
        (mode, along): (Mode, Along),
        until: Option<Mark>,
        tap: Tap,
    ) -> Result<Self, RunError> {
        let stream = Decimated::new(stream, prepared.every);
        let layout = stream.layout().clone();
        if !prepare::fits(prepared, &layout) {
            return Err(RunError::Layout);
        }
        let views = |_: &Layout| Some(prepared.clients.iter().map(|c| c.view.clone()).collect());
        let material = Material::read(session, prepared.every, &views)?;
        let wanted = |this: Mode| along == Along::Both || mode == this;
        let methods = Methods {
            evidence: wanted(Mode::Evidence)
                .then(|| Evidence::new(session, prepared, &material, &tap).map(Box::new))
                .transpose()?,
            paper: wanted(Mode::Paper)
                .then(|| Paper::new(session, prepared, layout.period_s).map(Box::new))
                .transpose()?,
        };
        let names = || layout.clients.iter().map(|client| client.name.as_str());
        let lags = whitening::LAGS as u64;
        let terms = prepared.clients.iter().map(|c| Terms::of(&session.privacy, c.memory, lags));
        let terms: Vec<Terms> = terms.collect::<Result<_, _>>()?;
        let unlimited = |terms: &Terms| Terms { budget: None, ..*terms };
        let unsent = Books::unwritten(names().zip(terms.iter().map(unlimited)))?;
        let mut books = Books::unwritten(names().zip(terms.iter().copied()))?;
        books.enter_training(prepared.spent.from, &prepared.spent.clients);
        let told_again = methods
            .evidence
            .as_ref()
            .map_or_else(Vec::new, |evidence| prepared.spent.beside(&evidence.counted()));
        books.enter_training(prepared.spent.from, &told_again);
        let thresholds = prepared
            .clients
            .iter()
            .map(|client| paper::thresholds(client, &session.thresholds))
            .collect();
        let nominal = prepared
            .clients
            .iter()
            .map(|client| [client.nominal_c.distances.clone(), client.nominal_a.distances.clone()])
            .collect();
        let clients = layout.clients.len();
        let mut run = Self {
            session: session.clone(),
            mode,
            until,
            graph: prepared.influences.graph.clone(),
            own_tau: vec![[None; 2]; clients],
            nominal,
            thresholds,
            methods,
            sensors: Sensors::new(&material),
            sights: vec![Sight::default(); clients],
            tape: (along == Along::Both).then(Tape::default),
            tuned: false,
            budget: session.privacy.budget.unwrap_or_default(),
            annunciator: annunciator(&layout, mode, Timestamp::UNIX_EPOCH),
            told: Told::new(clients),
            unheard: Told::new(clients),
            frame: Frame::for_layout(&layout),
            stream,
            layout,
            spans: Vec::new(),
            left_out: Vec::new(),
            steps: 0,
            labelled: false,
            alarms: Alarms::default(),
            books,
            unsent,
            spent: prepared.spent.clone(),
            told_again,
            states: prepared.clients.iter().map(sending_states).collect(),
            tap,
            too_coarse: too_coarse(prepared),
        };
        run.count_what_a_dead_band_remembers(prepared.spent.from)?;
        Ok(run)
    }

    /// Writes the ledgers' lines from now on, as a continuation of `kept`; before the first step.
    pub fn keep_ledger(&mut self, kept: &[Ledger]) -> Result<(), RunError> {
        self.books.write_from(self.spent.from, kept)?;
        self.books.enter_training(self.spent.from, &self.spent.clients);
        self.books.enter_training(self.spent.from, &self.told_again);
        Ok(())
    }

    /// The last instant watched.
    fn now(&self) -> Timestamp {
        self.spans.last().map_or(self.spent.from, |span| span.1)
    }

    /// The ledgers, one a client.
    #[must_use]
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// The ledgers' lines since this was asked last, where they are written.
    pub fn take_ledger_lines(&mut self) -> String {
        self.books.take_lines()
    }

    /// The thresholds of every client.
    #[must_use]
    pub fn calibrated(&self) -> Vec<Fact> {
        self.names()
            .zip(&self.thresholds)
            .map(|(client, tau)| {
                Fact::Calibrated(fact::Calibrated {
                    client,
                    tau_c: Number::new(f64::from(tau.tau_c)),
                    tau_a: Number::new(f64::from(tau.tau_a)),
                    arl0_target: Number::new(self.session.thresholds.arl0.seconds),
                })
            })
            .collect()
    }

    /// What can be seen of every client after the last step.
    #[must_use]
    pub fn sights(&self) -> &[Sight] {
        &self.sights
    }

    /// The thresholds of every client as squared distances.
    #[must_use]
    pub fn thresholds(&self) -> &[FlagThresholds] {
        &self.thresholds
    }

    /// Incidents, log and figures.
    #[must_use]
    pub fn annunciator(&self) -> &Annunciator {
        &self.annunciator
    }

    /// The method that decides.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What decimated frames look like.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Disturbances that the data is known to hold.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        self.stream.events()
    }

    /// Which sensors of a client deviate most, the first ones first; nothing where no method ranks
    /// them. They stay with the client: this is for its own screen.
    #[must_use]
    pub fn ranked_sensors(&self, client: usize) -> Vec<String> {
        let evidence = self.methods.evidence.as_ref();
        evidence.map(|evidence| evidence.ranked_sensors(client)).unwrap_or_default()
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.layout.clients.iter().map(|client| client.name.clone())
    }

    /// Takes the next step and appends what is new to `facts`; the time of the step, or none at the
    /// end of what is to be run.
    pub fn step(&mut self, facts: &mut Vec<Fact>) -> Result<Option<Timestamp>, StreamError> {
        if !self.stream.next(&mut self.frame)? {
            // What was left out after the last frame.
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
            self.declare_knobs();
            self.tell_health(facts);
        }
        let anew = self.bridge(continuity, facts);
        self.steps += 1;
        match self.spans.last_mut() {
            Some(span) if continuity == Continuity::Next => span.1 = time,
            _ => self.spans.push((time, time)),
        }
        self.labelled |= self.frame.label != Label::Unlabelled;
        if let Continuity::Gap { seconds } = continuity {
            let what = QualityKind::Gap { seconds };
            self.told.quality.push(QualityNote { client: None, what });
        }
        self.tell_notes(facts);
        self.decide();
        self.keep(anew);
        if let Some(why) = self.books.take_trouble() {
            let what = format!("nothing was sent: {why}");
            facts.push(self.annunciator.note(time, None, &what));
        }
        self.tell_standings();
        facts.append(&mut self.annunciator.step(&self.told.step(time, self.steps)));
        self.add_to(&mut facts[said..]);
        for fact in &facts[said..] {
            self.alarms.hear(fact);
        }
        Ok(Some(time))
    }

    /// Adds what is known beside the decision: how effects can have come about, and, where the
    /// session lets a root say so, which of its sensors deviate.
    fn add_to(&mut self, facts: &mut [Fact]) {
        explain::explain(&self.graph, facts);
        let Some(evidence) = &self.methods.evidence else { return };
        if self.session.privacy.reveal_sensor && self.mode == Mode::Evidence {
            for fact in facts {
                if let Fact::Opened(incident) | Fact::Updated(incident) = fact {
                    let root = incident.root.as_ref().and_then(|root| self.layout.client(root));
                    let (books, time) = (&mut self.books, incident.time);
                    let reveal = |client| evidence.reveal(Account { books, client, time });
                    incident.sensors = root.map(reveal).unwrap_or_default();
                }
            }
        }
    }

    fn is_past_the_end(&self) -> bool {
        let first = self.spans.first().map_or(self.frame.time, |span| span.0);
        match self.until {
            None => false,
            Some(Mark::Step(steps)) => self.steps >= steps,
            Some(Mark::After(seconds)) => {
                let length = SignedDuration::try_from_secs_f64(seconds);
                length.is_ok_and(|length| self.frame.time.duration_since(first) >= length)
            }
            Some(Mark::At(civil)) => self.frame.time >= stream::utc(civil),
        }
    }

    /// Every method takes the step; the one that decides is heard.
    fn decide(&mut self) {
        let Self { methods, told, unheard, mode, frame, layout, sights, .. } = self;
        let (books, unsent, tap) = (&mut self.books, &mut self.unsent, &self.tap);
        let deaf = &Tap::default();
        unheard.clear();
        self.sensors.step(frame, layout);
        self.sensors.tell(told);
        let (heard, silent) = ((told, books, tap), (unheard, unsent, deaf));
        let (to_evidence, to_paper) = match mode {
            Mode::Evidence => (heard, silent),
            Mode::Paper => (silent, heard),
        };
        if let Some(evidence) = &mut methods.evidence {
            let (told, books, tap) = to_evidence;
            evidence.step(frame, layout, told, books, tap);
            evidence.show(sights);
        }
        if let Some(paper) = &mut methods.paper {
            let (told, books, tap) = to_paper;
            paper.step(frame, layout, told, books, tap);
            paper.show(sights);
        }
    }

    fn keep(&mut self, anew: bool) {
        if let Some(tape) = &mut self.tape {
            let reports = self.methods.evidence.as_ref().map(|evidence| evidence.reports());
            let measured = self.methods.paper.as_ref().map(|paper| paper.measured());
            tape.keep(self.frame.time, anew, reports, measured);
        }
    }

    /// From the step before to this one: next to it, over a gap, or into another run, which is said.
    fn bridge(&mut self, continuity: Continuity, facts: &mut Vec<Fact>) -> bool {
        self.told.clear();
        let missing = match continuity {
            Continuity::Next => return false,
            Continuity::Gap { seconds } => (seconds / self.layout.period_s).round() as usize,
            Continuity::NewRun => usize::MAX,
        };
        if missing <= LONGEST_BRIDGE {
            each!(self.methods, method => method.skip(missing));
            self.sensors.skip(missing);
            return false;
        }
        // What is open belongs to the run that ended, and closes at its last instant.
        let anew = continuity == Continuity::NewRun;
        let why = if anew { Closing::EndOfRun } else { Closing::NoData };
        facts.append(&mut self.annunciator.end(why));
        each!(self.methods, method => method.reset());
        self.sensors.reset();
        if let (true, Some(evidence)) = (anew, &mut self.methods.evidence) {
            evidence.forget_new_normals();
        }
        true
    }

    /// Sensors that cannot be watched, and clients whose calibration cannot be relied on.
    fn tell_health(&mut self, facts: &mut Vec<Fact>) {
        let time = self.frame.time;
        for (client, sensor) in &self.too_coarse {
            let what = format!("without {sensor}: {}", LeftOut::TooCoarse);
            facts.push(self.annunciator.note(time, self.layout.client(client), &what));
        }
        let Some(evidence) = self.methods.evidence.as_ref().filter(|_| self.mode == Mode::Evidence)
        else {
            return;
        };
        for (client, health) in evidence.health().iter().enumerate() {
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

    /// How far clients are believed is known by the method that listens to them.
    fn tell_standings(&mut self) {
        if self.mode != Mode::Evidence {
            return;
        }
        for (client, sight) in self.sights.iter().enumerate() {
            let what = match sight.standing {
                Standing::Trusted => continue,
                Standing::OutOfCalibration => QualityKind::OutOfCalibration,
                Standing::Unreliable => QualityKind::Unbelievable,
            };
            self.told.quality.push(QualityNote { client: Some(client), what });
        }
    }

    /// Rows that had to be left out: each is a fact, a stretch of them is one line of the log.
    fn tell_notes(&mut self, facts: &mut Vec<Fact>) {
        let before = std::mem::take(&mut self.left_out);
        for note in &self.frame.notes {
            let what = format!("{} ({} line {})", note.what, note.place, note.line);
            let known = before.contains(&note.what) || self.left_out.contains(&note.what);
            facts.push(if known {
                self.quality(None, what)
            } else {
                self.annunciator.note(self.frame.time, None, &what)
            });
            self.left_out.push(note.what);
        }
    }

    fn quality(&self, client: Option<String>, what: String) -> Fact {
        Fact::Quality(fact::Quality { client, time: self.frame.time, what, seconds: None })
    }

    /// The run is over: closes what is open and says what was released.
    pub fn end(&mut self) -> Vec<Fact> {
        let mut facts = self.annunciator.end(Closing::EndOfRun);
        self.add_to(&mut facts);
        for fact in &facts {
            self.alarms.hear(fact);
        }
        let last = self.now();
        self.books.close(last);
        facts.extend(self.books.ledgers().iter().filter_map(|of| ledger::fact(of, last)));
        facts
    }

    /// What was watched: every step says something of the time since the step before it, and of
    /// gaps nothing is said.
    fn watched(&self) -> Watched {
        let period = SignedDuration::try_from_secs_f64(self.layout.period_s).unwrap_or_default();
        let since = |from: Timestamp| from.checked_sub(period).unwrap_or(from);
        Watched::Spans(self.spans.iter().map(|(from, until)| (since(*from), *until)).collect())
    }

    /// What was said held against what is known; nothing where the data has no labels.
    #[must_use]
    pub fn judgement(&self) -> Option<Judgement<'_>> {
        let events: &[Event] = self.stream.events();
        (self.labelled || !events.is_empty()).then(|| {
            let watched = self.watched();
            let tail_s = self.session.replay.tail.seconds;
            Judgement::new(events, self.alarms.list(), &watched, tail_s)
        })
    }

    /// The last fact; `wall` is how long the run took.
    #[must_use]
    pub fn summary(&self, wall: Duration) -> fact::Summary {
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
        }
    }
}

fn too_coarse(prepared: &Prepared) -> Vec<(String, String)> {
    let of = |client: &PreparedClient| {
        let coarse = client.left_out.iter().filter(|(_, why)| *why == LeftOut::TooCoarse);
        coarse.map(|(sensor, _)| (client.name.clone(), sensor.clone())).collect::<Vec<_>>()
    };
    prepared.clients.iter().flat_map(of).collect()
}

fn sending_states(client: &PreparedClient) -> usize {
    client.sending.filter().map_or(0, FilterWeights::states)
}

fn annunciator(layout: &Layout, mode: Mode, start: Timestamp) -> Annunciator {
    let names = layout.clients.iter().map(|client| client.name.clone()).collect();
    Annunciator::new(names, mode, Rules::with_period(layout.period_s), start)
}

/// A word of progress of the federation as a fact.
#[must_use]
pub fn training(progress: &federation::Progress) -> Fact {
    let losses = progress.client_loss;
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    Fact::Training(fact::Training {
        round: progress.round as u64,
        rounds: progress.rounds as u64,
        server_loss: Number::new(progress.server_loss),
        client_loss: Number::new(mean),
    })
}
