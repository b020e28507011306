use nalgebra::{DMatrix, DVector, SymmetricEigen};
use proptest::prelude::*;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::base::rng;
use crate::nn::ekf::Ekf;
use crate::nn::kernel::reference::{self, Networks, State, WholeNetworks};
use crate::nn::train;
use crate::nn::weights::{Conduct, FilterWeights, LstmFc, Mlp, OwnLagWeights};

fn paper_form(states: usize, sensors: usize, seed: u64) -> FilterWeights {
    let rng = &mut rng::stream(seed, 0);
    FilterWeights {
        transition: LstmFc::init(states, 16, states, 3.0, rng),
        measurement: Mlp::init(states, 32, sensors, 2.0, rng),
        loadings: None,
        q: 0.1,
        r: 0.1,
        conduct: Conduct::default(),
    }
}

fn residual_form(sensors: usize, seed: u64) -> FilterWeights {
    let rng = &mut rng::stream(seed, 0);
    let identity = |i| if i % (sensors + 1) == 0 { 1.0 } else { 0.1 };
    FilterWeights {
        transition: LstmFc::init(sensors, 16, sensors, 0.1, rng),
        measurement: Mlp::init(sensors, 32, sensors, 0.3, rng),
        loadings: Some((0..sensors * sensors).map(identity).collect()),
        q: 0.1,
        r: 0.1,
        conduct: Conduct::default(),
    }
}

fn own_lag(sensors: usize, lags: usize, seed: u64) -> OwnLagWeights {
    let mut rng = rng::stream(seed, 5);
    let mut draw = |scale: f32| -> f32 {
        let normal: f32 = StandardNormal.sample(&mut rng);
        scale * normal
    };
    OwnLagWeights {
        sensors,
        lags,
        weight: (0..sensors * lags * sensors).map(|_| draw(0.2)).collect(),
        bias: (0..sensors).map(|_| draw(0.1)).collect(),
    }
}

/// Every kind of model, with D sensors.
fn models(sensors: usize, seed: u64) -> Vec<VendorModel> {
    [
        ProprietaryWeights::Filter(paper_form(2, sensors, seed)),
        ProprietaryWeights::Filter(paper_form(3, sensors, seed)),
        ProprietaryWeights::Filter(residual_form(sensors, seed)),
        ProprietaryWeights::OwnLagFilter {
            front: own_lag(sensors, 2, seed),
            filter: paper_form(2, sensors, seed),
            scale: vec![0.5; sensors],
        },
        ProprietaryWeights::Linear(own_lag(sensors, 2, seed)),
    ]
    .iter()
    .map(|weights| VendorModel::new(weights).expect("weights of the right size"))
    .collect()
}

/// Slow waves with noise: one row per step.
fn measurements(sensors: usize, steps: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut rng = rng::stream(seed, 9);
    (0..steps)
        .map(|t| {
            (0..sensors)
                .map(|i| {
                    let noise: f32 = StandardNormal.sample(&mut rng);
                    (t as f32 * 0.05 + i as f32).sin() + 0.2 * noise
                })
                .collect()
        })
        .collect()
}

fn exact(values: &[f32]) -> DVector<f64> {
    DVector::from_iterator(values.len(), values.iter().map(|&v| f64::from(v)))
}

