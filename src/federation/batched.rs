//! Algorithm 1 on batches of windows (I9): the same messages, gradients through time in candle.
//!
//! A window begins with an empty memory of φ and f_s; its first steps are not in any loss. The
//! proprietary chain, the memory of f_m included, is the client's kept one. Every step of every
//! window is a message of its own, so that what is sent, noised and counted is what the online way
//! sends.

use std::ops::ControlFlow;

use rand::RngExt as _;

use super::course::{Course, History, OnProgress};
use super::{Federation, FederationError, ORDER, Sent, Stage};
use crate::base::rng;
use crate::nn::network::LstmNetwork;
use crate::nn::train::batch::BatchWindows;
use crate::nn::train::optimise::WARM_UP;
use crate::nn::train::trainer::Trainer;
use crate::nn::weights::LstmFc;
use crate::privacy::PrivacyError;
use crate::server::Rounds;
use crate::server::batch::Batch;
use crate::session::settings::{ModelSettings, Optimiser};
use crate::site::batch::BatchEstimate;
use crate::site::training::TrainingSite;
use crate::wire::{Order, ToSite, Wire};

/// Rounds between two reports of progress.
const REPORT_EVERY: usize = 10;

/// Runs one stage; whether it was asked to stop.
pub(super) fn run(
    federation: &mut Federation,
    stage: Stage,
    rounds: usize,
    history: &mut History,
    on_progress: OnProgress,
) -> Result<bool, FederationError> {
    let (length, batch) = (federation.settings.window, federation.settings.batch);
    let clients = &federation.clients;
    let steps = clients.first().map_or(0, TrainingSite::steps);
    let starts = starts(steps, length, |t| clients.iter().all(|client| client.is_measured(t)))?;
    let mut order = rng::stream(rng::child(federation.seed, ORDER), 0);
    let mut learners = Learners::new(federation)?;
    let clients = federation.clients.len();
    let mut course = Course::new(history, on_progress, rounds, REPORT_EVERY, clients);
    let mut stopped = false;
    for round in 0..rounds {
        if round == rounds / 2 {
            federation.server.look_anew();
        }
        let chosen: Vec<usize> =
            (0..batch).map(|_| starts[order.random_range(0..starts.len())]).collect();
        let windows = BatchWindows { starts: &chosen, length, warm_up: WARM_UP };
        let round = learners.round(federation, stage, windows)?;
        let flow = course.round(round.server_loss, round.client_loss, round.sent)?;
        if flow == ControlFlow::Break(()) {
            stopped = true;
            break;
        }
    }
    for (client, phi) in federation.clients.iter_mut().zip(&learners.phi) {
        client.adopt(&phi.weights()?)?;
    }
    federation.server.adopt(&learners.server.weights()?)?;
    Ok(stopped)
}

/// Rows from which `length` steps can be taken with something `measured` at every client all along.
pub(super) fn starts(
    steps: usize,
    length: usize,
    measured: impl Fn(usize) -> bool,
) -> Result<Vec<usize>, FederationError> {
    let mut run = 0;
    let mut starts = Vec::new();
    for t in 0..steps {
        run = if measured(t) { run + 1 } else { 0 };
        if run > length {
            starts.push(t - length);
        }
    }
    if starts.is_empty() || length <= WARM_UP {
        return Err(FederationError::Sites(format!(
            "no stretch of {} rows without a gap at any site to learn from",
            length + 1
        )));
    }
    Ok(starts)
}

/// What turns the gradients of a network into steps.
pub(super) fn learner(
    settings: &ModelSettings,
    weights: LstmFc,
    adam_rate: f64,
    sgd_rate: f64,
) -> candle_core::Result<Trainer<LstmFc>> {
    match settings.optimiser {
        Optimiser::Adam => Trainer::adam(weights, adam_rate),
        Optimiser::Sgd => Trainer::sgd(weights, sgd_rate),
    }
}

struct Learners {
    phi: Vec<Trainer<LstmFc>>,
    server: Trainer<LstmFc>,
}

struct Round {
    server_loss: f64,
    client_loss: Vec<f64>,
    sent: Sent,
}

