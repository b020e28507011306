//! Algorithm 1 on batches of windows (I9): the same messages, gradients through time in candle.
//!
//! A window begins with an empty memory of φ and f_s; its first steps are not in any loss. The
//! proprietary chain, the memory of f_m included, is the client's kept one. Every step of every
//! window is a message of its own, so that what is sent, noised and counted is what the online way
//! sends.

use std::ops::ControlFlow;

use candle_core::{Device, Result as Candle, Tensor};
use rand::RngExt as _;

use super::course::{Course, History, OnProgress};
use super::{Federation, FederationError, ORDER, Sent, Stage};
use crate::model::network::{FilterNetwork, LstmNetwork, LstmState};
use crate::model::train::adam::{Adam, Parameters as _};
use crate::model::train::optimise::WARM_UP;
use crate::model::weights::LstmFc;
use crate::rng;
use crate::server::Rounds;
use crate::session::settings::Optimiser;
use crate::site::training::TrainingSite;
use crate::wire::{Content, Order, Wire};

/// Rounds between two words of progress.
const WORD: usize = 10;

/// Which steps are learned from: `length` of them after each of the rows `starts`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows<'a> {
    pub starts: &'a [usize],
    pub length: usize,
    /// Steps at the start of a window that are in no loss.
    pub warm_up: usize,
}

impl Windows<'_> {
    fn count(&self) -> usize {
        self.starts.len() * self.length
    }

    /// The rows t − 1 of all steps, window by window.
    fn before(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.iter().flat_map(|&start| start..start + self.length)
    }

    /// The share of each step in a mean loss.
    fn shares(&self) -> impl Iterator<Item = f32> + '_ {
        let share = 1.0 / (self.starts.len() * (self.length - self.warm_up)) as f32;
        (0..self.count()).map(move |i| if i % self.length < self.warm_up { 0.0 } else { share })
    }
}

/// Runs one stage; whether it was asked to stop.
pub(super) fn run(
    federation: &mut Federation,
    stage: Stage,
    rounds: usize,
    history: &mut History,
    on_progress: OnProgress,
) -> Result<bool, FederationError> {
    let (length, batch) = (federation.settings.window, federation.settings.batch);
    let starts = starts(&federation.clients, length);
    if starts.is_empty() || length <= WARM_UP {
        return Err(FederationError::Sites(format!(
            "no stretch of {} rows without a gap at any site to learn from",
            length + 1
        )));
    }
    let mut order = rng::stream(rng::child(federation.seed, ORDER), 0);
    let mut learners = Learners::new(federation);
    let clients = federation.clients.len();
    let mut course = Course::new(history, on_progress, rounds, WORD, clients);
    let mut stopped = false;
    for round in 0..rounds {
        if round == rounds / 2 {
            federation.server.look_anew();
        }
        let chosen: Vec<usize> =
            (0..batch).map(|_| starts[order.random_range(0..starts.len())]).collect();
        let windows = Windows { starts: &chosen, length, warm_up: WARM_UP };
        let round = learners.round(federation, stage, windows)?;
        let flow = course.batch(round.server_loss, &round.client_loss, round.sent)?;
        if flow == ControlFlow::Break(()) {
            stopped = true;
            break;
        }
    }
    for (client, phi) in federation.clients.iter_mut().zip(&learners.phi) {
        client.adopt(&phi.weights)?;
    }
    federation.server.adopt(&learners.server.weights)?;
    Ok(stopped)
}

/// Rows from which `length` steps can be taken with something measured at every client all along.
fn starts(clients: &[TrainingSite], length: usize) -> Vec<usize> {
    let steps = clients.first().map_or(0, |client| client.chain().steps());
    let mut run = 0;
    let mut starts = Vec::new();
    for t in 0..steps {
        let whole = clients.iter().all(|client| client.chain().is_measured(t));
        run = if whole { run + 1 } else { 0 };
        if run > length {
            starts.push(t - length);
        }
    }
    starts
}

/// Weights and what steps them.
struct Learner {
    weights: LstmFc,
    step: Step,
}

enum Step {
    Adam(Adam),
    Sgd(f64),
}

impl Learner {
    fn new(weights: LstmFc, optimiser: Optimiser, adam_rate: f64, sgd_rate: f64) -> Self {
        let step = match optimiser {
            Optimiser::Adam => Step::Adam(Adam::new(&weights, adam_rate)),
            Optimiser::Sgd => Step::Sgd(sgd_rate),
        };
        Self { weights, step }
    }

    fn descend(&mut self, gradient: &LstmFc) {
        match &mut self.step {
            // A gradient that is not finite changes nothing; the loss beside it says so.
            Step::Adam(adam) => {
                adam.step(&mut self.weights, gradient);
            }
            Step::Sgd(rate) => {
                let rate = *rate as f32;
                let gradient = gradient.slices().into_iter().flatten();
                let weights = self.weights.slices_mut().into_iter().flatten();
                weights.zip(gradient).for_each(|(w, g)| *w -= rate * g);
            }
        }
    }
}

struct Learners {
    phi: Vec<Learner>,
    server: Learner,
}

