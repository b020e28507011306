//! Figures of the literature as pure functions on plain numbers.
//!
//! Two rules hold for all of them. A figure without a denominator is `None`, never a flattering 1
//! nor a made-up 0: precision when nothing was declared, recall when nothing happened. And every share
//! is in `[0, 1]` whatever the input.
//!
//! | module | figures |
//! |---|---|
//! | [`episode`] | which alarm belongs to which event; precision, recall, F1 per episode |
//! | [`step`] | the same per step: the whole stream, with a grace period, inside windows only |
//! | [`incident`] | EP, ER, EF: declared incidents against anomalies, with the right name |
//! | [`run_length`] | ARL0 and ARL1 with their censoring |
//! | [`ranking`] | AC@k, Avg@k, MRR |
//! | [`confusion`] | root cause against propagated effect |
//! | [`delay`] | median, 95th percentile, rates per day |
//! | [`etapr`] | eTaP, eTaR and their F1; point-wise and point-adjusted figures beside them |

use serde::Serialize;

pub(crate) mod confusion;
pub(crate) mod delay;
pub(crate) mod episode;
pub(crate) mod etapr;
pub(crate) mod incident;
pub(crate) mod ranking;
pub(crate) mod run_length;
pub(crate) mod step;

/// An instant: a step of a study, a second or a microsecond of a clock. Metrics only compare and
/// subtract, so the caller chooses the unit and keeps to it.
pub(crate) type Tick = i64;

/// A step as a tick; no stream is as long as ticks can count.
pub(crate) fn tick(step: usize) -> Tick {
    Tick::try_from(step).unwrap_or(Tick::MAX)
}

/// A stretch of time, both ends inclusive. One that ends before it starts is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Window {
    pub(crate) start: Tick,
    pub(crate) end: Tick,
}

impl Window {
    /// From `start` to `end`, both included.
    pub(crate) fn new(start: Tick, end: Tick) -> Self {
        Self { start, end }
    }

    /// How many ticks it holds.
    pub(crate) fn ticks(self) -> Tick {
        self.end.saturating_sub(self.start).saturating_add(1).max(0)
    }

    /// Whether `tick` lies in it.
    pub(crate) fn contains(self, tick: Tick) -> bool {
        self.start <= tick && tick <= self.end
    }

    /// What two windows share; empty when they are apart.
    pub(crate) fn shared(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// The same window with `tail` more ticks after its end.
    pub(crate) fn with_tail(self, tail: Tick) -> Self {
        Self { start: self.start, end: self.end.saturating_add(tail) }
    }
}

/// The windows in order of time, overlapping ones joined, empty ones left out, so that no tick
/// counts twice. Neighbours that only touch stay apart: they are two episodes.
pub(crate) fn disjoint(windows: &[Window]) -> Vec<Window> {
    let mut sorted: Vec<Window> = windows.iter().copied().filter(|w| w.ticks() > 0).collect();
    sorted.sort_unstable();
    let mut joined: Vec<Window> = Vec::with_capacity(sorted.len());
    for window in sorted {
        match joined.last_mut() {
            Some(last) if window.start <= last.end => last.end = last.end.max(window.end),
            _ => joined.push(window),
        }
    }
    joined
}

/// `part` of `whole`, when there is a whole.
pub(crate) fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Precision, recall and their harmonic mean.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(crate) struct Rates {
    /// Share of declarations that are right; `None` without a declaration.
    pub(crate) precision: Option<f64>,
    /// Share of events that were declared; `None` without an event.
    pub(crate) recall: Option<f64>,
    /// Harmonic mean; 0 when only one of the two exists, `None` when neither does.
    pub(crate) f1: Option<f64>,
}

impl Rates {
    /// With the F1 that follows.
    pub(crate) fn new(precision: Option<f64>, recall: Option<f64>) -> Self {
        let f1 = match (precision, recall) {
            (None, None) => None,
            (Some(p), Some(r)) if p + r > 0.0 => Some(2.0 * p * r / (p + r)),
            _ => Some(0.0),
        };
        Self { precision, recall, f1 }
    }

    /// When hits are counted alike among declarations and among events.
    pub(crate) fn from_counts(hits: usize, declared: usize, happened: usize) -> Self {
        Self::new(share(hits, declared), share(hits, happened))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_said_about_nothing_has_no_figure() {
        assert_eq!(Rates::from_counts(0, 0, 0), Rates::default());
        assert_eq!(Rates::from_counts(0, 0, 3).f1, Some(0.0));
        assert_eq!(Rates::from_counts(0, 3, 0).f1, Some(0.0));
    }

    #[test]
    fn overlapping_windows_are_joined_and_touching_ones_are_not() {
        let windows = [(8, 12), (1, 4), (5, 6), (3, 4), (9, 2)].map(|(a, b)| Window::new(a, b));
        assert_eq!(disjoint(&windows), [(1, 4), (5, 6), (8, 12)].map(|(a, b)| Window::new(a, b)));
    }

    proptest! {
        #[test]
        fn joining_keeps_every_tick_once(
            windows in prop::collection::vec((0i64..60, -2i64..15), 0..12)
        ) {
            let windows: Vec<Window> =
                windows.into_iter().map(|(a, n)| Window::new(a, a + n)).collect();
            let joined = disjoint(&windows);
            let held: i64 =
                (0..80).map(|t| i64::from(windows.iter().any(|w| w.contains(t)))).sum();
            prop_assert_eq!(joined.iter().map(|w| w.ticks()).sum::<i64>(), held);
            prop_assert!(joined.is_sorted());
        }

        #[test]
        fn f1_lies_between_precision_and_recall(
            hits in 0usize..20, more_said in 0usize..20, more_happened in 0usize..20,
        ) {
            let rates = Rates::from_counts(hits, hits + more_said, hits + more_happened);
            if let (Some(p), Some(r), Some(f)) = (rates.precision, rates.recall, rates.f1) {
                prop_assert!(p.min(r) - 1e-12 <= f && f <= p.max(r) + 1e-12);
            }
        }
    }
}
