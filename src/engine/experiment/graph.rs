//! Who influences whom: the graph that the server learned beside the plant's true one.

use serde::{Deserialize, Serialize};

use super::Failure;
use crate::engine::prepare::Prepared;
use crate::session::{Session, Source};
use crate::stream::twin::TwinStream;

/// Directed edges between clients.
type Edges = Vec<(usize, usize)>;

/// A learned graph and the true one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GraphPair {
    pub clients: usize,
    pub truth: Edges,
    pub learned: Edges,
}

impl GraphPair {
    /// The graph of the influences learned with a session's models, and that of its synthetic plant.
    pub(crate) fn of(session: &Session, prepared: &Prepared) -> Result<Self, Failure> {
        let Source::Twin(source) = &session.source else {
            return Err("only a synthetic plant has a known graph".into());
        };
        let stream = TwinStream::open(source, session.seed)?;
        let edges = stream.plant().graph().edges().iter();
        let pairs = prepared.influences.graph.pairs.iter();
        Ok(Self {
            clients: source.clients,
            truth: edges.map(|edge| (edge.parent, edge.child)).collect(),
            learned: pairs.filter(|pair| pair.learned).map(|pair| (pair.from, pair.to)).collect(),
        })
    }

    /// Edges that both have.
    pub(crate) fn right(&self) -> usize {
        self.learned.iter().filter(|edge| self.truth.contains(edge)).count()
    }

    /// Structural Hamming distance: edges to add, to take away or to turn round, until they are equal.
    pub(crate) fn hamming(&self) -> usize {
        let has = |edges: &Edges, edge: (usize, usize)| edges.contains(&edge);
        let mut distance = 0;
        for m in 0..self.clients {
            for n in m + 1..self.clients {
                let of = |edges: &Edges| (has(edges, (m, n)), has(edges, (n, m)));
                distance += usize::from(of(&self.truth) != of(&self.learned));
            }
        }
        distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_that_is_missing_added_or_turned_round_counts_once() {
        let truth = vec![(0, 1), (1, 2), (0, 3)];
        let pair = |learned: &[(usize, usize)]| GraphPair {
            clients: 4,
            truth: truth.clone(),
            learned: learned.to_vec(),
        };
        assert_eq!((pair(&truth).hamming(), pair(&truth).right()), (0, 3));
        assert_eq!(pair(&[]).hamming(), 3);
        let other = pair(&[(1, 0), (1, 2), (2, 3)]);
        assert_eq!((other.hamming(), other.right()), (3, 1), "turned, kept, added, missing");
    }
}
