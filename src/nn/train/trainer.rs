//! Weights in training by candle: its variables and one of candle-nn's optimisers.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer as _, ParamsAdamW, SGD, VarBuilder};

use super::adam::NORM;
use super::optimise::Step;
use crate::nn::network::{Sizes, Variables};
use crate::nn::weights::{LstmFc, Parameters};

/// Weights, their variables and what moves them.
pub(crate) struct Trainer<W> {
    weights: W,
    variables: Variables,
    optimiser: Optimiser,
    /// Factors of the gradient, one tensor per variable; none where all of it counts.
    mask: Option<Vec<Tensor>>,
}

/// AdamW without weight decay is Adam. Its gradient has a bounded norm; that of plain descent has none.
enum Optimiser {
    Adam(AdamW),
    Sgd(SGD),
}

impl<W: Parameters> Trainer<W> {
    pub(crate) fn adam(weights: W, rate: f64) -> Result<Self> {
        let settings = ParamsAdamW { lr: rate, weight_decay: 0.0, ..ParamsAdamW::default() };
        Self::new(weights, |vars| Ok(Optimiser::Adam(AdamW::new(vars, settings)?)))
    }

    pub(crate) fn sgd(weights: W, rate: f64) -> Result<Self> {
        Self::new(weights, |vars| Ok(Optimiser::Sgd(SGD::new(vars, rate)?)))
    }

    fn new(weights: W, optimiser: impl FnOnce(Vec<Var>) -> Result<Optimiser>) -> Result<Self> {
        let variables = Variables::new(&weights)?;
        let optimiser = optimiser(variables.trained().to_vec())?;
        Ok(Self { weights, variables, optimiser, mask: None })
    }

    /// Multiplies every gradient by the numbers of `mask`: where they are zero, a weight stays as it is.
    pub(crate) fn set_mask(&mut self, mask: &W) -> Result<()> {
        let shapes = mask.shapes().into_iter().zip(mask.slices());
        let tensors = shapes.map(|((_, shape), m)| Tensor::from_slice(m, shape, &Device::Cpu));
        self.mask = Some(tensors.collect::<Result<_>>()?);
        Ok(())
    }

    /// What networks in training are built from.
    pub(crate) fn builder(&self) -> VarBuilder<'static> {
        self.variables.builder()
    }

    /// The weights as they are now.
    pub(crate) fn weights(&self) -> Result<W> {
        let mut weights = self.weights.clone();
        self.variables.read(&mut weights)?;
        Ok(weights)
    }

    /// One step against the gradient of `loss`, a single number.
    pub(crate) fn step(&mut self, loss: &Tensor) -> Result<Step> {
        let value = f64::from(loss.to_scalar::<f32>()?);
        let moved = value.is_finite() && self.descend(loss.backward()?)?;
        Ok((value, moved))
    }

    /// One step against `gradient`. Under Adam a gradient that is not finite moves nothing.
    pub(crate) fn descend(&mut self, mut gradient: GradStore) -> Result<bool> {
        let vars = self.variables.trained();
        for (var, mask) in vars.iter().zip(self.mask.iter().flatten()) {
            if let Some(g) = gradient.remove(var) {
                gradient.insert(var, (g * mask)?);
            }
        }
        match &mut self.optimiser {
            Optimiser::Sgd(sgd) => sgd.step(&gradient)?,
            Optimiser::Adam(adam) => {
                let mut square = 0.0;
                for g in vars.iter().filter_map(|var| gradient.get(var)) {
                    square += g.to_dtype(DType::F64)?.sqr()?.sum_all()?.to_scalar::<f64>()?;
                }
                let norm = square.sqrt();
                if !norm.is_finite() {
                    return Ok(false);
                }
                if norm > NORM {
                    for var in vars {
                        if let Some(g) = gradient.remove(var) {
                            gradient.insert(var, (g * (NORM / norm))?);
                        }
                    }
                }
                adam.step(&gradient)?;
            }
        }
        Ok(true)
    }

    /// The derivatives of a loss in the place of the weights they belong to.
    #[cfg(test)]
    pub(crate) fn gradient(&self, store: &GradStore) -> Result<W> {
        self.variables.gradient(store, &self.weights)
    }
}

impl Trainer<LstmFc> {
    pub(crate) fn sizes(&self) -> Sizes {
        self.weights.sizes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use crate::nn::train::adam::Adam;
    use crate::nn::weights::Mlp;

    /// A loss whose gradient is `g`.
    fn along(trainer: &Trainer<Mlp>, g: &Mlp) -> Tensor {
        let mut loss = Tensor::zeros((), DType::F32, &Device::Cpu).unwrap();
        for (w, g) in trainer.variables.trained().iter().zip(g.slices()) {
            let g = Tensor::from_slice(g, w.shape(), &Device::Cpu).unwrap();
            loss = (loss + (w.as_tensor() * g).unwrap().sum_all().unwrap()).unwrap();
        }
        loss
    }

    #[test]
    fn candle_and_the_hand_written_adam_take_the_same_steps() {
        let mut rng = rng::stream(3, 0);
        let mut by_hand = Mlp::init(2, 4, 1, 1.0, &mut rng);
        let gradient = Mlp::init(2, 4, 1, 0.1, &mut rng);
        let mut adam = Adam::new(&by_hand, 1e-2);
        let mut trainer = Trainer::adam(by_hand.clone(), 1e-2).unwrap();
        for k in 0..20 {
            // Every other gradient is beyond the bound on the norm.
            let size = if k % 2 == 0 { 0.2 } else { 9.0 } * (k as f32).cos();
            let mut g = gradient.clone();
            g.slices_mut().into_iter().flatten().for_each(|v| *v *= size);
            assert!(adam.step(&mut by_hand, &g).is_finite());
            assert!(trainer.step(&along(&trainer, &g)).unwrap().1);
        }
        let by_candle = trainer.weights().unwrap();
        for (ours, theirs) in by_hand.slices().into_iter().zip(by_candle.slices()) {
            for (a, b) in ours.iter().zip(theirs) {
                assert!((a - b).abs() < 1e-6, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_masked_weight_stays_and_a_broken_gradient_moves_nothing() {
        let weights = Mlp::init(2, 4, 1, 1.0, &mut rng::stream(3, 0));
        let mut trainer = Trainer::adam(weights.clone(), 1e-2).unwrap();
        let mut mask = weights.clone();
        mask.slices_mut().into_iter().flatten().for_each(|v| *v = 1.0);
        mask.weight_1[0] = 0.0;
        trainer.set_mask(&mask).unwrap();
        assert!(trainer.step(&along(&trainer, &weights)).unwrap().1);
        let moved = trainer.weights().unwrap();
        assert_eq!(moved.weight_1[0].to_bits(), weights.weight_1[0].to_bits());
        assert!(
            moved.weight_1[1..]
                .iter()
                .zip(&weights.weight_1[1..])
                .all(|(a, b)| a.to_bits() != b.to_bits())
        );
        let mut broken = weights.clone();
        broken.bias_1[0] = f32::NAN;
        assert!(!trainer.descend(along(&trainer, &broken).backward().unwrap()).unwrap());
        assert_eq!(trainer.weights().unwrap(), moved);
    }
}
