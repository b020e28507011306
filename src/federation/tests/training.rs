//! What must hold of any training, whatever it learns.

use std::ops::ControlFlow;

use super::super::variant::{Fitted, Variant};
use super::*;
use crate::nn::weights::Parameters as _;
use crate::privacy::{Counted, Spend, Units};
use crate::wire::{Content, Numbers, Order, StatesStay};

fn batched() -> ModelSettings {
    let federation = settings::Federation::Batched { rounds: 4 };
    ModelSettings { federation, batch: 6, window: 8, ..small() }
}

#[test]
fn a_round_weighs_what_the_paper_says() {
    for clients in [2, 4, 8] {
        let plant = Plant::new(10, &vec![3; clients], 1);
        let mut federation = federation(&plant, &small(), 1);
        let round = federation.round(1, Stage::Together, 1.0).unwrap();
        // 2·P·4·M up and P·4·M down, with P = 2.
        assert_eq!(round.sent, Sent { up: 16 * clients, down: 8 * clients });
        let one_way = federation.round(2, Stage::ServerAlone, 1.0).unwrap().sent;
        assert_eq!(one_way, Sent { up: 16 * clients, down: 0 });
        let nothing = federation.round(3, Stage::ClientsAlone, 1.0).unwrap().sent;
        assert_eq!(nothing, Sent::default());
    }
}

#[test]
fn the_same_seed_learns_the_same_and_another_does_not() {
    let plant = Plant::new(60, &[3, 4], 1);
    for settings in [small(), batched()] {
        let learn = |seed| federation(&plant, &settings, seed).run(&mut on).unwrap();
        assert_eq!(learn(1), learn(1));
        assert_ne!(learn(1).weights, learn(2).weights);
    }
}

#[test]
fn a_site_in_residual_form_is_refused_with_the_reason() {
    let mut plant = Plant::new(20, &[3], 1);
    plant.models[0] = ProprietaryWeights::Filter(small_filter(3, true, 1));
    let error = Federation::new(&plant.sites(), &small(), hooks(&open()), 1).unwrap_err();
    assert_eq!(error.to_string(), format!("C: {StatesStay}"));
}

#[test]
fn holes_in_the_data_never_reach_a_weight() {
    let mut plant = Plant::new(80, &[3, 4], 1);
    plant.rows[0].row_mut(10).fill(f32::NAN);
    plant.rows[1].row_mut(10).fill(f32::NAN);
    plant.rows[0].row_mut(20).fill(f32::NAN);
    plant.rows[0][[30, 1]] = f32::INFINITY;
    plant.rows[1][[40, 0]] = f32::NEG_INFINITY;
    plant.rows[1].row_mut(0).fill(f32::NAN);
    for settings in [small(), batched()] {
        let mut federation = federation(&plant, &settings, 1);
        let is_used = |t: usize| {
            federation.schedule.clone().any(|plan| match plan {
                Plan::Row { t: at, .. } => at == t,
                Plan::Windows { starts, length, .. } => {
                    starts.iter().any(|start| (*start..start + length).contains(&t))
                }
            })
        };
        assert!(is_used(60) && !is_used(10));
        assert!(settings != small() || !is_used(11), "there is no step before it");
        assert_eq!(is_used(20), settings == small(), "another client measured something");
        let outcome = federation.run(&mut on).unwrap();
        let weights = outcome.weights.phi.iter().chain([&outcome.weights.server]);
        assert!(weights.flat_map(|w| w.slices()).flatten().all(|w| w.is_finite()));
        assert!(outcome.history.reached.iter().all(|r| r.server_loss.is_finite()));
    }
}

