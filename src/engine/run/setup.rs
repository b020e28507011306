//! Sets up the sites and the server of a prepared session.

use jiff::Timestamp;

use super::exchange::Exchange;
use super::readout::ClientReadout;
use super::recalled::Recalled;
use super::unused::Unused;
use super::{Run, RunError, RunOptions};
use crate::base::rng;
use crate::engine::knob::Knob;
use crate::engine::prepare::{self, Prepared, TrainingSpent};
use crate::engine::recorded::Recorded;
use crate::evidence::symbol::Grading;
use crate::incident::{Annunciator, Edit, Event, Rules};
use crate::nn::weights::FilterWeights;
use crate::privacy::Hooks;
use crate::score::Alarms;
use crate::server::influence::InfluenceGraph;
use crate::server::influence::foretell::StatePredictor;
use crate::server::predictions::Predictions;
use crate::server::reach::Reach;
use crate::server::{Server, Setup};
use crate::session::{Mode, Session, Tier};
use crate::site::stretch::Abnormal;
use crate::site::{self, INFLUENCE, PreparedSite, Site, SiteError, SiteOptions};
use crate::stream::decimate::Decimated;
use crate::stream::{self, Frame, Layout, Stream, UnusedRows};
use crate::wire::{self, Wire, WireError};

/// Source of the server's seed for live predictions.
const LIVE_PREDICTIONS: u64 = 0x4C;

impl Run {
    /// The same over frames from elsewhere.
    pub(crate) fn over(
        stream: Box<dyn Stream>,
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let steps = Box::new(Decimated::new(stream, prepared.every));
        Self::over_steps(steps, session, prepared, options)
    }

