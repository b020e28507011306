//! From roots declared step by step to episodes: the published method says nothing about how long a
//! verdict holds, and one alarm a step is none.
//!
//! An episode begins with a declared root and ends after [`QUIET`] steps without any. Its root is the
//! client declared most often since it began; of equals the one declared first.

use jiff::Timestamp;

use super::decision::{Closing, Decision};

/// Steps on end without a declared root after which an episode is over.
const QUIET: u32 = 5;

/// The running episode and how many there have been.
#[derive(Debug, Clone)]
pub(super) struct Episodes {
    number: u64,
    onset: Option<Timestamp>,
    root: Option<usize>,
    declared: Vec<u32>,
    quiet: u32,
}

impl Episodes {
    pub(crate) fn new(clients: usize) -> Self {
        Self { number: 0, onset: None, root: None, declared: vec![0; clients], quiet: 0 }
    }

    /// Takes the root declared at this step.
    pub(crate) fn step(
        &mut self,
        declared: Option<usize>,
        now: Timestamp,
        decision: &mut Decision,
    ) {
        if let Some(client) = declared {
            self.count(client, now);
            self.tell(None, decision);
        } else if self.onset.is_some() {
            self.quiet += 1;
            let over = self.quiet >= QUIET;
            self.tell(over.then_some(Closing::Quiet), decision);
        }
    }

    /// A new run begins: the episode of the one before is not followed any more.
    pub(crate) fn forget(&mut self) {
        (self.onset, self.quiet) = (None, 0);
    }

    fn count(&mut self, client: usize, now: Timestamp) {
        if self.onset.is_none() {
            self.number += 1;
            self.onset = Some(now);
            self.root = None;
            self.declared.fill(0);
        }
        self.quiet = 0;
        self.declared[client] += 1;
        let most = self.root.map_or(0, |root| self.declared[root]);
        if self.declared[client] > most {
            self.root = Some(client);
        }
    }

    fn tell(&mut self, closed: Option<Closing>, decision: &mut Decision) {
        let Some(onset) = self.onset else { return };
        let outcome = decision.decide();
        outcome.episode = self.number;
        outcome.onset = onset;
        outcome.root = self.root;
        outcome.frozen = false;
        outcome.would_now_say = self.root;
        // The look-up has no probabilities.
        outcome.posterior.clear();
        // Nor does it revise a root, or follow a disturbance beyond its episode.
        outcome.closed = closed;
        if closed.is_some() {
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(step: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(step)
    }

    /// (episode, root, closed) of every step.
    fn told(declared: &[Option<usize>]) -> Vec<Option<(u64, Option<usize>, bool)>> {
        let mut episodes = Episodes::new(3);
        let mut decision = Decision::new(3);
        (0..)
            .zip(declared)
            .map(|(t, root)| {
                decision.clear();
                episodes.step(*root, time(t), &mut decision);
                decision.outcomes().first().map(|o| (o.episode, o.root, o.closed.is_some()))
            })
            .collect()
    }

    #[test]
    fn an_episode_outlives_short_silence_and_ends_with_a_long_one() {
        let mut declared = vec![None, Some(1), None, None, Some(1)];
        declared.extend([None; 6]);
        let said = told(&declared);
        assert_eq!(said[0], None);
        assert!(said[1..9].iter().all(|s| *s == Some((1, Some(1), false))), "{said:?}");
        assert_eq!(said[9], Some((1, Some(1), true)));
        assert_eq!(said[10], None);
    }

    #[test]
    fn the_root_is_whoever_was_declared_most_and_of_equals_the_first() {
        let said = told(&[Some(0), Some(2), Some(2)]);
        let roots: Vec<_> = said.iter().map(|s| s.and_then(|(_, root, _)| root)).collect();
        assert_eq!(roots, [Some(0), Some(0), Some(2)]);
    }
}
