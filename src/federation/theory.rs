//! The quantities of the paper's section 6 and of Theorem 7.1, measured, with the bounds they give.
//!
//! | symbol | here |
//! |---|---|
//! | ε* (Definition 6.4) | mean ‖φ(y) − Σ x̂_n‖ over the other clients' oracle states, at the trained θ |
//! | L_θ (Assumption 6.3) | largest ‖∂φ/∂θ‖ along the run, at θ¹ and at θ* |
//! | ‖θ¹ − θ*‖ (Lemma 6.5) | distance of φ's weights from the first pass to the end |
//! | δ_m (Proposition 6.8) | mean ‖f_m(z_m) − Extract(f(z))‖ at the oracle's estimates |
//! | σ* (Definition 6.11) | mean ‖f_s(x̂_c) − f(x̂_o)‖ of all clients together, at the trained θ_s |
//! | L_fs | largest ‖∂f_s/∂x‖ along the run |
//! | σ_c, σ_a (Theorem 7.1) | as printed, for ε = 1 and δ = 1e-5, in nominal standard deviations of the state |
//! | σ_g (Theorem 7.2) | as printed, with C_g the largest gradient on these rows |
//!
//! A bound exists only where the condition 1 + ‖ΔK‖ L_h < 1/L_f holds. ρ is as printed. The recursion in
//! the proof gives (1 + ‖ΔK‖ L_h) L_f (M − 1) C_x for its last term, so that the printed ρ is too small.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::FederationError;
use crate::base::rng;
use crate::nn::cell::{Cell, Plain};
use crate::nn::frozen::Frozen;
use crate::nn::kernel::check_network;
use crate::nn::weights::{Conduct, FilterWeights, LstmFc, Mlp, Parameters as _};
use crate::privacy::{Clip, sigma_used};
use crate::session::PrivacySettings;
use crate::site::training::SiteData;

/// (ε, δ) for which σ is compared.
const EPSILON: f64 = 1.0;
const DELTA: f64 = 1e-5;

/// One client's quantities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientTheory {
    pub(crate) epsilon_star: f64,
    /// The same with φ = 0: what there is to approximate.
    pub(crate) without_phi: f64,
    /// ‖φ(y; θ¹) − Σ x̂_n‖ after the first pass: the left side of Lemma 6.5.
    pub(crate) after_first_pass: f64,
    /// L_θ ‖θ¹ − θ*‖ + ε*: its right side.
    pub(crate) lemma_bound: f64,
    /// L_θ: at least 1, since the output's bias is one of the weights.
    pub(crate) l_theta: f64,
    pub(crate) delta_m: f64,
    /// L_f (ρ + ε*) + δ_m of Theorem 6.10; none where its condition does not hold.
    pub(crate) bound: Option<f64>,
    /// σ_c of Theorem 7.1 as printed.
    pub(crate) sigma_c: f64,
    /// σ_a of Theorem 7.1 as printed.
    pub(crate) sigma_a: f64,
    /// σ of either state by the clip box, as it is used.
    pub(crate) sigma_used: f64,
    /// σ_g by the formula of Theorem 7.2. The next field is the σ_g in use, by the gradient's clip.
    pub(crate) sigma_g: f64,
    pub(crate) sigma_g_used: f64,
}

/// The server's quantities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerTheory {
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
    /// C_g: the largest gradient that the server would send.
    pub(super) c_g: f64,
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
    let (mut star, mut early, mut without) = (0.0, 0.0, 0.0);
    let distance = moved(first, last);
    let mut slope = 0.0_f64;
    for (i, t) in compared.clone().enumerate() {
        let others = others.row(i).transpose();
        let (phi, phi_1) = (&trained[t - 1], &begun[t - 1]);
        star += (&phi.value - &others).norm();
        early += (&phi_1.value - &others).norm();
        without += others.norm();
        slope = slope.max(phi.slope).max(phi_1.slope);
        // The slope is that of one step. Over a run, memory may make more of it.
        if distance > 0.0 {
            slope = slope.max((&phi.value - &phi_1.value).norm() / distance);
        }
    }
    let n = compared.len().max(1) as f64;
    let (star, early, without) = (star / n, early / n, without / n);
    let Constants { l_f, l_h, delta_k, c_x, rho, r_c, y, delta_m, state_std, states, c_g } =
        *constants;
    let classic = (2.0 * (1.25 / DELTA).ln()).sqrt() / EPSILON;
    let noise = classic / state_std;
    let privacy = PrivacySettings::default();
    let box_of_state = Clip::Box { bound: privacy.clip_state, dimension: states };
    let ball_of_gradient = Clip::Ball { bound: privacy.clip_gradient };
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
        sigma_used: sigma_used(box_of_state, EPSILON, DELTA)?,
        sigma_g: 2.0 * c_g * classic,
        sigma_g_used: sigma_used(ball_of_gradient, EPSILON, DELTA)?,
    })
}

/// φ at one step.
struct Output {
    value: DVector<f64>,
    /// ‖∂φ/∂θ‖ with the memory of earlier steps taken as given.
    slope: f64,
}

