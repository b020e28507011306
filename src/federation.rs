//! Algorithm 1: clients and server learn from each other without a measurement leaving its client.
//!
//! Two ways lead through it ([`schedule`]), with the same clients, the same server and the same messages:
//! a step after every row, as printed, which allocates nothing on the way; and [`batched`], which takes
//! windows and sends gradients through time. Beside it stand what it is compared with
//! ([`variant`]), what comes out of it on given rows ([`states`]), how near that is to the oracle
//! ([`convergence`], [`theory`]), how states move together ([`correlation`]) and what a round costs
//! ([`timing`]). [`apart`] has either half of a round by itself, for sites and a server in processes of
//! their own. It must not know files, threads or screens.

pub(crate) mod apart;
mod batched;
pub(crate) mod convergence;
pub(crate) mod correlation;
mod course;
pub(crate) mod schedule;
pub(crate) mod states;
#[cfg(test)]
mod tests;
pub(crate) mod theory;
pub(crate) mod timing;
pub(crate) mod variant;

use thiserror::Error;

use self::batched::Learners;
use self::course::Course;
pub(crate) use self::course::{History, OnProgress, Progress, Reached};
use self::schedule::{Plan, Schedule};
use crate::base::rng;
use crate::nn::kernel::WeightsError;
use crate::nn::online::Descent;
use crate::nn::train::batch::BatchWindows;
use crate::nn::train::optimise::WARM_UP;
use crate::nn::weights::{FilterWeights, LstmFc};
pub(crate) use crate::privacy::Hooks;
use crate::privacy::{Counted, PrivacyError, Protection, Provenance, Randomness};
use crate::server::{Rounds, StateCorrelation};
use crate::session::settings::{ModelSettings, Optimiser};
use crate::site::training::{Eta, Outbox, SiteData, TrainingSite, TrainingSiteError};
use crate::wire::{Memory, Order, Wire, WireError};

/// Parts of a run with random sources of their own: clients are counted from 0, these from the end.
const SERVER: u64 = u64::MAX;
const ORDER: u64 = u64::MAX - 1;

/// Sources of one part. The server's way back to client m has source `NOISE` + m.
const WEIGHTS: u64 = 0;
const NOISE: u64 = 1;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FederatedWeights {
    /// φ_m, one per client.
    pub(crate) phi: Vec<LstmFc>,
    /// f_s.
    pub(crate) server: LstmFc,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) weights: FederatedWeights,
    pub(crate) history: History,
    /// Whether it was asked to stop before its end.
    pub(crate) stopped: bool,
    /// What was released about each client, and what was sent back to it.
    pub(crate) released: Vec<Vec<Counted>>,
    /// How states moved together at the end, as the server saw it.
    pub(crate) together: Option<StateCorrelation>,
}

/// Noise of a given size instead of one that follows from (ε, δ), as in the paper's experiments.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Noise {
    /// σ on states on their way up, in nominal standard deviations.
    pub(crate) up: Option<f64>,
    /// σ on gradients on their way down.
    pub(crate) down: Option<f64>,
}

