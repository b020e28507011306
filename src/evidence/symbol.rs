//! Graded symbols: how surprising a step is to its client, in a few levels, and the randomised
//! response that may stand between a symbol and the server.
//!
//! A level is a p-value cut into classes: level ℓ says that the nominal share of steps at least as
//! surprising is below the ℓ-th cut. It must not know how surprise is measured or what follows.

#[cfg(test)]
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use super::severity;
use super::threshold::NominalDistances;
use crate::privacy::Response;
use crate::session::Alphabet;

/// One step's level as it is sent: 0 is ordinary, the highest is as rare as the last cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Symbol(u8);

impl Symbol {
    #[cfg(test)]
    pub(crate) const ORDINARY: Symbol = Symbol(0);

    /// The level.
    pub(crate) fn level(self) -> usize {
        usize::from(self.0)
    }
}

/// Most levels a grading may have.
pub(crate) const MOST_LEVELS: usize = 8;

/// Nominal shares at which a step becomes the next level, falling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Grading {
    cuts: Vec<f64>,
}

impl Grading {
    /// Five levels: 20 %, 5 %, 1 % and 0.2 % of nominal steps reach them.
    pub(crate) fn five_levels() -> Self {
        Self { cuts: vec![0.2, 0.05, 0.01, 0.002] }
    }

    /// Two levels, one bit a step: 5 % of nominal steps are flagged.
    pub(crate) fn one_bit() -> Self {
        Self { cuts: vec![0.05] }
    }

    pub(crate) fn cuts(&self) -> &[f64] {
        &self.cuts
    }

    /// Number of levels K.
    pub(crate) fn levels(&self) -> usize {
        self.cuts.len() + 1
    }

    /// The first level that counts as elevated: one that at most 5 % of nominal steps reach.
    pub(crate) fn elevated(&self) -> usize {
        self.cuts.iter().position(|c| *c <= 0.05).map_or(self.cuts.len(), |i| i + 1)
    }

    /// The symbol of a level.
    pub(crate) fn symbol(&self, level: usize) -> Option<Symbol> {
        (level < self.levels()).then_some(Symbol(level as u8))
    }

    pub(crate) fn highest(&self) -> Symbol {
        Symbol(self.cuts.len() as u8)
    }

    /// A number from the wire as a symbol: nothing unless it is exactly one of the levels. What a
    /// client sends is never trusted to be in range, nor to be a number.
    #[cfg(test)]
    pub(crate) fn receive(&self, number: f64) -> Option<Symbol> {
        let whole = number >= 0.0 && number <= self.cuts.len() as f64 && number.fract() == 0.0;
        whole.then_some(Symbol(number as u8))
    }

    /// Probability of each level when p-values follow Beta(a, 1), P(p < c) = c^a. With a = 1 they
    /// are nominal; the smaller a, the stronger the anomaly.
    pub(crate) fn level_probabilities(&self, a: f64) -> Vec<f64> {
        let reach = |level: usize| match level {
            0 => 1.0,
            l if l <= self.cuts.len() => self.cuts[l - 1].powf(a),
            _ => 0.0,
        };
        (0..self.levels()).map(|l| reach(l) - reach(l + 1)).collect()
    }
}

impl From<Alphabet> for Grading {
    fn from(alphabet: Alphabet) -> Self {
        match alphabet {
            Alphabet::Graded => Self::five_levels(),
            Alphabet::OneBit => Self::one_bit(),
        }
    }
}

/// Where the cuts stand as distances, from one client's calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LevelCuts {
    distances: Vec<f32>,
}

impl LevelCuts {
    /// Reads the cuts off nominal distances.
    pub(crate) fn new(grading: &Grading, nominal: &NominalDistances) -> Self {
        Self { distances: grading.cuts.iter().map(|c| nominal.quantile(1.0 - c)).collect() }
    }

    /// How far a distance lies beyond the highest cut.
    pub(crate) fn severity(&self, distance: f32) -> u8 {
        severity::severity(distance, self.distances.last().copied().unwrap_or(1.0))
    }

