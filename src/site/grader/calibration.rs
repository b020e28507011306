//! How a client's grader is fitted and calibrated on its nominal rows.
//!
//! The whitening is fitted on one range and calibrated on another, since what was fitted looks better than
//! what comes. Where the calibration is much longer, a regression on the fit range alone knows few rows.
//! The whitening is fitted on both ranges then, and each part of the calibration is judged by a
//! regression of the other parts.

use super::{GraderFit, Nominal, SETTLING, Standing};
use crate::site::settling;
use crate::site::whitening::{Recording, Whitening};

/// The whitening is fitted on both ranges where the calibration is more than so many times as long as the
/// fit range.
const LONGER: usize = 3;

impl GraderFit {
    /// Fits and calibrates a grader.
    ///
    /// # Panics
    /// If the recordings are of no sensor.
    pub(crate) fn new(fit: &Recording, calibration: &Recording) -> Self {
        let whitening = Whitening::fit(fit, SETTLING);
        let settling = settling::of(&whitening, calibration);
        if calibration.len() <= LONGER * fit.len() {
            let rows = whitening.rows(calibration, settling);
            return Self::calibrated(whitening, &rows, settling);
        }
        let all = calibration.followed_by(fit);
        let (whitening, rows) = Whitening::fit_crossed(&all, settling, whitening.lags());
        let sensors = whitening.sensors();
        Self::calibrated(whitening, &rows[..calibration.len() * sensors], settling)
    }

    /// Calibrates on whitened residuals. Steps that are not judged do not count.
    fn calibrated(whitening: Whitening, rows: &[f32], settling: usize) -> Self {
        let sensors = whitening.sensors();
        let mut nominal = Nominal::fit(sensors, rows);
        let distances = rows.chunks_exact(sensors.max(1)).map(|row| nominal.squared(row)).collect();
        Self {
            whitening,
            nominal: nominal.gaussian,
            distances,
            standing: Standing::default(),
            stretches: Vec::new(),
            settling,
        }
    }

    /// What takes out of a residual what the past explains of it.
    pub(in crate::site) fn whitening(&self) -> &Whitening {
        &self.whitening
    }
}
