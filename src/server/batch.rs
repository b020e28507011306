//! The server's half of batched training: the states of every step of a batch as they arrive, f_s on all
//! of them, and a gradient for every step and client.

use candle_core::backprop::GradStore;
use candle_core::{Device, Result as Candle, Tensor};

use super::inbox::Receipt;
use super::rounds::Rounds;
use crate::nn::network::LstmNetwork;
use crate::nn::train::batch::BatchWindows;
use crate::privacy::PrivacyError;
use crate::wire::{Content, Message, ToSite};

/// What has arrived of a batch. Messages of one client arrive in the order of the batch's steps.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    windows: BatchWindows<'a>,
    /// The step of every message of a client, in its order.
    steps: Vec<u64>,
    /// Number of states of all clients.
    states: usize,
    /// How many messages of each client have arrived.
    arrived: Vec<usize>,
    /// steps × states of all clients.
    x_c: Vec<f32>,
    x_a: Vec<f32>,
}

/// What the server learns from a batch.
#[derive(Debug)]
pub(crate) struct BatchGradient {
    /// Mean L_s.
    pub(crate) loss: f64,
    /// ∂L_s/∂x_a, steps × states of all clients.
    pub(crate) states: Vec<f32>,
}

impl<'a> Batch<'a> {
    /// A batch of which nothing has arrived.
    pub(crate) fn new(server: &Rounds, windows: BatchWindows<'a>) -> Self {
        let states = server.states();
        let zero = vec![0.0; windows.count() * states];
        Self {
            steps: windows.before().map(|before| before as u64 + 1).collect(),
            windows,
            states,
            arrived: vec![0; server.clients()],
            x_c: zero.clone(),
            x_a: zero,
        }
    }

    /// Takes the states of one client at one step.
    pub(crate) fn hear(&mut self, server: &Rounds, message: &Message) -> Receipt {
        let Content::States { x_c, x_a } = message.content() else { return Receipt::Misplaced };
        let client = message.client();
        let Some(arrived) = self.arrived.get_mut(client) else { return Receipt::Stranger };
        let span = server.span(client);
        if (x_c.len(), x_a.len()) != (span.len(), span.len()) {
            return Receipt::Invalid;
        }
        if self.steps.get(*arrived) != Some(&message.step()) {
            return Receipt::Misplaced;
        }
        let first = *arrived * self.states;
        *arrived += 1;
        let at = first + span.start..first + span.end;
        self.x_c[at.clone()].copy_from_slice(x_c);
        self.x_a[at].copy_from_slice(x_a);
        Receipt::Taken
    }

    pub(crate) fn windows(&self) -> BatchWindows<'a> {
        self.windows
    }

    /// Whether every state of every client has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.arrived.iter().all(|arrived| *arrived == self.steps.len())
    }

    /// L_s of `f_s`, its gradients by the states, and that by θ_s.
    pub(crate) fn gradient(&self, f_s: &LstmNetwork) -> Candle<(BatchGradient, GradStore)> {
        let cpu = &Device::Cpu;
        let (windows, states) = (&self.windows, self.states);
        let n = windows.count();
        let shape = (windows.starts.len(), windows.length, states);
        let x_c = Tensor::from_slice(&self.x_c, shape, cpu)?;
        let x_a = Tensor::from_slice(&self.x_a, (n, states), cpu)?;
        let shares: Vec<f32> = windows.shares().collect();
        let shares = Tensor::from_vec(shares, (n, 1), cpu)?;
        let e = (f_s.seq(&x_c)?.reshape((n, states))? - x_a)?;
        let loss = e.sqr()?.broadcast_mul(&shares)?.sum_all()?;
        let gradient = BatchGradient {
            loss: f64::from(loss.to_scalar::<f32>()?),
            states: (e.detach() * -2.0)?.flatten_all()?.to_vec1()?,
        };
        Ok((gradient, loss.backward()?))
    }
}

impl Rounds {
    /// Looks at how the states of a batch move together: what arrived, and x_s = x_a − ½ ∂L_s/∂x_a.
    pub(crate) fn look_at_batch(&mut self, batch: &Batch<'_>, gradient: &BatchGradient) {
        let states = batch.states;
        let steps = batch.x_c.chunks_exact(states).zip(batch.x_a.chunks_exact(states));
        let steps = steps.zip(gradient.states.chunks_exact(states)).enumerate();
        for (_, ((x_c, x_a), g)) in steps.filter(|(i, _)| !batch.windows.is_warm_up(*i)) {
            self.look_at(x_c, x_a, || x_a.iter().zip(g).map(|(x_a, g)| x_a - 0.5 * g).collect());
        }
    }

    /// g of every step of a batch for client `m`, one message each.
    pub(crate) fn batch_messages(
        &mut self,
        m: usize,
        batch: &Batch<'_>,
        gradient: &BatchGradient,
    ) -> Vec<Result<ToSite, PrivacyError>> {
        let span = self.span(m);
        let steps = batch.steps.iter().zip(gradient.states.chunks_exact(batch.states));
        steps.map(|(step, g)| self.gradient_message_of(m, *step, &g[span.clone()])).collect()
    }
}
