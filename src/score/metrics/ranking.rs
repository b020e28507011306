//! AC@k, Avg@k and MRR: where the true root stands in the list of suspects.
//!
//! A case is one event whose origin is known. A case without a list (the event was missed) or whose
//! origin is not in the list has no rank and counts as 0: a method cannot improve its average by
//! staying silent on the hard ones.

use std::num::NonZeroUsize;

/// Place of a true origin in a list, 1 for the first; `None` when it is not there.
pub(crate) type Rank = Option<NonZeroUsize>;

/// The place of the best placed of `origins` among `suspects`.
///
/// `named` is the root that was declared: it stands first whatever the weights are. Of the others a
/// heavier one stands before a lighter one, and an origin stands behind the suspects of the same
/// weight: a method that gives all the same weight has named no client.
pub(crate) fn rank<L: PartialEq>(named: Option<&L>, suspects: &[(L, f64)], origins: &[L]) -> Rank {
    let is_origin = |name: &L| origins.contains(name);
    if named.is_some_and(is_origin) {
        return Some(NonZeroUsize::MIN);
    }
    let others =
        || suspects.iter().filter(|(name, weight)| Some(name) != named && !weight.is_nan());
    let best = others()
        .filter(|(name, _)| is_origin(name))
        .map(|(_, weight)| *weight)
        .max_by(f64::total_cmp)?;
    let before = others().filter(|(name, weight)| !is_origin(name) && *weight >= best).count();
    NonZeroUsize::MIN.checked_add(before + usize::from(named.is_some()))
}

/// AC@k: share of cases whose origin is among the first `k`; `None` without a case.
pub(crate) fn accuracy_at(ranks: &[Rank], k: usize) -> Option<f64> {
    super::share(ranks.iter().flatten().filter(|rank| rank.get() <= k).count(), ranks.len())
}

/// Avg@k: mean of AC@1 to AC@k; `None` without a case or for k = 0.
pub(crate) fn average_at(ranks: &[Rank], k: usize) -> Option<f64> {
    let sum: f64 = (1..=k).map(|k| accuracy_at(ranks, k)).sum::<Option<f64>>()?;
    (k > 0).then(|| sum / k as f64)
}

/// MRR: mean of 1/rank; `None` without a case.
pub(crate) fn mrr(ranks: &[Rank]) -> Option<f64> {
    let sum: f64 = ranks.iter().flatten().map(|rank| 1.0 / rank.get() as f64).sum();
    (!ranks.is_empty()).then(|| sum / ranks.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(n: usize) -> Rank {
        NonZeroUsize::new(n)
    }

    #[test]
    fn ranks_of_a_small_table_give_the_figures_of_the_literature() {
        let ranks = [place(1), place(1), place(3), None];
        assert_eq!(accuracy_at(&ranks, 1), Some(0.5));
        assert_eq!(accuracy_at(&ranks, 3), Some(0.75));
        assert_eq!(average_at(&ranks, 5), Some((0.5 + 0.5 + 0.75 * 3.0) / 5.0));
        let mean = mrr(&ranks).expect("there are cases");
        assert!((mean - (1.0 + 1.0 + 1.0 / 3.0) / 4.0).abs() < 1e-15);
        assert_eq!((accuracy_at(&[], 1), average_at(&[], 5), mrr(&[])), (None, None, None));
    }

    #[test]
    fn the_declared_root_stands_first_even_when_later_evidence_says_otherwise() {
        let suspects = [("P1", 0.2), ("P2", 0.7), ("P3", 0.1)];
        assert_eq!(rank(Some(&"P1"), &suspects, &["P1"]), place(1));
        assert_eq!(rank(Some(&"P1"), &suspects, &["P2"]), place(2));
        assert_eq!(rank(Some(&"P1"), &suspects, &["P3"]), place(3));
        assert_eq!(rank(None, &suspects, &["P2"]), place(1));
    }

    #[test]
    fn equal_weights_name_nobody() {
        let suspects = [("P1", 0.5), ("P2", 0.5)];
        assert_eq!(rank(None, &suspects, &["P1"]), place(2));
        assert_eq!(rank(None, &suspects, &["P1", "P2"]), place(1), "either is right");
    }

    #[test]
    fn an_origin_that_is_not_in_the_list_has_no_rank() {
        assert_eq!(rank(Some(&"P1"), &[("P1", 1.0)], &["P9"]), None);
        assert_eq!(rank(None, &[("P9", f64::NAN)], &["P9"]), None);
    }

    proptest! {
        #[test]
        fn figures_are_bounded_and_grow_with_k(
            ranks in prop::collection::vec(prop::option::of(1usize..9), 1..20)
        ) {
            let ranks: Vec<Rank> =
                ranks.into_iter().map(|r| r.and_then(NonZeroUsize::new)).collect();
            let at = |k| accuracy_at(&ranks, k).expect("there are cases");
            let average = average_at(&ranks, 5).expect("there are cases");
            let mean = mrr(&ranks).expect("there are cases");
            let between = |low: f64, x: f64, high: f64| low - 1e-12 <= x && x <= high + 1e-12;
            prop_assert!((1..9).all(|k| between(at(k), at(k + 1), 1.0)));
            prop_assert!(between(at(1), average, at(5)) && between(at(1), mean, at(9)));
        }

        #[test]
        fn the_order_of_suspects_does_not_matter(
            suspects in prop::collection::vec((0u8..6, 0u8..4), 0..6)
                .prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
            named in prop::option::of(0u8..6),
            origin in 0u8..6,
        ) {
            let weigh = |list: Vec<(u8, u8)>| -> Vec<(u8, f64)> {
                list.into_iter().map(|(name, weight)| (name, f64::from(weight))).collect()
            };
            let (one, other) = (weigh(suspects.0), weigh(suspects.1));
            prop_assert_eq!(
                rank(named.as_ref(), &one, &[origin]),
                rank(named.as_ref(), &other, &[origin])
            );
        }
    }
}