    /// The same over steps: one frame each.
    pub(crate) fn over_steps(
        stream: Box<dyn Stream>,
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let RunOptions { mode, until, both, wire, ledger, elsewhere } = options;
        let layout = stream.layout().clone();
        // A server whose sites learned over a broker has no model of theirs.
        let has_models = !(elsewhere && prepared.clients.is_empty());
        if has_models && !prepare::fits(prepared, &layout) {
            return Err(RunError::Layout);
        }
        let period_s = layout.period_s;
        let mut sites = Vec::new();
        let here = if elsewhere { &[][..] } else { &prepared.clients[..] };
        for (m, client) in here.iter().enumerate() {
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
                source @ (SiteError::Weights(_)
                | SiteError::Privacy(_)
                | SiteError::StatesStay(_)) => {
                    RunError::Site { client: client.name.clone(), source }
                }
            })?);
        }
        let server = |mode| {
            let predictions = match (mode, session.thresholds.tier) {
                (Mode::Evidence, Tier::States) => Some(predictions(session, prepared)?),
                (Mode::Evidence, Tier::Symbols) | (Mode::Paper, _) => None,
            };
            Ok::<_, RunError>(server(session, predictions, &layout, mode, both))
        };
        let other = match mode {
            Mode::Evidence => Mode::Paper,
            Mode::Paper => Mode::Evidence,
        };
        let shadow = both.then(|| server(other)).transpose()?;
        let exchange = Exchange::open(sites, wire, server(mode)?, shadow)?;
        let learned = (prepared.influences.graph.clone(), prepared.spent.clone());
        let begun = Self::begin(session.clone(), mode, (stream, layout), exchange, learned);
        let clients = prepared.clients.iter();
        let thresholds = |client| site::flags::thresholds(client, &session.thresholds);
        let mut run = Self {
            until,
            thresholds: clients.clone().map(thresholds).collect(),
            unused_nominal: prepared.unused,
            states: clients.clone().map(sending_states).collect(),
            left_out: clients.map(|client| client.left_out.clone()).collect(),
            // They follow from measurements: with noise on symbols only the client knows them.
            abnormal: if session.privacy.protects_flags() {
                Vec::new()
            } else {
                Self::abnormal_of(session, prepared, period_s)
            },
            ..begun
        };
        run.pin_memory_for_deadband(prepared.spent.from)?;
        Ok(run)
    }

    /// Messages about calibrations that look abnormal in places, for whoever has the data.
    pub(crate) fn abnormal_of(
        session: &Session,
        prepared: &Prepared,
        period_s: f64,
    ) -> Vec<Option<String>> {
        let words = |found: Abnormal| found.words(session.thresholds.set_aside);
        let of = |client| site::abnormal(client, session, period_s).map(words);
        prepared.clients.iter().map(of).collect()
    }

    /// A run that stands before its first step, and about whose clients nothing is known yet.
    fn begin(
        session: Session,
        mode: Mode,
        (stream, layout): (Box<dyn Stream>, Layout),
        exchange: Exchange,
        (graph, spent): (InfluenceGraph, TrainingSpent),
    ) -> Self {
        let clients = layout.clients.len();
        Self {
            mode,
            until: None,
            graph,
            own_tau: vec![[None; 2]; clients],
            thresholds: Vec::new(),
            exchange,
            readouts: vec![ClientReadout::default(); clients],
            tuned: false,
            budget: session.privacy.budget.unwrap_or_default(),
            annunciator: annunciator(&layout, mode, Timestamp::UNIX_EPOCH),
            suspended: vec![None; clients],
            quality: Vec::new(),
            frame: Frame::for_layout(&layout),
            place: stream::Place::default(),
            stream,
            layout,
            spans: Vec::new(),
            unused: Unused::default(),
            unused_nominal: UnusedRows::default(),
            steps: 0,
            labelled: false,
            alarms: Alarms::default(),
            spent,
            states: vec![0; clients],
            left_out: Vec::new(),
            abnormal: Vec::new(),
            site_ledgers: None,
            session,
        }
    }

    /// The run of a recording again: no site is there, its messages come from the recording. With
    /// `keep` it can be decided under other settings.
    pub(crate) fn recorded(
        recorded: &mut Recorded,
        keep: bool,
        wrap: impl FnOnce(wire::RecordedWire) -> Box<dyn Wire>,
    ) -> Result<Self, RunError> {
        let (session, mode) = (recorded.session.clone(), recorded.mode);
        let layout = recorded.layout.clone();
        // Without models fewer knobs can be tried.
        let prepared = if keep { recorded.models() } else { None };
        let server = |mode| {
            let predictions = match (mode, session.thresholds.tier) {
                (Mode::Evidence, Tier::States) => {
                    let known = recorded.influences.foreteller.as_ref();
                    let unlearned = || recorded.influences.graph.unlearned.clone();
                    let known =
                        known.ok_or_else(|| RunError::Tier(unlearned().unwrap_or_default()))?;
                    Some(foretold(&session, known)?)
                }
                (Mode::Evidence, Tier::Symbols) | (Mode::Paper, _) => None,
            };
            Ok::<_, RunError>(server(&session, predictions, &layout, mode, keep))
        };
        let other = match mode {
            Mode::Evidence => Mode::Paper,
            Mode::Paper => Mode::Evidence,
        };
        let recalled = prepared.and_then(|prepared| {
            Recalled::new(&session, &layout, mode, &prepared, &recorded.readouts).ok()
        });
        let recalled = recalled.unwrap_or_default();
        // Only an order needs the other method, or a trial of it.
        let changes = recorded.orders.iter().any(|stored| sets_mode(&stored.event));
        let tries = recalled.can_send_later();
        let shadow = (changes || tries).then(|| server(other)).transpose()?;
        let server = server(mode)?;
        let wire = wrap(recorded.take_wire().map_err(WireError::from)?);
        let repeats = recorded.repeats_freely;
        let troubles = std::mem::take(&mut recorded.troubles);
        let exchange = Exchange::recorded(wire, server, shadow, (repeats, troubles), recalled)?;
        let stream = Box::new(recorded.take_stream());
        let spent = TrainingSpent { from: recorded.training_from, clients: Vec::new() };
        let learned = (recorded.influences.graph.clone(), spent);
        let begun = Self::begin(session, mode, (stream, layout), exchange, learned);
        Ok(Self {
            thresholds: recorded.thresholds.clone(),
            unused_nominal: recorded.unused_nominal,
            steps: recorded.first - 1,
            left_out: std::mem::take(&mut recorded.left_out),
            abnormal: std::mem::take(&mut recorded.abnormal),
            site_ledgers: Some(std::mem::take(&mut recorded.ledgers)),
            ..begun
        })
    }
}

/// Whether an operator changed the method by it, or took such a change back.
fn sets_mode(event: &Event) -> bool {
    let name = Knob::Mode.name(&[]);
    event.edits.iter().any(|edit| matches!(edit, Edit::Setting { what, .. } if *what == name))
}

/// Why nothing was learned about influence.
fn unlearned(prepared: &Prepared) -> String {
    prepared.influences.graph.unlearned.clone().unwrap_or_default()
}

/// A server for a session, before the first message.
fn server(
    session: &Session,
    predictions: Option<Predictions>,
    layout: &Layout,
    mode: Mode,
    keep: bool,
) -> Server {
    Server::new(Setup {
        mode,
        clients: layout.clients.len(),
        grading: Grading::from(session.privacy.symbol),
        arl0_steps: session.thresholds.arl0.seconds / layout.period_s,
        reach: declared_reach(session, layout),
        vote: session.thresholds.vote,
        predictions,
        keep,
    })
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
    foretold(session, foreteller)
}

fn foretold(session: &Session, foreteller: &StatePredictor) -> Result<Predictions, RunError> {
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

pub(super) fn annunciator(layout: &Layout, mode: Mode, start: Timestamp) -> Annunciator {
    let names = layout.clients.iter().map(|client| client.name.clone()).collect();
    Annunciator::new(names, mode, Rules::with_period(layout.period_s), start)
}
