//! eTaPR: precision and recall of time ranges (Hwang et al., 2022), as the HAI data set asks for.
//!
//! Point-wise figures reward one long lucky range; point-adjusted ones reward any single lucky
//! point. eTaPR asks twice of each range: was it found at all, and how much of it. Ranges that share
//! too little to count are pruned away first, again and again until nothing changes, because an
//! anomaly may lose the prediction that made it count.
//!
//! Point-wise and point-adjusted rates are given beside it and nowhere else: a useless detector has
//! a point-adjusted recall near 1, so that figure must never stand alone.

use serde::Serialize;

use super::{Rates, Window, disjoint, share};

/// How much two ranges must share to count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Thetas {
    /// `θ_p`: least share of a prediction that must lie in anomalies.
    pub(crate) p: f64,
    /// `θ_r`: least share of an anomaly that must be predicted.
    pub(crate) r: f64,
}

impl Default for Thetas {
    fn default() -> Self {
        Self { p: 0.5, r: 0.1 }
    }
}

/// The figures, with the thresholds they hold for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Etapr {
    /// `θ_p` and `θ_r`.
    pub(crate) thetas: Thetas,
    /// eTaP, eTaR and their F1.
    #[serde(flatten)]
    pub(crate) rates: Rates,
    /// Their first halves: ranges found at all (predictions weigh by the root of their length).
    pub(crate) detection: Rates,
    /// Their second halves: how much of each range.
    pub(crate) portion: Rates,
    /// Predictions that answer no anomaly.
    pub(crate) false_alarms: usize,
    /// How long those are together, in ticks.
    pub(crate) false_ticks: i64,
    /// Plain rates over ticks.
    pub(crate) pointwise: Rates,
    /// The same after each anomaly that was touched is taken as wholly found.
    pub(crate) point_adjusted: Rates,
}

/// Ticks that one anomaly and one prediction share.
struct Overlap {
    anomaly: usize,
    prediction: usize,
    ticks: i64,
}

/// Scores predicted ranges. Ranges of one list that overlap are joined first: a tick counts once.
pub(crate) fn etapr(anomalies: &[Window], predictions: &[Window], thetas: Thetas) -> Etapr {
    let (anomalies, predictions) = (disjoint(anomalies), disjoint(predictions));
    let mut overlaps = overlaps(&anomalies, &predictions);
    let (pointwise, point_adjusted) = by_points(&anomalies, &predictions, &overlaps);
    prune(&mut overlaps, &anomalies, &predictions, thetas);

    let recalled = portions(&anomalies, overlaps.iter().map(|o| (o.anomaly, o.ticks)));
    let precise = portions(&predictions, overlaps.iter().map(|o| (o.prediction, o.ticks)));
    // What survives pruning reached its threshold, so any share left over means "found".
    let found = |portion: f64| f64::from(u8::from(portion > 0.0));
    let halves = |portion: f64| f64::midpoint(found(portion), portion);
    let even = |_: &Window| 1.0;
    let by_root = |w: &Window| (w.ticks() as f64).sqrt();
    let rates = |figure: &dyn Fn(f64) -> f64| {
        Rates::new(
            mean(&predictions, &precise, by_root, figure),
            mean(&anomalies, &recalled, even, figure),
        )
    };
    let missed = || predictions.iter().zip(&precise).filter(|(_, p)| **p == 0.0).map(|(w, _)| w);
    Etapr {
        thetas,
        rates: rates(&halves),
        detection: rates(&found),
        portion: rates(&|portion| portion),
        false_alarms: missed().count(),
        false_ticks: missed().map(|w| w.ticks()).sum(),
        pointwise,
        point_adjusted,
    }
}

/// All pairs that share something. Both lists are sorted and disjoint, so one walk finds them.
fn overlaps(anomalies: &[Window], predictions: &[Window]) -> Vec<Overlap> {
    let mut found = Vec::new();
    let (mut a, mut p) = (0, 0);
    while a < anomalies.len() && p < predictions.len() {
        let ticks = anomalies[a].shared(predictions[p]).ticks();
        if ticks > 0 {
            found.push(Overlap { anomaly: a, prediction: p, ticks });
        }
        if anomalies[a].end < predictions[p].end { a += 1 } else { p += 1 }
    }
    found
}

