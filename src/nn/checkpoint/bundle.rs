//! Weights as named tensors, and named tensors as weights.
//!
//! Names are paths: `clients.P1.transition.weight_ih`. Weights are F32, everything else that must
//! come back to the last bit (scaling, noises) is F64: decimal text would not do. Reading finds
//! every size in the shapes themselves, holds them against each other, and refuses a number that is
//! not one.

use std::cell::RefCell;
use std::collections::BTreeSet;

use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors};

use super::Kind;
use crate::nn::weights::{FilterWeights, LstmFc, Mlp, OwnLagWeights, ProprietaryWeights};

const NOT_A_NUMBER: &str = "a value is not a number";

/// Tensors to be written.
#[derive(Debug, Default)]
pub(crate) struct Tensors {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    /// Little-endian.
    bytes: Vec<u8>,
}

type Added = Result<(), String>;

impl Tensors {
    /// All of them, ready to be written.
    pub(crate) fn views<'a>(&'a self) -> Result<Vec<(&'a str, TensorView<'a>)>, SafeTensorError> {
        let view = |entry: &'a Entry| {
            let tensor = TensorView::new(entry.dtype, entry.shape.clone(), &entry.bytes)?;
            Ok((entry.name.as_str(), tensor))
        };
        self.entries.iter().map(view).collect()
    }

    fn add(&mut self, name: String, shape: &[usize], values: &[f32]) -> Added {
        if shape.iter().product::<usize>() != values.len() {
            return Err(format!("{name}: {} values for shape {shape:?}", values.len()));
        }
        let finite = values.iter().all(|v| v.is_finite());
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.push(name, Dtype::F32, shape, bytes, finite)
    }

    /// Adds numbers that must come back exactly.
    pub(crate) fn add_exact(&mut self, name: String, values: &[f64]) -> Added {
        let finite = values.iter().all(|v| v.is_finite());
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.push(name, Dtype::F64, &[values.len()], bytes, finite)
    }

    /// Adds bytes that are not for this module to read.
    pub(crate) fn add_bytes(&mut self, name: &str, bytes: &[u8]) -> Added {
        self.push(name.to_owned(), Dtype::U8, &[bytes.len()], bytes.to_vec(), true)
    }

    fn push(
        &mut self,
        name: String,
        dtype: Dtype,
        shape: &[usize],
        bytes: Vec<u8>,
        finite: bool,
    ) -> Added {
        if !finite {
            return Err(format!("{name}: {NOT_A_NUMBER}"));
        }
        if self.entries.iter().any(|entry| entry.name == name) {
            return Err(format!("{name}: two tensors of this name"));
        }
        self.entries.push(Entry { name, dtype, shape: shape.to_vec(), bytes });
        Ok(())
    }

    pub(crate) fn add_lstm(&mut self, name: &str, w: &LstmFc) -> Added {
        let (i, n, o) = (w.inputs, w.width, w.outputs);
        self.add(format!("{name}.weight_ih"), &[4 * n, i], &w.weight_ih)?;
        self.add(format!("{name}.weight_hh"), &[4 * n, n], &w.weight_hh)?;
        self.add(format!("{name}.bias_ih"), &[4 * n], &w.bias_ih)?;
        self.add(format!("{name}.bias_hh"), &[4 * n], &w.bias_hh)?;
        self.add(format!("{name}.fc_weight"), &[o, n], &w.fc_weight)?;
        self.add(format!("{name}.fc_bias"), &[o], &w.fc_bias)
    }

    fn add_mlp(&mut self, name: &str, w: &Mlp) -> Added {
        self.add(format!("{name}.weight_1"), &[w.width, w.inputs], &w.weight_1)?;
        self.add(format!("{name}.bias_1"), &[w.width], &w.bias_1)?;
        self.add(format!("{name}.weight_2"), &[w.outputs, w.width], &w.weight_2)?;
        self.add(format!("{name}.bias_2"), &[w.outputs], &w.bias_2)
    }

    pub(crate) fn add_filter(&mut self, name: &str, w: &FilterWeights) -> Added {
        self.add_lstm(&format!("{name}.transition"), &w.transition)?;
        self.add_mlp(&format!("{name}.measurement"), &w.measurement)?;
        self.add_exact(format!("{name}.noise"), &[w.q, w.r])?;
        match &w.loadings {
            Some(c) => self.add(format!("{name}.loadings"), &[w.sensors(), w.states()], c),
            None => Ok(()),
        }
    }

    fn add_own_lags(&mut self, name: &str, w: &OwnLagWeights) -> Added {
        self.add(format!("{name}.weight"), &[w.sensors, w.lags * w.sensors], &w.weight)?;
        self.add(format!("{name}.bias"), &[w.sensors], &w.bias)
    }

    /// Adds the model and says what of it is not in a tensor.
    pub(crate) fn add_proprietary(
        &mut self,
        name: &str,
        w: &ProprietaryWeights,
    ) -> Result<Kind, String> {
        match w {
            ProprietaryWeights::Filter(filter) => {
                self.add_filter(name, filter)?;
                Ok(Kind::Filter)
            }
            ProprietaryWeights::OwnLagFilter { front, filter, scale } => {
                self.add_own_lags(&format!("{name}.front"), front)?;
                self.add_filter(name, filter)?;
                self.add(format!("{name}.scale"), &[front.sensors], scale)?;
                Ok(Kind::OwnLagFilter { lags: front.lags })
            }
            ProprietaryWeights::Linear(front) => {
                self.add_own_lags(&format!("{name}.front"), front)?;
                Ok(Kind::Linear { lags: front.lags })
            }
        }
    }
}