/// What a batch came to.
struct Round {
    server_loss: f64,
    client_loss: Vec<f64>,
    sent: Sent,
}

impl Learners {
    fn new(federation: &Federation) -> Self {
        let s = &federation.settings;
        let learner =
            |weights, adam_rate, sgd_rate| Learner::new(weights, s.optimiser, adam_rate, sgd_rate);
        Self {
            phi: federation
                .clients
                .iter()
                .map(|client| learner(client.phi(), s.learning_rate, 1.0))
                .collect(),
            server: learner(federation.server.weights(), s.eta3, s.eta3),
        }
    }

    fn round(
        &mut self,
        federation: &mut Federation,
        stage: Stage,
        windows: Windows,
    ) -> Result<Round, FederationError> {
        let feedback = stage.feeds_back(&federation.settings);
        let Federation { clients, server, wire, .. } = federation;
        let mut round = Round {
            server_loss: 0.0,
            client_loss: Vec::with_capacity(clients.len()),
            sent: Sent::default(),
        };
        let mut estimates = Vec::with_capacity(clients.len());
        let mut inbox = Inbox::new(server, &windows);
        for (client, phi) in clients.iter_mut().zip(&self.phi) {
            let estimate = Estimate::new(client, &phi.weights, &windows, stage.clients_learn())?;
            round.client_loss.push(f64::from(estimate.loss().to_scalar::<f32>()?));
            if stage.server_learns() {
                round.sent.up +=
                    inbox.take(client, server, wire.as_mut(), &windows, estimate.x_a())?;
            }
            estimates.push(estimate);
        }
        let mut gradients = None;
        if stage.server_learns() {
            let (loss, gradient, g) = server_gradient(&self.server.weights, &inbox, &windows)?;
            self.server.descend(&gradient);
            inbox.show(server, &windows, &g);
            round.server_loss = loss;
            gradients = feedback.then_some(g);
        }
        if stage.clients_learn() {
            for (m, (estimate, phi)) in estimates.iter().zip(&mut self.phi).enumerate() {
                let g = match &gradients {
                    Some(g) => {
                        let (bytes, g) = send_back(server, wire.as_mut(), m, &windows, g)?;
                        round.sent.down += bytes;
                        Some(g)
                    }
                    None => None,
                };
                phi.descend(&estimate.gradient(&clients[m], &windows, g.as_deref())?);
            }
        }
        Ok(round)
    }
}

/// A client's forward pass over a batch.
pub(super) struct Estimate {
    phi: LstmNetwork,
    /// steps × P.
    x_a: Tensor,
    loss: Tensor,
}

impl Estimate {
    pub(super) fn new(
        client: &TrainingSite,
        phi: &LstmFc,
        windows: &Windows,
        trainable: bool,
    ) -> Candle<Self> {
        let cpu = &Device::Cpu;
        let chain = client.chain();
        let functions = FilterNetwork::from_weights(client.functions(), cpu, false)?;
        let phi = LstmNetwork::from_weights(phi, cpu, trainable)?;
        let n = windows.count();
        let gather = |row: &dyn Fn(usize) -> Vec<f32>, columns: usize| {
            let values: Vec<f32> = windows.before().flat_map(row).collect();
            Tensor::from_vec(values, (n, columns), cpu)
        };
        let (sensors, states) = (chain.sensors(), client.states());
        let width = client.functions().transition.width;
        let input = gather(&|t| chain.input(t).to_vec(), sensors)?;
        let x_hat_c = gather(&|t| chain.x_hat(t).to_vec(), states)?;
        let memory = LstmState {
            h: gather(&|t| chain.hidden_and_cell(t).0.to_vec(), width)?,
            c: gather(&|t| chain.hidden_and_cell(t).1.to_vec(), width)?,
        };
        let present = |v: &f32| if v.is_finite() { *v } else { 0.0 };
        let target = gather(&|t| chain.target(t + 1).iter().map(present).collect(), sensors)?;
        let weight: Vec<f32> = windows
            .before()
            .zip(windows.shares())
            .flat_map(|(t, share)| {
                let weight = move |v: &f32| if v.is_finite() { share } else { 0.0 };
                chain.target(t + 1).iter().map(weight)
            })
            .collect();
        let weight = Tensor::from_vec(weight, (n, sensors), cpu)?;
        let correction =
            phi.seq(&input.reshape((windows.starts.len(), windows.length, sensors))?)?;
        let x_hat_a = (x_hat_c + correction.reshape((n, states))?)?;
        let (x_a, _) = functions.transition(&functions.unroll()?, &x_hat_a, &memory)?;
        let r = (target - functions.measurement(&x_a)?)?;
        let loss = (r.sqr()? * weight)?.sum_all()?;
        Ok(Self { phi, x_a, loss })
    }

    /// x_a of every step.
    pub(super) fn x_a(&self) -> &Tensor {
        &self.x_a
    }

    /// Mean L_a.
    pub(super) fn loss(&self) -> &Tensor {
        &self.loss
    }

