//! The whole chain of gradients: server to x_a, through f_m and h_m to θ_m.

use nalgebra::DVector;
use proptest::prelude::*;

use super::super::batched;
use super::*;
use crate::nn::kernel::reference::{self, State};
use crate::nn::network::LstmNetwork;
use crate::nn::train::batch::BatchWindows;
use crate::nn::train::trainer::Trainer;
use crate::nn::weights::Parameters as _;
use crate::server::batch::Batch;

fn exact(values: &[f32]) -> DVector<f64> {
    DVector::from_iterator(values.len(), values.iter().map(|&v| f64::from(v)))
}

/// x_a(t) of client `m` with another φ, φ's memory being that of φ as it is.
fn x_a(federation: &Federation, m: usize, phi: &LstmFc, t: usize) -> DVector<f64> {
    let client = &federation.clients[m];
    let (chain, f) = (client.chain_of_test(), &client.functions().transition);
    let before = client.phi();
    let memory = (0..t - 1).fold(State::zero(before.width), |memory, s| {
        reference::lstm(&before, &memory, &exact(chain.input(s))).1
    });
    let correction = reference::lstm(phi, &memory, &exact(chain.input(t - 1))).0;
    let (h, c) = chain.hidden_and_cell(t - 1);
    let memory = State { h: exact(h), c: exact(c) };
    reference::lstm(f, &memory, &(exact(chain.x_hat(t - 1)) + correction)).0
}

/// L_a of client `m` in double precision.
fn own_loss(federation: &Federation, m: usize, phi: &LstmFc, t: usize) -> f64 {
    let client = &federation.clients[m];
    let y_hat = reference::mlp(&client.functions().measurement, &x_a(federation, m, phi, t));
    (exact(client.chain_of_test().target(t)) - y_hat).norm_squared()
}

/// L_s in double precision, with another φ at client `m`, or another f_s.
fn server_loss(federation: &Federation, m: usize, phi: &LstmFc, f_s: &LstmFc, t: usize) -> f64 {
    let joint = |t: usize| {
        let parts =
            federation.clients.iter().flat_map(|client| client.chain_of_test().x_hat(t).to_vec());
        exact(&parts.collect::<Vec<_>>())
    };
    let before = federation.server.weights();
    let memory = (0..t - 1).fold(State::zero(before.width), |memory, s| {
        reference::lstm(&before, &memory, &joint(s)).1
    });
    let x_s = reference::lstm(f_s, &memory, &joint(t - 1)).0;
    let x_a = (0..federation.clients.len()).flat_map(|n| {
        let own = federation.clients[n].phi();
        let phi = if n == m { phi } else { &own };
        x_a(federation, n, phi, t).iter().copied().collect::<Vec<f64>>()
    });
    (x_s - DVector::from_vec(x_a.collect())).norm_squared()
}

/// The slope of `loss` along weight `i` of slice `k`.
fn slope(weights: &LstmFc, k: usize, i: usize, loss: impl Fn(&LstmFc) -> f64) -> f64 {
    let moved = |by: f32| {
        let mut moved = weights.clone();
        moved.slices_mut()[k][i] += by;
        (loss(&moved), f64::from(moved.slices()[k][i]))
    };
    let ((above, high), (below, low)) = (moved(2e-3), moved(-2e-3));
    (above - below) / (high - low)
}

