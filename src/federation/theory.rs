//! The quantities of the paper's section 6 and of Theorem 7.1, measured, with the bounds they give.
//!
//! | symbol | here |
//! |---|---|
//! | ε* (Definition 6.4) | mean ‖φ(y) − Σ x̂_n‖ over the other clients' oracle states, at the trained θ |
//! | L_θ, ‖θ¹ − θ*‖ (Lemma 6.5) | how far φ moves per distance of its weights; from the first pass to the end |
//! | δ_m (Proposition 6.8) | mean ‖f_m(z_m) − Extract(f(z))‖ at the oracle's estimates |
//! | σ* (Definition 6.11) | mean ‖f_s(x̂_c) − f(x̂_o)‖ of all clients together, at the trained θ_s |
//! | L_fs | largest ‖∂f_s/∂x‖ along the run |
//! | σ_c, σ_a (Theorem 7.1) | as printed, for ε = 1 and δ = 1e-5, in nominal standard deviations of the state |
//!
//! A bound exists only where the condition 1 + ‖ΔK‖ L_h < 1/L_f holds.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::FederationError;
use crate::base::rng;
use crate::nn::frozen::Frozen;
use crate::nn::online::{Descent, Learner};
use crate::nn::weights::{Conduct, FilterWeights, LstmFc, Mlp, Parameters as _};
use crate::privacy::{Clip, PrivacyError, sigma_used};
use crate::site::training::SiteData;

/// (ε, δ) for which σ is compared.
const EPSILON: f64 = 1.0;
const DELTA: f64 = 1e-5;

/// One client's quantities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientTheory {
    /// ε*.
    pub(crate) epsilon_star: f64,
    /// The same with φ = 0: what there is to approximate.
    pub(crate) without_phi: f64,
    /// ‖φ(y; θ¹) − Σ x̂_n‖ after the first pass: the left side of Lemma 6.5.
    pub(crate) after_first_pass: f64,
    /// L_θ ‖θ¹ − θ*‖ + ε*: its right side.
    pub(crate) lemma_bound: f64,
    /// L_θ.
    pub(crate) l_theta: f64,
    /// δ_m.
    pub(crate) delta_m: f64,
    /// L_f (ρ + ε*) + δ_m of Theorem 6.10; none where its condition does not hold.
    pub(crate) bound: Option<f64>,
    /// σ_c of Theorem 7.1 as printed.
    pub(crate) sigma_c: f64,
    /// σ_a of Theorem 7.1 as printed.
    pub(crate) sigma_a: f64,
    /// σ of either state by the clip box, as it is used.
    pub(crate) sigma_used: f64,
}

/// The server's quantities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerTheory {
    /// L_fs.
    pub(crate) l_fs: f64,
    /// σ*, which is also the measured E‖x_s − x_o‖.
    pub(crate) sigma_star: f64,
    /// L_fs M ρ + σ* of Theorem 6.13 with the largest ρ; none where the condition does not hold for
    /// every client.
    pub(crate) bound: Option<f64>,
}

/// What is known of one client before anything is trained.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants {
    pub(super) l_f: f64,
    pub(super) l_h: f64,
    pub(super) delta_k: f64,
    pub(super) c_x: f64,
    pub(super) rho: Option<f64>,
    /// sup ‖r_c‖.
    pub(super) r_c: f64,
    /// sup ‖y‖.
    pub(super) y: f64,
    pub(super) delta_m: f64,
    /// Mean nominal standard deviation of the state.
    pub(super) state_std: f64,
    pub(super) states: usize,
}

/// One client's quantities. `others` is Σ x̂_n(t − 1) of the other clients, row by row, for the rows
/// `compared`; `first` and `last` are φ after the first pass and at the end.
pub(super) fn of_client(
    site: &SiteData,
    constants: &Constants,
    others: &DMatrix<f64>,
    compared: std::ops::Range<usize>,
    (first, last): (&LstmFc, &LstmFc),
) -> Result<ClientTheory, FederationError> {
    let (begun, trained) = (outputs(site, first)?, outputs(site, last)?);
    let (mut star, mut early, mut without, mut slope) = (0.0, 0.0, 0.0, 0.0_f64);
    let distance = moved(first, last);
    for (i, t) in compared.clone().enumerate() {
        let others = others.row(i).transpose();
        let (phi, phi_1) = (&trained[t - 1], &begun[t - 1]);
        star += (phi - &others).norm();
        early += (phi_1 - &others).norm();
        without += others.norm();
        if distance > 0.0 {
            slope = slope.max((phi - phi_1).norm() / distance);
        }
    }
    let n = compared.len().max(1) as f64;
    let (star, early, without) = (star / n, early / n, without / n);
    let Constants { l_f, l_h, delta_k, c_x, rho, r_c, y, delta_m, state_std, states } = *constants;
    let noise = (2.0 * (1.25 / DELTA).ln()).sqrt() / EPSILON / state_std;
    Ok(ClientTheory {
        epsilon_star: star,
        without_phi: without,
        after_first_pass: early,
        lemma_bound: slope * distance + star,
        l_theta: slope,
        delta_m,
        bound: rho.map(|rho| l_f * (rho + star) + delta_m),
        sigma_c: 2.0 * delta_k * (l_h * c_x + r_c) * noise,
        sigma_a: 2.0 * (l_f * c_x + slope * y) * noise,
        sigma_used: used(states)?,
    })
}