/// Runs kernel and textbook on the same measurements, some of them missing, and compares.
fn compare_with_the_textbook(weights: &FilterWeights, isa: Isa, steps: usize) {
    let (states, sensors) = (weights.states(), weights.sensors());
    let mut filter = Filter::new(weights, isa).expect("weights of the right size");
    let mut ekf = Ekf {
        model: Networks::new(weights),
        x: DVector::zeros(states),
        P: DMatrix::identity(states, states),
        Q: DMatrix::identity(states, states) * weights.q,
        R: DMatrix::identity(sensors, sensors) * weights.r,
    };
    for (t, mut y) in measurements(sensors, steps, 1).into_iter().enumerate() {
        match t % 50 {
            20..23 => y.fill(f32::NAN),
            30 => y[t % sensors] = f32::NAN,
            31 => y[t % sensors] = f32::INFINITY,
            _ => {}
        }
        ekf.predict();
        let x = ekf.x.clone();
        let y_hat = {
            use crate::nn::ekf::Model as _;
            ekf.model.h(&x)
        };
        ekf.update(&exact(&y)).expect("R is positive definite");
        filter.step(&y, None);
        let output = filter.output();
        let apart = |found: &[f32], exact_: &DVector<f64>| (exact(found) - exact_).amax();
        let what = format!("{} P={states} D={sensors} step {t}", isa.name());
        assert!(apart(&output.x, &x) < 1e-5, "x, {what}");
        assert!(apart(&output.x_hat, &ekf.x) < 1e-5, "x̂, {what}");
        assert!(apart(&output.y_hat, &y_hat) < 1e-5, "ŷ, {what}");
        assert!(apart(&output.e, &(&ekf.x - &x)) < 1e-5, "e, {what}");
        for (r, y) in output.r.iter().zip(&y) {
            assert_eq!(r.is_nan(), !y.is_finite(), "r, {what}");
        }
        let p = DMatrix::from_row_slice(states, states, filter.covariance());
        assert!((p - &ekf.P).amax() < 1e-5, "P, {what}");
    }
    assert_eq!(filter.recoveries(), 0);
}

#[test]
fn the_paper_form_agrees_with_the_textbook_filter_over_500_steps() {
    for isa in Isa::available() {
        compare_with_the_textbook(&paper_form(2, 4, 3), isa, 500);
        compare_with_the_textbook(&paper_form(2, 38, 4), isa, 500);
        compare_with_the_textbook(&paper_form(4, 9, 5), isa, 500);
        compare_with_the_textbook(&paper_form(1, 3, 5), isa, 500);
    }
}

#[test]
fn the_residual_form_with_as_many_states_as_sensors_agrees_with_the_textbook_filter() {
    for isa in Isa::available() {
        compare_with_the_textbook(&residual_form(9, 6), isa, 500);
        compare_with_the_textbook(&residual_form(2, 6), isa, 500);
    }
}

#[test]
fn a_filter_that_estimates_its_memory_agrees_with_the_textbook_filter_of_the_whole_state() {
    for mut weights in [paper_form(2, 4, 3), residual_form(3, 6)] {
        weights.conduct.memory_is_known = false;
        let (states, sensors) = (weights.states(), weights.sensors());
        let size = states + 2 * weights.transition.width;
        let only_states = |value: f64| {
            DMatrix::from_fn(size, size, |i, j| if i == j && i < states { value } else { 0.0 })
        };
        let mut filter = Filter::new(&weights, Isa::detect()).expect("weights of the right size");
        let mut ekf = Ekf {
            model: WholeNetworks(weights.clone()),
            x: DVector::zeros(size),
            P: only_states(1.0),
            Q: only_states(weights.q),
            R: DMatrix::identity(sensors, sensors) * weights.r,
        };
        let usual = FilterWeights { conduct: Conduct::default(), ..weights.clone() };
        let mut usual = Filter::new(&usual, Isa::detect()).expect("weights of the right size");
        let mut from_usual: f64 = 0.0;
        for (t, mut y) in measurements(sensors, 200, 1).into_iter().enumerate() {
            match t % 50 {
                20..23 => y.fill(f32::NAN),
                30 => y[t % sensors] = f32::NAN,
                _ => {}
            }
            ekf.predict();
            ekf.update(&exact(&y)).expect("R is positive definite");
            filter.step(&y, None);
            usual.step(&y, None);
            let (h, c) = filter.memory().units(weights.transition.width);
            let found = [&filter.output().x_hat[..], h, c].concat();
            let apart = (exact(&found) - &ekf.x).amax();
            assert!(apart < 1e-4, "{apart} at step {t}");
            let of_states = exact(&usual.output().x_hat) - ekf.x.rows(0, states);
            from_usual = from_usual.max(of_states.amax());
        }
        assert_eq!(filter.recoveries(), 0);
        assert!(from_usual > 3e-4, "the memory makes a difference of {from_usual}");
    }
}

