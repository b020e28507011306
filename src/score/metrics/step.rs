//! Precision, recall and F1 per step, in the three readings that papers use without saying which.

use serde::Serialize;

use super::{Rates, share};

/// One step: whom the label names and whom the method names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Step<L> {
    /// The true root, when something is going on.
    pub(crate) truth: Option<L>,
    /// The declared root, when something is declared.
    pub(crate) declared: Option<L>,
}

/// Per-step rates. A step is right when the declared root is the true one; with `()` for a name
/// they are rates of detection alone.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(crate) struct StepRates {
    /// Over the whole stream.
    pub(crate) whole: Rates,
    /// Likewise, but a right name shortly after the end of an anomaly, while the process recovers,
    /// is left out of the precision instead of being held against it.
    pub(crate) grace: Rates,
    /// Steps outside anomalies left out: false alarms cost nothing here. Never to be shown alone.
    pub(crate) inside: Rates,
}

/// Steps after an anomaly in which its name is not held against a method.
pub(crate) const GRACE: usize = 10;

/// Per-step rates of a stream; `grace` is usually [`GRACE`].
pub(crate) fn step_rates<L: PartialEq>(steps: &[Step<L>], grace: usize) -> StepRates {
    let (mut right, mut declared, mut declared_inside, mut forgiven, mut anomalous) =
        (0, 0, 0, 0, 0);
    // The name of the anomaly that ended last, and how many steps ago.
    let mut over: Option<(&L, usize)> = None;
    for step in steps {
        if let Some(truth) = &step.truth {
            over = Some((truth, 0));
            anomalous += 1;
        } else if let Some((_, ago)) = &mut over {
            *ago += 1;
        }
        let Some(name) = &step.declared else { continue };
        declared += 1;
        if let Some(truth) = &step.truth {
            declared_inside += 1;
            right += usize::from(truth == name);
        } else if over.is_some_and(|(last, ago)| last == name && ago <= grace) {
            forgiven += 1;
        }
    }
    let recall = share(right, anomalous);
    StepRates {
        whole: Rates::new(share(right, declared), recall),
        grace: Rates::new(share(right, declared - forgiven), recall),
        inside: Rates::new(share(right, declared_inside), recall),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(truth: &str, declared: &str) -> Vec<Step<char>> {
        let name = |c: char| (c != '.').then_some(c);
        truth
            .chars()
            .zip(declared.chars())
            .map(|(t, s)| Step { truth: name(t), declared: name(s) })
            .collect()
    }

    #[test]
    fn the_three_readings_differ_in_what_they_hold_against_a_method() {
        let steps = steps(
            "..AAAA........", //
            "B.AAB.A..A....",
        );
        let rates = step_rates(&steps, 2);
        assert_eq!(rates.whole, Rates::new(Some(2.0 / 6.0), Some(0.5)));
        // The A one step after the end is forgiven, the one four steps after is not.
        assert_eq!(rates.grace, Rates::new(Some(2.0 / 5.0), Some(0.5)));
        assert_eq!(rates.inside, Rates::new(Some(2.0 / 3.0), Some(0.5)));
    }

    #[test]
    fn another_name_in_the_grace_period_is_not_forgiven() {
        let rates = step_rates(&steps("AA..", "AAB."), 10);
        assert_eq!(rates.grace.precision, Some(2.0 / 3.0));
    }

    proptest! {
        #[test]
        fn each_reading_is_at_least_as_lenient_as_the_one_before(
            steps in prop::collection::vec(
                (prop::option::of(0u8..3), prop::option::of(0u8..3)), 0..60
            ),
            grace in 0usize..12,
        ) {
            let steps: Vec<Step<u8>> =
                steps.into_iter().map(|(truth, declared)| Step { truth, declared }).collect();
            let rates = step_rates(&steps, grace);
            for r in [rates.whole, rates.grace, rates.inside] {
                for figure in [r.precision, r.recall, r.f1].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&figure));
                }
            }
            if let (Some(a), Some(b)) = (rates.whole.precision, rates.grace.precision) {
                prop_assert!(a <= b);
            }
            if let (Some(a), Some(b)) = (rates.grace.precision, rates.inside.precision) {
                prop_assert!(a <= b);
            }
        }

        #[test]
        fn saying_the_truth_is_perfect(
            truth in prop::collection::vec(prop::option::of(0u8..3), 1..60),
        ) {
            let steps: Vec<Step<u8>> =
                truth.iter().map(|&t| Step { truth: t, declared: t }).collect();
            if truth.iter().any(Option::is_some) {
                let perfect = Rates::new(Some(1.0), Some(1.0));
                let all = StepRates { whole: perfect, grace: perfect, inside: perfect };
                prop_assert_eq!(step_rates(&steps, GRACE), all);
            }
        }
    }
}
