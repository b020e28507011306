//! The same for pairs of symbols: how surprising a step is to its client alone, and what of it the
//! others do not explain.
//!
//! A client's own fault surprises both ways, and often alike; a fault of another surprises it less
//! once that other's state is known.

use serde::{Deserialize, Serialize};

use super::{Hypotheses, normalised};
use crate::evidence::symbol::{Grading, MOST_LEVELS, RandomisedResponse, Symbol};

/// a of what is left of a propagated effect once the others are known.
const EXPLAINED: f64 = 0.7;
/// Weight of the belief that the two symbols are independent when all is well, in steps.
const INDEPENDENT: f64 = 20.0;

/// How often each pair of levels occurred in calibration, one row per level of the first symbol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JointCounts {
    levels: usize,
    counts: Vec<f64>,
}

impl JointCounts {
    /// The counts of some pairs.
    #[must_use]
    pub fn of(levels: usize, pairs: impl IntoIterator<Item = (Symbol, Symbol)>) -> Self {
        let mut counts = vec![0.0; levels * levels];
        for (own, informed) in pairs {
            if let Some(count) = counts.get_mut(own.level() * levels + informed.level()) {
                *count += 1.0;
            }
        }
        Self { levels, counts }
    }

    /// Probabilities, with what is known beforehand added in.
    fn nominal(&self, levels: usize, unseen: f64) -> Vec<f64> {
        let count = |i: usize, j: usize| {
            let inside = i < self.levels && j < self.levels;
            if inside {
                self.counts.get(i * self.levels + j).map_or(0.0, |n| n.max(0.0))
            } else {
                0.0
            }
        };
        let row = |i: usize| (0..levels).map(|j| count(i, j)).sum::<f64>();
        let column = |j: usize| (0..levels).map(|i| count(i, j)).sum::<f64>();
        let total = (0..levels).map(row).sum::<f64>().max(1.0);
        let cells = (0..levels * levels).map(|c| (c / levels, c % levels));
        let weights = cells.map(|(i, j)| {
            count(i, j) + INDEPENDENT * (row(i) / total) * (column(j) / total) + unseen
        });
        normalised(weights.collect())
    }
}

/// Distributions of one client's pairs, as the server receives them.
#[derive(Debug, Clone, PartialEq)]
pub struct JointTables {
    levels: usize,
    nominal: Vec<f64>,
    root_cause: Vec<f64>,
    propagated_effect: Vec<f64>,
}

impl JointTables {
    /// From a client's calibration counts, which are counted before the randomised response.
    #[must_use]
    pub fn new(
        grading: &Grading,
        hypotheses: &Hypotheses,
        counts: &JointCounts,
        response: &RandomisedResponse,
    ) -> Self {
        let k = grading.levels();
        let root = grading.level_probabilities(hypotheses.root_cause);
        let felt = grading.level_probabilities(hypotheses.propagated_effect);
        let left = grading.level_probabilities(EXPLAINED);
        let cells = || (0..k * k).map(|c| (c / k, c % k));
        let alike = |i: usize, j: usize| if i == j { root[i] } else { 0.0 };
        let root_cause = cells().map(|(i, j)| f64::midpoint(root[i] * root[j], alike(i, j)));
        let propagated_effect = cells().map(|(i, j)| felt[i] * left[j]);
        let through = |table: Vec<f64>| through(response, k, &table);
        Self {
            levels: k,
            nominal: through(counts.nominal(k, hypotheses.unseen)),
            root_cause: through(root_cause.collect()),
            propagated_effect: through(propagated_effect.collect()),
        }
    }

    /// What each pair says.
    #[must_use]
    pub fn ratios(&self, hypotheses: &Hypotheses) -> JointRatios {
        let mut ratios = JointRatios::default();
        let w = hypotheses.affected;
        for (c, nominal) in self.nominal.iter().enumerate() {
            let (i, j) = (c / self.levels, c % self.levels);
            let nominal = nominal.max(f64::MIN_POSITIVE);
            ratios.root_cause[i][j] = (self.root_cause[c] / nominal).ln();
            ratios.propagated_effect[i][j] =
                (1.0 - w + w * self.propagated_effect[c] / nominal).ln();
        }
        ratios
    }
}

/// Qᵀ T Q: each symbol goes through a response of its own.
fn through(response: &RandomisedResponse, levels: usize, table: &[f64]) -> Vec<f64> {
    let rows: Vec<Vec<f64>> =
        table.chunks_exact(levels.max(1)).map(|row| response.through(row)).collect();
    let mut out = vec![0.0; table.len()];
    for j in 0..levels {
        let column: Vec<f64> = rows.iter().map(|row| row[j]).collect();
        for (i, p) in response.through(&column).into_iter().enumerate() {
            out[i * levels + j] = p;
        }
    }
    out
}

/// Log-likelihood ratios against N, per pair of levels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct JointRatios {
    root_cause: [[f64; MOST_LEVELS]; MOST_LEVELS],
    propagated_effect: [[f64; MOST_LEVELS]; MOST_LEVELS],
}

impl JointRatios {
    /// λ^RC.
    #[must_use]
    pub fn root_cause(&self, own: Symbol, informed: Symbol) -> f64 {
        at(&self.root_cause, own, informed)
    }

    /// λ^PE.
    #[must_use]
    pub fn propagated_effect(&self, own: Symbol, informed: Symbol) -> f64 {
        at(&self.propagated_effect, own, informed)
    }
}

fn at(table: &[[f64; MOST_LEVELS]; MOST_LEVELS], own: Symbol, informed: Symbol) -> f64 {
    table.get(own.level()).and_then(|row| row.get(informed.level())).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(counts: &[f64]) -> JointCounts {
        JointCounts { levels: 5, counts: counts.to_vec() }
    }

    proptest! {
        #[test]
        fn every_table_is_a_distribution_whatever_was_counted(
            counts in prop::collection::vec(0.0f64..500.0, 25), epsilon in prop::option::of(0.2f64..6.0),
        ) {
            let grading = Grading::five_levels();
            let response = RandomisedResponse::new(5, epsilon);
            let tables = JointTables::new(&grading, &Hypotheses::default(), &pairs(&counts), &response);
            for table in [&tables.nominal, &tables.root_cause, &tables.propagated_effect] {
                prop_assert!((table.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(table.iter().all(|p| *p > 0.0));
            }
        }
    }

    #[test]
    fn what_others_explain_speaks_less_for_a_root_than_what_they_do_not() {
        let grading = Grading::five_levels();
        // Calibration as it comes when the two symbols mostly agree.
        let mut counts = vec![0.0; 25];
        for (i, share) in [0.8, 0.15, 0.04, 0.008, 0.002].into_iter().enumerate() {
            counts[i * 5 + i] = 1600.0 * share;
            for (j, beside) in [0.8, 0.15, 0.04, 0.008, 0.002].into_iter().enumerate() {
                counts[i * 5 + j] += 400.0 * share * beside;
            }
        }
        let response = RandomisedResponse::new(5, None);
        let hypotheses = Hypotheses::default();
        let ratios =
            JointTables::new(&grading, &hypotheses, &pairs(&counts), &response).ratios(&hypotheses);
        let at = |level| grading.symbol(level).expect("a level of the grading");
        assert!(ratios.root_cause(at(4), at(4)) > ratios.root_cause(at(4), at(0)));
        assert!(ratios.root_cause(at(0), at(0)) < 0.0);
        assert!(ratios.propagated_effect(at(3), at(0)) > 0.0);
    }
}