#[test]
fn rows_that_hold_nothing_or_do_not_fit_are_refused() {
    let refused = |plant: &Plant| {
        Federation::new(&plant.sites(), &small(), hooks(&open()), 1).unwrap_err().to_string()
    };
    let mut plant = Plant::new(20, &[3, 3], 1);
    plant.rows.iter_mut().for_each(|rows| rows.fill(f32::NAN));
    assert_eq!(refused(&plant), "20 rows hold no two consecutive measurements to learn from");
    let mut plant = Plant::new(20, &[3, 3], 1);
    plant.rows[1] = Array2::zeros((19, 3));
    assert!(refused(&plant).contains("rows of all sites must be of the same times"));
    plant.rows[1] = Array2::zeros((20, 2));
    assert_eq!(refused(&plant), "C: rows of 2 sensors for a model of 3");
}

#[test]
fn stopping_keeps_what_was_learned() {
    let plant = Plant::new(600, &[3], 1);
    for settings in [
        small(),
        ModelSettings { federation: settings::Federation::Batched { rounds: 40 }, ..batched() },
    ] {
        let mut federation = federation(&plant, &settings, 1);
        let before = federation.weights();
        let outcome = federation.run(&mut |_| ControlFlow::Break(())).unwrap();
        assert!(outcome.stopped);
        assert_ne!(outcome.weights, before);
        assert_eq!(outcome.weights, federation.weights());
        assert_eq!(outcome.history.reached.len(), 1);
    }
}

#[test]
fn a_loss_without_bound_is_an_error_in_words() {
    let plant = Plant::new(600, &[3], 1);
    let settings = ModelSettings { optimiser: Optimiser::Sgd, eta1: 1e6, eta3: 1e6, ..small() };
    let error = federation(&plant, &settings, 1).run(&mut on).unwrap_err();
    assert!(matches!(error, FederationError::Diverged { .. }), "{error}");
    assert!(error.to_string().contains("learning_rate"), "{error}");
}

#[test]
fn without_feedback_nothing_is_sent_back_and_clients_learn_as_if_alone() {
    let plant = Plant::new(60, &[3, 4], 1);
    let mut apart = federation(&plant, &small(), 1);
    let apart = apart.run_without_feedback(&mut on).unwrap();
    let settings = ModelSettings { eta2: 0.0, ..small() };
    let together = federation(&plant, &settings, 1).run(&mut on).unwrap();
    assert_eq!(apart.weights.phi, together.weights.phi);
    let rounds = 2 * 59;
    assert_eq!(apart.history.bytes, rounds * 2 * 16);
    assert_eq!(releases(&apart), 2 * rounds, "states only");
}

/// What was released about the first client, in both directions.
fn releases(outcome: &Outcome) -> u64 {
    outcome.released[0].iter().map(|counted| counted.count).sum()
}

#[test]
fn a_gradient_of_no_weight_is_not_sent() {
    let plant = Plant::new(60, &[3, 4], 1);
    for settings in [small(), batched()] {
        let learn = |eta2| {
            let settings = ModelSettings { eta2, ..settings.clone() };
            federation(&plant, &settings, 1).run(&mut on).unwrap()
        };
        let (silent, answered) = (learn(0.0), learn(1.0));
        assert_eq!(silent.history.bytes_down, 0);
        assert_eq!(16 * releases(&silent), silent.history.bytes, "states only");
        assert_eq!(answered.history.bytes, silent.history.bytes + answered.history.bytes_down);
        assert_eq!(2 * answered.history.bytes_down, silent.history.bytes, "P of 2 P numbers");
    }
}

