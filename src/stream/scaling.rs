//! Mean and spread of each sensor, learned from the fit range alone and kept by its client.

use serde::{Deserialize, Serialize};

use crate::base::moments::Moments;

/// How one sensor is brought to mean 0 and standard deviation 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct SensorScaling {
    /// Mean over the fit range.
    pub(crate) mean: f64,
    /// Standard deviation over the fit range; 1 for a constant sensor, which has none.
    pub(crate) std: f64,
    /// It never changed (or was never there): nothing can be learned from it.
    pub(crate) constant: bool,
    /// Samples it is based on.
    pub(crate) samples: u64,
}

/// The scaling of one client's sensors. It never leaves that client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scaling {
    /// One entry per sensor, in layout order.
    pub(crate) sensors: Vec<SensorScaling>,
}

impl Scaling {
    /// Begins with nothing; rows are added one by one.
    pub(crate) fn gather(sensors: usize) -> ScalingBuilder {
        ScalingBuilder { moments: vec![Moments::default(); sensors] }
    }
}

/// A scaling in the making.
#[derive(Debug, Clone)]
pub(crate) struct ScalingBuilder {
    moments: Vec<Moments>,
}

impl ScalingBuilder {
    /// Takes one row into account; what is missing counts for nothing.
    pub(crate) fn add(&mut self, row: &[f64]) {
        let known = self.moments.iter_mut().zip(row).filter(|(_, value)| value.is_finite());
        known.for_each(|(moment, value)| moment.add(*value));
    }

    /// The scaling of all rows so far.
    pub(crate) fn finish(&self) -> Scaling {
        Scaling { sensors: self.moments.iter().map(scaling).collect() }
    }
}

fn scaling(of: &Moments) -> SensorScaling {
    let (mean, std) = (of.mean(), of.std());
    // Rounding leaves a constant column with a spread of a few ulps of its mean.
    let constant = std <= 1e-9 * mean.abs().max(f64::MIN_POSITIVE);
    SensorScaling { mean, std: if constant { 1.0 } else { std }, constant, samples: of.count() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fit(column: &[f64]) -> SensorScaling {
        let mut gathering = Scaling::gather(1);
        for value in column {
            gathering.add(&[*value]);
        }
        gathering.finish().sensors[0]
    }

    #[test]
    fn a_constant_sensor_is_marked_and_stays_finite() {
        for value in [0.0, 0.1, 524_320.0] {
            let scaling = fit(&[value; 1000]);
            assert!(scaling.constant, "{value}");
            assert!((scaling.std - 1.0).abs() < f64::EPSILON);
        }
        assert!(fit(&[f64::NAN; 10]).constant, "a sensor that was never there");
    }

    #[test]
    fn missing_values_are_left_out() {
        let scaling = fit(&[1.0, f64::NAN, 3.0, f64::INFINITY]);
        assert_eq!((scaling.mean, scaling.std, scaling.samples), (2.0, 1.0, 2));
    }

    proptest! {
        #[test]
        fn standardised_fit_data_has_mean_0_and_std_1(
            column in proptest::collection::vec(-1e4f64..1e4, 3..200), shift in -1e6f64..1e6,
        ) {
            let column: Vec<f64> = column.iter().map(|v| v + shift).collect();
            let scaling = fit(&column);
            prop_assume!(!scaling.constant);
            let z: Vec<f64> = column.iter().map(|v| (v - scaling.mean) / scaling.std).collect();
            let mean = z.iter().sum::<f64>() / z.len() as f64;
            let var = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / z.len() as f64;
            prop_assert!(mean.abs() < 1e-6 && (var - 1.0).abs() < 1e-6, "{mean} {var}");
        }
    }
}