#[test]
fn the_covariance_stays_symmetric_and_positive_definite_over_10_000_steps() {
    for weights in [paper_form(2, 4, 1), paper_form(5, 12, 1), residual_form(9, 1)] {
        let n = weights.states();
        let mut filter = Filter::new(&weights, Isa::detect()).expect("weights of the right size");
        for (t, mut y) in measurements(weights.sensors(), 10_000, 2).into_iter().enumerate() {
            if t % 97 < 5 {
                y.fill(f32::NAN);
            }
            filter.step(&y, None);
            let p = DMatrix::from_row_slice(n, n, filter.covariance());
            assert_eq!(p, p.transpose());
            if t % 50 == 0 {
                assert!(SymmetricEigen::new(p).eigenvalues.min() > 0.0, "step {t}");
            }
        }
        assert_eq!(filter.recoveries(), 0);
    }
}

#[test]
fn measurements_are_clipped_for_the_update_but_not_for_the_residual() {
    let weights = paper_form(2, 4, 8);
    let mut wild = Filter::new(&weights, Isa::detect()).expect("weights of the right size");
    let mut clipped = wild.clone();
    wild.step(&[80.0, 0.0, -1e9, 0.3], None);
    clipped.step(&[5.0, 0.0, -5.0, 0.3], None);
    assert_eq!(wild.output().x_hat, clipped.output().x_hat);
    assert!((wild.output().r[0] - clipped.output().r[0] - 75.0).abs() < 1e-4);
    assert!(wild.output().r[2] < -9e8);
}

#[test]
fn a_step_without_measurement_is_the_same_as_skipping_one() {
    for mut model in models(5, 3) {
        for y in measurements(5, 20, 3) {
            model.step(&y, None);
        }
        let mut skipped = model.clone();
        model.step(&[f32::NAN; 5], None);
        model.step(&[f32::INFINITY; 5], None);
        skipped.skip(2);
        assert!(model.output().r.iter().chain(&skipped.output().r).all(|r| r.is_nan()));
        assert_eq!(model.output().x_hat, skipped.output().x_hat);
        assert_eq!(model.output().x, model.output().x_hat);
        assert!(model.output().e.iter().all(|e| *e == 0.0));
        for y in measurements(5, 5, 4) {
            model.step(&y, None);
            skipped.step(&y, None);
            assert_eq!(model.output(), skipped.output());
        }
    }
}

#[test]
fn after_a_reset_or_a_very_long_gap_a_run_is_the_first_again() {
    for mut model in models(4, 2) {
        let mut fresh = model.clone();
        let mut gap = model.clone();
        for y in measurements(4, 30, 5) {
            model.step(&y, None);
            gap.step(&y, None);
        }
        model.reset();
        gap.skip(LONGEST_GAP + 1);
        for y in measurements(4, 10, 6) {
            model.step(&y, None);
            gap.step(&y, None);
            fresh.step(&y, None);
            assert_eq!(model.output(), fresh.output());
            assert_eq!(gap.output(), fresh.output());
        }
    }
}

#[test]
fn only_a_model_whose_states_are_a_summary_may_send_them() {
    let allowed: Vec<bool> = models(4, 1).iter().map(Proprietary::may_send_states).collect();
    assert_eq!(allowed, [true, true, false, true, false]);
}

#[test]
fn the_second_estimate_passes_through_the_same_functions_and_leaves_no_trace() {
    let weights = paper_form(2, 4, 11);
    let mut model = Filter::new(&weights, Isa::detect()).expect("weights of the right size");
    let mut alone = model.clone();
    let mut memory = State::zero(16);
    for y in measurements(4, 40, 7) {
        let before = model.output().x_hat.clone();
        let x_hat: Vec<f32> = before.iter().map(|x| x + 0.3).collect();
        let (mut x, mut y_hat) = ([0.0; 2], [0.0; 4]);
        model.step(&y, Some(SecondEstimate { x_hat: &x_hat, x: &mut x, y_hat: &mut y_hat }));
        alone.step(&y, None);
        assert_eq!(model.output(), alone.output());
        let expected = reference::lstm(&weights.transition, &memory, &exact(&x_hat)).0;
        assert!((exact(&x) - &expected).amax() < 1e-5);
        let expected = reference::mlp(&weights.measurement, &expected);
        assert!((exact(&y_hat) - expected).amax() < 1e-5);
        memory = reference::lstm(&weights.transition, &memory, &exact(&before)).1;
    }
}

