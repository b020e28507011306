//! EP, ER, EF: declared incidents against anomalies, end to end: found and rightly named.
//!
//! Sequential methods declare incidents with a beginning and an end. A look-up table gives a name
//! or none at each step; [`group`] turns that into incidents so that both are judged alike.

use serde::Serialize;

use super::{Rates, Tick, Window, share, tick};

/// A stretch of time with the client it is about: an anomaly and its origin, or a declared incident
/// and its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named<L> {
    pub(crate) window: Window,
    pub(crate) name: L,
}

/// Two named steps at most this far apart are of one incident.
pub(crate) const GAP: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct EndToEnd {
    /// EP: incidents that answer an anomaly with the right name, of all incidents.
    /// ER: anomalies so answered. EF: their harmonic mean.
    pub(crate) rates: Rates,
    /// Anomalies answered under whatever name.
    pub(crate) detected: usize,
    /// Anomalies answered under the right name.
    pub(crate) right: usize,
    pub(crate) anomalies: usize,
    pub(crate) incidents: usize,
}

/// Judges `incidents`. One is right when it overlaps an anomaly (or the `tail` after it) and bears
/// its name; every other one is false, in nominal stretches as well.
pub(crate) fn end_to_end<L: PartialEq>(
    anomalies: &[Named<L>],
    incidents: &[Named<L>],
    tail: Tick,
) -> EndToEnd {
    let answers = |anomaly: &Named<L>, incident: &Named<L>| {
        anomaly.window.with_tail(tail).shared(incident.window).ticks() > 0
    };
    let names = |anomaly: &Named<L>, incident: &Named<L>| {
        answers(anomaly, incident) && anomaly.name == incident.name
    };
    let true_incidents =
        incidents.iter().filter(|&i| anomalies.iter().any(|a| names(a, i))).count();
    let right = anomalies.iter().filter(|&a| incidents.iter().any(|i| names(a, i))).count();
    let detected = anomalies.iter().filter(|&a| incidents.iter().any(|i| answers(a, i))).count();
    EndToEnd {
        rates: Rates::new(share(true_incidents, incidents.len()), share(right, anomalies.len())),
        detected,
        right,
        anomalies: anomalies.len(),
        incidents: incidents.len(),
    }
}

/// Incidents in a stream of names: named steps at most `gap` apart belong together and are named
/// by the name of most of them (of equals, the first).
pub(crate) fn group<L: PartialEq + Copy>(names: &[Option<L>], gap: usize) -> Vec<Named<L>> {
    let named: Vec<usize> = (0..names.len()).filter(|&t| names[t].is_some()).collect();
    named
        .chunk_by(|a, b| b - a <= gap)
        .filter_map(|steps| {
            let (first, last) = (*steps.first()?, *steps.last()?);
            let name = majority(&names[first..=last])?;
            Some(Named { window: Window::new(tick(first), tick(last)), name })
        })
        .collect()
}

fn majority<L: PartialEq + Copy>(names: &[Option<L>]) -> Option<L> {
    let mut votes: Vec<(L, usize)> = Vec::new();
    for &name in names.iter().flatten() {
        match votes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => votes.push((name, 1)),
        }
    }
    // `max_by_key` keeps the last of equals; reversed, that is the first one.
    votes.into_iter().rev().max_by_key(|(_, count)| *count).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The last step of an anomaly is t0+L-1, its answer may come up to t0+L+5.
    const TAIL: Tick = 6;

    fn stream(text: &str) -> Vec<Option<char>> {
        text.chars().map(|c| (c != '.').then_some(c)).collect()
    }

    fn named(start: Tick, end: Tick, name: char) -> Named<char> {
        Named { window: Window::new(start, end), name }
    }

    #[test]
    fn steps_near_each_other_are_one_incident_under_the_majority_name() {
        let said = stream("AB....B......A.");
        assert_eq!(group(&said, 5), [named(0, 6, 'B'), named(13, 13, 'A')]);
        assert_eq!(group(&stream("AB"), 5), [named(0, 1, 'A')], "of equals the first");
    }

    #[test]
    fn a_wrong_name_is_a_detection_but_no_success() {
        let anomalies = [named(10, 19, 'A'), named(110, 119, 'B')];
        let incidents = [named(12, 20, 'A'), named(111, 115, 'A'), named(60, 61, 'A')];
        let figures = end_to_end(&anomalies, &incidents, TAIL);
        assert_eq!((figures.detected, figures.right), (2, 1));
        assert_eq!(figures.rates, Rates::new(Some(1.0 / 3.0), Some(0.5)));
    }

    #[test]
    fn an_answer_may_come_up_to_five_steps_after_the_end() {
        let (anomaly, length) = ([named(10, 19, 'A')], 10);
        let answer = |t| end_to_end(&anomaly, &[named(t, t + 3, 'A')], TAIL).right;
        assert_eq!((answer(10 + length + 5), answer(10 + length + 6)), (1, 0));
    }

    fn list() -> impl Strategy<Value = Vec<Named<u8>>> {
        prop::collection::vec((0i64..300, 0i64..30, 0u8..3), 0..8).prop_map(|list| {
            list.into_iter()
                .map(|(a, n, name)| Named { window: Window::new(a, a + n), name })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn figures_are_bounded_and_do_not_depend_on_order(
            anomalies in list(),
            incidents in list().prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
        ) {
            let figures = end_to_end(&anomalies, &incidents.0, TAIL);
            prop_assert_eq!(figures, end_to_end(&anomalies, &incidents.1, TAIL));
            let Rates { precision, recall, f1 } = figures.rates;
            for figure in [precision, recall, f1].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&figure));
            }
            prop_assert!(figures.right <= figures.detected);
        }

        #[test]
        fn another_incident_never_lowers_recall_and_a_false_one_never_raises_precision(
            anomalies in list(), incidents in list(), at in 0i64..400, name in 0u8..3,
        ) {
            let before = end_to_end(&anomalies, &incidents, TAIL);
            let mut more = incidents.clone();
            more.push(Named { window: Window::new(at, at + 3), name });
            let after = end_to_end(&anomalies, &more, TAIL);
            prop_assert!(after.rates.recall >= before.rates.recall);
            let alone = end_to_end(&anomalies, &more[incidents.len()..], TAIL);
            if alone.right == 0 {
                prop_assert!(after.rates.precision <= before.rates.precision.or(Some(0.0)));
            }
        }

        #[test]
        fn the_anomalies_themselves_are_a_perfect_answer(anomalies in list()) {
            if !anomalies.is_empty() {
                let figures = end_to_end(&anomalies, &anomalies, TAIL);
                prop_assert_eq!(figures.rates, Rates::new(Some(1.0), Some(1.0)));
            }
        }
    }
}
