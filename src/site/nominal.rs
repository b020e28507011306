//! What is normal for the residuals of a site's models, and how it is kept.

use nalgebra::{DMatrix, DVector};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::material::ClientMaterial;
use super::prepared::Nominal;
use super::series::series;
use crate::evidence::threshold::NominalDistances;
use crate::nn::kernel::WeightsError;
use crate::nn::kernel::gaussian::{Gaussian, RIDGE};
use crate::nn::kernel::mahalanobis::Mahalanobis;
use crate::nn::train::SETTLING;
use crate::nn::weights::{LstmFc, ProprietaryWeights};

/// Distances kept of a calibration: any percentile is read between two of them.
const KEPT_DISTANCES: usize = 2001;

/// A [`Nominal`] as it is kept with the models.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredNominal {
    mean: Vec<f64>,
    covariance: Vec<f64>,
    distances: Vec<f32>,
}

/// What is normal for r_c and r_a on the calibration range; none where that is too short.
pub(crate) fn of(
    material: &ClientMaterial,
    model: &ProprietaryWeights,
    phi: &LstmFc,
) -> Result<Option<[StoredNominal; 2]>, WeightsError> {
    let run = series(model, Some(phi), &material.calibration.view())?;
    let c = StoredNominal::of(&run.r_c);
    let a = run.augmented.and_then(|augmented| StoredNominal::of(&augmented.r_a));
    Ok(c.zip(a).map(|(c, a)| [c, a]))
}

impl StoredNominal {
    /// µ, Σ and the distances of residuals once the filter has settled.
    fn of(residuals: &Array2<f32>) -> Option<Self> {
        let sensors = residuals.ncols();
        let settled: Vec<f32> =
            residuals.outer_iter().skip(SETTLING).flat_map(|row| row.to_vec()).collect();
        if sensors == 0 || settled.len() < 10 * sensors {
            return None;
        }
        let gaussian = Gaussian::fit(sensors, &settled, RIDGE);
        let mut distance = Mahalanobis::new(&gaussian);
        let distances = NominalDistances::new(
            settled.chunks_exact(sensors).filter_map(|r| distance.squared(r)),
        );
        let kept = KEPT_DISTANCES.min(distances.len());
        let step = 1.0 / kept.saturating_sub(1).max(1) as f64;
        Some(Self {
            mean: gaussian.mean().iter().copied().collect(),
            covariance: gaussian.covariance().iter().copied().collect(),
            distances: (0..kept).map(|i| distances.quantile(i as f64 * step)).collect(),
        })
    }

    /// As models use it; none where the parts do not fit together.
    pub(crate) fn restore(self) -> Option<Nominal> {
        let n = self.mean.len();
        if self.covariance.len() != n * n {
            return None;
        }
        let covariance = DMatrix::from_vec(n, n, self.covariance);
        Some(Nominal {
            gaussian: Gaussian::new(DVector::from_vec(self.mean), &covariance)?,
            distances: NominalDistances::new(self.distances),
        })
    }
}