#[test]
fn every_model_carries_its_own_estimate_to_its_own_prediction() {
    for mut model in models(5, 13) {
        for y in measurements(5, 30, 8) {
            let x_hat = model.output().x_hat.clone();
            let (mut x, mut y_hat) = (vec![0.0; x_hat.len()], vec![0.0; 5]);
            let first = model.output().r[0].is_nan();
            model.step(&y, Some(SecondEstimate { x_hat: &x_hat, x: &mut x, y_hat: &mut y_hat }));
            let output = model.output();
            if !first {
                let apart = |a: &[f32], b: &[f32]| (exact(a) - exact(b)).amax();
                assert!(apart(&x, &output.x) < 1e-6);
                assert!(apart(&y_hat, &output.y_hat) < 1e-6);
            }
        }
    }
}

#[test]
fn the_linear_model_is_the_sum_of_its_lags_and_predicts_what_is_missing() {
    let weights = OwnLagWeights {
        sensors: 2,
        lags: 2,
        weight: vec![0.5, 0.0, 0.25, 0.0, 0.0, 1.0, 0.0, -0.5],
        bias: vec![1.0, 0.0],
    };
    let mut model = Linear::new(&weights, Isa::detect()).expect("weights of the right size");
    model.step(&[2.0, 4.0], None);
    assert_eq!(model.output().y_hat, [1.0, 0.0]);
    // The first sample stands for those before it: 1 + (0.5 + 0.25)·2 and (1 − 0.5)·4.
    model.step(&[3.0, f32::NAN], None);
    assert_eq!(model.output().y_hat, [2.5, 2.0]);
    assert!((model.output().r[0] - 0.5).abs() < 1e-6);
    assert!(model.output().r[1].is_nan());
    assert_eq!(model.output().x_hat, [3.0, 2.0]);
    model.step(&[0.0, 0.0], None);
    assert_eq!(model.output().y_hat, [1.0 + 1.5 + 0.5, 2.0 - 2.0]);
}

#[test]
fn an_impossible_covariance_is_replaced_and_counted() {
    let mut weights = residual_form(3, 1);
    // An explosive transition: P grows by a factor of about 10¹² per step without measurements.
    weights.transition.fc_weight.iter_mut().for_each(|w| *w *= 1e7);
    weights.transition.fc_bias.fill(0.0);
    let mut filter = Filter::new(&weights, Isa::detect()).expect("weights of the right size");
    filter.skip(50);
    assert!(filter.recoveries() > 0);
    assert!(filter.output().x_hat.iter().all(|x| x.is_finite()));
    assert!(filter.covariance().iter().all(|p| p.is_finite()));
    let counted = filter.recoveries();
    filter.reset();
    assert_eq!(filter.recoveries(), counted, "a reset hides nothing");
}

