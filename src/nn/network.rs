//! The networks in candle, one definition each: an LSTM with a fully connected layer (`f_m`, `φ_m`,
//! `f_s`, the oracle's f, the end-to-end predictor), a SELU MLP (`h_m`, the oracle's h), and the pair
//! of them that an Extended Kalman Filter runs on.
//!
//! A network is made from plain [`weights`](super::weights) and given back as such: the same
//! numbers train here, run in the kernels and lie in a checkpoint. Inputs are one row per window
//! of a batch. This module must not know how a network is trained.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};

use super::weights::{FilterWeights, LstmFc, Mlp};

/// λ of SELU (Klambauer et al., 2017).
pub(crate) const SELU_LAMBDA: f64 = 1.050_700_987_355_480_5;
/// α of SELU.
pub(crate) const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;

/// A parameter: a variable when it is to be trained, a constant otherwise. candle records a graph
/// for every operation on a variable, so networks that only run must be made of constants.
fn parameter(values: &[f32], shape: &[usize], device: &Device, trainable: bool) -> Result<Tensor> {
    if trainable {
        Ok(Var::from_slice(values, shape, device)?.into_inner())
    } else {
        Tensor::from_slice(values, shape, device)
    }
}

fn values(tensor: &Tensor) -> Result<Vec<f32>> {
    tensor.flatten_all()?.to_vec1()
}

/// The derivative of the loss by a parameter; zero when the loss does not depend on it.
fn derivative(store: &GradStore) -> impl Fn(&Tensor) -> Result<Vec<f32>> {
    |parameter| match store.get(parameter) {
        Some(gradient) => values(gradient),
        None => Ok(vec![0.0; parameter.elem_count()]),
    }
}

/// A single-layer LSTM and a fully connected layer on its hidden state.
#[derive(Debug, Clone)]
pub(crate) struct LstmNetwork {
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    fc_weight: Tensor,
    fc_bias: Tensor,
}

/// The memory of an LSTM, one row per window.
#[derive(Debug, Clone)]
pub(crate) struct LstmState {
    /// Hidden state.
    pub(crate) h: Tensor,
    /// Cell state.
    pub(crate) c: Tensor,
}

impl LstmNetwork {
    /// The network with these weights; they are variables when `trainable`.
    pub(crate) fn from_weights(w: &LstmFc, device: &Device, trainable: bool) -> Result<Self> {
        let (i, n, o) = (w.inputs, w.width, w.outputs);
        let make = |values: &[f32], shape: &[usize]| parameter(values, shape, device, trainable);
        Ok(Self {
            weight_ih: make(&w.weight_ih, &[4 * n, i])?,
            weight_hh: make(&w.weight_hh, &[4 * n, n])?,
            bias_ih: make(&w.bias_ih, &[4 * n])?,
            bias_hh: make(&w.bias_hh, &[4 * n])?,
            fc_weight: make(&w.fc_weight, &[o, n])?,
            fc_bias: make(&w.fc_bias, &[o])?,
        })
    }

    /// The weights as they are now.
    #[cfg(test)]
    pub(crate) fn to_weights(&self) -> Result<LstmFc> {
        self.read(values)
    }

    /// The derivatives of a loss, in the place of the weights they belong to.
    pub(crate) fn to_gradient(&self, store: &GradStore) -> Result<LstmFc> {
        self.read(derivative(store))
    }

    fn read(&self, read: impl Fn(&Tensor) -> Result<Vec<f32>>) -> Result<LstmFc> {
        let (outputs, width) = self.fc_weight.dims2()?;
        Ok(LstmFc {
            inputs: self.weight_ih.dim(1)?,
            width,
            outputs,
            weight_ih: read(&self.weight_ih)?,
            weight_hh: read(&self.weight_hh)?,
            bias_ih: read(&self.bias_ih)?,
            bias_hh: read(&self.bias_hh)?,
            fc_weight: read(&self.fc_weight)?,
            fc_bias: read(&self.fc_bias)?,
        })
    }

    /// An empty memory for `batch` windows.
    pub(crate) fn zero_state(&self, batch: usize) -> Result<LstmState> {
        let shape = (batch, self.fc_weight.dim(1)?);
        let zeros = Tensor::zeros(shape, DType::F32, self.fc_weight.device())?;
        Ok(LstmState { h: zeros.clone(), c: zeros })
    }

    /// The network laid out for a run of steps: what all of them share is computed once.
    pub(crate) fn unroll(&self) -> Result<Unrolled> {
        Ok(Unrolled {
            input: self.weight_ih.t()?,
            recurrent: self.weight_hh.t()?,
            bias: (&self.bias_ih + &self.bias_hh)?,
            fc_weight: self.fc_weight.t()?,
            fc_bias: self.fc_bias.clone(),
        })
    }

