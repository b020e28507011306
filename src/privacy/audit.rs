//! Attacks on every mechanism: a million draws on either side of a pair of neighbours must not
//! show more than was claimed.
//!
//! For an event E, (ε, δ) claims P(E) ≤ e^ε·P'(E) + δ. With counts instead of probabilities the
//! excess P(E) − e^ε·P'(E) − δ is estimated with a standard error that follows from the
//! binomial; an excess of more than `SIGMAS` standard errors would happen by chance once in
//! seven million tests. Each test also shows that the attack has teeth: a claim a little
//! smaller than the true one is caught.

use super::mechanism::{Clip, Gaussian};
use super::memory::FilterMemory;
use super::randomness::Randomness;
use super::release::{Estimate, Flag, Symbol};
use super::response::Response;
use super::send_policy::Memoised;
use super::sparse_vector::{Look, Watch};
use crate::session::privacy::Sigma;

const DRAWS: u32 = 1_000_000;
const SIGMAS: f64 = 5.2;

/// By how many standard errors the counts of an event break the claim.
fn excess(here: u32, there: u32, draws: u32, epsilon: f64, delta: f64) -> f64 {
    let n = f64::from(draws);
    let (p, q) = (f64::from(here) / n, f64::from(there) / n);
    // One more success on each side keeps the error of an event never seen from being zero.
    let variance = |count: u32| {
        let share = (f64::from(count) + 1.0) / (n + 2.0);
        share * (1.0 - share) / n
    };
    let error = (variance(here) + (2.0 * epsilon).exp() * variance(there)).sqrt();
    (p - epsilon.exp() * q - delta) / error
}

/// The worst over all events, in both directions.
fn worst(counts: &[(u32, u32)], draws: u32, epsilon: f64, delta: f64) -> f64 {
    counts
        .iter()
        .flat_map(|&(a, b)| [(a, b), (b, a), (draws - a, draws - b), (draws - b, draws - a)])
        .map(|(here, there)| excess(here, there, draws, epsilon, delta))
        .fold(f64::NEG_INFINITY, f64::max)
}

/// The events {value > t} for a range of t, as counts of two samples.
fn tails(here: &mut [f64], there: &mut [f64]) -> Vec<(u32, u32)> {
    here.sort_by(f64::total_cmp);
    there.sort_by(f64::total_cmp);
    let above =
        |sorted: &[f64], t: f64| (sorted.len() - sorted.partition_point(|x| *x <= t)) as u32;
    let n = here.len();
    (1..200)
        .map(|i| here[i * n / 200])
        .chain((1..20).map(|i| here[n - 1 - i * i * 50]))
        .map(|t| (above(here, t), above(there, t)))
        .collect()
}

#[test]
fn the_gaussian_mechanism_keeps_its_claim() {
    let (epsilon, delta) = (1.0, 1e-2);
    let clip = Clip::Box { bound: 1.0, dimension: 1 };
    let mechanism = Gaussian::new(clip, Sigma::Analytic, epsilon, delta).unwrap();
    let mut random = Randomness::seeded(41, 0);
    let mut draw = |value: f64| -> Vec<f64> {
        (0..DRAWS)
            .map(|_| {
                let values = [value];
                let noised = mechanism.noised(&Estimate::of_state(&values), &mut random).unwrap();
                noised.value.as_slice()[0]
            })
            .collect()
    };
    // Far outside the bound on either side: clipping must bring them within the sensitivity.
    let (mut here, mut there) = (draw(1e6), draw(-1e6));
    let counts = tails(&mut here, &mut there);
    let found = worst(&counts, DRAWS, epsilon, delta);
    assert!(found < SIGMAS, "{found} standard errors above the claim");
    let caught = worst(&counts, DRAWS, epsilon, 0.7 * delta);
    assert!(caught > SIGMAS, "a false claim is only {caught} standard errors off");
}

#[test]
fn a_clipped_gradient_keeps_its_claim_along_its_own_direction() {
    let (epsilon, delta) = (2.0, 1e-2);
    let clip = Clip::Ball { bound: 1.0 };
    let mechanism = Gaussian::new(clip, Sigma::Analytic, epsilon, delta).unwrap();
    let mut random = Randomness::seeded(42, 0);
    let draws = DRAWS;
    let mut draw = |sign: f64| -> Vec<f64> {
        (0..draws)
            .map(|_| {
                let gradient = [sign * 30.0, sign * 40.0];
                let noised =
                    mechanism.noised(&Estimate::of_gradient(&gradient), &mut random).unwrap();
                let values = noised.value.as_slice();
                0.6 * values[0] + 0.8 * values[1]
            })
            .collect()
    };
    let (mut here, mut there) = (draw(1.0), draw(-1.0));
    let found = worst(&tails(&mut here, &mut there), draws, epsilon, delta);
    assert!(found < SIGMAS, "{found} standard errors above the claim");
}

