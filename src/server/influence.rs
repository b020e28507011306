//! Who influences whom, how strongly and how fast, learned from the summaries of clients about their states
//! when all is well.
//!
//! ```text
//!  client: sending model ─► z ─┐
//!          whitened r_w ─► ε ──┴─► (noise) ─► Innovation
//!  server: ε_m(t) ~ ψ(z_n(t−1)), …, ψ(z_n(t−5)) of all n;  without block n ─► W, T, delay of n → m
//!          T > 3 and W > 0.002, strongest first, no cycle ─► InfluenceGraph
//! ```
//!
//! It says how an effect can have come about; it is no proof that it did. What the graph does not
//! hold may still exist: an influence shows only where nominal operation excites it.
//!
//! | module | what it is for |
//! |---|---|
//! | [`heard`] | the summaries of a stretch |
//! | `regression` | the server's normal equations, with and without a block |
//! | [`learn`] | from the summaries to the graph and to a model that predicts |
//! | [`foretell`] | the server at work: what others explain of a client's next ε |

pub(crate) mod foretell;
pub(crate) mod heard;
pub(crate) mod learn;
mod regression;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::reach::Reach;
use crate::session::Tier;

/// Past steps of a client that may show in another.
pub(crate) const LAGS: usize = 5;
/// With more clients than this nothing is learned: the regression grows with their square.
pub(crate) const MOST_CLIENTS: usize = Tier::MOST_CLIENTS;
/// An influence is taken to be there from these on.
const EVIDENCE: f64 = 3.0;
const STRENGTH: f64 = 0.002;

/// What is known of the influence of one client on another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Influence {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// W: by how much the loss on held-out data grows without it, as a share of that loss.
    pub(crate) strength: f64,
    /// T: that growth in its own standard errors.
    pub(crate) evidence: f64,
    /// The lag that carries most of it; none where there is no evidence.
    pub(crate) delay_steps: Option<u32>,
    /// It is an edge of the learned graph.
    pub(crate) learned: bool,
    /// The session declares it.
    pub(crate) declared: bool,
}

impl Influence {
    /// Whether held-out data supports it. It may still be left out of the graph, which has no
    /// cycle.
    pub(crate) fn is_evident(&self) -> bool {
        self.evidence > EVIDENCE && self.strength > STRENGTH
    }
}

/// Influence of every client on every other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InfluenceGraph {
    /// Names in the order of the session.
    pub(crate) clients: Vec<String>,
    /// Seconds of a step.
    pub(crate) period_s: f64,
    /// Every ordered pair, by `from`, then by `to`.
    pub(crate) pairs: Vec<Influence>,
    /// Why nothing was learned, where nothing was.
    pub(crate) unlearned: Option<String>,
}

/// A chain of influences from one client to another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    /// The clients on it, first and last included.
    pub(crate) clients: Vec<usize>,
    /// The delays of its influences together; none when one of them is not known.
    pub(crate) delay_s: Option<f64>,
    /// Whether all of it was learned; otherwise some of it is only declared.
    pub(crate) learned: bool,
}

impl InfluenceGraph {
    /// A graph in which nothing is known, with the reason.
    pub(crate) fn unlearned(clients: &[String], period_s: f64, why: impl Into<String>) -> Self {
        let pairs = ordered_pairs(clients.len())
            .map(|(from, to)| Influence {
                from,
                to,
                strength: 0.0,
                evidence: 0.0,
                delay_steps: None,
                learned: false,
                declared: false,
            })
            .collect();
        Self { clients: clients.to_vec(), period_s, pairs, unlearned: Some(why.into()) }
    }

    /// The same with influences that a session declares, by name. Unknown names say nothing.
    #[must_use]
    pub(crate) fn with_declared(mut self, edges: &[(String, String)]) -> Self {
        let place = |name: &String| self.clients.iter().position(|client| client == name);
        let known: Vec<(usize, usize)> =
            edges.iter().filter_map(|(from, to)| Some((place(from)?, place(to)?))).collect();
        for pair in &mut self.pairs {
            pair.declared = known.contains(&(pair.from, pair.to));
        }
        self
    }

