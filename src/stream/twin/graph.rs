//! Who drives whom: the directed acyclic graph of a synthetic plant.
//!
//! It must not know what flows along its edges.

use std::ops::RangeInclusive;

use rand::RngExt as _;
use rand::seq::{IndexedRandom as _, SliceRandom as _};

use crate::base::rng::Rng;

/// Parents a client has on average, were all of them earlier in the order.
const WANTED_PARENTS: f64 = 3.0;
/// Chance that a later client without parents is given one.
const ADOPTION: f64 = 0.7;

/// An influence of one client on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) parent: usize,
    pub(crate) child: usize,
    /// Steps after which the child's state feels the parent's, at least 1.
    pub(crate) delay: usize,
}

/// The dependencies of a plant. Acyclic by construction: edges follow [`Graph::order`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Graph {
    order: Vec<usize>,
    edges: Vec<Edge>,
}

impl Graph {
    /// Draws a graph of `clients` clients: C1 → C2 for two of them, else a random one along a
    /// random order of the clients.
    #[must_use]
    pub(crate) fn draw(clients: usize, delays: RangeInclusive<usize>, rng: &mut Rng) -> Self {
        let mut order: Vec<usize> = (0..clients).collect();
        let mut edges = Vec::new();
        if clients == 2 {
            edges.push(Edge { parent: 0, child: 1, delay: rng.random_range(delays) });
            return Self { order, edges };
        }
        order.shuffle(rng);
        let chance = (WANTED_PARENTS / clients.saturating_sub(1).max(1) as f64).min(1.0);
        for (place, &child) in order.iter().enumerate() {
            let earlier = &order[..place];
            let mut parents: Vec<usize> =
                earlier.iter().copied().filter(|_| rng.random_bool(chance)).collect();
            if parents.is_empty() && rng.random_bool(ADOPTION) {
                parents.extend(earlier.choose(rng));
            }
            edges.extend(parents.into_iter().map(|parent| Edge {
                parent,
                child,
                delay: rng.random_range(delays.clone()),
            }));
        }
        edges.sort_unstable_by_key(|e| (e.parent, e.child));
        Self { order, edges }
    }

    pub(crate) fn clients(&self) -> usize {
        self.order.len()
    }

    /// The clients, each one after all that drive it.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// All influences, sorted by parent, then child.
    pub(crate) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The influences on `child`, in the order of their parents.
    pub(crate) fn edges_into(&self, child: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.child == child)
    }

    /// Every client that `client` drives, directly or through others, in ascending order.
    pub(crate) fn descendants(&self, client: usize) -> Vec<usize> {
        let mut reached = vec![false; self.clients()];
        // In topological order every parent is settled before its children are asked.
        for &child in &self.order {
            reached[child] =
                self.edges_into(child).any(|e| e.parent == client || reached[e.parent]);
        }
        (0..self.clients()).filter(|&c| reached[c]).collect()
    }
}
