//! Paper mode: the look-up of Table 1, its extension to M clients, and a k-of-n vote.
//!
//! Table 1 has ten rows for two clients. The other six combinations are [`TableVerdict::NotInTable`].
//!
//! For M clients the paper says "any two pair of clients": clients with flags (0,0) take no part, and
//! every pair of the others has to be a row of the table. A client that alone has a flag is looked up
//! with a quiet one.
//!
//! | clients that take part | verdict |
//! |---|---|
//! | none | no anomaly |
//! | one (1,1), any number of (1,0) | root cause: the (1,1); effects: the (1,0) |
//! | two or more (1,0) | (Neither, Both) |
//! | one (1,1), one or more (0,1) | imperfect training |
//! | two or more (0,1) | independent clients |
//! | two or more (1,1), beside them (1,0) or (0,1) | violates assumptions |
//! | a (1,0) alone, a (0,1) alone, or both of them together | not in the table |
//!
//! Without a vote nothing else takes part in the verdict: this is Algorithm 2.

use serde::{Deserialize, Serialize};

use crate::evidence::threshold::Flags;
use crate::session::Vote;

/// The right-hand column of Table 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TableVerdict {
    /// (C_m, –) or (C_m, C_n).
    RootCause(usize),
    /// (Neither, Both): effects of a cause outside.
    NeitherBoth,
    NoAnomaly,
    ImperfectTraining,
    IndependentClients,
    ViolatesAssumptions,
    /// None of the ten rows.
    NotInTable,
}

impl TableVerdict {
    /// The declared root cause.
    pub(crate) fn root(self) -> Option<usize> {
        match self {
            Self::RootCause(client) => Some(client),
            Self::NeitherBoth
            | Self::NoAnomaly
            | Self::ImperfectTraining
            | Self::IndependentClients
            | Self::ViolatesAssumptions
            | Self::NotInTable => None,
        }
    }

    /// Its word in facts.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::RootCause(_) => "root_cause",
            Self::NeitherBoth => "neither_both",
            Self::NoAnomaly => "no_anomaly",
            Self::ImperfectTraining => "imperfect_training",
            Self::IndependentClients => "independent_clients",
            Self::ViolatesAssumptions => "violates_assumptions",
            Self::NotInTable => "not_in_table",
        }
    }

    /// The words of the paper.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::RootCause(_) => "root cause",
            Self::NeitherBoth => "(Neither, Both)",
            Self::NoAnomaly => "no anomaly",
            Self::ImperfectTraining => "imperfect training",
            Self::IndependentClients => "independent clients",
            Self::ViolatesAssumptions => "violates assumptions",
            Self::NotInTable => "not in the table",
        }
    }
}

/// Table 1 for M clients. A client whose flags are missing takes no part.
pub(crate) fn look_up(flags: &[Option<Flags>]) -> TableVerdict {
    let mut local = None;
    let (mut locals, mut effects, mut untrained) = (0u32, 0u32, 0u32);
    for (client, flags) in flags.iter().enumerate() {
        match flags.map(|f| (f.z_c, f.z_a)) {
            Some((true, true)) => {
                locals += 1;
                local = Some(client);
            }
            Some((true, false)) => effects += 1,
            Some((false, true)) => untrained += 1,
            Some((false, false)) | None => {}
        }
    }
    match (local, locals, effects, untrained) {
        // (1,0) with (0,1) is no row.
        (_, _, 1.., 1..) => TableVerdict::NotInTable,
        (_, 2.., _, _) => TableVerdict::ViolatesAssumptions,
        (Some(_), _, _, 1..) => TableVerdict::ImperfectTraining,
        (Some(root), ..) => TableVerdict::RootCause(root),
        (None, _, 2.., 0) => TableVerdict::NeitherBoth,
        (None, _, 0, 2..) => TableVerdict::IndependentClients,
        (None, _, 0, 0) => TableVerdict::NoAnomaly,
        (None, _, 1, _) | (None, _, _, 1) => TableVerdict::NotInTable,
    }
}

/// The paper's remark on long horizons: a root is declared only when at least `k` of the last `n`
/// steps name it.
#[derive(Debug, Clone)]
pub(crate) struct Voting {
    k: u32,
    ring: Vec<Option<usize>>,
    next: usize,
    votes: Vec<u32>,
}

impl Voting {
    /// An empty horizon for `clients` clients. With k = n = 1 every step is decided alone.
    pub(crate) fn new(vote: Vote, clients: usize) -> Self {
        Self {
            k: vote.k.max(1),
            ring: vec![None; vote.n.max(1) as usize],
            next: 0,
            votes: vec![0; clients],
        }
    }

    /// Takes the root named at this step and gives the one declared; of equals the lower index.
    pub(crate) fn step(&mut self, named: Option<usize>) -> Option<usize> {
        let named = named.filter(|client| *client < self.votes.len());
        let gone = std::mem::replace(&mut self.ring[self.next], named);
        self.next = (self.next + 1) % self.ring.len();
        if let Some(client) = gone {
            self.votes[client] -= 1;
        }
        if let Some(client) = named {
            self.votes[client] += 1;
        }
        let (client, votes) = self
            .votes
            .iter()
            .enumerate()
            .max_by_key(|(client, votes)| (**votes, std::cmp::Reverse(*client)))?;
        (*votes >= self.k).then_some(client)
    }

