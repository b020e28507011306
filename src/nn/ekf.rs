//! The Extended Kalman Filter as the textbooks write it, in `f64`, for any model: the readable
//! reference that the fast kernels are compared with.
//!
//! ```text
//! x  = f(x̂)                 P⁻ = F P Fᵀ + Q            (eq. 2)
//! y  = z − h(x)             S  = H P⁻ Hᵀ + R
//! K  = P⁻ Hᵀ S⁻¹            x̂  = x + K y               (eq. 1)
//! P  = (I − K H) P⁻ (I − K H)ᵀ + K R Kᵀ               (Joseph)
//! ```
//!
//! It must not know what its model is made of.

#![allow(non_snake_case, reason = "the letters of the literature")]

use nalgebra::{Cholesky, DMatrix, DVector};
use thiserror::Error;

/// What the filter asks of a model.
pub(crate) trait Model {
    fn f(&self, x: &DVector<f64>) -> DVector<f64>;
    /// ∂f/∂x.
    fn F(&self, x: &DVector<f64>) -> DMatrix<f64>;
    fn h(&self, x: &DVector<f64>) -> DVector<f64>;
    /// ∂h/∂x.
    fn H(&self, x: &DVector<f64>) -> DMatrix<f64>;
    /// Called once per prediction, after f and F, with the state they were taken at: a model with
    /// a memory beside the state moves it on.
    fn advance(&mut self, _x: &DVector<f64>) {}
}

/// The covariance of the innovation has no inverse: R is not positive definite, or P was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the covariance of the innovation is not positive definite")]
pub(crate) struct Singular;

/// What one update did, over the sensors that were present.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Innovation {
    /// Indices of the sensors present; the rows of everything below.
    pub(crate) sensors: Vec<usize>,
    /// z − h(x).
    pub(crate) y: DVector<f64>,
    pub(crate) S: DMatrix<f64>,
    pub(crate) K: DMatrix<f64>,
    /// yᵀ S⁻¹ y: the squared Mahalanobis distance by the filter's own covariance.
    pub(crate) nis: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Ekf<M> {
    pub(crate) model: M,
    /// State: predicted after [`Ekf::predict`], estimated after [`Ekf::update`].
    pub(crate) x: DVector<f64>,
    /// Covariance of `x`.
    pub(crate) P: DMatrix<f64>,
    /// Process noise.
    pub(crate) Q: DMatrix<f64>,
    /// Measurement noise; need not be diagonal.
    pub(crate) R: DMatrix<f64>,
}

impl<M: Model> Ekf<M> {
    /// x = f(x̂), P⁻ = F P Fᵀ + Q, symmetrised.
    pub(crate) fn predict(&mut self) {
        let F = self.model.F(&self.x);
        let next = self.model.f(&self.x);
        self.model.advance(&self.x);
        self.x = next;
        self.P = symmetric(&F * &self.P * F.transpose() + &self.Q);
    }

    /// Corrects state and covariance with the entries of `z` that are finite. Without any, the
    /// prediction stands and there is no innovation.
    pub(crate) fn update(&mut self, z: &DVector<f64>) -> Result<Option<Innovation>, Singular> {
        let sensors: Vec<usize> = (0..z.len()).filter(|&i| z[i].is_finite()).collect();
        if sensors.is_empty() {
            return Ok(None);
        }
        let H = self.model.H(&self.x).select_rows(&sensors);
        let R = self.R.select_rows(&sensors).select_columns(&sensors);
        let y = (z - self.model.h(&self.x)).select_rows(&sensors);
        let S = &H * &self.P * H.transpose() + &R;
        let factor = Cholesky::new(S.clone()).ok_or(Singular)?;
        // K = P⁻ Hᵀ S⁻¹, by solving S Kᵀ = H P⁻: both S and P⁻ are symmetric.
        let K = factor.solve(&(&H * &self.P)).transpose();
        let nis = y.dot(&factor.solve(&y));
        self.x += &K * &y;
        let left = DMatrix::identity(self.x.len(), self.x.len()) - &K * &H;
        self.P = symmetric(&left * &self.P * left.transpose() + &K * R * K.transpose());
        Ok(Some(Innovation { sensors, y, S, K, nis }))
    }
}