    /// One step: inputs (batch × inputs) to outputs (batch × outputs) and the memory after it.
    #[cfg(test)]
    pub(crate) fn step(&self, x: &Tensor, state: &LstmState) -> Result<(Tensor, LstmState)> {
        self.unroll()?.step(x, state)
    }

    /// A whole window from an empty memory: batch × steps × inputs to batch × steps × outputs.
    pub(crate) fn seq(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, steps, _) = x.dims3()?;
        let cell = self.unroll()?;
        let mut state = self.zero_state(batch)?;
        let mut outputs = Vec::with_capacity(steps);
        for t in 0..steps {
            let (output, next) = cell.step(&x.narrow(1, t, 1)?.squeeze(1)?, &state)?;
            outputs.push(output);
            state = next;
        }
        Tensor::stack(&outputs, 1)
    }
}

/// An [`LstmNetwork`] laid out for a run of steps.
#[derive(Debug, Clone)]
pub(crate) struct Unrolled {
    input: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    fc_weight: Tensor,
    fc_bias: Tensor,
}

impl Unrolled {
    /// One step; gates in torch's order i, f, g, o.
    pub(crate) fn step(&self, x: &Tensor, state: &LstmState) -> Result<(Tensor, LstmState)> {
        let z = (x.matmul(&self.input)? + state.h.matmul(&self.recurrent)?)?
            .broadcast_add(&self.bias)?;
        let gates = z.chunk(4, 1)?;
        let (i, f) = (candle_nn::ops::sigmoid(&gates[0])?, candle_nn::ops::sigmoid(&gates[1])?);
        let (g, o) = (gates[2].tanh()?, candle_nn::ops::sigmoid(&gates[3])?);
        let c = ((f * &state.c)? + (i * g)?)?;
        let h = (o * c.tanh()?)?;
        let output = h.matmul(&self.fc_weight)?.broadcast_add(&self.fc_bias)?;
        Ok((output, LstmState { h, c }))
    }
}

/// Two layers with SELU between them.
#[derive(Debug, Clone)]
pub(crate) struct MlpNetwork {
    weight_1: Tensor,
    bias_1: Tensor,
    weight_2: Tensor,
    bias_2: Tensor,
}

impl MlpNetwork {
    /// The network with these weights; they are variables when `trainable`.
    pub(crate) fn from_weights(w: &Mlp, device: &Device, trainable: bool) -> Result<Self> {
        let (i, n, o) = (w.inputs, w.width, w.outputs);
        let make = |values: &[f32], shape: &[usize]| parameter(values, shape, device, trainable);
        Ok(Self {
            weight_1: make(&w.weight_1, &[n, i])?,
            bias_1: make(&w.bias_1, &[n])?,
            weight_2: make(&w.weight_2, &[o, n])?,
            bias_2: make(&w.bias_2, &[o])?,
        })
    }

    /// The weights as they are now.
    #[cfg(test)]
    pub(crate) fn to_weights(&self) -> Result<Mlp> {
        self.read(values)
    }

    /// The derivatives of a loss, in the place of the weights they belong to.
    pub(crate) fn to_gradient(&self, store: &GradStore) -> Result<Mlp> {
        self.read(derivative(store))
    }

    fn read(&self, read: impl Fn(&Tensor) -> Result<Vec<f32>>) -> Result<Mlp> {
        let (width, inputs) = self.weight_1.dims2()?;
        Ok(Mlp {
            inputs,
            width,
            outputs: self.bias_2.dim(0)?,
            weight_1: read(&self.weight_1)?,
            bias_1: read(&self.bias_1)?,
            weight_2: read(&self.weight_2)?,
            bias_2: read(&self.bias_2)?,
        })
    }

    /// batch × inputs to batch × outputs.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let hidden = x.matmul(&self.weight_1.t()?)?.broadcast_add(&self.bias_1)?;
        let hidden = (hidden.elu(SELU_ALPHA)? * SELU_LAMBDA)?;
        hidden.matmul(&self.weight_2.t()?)?.broadcast_add(&self.bias_2)
    }
}

/// The two functions of an Extended Kalman Filter, in the paper's or in residual form.
#[derive(Debug, Clone)]
pub(crate) struct FilterNetwork {
    transition: LstmNetwork,
    measurement: MlpNetwork,
    /// Cᵀ of the residual form: the vendor's, never trained.
    loadings: Option<Tensor>,
    q: f64,
    r: f64,
}

