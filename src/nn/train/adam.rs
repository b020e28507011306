//! Adam (Kingma and Ba, 2015) on plain numbers, with a bound on the whole gradient's norm.

use crate::nn::weights::{FilterWeights, LstmFc, Mlp};

/// Weights as a fixed sequence of slices; a gradient has the same type as what it is of.
pub(crate) trait Parameters: Clone {
    /// What may be trained, in a fixed order.
    fn slices(&self) -> Vec<&[f32]>;

    /// The same, to be changed.
    fn slices_mut(&mut self) -> Vec<&mut [f32]>;
}

impl Parameters for LstmFc {
    fn slices(&self) -> Vec<&[f32]> {
        let Self { weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias, .. } = self;
        vec![weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f32]> {
        let Self { weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias, .. } = self;
        vec![weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias]
    }
}

impl Parameters for Mlp {
    fn slices(&self) -> Vec<&[f32]> {
        vec![&self.weight_1, &self.bias_1, &self.weight_2, &self.bias_2]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f32]> {
        vec![&mut self.weight_1, &mut self.bias_1, &mut self.weight_2, &mut self.bias_2]
    }
}

/// The loadings are the vendor's and stay as they are.
impl Parameters for FilterWeights {
    fn slices(&self) -> Vec<&[f32]> {
        let mut slices = self.transition.slices();
        slices.extend(self.measurement.slices());
        slices
    }

    fn slices_mut(&mut self) -> Vec<&mut [f32]> {
        let mut slices = self.transition.slices_mut();
        slices.extend(self.measurement.slices_mut());
        slices
    }
}

/// Bound on the norm of the gradient of all weights together.
const NORM: f64 = 1.0;

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f32 = 1e-8;

/// The optimiser's memory of one set of weights.
#[derive(Debug, Clone)]
pub(crate) struct Adam {
    learning_rate: f64,
    step: i32,
    /// First and second moment of each weight.
    moments: Vec<(f32, f32)>,
}

impl Adam {
    /// For `weights` that have not been trained yet.
    pub(crate) fn new(weights: &impl Parameters, learning_rate: f64) -> Self {
        let count = weights.slices().iter().map(|s| s.len()).sum();
        Self { learning_rate, step: 0, moments: vec![(0.0, 0.0); count] }
    }

    /// One step against `gradient`, scaled to a norm of at most 1. Returns the norm before that,
    /// and changes nothing when it is not finite.
    pub(crate) fn step<W: Parameters>(&mut self, weights: &mut W, gradient: &W) -> f64 {
        let gradient = gradient.slices();
        let square: f64 =
            gradient.iter().flat_map(|s| s.iter()).map(|g| f64::from(*g).powi(2)).sum();
        let norm = square.sqrt();
        if !norm.is_finite() {
            return norm;
        }
        let scale = (NORM / norm.max(NORM)) as f32;
        self.step += 1;
        let rate = (self.learning_rate / (1.0 - BETA_1.powi(self.step))) as f32;
        let correction = (1.0 / (1.0 - BETA_2.powi(self.step))) as f32;
        let (beta_1, beta_2) = (BETA_1 as f32, BETA_2 as f32);
        let gradient = gradient.into_iter().flatten();
        let weights = weights.slices_mut().into_iter().flatten();
        for ((w, g), (m, v)) in weights.zip(gradient).zip(&mut self.moments) {
            let g = g * scale;
            *m = beta_1 * *m + (1.0 - beta_1) * g;
            *v = beta_2 * *v + (1.0 - beta_2) * g * g;
            *w -= rate * *m / ((*v * correction).sqrt() + EPSILON);
        }
        norm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use candle_core::{DType, Device, Tensor, Var};
    use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};

    #[test]
    fn it_takes_the_steps_candle_takes() {
        let mut rng = rng::stream(3, 0);
        let mut weights = Mlp::init(2, 4, 1, 1.0, &mut rng);
        // Small enough that the bound on the norm plays no part.
        let gradient = Mlp::init(2, 4, 1, 0.1, &mut rng);
        let mut adam = Adam::new(&weights, 1e-2);
        let tensor = |s: &[f32]| Var::from_slice(s, s.len(), &Device::Cpu).unwrap();
        let vars: Vec<Var> = weights.slices().into_iter().map(tensor).collect();
        let settings = ParamsAdamW { lr: 1e-2, weight_decay: 0.0, ..ParamsAdamW::default() };
        let mut theirs = AdamW::new(vars.clone(), settings).unwrap();
        for k in 0..20 {
            let size = 0.2 * (k as f32).cos();
            let mut g = gradient.clone();
            g.slices_mut().into_iter().flatten().for_each(|v| *v *= size);
            // ∇(w · g) = g.
            let mut loss = Tensor::zeros((), DType::F32, &Device::Cpu).unwrap();
            for (w, g) in vars.iter().zip(g.slices()) {
                let g = Tensor::from_slice(g, g.len(), &Device::Cpu).unwrap();
                loss = (loss + (w.as_tensor() * g).unwrap().sum_all().unwrap()).unwrap();
            }
            assert!(adam.step(&mut weights, &g) < NORM);
            theirs.backward_step(&loss).unwrap();
        }
        for (ours, theirs) in weights.slices().into_iter().zip(&vars) {
            for (a, b) in ours.iter().zip(theirs.to_vec1::<f32>().unwrap()) {
                assert!((a - b).abs() < 1e-6, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_large_gradient_is_cut_and_a_broken_one_refused() {
        let mut weights = Mlp::init(2, 4, 1, 1.0, &mut rng::stream(3, 0));
        let before = weights.clone();
        let mut gradient = weights.clone();
        gradient.slices_mut().into_iter().flatten().for_each(|v| *v *= 1e6);
        let mut adam = Adam::new(&weights, 1e-2);
        assert!(adam.step(&mut weights, &gradient) > 1e5);
        let small: f64 = adam.moments.iter().map(|(m, _)| f64::from(*m).powi(2)).sum();
        assert!((small.sqrt() - 0.1).abs() < 1e-4, "(1 − β1) of a gradient of norm 1: {small}");
        assert_ne!(weights, before);
        gradient.bias_1[0] = f32::NAN;
        let before = weights.clone();
        assert!(adam.step(&mut weights, &gradient).is_nan());
        assert_eq!(weights, before);
    }
}