    /// The symbol of a distance; none for a missing one.
    pub(crate) fn symbol(&self, distance: f32) -> Option<Symbol> {
        if distance.is_nan() {
            return None;
        }
        Some(Symbol(self.distances.iter().filter(|cut| distance > **cut).count() as u8))
    }
}

/// How often each level occurred.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LevelCounts(Vec<f64>);

impl LevelCounts {
    pub(crate) fn new(levels: usize) -> Self {
        Self(vec![0.0; levels])
    }

    /// The counts of some symbols.
    pub(crate) fn of(levels: usize, symbols: impl IntoIterator<Item = Symbol>) -> Self {
        let mut counts = Self::new(levels);
        for symbol in symbols {
            counts.add(symbol);
        }
        counts
    }

    /// What `total` symbols of a distribution come to on average.
    pub(crate) fn expected(distribution: &[f64], total: f64) -> Self {
        Self(distribution.iter().map(|p| p * total).collect())
    }

    pub(crate) fn add(&mut self, symbol: Symbol) {
        if let Some(count) = self.0.get_mut(symbol.level()) {
            *count += 1.0;
        }
    }

    /// Multiplies every count: old symbols fade.
    pub(crate) fn fade(&mut self, factor: f64) {
        self.0.iter_mut().for_each(|count| *count *= factor);
    }

    /// Per level.
    pub(crate) fn counts(&self) -> &[f64] {
        &self.0
    }

    /// All of them.
    pub(crate) fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Share of symbols at `level` or above; none without symbols.
    pub(crate) fn share_from(&self, level: usize) -> Option<f64> {
        let total = self.total();
        (total > 0.0).then(|| self.0[level.min(self.0.len())..].iter().sum::<f64>() / total)
    }
}

/// The channel that a client's randomised response puts between its symbols and the server.
///
/// The release itself, with its price, is [`Response`]'s; here stand the probabilities that the
/// server folds into its tables, and a rehearsal of what it will hear.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RandomisedResponse {
    keep: f64,
    levels: usize,
}

impl RandomisedResponse {
    /// For a budget of ε a symbol. Without a budget every symbol is sent as it is; with one that no
    /// response can be made of (zero, not a number) nothing is told.
    pub(crate) fn new(levels: usize, epsilon: Option<f64>) -> Self {
        let keep = match epsilon {
            None | Some(f64::INFINITY) => 1.0,
            Some(epsilon) => Response::new(epsilon, levels as u8)
                .map_or(1.0 / levels.max(1) as f64, |response| response.truth()),
        };
        Self { keep, levels }
    }

    /// Probability that the true symbol is sent.
    #[cfg(test)]
    pub(crate) fn keep(&self) -> f64 {
        self.keep
    }

    /// Probability that `sent` is sent where `truth` is true.
    pub(crate) fn probability(&self, sent: u8, truth: u8) -> f64 {
        let other = (1.0 - self.keep) / (self.levels.saturating_sub(1).max(1)) as f64;
        if sent == truth { self.keep } else { other }
    }

    /// What might be sent in place of `symbol`: for calibrations and simulations, never for sending.
    #[cfg(test)]
    pub(crate) fn rehearse(&self, symbol: Symbol, rng: &mut impl rand::Rng) -> Symbol {
        if self.levels < 2 || rng.random::<f64>() < self.keep {
            return symbol;
        }
        let other = rng.random_range(0..self.levels - 1) as u8;
        Symbol(if other >= symbol.0 { other + 1 } else { other })
    }