impl FilterNetwork {
    /// The functions with these weights; they are variables when `trainable`.
    pub(crate) fn from_weights(
        w: &FilterWeights,
        device: &Device,
        trainable: bool,
    ) -> Result<Self> {
        let loadings = w
            .loadings
            .as_deref()
            .map(|c| Tensor::from_slice(c, (w.sensors(), w.states()), device)?.t()?.contiguous())
            .transpose()?;
        Ok(Self {
            transition: LstmNetwork::from_weights(&w.transition, device, trainable)?,
            measurement: MlpNetwork::from_weights(&w.measurement, device, trainable)?,
            loadings,
            q: w.q,
            r: w.r,
        })
    }

    /// The weights as they are now.
    #[cfg(test)]
    pub(crate) fn to_weights(&self) -> Result<FilterWeights> {
        self.read(self.transition.to_weights()?, self.measurement.to_weights()?)
    }

    /// The derivatives of a loss, in the place of the weights they belong to.
    pub(crate) fn to_gradient(&self, store: &GradStore) -> Result<FilterWeights> {
        self.read(self.transition.to_gradient(store)?, self.measurement.to_gradient(store)?)
    }

    fn read(&self, transition: LstmFc, measurement: Mlp) -> Result<FilterWeights> {
        let loadings = self.loadings.as_ref().map(|c| values(&c.t()?)).transpose()?;
        Ok(FilterWeights { transition, measurement, loadings, q: self.q, r: self.r })
    }

    /// An empty memory for `batch` windows.
    pub(crate) fn zero_state(&self, batch: usize) -> Result<LstmState> {
        self.transition.zero_state(batch)
    }

    /// The transition laid out for a run of steps.
    pub(crate) fn unroll(&self) -> Result<Unrolled> {
        self.transition.unroll()
    }