/// Tensors that were read, and which of them were used.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    tensors: &'a SafeTensors<'a>,
    left: RefCell<BTreeSet<&'a str>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(tensors: &'a SafeTensors<'a>) -> Self {
        Self { tensors, left: RefCell::new(tensors.names().into_iter().collect()) }
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    /// A tensor that nothing asked for means that header and tensors do not belong together.
    pub(crate) fn nothing_left(&self) -> Result<(), String> {
        match self.left.borrow().first() {
            Some(name) => Err(format!("{name}: a tensor of no known network")),
            None => Ok(()),
        }
    }

    fn matrix(&self, name: &str) -> Result<([usize; 2], Vec<f32>), String> {
        let (shape, values) = self.read(name)?;
        match shape[..] {
            [rows, columns] => Ok(([rows, columns], values)),
            _ => Err(format!("{name}: shape {shape:?}, expected a matrix")),
        }
    }

    fn tensor(&self, name: &str, dtype: Dtype) -> Result<TensorView<'a>, String> {
        let tensor =
            self.tensors.tensor(name).map_err(|_| format!("{name}: the tensor is missing"))?;
        self.left.borrow_mut().remove(name);
        if tensor.dtype() == dtype {
            Ok(tensor)
        } else {
            Err(format!("{name}: {:?}, expected {dtype:?}", tensor.dtype()))
        }
    }

    fn read(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>), String> {
        let tensor = self.tensor(name, Dtype::F32)?;
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let values: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if values.iter().any(|v| !v.is_finite()) {
            return Err(format!("{name}: {NOT_A_NUMBER}"));
        }
        Ok((tensor.shape().to_vec(), values))
    }

    /// Numbers that were added with [`Tensors::add_exact`].
    pub(crate) fn exact(&self, name: &str) -> Result<Vec<f64>, String> {
        let tensor = self.tensor(name, Dtype::F64)?;
        let (numbers, _) = tensor.data().as_chunks::<8>();
        let values: Vec<f64> = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        if values.iter().any(|v| !v.is_finite()) {
            return Err(format!("{name}: {NOT_A_NUMBER}"));
        }
        Ok(values)
    }

    /// Bytes that were added with [`Tensors::add_bytes`]; none where there are none.
    pub(crate) fn optional_bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        if !self.has(name) {
            return Ok(Vec::new());
        }
        Ok(self.tensor(name, Dtype::U8)?.data().to_vec())
    }

    fn shaped(&self, name: &str, expected: &[usize]) -> Result<Vec<f32>, String> {
        let (shape, values) = self.read(name)?;
        if shape == expected {
            Ok(values)
        } else {
            Err(format!("{name}: shape {shape:?}, expected {expected:?}"))
        }
    }

    fn lstm(&self, name: &str) -> Result<LstmFc, String> {
        let ([_, inputs], weight_ih) = self.matrix(&format!("{name}.weight_ih"))?;
        let ([outputs, width], fc_weight) = self.matrix(&format!("{name}.fc_weight"))?;
        if weight_ih.len() != 4 * width * inputs {
            let rows = weight_ih.len() / inputs.max(1);
            return Err(format!("{name}.weight_ih: {rows} rows, expected {}", 4 * width));
        }
        Ok(LstmFc {
            inputs,
            width,
            outputs,
            weight_ih,
            weight_hh: self.shaped(&format!("{name}.weight_hh"), &[4 * width, width])?,
            bias_ih: self.shaped(&format!("{name}.bias_ih"), &[4 * width])?,
            bias_hh: self.shaped(&format!("{name}.bias_hh"), &[4 * width])?,
            fc_weight,
            fc_bias: self.shaped(&format!("{name}.fc_bias"), &[outputs])?,
        })
    }

    /// The network of this name, if the file has it.
    pub(crate) fn optional_lstm(&self, name: &str) -> Result<Option<LstmFc>, String> {
        self.has(&format!("{name}.weight_ih")).then(|| self.lstm(name)).transpose()
    }

    fn mlp(&self, name: &str, inputs: usize, outputs: usize) -> Result<Mlp, String> {
        let ([width, _], weight_1) = self.matrix(&format!("{name}.weight_1"))?;
        if weight_1.len() != width * inputs {
            let columns = weight_1.len() / width.max(1);
            return Err(format!("{name}.weight_1: {columns} columns, expected {inputs}"));
        }
        Ok(Mlp {
            inputs,
            width,
            outputs,
            weight_1,
            bias_1: self.shaped(&format!("{name}.bias_1"), &[width])?,
            weight_2: self.shaped(&format!("{name}.weight_2"), &[outputs, width])?,
            bias_2: self.shaped(&format!("{name}.bias_2"), &[outputs])?,
        })
    }

    /// A filter of so many sensors.
    pub(crate) fn filter(&self, name: &str, sensors: usize) -> Result<FilterWeights, String> {
        let noise = self.exact(&format!("{name}.noise"))?;
        let [q, r] = noise[..] else {
            return Err(format!("{name}.noise: {} numbers, expected q and r", noise.len()));
        };
        if q <= 0.0 || r <= 0.0 {
            return Err(format!("{name}.noise: q = {q} and r = {r}, expected both positive"));
        }
        let transition = self.lstm(&format!("{name}.transition"))?;
        let states = transition.outputs;
        if transition.inputs != states {
            return Err(format!(
                "{name}.transition: {} inputs and {states} outputs, expected as many",
                transition.inputs
            ));
        }
        let measurement = self.mlp(&format!("{name}.measurement"), states, sensors)?;
        let loadings = format!("{name}.loadings");
        let loadings =
            self.has(&loadings).then(|| self.shaped(&loadings, &[sensors, states])).transpose()?;
        Ok(FilterWeights { transition, measurement, loadings, q, r })
    }

    fn own_lags(&self, name: &str, sensors: usize, lags: usize) -> Result<OwnLagWeights, String> {
        Ok(OwnLagWeights {
            sensors,
            lags,
            weight: self.shaped(&format!("{name}.weight"), &[sensors, lags * sensors])?,
            bias: self.shaped(&format!("{name}.bias"), &[sensors])?,
        })
    }

    /// The proprietary model of a client with so many sensors.
    pub(crate) fn proprietary(
        &self,
        name: &str,
        kind: &Kind,
        sensors: usize,
    ) -> Result<ProprietaryWeights, String> {
        Ok(match *kind {
            Kind::Filter => ProprietaryWeights::Filter(self.filter(name, sensors)?),
            Kind::OwnLagFilter { lags } => ProprietaryWeights::OwnLagFilter {
                front: self.own_lags(&format!("{name}.front"), sensors, lags)?,
                filter: self.filter(name, sensors)?,
                scale: self.shaped(&format!("{name}.scale"), &[sensors])?,
            },
            Kind::Linear { lags } => ProprietaryWeights::Linear(self.own_lags(
                &format!("{name}.front"),
                sensors,
                lags,
            )?),
        })
    }
}