    /// Distribution of what is sent when the truth follows `truth`: Qᵀ truth.
    pub(crate) fn through(&self, truth: &[f64]) -> Vec<f64> {
        let total: f64 = truth.iter().sum();
        let other = (1.0 - self.keep) / (self.levels.saturating_sub(1).max(1)) as f64;
        truth.iter().map(|p| self.keep * p + other * (total - p)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use proptest::prelude::*;

    #[test]
    fn nominal_distances_reach_each_level_as_often_as_its_cut_says() {
        let grading = Grading::five_levels();
        let distances: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
        let cuts = LevelCuts::new(&grading, &NominalDistances::new(distances.iter().copied()));
        let counts =
            LevelCounts::of(grading.levels(), distances.iter().filter_map(|d| cuts.symbol(*d)));
        assert_eq!(counts.counts(), [8000.0, 1500.0, 400.0, 80.0, 20.0]);
        assert_eq!(cuts.symbol(f32::INFINITY), Some(grading.highest()));
        assert_eq!(cuts.symbol(f32::NAN), None);
        assert_eq!((grading.elevated(), Grading::one_bit().elevated()), (2, 1));
    }

    #[test]
    fn only_a_level_is_received() {
        let grading = Grading::five_levels();
        let refused = [f64::NAN, f64::INFINITY, -1.0, 0.5, 5.0, 1e300, -0.1];
        assert!(refused.iter().all(|n| grading.receive(*n).is_none()));
        assert_eq!(grading.receive(4.0), Some(grading.highest()));
        assert_eq!(grading.receive(-0.0), Some(Symbol::ORDINARY));
    }

    #[test]
    fn a_session_that_asks_for_one_bit_gets_one() {
        for alphabet in [Alphabet::Graded, Alphabet::OneBit] {
            let grading = Grading::from(alphabet);
            assert_eq!(grading.levels(), usize::from(alphabet.symbols()), "{alphabet:?}");
        }
        assert_eq!(Grading::from(Alphabet::OneBit), Grading::one_bit());
    }

    #[test]
    fn what_is_rehearsed_follows_the_channel() {
        let mut rng = rng::stream(3, 0);
        let response = RandomisedResponse::new(5, Some(1.0));
        let truth = Symbol(2);
        let n = 40_000;
        let counts = LevelCounts::of(5, (0..n).map(|_| response.rehearse(truth, &mut rng)));
        let expected = response.through(&[0.0, 0.0, 1.0, 0.0, 0.0]);
        for (count, p) in counts.counts().iter().zip(expected) {
            assert!((count / f64::from(n) - p).abs() < 0.01, "{count} {p}");
        }
    }

    #[test]
    fn no_two_truths_are_told_apart_better_than_epsilon_allows() {
        for (levels, epsilon) in [(2, 0.5), (5, 2.0), (5, 4.0)] {
            let response = RandomisedResponse::new(levels, Some(epsilon));
            let sent = |truth: usize| {
                let mut p = vec![0.0; levels];
                p[truth] = 1.0;
                response.through(&p)
            };
            let worst = sent(0).iter().zip(sent(1)).map(|(a, b)| a / b).fold(0.0, f64::max);
            assert!((worst.ln() - epsilon).abs() < 1e-9, "{worst}");
        }
    }

    proptest! {
        #[test]
        fn a_rehearsed_symbol_is_a_symbol(levels in 1usize..8, level in 0u8..8, epsilon in 0.0f64..800.0) {
            prop_assume!(usize::from(level) < levels);
            let mut rng = rng::stream(u64::from(level), 9);
            let response = RandomisedResponse::new(levels, Some(epsilon));
            prop_assert!(response.keep() > 0.0 && response.keep() <= 1.0);
            prop_assert!(response.rehearse(Symbol(level), &mut rng).level() < levels);
        }

        #[test]
        fn level_probabilities_sum_to_one_and_so_does_what_is_sent(a in 0.01f64..3.0, epsilon in 0.0f64..20.0) {
            for grading in [Grading::five_levels(), Grading::one_bit()] {
                let p = grading.level_probabilities(a);
                let sent = RandomisedResponse::new(p.len(), Some(epsilon)).through(&p);
                prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                prop_assert!((sent.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                prop_assert!(sent.iter().all(|p| *p >= 0.0));
            }
        }
    }
}
