//! Which of several rows agree about the time: the fewest are passed over that make time grow.

use jiff::{SignedDuration, Timestamp};

/// Rows whose stamps grow strictly, out of a few rows in succession.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    /// Places of the rows that are kept, in order.
    kept: Vec<usize>,
    /// For each but the first, whether it stands as many periods after the one before it as there
    /// are rows between.
    regular: Vec<bool>,
}

/// The best chain that ends in a row.
#[derive(Debug, Clone, Copy)]
struct Best {
    rows: usize,
    regular: usize,
    before: Option<usize>,
}

impl Chain {
    /// The chain of these stamps.
    pub(crate) fn of(stamps: &[Timestamp], period: SignedDuration) -> Self {
        Self::find(None, stamps, period)
    }

    /// The chain of these stamps that goes on from `last`, the stamp of the row before them.
    pub(crate) fn after(last: Timestamp, stamps: &[Timestamp], period: SignedDuration) -> Self {
        Self::find(Some(last), stamps, period)
    }

    /// As many rows as can be; of several such chains the most regular, then the earliest.
    fn find(last: Option<Timestamp>, stamps: &[Timestamp], period: SignedDuration) -> Self {
        let regular = |from: Timestamp, row: usize, rows: usize| {
            is_about(stamps[row].duration_since(from), period, rows)
        };
        let with = |kept: Vec<usize>| {
            let pairs = kept.windows(2);
            let regular =
                pairs.map(|pair| regular(stamps[pair[0]], pair[1], pair[1] - pair[0])).collect();
            Self { kept, regular }
        };
        if last.iter().chain(stamps).is_sorted_by(|a, b| a < b) {
            return with((0..stamps.len()).collect());
        }
        let mut best: Vec<Option<Best>> = Vec::with_capacity(stamps.len());
        for (row, stamp) in stamps.iter().enumerate() {
            let mut found = match last {
                None => Some(Best { rows: 1, regular: 0, before: None }),
                Some(last) if last < *stamp => {
                    let regular = usize::from(regular(last, row, row + 1));
                    Some(Best { rows: 1, regular, before: None })
                }
                Some(_) => None,
            };
            for before in 0..row {
                let Some(Best { rows, regular: so_far, .. }) = best[before] else { continue };
                if stamps[before] >= *stamp {
                    continue;
                }
                let regular = so_far + usize::from(regular(stamps[before], row, row - before));
                if found.is_none_or(|found| (found.rows, found.regular) < (rows + 1, regular)) {
                    found = Some(Best { rows: rows + 1, regular, before: Some(before) });
                }
            }
            best.push(found);
        }
        let mut end: Option<(usize, Best)> = None;
        for (row, best) in best.iter().enumerate() {
            if let Some(best) = best
                && end.is_none_or(|(_, e)| (e.rows, e.regular) < (best.rows, best.regular))
            {
                end = Some((row, *best));
            }
        }
        let mut kept = Vec::new();
        let mut at = end.map(|(row, _)| row);
        while let Some(row) = at {
            kept.push(row);
            at = best[row].and_then(|best| best.before);
        }
        kept.reverse();
        with(kept)
    }

    /// Number of rows that are kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether the first row is kept.
    pub(crate) fn keeps_first(&self) -> bool {
        self.kept.first() == Some(&0)
    }

    /// Places of the rows that are kept.
    pub(crate) fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept.iter().copied()
    }

    /// How many rows follow each other regularly, the first row among them; none where it is not
    /// kept.
    pub(crate) fn regular_from_first(&self) -> usize {
        if !self.keeps_first() {
            return 0;
        }
        1 + self.regular.iter().filter(|regular| **regular).count()
    }
}

/// Whether a distance is about so many periods.
pub(crate) fn is_about(distance: SignedDuration, period: SignedDuration, rows: usize) -> bool {
    let (distance, period) = (distance.as_secs_f64(), period.as_secs_f64());
    (distance - rows as f64 * period).abs() <= 0.5 * period
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain(last: Option<i64>, stamps: &[i64]) -> Vec<usize> {
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let stamps: Vec<Timestamp> = stamps.iter().map(|s| at(*s)).collect();
        let period = SignedDuration::from_secs(10);
        let chain = match last {
            Some(last) => Chain::after(at(last), &stamps, period),
            None => Chain::of(&stamps, period),
        };
        chain.kept().collect()
    }

    #[test]
    fn the_row_that_all_others_contradict_is_passed_over() {
        assert_eq!(chain(Some(0), &[10, 20, 30]), [0, 1, 2]);
        assert_eq!(chain(Some(0), &[9000, 20, 30]), [1, 2]);
        assert_eq!(chain(Some(0), &[20, 20, 30]), [1, 2], "the second one is on time");
        assert_eq!(chain(Some(0), &[0, 20, 30]), [1, 2]);
        assert_eq!(chain(Some(0), &[500, 20, 520, 530]), [0, 2, 3]);
        assert!(chain(Some(100), &[20, 30]).is_empty());
        assert_eq!(chain(None, &[30, 20, 10]), [0]);
    }

    proptest! {
        #[test]
        fn no_growing_choice_of_rows_is_longer(
            stamps in prop::collection::vec(0_i64..40, 0..9), last in prop::option::of(0_i64..40),
        ) {
            let kept = chain(last, &stamps);
            prop_assert!(kept.windows(2).all(|w| w[0] < w[1] && stamps[w[0]] < stamps[w[1]]));
            prop_assert!(last.is_none_or(|last| kept.iter().all(|row| last < stamps[*row])));
            let longest = (0..1_u32 << stamps.len())
                .filter_map(|choice| {
                    let chosen = (0..stamps.len()).filter(|row| choice >> row & 1 == 1);
                    let times: Vec<i64> = last.into_iter().chain(chosen.map(|r| stamps[r])).collect();
                    times.is_sorted_by(|a, b| a < b).then_some(choice.count_ones() as usize)
                })
                .max();
            prop_assert_eq!(Some(kept.len()), longest);
        }
    }
}
