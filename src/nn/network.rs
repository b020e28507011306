//! The networks as candle-nn modules, one definition each: an LSTM with a fully connected layer (f_m,
//! φ_m, f_s, the oracle's f, the end-to-end predictor), a SELU MLP (h_m, the oracle's h), and the pair
//! of them that an Extended Kalman Filter runs on.
//!
//! A network is built from its sizes and a `VarBuilder`: one over [`Variables`] for training, one over
//! constants for running, or candle's own over the safetensors file of a checkpoint, whose tensors have
//! the same names. Inputs are one row per window of a batch. This module must not know how a network is
//! trained.

use std::collections::HashMap;
use std::sync::PoisonError;

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::rnn::{LSTM, LSTMConfig, LSTMState, RNN as _, lstm};
use candle_nn::{Linear, Module as _, VarBuilder, VarMap, linear};

use super::weights::{FilterWeights, LOADINGS, LstmFc, Mlp, Parameters};

/// λ of SELU (Klambauer et al., 2017).
pub(crate) const SELU_LAMBDA: f64 = 1.050_700_987_355_480_5;
/// α of SELU.
pub(crate) const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) inputs: usize,
    /// Units of the hidden state or layer.
    pub(crate) width: usize,
    pub(crate) outputs: usize,
}

/// The paper's f_m.
impl Default for Sizes {
    fn default() -> Self {
        Self { inputs: 2, width: 16, outputs: 2 }
    }
}

/// Sizes and form of a filter's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterConfig {
    pub(crate) transition: Sizes,
    pub(crate) measurement: Sizes,
    /// x' = x + f(x) and y = C x + h(x) instead of x' = f(x) and y = h(x).
    pub(crate) residual: bool,
}

/// The paper's f_m and h_m of four sensors.
impl Default for FilterConfig {
    fn default() -> Self {
        let measurement = Sizes { inputs: 2, width: 32, outputs: 4 };
        Self { transition: Sizes::default(), measurement, residual: false }
    }
}

/// Weights as constants. candle records no graph of what is computed with them.
fn constants(weights: &impl Parameters) -> Result<VarBuilder<'static>> {
    let trained = weights.shapes().into_iter().zip(weights.slices());
    let trained = trained.map(|((name, shape), values)| (name, shape, values));
    let tensors = trained
        .chain(weights.constants())
        .map(|(name, shape, values)| Ok((name, Tensor::from_slice(values, shape, &Device::Cpu)?)));
    let tensors = tensors.collect::<Result<HashMap<_, _>>>()?;
    Ok(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu))
}

/// Weights as variables that candle's optimisers can move.
pub(crate) struct Variables {
    map: VarMap,
    /// In the order of the weights.
    trained: Vec<Var>,
}

impl Variables {
    pub(crate) fn new(weights: &impl Parameters) -> Result<Self> {
        let map = VarMap::new();
        let mut trained = Vec::new();
        {
            let mut named = map.data().lock().unwrap_or_else(PoisonError::into_inner);
            for ((name, shape), values) in weights.shapes().into_iter().zip(weights.slices()) {
                let var = Var::from_slice(values, shape, &Device::Cpu)?;
                trained.push(var.clone());
                named.insert(name, var);
            }
            for (name, shape, values) in weights.constants() {
                named.insert(name, Var::from_slice(values, shape, &Device::Cpu)?);
            }
        }
        Ok(Self { map, trained })
    }

    /// What networks are built from.
    pub(crate) fn builder(&self) -> VarBuilder<'static> {
        VarBuilder::from_varmap(&self.map, DType::F32, &Device::Cpu)
    }

    /// The variables to be trained, in the order of the weights.
    pub(crate) fn trained(&self) -> &[Var] {
        &self.trained
    }

    /// The numbers as they are now, into weights of the same sizes.
    pub(crate) fn read(&self, weights: &mut impl Parameters) -> Result<()> {
        for (var, values) in self.trained.iter().zip(weights.slices_mut()) {
            *values = var.flatten_all()?.to_vec1()?;
        }
        Ok(())
    }

    /// The derivatives of a loss in the place of the weights they belong to; zero where the loss does
    /// not depend on a weight.
    #[cfg(test)]
    pub(crate) fn gradient<W: Parameters>(
        &self,
        store: &candle_core::backprop::GradStore,
        weights: &W,
    ) -> Result<W> {
        let mut gradient = weights.clone();
        for (var, values) in self.trained.iter().zip(gradient.slices_mut()) {
            match store.get(var) {
                Some(g) => *values = g.flatten_all()?.to_vec1()?,
                None => values.fill(0.0),
            }
        }
        Ok(gradient)
    }
}

