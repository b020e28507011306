//! Accidents that strike several clients at once.
//!
//! When clients are saturated in one step or the next, their symbols are all of the highest level, and
//! what is left to tell them apart is noise: small differences of their tables, a symbol before the onset,
//! one that a response has changed. None of that may name a root. So for clients that are struck
//! together three things decide: who is struck first, how severe that step is, and how severe it still is
//! two steps later. A client that stays as severe is sensitive: small disturbances look severe to it, so
//! its first severity counts for less. Where that is not enough, the incident names no root and lists the
//! candidates.
//!
//! What both severities say is in [`severity`](crate::evidence::severity). A later severity counts once
//! all who are struck could send theirs.
//!
//! Where a session declares who affects whom, that decides and nothing here is used.

use super::Inference;
use super::client::Client;
use super::posterior::{largest, softmax};
use crate::evidence::severity::{LATER, Later, SEVERITIES, root_evidence};
use crate::evidence::symbol::{RandomisedResponse, Symbol};
use crate::server::health::Report;

/// Clients whose bursts begin so many steps after the first are struck together with it.
const TOGETHER: u64 = 1;
/// How seldom a cause shows a step after its effect, where symbols are not noised.
const SHOWS_LATER: f64 = 0.01;
/// Probability from which on one of them is named.
const NAMED: f64 = 0.8;
/// Those of a tie that are shown have this probability together.
const SHOWN: f64 = 0.99;

/// Steps of a burst that are looked at: with two of them at the highest level it counts.
const LOOKED_AT: u64 = 3;
/// Steps before the alarm in which a common onset may lie.
const BEFORE_ALARM: u64 = 8;

/// The beginning of a burst of highest symbols.
#[derive(Debug, Clone, Copy)]
struct Strike {
    step: u64,
    severity: u8,
    /// Its severity [`LATER`] steps later, where that step is of the highest level too.
    later: Option<u8>,
    /// Highest symbols of the steps that are looked at.
    highest: u64,
    /// A lower symbol came before the later severity could be sent.
    is_lower: bool,
}

impl Strike {
    /// Whether it is more than a single symbol, as far as that can be known at `now`.
    fn counts(&self, now: u64) -> bool {
        let seen = (now + 1 - self.step).min(LOOKED_AT);
        self.highest >= seen.min(LOOKED_AT - 1)
    }
}

/// The last bursts of a client.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strikes([Option<Strike>; 4]);

impl Strikes {
    /// Takes the next report.
    pub(super) fn step(&mut self, report: Report, highest: Symbol, step: u64) {
        if report.own() == Some(highest) {
            for strike in self.0.iter_mut().flatten() {
                strike.highest += u64::from(step < strike.step + LOOKED_AT);
            }
        }
        if report.own().is_some_and(|own| own < highest) {
            for strike in self.0.iter_mut().flatten() {
                strike.is_lower |= step <= strike.step + u64::from(LATER);
            }
        }
        let Report::Severe(_, severity) = report else { return };
        let goes_on = |strike: &&mut Strike| {
            step == strike.step + u64::from(LATER) && strike.highest == 1 + u64::from(LATER)
        };
        if let Some(strike) = self.0[0].as_mut().filter(goes_on) {
            strike.later = Some(severity);
        } else {
            self.0.rotate_right(1);
            self.0[0] = Some(Strike { step, severity, later: None, highest: 1, is_lower: false });
        }
    }

    /// The first burst that counts of those that began in `from..=until`.
    fn first(&self, from: u64, until: u64, now: u64) -> Option<Strike> {
        let mut bursts = self.0.iter().rev().flatten();
        bursts.find(|s| (from..=until).contains(&s.step) && s.counts(now)).copied()
    }
}

impl Inference {
    /// What speaks for each client once those that were struck together with the leader count the same;
    /// none where it was struck alone. `alarm` is the step of the alarm.
    pub(super) fn struck_together(
        &self,
        attribution: &[f64],
        leader: usize,
        alarm: u64,
    ) -> Option<Vec<f64>> {
        if self.reach.is_declared() {
            return None;
        }
        let earliest = alarm.saturating_sub(BEFORE_ALARM);
        let heard = |client: &&Client| client.is_heard();
        let strikes = self.clients.iter().filter(heard);
        let first = strikes.filter_map(|c| c.strikes.first(earliest, alarm, self.step));
        let first = first.map(|strike| strike.step).min()?;
        let knows_later = self.step >= first + TOGETHER + u64::from(LATER);
        let weight = |client: &Client| {
            let strike = client.strikes.first(first, first + TOGETHER, self.step)?;
            let epsilon = client.enrolment.epsilon;
            // A noised symbol may have begun the burst, or hidden its beginning.
            let unchanged =
                RandomisedResponse::new(self.grading.levels(), epsilon).probability(0, 0);
            let is_first = -(SHOWS_LATER + 1.0 - unchanged).ln();
            let of_first = if strike.step == first { is_first } else { 0.0 };
            let later = match strike.later {
                Some(later) if knows_later => Later::Sent(later),
                // Two symbols had to be the highest.
                None if knows_later && strike.is_lower => {
                    Later::NotHighest { hidden: 1.0 - unchanged * unchanged }
                }
                _ => Later::Unknown,
            };
            let response = RandomisedResponse::new(usize::from(SEVERITIES), epsilon);
            Some(of_first + root_evidence(strike.severity, later, &response))
        };
        let weights: Vec<Option<f64>> =
            self.clients.iter().map(|c| weight(c).filter(|_| c.is_heard())).collect();
        weights[leader]?;
        if weights.iter().flatten().count() < 2 {
            return None;
        }
        let most = weights.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        // Whoever is not struck stands as far behind as before.
        let behind = attribution.iter().map(|a| a - attribution[leader] + most);
        Some(weights.iter().zip(behind).map(|(weight, behind)| weight.unwrap_or(behind)).collect())
    }
}

/// Who may be the root where no client leads clearly, the likeliest first; empty where one does.
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