#[test]
fn randomised_response_keeps_its_claim() {
    for (source, epsilon) in [(0, 0.1), (1, 1.0), (2, 4.0)] {
        let response = Response::binary(epsilon).unwrap();
        let mut random = Randomness::seeded(43, source);
        let mut ones = |raised| -> u32 {
            (0..DRAWS)
                .map(|_| u32::from(response.flag(Flag(raised), &mut random).unwrap().value.0))
                .sum()
        };
        let counts = [(ones(true), ones(false))];
        let found = worst(&counts, DRAWS, epsilon, 0.0);
        assert!(found < SIGMAS, "ε {epsilon}: {found} standard errors above the claim");
        let caught = worst(&counts, DRAWS, 0.8 * epsilon, 0.0);
        assert!(caught > SIGMAS, "ε {epsilon}: a false claim is only {caught} off");
    }
}

#[test]
fn graded_symbols_keep_their_claim_for_every_pair() {
    let (epsilon, symbols) = (1.5, 5);
    let response = Response::new(epsilon, symbols).unwrap();
    let mut random = Randomness::seeded(44, 0);
    let draws = DRAWS;
    let mut heard = vec![[0_u32; 5]; 5];
    for (told, counts) in heard.iter_mut().enumerate() {
        for _ in 0..draws {
            let symbol = response.symbol(Symbol(told as u8), &mut random).unwrap();
            counts[usize::from(symbol.value.0)] += 1;
        }
    }
    for one in &heard {
        for other in &heard {
            let counts: Vec<_> = one.iter().copied().zip(other.iter().copied()).collect();
            let found = worst(&counts, draws, epsilon, 0.0);
            assert!(found < SIGMAS, "{found} standard errors above the claim");
        }
    }
    let counts = [(heard[0][0], heard[1][0])];
    assert!(worst(&counts, draws, 0.95 * epsilon, 0.0) > SIGMAS);
}

#[test]
fn a_watch_keeps_its_claim_about_when_it_raises() {
    let epsilon = 1.0;
    let watch = Watch::new(epsilon, 1.0, 0.25, 6.0, &FilterMemory::NONE).unwrap();
    let mut random = Randomness::seeded(45, 0);
    let draws = DRAWS;
    let steps = 8;
    // Neighbours: the first score is as high as clipping allows, or as low.
    let mut raised_at = |first: f64| -> Vec<f64> {
        (0..draws)
            .map(|_| {
                let mut armed = watch.arm(&mut random).unwrap().value;
                for step in 0..steps {
                    let score = if step == 0 { first } else { 1.0 };
                    armed = match armed.look(score, &mut random).unwrap() {
                        Look::Quiet(armed) => armed,
                        Look::Raised(_) => return f64::from(step),
                    };
                }
                f64::from(steps)
            })
            .collect()
    };
    let (high, low) = (raised_at(1e3), raised_at(-1e3));
    let count = |times: &[f64], t: i32| {
        times.iter().filter(|x| (**x - f64::from(t)).abs() < 0.5).count() as u32
    };
    let mut counts: Vec<_> = (0..=steps).map(|t| (count(&high, t), count(&low, t))).collect();
    let (mut high, mut low) = (high, low);
    counts.extend(tails(&mut high, &mut low));
    let found = worst(&counts, draws, epsilon, 0.0);
    assert!(found < SIGMAS, "{found} standard errors above the claim");
}

#[test]
fn a_remembered_answer_keeps_its_lifetime_claim() {
    let (permanent, report) = (Response::binary(1.0).unwrap(), Response::binary(3.0).unwrap());
    let mut random = Randomness::seeded(46, 0);
    let draws = DRAWS;
    // The majority of fifteen reports finds the permanent answer nearly every time.
    let mut majority = |symbol: u8| -> u32 {
        (0..draws)
            .filter(|_| {
                let mut memo = Memoised::new(permanent, report).unwrap();
                let ones: u32 = (0..15)
                    .map(|_| u32::from(memo.symbol(Symbol(symbol), &mut random).unwrap().value.0))
                    .sum();
                ones > 7
            })
            .count() as u32
    };
    let counts = [(majority(1), majority(0))];
    let found = worst(&counts, draws, permanent.epsilon(), 0.0);
    assert!(found < SIGMAS, "{found} standard errors above the claim");
    assert!(worst(&counts, draws, 0.8 * permanent.epsilon(), 0.0) > SIGMAS);
}