#[test]
fn noise_reaches_both_directions_with_the_size_that_was_asked_for() {
    let privacy = PrivacySettings {
        epsilon_c: Some(8.0),
        epsilon_a: Some(4.0),
        epsilon_g: Some(2.0),
        clip_state: 2.0,
        clip_gradient: 0.5,
        ..open()
    };
    let plant = Plant::new(10, &[3], 1);
    let mut federation = Federation::new(&plant.sites(), &small(), hooks(&privacy), 1).unwrap();
    let wide = |numbers: &Numbers| -> Vec<f64> { numbers.iter().map(|x| f64::from(*x)).collect() };
    let Federation { clients, server, wire, .. } = &mut federation;
    let client = &mut clients[0];
    client.estimate(3);
    // Bounds and noise are in deviations of x̂_c over the client's rows.
    let units = Units::of(2, client.chain_of_test().x_hats());
    let clean: Vec<f64> = client.chain_of_test().x_hat(2).iter().map(|&x| f64::from(x)).collect();
    let mut clean_units = Vec::new();
    units.standardise(&clean, &mut clean_units);
    let mut standardised = Vec::new();
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..4000 {
        wire.send(client.states_message(3).unwrap()).unwrap();
        let message = wire.receive().unwrap();
        let Content::States { x_c, x_a } = message.content() else { panic!("{message:?}") };
        units.standardise(&wide(x_c), &mut standardised);
        let clipped = clean_units.iter().map(|c| c.clamp(-2.0, 2.0));
        found[0].extend(standardised.iter().zip(clipped).map(|(x, c)| x - c));
        units.standardise(&wide(x_a), &mut standardised);
        found[1].extend_from_slice(&standardised);
        server.hear(&message);
        let gradient = server.gradient_message_of(0, 3, &[0.0, 0.0]).unwrap();
        let Order::Gradient(g) = gradient.order() else { panic!("{gradient:?}") };
        found[2].extend(wide(g));
    }
    // x_a is not known here beyond being the same each time, so each component loses its mean.
    let deviation = |values: &[f64]| {
        let n = values.len() as f64 / 2.0;
        let mean = [0, 1].map(|k| values.iter().skip(k).step_by(2).sum::<f64>() / n);
        let square =
            values.chunks_exact(2).map(|v| (v[0] - mean[0]).powi(2) + (v[1] - mean[1]).powi(2));
        (square.sum::<f64>() / (2.0 * n)).sqrt()
    };
    let released: Vec<Counted> =
        client.released().into_iter().chain([server.released(0)]).collect();
    for spend in released.iter().map(|counted| counted.spend) {
        let Spend::Gaussian { sigma, .. } = spend else { panic!("{spend:?}") };
        let near = |values: &Vec<f64>| (deviation(values) / sigma - 1.0).abs() < 0.05;
        assert!(found.iter().any(near), "σ {sigma}");
    }
    assert!(released.iter().all(|counted| counted.count == 4000));
    let shift = found[0].iter().sum::<f64>() / found[0].len() as f64;
    assert!(shift.abs() < 0.1 * deviation(&found[0]), "noise has no bias: {shift}");
}

#[test]
fn noise_on_states_is_noise_in_the_loss() {
    let plant = Plant::new(200, &[3, 3], 1);
    let loss = |epsilon| {
        let privacy = PrivacySettings { epsilon_c: epsilon, epsilon_a: epsilon, ..open() };
        let mut federation = Federation::new(&plant.sites(), &small(), hooks(&privacy), 1).unwrap();
        federation.run(&mut on).unwrap().history.reached.last().unwrap().server_loss
    };
    assert!(loss(Some(20.0)) > 2.0 * loss(None));
}

#[test]
fn every_variant_yields_residuals_of_every_client() {
    let plant = Plant::new(120, &[3, 2], 1);
    let settings = ModelSettings { epochs: 1, oracle_width: 8, measurement_width: 6, ..small() };
    let rows: Vec<_> = plant.rows.iter().map(|rows| rows.view()).collect();
    for variant in Variant::ALL {
        let fitted = variant.fit(&plant.sites(), &settings, hooks(&open()), 3, &mut on).unwrap();
        let residuals = fitted.residuals(&rows).unwrap();
        assert_eq!(residuals.len(), 2, "{}", variant.name());
        for (residuals, rows) in residuals.iter().zip(&rows) {
            assert_eq!(residuals.c.dim(), rows.dim(), "{}", variant.name());
            assert!(residuals.c.iter().all(|r| r.is_finite()), "{}", variant.name());
            assert_eq!(residuals.a.is_some(), matches!(fitted, Fitted::Augmented(..)));
        }
    }
}

#[test]
fn a_round_can_be_timed() {
    let us = timing::round_us(3, std::time::Duration::from_millis(5)).unwrap();
    assert!(us.is_finite() && us > 0.0);
}
