//! The floored CUSUM of log-likelihood ratios, and the threshold at which it raises an alarm.
//!
//! S ← max(0, S + λ) rises when a fault is on and falls back to zero otherwise. With white
//! residuals ln(M·ARL0) bounds the false-alarm rate; real residuals are bursty, so the tail of a
//! client's own calibration excursions is fitted (peaks over threshold) and the higher bound holds.

use serde::{Deserialize, Serialize};

/// A CUSUM that remembers when it last stood at zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Cusum {
    s: f64,
    zero_at: u64,
}

impl Cusum {
    /// S.
    pub(crate) fn value(&self) -> f64 {
        self.s
    }

    /// The step after the last one at which S was zero: when the evidence began.
    pub(crate) fn onset(&self) -> u64 {
        self.zero_at + 1
    }

    /// Adds what step `step` says. Nothing said (NaN) changes nothing.
    pub(crate) fn add(&mut self, llr: f64, step: u64) {
        if llr.is_nan() {
            return;
        }
        self.s = (self.s + llr).max(0.0);
        if self.s == 0.0 {
            self.zero_at = step;
        }
    }

    /// Stands at `s` by evidence that began at `onset`.
    pub(crate) fn begin(&mut self, s: f64, onset: u64) {
        *self = Self { s: s.max(0.0), zero_at: onset.saturating_sub(1) };
    }

    /// Back to zero at `step`.
    pub(crate) fn reset(&mut self, step: u64) {
        *self = Self { s: 0.0, zero_at: step };
    }
}

/// The excursions of a CUSUM from zero: how high each one came.
pub(crate) fn excursion_peaks(llrs: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut peaks = Vec::new();
    let (mut s, mut peak) = (0.0f64, 0.0f64);
    for llr in llrs.into_iter().filter(|llr| !llr.is_nan()) {
        s = (s + llr).max(0.0);
        if s > 0.0 {
            peak = peak.max(s);
        } else if peak > 0.0 {
            peaks.push(peak);
            peak = 0.0;
        }
    }
    if peak > 0.0 {
        peaks.push(peak);
    }
    peaks
}

/// ln(M·ARL0): Lorden's bound for M clients and one false alarm in `arl0` steps.
pub(crate) fn wald_threshold(clients: usize, arl0: f64) -> f64 {
    (clients.max(1) as f64 * arl0.max(1.0)).ln()
}

/// The exponential tail of a client's calibration excursions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tail {
    /// Level above which peaks are taken.
    pub(crate) u: f64,
    /// Number of peaks at or above it.
    pub(crate) n: usize,
    /// Rate of the tail: P(excess > x) = e^(−ωx). 1 is what white residuals give.
    pub(crate) omega: f64,
    pub(crate) steps: usize,
    /// The largest peaks, falling.
    pub(crate) largest: Vec<f64>,
}

impl Tail {
    /// Peaks below this say nothing about the tail.
    const LOWEST: f64 = 2.0;
    /// So many of the largest peaks make the tail.
    const PEAKS: usize = 30;
    /// Weight of the belief that ω = 1, in peaks.
    const PRIOR: f64 = 10.0;
    /// How far above a record an alarm stands, in mean excesses of the tail.
    const CLEAR: f64 = 3.0;

    /// Fits the peaks of `steps` calibration steps.
    pub(crate) fn fit(peaks: &[f64], steps: usize) -> Self {
        let mut high: Vec<f64> =
            peaks.iter().copied().filter(|p| *p > Self::LOWEST && p.is_finite()).collect();
        high.sort_unstable_by(|a, b| b.total_cmp(a));
        let largest = high.iter().copied().take(Self::PEAKS).collect();
        let u = if high.len() > Self::PEAKS { high[Self::PEAKS - 1] } else { Self::LOWEST };
        let over: Vec<f64> = high.into_iter().take_while(|p| *p >= u).collect();
        let excess: f64 = over.iter().map(|p| p - u).sum();
        let n = over.len();
        let omega = ((n as f64 + Self::PRIOR) / (excess + Self::PRIOR)).min(1.0);
        Self { u, n, omega, steps, largest }
    }