#[derive(Debug, Error)]
pub(crate) enum FederationError {
    #[error(transparent)]
    Site(#[from] TrainingSiteError),
    /// Weights that no kernel can run.
    #[error("the federation's networks: {0}")]
    Weights(#[from] WeightsError),
    #[error("a message could not be made: {0}")]
    Privacy(#[from] PrivacyError),
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The sites do not fit together, or hold too little.
    #[error("{0}")]
    Sites(String),
    #[error(
        "the federation diverged in round {round}: server loss {server_loss}, client losses \
         {client_loss:?}; a smaller learning_rate or eta3 may help"
    )]
    Diverged {
        round: usize,
        /// Mean L_s of the rounds since the last report.
        server_loss: f64,
        /// Mean L_a of each client.
        client_loss: Vec<f64>,
    },
    #[error("the federation's networks: {0}")]
    Network(#[from] candle_core::Error),
    /// A model to compare with could not be made.
    #[error(transparent)]
    Training(#[from] crate::nn::train::TrainError),
}

/// Who learns in a round. Nothing is sent that no model learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// All, from each other: Algorithm 1.
    Together,
    /// Clients from their own loss; nothing is sent.
    ClientsAlone,
    /// The server from clients that no longer change; nothing is sent back.
    ServerAlone,
}

impl Stage {
    fn clients_learn(self) -> bool {
        self != Self::ServerAlone
    }

    fn server_learns(self) -> bool {
        self != Self::ClientsAlone
    }

    /// Whether the server answers; a gradient of no weight is not worth a message.
    fn feeds_back(self, settings: &ModelSettings) -> bool {
        self == Self::Together && settings.eta2 != 0.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Round {
    /// L_s; zero where the server takes no part.
    pub(crate) server_loss: f64,
    pub(crate) sent: Sent,
}

/// Bytes of messages, by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sent {
    /// From clients to the server.
    pub(crate) up: usize,
    /// From the server to clients.
    pub(crate) down: usize,
}

/// Shown the weights after every pass, while training goes on.
type Monitor = Box<dyn FnMut(&FederatedWeights) + Send>;

/// Clients and server, ready to learn.
pub(crate) struct Federation {
    clients: Vec<TrainingSite>,
    server: Rounds,
    settings: ModelSettings,
    schedule: Schedule,
    monitor: Option<Monitor>,
    wire: Box<dyn Wire>,
}

impl std::fmt::Debug for Federation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.clients.iter().map(TrainingSite::name).collect();
        f.debug_struct("Federation").field("clients", &names).finish_non_exhaustive()
    }
}

impl Federation {
    /// Shows `monitor` the weights after every pass of online training. It sees copies: whatever it
    /// does, training goes on as it would have.
    pub(crate) fn monitor(&mut self, monitor: impl FnMut(&FederatedWeights) + Send + 'static) {
        self.monitor = Some(Box::new(monitor));
    }

    pub(super) fn show_monitor(&mut self) {
        let Some(mut monitor) = self.monitor.take() else { return };
        monitor(&self.weights());
        self.monitor = Some(monitor);
    }

    /// Sends every message over `wire` from now on.
    pub(crate) fn set_wire(&mut self, wire: Box<dyn Wire>) {
        self.wire = wire;
    }

    /// The carrier, to be used again.
    pub(crate) fn into_wire(self) -> Box<dyn Wire> {
        self.wire
    }

    /// Sets everything up: each client runs its proprietary model once over its rows.
    pub(crate) fn new(
        sites: &[SiteData],
        settings: &ModelSettings,
        hooks: Hooks,
        seed: u64,
    ) -> Result<Self, FederationError> {
        let protection = |states| Protection::new(hooks.privacy, states);
        Self::protected(sites, settings, &protection, hooks.provenance, seed)
    }

    /// The same with noise of a given size: what it costs in accuracy, whatever it protects.
    pub(crate) fn with_noise(
        sites: &[SiteData],
        settings: &ModelSettings,
        hooks: Hooks,
        noise: Noise,
        seed: u64,
    ) -> Result<Self, FederationError> {
        let protection =
            |states| Protection::with_sigma(hooks.privacy, noise.up, noise.down, states);
        Self::protected(sites, settings, &protection, hooks.provenance, seed)
    }

    fn protected(
        sites: &[SiteData],
        settings: &ModelSettings,
        protection: &dyn Fn(usize) -> Result<Protection, PrivacyError>,
        provenance: Provenance,
        seed: u64,
    ) -> Result<Self, FederationError> {
        let parts = Parts { settings, protection, provenance, seed };
        let clients = sites.iter().enumerate().map(|(m, site)| parts.site(m, site));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let states: Vec<usize> = clients.iter().map(TrainingSite::states).collect();
        let server = parts.server(&states)?;
        check_rows(&clients)?;
        let measured =
            |site: &TrainingSite| (0..site.steps()).map(|t| site.is_measured(t)).collect();
        let rows = Schedule::rows(settings, &clients.iter().map(measured).collect::<Vec<_>>());
        let schedule = Schedule::new(settings, seed, &rows)?;
        let wire: Box<dyn Wire> = Box::new(Memory::default());
        Ok(Self { clients, server, settings: settings.clone(), schedule, monitor: None, wire })
    }

