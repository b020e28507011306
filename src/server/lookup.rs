//! Paper mode: the look-up of Table 1 for pairs of clients, its extension to M, and a k-of-n vote.
//!
//! Table 1 lists ten of the sixteen combinations of two pairs of flags. The other six are answered
//! here by the reasons the paper gives for its own rows:
//!
//! | combination | answer | reason |
//! |---|---|---|
//! | (1,0) with (0,0) | (Neither, that client) | an effect is felt and no client shows a cause, as in (Neither, Both) |
//! | (0,1) with (0,0) | Imperfect training | only the augmented model sees it, which a trained one cannot do alone |
//! | (0,1) with (1,0) | Imperfect training | likewise: Z_a = 1 without Z_c = 1 |
//!
//! Each in both orders. For M clients (the paper is silent): client m is the root cause when its
//! flags are (1,1) and no other client has Z_a = 1; its effects are the clients with (1,0). Every
//! other case declares nothing, and says why.

use crate::evidence::threshold::Flags;
use crate::session::Vote;

/// What Table 1 says about two clients. `First` and `Second` are C_1 and C_2.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PairVerdict {
    /// (C_m, –): a root cause that nobody else feels.
    RootCause(Member),
    /// (C_m, C_n): a root cause and its propagated effect.
    RootCauseAndEffect {
        root: Member,
        /// The other one feels it.
        effect: Member,
    },
    /// (Neither, Both): effects of a cause outside the pair.
    NeitherBoth,
    /// (Neither, C_m): one client feels a cause outside the pair. Not in Table 1.
    NeitherOne(Member),
    NoAnomaly,
    ImperfectTraining,
    IndependentClients,
    /// Violates assumptions: two root causes at once.
    ViolatesAssumptions,
}

/// One of a pair.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Member {
    /// C_1.
    First,
    /// C_2.
    Second,
}

#[cfg(test)]
impl std::fmt::Display for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::First => "C1",
            Self::Second => "C2",
        })
    }
}

#[cfg(test)]
impl std::fmt::Display for PairVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RootCause(root) => write!(f, "({root}, –)"),
            Self::RootCauseAndEffect { root, effect } => write!(f, "({root}, {effect})"),
            Self::NeitherBoth => f.write_str("(Neither, Both)"),
            Self::NeitherOne(effect) => write!(f, "(Neither, {effect})"),
            Self::NoAnomaly => f.write_str("No anomaly"),
            Self::ImperfectTraining => f.write_str("Imperfect training"),
            Self::IndependentClients => f.write_str("Independent clients"),
            Self::ViolatesAssumptions => f.write_str("Violates assumptions"),
        }
    }
}

/// Table 1.
#[cfg(test)]
pub(crate) fn pair(c1: Flags, c2: Flags) -> PairVerdict {
    use Member::{First, Second};
    match ((c1.z_c, c1.z_a), (c2.z_c, c2.z_a)) {
        ((true, true), (false, false)) => PairVerdict::RootCause(First),
        ((false, false), (true, true)) => PairVerdict::RootCause(Second),
        ((true, true), (true, false)) => {
            PairVerdict::RootCauseAndEffect { root: First, effect: Second }
        }
        ((true, false), (true, true)) => {
            PairVerdict::RootCauseAndEffect { root: Second, effect: First }
        }
        ((false, false), (false, false)) => PairVerdict::NoAnomaly,
        ((true, false), (true, false)) => PairVerdict::NeitherBoth,
        ((false, true), (false, true)) => PairVerdict::IndependentClients,
        ((true, true), (true, true)) => PairVerdict::ViolatesAssumptions,
        ((true, false), (false, false)) => PairVerdict::NeitherOne(First),
        ((false, false), (true, false)) => PairVerdict::NeitherOne(Second),
        // Both orders of (0,1) with (1,1) are rows of the table, with (0,0) and (1,0) they are not.
        ((false, true), _) | (_, (false, true)) => PairVerdict::ImperfectTraining,
    }
}

/// What the flags of M clients say at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LookUp {
    /// Exactly one client has Z_a = 1, and its flags are (1,1).
    RootCause(usize),
    /// Effects are felt and no client shows a cause.
    NoRoot,
    NoAnomaly,
    /// A client has (0,1).
    ImperfectTraining,
    /// All clients with a flag have (0,1), and they are at least two.
    IndependentClients,
    /// More than one client has (1,1).
    ViolatesAssumptions,
}

impl LookUp {
    /// The declared root cause.
    pub(crate) fn root(self) -> Option<usize> {
        match self {
            Self::RootCause(client) => Some(client),
            _ => None,
        }
    }
}

/// Table 1 for M clients. A client whose flags are missing takes no part.
pub(crate) fn look_up(flags: &[Option<Flags>]) -> LookUp {
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
        (_, 2.., _, _) => LookUp::ViolatesAssumptions,
        (None, _, 0, 2..) => LookUp::IndependentClients,
        (_, _, _, 1..) => LookUp::ImperfectTraining,
        (Some(root), ..) => LookUp::RootCause(root),
        (None, _, 1.., _) => LookUp::NoRoot,
        (None, _, 0, _) => LookUp::NoAnomaly,
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
    /// An empty horizon for `clients` clients. With k = n = 1 every step speaks for itself.
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

    #[test]
    fn the_ten_rows_of_table_1_read_as_printed() {
        let rows = [
            ((1, 1), (0, 0), "(C1, –)"),
            ((0, 0), (1, 1), "(C2, –)"),
            ((1, 1), (1, 0), "(C1, C2)"),
            ((0, 1), (1, 1), "Imperfect training"),
            ((1, 1), (0, 1), "Imperfect training"),
            ((1, 0), (1, 1), "(C2, C1)"),
            ((0, 0), (0, 0), "No anomaly"),
            ((1, 0), (1, 0), "(Neither, Both)"),
            ((0, 1), (0, 1), "Independent clients"),
            ((1, 1), (1, 1), "Violates assumptions"),
        ];
        for ((a, b), (c, d), words) in rows {
            assert_eq!(pair(flags(a, b), flags(c, d)).to_string(), words, "({a},{b}) ({c},{d})");
        }
    }

    #[test]
    fn the_six_combinations_that_table_1_leaves_out_have_an_answer() {
        let rows = [
            ((1, 0), (0, 0), "(Neither, C1)"),
            ((0, 0), (1, 0), "(Neither, C2)"),
            ((0, 1), (0, 0), "Imperfect training"),
            ((0, 0), (0, 1), "Imperfect training"),
            ((0, 1), (1, 0), "Imperfect training"),
            ((1, 0), (0, 1), "Imperfect training"),
        ];
        for ((a, b), (c, d), words) in rows {
            assert_eq!(pair(flags(a, b), flags(c, d)).to_string(), words, "({a},{b}) ({c},{d})");
        }
    }

    #[test]
    fn for_two_clients_the_extension_declares_the_roots_that_table_1_declares() {
        for bits in 0u8..16 {
            let (c1, c2) = (flags(bits & 1, bits >> 1 & 1), flags(bits >> 2 & 1, bits >> 3 & 1));
            let of_pair = match pair(c1, c2) {
                PairVerdict::RootCause(root) | PairVerdict::RootCauseAndEffect { root, .. } => {
                    Some(usize::from(root == Member::Second))
                }
                _ => None,
            };
            assert_eq!(look_up(&[Some(c1), Some(c2)]).root(), of_pair, "{c1} {c2}");
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