    /// The level that excursions of one of M clients exceed once in M·`arl0` steps.
    pub(crate) fn threshold(&self, clients: usize, arl0: f64) -> f64 {
        if self.n == 0 || self.steps == 0 {
            return 0.0;
        }
        let expected = self.n as f64 / self.steps as f64 * clients.max(1) as f64 * arl0.max(1.0);
        self.u + expected.ln() / self.omega
    }

    /// The peak that calibration itself exceeded no more often than once in M·`arl0` steps: a tail
    /// heavier than exponential shows in it. Zero when that peak is not among the largest.
    ///
    /// A calibration of fewer steps than that cannot show it. Its highest peak is a record, which the
    /// next stretch of the same length breaks as likely as not, so what is asked for stands clear of
    /// it.
    pub(crate) fn seen(&self, clients: usize, arl0: f64) -> f64 {
        let allowed = self.steps as f64 / (clients.max(1) as f64 * arl0.max(1.0));
        let Some(peak) = self.largest.get(allowed as usize) else { return 0.0 };
        let missing = (-allowed.ln()).clamp(0.0, 1.0);
        peak + Self::CLEAR * missing / self.omega
    }
}

/// b_m = max(ln(M·ARL0), tail of the client's own calibration, what that calibration has seen).
///
/// A calibration shorter than ARL0 has not seen what it is to promise: by as much as it is shorter, a
/// longer time is asked of it.
pub(crate) fn alarm_threshold(tail: &Tail, clients: usize, arl0: f64) -> f64 {
    let arl0 = if tail.steps > 0 { arl0 * (arl0 / tail.steps as f64).max(1.0) } else { arl0 };
    let extrapolated = tail.threshold(clients, arl0).max(tail.seen(clients, arl0));
    wald_threshold(clients, arl0).max(extrapolated)
}

/// A client is insensitive when its alarm takes more steps of nothing but the strongest symbol.
pub(crate) const MOST_ALARM_STEPS: f64 = 12.0;

/// Block lengths that decimation may choose from.
pub(crate) const DECIMATIONS: [u32; 3] = [1, 2, 5];

/// The slowest tail at which a calibration counts as calm.
pub(crate) const CALM_OMEGA: f64 = 0.35;