fn symmetric(a: DMatrix<f64>) -> DMatrix<f64> {
    let transposed = a.transpose();
    (a + transposed) * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Van der Pol's oscillator, as the golden values describe it.
    #[derive(Clone)]
    struct VanDerPol {
        dt: f64,
        mu: f64,
    }

    impl Model for VanDerPol {
        fn f(&self, x: &DVector<f64>) -> DVector<f64> {
            let acceleration = self.mu * (1.0 - x[0] * x[0]) * x[1] - x[0];
            DVector::from_vec(vec![x[0] + self.dt * x[1], x[1] + self.dt * acceleration])
        }

        fn F(&self, x: &DVector<f64>) -> DMatrix<f64> {
            let (dt, mu) = (self.dt, self.mu);
            DMatrix::from_row_slice(
                2,
                2,
                &[
                    1.0,
                    dt,
                    dt * (-2.0 * mu * x[0] * x[1] - 1.0),
                    1.0 + dt * mu * (1.0 - x[0] * x[0]),
                ],
            )
        }

        fn h(&self, x: &DVector<f64>) -> DVector<f64> {
            DVector::from_vec(vec![x[0], x[0].sin() + x[1], x[0] * x[1], x[1].tanh()])
        }

        fn H(&self, x: &DVector<f64>) -> DMatrix<f64> {
            let slope = 1.0 - x[1].tanh().powi(2);
            DMatrix::from_row_slice(4, 2, &[1.0, 0.0, x[0].cos(), 1.0, x[1], x[0], 0.0, slope])
        }
    }

    fn vector(value: &Value) -> DVector<f64> {
        let entries = value.as_array().expect("a list of numbers");
        DVector::from_iterator(entries.len(), entries.iter().map(|v| v.as_f64().expect("a number")))
    }

    fn matrix(value: &Value) -> DMatrix<f64> {
        let rows: Vec<_> = value
            .as_array()
            .expect("a list of rows")
            .iter()
            .map(|row| vector(row).transpose())
            .collect();
        DMatrix::from_rows(&rows)
    }

    fn close(found: &DMatrix<f64>, golden: &Value, tolerance: f64, what: &str) {
        let error = (found - matrix(golden)).amax();
        assert!(error <= tolerance, "{what}: {error:e}");
    }

    #[test]
    #[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
    fn the_filter_reproduces_filterpy_on_both_golden_runs() {
        let text = crate::shared::text("golden/ekf.json");
        let golden: Value = serde_json::from_str(&text).expect("golden values are JSON");
        let cases = golden["cases"].as_array().expect("a list of cases");
        assert_eq!(cases.len(), 2);
        for case in cases {
            let number = |name: &str| case["params"][name].as_f64().expect("a parameter");
            let mut ekf = Ekf {
                model: VanDerPol { dt: number("dt"), mu: number("mu") },
                x: vector(&case["x0"]),
                P: matrix(&case["P0"]),
                Q: matrix(&case["Q"]),
                R: matrix(&case["R"]),
            };
            let missing = |t: usize| {
                let steps = case["missing_steps"].as_array().expect("a list of steps");
                steps.iter().any(|step| step.as_u64() == Some(t as u64))
            };
            let expected = &case["filter"];
            for t in 0..case["y"].as_array().expect("a list of measurements").len() {
                close(&ekf.model.F(&ekf.x), &expected["F"][t], 1e-9, "F");
                ekf.predict();
                let x = DMatrix::from_rows(&[ekf.x.transpose()]);
                close(&x, &Value::Array(vec![expected["x_pred"][t].clone()]), 1e-9, "x");
                close(&ekf.P, &expected["P_pred"][t], 1e-9, "P⁻");
                let mut z = vector(&case["y"][t]);
                if missing(t) {
                    z.fill(f64::NAN);
                }
                let innovation = ekf.update(&z).expect("R is positive definite");
                assert_eq!(innovation.is_none(), missing(t));
                if let Some(innovation) = innovation {
                    close(&innovation.S, &expected["S"][t], 1e-9, "S");
                    close(&innovation.K, &expected["K"][t], 1e-9, "K");
                    let nis = expected["nis"][t].as_f64().expect("a number");
                    assert!((innovation.nis - nis).abs() <= 1e-8 * nis.abs(), "NIS at {t}");
                }
                let x = DMatrix::from_rows(&[ekf.x.transpose()]);
                close(&x, &Value::Array(vec![expected["x_post"][t].clone()]), 1e-9, "x̂");
                close(&ekf.P, &expected["P_post"][t], 1e-9, "P");
            }
        }
    }

    #[test]
    fn a_missing_sensor_is_a_sensor_with_infinite_noise() {
        let ekf = Ekf {
            model: VanDerPol { dt: 0.05, mu: 1.0 },
            x: DVector::from_vec(vec![1.0, 0.5]),
            P: DMatrix::identity(2, 2),
            Q: DMatrix::identity(2, 2) * 1e-3,
            R: DMatrix::identity(4, 4) * 0.1,
        };
        let z = DVector::from_vec(vec![1.2, f64::NAN, 0.4, f64::INFINITY]);
        let mut dropped = ekf.clone();
        dropped.predict();
        let innovation = dropped.update(&z).expect("regular").expect("two sensors are present");
        assert_eq!(innovation.sensors, [0, 2]);
        let mut deaf = ekf;
        deaf.predict();
        deaf.R[(1, 1)] = 1e12;
        deaf.R[(3, 3)] = 1e12;
        deaf.update(&DVector::from_vec(vec![1.2, 0.0, 0.4, 0.0])).expect("regular");
        assert!((&dropped.x - &deaf.x).amax() < 1e-9);
        assert!((&dropped.P - &deaf.P).amax() < 1e-9);
    }

    #[test]
    fn a_singular_innovation_is_said() {
        let mut ekf = Ekf {
            model: VanDerPol { dt: 0.05, mu: 1.0 },
            x: DVector::from_vec(vec![1.0, 0.5]),
            P: DMatrix::zeros(2, 2),
            Q: DMatrix::zeros(2, 2),
            R: DMatrix::zeros(4, 4),
        };
        ekf.predict();
        assert_eq!(ekf.update(&DVector::zeros(4)), Err(Singular));
    }
}
