//! The weights of every network as plain numbers: what candle trains, what the kernels run, what a
//! checkpoint holds.
//!
//! Matrices are row-major, one row per output; LSTM gates stand in the order i, f, g, o.
//! [`Parameters::shapes`] gives every tensor the name and the shape that candle-nn gives it. This
//! module must not know how a network is trained or run.

use rand::distr::{Distribution, Uniform};

use crate::base::rng::Rng;

/// A single-layer LSTM followed by a fully connected layer: f_m, φ_m, f_s and the oracle's f.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LstmFc {
    pub(crate) inputs: usize,
    pub(crate) width: usize,
    pub(crate) outputs: usize,
    pub(crate) weight_ih: Vec<f32>,
    pub(crate) weight_hh: Vec<f32>,
    pub(crate) bias_ih: Vec<f32>,
    pub(crate) bias_hh: Vec<f32>,
    pub(crate) fc_weight: Vec<f32>,
    pub(crate) fc_bias: Vec<f32>,
}

/// Two layers with SELU between them: h_m and the oracle's h.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Mlp {
    pub(crate) inputs: usize,
    pub(crate) width: usize,
    pub(crate) outputs: usize,
    pub(crate) weight_1: Vec<f32>,
    pub(crate) bias_1: Vec<f32>,
    pub(crate) weight_2: Vec<f32>,
    pub(crate) bias_2: Vec<f32>,
}

/// Weights as a fixed sequence of tensors. A gradient has the type of the weights it belongs to.
pub(crate) trait Parameters: Clone {
    /// Name and shape of every tensor that is trained, as candle-nn's modules ask for them.
    fn shapes(&self) -> Vec<(String, Vec<usize>)>;

    /// The numbers of those tensors, in the same order.
    fn slices(&self) -> Vec<&[f32]>;

    /// The same, to be changed or filled.
    fn slices_mut(&mut self) -> Vec<&mut Vec<f32>>;

    /// Tensors of the network that are never trained.
    fn constants(&self) -> Vec<(String, Vec<usize>, &[f32])> {
        Vec::new()
    }
}

impl Parameters for LstmFc {
    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (i, n, o) = (self.inputs, self.width, self.outputs);
        [
            ("weight_ih_l0", vec![4 * n, i]),
            ("weight_hh_l0", vec![4 * n, n]),
            ("bias_ih_l0", vec![4 * n]),
            ("bias_hh_l0", vec![4 * n]),
            ("fc.weight", vec![o, n]),
            ("fc.bias", vec![o]),
        ]
        .map(|(name, shape)| (name.to_owned(), shape))
        .into()
    }

    fn slices(&self) -> Vec<&[f32]> {
        let Self { weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias, .. } = self;
        vec![weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias]
    }

    fn slices_mut(&mut self) -> Vec<&mut Vec<f32>> {
        let Self { weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias, .. } = self;
        vec![weight_ih, weight_hh, bias_ih, bias_hh, fc_weight, fc_bias]
    }
}

impl Parameters for Mlp {
    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (i, n, o) = (self.inputs, self.width, self.outputs);
        [
            ("first.weight", vec![n, i]),
            ("first.bias", vec![n]),
            ("second.weight", vec![o, n]),
            ("second.bias", vec![o]),
        ]
        .map(|(name, shape)| (name.to_owned(), shape))
        .into()
    }

    fn slices(&self) -> Vec<&[f32]> {
        vec![&self.weight_1, &self.bias_1, &self.weight_2, &self.bias_2]
    }

    fn slices_mut(&mut self) -> Vec<&mut Vec<f32>> {
        vec![&mut self.weight_1, &mut self.bias_1, &mut self.weight_2, &mut self.bias_2]
    }
}

/// The loadings come from the vendor's data and stay as they are.
impl Parameters for FilterWeights {
    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let part = |name: &'static str, shapes: Vec<(String, Vec<usize>)>| {
            shapes.into_iter().map(move |(tensor, shape)| (format!("{name}.{tensor}"), shape))
        };
        part("transition", self.transition.shapes())
            .chain(part("measurement", self.measurement.shapes()))
            .collect()
    }

    fn slices(&self) -> Vec<&[f32]> {
        let mut slices = self.transition.slices();
        slices.extend(self.measurement.slices());
        slices
    }

    fn slices_mut(&mut self) -> Vec<&mut Vec<f32>> {
        let mut slices = self.transition.slices_mut();
        slices.extend(self.measurement.slices_mut());
        slices
    }

    fn constants(&self) -> Vec<(String, Vec<usize>, &[f32])> {
        let shape = vec![self.sensors(), self.states()];
        let loadings = self.loadings.as_deref();
        loadings.map(|c| (LOADINGS.to_owned(), shape, c)).into_iter().collect()
    }
}

/// Name of the tensor C.
pub(crate) const LOADINGS: &str = "loadings";

fn uniform(n: usize, bound: f32, rng: &mut Rng) -> Vec<f32> {
    let between = Uniform::new_inclusive(-bound, bound).expect("a positive, finite bound");
    (0..n).map(|_| between.sample(rng)).collect()
}

impl LstmFc {
    pub(crate) fn empty(inputs: usize, width: usize, outputs: usize) -> Self {
        Self { inputs, width, outputs, ..Self::default() }
    }