fn prune(overlaps: &mut Vec<Overlap>, anomalies: &[Window], predictions: &[Window], t: Thetas) {
    loop {
        let before = overlaps.len();
        let recalled = portions(anomalies, overlaps.iter().map(|o| (o.anomaly, o.ticks)));
        overlaps.retain(|o| recalled[o.anomaly] >= t.r);
        let precise = portions(predictions, overlaps.iter().map(|o| (o.prediction, o.ticks)));
        overlaps.retain(|o| precise[o.prediction] >= t.p);
        if overlaps.len() == before {
            return;
        }
    }
}

/// For each window the share of it that is covered.
fn portions(windows: &[Window], covered: impl Iterator<Item = (usize, i64)>) -> Vec<f64> {
    let mut ticks = vec![0; windows.len()];
    for (window, more) in covered {
        ticks[window] += more;
    }
    windows.iter().zip(ticks).map(|(w, t)| t as f64 / w.ticks() as f64).collect()
}

fn mean(
    windows: &[Window],
    portions: &[f64],
    weight: impl Fn(&Window) -> f64,
    figure: impl Fn(f64) -> f64,
) -> Option<f64> {
    let total: f64 = windows.iter().map(&weight).sum();
    let sum: f64 = windows.iter().zip(portions).map(|(w, p)| weight(w) * figure(*p)).sum();
    // Rounding may carry a mean of ones a hair above 1.
    (total > 0.0).then(|| (sum / total).min(1.0))
}

