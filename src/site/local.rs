//! The local view of a site: what only a screen on the site's own machine may show.
//!
//! Residuals, distances, sensors and measurements reach a console by this module alone. Nothing of it
//! crosses the wire.

use super::Site;
#[cfg(test)]
use super::material::ClientMaterial;
use crate::evidence::symbol::Symbol;
use crate::evidence::threshold::Flags;
use crate::stream::{Frame, Row};

/// What can be seen of one site after a step. What does not exist is NaN, never zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LocalView {
    /// Mahalanobis distance of r_c, and not its square.
    pub(crate) d_c: f32,
    /// Mahalanobis distance of r_a.
    pub(crate) d_a: f32,
    /// ‖r_c‖, by the root of the number of sensors.
    pub(crate) r_c: f32,
    /// ‖r_a‖, likewise.
    pub(crate) r_a: f32,
    /// Distance of the whitened residual.
    pub(crate) surprise: f32,
}

impl Default for LocalView {
    fn default() -> Self {
        let nothing = f32::NAN;
        Self { d_c: nothing, d_a: nothing, r_c: nothing, r_a: nothing, surprise: nothing }
    }
}

/// What a step was before anything of it was released: for the site's own recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Truth {
    pub(crate) flags: Option<Flags>,
    /// Level of its symbol.
    pub(crate) own: Option<u8>,
    /// Level of what its explainer does not explain (tier 2).
    pub(crate) beside: Option<u8>,
}

impl Site {
    /// What a screen on this machine may show of the last step.
    pub(crate) fn local(&self) -> LocalView {
        let mut view = LocalView::default();
        if let Some(flags) = &self.flags {
            flags.show(&mut view);
        }
        if let Some(evidence) = &self.evidence {
            view.surprise = evidence.distance.sqrt();
        }
        view
    }

    /// What its last step was before anything of it was released.
    pub(crate) fn truth(&self) -> Truth {
        let graded = self.evidence.as_ref().map(|evidence| evidence.graded).unwrap_or_default();
        let level = |symbol: Symbol| symbol.level() as u8;
        Truth {
            flags: self.flags.as_ref().and_then(|flags| flags.truth),
            own: graded.own.map(level),
            beside: graded.beside.map(level),
        }
    }
}

/// The measurements of a row, for the site's own screen.
pub(crate) fn measurements(row: Row<'_>) -> &[f64] {
    row.raw_sensors()
}

/// The measurements of all clients whose sites are on this machine, in the order of their layout.
pub(crate) fn measurements_of(frame: &Frame) -> &[f64] {
    frame.raw_values()
}

/// The standardised nominal rows of a client: of its fit range and of its calibration range.
#[cfg(test)]
pub(crate) fn nominal_rows(material: &ClientMaterial) -> impl Iterator<Item = Vec<f64>> + '_ {
    let rows =
        [&material.fit, &material.calibration].into_iter().flat_map(|rows| rows.outer_iter());
    rows.map(|row| row.iter().map(|value| f64::from(*value)).collect())
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
