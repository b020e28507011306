use super::*;
use crate::base::rng;
use rand_distr::{Distribution as _, StandardNormal};

/// Residuals that repeat 0.8 of the last one, on two sensors.
fn coloured(steps: usize, seed: u64) -> Recording {
    let mut rng = rng::stream(seed, 0);
    let mut recording = Recording::new(2, 1);
    let mut r = [0.0f32; 2];
    for t in 0..steps {
        for r in &mut r {
            let noise: f64 = StandardNormal.sample(&mut rng);
            *r = 0.8 * *r + noise as f32;
        }
        let y_hat = [(t as f32 * 0.1).sin(), 0.0];
        let y = [y_hat[0] + r[0], y_hat[1] + r[1]];
        recording.push(Sample { y: &y, y_hat: &y_hat, r: &r, x_hat: &[r[0] * 0.5], inputs: &[] });
    }
    recording
}

fn whitened(whitening: &Whitening, recording: &Recording) -> Vec<f32> {
    let mut past = whitening.past();
    let mut r_w = vec![0.0; 2];
    let mut first = Vec::new();
    for (starts, sample) in recording.iter() {
        if starts {
            Whitening::forget(&mut past);
        }
        whitening.step(&mut past, sample, &mut r_w);
        first.push(r_w[0]);
    }
    first
}

fn lag_one(values: &[f32]) -> f64 {
    let (mut cross, mut square) = (0.0, 0.0);
    for pair in values.windows(2) {
        cross += f64::from(pair[0]) * f64::from(pair[1]);
        square += f64::from(pair[0]).powi(2);
    }
    cross / square
}

#[test]
fn what_the_past_explains_is_gone_on_data_that_was_not_fitted() {
    let whitening = Whitening::fit(&coloured(3000, 1), 10);
    let fresh = coloured(3000, 2);
    let raw: Vec<f32> = fresh.iter().map(|(_, s)| s.r[0]).collect();
    let white = whitened(&whitening, &fresh);
    assert!(lag_one(&raw) > 0.7, "{}", lag_one(&raw));
    assert!(lag_one(&white[10..]).abs() < 0.06, "{}", lag_one(&white[10..]));
}

#[test]
fn a_missing_value_stays_missing_and_harms_no_later_step() {
    let whitening = Whitening::fit(&coloured(2000, 1), 10);
    let mut past = whitening.past();
    let mut r_w = [0.0; 2];
    let nan = [f32::NAN; 2];
    whitening.step(
        &mut past,
        Sample { y: &nan, y_hat: &nan, r: &nan, x_hat: &[f32::NAN], inputs: &[] },
        &mut r_w,
    );
    assert!(r_w.iter().all(|v| v.is_nan()));
    let one = [1.0; 2];
    whitening.step(
        &mut past,
        Sample { y: &one, y_hat: &one, r: &one, x_hat: &[1.0], inputs: &[] },
        &mut r_w,
    );
    assert!(r_w.iter().all(|v| v.is_finite()));
}

#[test]
fn a_new_run_knows_nothing_of_the_one_before() {
    let whitening = Whitening::fit(&coloured(2000, 1), 10);
    let fresh = coloured(200, 5);
    let mut joined = coloured(100, 4);
    joined.new_run();
    for (_, sample) in fresh.iter() {
        joined.push(sample);
    }
    assert_eq!(whitened(&whitening, &joined)[100..], whitened(&whitening, &fresh)[..]);
}

#[test]
fn no_nominal_data_leaves_residuals_as_they_are() {
    let whitening = Whitening::fit(&Recording::new(2, 1), 0);
    let fresh = coloured(20, 3);
    let raw: Vec<f32> = fresh.iter().map(|(_, s)| s.r[0]).collect();
    assert_eq!(whitened(&whitening, &fresh), raw);
}

#[test]
fn what_a_known_input_does_is_no_surprise_and_without_it_is_one() {
    // A set point that jumps now and then and moves the first sensor one step later.
    let recording = |inputs: usize, seed: u64| {
        let mut rng = rng::stream(seed, 0);
        let mut recording = Recording::new(1, 1).with_inputs(inputs);
        let (mut set, mut before) = (0.0f32, 0.0f32);
        for t in 0..3000 {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let jump: f64 = StandardNormal.sample(&mut rng);
            let r = [2.0 * (before - set) + 0.2 * noise as f32];
            before = set;
            if t % 20 == 0 {
                set = jump as f32;
            }
            let v = [set];
            let (y, y_hat) = (r, [0.0]);
            let inputs = &v[..inputs];
            recording.push(Sample { y: &y, y_hat: &y_hat, r: &r, x_hat: &[0.0], inputs });
        }
        recording
    };
    let largest = |inputs| {
        let whitening = Whitening::fit(&recording(inputs, 1), 10);
        let mut past = whitening.past();
        let mut r_w = [0.0];
        let mut largest = 0.0f32;
        for (_, sample) in recording(inputs, 2).iter() {
            whitening.step(&mut past, sample, &mut r_w);
            largest = largest.max(r_w[0].abs());
        }
        largest
    };
    assert!(largest(1) < 1.5 && largest(0) > 3.0, "{} {}", largest(1), largest(0));
}
