//! Thresholds τ on Mahalanobis distances and the flags Z they give.
//!
//! Distances are kept wherever a run is: a flag is one comparison away, so that a change of τ
//! re-judges a whole day at once. It must not know where a distance comes from.

use serde::{Deserialize, Serialize};

use crate::session::Tau;

/// Nominal distances d² of one model, sorted once, from which any percentile is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct NominalDistances {
    sorted: Vec<f32>,
}

impl NominalDistances {
    /// Takes the distances of the calibration range; those that are not finite are left out.
    pub(crate) fn new(distances: impl IntoIterator<Item = f32>) -> Self {
        let mut sorted: Vec<f32> = distances.into_iter().filter(|d| d.is_finite()).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        Self { sorted }
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are none.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The distance that the share `q` of all stays at or below, interpolated between neighbours.
    ///
    /// Without any distance it is infinite: nothing is flagged by a model that was never calibrated.
    pub(crate) fn quantile(&self, q: f64) -> f32 {
        let Some(last) = self.sorted.len().checked_sub(1) else { return f32::INFINITY };
        let place = if q.is_nan() { 1.0 } else { q.clamp(0.0, 1.0) } * last as f64;
        let below = place.floor() as usize;
        let (a, b) = (self.sorted[below], self.sorted[(below + 1).min(last)]);
        a + (b - a) * (place - below as f64) as f32
    }

    /// τ as a distance.
    pub(crate) fn threshold(&self, tau: Tau) -> f32 {
        match tau {
            Tau::Percentile(percent) => self.quantile(percent / 100.0),
            Tau::Value(distance) => distance as f32,
        }
    }
}

/// Z of one distance (eq. 6). A step without a distance has no flag.
pub(crate) fn flag(distance: f32, threshold: f32) -> Option<bool> {
    (!distance.is_nan()).then_some(distance > threshold)
}

/// A client's pair of flags at one step.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub(crate) struct Flags {
    /// Z_c: the proprietary model's residual is anomalous.
    pub(crate) z_c: bool,
    /// Z_a: the augmented model's residual is anomalous.
    pub(crate) z_a: bool,
}

impl Flags {
    /// The pair (Z_c, Z_a).
    pub(crate) fn new(z_c: bool, z_a: bool) -> Self {
        Self { z_c, z_a }
    }
}

impl std::fmt::Display for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}, {})", u8::from(self.z_c), u8::from(self.z_a))
    }
}

/// A client's thresholds as distances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlagThresholds {
    /// τ_c.
    pub(crate) tau_c: f32,
    /// τ_a.
    pub(crate) tau_a: f32,
}

impl FlagThresholds {
    /// (Z_c, Z_a) of a pair of distances; none when either is missing.
    pub(crate) fn flags(self, d2_c: f32, d2_a: f32) -> Option<Flags> {
        Some(Flags { z_c: flag(d2_c, self.tau_c)?, z_a: flag(d2_a, self.tau_a)? })
    }
}

/// A client's flags from step to step. A raised one falls only when its distance is no more than a
/// share of τ, the dead-band; at a share of 1, which is the published rule, there is nothing to
/// remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flagging {
    raised: Flags,
}

impl Flagging {
    /// (Z_c, Z_a) at the next step; none, and nothing changed, when either distance is missing.
    /// `dead_band` is a share of τ as a distance, thresholds and distances here are squares.
    pub(crate) fn step(
        &mut self,
        d2_c: f32,
        d2_a: f32,
        thresholds: FlagThresholds,
        dead_band: f32,
    ) -> Option<Flags> {
        let falls_at = |tau: f32, raised: bool| {
            if raised { tau * dead_band * dead_band } else { tau }
        };
        let now = FlagThresholds {
            tau_c: falls_at(thresholds.tau_c, self.raised.z_c),
            tau_a: falls_at(thresholds.tau_a, self.raised.z_a),
        };
        self.raised = now.flags(d2_c, d2_a)?;
        Some(self.raised)
    }
}

/// How many steps of a history a threshold flags, and of how many.
#[cfg(test)]
pub(crate) fn flagged(distances: &[f32], threshold: f32) -> (usize, usize) {
    distances
        .iter()
        .filter_map(|d| flag(*d, threshold))
        .fold((0, 0), |(flagged, steps), z| (flagged + usize::from(z), steps + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_calibration_nothing_is_flagged() {
        let none = NominalDistances::new([f32::NAN, f32::INFINITY]);
        assert!(none.is_empty());
        assert_eq!(flag(1e30, none.threshold(Tau::default())), Some(false));
    }

    #[test]
    fn a_missing_distance_has_no_flag() {
        let thresholds = FlagThresholds { tau_c: 1.0, tau_a: 1.0 };
        assert_eq!(thresholds.flags(f32::NAN, 2.0), None);
        assert_eq!(thresholds.flags(0.5, f32::INFINITY), Some(Flags::new(false, true)));
    }

    #[test]
    fn a_raised_flag_falls_below_the_dead_band_and_not_before() {
        let tau = FlagThresholds { tau_c: 100.0, tau_a: 100.0 };
        let fallen = |dead_band: f32| {
            let mut flagging = Flagging::default();
            // Distances by τ: 1.2, 0.95, missing, 0.92, 0.89, 0.95.
            [144.0, 90.25, f32::NAN, 84.64, 79.21, 90.25]
                .map(|d2| flagging.step(d2, 0.0, tau, dead_band).map(|flags| flags.z_c))
        };
        let [on, off] = [Some(true), Some(false)];
        assert_eq!(fallen(1.0), [on, off, None, off, off, off]);
        assert_eq!(fallen(0.9), [on, on, None, on, off, off], "not raised again inside the band");
    }

    proptest! {
        #[test]
        fn a_percentile_leaves_that_share_at_or_below(
            distances in prop::collection::vec(0.0f32..100.0, 2..300), percent in 0.0f64..100.0,
        ) {
            let nominal = NominalDistances::new(distances.iter().copied());
            let tau = nominal.threshold(Tau::Percentile(percent));
            let (above, steps) = flagged(&distances, tau);
            let share = above as f64 / steps as f64;
            // Interpolated between neighbours: off by at most one sample.
            prop_assert!((share - (1.0 - percent / 100.0)).abs() <= 1.0 / steps as f64 + 1e-6);
            prop_assert!(nominal.quantile(0.3) <= nominal.quantile(0.7));
        }

        #[test]
        fn without_a_dead_band_a_flag_is_one_comparison(
            d2 in prop::collection::vec(prop_oneof![9 => 0.0f32..9.0, 1 => Just(f32::NAN)], 1..80),
            tau_c in 0.0f32..9.0, tau_a in 0.0f32..9.0,
        ) {
            let thresholds = FlagThresholds { tau_c, tau_a };
            let mut flagging = Flagging::default();
            for (c, a) in d2.iter().zip(d2.iter().rev()) {
                prop_assert_eq!(flagging.step(*c, *a, thresholds, 1.0), thresholds.flags(*c, *a));
            }
        }
    }
}