/// A single-layer LSTM and a fully connected layer on its hidden state.
#[derive(Debug, Clone)]
pub(crate) struct LstmNetwork {
    lstm: LSTM,
    fc: Linear,
}

impl LstmNetwork {
    pub(crate) fn new(sizes: Sizes, vb: &VarBuilder) -> Result<Self> {
        let Sizes { inputs, width, outputs } = sizes;
        Ok(Self {
            lstm: lstm(inputs, width, LSTMConfig::default(), vb.clone())?,
            fc: linear(width, outputs, vb.pp("fc"))?,
        })
    }

    pub(crate) fn running(weights: &LstmFc) -> Result<Self> {
        Self::new(weights.sizes(), &constants(weights)?)
    }

    /// An empty memory for `batch` windows.
    pub(crate) fn zero_state(&self, batch: usize) -> Result<LSTMState> {
        self.lstm.zero_state(batch)
    }

    /// One step: inputs (batch × inputs) to outputs (batch × outputs) and the memory after it.
    pub(crate) fn step(&self, x: &Tensor, state: &LSTMState) -> Result<(Tensor, LSTMState)> {
        let state = self.lstm.step(x, state)?;
        Ok((self.fc.forward(&state.h)?, state))
    }

    /// A whole window from an empty memory: batch × steps × inputs to batch × steps × outputs.
    pub(crate) fn seq(&self, x: &Tensor) -> Result<Tensor> {
        let states = self.lstm.seq(x)?;
        self.fc.forward(&self.lstm.states_to_tensor(&states)?)
    }
}

/// Two layers with SELU between them.
#[derive(Debug, Clone)]
pub(crate) struct MlpNetwork {
    first: Linear,
    second: Linear,
}

impl MlpNetwork {
    pub(crate) fn new(sizes: Sizes, vb: &VarBuilder) -> Result<Self> {
        let Sizes { inputs, width, outputs } = sizes;
        Ok(Self {
            first: linear(inputs, width, vb.pp("first"))?,
            second: linear(width, outputs, vb.pp("second"))?,
        })
    }

    /// batch × inputs to batch × outputs.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let hidden = (self.first.forward(x)?.elu(SELU_ALPHA)? * SELU_LAMBDA)?;
        self.second.forward(&hidden)
    }
}

/// The two functions of an Extended Kalman Filter, in the paper's or in residual form.
#[derive(Debug, Clone)]
pub(crate) struct FilterNetwork {
    transition: LstmNetwork,
    measurement: MlpNetwork,
    /// Cᵀ of the residual form, never trained.
    loadings: Option<Tensor>,
}

impl FilterNetwork {
    pub(crate) fn new(config: FilterConfig, vb: &VarBuilder) -> Result<Self> {
        let shape = (config.measurement.outputs, config.transition.outputs);
        let loadings = config.residual.then(|| vb.get(shape, LOADINGS)?.detach().t()?.contiguous());
        Ok(Self {
            transition: LstmNetwork::new(config.transition, &vb.pp("transition"))?,
            measurement: MlpNetwork::new(config.measurement, &vb.pp("measurement"))?,
            loadings: loadings.transpose()?,
        })
    }

    pub(crate) fn running(weights: &FilterWeights) -> Result<Self> {
        Self::new(weights.config(), &constants(weights)?)
    }

    /// An empty memory for `batch` windows.
    pub(crate) fn zero_state(&self, batch: usize) -> Result<LSTMState> {
        self.transition.zero_state(batch)
    }

    /// x = f(x̂; h, c), eq. (1); x̂ + f(x̂; h, c) in residual form.
    pub(crate) fn transition(&self, x: &Tensor, state: &LSTMState) -> Result<(Tensor, LSTMState)> {
        let (output, state) = self.transition.step(x, state)?;
        let output = if self.loadings.is_some() { (x + output)? } else { output };
        Ok((output, state))
    }

    /// ŷ = h(x); C x + h(x) in residual form.
    pub(crate) fn measurement(&self, x: &Tensor) -> Result<Tensor> {
        let output = self.measurement.forward(x)?;
        match &self.loadings {
            Some(c) => output + x.matmul(c)?,
            None => Ok(output),
        }
    }
}

impl LstmFc {
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { inputs: self.inputs, width: self.width, outputs: self.outputs }
    }
}

impl Mlp {
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { inputs: self.inputs, width: self.width, outputs: self.outputs }
    }
}

impl FilterWeights {
    pub(crate) fn config(&self) -> FilterConfig {
        FilterConfig {
            transition: self.transition.sizes(),
            measurement: self.measurement.sizes(),
            residual: self.loadings.is_some(),
        }
    }
}

#[cfg(test)]
mod tests;
