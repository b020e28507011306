//! What can be seen of every client at a step, for whoever looks on.

use crate::evidence::health::Standing;
use crate::evidence::threshold::Flags;

/// One client at one step. What does not exist is NaN or nothing, never zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sight {
    /// Mahalanobis distance of r_c, and not its square.
    pub d_c: f32,
    /// Mahalanobis distance of r_a.
    pub d_a: f32,
    /// ‖r_c‖, by the root of the number of sensors.
    pub r_c: f32,
    /// ‖r_a‖, likewise.
    pub r_a: f32,
    /// (Z_c, Z_a) as they were sent.
    pub flags: Option<Flags>,
    /// Distance of the whitened residual.
    pub surprise: f32,
    /// Level of the symbol as it was sent.
    pub level: Option<u8>,
    /// S_m by b_m: from 1 on it is an alarm.
    pub evidence: f32,
    /// How far its symbols are believed.
    pub standing: Standing,
}

impl Default for Sight {
    fn default() -> Self {
        Self {
            d_c: f32::NAN,
            d_a: f32::NAN,
            r_c: f32::NAN,
            r_a: f32::NAN,
            flags: None,
            surprise: f32::NAN,
            level: None,
            evidence: f32::NAN,
            standing: Standing::Trusted,
        }
    }
}

/// Root mean square of what is present; NaN where nothing is.
pub(super) fn norm(r: &[f32]) -> f32 {
    let (sum, n) = r
        .iter()
        .filter(|r| r.is_finite())
        .fold((0.0_f32, 0_u32), |(sum, n), r| (sum + r * r, n + 1));
    if n == 0 { f32::NAN } else { (sum / n as f32).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_norm_of_nothing_is_no_number_and_missing_sensors_do_not_count() {
        assert!(norm(&[]).is_nan() && norm(&[f32::NAN]).is_nan());
        assert!((norm(&[3.0, f32::NAN, 4.0]) - 12.5_f32.sqrt()).abs() < 1e-6);
    }
}