/// σ by the clip box of the default settings.
fn used(states: usize) -> Result<f64, PrivacyError> {
    let bound = crate::session::PrivacySettings::default().clip_state;
    sigma_used(Clip::Box { bound, dimension: states }, EPSILON, DELTA)
}

/// φ(y) row by row; what is missing enters as 0, the mean of a standardised sensor.
fn outputs(site: &SiteData, phi: &LstmFc) -> Result<Vec<DVector<f64>>, FederationError> {
    let mut phi = Learner::new(phi, Descent::Sgd(0.0))?;
    let rows = site.rows.outer_iter().map(|row| {
        let y: Vec<f32> = row.iter().map(|y| if y.is_finite() { *y } else { 0.0 }).collect();
        wide(phi.forward(&y))
    });
    Ok(rows.collect())
}

fn wide(values: &[f32]) -> DVector<f64> {
    DVector::from_iterator(values.len(), values.iter().map(|&v| f64::from(v)))
}

/// ‖θ − θ'‖.
fn moved(first: &LstmFc, last: &LstmFc) -> f64 {
    let pairs = first.slices().into_iter().zip(last.slices());
    let squares = pairs.flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)));
    squares.sum::<f64>().sqrt()
}

/// ‖∂f_s/∂x‖ along a run of x̂_c: the largest from row `from` on.
pub(super) fn server_slope(
    f_s: &LstmFc,
    x_hat_c: &ndarray::ArrayView2<f32>,
    from: usize,
) -> Result<f64, FederationError> {
    let states = f_s.outputs;
    // The values and Jacobians of a filter's transition are those of f_s; its measurement is not used.
    let measurement = Mlp::init(states, 1, 1, 1.0, &mut rng::stream(0, 0));
    let transition = f_s.clone();
    let filter = FilterWeights {
        transition,
        measurement,
        loadings: None,
        q: 0.1,
        r: 0.1,
        conduct: Conduct::default(),
    };
    let frozen = Frozen::new(&filter)?;
    let mut carried = frozen.carried();
    let mut memory = carried.recorded();
    let mut largest = 0.0_f64;
    for (t, row) in x_hat_c.outer_iter().enumerate() {
        frozen.carry(&row.to_vec(), &memory, &mut carried);
        memory = carried.recorded();
        if t >= from {
            let columns: Vec<DVector<f64>> =
                (0..states).map(|k| wide(carried.f_column(k))).collect();
            largest = largest.max(super::convergence::norm(&DMatrix::from_columns(&columns)));
        }
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_a_server_is_that_of_its_finite_differences() {
        let f_s = LstmFc::init(4, 8, 4, 1.0, &mut rng::stream(7, 0));
        let rows =
            ndarray::Array2::from_shape_fn((6, 4), |(t, k)| (0.3 * (t + 2 * k) as f32).sin());
        let found = server_slope(&f_s, &rows.view(), 5).expect("a network");
        let at = |push: Option<usize>| {
            let mut f_s = Learner::new(&f_s, Descent::Sgd(0.0)).expect("a network");
            let mut out = DVector::zeros(4);
            for (t, row) in rows.outer_iter().enumerate() {
                let mut x = row.to_vec();
                if let (5, Some(k)) = (t, push) {
                    x[k] += 1e-2;
                }
                out = wide(f_s.forward(&x));
            }
            out
        };
        let base = at(None);
        let columns: Vec<DVector<f64>> = (0..4).map(|k| (at(Some(k)) - &base) / 1e-2).collect();
        let expected = super::super::convergence::norm(&DMatrix::from_columns(&columns));
        assert!((found - expected).abs() < 0.02 * expected.max(0.01), "{found} {expected}");
    }

    #[test]
    fn weights_that_did_not_move_are_at_no_distance() {
        let phi = LstmFc::init(3, 4, 2, 0.1, &mut rng::stream(1, 0));
        assert!(moved(&phi, &phi).abs() < 1e-12);
        let mut other = phi.clone();
        other.fc_bias[0] += 3.0;
        assert!((moved(&phi, &other) - 3.0).abs() < 1e-5);
    }
}
