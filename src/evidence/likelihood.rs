//! How likely each symbol is when nothing is wrong (N), when the fault is the client's own (RC), and
//! when it only feels one (PE); and what a symbol therefore says for or against each.
//!
//! Under RC and PE a step's p-value follows Beta(a, 1); N is counted on the client's calibration.
//! All three pass through the client's randomised response before they are compared.

use serde::{Deserialize, Serialize};

use super::symbol::{Grading, LevelCounts, MOST_LEVELS, RandomisedResponse, Symbol};

/// Shapes of the hypotheses, the same for all data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hypotheses {
    /// a of the root cause.
    pub(crate) root_cause: f64,
    /// a of a propagated effect.
    pub(crate) propagated_effect: f64,
    /// Prior probability that a client which can be reached is in fact affected.
    pub(crate) affected: f64,
    /// Added to every nominal count, so that a level never seen is rare and not impossible.
    pub(crate) unseen: f64,
}

impl Default for Hypotheses {
    fn default() -> Self {
        Self { root_cause: 0.15, propagated_effect: 0.35, affected: 0.4, unseen: 0.3 }
    }
}

/// Distributions of one client's symbols, as the server receives them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tables {
    /// N: nothing is wrong.
    pub(crate) nominal: Vec<f64>,
    /// RC: the fault is its own.
    pub(crate) root_cause: Vec<f64>,
    /// PE: it feels a fault of another.
    pub(crate) propagated_effect: Vec<f64>,
}

impl Tables {
    /// From a client's calibration counts. Those are counted before the randomised response: since
    /// the cuts are quantiles of the same calibration, they tell next to nothing.
    pub(crate) fn new(
        grading: &Grading,
        hypotheses: &Hypotheses,
        counts: &LevelCounts,
        response: &RandomisedResponse,
    ) -> Self {
        Self::shaped(grading, hypotheses, counts, response, &|truth| truth)
    }

    /// The same when what is told of is not a step's level but something made of it (the strongest
    /// of a window, an answer that is kept): `shape` turns the distribution of levels into that of
    /// what is told of, and `counts` are of the latter.
    pub(crate) fn shaped(
        grading: &Grading,
        hypotheses: &Hypotheses,
        counts: &LevelCounts,
        response: &RandomisedResponse,
        shape: &dyn Fn(Vec<f64>) -> Vec<f64>,
    ) -> Self {
        let counted: Vec<f64> = (0..grading.levels())
            .map(|l| counts.counts().get(l).copied().unwrap_or(0.0).max(0.0) + hypotheses.unseen)
            .collect();
        let through = |p: Vec<f64>| response.through(&p);
        Self {
            nominal: through(normalised(counted)),
            root_cause: through(shape(grading.level_probabilities(hypotheses.root_cause))),
            propagated_effect: through(shape(
                grading.level_probabilities(hypotheses.propagated_effect),
            )),
        }
    }

    /// What each symbol says.
    pub(crate) fn ratios(&self, hypotheses: &Hypotheses) -> Ratios {
        let mut ratios = Ratios::default();
        let w = hypotheses.affected;
        for (level, nominal) in self.nominal.iter().enumerate().take(MOST_LEVELS) {
            let nominal = nominal.max(f64::MIN_POSITIVE);
            ratios.root_cause[level] = (self.root_cause[level] / nominal).ln();
            ratios.propagated_effect[level] =
                (1.0 - w + w * self.propagated_effect[level] / nominal).ln();
        }
        ratios
    }
}

fn normalised(mut weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= total;
    }
    weights
}

/// Log-likelihood ratios against N, per level.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Ratios {
    root_cause: [f64; MOST_LEVELS],
    propagated_effect: [f64; MOST_LEVELS],
}

impl Ratios {
    /// λ^RC = ln RC/N.
    pub(crate) fn root_cause(&self, symbol: Symbol) -> f64 {
        self.root_cause.get(symbol.level()).copied().unwrap_or(0.0)
    }

    /// λ^PE = ln(1 − w + w PE/N).
    pub(crate) fn propagated_effect(&self, symbol: Symbol) -> f64 {
        self.propagated_effect.get(symbol.level()).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tables(counts: &[f64], epsilon: Option<f64>) -> (Grading, Tables) {
        let grading = Grading::five_levels();
        let mut level_counts = LevelCounts::new(5);
        for (level, n) in counts.iter().enumerate() {
            for _ in 0..*n as usize {
                level_counts.add(grading.symbol(level).expect("a level of the grading"));
            }
        }
        let response = RandomisedResponse::new(5, epsilon);
        let tables = Tables::new(&grading, &Hypotheses::default(), &level_counts, &response);
        (grading, tables)
    }

    #[test]
    fn an_ordinary_step_speaks_against_a_root_cause_and_a_rare_one_for_it() {
        let (grading, tables) = tables(&[1600.0, 300.0, 80.0, 16.0, 4.0], None);
        let ratios = tables.ratios(&Hypotheses::default());
        let at = |level| grading.symbol(level).expect("a level of the grading");
        assert!(
            (ratios.root_cause(at(0)) - (1.0 - 0.2f64.powf(0.15)).ln() + 0.8f64.ln()).abs() < 1e-3
        );
        assert!(ratios.root_cause(at(0)) < -1.0);
        assert!(ratios.root_cause(at(4)) > 5.0);
        assert!(ratios.propagated_effect(at(4)) < ratios.root_cause(at(4)));
    }

    proptest! {
        #[test]
        fn tables_are_distributions_whatever_was_counted_and_however_it_was_randomised(
            counts in prop::collection::vec(0.0f64..50.0, 5), epsilon in prop::option::of(0.0f64..9.0),
        ) {
            let (_, tables) = tables(&counts, epsilon);
            for table in [&tables.nominal, &tables.root_cause, &tables.propagated_effect] {
                prop_assert!((table.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(table.iter().all(|p| *p > 0.0));
            }
        }

        #[test]
        fn nominal_symbols_speak_against_a_root_cause_on_average(
            counts in prop::collection::vec(1.0f64..50.0, 5), epsilon in prop::option::of(0.1f64..9.0),
        ) {
            // −KL(N ‖ RC) ≤ 0: what makes a CUSUM of it fall when nothing is wrong.
            let (grading, tables) = tables(&counts, epsilon);
            let ratios = tables.ratios(&Hypotheses::default());
            let drift: f64 = (0..5)
                .map(|l| tables.nominal[l] * ratios.root_cause(grading.symbol(l).expect("a level")))
                .sum();
            prop_assert!(drift <= 1e-12, "{drift}");
        }
    }
}
