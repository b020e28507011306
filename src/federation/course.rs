//! How training goes: losses and bytes, a report now and then, and the end when it goes wrong.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{FederationError, Sent};

/// A mean loss this many times the first one is divergence, not noise.
pub(super) const DIVERGENCE: f64 = 20.0;

/// How far training has come. Losses are means over the rounds since the last report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Progress<'a> {
    pub(crate) round: usize,
    pub(crate) rounds: usize,
    /// L_s.
    pub(crate) server_loss: f64,
    /// L_a of each client.
    pub(crate) client_loss: &'a [f64],
    /// Bytes of all messages since training began.
    pub(crate) bytes: u64,
}

/// Called now and then; `Break` ends training with what was learned.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reached {
    pub(crate) round: usize,
    /// Mean L_s since the report before.
    pub(crate) server_loss: f64,
    /// Mean L_a of each client since the report before.
    pub(crate) client_loss: Vec<f64>,
}

/// The course of a whole training.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct History {
    pub(crate) reached: Vec<Reached>,
    pub(crate) rounds: usize,
    /// Bytes of all messages, both directions.
    pub(crate) bytes: u64,
    /// Those of the server to the clients; absent from older files.
    #[serde(default)]
    pub(crate) bytes_down: u64,
}

pub(super) struct Course<'a> {
    history: &'a mut History,
    on_progress: OnProgress<'a>,
    every: usize,
    /// Rounds in all, earlier stages included.
    rounds: usize,
    since: usize,
    server_sum: f64,
    client_sums: Vec<f64>,
    first: Option<f64>,
}

impl<'a> Course<'a> {
    /// A stage of `rounds` rounds, with a report after `every` of them.
    pub(super) fn new(
        history: &'a mut History,
        on_progress: OnProgress<'a>,
        rounds: usize,
        every: usize,
        clients: usize,
    ) -> Self {
        Self {
            rounds: history.rounds + rounds,
            history,
            on_progress,
            every,
            since: 0,
            server_sum: 0.0,
            client_sums: vec![0.0; clients],
            first: None,
        }
    }

    /// Takes in the losses of one round or batch.
    pub(super) fn round(
        &mut self,
        server_loss: f64,
        client_loss: impl IntoIterator<Item = f64>,
        sent: Sent,
    ) -> Result<ControlFlow<()>, FederationError> {
        for (sum, loss) in self.client_sums.iter_mut().zip(client_loss) {
            *sum += loss;
        }
        self.server_sum += server_loss;
        self.since += 1;
        self.history.rounds += 1;
        self.history.bytes += (sent.up + sent.down) as u64;
        self.history.bytes_down += sent.down as u64;
        let finite = self.server_sum.is_finite() && self.client_sums.iter().all(|s| s.is_finite());
        if finite && self.since < self.every && self.history.rounds < self.rounds {
            return Ok(ControlFlow::Continue(()));
        }
        self.report()
    }

    fn report(&mut self) -> Result<ControlFlow<()>, FederationError> {
        let n = self.since as f64;
        let server_loss = self.server_sum / n;
        let client_loss: Vec<f64> = self.client_sums.iter().map(|sum| sum / n).collect();
        let round = self.history.rounds;
        let all = server_loss + client_loss.iter().sum::<f64>();
        let bound = DIVERGENCE * self.first.get_or_insert(all).max(1.0);
        if !all.is_finite() || all > bound {
            return Err(FederationError::Diverged { round, server_loss, client_loss });
        }
        let flow = (self.on_progress)(Progress {
            round,
            rounds: self.rounds,
            server_loss,
            client_loss: &client_loss,
            bytes: self.history.bytes,
        });
        self.history.reached.push(Reached { round, server_loss, client_loss });
        self.since = 0;
        self.server_sum = 0.0;
        self.client_sums.fill(0.0);
        Ok(if round < self.rounds { flow } else { ControlFlow::Continue(()) })
    }
}