    pub(crate) fn reset(&mut self) {
        self.ring.fill(None);
        self.votes.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flags(z_c: u8, z_a: u8) -> Flags {
        Flags::new(z_c == 1, z_a == 1)
    }

    fn of_pair(c1: (u8, u8), c2: (u8, u8)) -> TableVerdict {
        look_up(&[Some(flags(c1.0, c1.1)), Some(flags(c2.0, c2.1))])
    }

    #[test]
    fn the_ten_rows_of_table_1_read_as_printed() {
        use TableVerdict::{
            ImperfectTraining, IndependentClients, NeitherBoth, NoAnomaly, RootCause,
            ViolatesAssumptions,
        };
        let rows = [
            ((1, 1), (0, 0), RootCause(0)),
            ((0, 0), (1, 1), RootCause(1)),
            ((1, 1), (1, 0), RootCause(0)),
            ((0, 1), (1, 1), ImperfectTraining),
            ((1, 1), (0, 1), ImperfectTraining),
            ((1, 0), (1, 1), RootCause(1)),
            ((0, 0), (0, 0), NoAnomaly),
            ((1, 0), (1, 0), NeitherBoth),
            ((0, 1), (0, 1), IndependentClients),
            ((1, 1), (1, 1), ViolatesAssumptions),
        ];
        for (c1, c2, verdict) in rows {
            assert_eq!(of_pair(c1, c2), verdict, "{c1:?} {c2:?}");
        }
    }

    #[test]
    fn the_six_combinations_that_table_1_leaves_out_are_not_in_it() {
        let rows = [
            ((1, 0), (0, 0)),
            ((0, 0), (1, 0)),
            ((0, 1), (0, 0)),
            ((0, 0), (0, 1)),
            ((0, 1), (1, 0)),
            ((1, 0), (0, 1)),
        ];
        for (c1, c2) in rows {
            assert_eq!(of_pair(c1, c2), TableVerdict::NotInTable, "{c1:?} {c2:?}");
        }
    }

    #[test]
    fn quiet_clients_do_not_change_what_the_others_say() {
        for bits in 1u8..16 {
            let pair = [flags(bits & 1, bits >> 1 & 1), flags(bits >> 2 & 1, bits >> 3 & 1)];
            let with = [Some(pair[0]), Some(flags(0, 0)), Some(pair[1]), Some(flags(0, 0))];
            let alone = look_up(&pair.map(Some));
            let renamed = match alone {
                TableVerdict::RootCause(1) => TableVerdict::RootCause(2),
                other => other,
            };
            assert_eq!(look_up(&with), renamed, "{pair:?}");
        }
    }

    #[test]
    fn a_vote_needs_k_of_the_last_n() {
        let mut voting = Voting::new(Vote { k: 3, n: 5 }, 2);
        let named = [Some(1), None, Some(1), Some(0), Some(1), None, None, Some(1)];
        let declared: Vec<_> = named.into_iter().map(|n| voting.step(n)).collect();
        assert_eq!(declared, [None, None, None, None, Some(1), None, None, None]);
    }

    proptest! {
        #[test]
        fn renaming_the_clients_renames_the_root(
            bits in prop::collection::vec((any::<bool>(), any::<bool>()), 1..7), turn in 0usize..7,
        ) {
            let flags: Vec<_> = bits.iter().map(|(c, a)| Some(Flags::new(*c, *a))).collect();
            let turn = turn % flags.len();
            let mut turned = flags.clone();
            turned.rotate_left(turn);
            let root = look_up(&turned).root().map(|m| (m + turn) % flags.len());
            prop_assert_eq!(look_up(&flags).root(), root);
        }

        #[test]
        fn a_client_without_flags_changes_nothing(
            bits in prop::collection::vec((any::<bool>(), any::<bool>()), 1..6),
        ) {
            let mut flags: Vec<_> = bits.iter().map(|(c, a)| Some(Flags::new(*c, *a))).collect();
            let alone = look_up(&flags);
            flags.push(None);
            prop_assert_eq!(look_up(&flags), alone);
        }

        #[test]
        fn a_vote_is_the_count_over_the_horizon(
            named in prop::collection::vec(prop::option::of(0usize..3), 1..40), k in 1u32..4, n in 1u32..6,
        ) {
            let mut voting = Voting::new(Vote { k, n }, 3);
            for t in 0..named.len() {
                let horizon = &named[(t + 1).saturating_sub(n as usize)..=t];
                let count = |m: usize| horizon.iter().filter(|v| **v == Some(m)).count() as u32;
                let best = (0..3).max_by_key(|m| (count(*m), std::cmp::Reverse(*m))).filter(|m| count(*m) >= k);
                prop_assert_eq!(voting.step(named[t]), best);
            }
        }
    }
}