/// The smallest block length whose clients are all calm; the longest one when none is: from there
/// on the fitted threshold deals with bursts at less cost than longer blocks do in delay.
///
/// `slowest_omega` gives the smallest ω of all clients when everything is decimated by that much.
/// An error of it ends the search.
pub(crate) fn choose_decimation<E>(
    mut slowest_omega: impl FnMut(u32) -> Result<f64, E>,
) -> Result<u32, E> {
    for every in DECIMATIONS {
        if slowest_omega(every)? >= CALM_OMEGA {
            return Ok(every);
        }
    }
    Ok(DECIMATIONS[DECIMATIONS.len() - 1])
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // What is compared is picked or constructed, not computed.
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_threshold_of_a_calm_client_is_the_bound() {
        let tail = Tail::fit(&[2.5, 3.0, 4.0], 2000);
        assert!(tail.seen(2, 3000.0) < 7.2, "a record of 4, and clear of it");
        assert!((tail.omega - 13.0 / 13.5).abs() < 1e-12);
        let b = alarm_threshold(&tail, 2, 3000.0);
        assert!((b - 9000f64.ln()).abs() < 1e-9, "2000 steps are two thirds of 3000: {b}");
        let long = alarm_threshold(&Tail::fit(&[2.5, 3.0, 4.0], 3000), 2, 3000.0);
        assert!((long - 6000f64.ln()).abs() < 1e-9, "{long}");
        assert_eq!(alarm_threshold(&Tail::fit(&[], 0), 2, 3000.0), long);
    }

    #[test]
    fn a_bursty_client_gets_a_threshold_that_its_bursts_would_rarely_reach() {
        // Excesses of mean 5: ω near 0.2, the threshold far above the bound.
        let mut rng = crate::base::rng::stream(1, 2);
        let peaks: Vec<f64> = (0..400).map(|_| -5.0 * (1.0 - rng.random::<f64>()).ln()).collect();
        let tail = Tail::fit(&peaks, 20_000);
        assert!(tail.n == 30 && tail.omega < 0.35, "{tail:?}");
        // 400 bursts in 20 000 steps, once in 3·17 280: 5 ln(400/20 000·51 840) = 34.7; the highest
        // burst, about 30, and three mean excesses.
        let b = alarm_threshold(&tail, 3, 17_280.0);
        assert!((35.0..55.0).contains(&b), "{b}");
    }

    #[test]
    fn what_calibration_has_seen_too_often_raises_no_alarm() {
        let peaks = [60.0, 50.0, 3.0, 3.0];
        let tail = Tail::fit(&peaks, 10_000);
        let clear = Tail::CLEAR / tail.omega;
        assert_eq!(alarm_threshold(&tail, 2, 50_000.0), 60.0 + clear);
        assert!(tail.seen(2, 6000.0) < 60.0 + 0.2 * clear, "nearly as long as it should be");
        // Once in 8000 steps is wanted: one of the two bursts may.
        assert_eq!(tail.seen(2, 4000.0), 50.0);
        assert_eq!(tail.seen(1, 10.0), 0.0);
    }

    #[test]
    fn the_first_calm_decimation_is_taken() {
        let omega = |every: u32| Ok::<_, ()>(if every < 5 { 0.2 } else { 0.5 });
        assert_eq!(choose_decimation(omega), Ok(5));
        assert_eq!(choose_decimation(|_| Ok::<_, ()>(0.1)), Ok(5));
        assert_eq!(choose_decimation(|_| Err::<f64, _>("no data")), Err("no data"));
    }

    proptest! {
        #[test]
        fn a_cusum_is_never_negative_and_its_onset_follows_its_last_zero(
            llrs in prop::collection::vec(prop_oneof![5 => -3.0f64..3.0, 1 => Just(f64::NAN)], 1..200),
        ) {
            let mut cusum = Cusum::default();
            let mut zero_at = 0;
            for (t, llr) in llrs.iter().enumerate() {
                let before = cusum;
                cusum.add(*llr, t as u64);
                prop_assert!(cusum.value() >= 0.0);
                if llr.is_nan() {
                    prop_assert_eq!(cusum, before);
                } else if cusum.value() == 0.0 {
                    zero_at = t as u64;
                }
                prop_assert_eq!(cusum.onset(), zero_at + 1);
            }
        }

        #[test]
        fn peaks_are_the_maxima_between_zeros(llrs in prop::collection::vec(-3.0f64..3.0, 1..200)) {
            let peaks = excursion_peaks(llrs.iter().copied());
            let mut s = 0.0f64;
            let highest = llrs.iter().map(|l| { s = (s + l).max(0.0); s }).fold(0.0, f64::max);
            prop_assert_eq!(peaks.iter().copied().fold(0.0, f64::max), highest);
            prop_assert!(peaks.iter().all(|p| *p > 0.0));
        }

        #[test]
        fn a_rarer_false_alarm_needs_a_higher_threshold(
            peaks in prop::collection::vec(0.0f64..30.0, 0..100), arl0 in 10.0f64..1e6, clients in 1usize..20,
        ) {
            let tail = Tail::fit(&peaks, 5000);
            prop_assert!(tail.omega > 0.0 && tail.omega <= 1.0);
            let b = |clients, arl0| alarm_threshold(&tail, clients, arl0);
            prop_assert!(b(clients, 2.0 * arl0) >= b(clients, arl0));
            prop_assert!(b(clients + 1, arl0) >= b(clients, arl0));
        }
    }
}