fn by_points(anomalies: &[Window], predictions: &[Window], overlaps: &[Overlap]) -> (Rates, Rates) {
    let ticks = |windows: &[Window]| windows.iter().map(|w| w.ticks()).sum::<i64>() as usize;
    let (happened, declared) = (ticks(anomalies), ticks(predictions));
    let hits = overlaps.iter().map(|o| o.ticks).sum::<i64>() as usize;
    let mut touched: Vec<usize> = overlaps.iter().map(|o| o.anomaly).collect();
    touched.dedup();
    let adjusted = touched.iter().map(|&a| anomalies[a].ticks()).sum::<i64>() as usize;
    (
        Rates::from_counts(hits, declared, happened),
        Rates::new(share(adjusted, declared + adjusted - hits), share(adjusted, happened)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn windows(list: &[(i64, i64)]) -> Vec<Window> {
        list.iter().map(|&(a, b)| Window::new(a, b)).collect()
    }

    fn score(anomalies: &[(i64, i64)], predictions: &[(i64, i64)]) -> Etapr {
        etapr(&windows(anomalies), &windows(predictions), Thetas::default())
    }

    #[track_caller]
    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("the figure exists");
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn the_second_half_of_an_anomaly_earns_three_quarters() {
        let late = score(&[(10, 19)], &[(15, 19)]);
        near(late.rates.recall, 0.75);
        near(late.rates.precision, 1.0);
    }

    #[test]
    fn scattered_alarms_are_weighed_by_the_root_of_their_length() {
        let split = score(&[(10, 109)], &[(10, 14), (40, 44), (90, 119)]);
        let (short, long) = (5f64.sqrt(), 30f64.sqrt());
        near(split.portion.precision, (2.0 * short + long * 2.0 / 3.0) / (2.0 * short + long));
        near(split.rates.recall, 0.65);
    }

    #[test]
    fn pruning_a_prediction_takes_away_the_anomaly_that_lived_on_it() {
        let lost = score(&[(50, 59)], &[(40, 80)]);
        near(lost.rates.recall, 0.0);
        assert_eq!((lost.false_alarms, lost.false_ticks), (1, 41));
        near(lost.point_adjusted.recall, 1.0);
    }

    #[test]
    fn silence_has_no_precision_and_finds_nothing() {
        let silent = score(&[(10, 19)], &[]);
        assert_eq!(silent.rates, Rates::new(None, Some(0.0)));
        assert_eq!(score(&[], &[(1, 2)]).rates, Rates::new(Some(0.0), None));
    }

    /// Values of the authors' own program. They stand beside the project, not in it.
    #[test]
    #[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
    fn the_authors_own_figures_are_reproduced() {
        let text = crate::shared::text("golden/etapr.json");
        let golden: Value = serde_json::from_str(&text).expect("the golden file is JSON");
        let cases = golden["cases"].as_array().expect("it holds cases");
        assert!(!cases.is_empty());
        for case in cases {
            let ranges = |key: &str| -> Vec<Window> {
                let list: Vec<(i64, i64)> =
                    serde_json::from_value(case[key].clone()).expect("a list of pairs");
                windows(&list)
            };
            let number = |key: &str| case[key].as_f64().expect("a number");
            assert!(number("delta") == 0.0, "no tail of ambiguity is modelled");
            let thetas = Thetas { p: number("theta_p"), r: number("theta_r") };
            let ours = etapr(&ranges("anomalies"), &ranges("predictions"), thetas);
            let figures = [
                ("eTaR", ours.rates.recall),
                ("eTaRd", ours.detection.recall),
                ("eTaRp", ours.portion.recall),
                ("eTaP", ours.rates.precision),
                ("eTaPd", ours.detection.precision),
                ("eTaPp", ours.portion.precision),
                ("f1", ours.rates.f1),
                ("precision", ours.pointwise.precision),
                ("recall", ours.pointwise.recall),
                ("point_adjust_precision", ours.point_adjusted.precision),
                ("point_adjust_recall", ours.point_adjusted.recall),
                ("N False Alarm", Some(ours.false_alarms as f64)),
                ("False Alarm", Some(ours.false_ticks as f64)),
            ];
            for (key, found) in figures {
                let found = found.expect("the figure exists");
                let expected = number(key);
                assert!(
                    (found - expected).abs() < 1e-9,
                    "{}: {key} is {found} instead of {expected}",
                    case["model"]
                );
            }
        }
    }

    fn ranges() -> impl Strategy<Value = Vec<Window>> {
        prop::collection::vec((0i64..300, 0i64..40), 0..8)
            .prop_map(|list| list.into_iter().map(|(a, n)| Window::new(a, a + n)).collect())
    }

    proptest! {
        #[test]
        fn every_figure_is_bounded_and_order_does_not_matter(
            anomalies in ranges(),
            predictions in ranges().prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
            p in 0.0f64..=1.0, r in 0.0f64..=1.0,
        ) {
            let figures = etapr(&anomalies, &predictions.0, Thetas { p, r });
            prop_assert_eq!(figures, etapr(&anomalies, &predictions.1, Thetas { p, r }));
            let Etapr { rates, detection, portion, pointwise, point_adjusted, .. } = figures;
            for rates in [rates, detection, portion, pointwise, point_adjusted] {
                for figure in [rates.precision, rates.recall, rates.f1].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&figure), "{figure}");
                }
            }
            prop_assert!(point_adjusted.recall >= pointwise.recall);
        }

        #[test]
        fn a_prediction_apart_from_all_anomalies_never_raises_precision(
            anomalies in ranges(), predictions in ranges(), length in 1i64..40,
        ) {
            let before = etapr(&anomalies, &predictions, Thetas::default());
            let mut more = predictions;
            more.push(Window::new(1000, 1000 + length));
            let after = etapr(&anomalies, &more, Thetas::default());
            prop_assert!(after.rates.precision <= before.rates.precision.or(Some(0.0)));
            prop_assert_eq!(after.rates.recall, before.rates.recall);
        }

        #[test]
        fn the_anomalies_themselves_are_a_perfect_prediction(anomalies in ranges()) {
            if !anomalies.is_empty() {
                let figures = etapr(&anomalies, &anomalies, Thetas { p: 1.0, r: 1.0 });
                prop_assert_eq!(figures.rates, Rates::new(Some(1.0), Some(1.0)));
            }
        }
    }
}