#[test]
fn weights_that_do_not_fit_together_are_refused() {
    let good = paper_form(2, 4, 1);
    let other = FilterWeights { measurement: paper_form(3, 4, 1).measurement, ..good.clone() };
    assert!(matches!(Filter::new(&other, Isa::detect()), Err(WeightsError::Dimension { .. })));
    let silent = FilterWeights { r: 0.0, ..good.clone() };
    assert_eq!(
        Filter::new(&silent, Isa::detect()).err(),
        Some(WeightsError::Noise { what: "r", found: 0.0 })
    );
    let narrow = FilterWeights { loadings: Some(vec![1.0; 7]), ..good.clone() };
    assert!(
        matches!(Filter::new(&narrow, Isa::detect()), Err(WeightsError::Size { tensor, .. }) if tensor == "loadings")
    );
    assert!(OwnLagFilter::new(&own_lag(5, 2, 1), &good, &[1.0; 5], Isa::detect()).is_err());
    assert!(
        OwnLagFilter::new(&own_lag(4, 2, 1), &good, &[1.0, 1.0, 1.0, -1.0], Isa::detect()).is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_measurement_ever_puts_a_number_that_is_none_into_state_or_prediction(
        wild in prop::collection::vec(prop::num::f32::ANY, 30),
        seed in 0_u64..1000,
    ) {
        for mut model in models(5, seed) {
            let calm = measurements(5, 6, seed);
            for y in wild.chunks_exact(5).chain(calm.iter().map(Vec::as_slice)) {
                model.step(y, None);
                let output = model.output();
                let numbers = [&output.y_hat, &output.x, &output.x_hat, &output.e];
                prop_assert!(numbers.into_iter().flatten().all(|v| v.is_finite()));
                for (r, y) in output.r.iter().zip(y) {
                    prop_assert_eq!(r.is_finite(), y.is_finite());
                }
            }
        }
    }
}

/// The filter as candle defines it, with the gains of the training code, beside the kernel's.
fn compare_with_candle(weights: &FilterWeights, steps: usize) -> candle_core::Result<f32> {
    use crate::nn::network::FilterNetwork;
    use crate::nn::train::filter::gains;
    use crate::nn::train::test_support::plant;
    use crate::nn::train::window::Batch;
    use candle_core::{Device, Tensor};

    let (sensors, states) = (weights.sensors(), weights.states());
    let rows = plant(steps, sensors, 9);
    let batch =
        Batch { steps, windows: 1, sensors, values: rows.iter().copied().collect::<Vec<f32>>() };
    let gains = gains(weights, &batch);
    let network = FilterNetwork::running(weights)?;
    let mut memory = network.zero_state(1)?;
    let mut x_hat = Tensor::zeros((1, states), candle_core::DType::F32, &Device::Cpu)?;
    let mut model = Filter::new(weights, Isa::detect()).expect("weights that fit");
    let mut worst = 0.0_f32;
    for (t, row) in rows.outer_iter().enumerate() {
        let y: Vec<f32> = row.to_vec();
        let (x, next) = network.transition(&x_hat, &memory)?;
        memory = next;
        let y_hat: Vec<f32> = network.measurement(&x)?.flatten_all()?.to_vec1()?;
        let x: Vec<f32> = x.flatten_all()?.to_vec1()?;
        let estimate: Vec<f32> = (0..states)
            .map(|p| {
                let correction = (0..sensors)
                    .map(|d| gains[t][p * sensors + d] * (y[d].clamp(-5.0, 5.0) - y_hat[d]));
                x[p] + correction.sum::<f32>()
            })
            .collect();
        x_hat = Tensor::from_vec(estimate.clone(), (1, states), &Device::Cpu)?;
        model.step(&y, None);
        let output = model.output();
        let pairs = output.y_hat.iter().zip(&y_hat).chain(output.x_hat.iter().zip(&estimate));
        worst = pairs.fold(worst, |worst, (a, b)| worst.max((a - b).abs()));
    }
    Ok(worst)
}

#[test]
fn the_kernel_runs_the_filter_that_candle_defines() {
    for weights in [paper_form(2, 4, 3), residual_form(9, 3)] {
        let worst = compare_with_candle(&weights, 500).expect("candle runs");
        assert!(worst < 1e-5, "{worst}");
    }
}

#[test]
fn every_conduct_runs_alike_in_training_and_in_streaming() {
    let mut rows = train::test_support::plant(400, 3, 4);
    rows[[60, 1]] = 30.0;
    let weights = train::test_support::small_filter(3, false, 1);
    let run = |conduct: Conduct| -> (Vec<f32>, Vec<f32>) {
        let weights = FilterWeights { conduct, ..weights.clone() };
        let mut filter = Filter::new(&weights, Isa::detect()).expect("sound weights");
        let mut streamed = Vec::new();
        for row in rows.outer_iter() {
            filter.step(&row.to_vec(), None);
            streamed.extend_from_slice(&filter.output().r);
        }
        let trained = train::filter::innovations(&weights, &rows.view());
        (streamed, trained.iter().copied().collect())
    };
    let apart =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let usual = run(Conduct::default()).0;
    for conduct in [
        Conduct::default(),
        Conduct { update_clip: f32::INFINITY, ..Conduct::default() },
        Conduct { has_memory: false, ..Conduct::default() },
        Conduct { jacobian_at_prediction: false, ..Conduct::default() },
    ] {
        let (streamed, trained) = run(conduct);
        let difference = apart(&streamed, &trained);
        assert!(difference < 2e-3, "{conduct:?}: {difference}");
        let effect = apart(&streamed, &usual);
        assert_eq!(effect > 1e-3, conduct != Conduct::default(), "{conduct:?}: {effect}");
    }
}