    /// ∇ of η1 L_a + η2 L_s by θ_m, L_s through the server's `g`, one per step.
    pub(super) fn gradient(
        &self,
        client: &TrainingSite,
        windows: &Windows,
        g: Option<&[f32]>,
    ) -> Candle<LstmFc> {
        let eta = client.eta();
        let mut objective = (&self.loss * f64::from(eta.own))?;
        if let Some(g) = g {
            let states = client.states();
            let shares = windows.shares().flat_map(|share| std::iter::repeat_n(share, states));
            let g: Vec<f32> = g.iter().zip(shares).map(|(g, share)| g * share).collect();
            let g = Tensor::from_vec(g, (windows.count(), states), &Device::Cpu)?;
            let server = ((&self.x_a * g)?.sum_all()? * f64::from(eta.server))?;
            objective = (objective + server)?;
        }
        self.phi.to_gradient(&objective.backward()?)
    }
}

/// What the server knows of a batch: what arrived.
pub(super) struct Inbox {
    states: usize,
    /// steps × states of all clients.
    x_c: Vec<f32>,
    x_a: Vec<f32>,
}

impl Inbox {
    pub(super) fn new(server: &Rounds, windows: &Windows) -> Self {
        let states = server.states();
        let zero = vec![0.0; windows.count() * states];
        Self { states, x_c: zero.clone(), x_a: zero }
    }

    /// Sends all of a client's states; how many bytes that took.
    pub(super) fn take(
        &mut self,
        client: &mut TrainingSite,
        server: &Rounds,
        wire: &mut dyn Wire,
        windows: &Windows,
        x_a: &Tensor,
    ) -> Result<usize, FederationError> {
        let x_a = x_a.flatten_all()?.to_vec1::<f32>()?;
        let mut bytes = 0;
        for (i, (before, x_a)) in
            windows.before().zip(x_a.chunks_exact(client.states())).enumerate()
        {
            let states = client.states_message_of(before + 1, x_a)?;
            bytes += states.payload_bytes();
            wire.send(states)?;
            while let Some(message) = wire.receive() {
                let Content::States { x_c, x_a } = message.content() else { continue };
                let span = server.span(message.client());
                let at = i * self.states + span.start..i * self.states + span.end;
                self.x_c[at.clone()].copy_from_slice(x_c);
                self.x_a[at].copy_from_slice(x_a);
            }
        }
        Ok(bytes)
    }

    /// Lets the server look at what arrived beside its x_s = x_a − ½ ∂L_s/∂x_a.
    fn show(&self, server: &mut Rounds, windows: &Windows, g: &[f32]) {
        let steps = self.x_c.chunks_exact(self.states).zip(self.x_a.chunks_exact(self.states));
        for (i, ((x_c, x_a), g)) in steps.zip(g.chunks_exact(self.states)).enumerate() {
            if i % windows.length >= windows.warm_up {
                let x_s = || x_a.iter().zip(g).map(|(x_a, g)| x_a - 0.5 * g).collect();
                server.look_at(x_c, x_a, x_s);
            }
        }
    }
}

/// L_s, its gradient by θ_s, and ∂L_s/∂x_a of every step (steps × states).
pub(super) fn server_gradient(
    weights: &LstmFc,
    inbox: &Inbox,
    windows: &Windows,
) -> Candle<(f64, LstmFc, Vec<f32>)> {
    let cpu = &Device::Cpu;
    let (n, states) = (windows.count(), inbox.states);
    let f_s = LstmNetwork::from_weights(weights, cpu, true)?;
    let x_c = Tensor::from_slice(&inbox.x_c, (windows.starts.len(), windows.length, states), cpu)?;
    let x_a = Tensor::from_slice(&inbox.x_a, (n, states), cpu)?;
    let shares: Vec<f32> = windows.shares().collect();
    let shares = Tensor::from_vec(shares, (n, 1), cpu)?;
    let e = (f_s.seq(&x_c)?.reshape((n, states))? - x_a)?;
    let loss = e.sqr()?.broadcast_mul(&shares)?.sum_all()?;
    let gradient = f_s.to_gradient(&loss.backward()?)?;
    let g = (e.detach() * -2.0)?.flatten_all()?.to_vec1()?;
    Ok((f64::from(loss.to_scalar::<f32>()?), gradient, g))
}

/// Sends client `m` its gradients of all steps; how many bytes that took, and what arrived.
fn send_back(
    server: &mut Rounds,
    wire: &mut dyn Wire,
    m: usize,
    windows: &Windows,
    g: &[f32],
) -> Result<(usize, Vec<f32>), FederationError> {
    let (span, states) = (server.span(m), server.states());
    let mut arrived = Vec::with_capacity(windows.count() * span.len());
    let mut bytes = 0;
    for (before, g) in windows.before().zip(g.chunks_exact(states)) {
        let gradient = server.gradient_message_of(m, before as u64 + 1, &g[span.clone()])?;
        bytes += gradient.payload_bytes();
        wire.send_to_site(gradient)?;
        while let Some(message) = wire.receive_at_site() {
            if let Order::Gradient(g) = message.order() {
                arrived.extend_from_slice(g);
            }
        }
    }
    Ok((bytes, arrived))
}