    /// Algorithm 1 from beginning to end, or until `on_progress` breaks it off; what was learned by
    /// then is kept.
    pub(crate) fn run(&mut self, on_progress: OnProgress) -> Result<Outcome, FederationError> {
        self.stages(&[Stage::Together], on_progress)
    }

    /// The baseline of pre-trained clients: each learns from its own loss, then the server learns
    /// from them, and no gradient is ever sent back.
    pub(crate) fn run_without_feedback(
        &mut self,
        on_progress: OnProgress,
    ) -> Result<Outcome, FederationError> {
        self.stages(&[Stage::ClientsAlone, Stage::ServerAlone], on_progress)
    }

    fn stages(
        &mut self,
        stages: &[Stage],
        on_progress: OnProgress,
    ) -> Result<Outcome, FederationError> {
        let mut history = History::default();
        let mut stopped = false;
        for &stage in stages {
            stopped = self.stage(stage, &mut history, on_progress)?;
            if stopped {
                break;
            }
        }
        Ok(Outcome {
            weights: self.weights(),
            history,
            stopped,
            released: self.released(),
            together: self.server.together(),
        })
    }

    /// Runs one stage; whether it was asked to stop.
    fn stage(
        &mut self,
        stage: Stage,
        history: &mut History,
        on_progress: OnProgress,
    ) -> Result<bool, FederationError> {
        let schedule = self.schedule.clone();
        let (rounds, every) = (schedule.rounds(), schedule.report_every());
        let mut course = Course::new(history, on_progress, rounds, every, self.clients.len());
        let mut learners = None;
        let mut stopped = false;
        for plan in schedule {
            let flow = match &plan {
                Plan::Row { t, pace, begins_pass, .. } => {
                    if *begins_pass {
                        self.clients.iter_mut().for_each(TrainingSite::forget);
                        self.server.forget();
                    }
                    let round = self.round(*t, stage, *pace)?;
                    let losses = self.clients.iter().map(TrainingSite::loss);
                    course.round(round.server_loss, losses, round.sent)?
                }
                Plan::Windows { starts, length, is_middle } => {
                    let learners = match &mut learners {
                        Some(learners) => learners,
                        none => none.insert(Learners::new(self)?),
                    };
                    if *is_middle {
                        self.server.look_anew();
                    }
                    let windows = BatchWindows { starts, length: *length, warm_up: WARM_UP };
                    let round = learners.round(self, stage, windows)?;
                    course.round(round.server_loss, round.client_loss, round.sent)?
                }
            };
            if flow.is_break() {
                stopped = true;
                break;
            }
            if let Plan::Row { ends_pass: true, .. } = plan {
                self.show_monitor();
            }
        }
        if let Some(learners) = learners {
            learners.finish(self)?;
        }
        Ok(stopped)
    }

    /// What has been learned so far.
    pub(crate) fn weights(&self) -> FederatedWeights {
        FederatedWeights {
            phi: self.clients.iter().map(TrainingSite::phi).collect(),
            server: self.server.weights(),
        }
    }

    /// What has been released about each client so far, and what was sent back to it.
    pub(crate) fn released(&self) -> Vec<Vec<Counted>> {
        let of = |(m, client): (usize, &TrainingSite)| {
            let back = self.server.released(m);
            client.released().into_iter().chain([back]).filter(|c| c.count > 0).collect()
        };
        self.clients.iter().enumerate().map(of).collect()
    }