/// Checks one step of plain descent at rate 1 against slopes; every slice at three places.
fn check(
    before: &LstmFc,
    after: &LstmFc,
    rate: f64,
    loss: impl Fn(&LstmFc) -> f64,
) -> Result<(), TestCaseError> {
    // Slices in torch's order: the biases are the third and fourth, here one that moves for two.
    for (k, times) in [(0, 1.0), (1, 1.0), (2, 2.0), (4, 1.0), (5, 1.0)] {
        let length = before.slices()[k].len();
        for i in [0, length / 2, length - 1] {
            let expected = times * slope(before, k, i, &loss);
            let found = f64::from(before.slices()[k][i] - after.slices()[k][i]) / rate;
            prop_assert!(
                (found - expected).abs() < 2e-3 * (1.0 + expected.abs()),
                "slice {} weight {}: {} {}",
                k,
                i,
                found,
                expected
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_round_descends_along_the_slopes_of_both_losses(
        sensors in prop::collection::vec(1_usize..6, 1..4),
        width in 1_usize..9,
        eta in (0.0..1.5_f64, 0.0..1.5_f64),
        t in 1_usize..5,
        seed in any::<u64>(),
    ) {
        let plant = Plant::new(12, &sensors, seed);
        let settings = ModelSettings {
            augment_width: width,
            eta1: 0.1 * eta.0,
            eta2: 0.1 * eta.1,
            eta3: 0.1,
            optimiser: Optimiser::Sgd,
            ..small()
        };
        let mut federation = federation(&plant, &settings, seed);
        for s in 1..t {
            federation.round(s, Stage::Together, 0.0).unwrap();
        }
        let before = federation.weights();
        let reference = super::federation(&plant, &settings, seed);
        federation.round(t, Stage::Together, 1.0).unwrap();
        let after = federation.weights();
        for m in 0..sensors.len() {
            check(&before.phi[m], &after.phi[m], 1.0, |phi| {
                settings.eta1 * own_loss(&reference, m, phi, t)
                    + settings.eta2 * server_loss(&reference, m, phi, &before.server, t)
            })?;
        }
        check(&before.server, &after.server, settings.eta3, |f_s| {
            server_loss(&reference, 0, &before.phi[0], f_s, t)
        })?;
    }
}

#[test]
fn a_batch_of_one_step_is_an_online_round() {
    let plant = Plant::new(12, &[3, 4], 5);
    let settings = ModelSettings { optimiser: Optimiser::Sgd, eta1: 0.3, eta2: 0.7, ..small() };
    let mut online = federation(&plant, &settings, 1);
    let mut batch = federation(&plant, &settings, 1);
    let before = online.weights();
    online.round(4, Stage::Together, 1.0).unwrap();
    let after = online.weights();
    let windows = BatchWindows { starts: &[3], length: 1, warm_up: 0 };
    let mut arrived = Batch::new(&batch.server, windows);
    let trainer = |weights: &LstmFc| Trainer::sgd(weights.clone(), 1.0).unwrap();
    let network =
        |trainer: &Trainer<LstmFc>| LstmNetwork::new(trainer.sizes(), &trainer.builder()).unwrap();
    let phi: Vec<_> = before.phi.iter().map(trainer).collect();
    let f_s = trainer(&before.server);
    let mut estimates = Vec::new();
    for (client, phi) in batch.clients.iter_mut().zip(&phi) {
        let estimate = client.estimate_batch(&network(phi), &windows).unwrap();
        let wire = batch.wire.as_mut();
        batched::send(client, &estimate, wire, &batch.server, &mut arrived).unwrap();
        estimates.push(estimate);
    }
    assert!(arrived.is_complete());
    let (of_server, by_weights) = arrived.gradient(&network(&f_s)).unwrap();
    let by_weights = f_s.gradient(&by_weights).unwrap();
    let near = |gradient: &LstmFc, before: &LstmFc, after: &LstmFc, rate: f32| {
        for k in [0, 1, 4, 5] {
            let steps = before.slices()[k].iter().zip(after.slices()[k]);
            for (g, (b, a)) in gradient.slices()[k].iter().zip(steps) {
                assert!(
                    ((b - a) / rate - g).abs() < 1e-4 * (1.0 + g.abs()),
                    "{} {g}",
                    (b - a) / rate
                );
            }
        }
    };
    near(&by_weights, &before.server, &after.server, settings.eta3 as f32);
    for (m, estimate) in estimates.iter().enumerate() {
        let g = &of_server.states[batch.server.span(m)];
        let gradient = batch.clients[m].batch_gradient(estimate, &windows, Some(g)).unwrap();
        let gradient = phi[m].gradient(&gradient).unwrap();
        near(&gradient, &before.phi[m], &after.phi[m], 1.0);
    }
}

#[test]
fn a_window_lets_gradients_through_time() {
    let plant = Plant::new(30, &[3], 5);
    let settings = ModelSettings { eta2: 0.0, ..small() };
    let federation = federation(&plant, &settings, 1);
    let client = &federation.clients[0];
    let windows = BatchWindows { starts: &[3, 9], length: 6, warm_up: 2 };
    let phi = client.phi();
    let loss = |phi: &LstmFc| {
        let phi = LstmNetwork::running(phi).unwrap();
        client.estimate_batch(&phi, &windows).unwrap().loss().unwrap()
    };
    let trainer = Trainer::sgd(phi.clone(), 1.0).unwrap();
    let network = LstmNetwork::new(trainer.sizes(), &trainer.builder()).unwrap();
    let estimate = client.estimate_batch(&network, &windows).unwrap();
    let gradient = client.batch_gradient(&estimate, &windows, None).unwrap();
    let gradient = trainer.gradient(&gradient).unwrap();
    for k in 0..6 {
        let at = |by: f32| {
            let mut moved = phi.clone();
            moved.slices_mut()[k][0] += by;
            loss(&moved)
        };
        let (slope, exact) = ((at(2e-2) - at(-2e-2)) / 4e-2, f64::from(gradient.slices()[k][0]));
        assert!((slope - exact).abs() < 2e-3 * (1.0 + exact.abs()), "{k}: {slope} {exact}");
    }
}
