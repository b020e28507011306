use candle_core::{Device, Tensor};
use candle_nn::rnn::LSTMState;
use proptest::prelude::*;
use rand_distr::{Distribution as _, StandardNormal};

use super::*;
use crate::base::rng;
use crate::nn::network::{LstmNetwork, Variables};
use crate::nn::weights::Parameters as _;

/// Adam on plain numbers, as published, in double precision; one number per weight of torch's form.
struct ReferenceAdam {
    rate: f64,
    round: i32,
    moments: Vec<(f64, f64)>,
}

impl ReferenceAdam {
    const BETA_1: f64 = 0.9;
    const BETA_2: f64 = 0.999;
    const EPSILON: f64 = 1e-8;

    fn step(&mut self, weights: &mut LstmFc, gradient: &LstmFc) {
        self.round += 1;
        let count = gradient.slices().iter().map(|s| s.len()).sum();
        self.moments.resize(count, (0.0, 0.0));
        let (b_1, b_2) = (1.0 - Self::BETA_1.powi(self.round), 1.0 - Self::BETA_2.powi(self.round));
        let gradient = gradient.slices().into_iter().flatten();
        let weights = weights.slices_mut().into_iter().flatten();
        for ((w, &g), (m, v)) in weights.zip(gradient).zip(&mut self.moments) {
            let g = f64::from(g);
            *m = Self::BETA_1 * *m + (1.0 - Self::BETA_1) * g;
            *v = Self::BETA_2 * *v + (1.0 - Self::BETA_2) * g * g;
            *w -= (self.rate * (*m / b_1) / ((*v / b_2).sqrt() + Self::EPSILON)) as f32;
        }
    }
}

/// The same weights with both biases in the first.
fn merged(weights: &LstmFc) -> LstmFc {
    let mut merged = weights.clone();
    for (a, b) in merged.bias_ih.iter_mut().zip(&mut merged.bias_hh) {
        *a += std::mem::take(b);
    }
    merged
}

fn worst_difference(a: &LstmFc, b: &LstmFc) -> f32 {
    let pairs = a.slices().into_iter().flatten().zip(b.slices().into_iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn some_rounds_of_learning_are_those_of_candle_with_its_memory_detached(
        inputs in 1_usize..11,
        width in 1_usize..20,
        outputs in 1_usize..10,
        adam in any::<bool>(),
        seed in any::<u64>(),
        isa in prop::sample::select(Isa::available().collect::<Vec<_>>()),
    ) {
        let rng = &mut rng::stream(seed, 0);
        let mut weights = LstmFc::init(inputs, width, outputs, 1.0, rng);
        let descent = if adam { Descent::Adam(3e-3) } else { Descent::Sgd(1e-2) };
        let mut ours = Learner::with_isa(&weights, descent, isa).unwrap();
        let mut theirs = ReferenceAdam { rate: 3e-3, round: 0, moments: Vec::new() };
        let mut memory = LstmNetwork::running(&weights).unwrap().zero_state(1).unwrap();
        let mut draw = |n: usize| -> Vec<f32> {
            (0..n).map(|_| StandardNormal.sample(&mut *rng)).collect()
        };
        for _ in 0..12 {
            let (x, goal) = (draw(inputs), draw(outputs));
            let found = ours.forward(&x).to_vec();
            let d_out: Vec<f32> = found.iter().zip(&goal).map(|(y, g)| 2.0 * (y - g)).collect();
            ours.learn(&d_out, 1.0);
            let variables = Variables::new(&weights).unwrap();
            let network = LstmNetwork::new(weights.sizes(), &variables.builder()).unwrap();
            let x = Tensor::from_vec(x, (1, inputs), &Device::Cpu).unwrap();
            let (out, next) = network.step(&x, &memory).unwrap();
            memory = LSTMState::new(next.h.detach(), next.c.detach());
            let goal = Tensor::from_vec(goal, (1, outputs), &Device::Cpu).unwrap();
            let loss = (&out - goal).unwrap().sqr().unwrap().sum_all().unwrap();
            for (a, b) in found.iter().zip(out.flatten_all().unwrap().to_vec1::<f32>().unwrap()) {
                prop_assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{} {}", a, b);
            }
            let gradient = variables.gradient(&loss.backward().unwrap(), &weights).unwrap();
            if adam {
                theirs.step(&mut weights, &gradient);
            } else {
                let gradient = gradient.slices().into_iter().flatten();
                let weights = weights.slices_mut().into_iter().flatten();
                weights.zip(gradient).for_each(|(w, g)| *w -= 1e-2 * g);
            }
        }
        // Adam magnifies the rounding of gradients near zero, hence the wider bound.
        let bound = if adam { 2e-3 } else { 1e-5 };
        let difference = worst_difference(&ours.weights(), &merged(&weights));
        prop_assert!(difference < bound, "{}", difference);
    }
}

#[test]
fn weights_come_back_as_they_went_in() {
    for (inputs, width, outputs) in [(1, 1, 1), (9, 16, 2), (6, 64, 6), (3, 13, 11)] {
        let weights = LstmFc::init(inputs, width, outputs, 1.0, &mut rng::stream(1, 0));
        let learner = Learner::new(&weights, Descent::Adam(1e-3)).unwrap();
        assert_eq!(learner.weights(), merged(&weights));
    }
}

#[test]
fn a_pace_of_zero_changes_nothing_and_forgetting_starts_anew() {
    let weights = LstmFc::init(3, 5, 2, 1.0, &mut rng::stream(1, 0));
    let mut learner = Learner::new(&weights, Descent::Adam(1e-3)).unwrap();
    let first = learner.forward(&[0.1, 0.2, 0.3]).to_vec();
    learner.learn(&[1.0, -1.0], 0.0);
    assert_eq!(learner.weights(), merged(&weights));
    assert_ne!(learner.forward(&[0.1, 0.2, 0.3]), first);
    learner.forget();
    assert_eq!(learner.forward(&[0.1, 0.2, 0.3]), first);
}

#[test]
fn weights_of_the_wrong_size_are_refused() {
    let mut weights = LstmFc::init(3, 5, 2, 1.0, &mut rng::stream(1, 0));
    weights.bias_hh.pop();
    assert!(Learner::new(&weights, Descent::Sgd(0.1)).is_err());
}
