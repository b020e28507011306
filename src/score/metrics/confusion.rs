//! Root cause against propagated effect: what a client was, and what it was taken for.

use std::fmt;

use serde::Serialize;

/// What a client is in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Root,
    /// It only feels it.
    Effect,
    /// It has no part in it, as far as is known.
    Quiet,
}

/// How often clients of one true role were taken for each role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct TakenFor {
    /// For the root cause.
    pub(crate) root: usize,
    /// For a propagated effect.
    pub(crate) effect: usize,
    pub(crate) quiet: usize,
}

impl TakenFor {
    fn total(self) -> usize {
        self.root + self.effect + self.quiet
    }
}

/// The table: a row for what clients were, a column for what they were taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Confusion {
    pub(crate) root: TakenFor,
    pub(crate) effect: TakenFor,
    /// Clients that had no part.
    pub(crate) quiet: TakenFor,
}

impl Confusion {
    /// Counts one client of one event.
    pub(crate) fn count(&mut self, truth: Role, declared: Role) {
        let row = match truth {
            Role::Root => &mut self.root,
            Role::Effect => &mut self.effect,
            Role::Quiet => &mut self.quiet,
        };
        match declared {
            Role::Root => row.root += 1,
            Role::Effect => row.effect += 1,
            Role::Quiet => row.quiet += 1,
        }
    }

    /// Clients counted so far.
    pub(crate) fn total(&self) -> usize {
        self.root.total() + self.effect.total() + self.quiet.total()
    }
}

impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14}{:>8}{:>8}{:>8}", "is \\ said", "root", "effect", "quiet")?;
        for (name, row) in [("root", self.root), ("effect", self.effect), ("quiet", self.quiet)] {
            write!(f, "\n{name:<14}{:>8}{:>8}{:>8}", row.root, row.effect, row.quiet)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_root_taken_for_an_effect_stands_in_the_row_of_roots() {
        let mut table = Confusion::default();
        table.count(Role::Root, Role::Effect);
        table.count(Role::Effect, Role::Root);
        table.count(Role::Effect, Role::Effect);
        insta::assert_snapshot!(table, @r"
        is \ said         root  effect   quiet
        root                 0       1       0
        effect               1       1       0
        quiet                0       0       0
        ");
    }

    proptest! {
        #[test]
        fn every_client_is_counted_once(pairs in prop::collection::vec((0usize..3, 0usize..3), 0..30)) {
            let roles = [Role::Root, Role::Effect, Role::Quiet];
            let mut table = Confusion::default();
            for &(truth, declared) in &pairs {
                table.count(roles[truth], roles[declared]);
            }
            prop_assert_eq!(table.total(), pairs.len());
        }
    }
}
