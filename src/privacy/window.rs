//! Counting releases over a sliding stretch of time in constant memory.
//!
//! Time is cut into buckets, and a bucket counts as long as any part of it lies within the
//! window: the window is never shorter than it says, and longer by at most one bucket.

use std::collections::VecDeque;

use super::account::Tally;

/// A sliding window.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    bucket_s: i64,
    buckets: i64,
    held: VecDeque<(i64, Tally)>,
    total: Tally,
    peak: Tally,
}

impl Window {
    /// A window of `buckets` buckets of `bucket_s` seconds each.
    pub(crate) fn new(bucket_s: i64, buckets: i64) -> Self {
        Self {
            bucket_s,
            buckets,
            held: VecDeque::new(),
            total: Tally::default(),
            peak: Tally::default(),
        }
    }

    /// Counts what was released at `second`. A clock that steps back cannot make a release
    /// older: it counts as made now.
    pub(crate) fn add(&mut self, second: i64, released: &Tally) {
        self.advance(second);
        let bucket = second.div_euclid(self.bucket_s);
        match self.held.back_mut() {
            Some((last, tally)) if *last >= bucket => tally.merge(released),
            _ => self.held.push_back((bucket, released.clone())),
        }
        self.total.merge(released);
        if self.total.is_costlier_than(&self.peak) {
            self.peak.clone_from(&self.total);
        }
    }

    /// Lets go of what is older than the window at `second`.
    pub(crate) fn advance(&mut self, second: i64) {
        let oldest = second.div_euclid(self.bucket_s) - self.buckets;
        while let Some((bucket, tally)) = self.held.front() {
            if *bucket >= oldest {
                break;
            }
            self.total.remove(tally);
            self.held.pop_front();
        }
    }

    /// What lies within the window, as of the last release or advance.
    #[cfg(test)]
    pub(crate) fn total(&self) -> &Tally {
        &self.total
    }

    /// What lies within the window at `second`, if nothing is released until then.
    pub(crate) fn total_at(&self, second: i64) -> Tally {
        let oldest = second.div_euclid(self.bucket_s) - self.buckets;
        let mut total = self.total.clone();
        for (_, tally) in self.held.iter().take_while(|(bucket, _)| *bucket < oldest) {
            total.remove(tally);
        }
        total
    }

    /// The costliest window there has been: what protects *any* such stretch of time.
    pub(crate) fn peak(&self) -> &Tally {
        &self.peak
    }

    pub(crate) fn seconds(&self) -> i64 {
        self.bucket_s * self.buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::release::Spend;
    use proptest::prelude::*;

    fn one() -> Tally {
        Tally::of(Spend::Response { epsilon: 1.0, symbols: 2 }, 1)
    }

    #[test]
    fn a_steady_stream_fills_the_window_and_stays() {
        let mut window = Window::new(1, 60);
        for second in 0..600 {
            window.add(second, &one());
        }
        assert_eq!(window.total().releases(), 61);
        assert_eq!(window.peak().releases(), 61);
        assert_eq!(window.total_at(600 + 60).releases(), 0);
        assert_eq!(window.total_at(600 + 29).releases(), 31);
    }

    #[test]
    fn the_peak_remembers_a_burst_that_is_long_gone() {
        let mut window = Window::new(60, 60);
        window.add(0, &one().times(500.0));
        window.add(1_000_000, &one());
        assert_eq!(window.total().releases(), 1);
        assert_eq!(window.peak().releases(), 500);
    }

    #[test]
    fn where_nothing_protects_the_busiest_window_is_the_one_with_the_most_releases() {
        let mut window = Window::new(1, 60);
        for second in 0..600 {
            window.add(second, &Tally::of(Spend::Clear, 1));
        }
        assert_eq!(window.peak().releases(), 61);
    }

    #[test]
    fn a_clock_that_steps_back_forgets_nothing() {
        let mut window = Window::new(1, 60);
        window.add(100, &one());
        window.add(10, &one());
        assert_eq!(window.total_at(160).releases(), 2);
    }

    proptest! {
        #[test]
        fn a_window_never_misses_a_release_and_keeps_none_too_long(
            gaps in proptest::collection::vec(0_i64..40, 1..200),
        ) {
            let mut window = Window::new(5, 12);
            let mut times = Vec::new();
            let mut now = 0;
            for gap in gaps {
                now += gap;
                window.add(now, &one());
                times.push(now);
                let inside = |length: i64| times.iter().filter(|t| **t > now - length).count() as u64;
                let found = window.total().releases();
                prop_assert!(found >= inside(60) && found <= inside(66), "{found}");
            }
        }
    }
}
