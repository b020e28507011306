//! Weights as named tensors, and named tensors as weights.
//!
//! Names are paths that end as candle-nn names its tensors: `clients.P1.transition.weight_ih_l0`. So
//! candle's own `VarBuilder` can build a network from the file. Weights are F32, everything else that
//! must come back to the last bit (scaling, noises) is F64: decimal text would not do. Reading finds
//! every size in the shapes themselves, holds them against each other, and refuses a number that is
//! not one.

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use candle_core::safetensors::Load as _;
use candle_core::{Device, Tensor, WithDType};
use safetensors::SafeTensors;

use super::Kind;
use crate::nn::weights::{
    Conduct, FilterWeights, LOADINGS, LstmFc, Mlp, OwnLagWeights, Parameters, ProprietaryWeights,
};

#[derive(Debug, Default)]
pub(crate) struct Tensors(pub(crate) BTreeMap<String, Tensor>);

type Added = Result<(), String>;

fn finite<T: WithDType>(name: &str, values: &[T]) -> Result<(), String> {
    let finite = values.iter().all(|v| v.to_f64().is_finite());
    if finite { Ok(()) } else { Err(format!("{name}: a value is not a number")) }
}

impl Tensors {
    /// Adds numbers that will come back to the last bit.
    pub(crate) fn add<T: WithDType>(
        &mut self,
        name: String,
        shape: &[usize],
        values: &[T],
    ) -> Added {
        finite(&name, values)?;
        let tensor = Tensor::from_slice(values, shape, &Device::Cpu);
        let tensor = tensor.map_err(|e| format!("{name}: {e}"))?;
        match self.0.entry(name) {
            Entry::Vacant(place) => place.insert(tensor),
            Entry::Occupied(place) => {
                return Err(format!("{}: two tensors of this name", place.key()));
            }
        };
        Ok(())
    }

    pub(crate) fn add_network(&mut self, name: &str, w: &impl Parameters) -> Added {
        for ((tensor, shape), values) in w.shapes().iter().zip(w.slices()) {
            self.add(format!("{name}.{tensor}"), shape, values)?;
        }
        for (tensor, shape, values) in w.constants() {
            self.add(format!("{name}.{tensor}"), &shape, values)?;
        }
        Ok(())
    }

    pub(crate) fn add_filter(&mut self, name: &str, w: &FilterWeights) -> Added {
        self.add_network(name, w)?;
        self.add(format!("{name}.noise"), &[2], &[w.q, w.r])
    }

    fn add_own_lags(&mut self, name: &str, w: &OwnLagWeights) -> Added {
        self.add(format!("{name}.weight"), &[w.sensors, w.lags * w.sensors], &w.weight)?;
        self.add(format!("{name}.bias"), &[w.sensors], &w.bias)
    }

    /// Adds the model; returns what of it is not in a tensor.
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
    version: u32,
}

/// Endings of names as they are, and as they were in files of version 2.
const NAMES_OF_VERSION_2: [(&str, &str); 10] = [
    (".weight_ih_l0", ".weight_ih"),
    (".weight_hh_l0", ".weight_hh"),
    (".bias_ih_l0", ".bias_ih"),
    (".bias_hh_l0", ".bias_hh"),
    (".fc.weight", ".fc_weight"),
    (".fc.bias", ".fc_bias"),
    (".first.weight", ".weight_1"),
    (".first.bias", ".bias_1"),
    (".second.weight", ".weight_2"),
    (".second.bias", ".bias_2"),
];

impl<'a> Reader<'a> {
    pub(crate) fn new(tensors: &'a SafeTensors<'a>, version: u32) -> Self {
        Self { tensors, left: RefCell::new(tensors.names().into_iter().collect()), version }
    }

    /// What a tensor is called in a file of this version.
    pub(crate) fn stored(&self, name: &str) -> String {
        let old = NAMES_OF_VERSION_2.iter().filter(|_| self.version == 2);
        old.clone()
            .find_map(|(now, then)| name.strip_suffix(now).map(|path| format!("{path}{then}")))
            .unwrap_or_else(|| name.to_owned())
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.tensor(&self.stored(name)).is_ok()
    }

