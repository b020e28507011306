//! Delays as a median and a 95th percentile, and counts per day.

use serde::{Deserialize, Serialize};

/// Typical and bad case of a list of delays; both `None` when the list is empty.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Delays {
    /// Half of them are shorter.
    pub(crate) median: Option<f64>,
    /// Nineteen in twenty are shorter.
    pub(crate) p95: Option<f64>,
}

impl Delays {
    /// Of these delays, in any order.
    pub(crate) fn of(delays: &[f64]) -> Self {
        let mut sorted = delays.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { median: quantile(&sorted, 0.5), p95: quantile(&sorted, 0.95) }
    }
}

/// The `q`-quantile of a sorted list, linear between neighbours (type 7, the default of `NumPy` and
/// R), so that figures can be checked against either.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let place = q * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

/// `count` over `days`; `None` when nothing was watched.
pub(crate) fn per_day(count: usize, days: f64) -> Option<f64> {
    (days > 0.0).then(|| count as f64 / days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        assert_eq!(Delays::of(&[]), Delays { median: None, p95: None });
        assert_eq!(Delays::of(&[7.0]), Delays { median: Some(7.0), p95: Some(7.0) });
        let delays = Delays::of(&[40.0, 10.0, 30.0, 20.0]);
        assert_eq!(delays.median, Some(25.0));
        assert!((delays.p95.unwrap_or_default() - 38.5).abs() < 1e-12);
    }

    #[test]
    fn a_rate_needs_time() {
        assert_eq!((per_day(3, 2.0), per_day(3, 0.0)), (Some(1.5), None));
    }

    proptest! {
        #[test]
        fn delays_lie_between_the_shortest_and_the_longest(
            list in prop::collection::vec(0.0f64..1e6, 1..30)
                .prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
        ) {
            let (shortest, longest) =
                list.0.iter().fold((f64::MAX, 0.0f64), |(a, b), &d| (a.min(d), b.max(d)));
            let delays = Delays::of(&list.0);
            prop_assert_eq!(delays, Delays::of(&list.1));
            prop_assert!(Some(shortest) <= delays.median);
            prop_assert!(delays.median <= delays.p95 && delays.p95 <= Some(longest + 1e-6));
        }
    }
}