    pub(crate) fn zeros(inputs: usize, width: usize, outputs: usize) -> Self {
        let mut zeros = Self::empty(inputs, width, outputs);
        let shapes = zeros.shapes();
        for ((_, shape), values) in shapes.iter().zip(zeros.slices_mut()) {
            values.resize(shape.iter().product(), 0.0);
        }
        zeros
    }

    /// Uniform in ±1/√width, as torch does; the output layer is scaled by `output_scale`.
    pub(crate) fn init(
        inputs: usize,
        width: usize,
        outputs: usize,
        output_scale: f32,
        rng: &mut Rng,
    ) -> Self {
        let bound = 1.0 / (width as f32).sqrt();
        Self {
            inputs,
            width,
            outputs,
            weight_ih: uniform(4 * width * inputs, bound, rng),
            weight_hh: uniform(4 * width * width, bound, rng),
            bias_ih: uniform(4 * width, bound, rng),
            bias_hh: uniform(4 * width, bound, rng),
            fc_weight: uniform(outputs * width, bound * output_scale, rng),
            fc_bias: uniform(outputs, bound * output_scale, rng),
        }
    }
}

impl Mlp {
    pub(crate) fn empty(inputs: usize, width: usize, outputs: usize) -> Self {
        Self { inputs, width, outputs, ..Self::default() }
    }

    /// Uniform in ±1/√(size of the layer's input), as torch does.
    pub(crate) fn init(
        inputs: usize,
        width: usize,
        outputs: usize,
        output_scale: f32,
        rng: &mut Rng,
    ) -> Self {
        let first = 1.0 / (inputs as f32).sqrt();
        let second = output_scale / (width as f32).sqrt();
        Self {
            inputs,
            width,
            outputs,
            weight_1: uniform(width * inputs, first, rng),
            bias_1: uniform(width, first, rng),
            weight_2: uniform(outputs * width, second, rng),
            bias_2: uniform(outputs, second, rng),
        }
    }
}

/// The functions of an Extended Kalman Filter, as its vendor delivers them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilterWeights {
    /// Transition f_m. In residual form it is what is added to the state: x' = x + f(x).
    pub(crate) transition: LstmFc,
    /// Measurement h_m. In residual form it is what is added to the loadings: h(x) = C x + mlp(x).
    pub(crate) measurement: Mlp,
    /// C (D × P) of the residual form; none in the paper's form.
    pub(crate) loadings: Option<Vec<f32>>,
    /// Process noise Q = q·I.
    pub(crate) q: f64,
    /// Measurement noise R = r·I, standardised units.
    pub(crate) r: f64,
    pub(crate) conduct: Conduct,
}

/// How a filter runs. Every session has the default; `headwater study deviations` measures the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Conduct {
    /// Measurements enter the update inside ±this many standard deviations.
    pub(crate) update_clip: f32,
    /// The transition's memory (h, c) is carried from step to step; otherwise it is empty at each.
    pub(crate) has_memory: bool,
    /// That memory is taken as known; otherwise it is part of the state that is estimated. Training knows
    /// the first only.
    pub(crate) memory_is_known: bool,
    /// H is taken at the predicted state; otherwise at the estimate before it.
    pub(crate) jacobian_at_prediction: bool,
}

impl Default for Conduct {
    fn default() -> Self {
        Self {
            update_clip: 5.0,
            has_memory: true,
            memory_is_known: true,
            jacobian_at_prediction: true,
        }
    }
}

impl FilterWeights {
    pub(crate) fn states(&self) -> usize {
        self.transition.outputs
    }

    pub(crate) fn sensors(&self) -> usize {
        self.measurement.outputs
    }
}

/// ŷ_t = Σ_l A_l y_{t-l} + b from the client's own last samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OwnLagWeights {
    pub(crate) sensors: usize,
    pub(crate) lags: usize,
    /// D × (lags·D), the most recent lag first.
    pub(crate) weight: Vec<f32>,
    /// D.
    pub(crate) bias: Vec<f32>,
}

/// A proprietary model, frozen: nothing here can be changed after it is made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProprietaryWeights {
    /// The paper's filter or the residual form.
    Filter(FilterWeights),
    /// A linear front end with the paper's filter on what it leaves over.
    OwnLagFilter {
        front: OwnLagWeights,
        /// The filter on the front end's residual, standardised by `scale`.
        filter: FilterWeights,
        /// Standard deviation of the front end's residual per sensor.
        scale: Vec<f32>,
    },
    Linear(OwnLagWeights),
}

impl ProprietaryWeights {
    /// f_m and h_m, where the model has them.
    pub(crate) fn filter(&self) -> Option<&FilterWeights> {
        match self {
            Self::Filter(filter) | Self::OwnLagFilter { filter, .. } => Some(filter),
            Self::Linear(_) => None,
        }
    }

    /// How its filter runs, where there is one.
    pub(crate) fn conduct_mut(&mut self) -> Option<&mut Conduct> {
        match self {
            Self::Filter(filter) | Self::OwnLagFilter { filter, .. } => Some(&mut filter.conduct),
            Self::Linear(_) => None,
        }
    }

    /// Whether what a disturbance leaves in its memory need not fade: so it is with the residual form.
    pub(crate) fn has_lasting_memory(&self) -> bool {
        matches!(self, Self::Filter(filter) if filter.loadings.is_some())
    }
}