    /// A tensor that nothing asked for means that header and tensors do not belong together.
    pub(crate) fn nothing_left(&self) -> Result<(), String> {
        match self.left.borrow().first() {
            Some(name) => Err(format!("{name}: a tensor of no known network")),
            None => Ok(()),
        }
    }

    /// The shape of a matrix that holds something.
    fn matrix(&self, name: &str) -> Result<[usize; 2], String> {
        let tensor = self.tensors.tensor(&self.stored(name));
        match tensor.map_err(|_| format!("{name}: the tensor is missing"))?.shape()[..] {
            [rows, columns] if rows > 0 && columns > 0 => Ok([rows, columns]),
            ref shape => Err(format!("{name}: shape {shape:?}, expected a matrix")),
        }
    }

    fn read<T: WithDType>(&self, name: &str) -> Result<(Vec<usize>, Vec<T>), String> {
        let stored = self.stored(name);
        let view =
            self.tensors.tensor(&stored).map_err(|_| format!("{name}: the tensor is missing"))?;
        self.left.borrow_mut().remove(stored.as_str());
        let values = view.load(&Device::Cpu).and_then(|t| t.flatten_all()?.to_vec1());
        let values: Vec<T> = values.map_err(|e| format!("{name}: {e}"))?;
        finite(name, &values)?;
        Ok((view.shape().to_vec(), values))
    }

    pub(crate) fn numbers<T: WithDType>(&self, name: &str) -> Result<Vec<T>, String> {
        Ok(self.read(name)?.1)
    }

    /// The same; none where the file has no such tensor.
    pub(crate) fn optional_numbers<T: WithDType>(&self, name: &str) -> Result<Vec<T>, String> {
        if self.has(name) { self.numbers(name) } else { Ok(Vec::new()) }
    }

    fn shaped(&self, name: &str, expected: &[usize]) -> Result<Vec<f32>, String> {
        let (shape, values) = self.read(name)?;
        if shape == expected {
            Ok(values)
        } else {
            Err(format!("{name}: shape {shape:?}, expected {expected:?}"))
        }
    }

    /// Fills `weights`, which have sizes and no numbers yet.
    fn network<W: Parameters>(&self, name: &str, mut weights: W) -> Result<W, String> {
        let shapes = weights.shapes();
        for ((tensor, shape), values) in shapes.iter().zip(weights.slices_mut()) {
            *values = self.shaped(&format!("{name}.{tensor}"), shape)?;
        }
        Ok(weights)
    }

    fn lstm(&self, name: &str) -> Result<LstmFc, String> {
        let [_, inputs] = self.matrix(&format!("{name}.weight_ih_l0"))?;
        let [outputs, width] = self.matrix(&format!("{name}.fc.weight"))?;
        self.network(name, LstmFc::empty(inputs, width, outputs))
    }

    /// The network of this name, if the file has it.
    pub(crate) fn optional_lstm(&self, name: &str) -> Result<Option<LstmFc>, String> {
        self.has(&format!("{name}.weight_ih_l0")).then(|| self.lstm(name)).transpose()
    }

    fn mlp(&self, name: &str, inputs: usize, outputs: usize) -> Result<Mlp, String> {
        let [width, _] = self.matrix(&format!("{name}.first.weight"))?;
        self.network(name, Mlp::empty(inputs, width, outputs))
    }

    /// A filter of so many sensors.
    pub(crate) fn filter(&self, name: &str, sensors: usize) -> Result<FilterWeights, String> {
        let noise: Vec<f64> = self.numbers(&format!("{name}.noise"))?;
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
        let loadings = format!("{name}.{LOADINGS}");
        let loadings =
            self.has(&loadings).then(|| self.shaped(&loadings, &[sensors, states])).transpose()?;
        Ok(FilterWeights { transition, measurement, loadings, q, r, conduct: Conduct::default() })
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
