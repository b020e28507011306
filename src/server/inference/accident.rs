//! Accidents that strike several clients at once.
//!
//! When clients are saturated within two steps of each other, their symbols are all of the highest level, and
//! what is left to tell them apart is noise: small differences of their tables, a symbol before the onset,
//! one that a response has changed. None of that may name a root. So for clients that are struck
//! together all symbols count the same, and two things decide: who is struck first, and how severe that
//! step is. Where that is not enough the incident names nobody and shows who it may be.
//!
//! Where a session declares who affects whom, that decides and nothing here is used.

use super::client::Client;
use super::posterior::{largest, softmax};
use super::{Inference, LOOK_BACK};
use crate::evidence::severity::Burst;
use crate::evidence::symbol::Symbol;
use crate::server::health::Report;

/// Clients whose bursts begin so many steps after the first are struck together with it.
const TOGETHER: u64 = 1;
/// Share of the evidence of the strongest from which on a client counts as struck: one highest symbol by
/// chance does not.
const STRUCK: f64 = 0.5;
/// What an octave of severity says for a client, in nats.
const OCTAVE: f64 = 0.85;
/// What it says for a client that it is struck in the first step, in nats: a cause seldom shows after its
/// effect.
const FIRST: f64 = 5.0;
/// Probability from which on one of them is named.
const NAMED: f64 = 0.67;
/// Those of a tie that are shown have this probability together.
const SHOWN: f64 = 0.95;

/// The present burst of highest symbols of a client.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strikes {
    burst: Burst,
    /// The first step of the last burst and its octave; none where no severity was told.
    struck: Option<(u64, u8)>,
}

impl Strikes {
    /// Takes the next report.
    pub(super) fn step(&mut self, report: Report, highest: Symbol, step: u64) {
        let Some(own) = report.own() else { return };
        let begins = self.burst.step(own == highest);
        if let (true, Report::Severe(_, octave)) = (begins, report) {
            self.struck = Some((step, octave));
        }
    }

    /// When the last burst began, and how severe it was.
    fn struck(&self) -> Option<(u64, u8)> {
        self.struck
    }
}

impl Inference {
    /// What speaks for each client once those that were struck together with the leader count the same;
    /// none where it was struck alone.
    pub(super) fn struck_together(&self, attribution: &[f64], leader: usize) -> Option<Vec<f64>> {
        if self.reach.is_declared() {
            return None;
        }
        let of = |client: &Client| client.strikes.struck().filter(|_| client.is_heard());
        let (at, _) = of(&self.clients[leader])?;
        let near = self.clients.iter().filter_map(of).map(|(step, _)| step);
        let first = near.filter(|step| step.abs_diff(at) <= TOGETHER).min()?;
        if first + LOOK_BACK as u64 <= self.step {
            return None;
        }
        let m = self.clients.len();
        let since: Vec<f64> = (0..m)
            .map(|n| {
                let steps = first..=self.step;
                steps.map(|t| self.recent[(t as usize % LOOK_BACK) * m + n]).sum()
            })
            .collect();
        let enough = STRUCK * since[leader];
        let members: Vec<(usize, f64)> = (0..m)
            .filter_map(|n| {
                let (step, octave) = of(&self.clients[n])?;
                let together = (first..=first + TOGETHER).contains(&step);
                let weight = OCTAVE * f64::from(octave) + if step == first { FIRST } else { 0.0 };
                (together && (n == leader || since[n] >= enough)).then_some((n, weight))
            })
            .collect();
        if members.len() < 2 {
            return None;
        }
        let most = members.iter().map(|(_, weight)| *weight).fold(f64::NEG_INFINITY, f64::max);
        // Whoever is not struck stands as far behind as before.
        let mut values: Vec<f64> = attribution.iter().map(|a| a - attribution[leader] + most).collect();
        for (n, weight) in members {
            values[n] = weight;
        }
        Some(values)
    }
}

/// Who may be the root where nobody leads clearly, the likeliest first; empty where one does.
pub(super) fn tied(values: &[f64]) -> Vec<usize> {
    let mut posterior = vec![0.0; values.len()];
    softmax(values, &mut posterior);
    if posterior[largest(values, 0)] >= NAMED {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| posterior[*b].total_cmp(&posterior[*a]).then(a.cmp(b)));
    let mut sum = 0.0;
    order.retain(|n| {
        let is_shown = sum < SHOWN;
        sum += posterior[*n];
        is_shown
    });
    order
}
