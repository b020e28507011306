//! Algorithm 1 on batches of windows (I9): the same messages, gradients through time in candle.
//!
//! A window begins with an empty memory of φ and f_s; its first steps are not in any loss. The
//! proprietary chain, the memory of f_m included, is the client's kept one. Every step of every
//! window is a message of its own, so that what is sent, noised and counted is what the online way
//! sends.

use super::{Federation, FederationError, Sent, Stage};
use crate::nn::network::LstmNetwork;
use crate::nn::train::batch::BatchWindows;
use crate::nn::train::trainer::Trainer;
use crate::nn::weights::LstmFc;
use crate::privacy::PrivacyError;
use crate::server::Rounds;
use crate::server::batch::{Batch, BatchGradient};
use crate::session::settings::{ModelSettings, Optimiser};
use crate::site::batch::BatchEstimate;
use crate::site::training::TrainingSite;
use crate::wire::{Order, ToSite, Wire};

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

/// What learns in all rounds of a stage.
pub(super) struct Learners {
    phi: Vec<Trainer<LstmFc>>,
    server: Trainer<LstmFc>,
}

pub(super) struct Round {
    pub(super) server_loss: f64,
    pub(super) client_loss: Vec<f64>,
    pub(super) sent: Sent,
}

impl Learners {
    pub(super) fn new(federation: &Federation) -> candle_core::Result<Self> {
        let s = &federation.settings;
        let phi = federation.clients.iter().map(TrainingSite::phi);
        let phi = phi.map(|phi| learner(s, phi, s.learning_rate, 1.0)).collect::<Result<_, _>>()?;
        Ok(Self { phi, server: learner(s, federation.server.weights(), s.eta3, s.eta3)? })
    }

    pub(super) fn round(
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
            let gradient = learn_batch(server, &mut self.server, &batch)?;
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

    /// Clients and server take over what was learned.
    pub(super) fn finish(self, federation: &mut Federation) -> Result<(), FederationError> {
        for (client, phi) in federation.clients.iter_mut().zip(&self.phi) {
            client.adopt(&phi.weights()?)?;
        }
        Ok(federation.server.adopt(&self.server.weights()?)?)
    }
}

/// The server learns from the states of all clients.
pub(super) fn learn_batch(
    server: &mut Rounds,
    f_s: &mut Trainer<LstmFc>,
    batch: &Batch<'_>,
) -> Result<BatchGradient, FederationError> {
    if !batch.is_complete() {
        return Err(FederationError::Sites("states of a round are missing".to_owned()));
    }
    let (gradient, by_weights) = batch.gradient(&network(f_s, true)?)?;
    f_s.descend(by_weights)?;
    server.look_at_batch(batch, &gradient);
    Ok(gradient)
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
