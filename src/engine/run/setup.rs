//! Sets up the sites and the server of a prepared session.

use jiff::Timestamp;

use super::alarms::Alarms;
use super::exchange::Exchange;
use super::readout::ClientReadout;
use super::unused::Unused;
use super::{Run, RunError, RunOptions};
use crate::base::rng;
use crate::engine::prepare::{self, Prepared};
use crate::evidence::symbol::Grading;
use crate::incident::{Annunciator, Rules};
use crate::nn::weights::FilterWeights;
use crate::privacy::Hooks;
use crate::server::predictions::Predictions;
use crate::server::reach::Reach;
use crate::server::{Server, Setup};
use crate::session::{Mode, Session, Tier};
use crate::site::{self, INFLUENCE, PreparedSite, Site, SiteError, SiteOptions};
use crate::stream::decimate::Decimated;
use crate::stream::{self, Frame, Layout, Stream};

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
                source @ (SiteError::Weights(_)
                | SiteError::Privacy(_)
                | SiteError::StatesStay(_)) => {
                    RunError::Site { client: client.name.clone(), source }
                }
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
            readouts: vec![ClientReadout::default(); clients],
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

pub(super) fn annunciator(layout: &Layout, mode: Mode, start: Timestamp) -> Annunciator {
    let names = layout.clients.iter().map(|client| client.name.clone()).collect();
    Annunciator::new(names, mode, Rules::with_period(layout.period_s), start)
}
