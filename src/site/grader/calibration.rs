//! How a client's grader is fitted and calibrated on its nominal rows.
//!
//! The whitening is fitted on one range and calibrated on another, since what was fitted looks better than
//! what comes. Where the fit range has few rows and the calibration is much longer, the whitening is fitted on
//! both ranges, and each part of them is judged by a regression of the other parts.

use super::{GraderFit, Nominal, SETTLING, Standing};
use crate::site::settling;
use crate::site::whitening::{Recording, Whitening};

/// The whitening is fitted on both ranges where the calibration is more than so many times as long as the
/// fit range...
const LONGER: usize = 3;
/// ...and the fit range has fewer rows than this for each regressor.
const FEW: usize = 20;

/// A grader, and the whitened residuals it was calibrated on where no row may be judged by a regression that
/// it was fitted on: those of the calibration, then those of the fit range.
pub(in crate::site) struct Calibrated {
    pub(in crate::site) grader: GraderFit,
    pub(in crate::site) crossed: Option<Vec<f32>>,
}

impl GraderFit {
    /// Fits and calibrates a grader.
    ///
    /// # Panics
    /// If the recordings are of no sensor.
    pub(crate) fn new(fit: &Recording, calibration: &Recording) -> Self {
        Self::with_rows(fit, calibration).grader
    }

    /// The same with the rows of a whitening that was fitted on both ranges.
    ///
    /// # Panics
    /// If the recordings are of no sensor.
    pub(in crate::site) fn with_rows(fit: &Recording, calibration: &Recording) -> Calibrated {
        let whitening = Whitening::fit(fit, SETTLING);
        let settling = settling::of(&whitening, calibration);
        let is_short = fit.len() < FEW * whitening.regressors();
        if !is_short || calibration.len() <= LONGER * fit.len() {
            let rows = whitening.rows(calibration, settling);
            let grader = Self::calibrated(whitening, &rows, settling);
            return Calibrated { grader, crossed: None };
        }
        let all = calibration.followed_by(fit);
        let (whitening, rows) = Whitening::fit_crossed(&all, settling, whitening.lags());
        let sensors = whitening.sensors();
        let grader = Self::calibrated(whitening, &rows[..calibration.len() * sensors], settling);
        Calibrated { grader, crossed: Some(rows) }
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
