//! How the states of all clients move together, as whoever estimates them sees it (the paper's
//! figures 2 and 6).
//!
//! The server knows it from the states that arrived and from what it made of them: nothing more is
//! sent for it, and noise on what was sent is in it. Only the oracle, which sees everybody's
//! measurements, has to be asked elsewhere. Clients whose measurements contain what their neighbours
//! do correlate without anything having been learned.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::moments::Moments;

/// One round in so many is looked at: states change slowly, and looking takes time.
const EVERY: usize = 4;
/// A map of more states than this could not be read.
const MOST_STATES: usize = 128;
/// The fewest rounds that give a map.
const LEAST: usize = 30;

/// Whose estimate of the states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Estimator {
    /// x̂_c.
    Proprietary,
    /// x_a.
    Augmented,
    /// x_s.
    Server,
    /// x_o, from the measurements of all.
    Oracle,
}

impl Estimator {
    /// All of them, in the order of the paper's figures.
    pub(crate) const ALL: [Self; 4] =
        [Self::Proprietary, Self::Augmented, Self::Server, Self::Oracle];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Proprietary => "proprietary",
            Self::Augmented => "augmented",
            Self::Server => "server",
            Self::Oracle => "oracle",
        }
    }
}

/// Correlations of the states of all clients, by estimator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StateCorrelation {
    /// Number of states of each client.
    pub(crate) states: Vec<usize>,
    /// Rounds that the server looked at.
    pub(crate) rounds: usize,
    maps: Vec<(Estimator, Vec<f32>)>,
}

impl StateCorrelation {
    /// The correlations of one estimator's states.
    pub(crate) fn map(&self, of: Estimator) -> Option<Map<'_>> {
        let (_, values) = self.maps.iter().find(|(known, _)| *known == of)?;
        Some(Map { states: &self.states, values })
    }

    /// The same with the oracle's map; nothing where it has other states.
    #[must_use]
    pub(crate) fn with_oracle(mut self, values: Vec<f32>) -> Option<Self> {
        let all: usize = self.states.iter().sum();
        self.maps.retain(|(of, _)| *of != Estimator::Oracle);
        (values.len() == all * all).then(|| {
            self.maps.push((Estimator::Oracle, values));
            self
        })
    }

    /// Whether every map has a value for every pair of states.
    pub(crate) fn is_whole(&self) -> bool {
        let all: usize = self.states.iter().sum();
        self.maps.iter().all(|(_, values)| values.len() == all * all)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Map<'a> {
    states: &'a [usize],
    values: &'a [f32],
}

impl Map<'_> {
    /// Number of states of all clients.
    pub(crate) fn size(&self) -> usize {
        self.states.iter().sum()
    }

    /// Correlation of two states, counted over all clients.
    pub(crate) fn at(&self, one: usize, other: usize) -> f64 {
        self.values.get(one * self.size() + other).map_or(f64::NAN, |value| f64::from(*value))
    }

    /// Mean size of the correlation between a state of one client and one of another.
    pub(crate) fn between(&self, one: usize, other: usize) -> f64 {
        let (one, other) = (self.span(one), self.span(other));
        let n = (one.len() * other.len()).max(1) as f64;
        let pairs = one.flat_map(|i| other.clone().map(move |j| (i, j)));
        pairs.map(|(i, j)| self.at(i, j).abs()).sum::<f64>() / n
    }

    /// The same over all pairs of states of different clients.
    pub(crate) fn mean(&self) -> f64 {
        let clients = self.states.len();
        let pairs = (0..clients).flat_map(|m| (m + 1..clients).map(move |n| (m, n)));
        let (sum, all) = pairs.fold((0.0, 0.0), |(sum, all), (m, n)| {
            let weight = (self.states[m] * self.states[n]) as f64;
            (sum + weight * self.between(m, n), all + weight)
        });
        if all > 0.0 { sum / all } else { 0.0 }
    }

    fn span(&self, client: usize) -> Range<usize> {
        let start = self.states.iter().take(client).sum();
        start..start + self.states.get(client).copied().unwrap_or(0)
    }
}

/// What the server has seen of states since it last began to look.
#[derive(Debug)]
pub(super) struct Look {
    passed: usize,
    moments: [Moments; 3],
}

impl Look {
    /// Nothing seen yet of so many states; none where they are too many.
    pub(super) fn new(states: usize) -> Option<Self> {
        let moments = || Moments::new(states);
        (states <= MOST_STATES)
            .then(|| Self { passed: 0, moments: [moments(), moments(), moments()] })
    }

    pub(super) fn anew(&mut self) {
        self.passed = 0;
        self.moments.iter_mut().for_each(Moments::clear);
    }

    /// Whether the present round is one of those that are looked at.
    pub(super) fn is_due(&mut self) -> bool {
        self.passed += 1;
        self.passed.is_multiple_of(EVERY)
    }

    /// x̂_c, x_a and x_s of one round.
    pub(super) fn take(&mut self, x: [&[f32]; 3]) {
        self.moments.iter_mut().zip(x).for_each(|(moments, x)| moments.add(x));
    }

    /// What it comes to for clients of `states` states; nothing after a few rounds.
    pub(super) fn together(&self, states: Vec<usize>) -> Option<StateCorrelation> {
        let rounds = self.moments.iter().map(Moments::count).min().unwrap_or(0);
        let maps = Estimator::ALL.into_iter().zip(self.moments.iter().map(Moments::correlation));
        (rounds >= LEAST).then(|| StateCorrelation { states, rounds, maps: maps.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(rounds: usize) -> Option<StateCorrelation> {
        let mut look = Look::new(3).expect("few states");
        look.take([&[7.0, 7.0, 7.0]; 3]);
        look.anew();
        for t in 0..rounds {
            if !look.is_due() {
                continue;
            }
            let (sin, cos) = ((t as f32 * 0.61).sin(), (t as f32 * 0.61).cos());
            look.take([&[sin, cos, 0.0], &[sin, cos, sin], &[sin, cos, -sin]]);
        }
        look.together(vec![2, 1])
    }

    #[test]
    fn what_moves_together_is_told_by_estimator_and_client() {
        let together = looked(4000).expect("rounds enough");
        assert_eq!((together.rounds, together.is_whole()), (1000, true));
        let map = |of| together.map(of).expect("the server saw it");
        assert!(map(Estimator::Proprietary).between(0, 1) < 1e-9, "the third state stood still");
        // One of two states moves with the third, the other a quarter turn beside it.
        for of in [Estimator::Augmented, Estimator::Server] {
            let (between, mean) = (map(of).between(1, 0), map(of).mean());
            assert!((between - 0.5).abs() < 0.02 && (between - mean).abs() < 1e-9, "{between}");
        }
        assert!(map(Estimator::Server).at(2, 0) < -0.99);
        assert!(together.map(Estimator::Oracle).is_none());
    }

    #[test]
    fn the_oracle_stands_beside_the_others_if_it_has_their_states() {
        let together = looked(4000).expect("rounds enough");
        assert_eq!(together.clone().with_oracle(vec![0.0; 4]), None);
        let both = together.with_oracle(vec![0.25; 9]).expect("nine pairs");
        let map = both.map(Estimator::Oracle).expect("it was told");
        assert!((map.between(0, 1) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn few_rounds_say_nothing_and_too_many_states_are_not_looked_at() {
        assert_eq!(looked(100), None);
        assert!(Look::new(MOST_STATES + 1).is_none());
    }
}