impl Learners {
    fn new(federation: &Federation) -> candle_core::Result<Self> {
        let s = &federation.settings;
        let phi = federation.clients.iter().map(TrainingSite::phi);
        let phi = phi.map(|phi| learner(s, phi, s.learning_rate, 1.0)).collect::<Result<_, _>>()?;
        Ok(Self { phi, server: learner(s, federation.server.weights(), s.eta3, s.eta3)? })
    }

    fn round(
        &mut self,
        federation: &mut Federation,
        stage: Stage,
        windows: BatchWindows,
    ) -> Result<Round, FederationError> {
        let feedback = stage.feeds_back(&federation.settings);
        let Federation { clients, server, wire, .. } = federation;
        let mut round = Round {
            server_loss: 0.0,
            client_loss: Vec::with_capacity(clients.len()),
            sent: Sent::default(),
        };
        let mut estimates = Vec::with_capacity(clients.len());
        let mut batch = Batch::new(server, windows);
        for (client, phi) in clients.iter_mut().zip(&self.phi) {
            let estimate =
                client.estimate_batch(&network(phi, stage.clients_learn())?, &windows)?;
            round.client_loss.push(estimate.loss()?);
            if stage.server_learns() {
                round.sent.up += send(client, &estimate, wire.as_mut(), server, &mut batch)?;
            }
            estimates.push(estimate);
        }
        let mut gradients = None;
        if stage.server_learns() {
            if !batch.is_complete() {
                return Err(FederationError::Sites("states of a batch are missing".to_owned()));
            }
            let (gradient, by_weights) = batch.gradient(&network(&self.server, true)?)?;
            self.server.descend(by_weights)?;
            server.look_at_batch(&batch, &gradient);
            round.server_loss = gradient.loss;
            gradients = feedback.then_some(gradient);
        }
        if stage.clients_learn() {
            for (m, (estimate, phi)) in estimates.iter().zip(&mut self.phi).enumerate() {
                let g = match &gradients {
                    Some(gradient) => {
                        let messages = server.batch_messages(m, &batch, gradient);
                        let (bytes, g) = send_back(messages, m, wire.as_mut())?;
                        round.sent.down += bytes;
                        Some(g)
                    }
                    None => None,
                };
                let gradient = clients[m].batch_gradient(estimate, &windows, g.as_deref())?;
                phi.descend(gradient)?;
            }
        }
        Ok(round)
    }
}

/// A learner's network; one that does not learn has no graph.
pub(super) fn network(learner: &Trainer<LstmFc>, learns: bool) -> candle_core::Result<LstmNetwork> {
    if learns {
        LstmNetwork::new(learner.sizes(), &learner.builder())
    } else {
        LstmNetwork::running(&learner.weights()?)
    }
}

/// Sends all of a client's states of a batch; how many bytes that took.
pub(super) fn send(
    client: &mut TrainingSite,
    estimate: &BatchEstimate,
    wire: &mut dyn Wire,
    server: &Rounds,
    batch: &mut Batch<'_>,
) -> Result<usize, FederationError> {
    let mut bytes = 0;
    for states in client.batch_messages(estimate, &batch.windows())? {
        let states = states?;
        bytes += states.payload_bytes();
        wire.deliver(states, &mut |message| {
            batch.hear(server, message);
        })?;
    }
    Ok(bytes)
}

/// Sends client `m` its gradients of all steps; how many bytes that took, and what arrived.
fn send_back(
    messages: Vec<Result<ToSite, PrivacyError>>,
    m: usize,
    wire: &mut dyn Wire,
) -> Result<(usize, Vec<f32>), FederationError> {
    let mut arrived = Vec::new();
    let mut bytes = 0;
    for gradient in messages {
        let gradient = gradient?;
        bytes += gradient.payload_bytes();
        wire.deliver_to_site(gradient, &mut |message| {
            if let (true, Order::Gradient(g)) = (message.client() == m, message.order()) {
                arrived.extend_from_slice(g);
            }
        })?;
    }
    Ok((bytes, arrived))
}