/// φ(y) row by row; what is missing enters as 0, the mean of a standardised sensor.
fn outputs(site: &SiteData, phi: &LstmFc) -> Result<Vec<Output>, FederationError> {
    check_network(phi)?;
    let mut memory = vec![(0.0, 0.0); phi.width];
    let rows = site.rows.outer_iter().map(|row| {
        let seen = row.iter().map(|y| if y.is_finite() { f64::from(*y) } else { 0.0 });
        output(phi, &seen.collect::<Vec<_>>(), &mut memory)
    });
    Ok(rows.collect())
}

/// One step of φ from (h, c) of every unit.
fn output(phi: &LstmFc, y: &[f64], memory: &mut [(f64, f64)]) -> Output {
    let LstmFc { width, outputs, .. } = *phi;
    let h: Vec<f64> = memory.iter().map(|(h, _)| *h).collect();
    let dot = |weights: &[f32], row: usize, with: &[f64]| -> f64 {
        let weights = &weights[row * with.len()..(row + 1) * with.len()];
        weights.iter().zip(with).map(|(w, x)| f64::from(*w) * x).sum()
    };
    // A gate's weights have the slopes y, h and 1, times that of the gate.
    let inputs = y.iter().chain(&h).map(|v| v * v).sum::<f64>() + 1.0;
    let mut squares = DMatrix::<f64>::zeros(outputs, outputs);
    let weight = |k: usize, j: usize| f64::from(phi.fc_weight[k * width + j]);
    for (j, (h_j, c_j)) in memory.iter_mut().enumerate() {
        let before = *c_j;
        let z: [f64; 4] = std::array::from_fn(|gate| {
            let row = gate * width + j;
            let bias = f64::from(phi.bias_ih[row] + phi.bias_hh[row]);
            dot(&phi.weight_ih, row, y) + dot(&phi.weight_hh, row, &h) + bias
        });
        let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
        let gates = [sigmoid(z[0]), sigmoid(z[1]), z[2].tanh(), sigmoid(z[3])];
        *c_j = Cell::memory(Plain, gates, before);
        let (cell, now) = Cell::forward(Plain, gates, c_j.tanh());
        *h_j = now;
        let of_gates = cell.back_one_step(Plain, before, 1.0);
        let of_unit = of_gates.iter().map(|s| s * s).sum::<f64>() * inputs;
        for k in 0..outputs {
            squares[(k, k)] += now * now;
            for l in 0..outputs {
                squares[(k, l)] += weight(k, j) * weight(l, j) * of_unit;
            }
        }
    }
    let now: Vec<f64> = memory.iter().map(|(h, _)| *h).collect();
    let value = (0..outputs).map(|k| dot(&phi.fc_weight, k, &now) + f64::from(phi.fc_bias[k]));
    // Of the output's own bias.
    (0..outputs).for_each(|k| squares[(k, k)] += 1.0);
    Output {
        value: DVector::from_iterator(outputs, value),
        slope: super::convergence::norm(&squares).sqrt(),
    }
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
    use crate::nn::online::{Descent, Learner};
    use crate::nn::weights::Parameters;

    #[test]
    fn the_slope_of_phi_by_its_weights_is_that_of_finite_differences() {
        let phi = LstmFc::init(3, 4, 2, 1.0, &mut rng::stream(3, 0));
        let row = |t: usize| [0.4, -1.2, 0.7].map(|y| (y * (t + 1) as f64).sin());
        // Memory of five steps, then one that is judged.
        let at = |judged: &LstmFc| {
            let mut memory = vec![(0.0, 0.0); phi.width];
            (0..5).for_each(|t| drop(output(&phi, &row(t), &mut memory)));
            output(judged, &row(5), &mut memory)
        };
        let base = at(&phi);
        let mut learner = Learner::new(&phi, Descent::Sgd(0.0)).expect("a network");
        let kernel =
            (0..6).fold(DVector::zeros(2), |_, t| wide(learner.forward(&row(t).map(|y| y as f32))));
        assert!((&kernel - &base.value).amax() < 1e-4, "{kernel} {}", base.value);
        let mut columns = Vec::new();
        for slice in 0..phi.slices().len() {
            for place in 0..phi.slices()[slice].len() {
                let mut pushed = phi.clone();
                // The two biases of a gate are one weight: they always stand together.
                if std::ptr::eq(phi.slices()[slice], phi.bias_hh.as_slice()) {
                    continue;
                }
                let weight = &mut pushed.slices_mut()[slice][place];
                let before = *weight;
                *weight += 1e-2;
                let step = f64::from(*weight - before);
                columns.push((at(&pushed).value - &base.value) / step);
            }
        }
        let expected = super::super::convergence::norm(&DMatrix::from_columns(&columns));
        assert!((base.slope - expected).abs() < 0.02 * expected, "{} {expected}", base.slope);
        assert!(base.slope >= 1.0, "the bias of the output is one of the weights");
    }

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