    /// The same among `clients`, of which those that it does not have influence nobody.
    #[must_use]
    pub(crate) fn among(&self, clients: &[String]) -> Self {
        let place = |client: usize| self.clients.iter().position(|name| *name == clients[client]);
        let of = |from: usize, to: usize| self.between(place(from)?, place(to)?);
        let mut wider = Self::unlearned(clients, self.period_s, "");
        wider.unlearned.clone_from(&self.unlearned);
        for pair in &mut wider.pairs {
            let (from, to) = (pair.from, pair.to);
            *pair = of(from, to).map_or(*pair, |known| Influence { from, to, ..*known });
        }
        wider
    }

    /// What is known of one pair; none of a client with itself.
    pub(crate) fn between(&self, from: usize, to: usize) -> Option<&Influence> {
        self.pairs.iter().find(|pair| (pair.from, pair.to) == (from, to))
    }

    /// Its edges, learned or declared.
    pub(crate) fn edges(&self) -> impl Iterator<Item = &Influence> {
        self.pairs.iter().filter(|pair| pair.learned || pair.declared)
    }

    /// Whom each client reaches by the edges that `counts` accepts.
    pub(crate) fn reach(&self, counts: impl Fn(&Influence) -> bool) -> Reach {
        let edges = self.pairs.iter().filter(|pair| counts(pair)).map(|pair| (pair.from, pair.to));
        Reach::from_edges(self.clients.len(), edges)
    }

    /// How `to` can feel what happens at `from`: over as few influences as possible, of these the
    /// one whose weakest influence has the most evidence.
    pub(crate) fn path(&self, from: usize, to: usize) -> Option<Path> {
        let mut best: Vec<Option<(f64, Vec<usize>)>> = vec![None; self.clients.len()];
        *best.get_mut(from)? = Some((f64::INFINITY, vec![from]));
        // One influence more in every round: whoever was reached before needs no longer way.
        while best.get(to)?.is_none() {
            let mut further = best.clone();
            for edge in self.edges().filter(|edge| best[edge.to].is_none()) {
                let Some((weakest, way)) = &best[edge.from] else { continue };
                let weakest = weakest.min(edge.evidence);
                if further[edge.to].as_ref().is_none_or(|(other, _)| weakest > *other) {
                    let way = way.iter().copied().chain([edge.to]).collect();
                    further[edge.to] = Some((weakest, way));
                }
            }
            if further == best {
                return None;
            }
            best = further;
        }
        let (_, clients) = best.swap_remove(to)?;
        let edges = || clients.windows(2).filter_map(|pair| self.between(pair[0], pair[1]));
        let steps: Option<u32> = edges().map(|edge| edge.delay_steps).sum();
        let delay_s = steps.map(|steps| f64::from(steps) * self.period_s);
        let learned = edges().all(|edge| edge.learned);
        (clients.len() > 1).then_some(Path { clients, delay_s, learned })
    }

    /// Takes the evident influences into the graph, those with the most evidence first, unless they
    /// close a cycle.
    fn settle(&mut self) {
        let mut order: Vec<usize> =
            (0..self.pairs.len()).filter(|i| self.pairs[*i].is_evident()).collect();
        order.sort_by(|a, b| self.pairs[*b].evidence.total_cmp(&self.pairs[*a].evidence));
        for i in order {
            let Influence { from, to, .. } = self.pairs[i];
            let closes_cycle = self.reach(|pair| pair.learned).reaches(to, from);
            self.pairs[i].learned = !closes_cycle;
        }
    }
}

/// All (from, to) with from ≠ to, by `from`, then by `to`.
fn ordered_pairs(clients: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..clients)
        .flat_map(move |from| (0..clients).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
}
