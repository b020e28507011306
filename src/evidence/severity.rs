//! How far steps of the highest level lie beyond the cut of that level, and what that says of a root.
//!
//! When an accident saturates all clients in one step, their symbols are all the same. A coarse severity
//! still tells them apart: the squared distance in half octaves beyond the highest cut, five bits. It is sent with
//! the first step of a burst and with one step later in it.
//!
//! A root is struck harder than those who feel it, and its deviation decays. A client that is as severe two steps
//! later is sensitive: small disturbances look severe to it. So both severities together have one
//! distribution at a root and another at a client that is struck along with it. Both are normal with the moments of
//! 3000 simulated accidents (`headwater study sudden`, seeds 80001 to 80030) and pass through the client's randomised
//! response before they are compared: a severity that is probably noise counts for nothing.

use std::sync::LazyLock;

use super::symbol::RandomisedResponse;

/// Number of severities; the last one has no upper end.
pub(crate) const SEVERITIES: u8 = 32;

/// Severities of an octave: of a doubling of the squared distance.
const AN_OCTAVE: f64 = 2.0;

/// Steps after the first of a burst at which its severity is sent once more.
pub(crate) const LATER: u32 = 2;

/// The severity of a squared distance: 0 up to √2 times the cut, 1 up to twice the cut, and so on.
pub(crate) fn severity(distance: f32, cut: f32) -> u8 {
    let octaves = f64::from(distance / cut.max(f32::MIN_POSITIVE)).log2();
    // NaN becomes 0, and what is above the last severity the last.
    ((AN_OCTAVE * octaves).floor().max(0.0) as u8).min(SEVERITIES - 1)
}

/// Means of the first and the later severity at a root and at a client that is struck along with it.
const ROOT: [f64; 2] = [9.8, 6.6];
const STRUCK: [f64; 2] = [5.2, 4.9];
/// Their variances and covariance, the same for both.
const VARIANCE: [f64; 2] = [10.8, 22.0];
const COVARIANCE: f64 = 11.8;

/// The later severity of a burst, as far as the server knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Later {
    /// That step has not come yet, or nothing came of it.
    Unknown,
    /// A lower symbol came before it could be sent. With noise on symbols a highest one was sent as a lower one
    /// with the probability `hidden`.
    NotHighest {
        hidden: f64,
    },
    Sent(u8),
}

/// What the severities of a burst say for a client being the root, in nats.
pub(crate) fn root_evidence(first: u8, later: Later, response: &RandomisedResponse) -> f64 {
    static JOINT: LazyLock<[Joint; 2]> = LazyLock::new(|| [ROOT, STRUCK].map(Joint::around));
    let [root, struck] = &*JOINT;
    (root.probability(first, later, response) / struck.probability(first, later, response)).ln()
}

/// Probabilities of a first and a later severity.
struct Joint([[f64; SEVERITIES as usize]; SEVERITIES as usize]);

impl Joint {
    fn around([first, later]: [f64; 2]) -> Self {
        let determinant = VARIANCE[0] * VARIANCE[1] - COVARIANCE * COVARIANCE;
        let density = |a: usize, b: usize| {
            let (x, y) = (a as f64 - first, b as f64 - later);
            let distance = VARIANCE[1] * x * x - 2.0 * COVARIANCE * x * y + VARIANCE[0] * y * y;
            (-0.5 * distance / determinant).exp()
        };
        let mut joint = std::array::from_fn(|a| std::array::from_fn(|b| density(a, b)));
        let total: f64 = joint.iter().flatten().sum();
        joint.iter_mut().flatten().for_each(|p: &mut f64| *p /= total);
        Self(joint)
    }

    /// Probability of what was sent.
    fn probability(&self, first: u8, later: Later, response: &RandomisedResponse) -> f64 {
        let of_later = |truth: u8| match later {
            Later::Unknown => 1.0,
            Later::NotHighest { hidden } => {
                if truth == 0 {
                    1.0
                } else {
                    hidden
                }
            }
            Later::Sent(sent) => response.probability(sent, truth),
        };
        let of_row = |row: &[f64; SEVERITIES as usize]| -> f64 {
            (0..SEVERITIES).zip(row).map(|(truth, p)| of_later(truth) * p).sum()
        };
        let rows = (0..SEVERITIES).zip(&self.0);
        rows.map(|(truth, row)| response.probability(first, truth) * of_row(row)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn response(epsilon: Option<f64>) -> RandomisedResponse {
        RandomisedResponse::new(usize::from(SEVERITIES), epsilon)
    }

    #[test]
    fn a_severity_counts_half_octaves_beyond_the_cut() {
        assert_eq!([1.0, 9.9, 10.0, 14.0].map(|d| severity(d, 10.0)), [0, 0, 0, 0]);
        assert_eq!([15.0, 20.0, 29.0, 40.0, 5000.0].map(|d| severity(d, 10.0)), [1, 2, 3, 4, 17]);
        assert_eq!([f32::INFINITY, 1e30].map(|d| severity(d, 10.0)), [31, 31]);
        assert_eq!(severity(f32::NAN, 10.0), 0);
        assert_eq!(severity(1.0, 0.0), 31);
    }

    #[test]
    fn without_noise_each_half_octave_says_the_same() {
        let of = |first, later| root_evidence(first, Later::Sent(later), &response(None));
        // Σ⁻¹ (root − struck), as a discriminant analysis has it.
        assert!((of(9, 5) - of(8, 5) - 0.825).abs() < 0.01, "{}", of(9, 5) - of(8, 5));
        assert!((of(8, 6) - of(8, 5) + 0.365).abs() < 0.01, "{}", of(8, 6) - of(8, 5));
        let alone = |first| root_evidence(first, Later::Unknown, &response(None));
        assert!((alone(9) - alone(8) - 0.43).abs() < 0.02, "{}", alone(9) - alone(8));
        let not_highest = root_evidence(8, Later::NotHighest { hidden: 0.0 }, &response(None));
        assert!((of(8, 0) - not_highest).abs() < 1e-12);
    }

    #[test]
    fn a_lower_symbol_that_may_be_noise_says_less_than_one_that_is_none() {
        let of = |later| root_evidence(12, later, &response(None));
        let [sure, likely, never] =
            [0.0, 0.1, 1.0].map(|hidden| of(Later::NotHighest { hidden }) - of(Later::Unknown));
        assert!(sure > likely && likely > 0.0 && never.abs() < 1e-9, "{sure} {likely} {never}");
    }

    #[test]
    fn a_severity_that_is_probably_noise_says_next_to_nothing() {
        let plain = root_evidence(30, Later::Sent(4), &response(None));
        let noised = root_evidence(30, Later::Sent(4), &response(Some(4.0)));
        assert!(plain > 10.0 && noised.abs() < 1.0, "{plain} {noised}");
    }

    proptest! {
        #[test]
        fn more_noise_never_says_more_of_a_first_severity(
            first in 0u8..SEVERITIES, epsilon in 0.1f64..12.0,
        ) {
            let of = |epsilon| root_evidence(first, Later::Unknown, &response(epsilon)).abs();
            prop_assert!(of(Some(epsilon)) <= of(None) + 1e-9);
            prop_assert!(of(Some(epsilon)) <= of(Some(epsilon + 1.0)) + 1e-9);
        }
    }
}