    /// One round at row `t`, every step at `pace` of its full size.
    pub(crate) fn round(
        &mut self,
        t: usize,
        stage: Stage,
        pace: f64,
    ) -> Result<Round, FederationError> {
        let feedback = stage.feeds_back(&self.settings);
        let Self { clients, server, wire, .. } = self;
        let mut round = Round { server_loss: 0.0, sent: Sent::default() };
        // A client's estimate and its message in one go: at a thousand clients, its data would have left
        // the processor's cache before a second pass came to it.
        for m in 0..clients.len() {
            let client = &mut clients[m];
            client.estimate(t);
            if !client.loss().is_finite() {
                let client_loss = clients.iter().map(TrainingSite::loss).collect();
                return Err(FederationError::Diverged { round: t, server_loss: 0.0, client_loss });
            }
            if stage.server_learns() {
                let states = client.states_message(t)?;
                round.sent.up += states.payload_bytes();
                wire.deliver(states, &mut |message| {
                    server.hear(message);
                })?;
            }
        }
        if stage.server_learns() {
            round.server_loss = server.round(Some(pace));
        }
        if feedback {
            for m in 0..clients.len() {
                let gradient = server.gradient_message(m)?;
                round.sent.down += gradient.payload_bytes();
                wire.deliver_to_site(gradient, &mut |message| {
                    let client = clients.get_mut(message.client());
                    if let (Order::Gradient(g), Some(client)) = (message.order(), client) {
                        client.learn(Some(g), pace);
                    }
                })?;
            }
        } else if stage.clients_learn() {
            for client in clients.iter_mut() {
                client.learn(None, pace);
            }
        }
        Ok(round)
    }
}

/// How clients and server are made, whether in one process or in many.
struct Parts<'a> {
    settings: &'a ModelSettings,
    protection: &'a dyn Fn(usize) -> Result<Protection, PrivacyError>,
    provenance: Provenance,
    seed: u64,
}

impl Parts<'_> {
    fn random(&self, part: u64, source: u64) -> Randomness {
        Randomness::of(self.provenance, rng::child(self.seed, part), source)
    }

    /// The client at `place`, with its own noise and the φ that it begins with.
    fn site(&self, place: usize, site: &SiteData<'_>) -> Result<TrainingSite, FederationError> {
        let settings = self.settings;
        let descent = match settings.optimiser {
            Optimiser::Adam => Descent::Adam(settings.learning_rate),
            Optimiser::Sgd => Descent::Sgd(1.0),
        };
        let eta = Eta { own: settings.eta1 as f32, server: settings.eta2 as f32 };
        let part = place as u64;
        // A model without a filter is refused by the client, with the reason.
        let states = site.model.filter().map_or(settings.states, FilterWeights::states);
        let protection = (self.protection)(states)?;
        let outbox = Outbox {
            proprietary: protection.proprietary_channel(self.random(part, NOISE)),
            augmented: protection.augmented_channel(self.random(part, NOISE + 1)),
        };
        let mut init = rng::stream(rng::child(self.seed, part), WEIGHTS);
        let (sensors, width) = (site.rows.ncols(), settings.augment_width);
        let scale = settings.augment_scale as f32;
        let phi = LstmFc::init(sensors, width, states, scale, &mut init);
        Ok(TrainingSite::new(place, site, &phi, descent, eta, outbox)?)
    }

    /// The server of clients with so many states each.
    fn server(&self, states: &[usize]) -> Result<Rounds, FederationError> {
        let settings = self.settings;
        let descent = match settings.optimiser {
            Optimiser::Adam => Descent::Adam(settings.eta3),
            Optimiser::Sgd => Descent::Sgd(settings.eta3),
        };
        let mut back = Vec::with_capacity(states.len());
        for (m, states) in states.iter().enumerate() {
            let random = self.random(SERVER, NOISE + m as u64);
            back.push((self.protection)(*states)?.gradient_channel(random));
        }
        let total = states.iter().sum();
        let mut init = rng::stream(rng::child(self.seed, SERVER), WEIGHTS);
        let f_s = LstmFc::init(total, settings.server_width, total, 1.0, &mut init);
        Ok(Rounds::new(states, &f_s, descent, back)?)
    }
}

/// Refuses sites whose rows are not of the same times.
fn check_rows(clients: &[TrainingSite]) -> Result<(), FederationError> {
    let Some(first) = clients.first() else {
        return Err(FederationError::Sites("a federation needs at least one site".to_owned()));
    };
    let steps = first.steps();
    if let Some(other) = clients.iter().find(|client| client.steps() != steps) {
        return Err(FederationError::Sites(format!(
            "{} brings {steps} rows and {} brings {}; rows of all sites must be of the same times",
            first.name(),
            other.name(),
            other.steps()
        )));
    }
    Ok(())
}
