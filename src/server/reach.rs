//! Which clients a root cause can affect: the transitive closure of known and learned influences.

/// For each client, the clients that it reaches. Never itself; cycles are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    clients: usize,
    /// Row m holds the clients that client m reaches.
    reaches: Vec<bool>,
    /// Row m holds the clients that client m reaches directly.
    direct: Vec<bool>,
}

impl Reach {
    /// No client is known to reach another.
    pub(crate) fn unknown(clients: usize) -> Self {
        let nobody = vec![false; clients * clients];
        Self { clients, reaches: nobody.clone(), direct: nobody }
    }

    /// The closure of some influences (from, to). One that names no client, or a client with
    /// itself, says nothing.
    pub(crate) fn from_edges(
        clients: usize,
        edges: impl IntoIterator<Item = (usize, usize)>,
    ) -> Self {
        let mut reach = Self::unknown(clients);
        for (from, to) in edges {
            if from < clients && to < clients {
                reach.reaches[from * clients + to] = true;
                reach.direct[from * clients + to] = from != to;
            }
        }
        for via in 0..clients {
            for from in 0..clients {
                if reach.reaches[from * clients + via] {
                    for to in 0..clients {
                        reach.reaches[from * clients + to] |= reach.reaches[via * clients + to];
                    }
                }
            }
        }
        (0..clients).for_each(|m| reach.reaches[m * clients + m] = false);
        reach
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// Whether any client is known to reach another.
    pub(crate) fn is_declared(&self) -> bool {
        self.direct.contains(&true)
    }

    /// Whether a fault of `from` can be felt by `to`.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        self.reaches[from * self.clients + to]
    }

    /// Whether a fault of `from` is known not to be felt by `to`: of both it is known whom they reach
    /// or who reaches them, and there is no way from one to the other.
    pub(crate) fn excludes(&self, from: usize, to: usize) -> bool {
        self.is_placed(from) && self.is_placed(to) && !self.reaches(from, to)
    }

    /// Whether a fault of `client` may come back to it: it lies on a loop, or nothing is known of it.
    pub(crate) fn may_return(&self, client: usize) -> bool {
        let is_on_loop = |n: usize| self.reaches(client, n) && self.reaches(n, client);
        !self.is_placed(client) || (0..self.clients).any(is_on_loop)
    }

    fn is_placed(&self, client: usize) -> bool {
        (0..self.clients).any(|n| self.reaches(client, n) || self.reaches(n, client))
    }

    /// The clients that reach `client` directly.
    pub(crate) fn parents(&self, client: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.clients).filter(move |from| self.direct[from * self.clients + client])
    }

    pub(crate) fn is_source(&self, client: usize) -> bool {
        !(0..self.clients).any(|from| self.reaches(from, client))
    }

    /// Whom a fault of `from` can affect.
    pub(crate) fn affected(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.clients).filter(move |to| self.reaches(from, *to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn influence_is_passed_on_and_nobody_reaches_himself() {
        let reach = Reach::from_edges(4, [(0, 1), (1, 2), (2, 0), (3, 9), (3, 3)]);
        assert_eq!(reach.affected(0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(reach.affected(3).count(), 0);
    }

    #[test]
    fn parents_are_direct_and_a_source_has_none() {
        let reach = Reach::from_edges(4, [(0, 1), (1, 2), (0, 2), (2, 2)]);
        assert_eq!(reach.parents(2).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(reach.parents(1).collect::<Vec<_>>(), [0]);
        assert!(reach.is_source(0) && reach.is_source(3) && !reach.is_source(2));
    }

    #[test]
    fn only_where_both_are_placed_one_is_known_not_to_reach_the_other() {
        let reach = Reach::from_edges(4, [(0, 1), (1, 2)]);
        assert!(reach.excludes(2, 0) && !reach.excludes(0, 2));
        assert!(!reach.excludes(3, 0) && !reach.excludes(0, 3), "nobody said anything about 3");
        assert!(!Reach::unknown(2).excludes(0, 1));
    }

    #[test]
    fn a_fault_comes_back_in_a_loop_and_may_where_nothing_is_known() {
        let reach = Reach::from_edges(5, [(0, 1), (1, 2), (2, 1), (2, 3)]);
        let may = (0..5).map(|client| reach.may_return(client)).collect::<Vec<_>>();
        assert_eq!(may, [false, true, true, false, true]);
    }

    proptest! {
        #[test]
        fn the_closure_is_closed(edges in prop::collection::vec((0usize..6, 0usize..6), 0..15)) {
            let reach = Reach::from_edges(6, edges);
            for a in 0..6 {
                for b in reach.affected(a) {
                    prop_assert!(reach.affected(b).all(|c| c == a || reach.reaches(a, c)));
                }
            }
        }
    }
}