    /// x = f(x̂; h, c), eq. (1); x̂ + f(x̂; h, c) in residual form.
    pub(crate) fn transition(
        &self,
        cell: &Unrolled,
        x: &Tensor,
        state: &LstmState,
    ) -> Result<(Tensor, LstmState)> {
        let (output, state) = cell.step(x, state)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn random(shape: (usize, usize, usize)) -> Tensor {
        let count = shape.0 * shape.1 * shape.2;
        let values: Vec<f32> = (0..count).map(|i| (i as f32 * 1.7).sin()).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    /// Some weights' derivatives against differences of the loss. SELU has a kink at zero, so the
    /// slopes to either side may differ; the derivative is one of them or between.
    fn check_gradient(
        count: usize,
        gradient: impl Fn(usize) -> f32,
        loss: impl Fn(usize, f32) -> f32,
    ) {
        let step = 4e-3;
        for i in (0..count).step_by(count / 7) {
            let here = loss(i, 0.0);
            let slopes = [(loss(i, step) - here) / step, (here - loss(i, -step)) / step];
            let exact = gradient(i);
            let tolerance = 2e-3 * (1.0 + exact.abs());
            let low = slopes[0].min(slopes[1]) - tolerance;
            let high = slopes[0].max(slopes[1]) + tolerance;
            assert!((low..high).contains(&exact), "weight {i}: {slopes:?} {exact}");
        }
    }

    fn half_square(t: &Tensor) -> Tensor {
        (t.sqr().unwrap().sum_all().unwrap() * 0.5).unwrap()
    }

    #[test]
    fn weights_come_back_as_they_went_in() {
        let mut rng = rng::stream(1, 0);
        let filter = FilterWeights {
            transition: LstmFc::init(3, 4, 3, 1.0, &mut rng),
            measurement: Mlp::init(3, 5, 2, 1.0, &mut rng),
            loadings: Some(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            q: 0.2,
            r: 0.3,
        };
        for trainable in [false, true] {
            let network = FilterNetwork::from_weights(&filter, &Device::Cpu, trainable).unwrap();
            assert_eq!(network.to_weights().unwrap(), filter);
        }
    }

    #[test]
    fn an_lstm_step_is_the_equations_of_torch() {
        let w = LstmFc::init(2, 3, 1, 1.0, &mut rng::stream(1, 0));
        let network = LstmNetwork::from_weights(&w, &Device::Cpu, false).unwrap();
        let x = [[0.3f32, -0.8], [1.1, 0.4]];
        let input = Tensor::new(&[[x[0], x[1]]], &Device::Cpu).unwrap();
        let output = network.seq(&input).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let (mut h, mut c) = ([0.0f32; 3], [0.0f32; 3]);
        for (x, output) in x.iter().zip(output) {
            let before = h;
            for j in 0..3 {
                let gate = |k: usize| {
                    let row = k * 3 + j;
                    let input: f32 = (0..2).map(|p| w.weight_ih[row * 2 + p] * x[p]).sum();
                    let own: f32 = (0..3).map(|p| w.weight_hh[row * 3 + p] * before[p]).sum();
                    input + own + w.bias_ih[row] + w.bias_hh[row]
                };
                let sigmoid = |v: f32| 1.0 / (1.0 + (-v).exp());
                c[j] = sigmoid(gate(1)) * c[j] + sigmoid(gate(0)) * gate(2).tanh();
                h[j] = sigmoid(gate(3)) * c[j].tanh();
            }
            let y: f32 = w.fc_bias[0] + (0..3).map(|j| w.fc_weight[j] * h[j]).sum::<f32>();
            assert!((y - output).abs() < 1e-6, "{y} {output}");
        }
    }

    #[test]
    fn selu_has_the_published_values() {
        // An identity around the activation; values of torch.nn.functional.selu.
        let w = Mlp {
            inputs: 1,
            width: 1,
            outputs: 1,
            weight_1: vec![1.0],
            bias_1: vec![0.0],
            weight_2: vec![1.0],
            bias_2: vec![0.0],
        };
        let network = MlpNetwork::from_weights(&w, &Device::Cpu, false).unwrap();
        for (x, y) in [(1.0, 1.050_701), (-1.0, -1.111_330_7), (0.0, 0.0), (-20.0, -1.758_099_3)] {
            let x = Tensor::new(&[[x as f32]], &Device::Cpu).unwrap();
            let out = network.forward(&x).unwrap().to_vec2::<f32>().unwrap()[0][0];
            assert!((out - y).abs() < 1e-6, "{out} {y}");
        }
    }

    #[test]
    fn the_gradient_of_an_lstm_is_its_slope() {
        // Sizes of f_m, φ_m (P from D), f_s and of a wide one like the oracle's.
        for (inputs, width, outputs) in [(2, 16, 2), (4, 16, 2), (6, 64, 6), (3, 128, 3)] {
            let w = LstmFc::init(inputs, width, outputs, 1.0, &mut rng::stream(2, 0));
            let x = random((2, 6, inputs));
            let network = LstmNetwork::from_weights(&w, &Device::Cpu, true).unwrap();
            let store = half_square(&network.seq(&x).unwrap()).backward().unwrap();
            let gradient = network.to_gradient(&store).unwrap();
            let loss = |change: &dyn Fn(&mut LstmFc)| {
                let mut moved = w.clone();
                change(&mut moved);
                let network = LstmNetwork::from_weights(&moved, &Device::Cpu, false).unwrap();
                half_square(&network.seq(&x).unwrap()).to_scalar::<f32>().unwrap()
            };
            check_gradient(
                w.weight_ih.len(),
                |i| gradient.weight_ih[i],
                |i, step| loss(&|w| w.weight_ih[i] += step),
            );
            check_gradient(
                w.weight_hh.len(),
                |i| gradient.weight_hh[i],
                |i, step| loss(&|w| w.weight_hh[i] += step),
            );
            check_gradient(
                w.bias_hh.len(),
                |i| gradient.bias_hh[i],
                |i, step| loss(&|w| w.bias_hh[i] += step),
            );
            check_gradient(
                w.fc_weight.len(),
                |i| gradient.fc_weight[i],
                |i, step| loss(&|w| w.fc_weight[i] += step),
            );
            assert_eq!(gradient.bias_ih, gradient.bias_hh);
        }
    }

    #[test]
    fn the_gradient_of_an_mlp_is_its_slope() {
        let w = Mlp::init(2, 32, 4, 1.0, &mut rng::stream(2, 0));
        let x = random((1, 9, 2)).squeeze(0).unwrap();
        let network = MlpNetwork::from_weights(&w, &Device::Cpu, true).unwrap();
        let store = half_square(&network.forward(&x).unwrap()).backward().unwrap();
        let gradient = network.to_gradient(&store).unwrap();
        let loss = |change: &dyn Fn(&mut Mlp)| {
            let mut moved = w.clone();
            change(&mut moved);
            let network = MlpNetwork::from_weights(&moved, &Device::Cpu, false).unwrap();
            half_square(&network.forward(&x).unwrap()).to_scalar::<f32>().unwrap()
        };
        check_gradient(
            w.weight_1.len(),
            |i| gradient.weight_1[i],
            |i, step| loss(&|w| w.weight_1[i] += step),
        );
        check_gradient(
            w.bias_1.len(),
            |i| gradient.bias_1[i],
            |i, step| loss(&|w| w.bias_1[i] += step),
        );
        check_gradient(
            w.weight_2.len(),
            |i| gradient.weight_2[i],
            |i, step| loss(&|w| w.weight_2[i] += step),
        );
    }

    #[test]
    fn a_network_that_only_runs_keeps_no_graph() {
        let w = Mlp::init(2, 3, 1, 1.0, &mut rng::stream(2, 0));
        let network = MlpNetwork::from_weights(&w, &Device::Cpu, false).unwrap();
        let output = network.forward(&random((1, 4, 2)).squeeze(0).unwrap()).unwrap();
        assert!(!output.track_op());
    }
}
