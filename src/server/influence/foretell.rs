//! The server at work: what one client's state explains of another's next ε.

use serde::{Deserialize, Serialize};

use super::LAGS;
use crate::evidence::features::{Features, LARGEST_Z, bounded};

/// ψ of one client's z about its nominal mean, so that silence foretells nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Source {
    features: Features,
    mean: Vec<f64>,
}

impl Source {
    pub(crate) fn fit<'a>(states: usize, nominal: impl Iterator<Item = &'a [f64]>) -> Self {
        let features = Features::new(states);
        let width = features.width();
        let mut source = Self { features, mean: vec![0.0; width] };
        let (mut sum, mut n) = (vec![0.0; width], 0.0f64);
        let mut psi = vec![0.0; width];
        for z in nominal {
            source.write(z, &mut psi);
            sum.iter_mut().zip(&psi).for_each(|(sum, psi)| *sum += psi);
            n += 1.0;
        }
        source.mean = sum.into_iter().map(|sum| sum / n.max(1.0)).collect();
        source
    }

    pub(crate) fn width(&self) -> usize {
        self.mean.len()
    }

    pub(crate) fn write(&self, z: &[f64], psi: &mut [f64]) {
        for (psi, z) in psi.iter_mut().zip(z) {
            *psi = bounded(*z, LARGEST_Z);
        }
        self.features.complete(psi);
        psi.iter_mut().zip(&self.mean).for_each(|(psi, mean)| *psi -= mean);
    }
}

/// What one client's past foretells of another's ε.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(crate) from: usize,
    /// For every number of ε, every lag, every feature.
    pub(crate) coefficients: Vec<f64>,
}

/// The server's model of influence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StatePredictor {
    sources: Vec<Source>,
    /// For each client, of the one who explains most of it.
    parts: Vec<Option<Part>>,
}

/// What the server remembers of the last steps.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    /// Per client, the newest step first.
    psi: Vec<Vec<f64>>,
    /// For how many steps on end each client has sent.
    spoken: Vec<usize>,
}

impl StatePredictor {
    pub(super) fn new(sources: Vec<Source>, parts: Vec<Option<Part>>) -> Self {
        Self { sources, parts }
    }

    /// Whose state foretells something of `client`.
    pub(crate) fn explainer(&self, client: usize) -> Option<usize> {
        self.parts[client].as_ref().map(|part| part.from)
    }

    pub(crate) fn clients(&self) -> usize {
        self.sources.len()
    }

    pub(crate) fn memory(&self) -> Memory {
        Memory {
            psi: self.sources.iter().map(|source| vec![0.0; LAGS * source.width()]).collect(),
            spoken: vec![0; self.sources.len()],
        }
    }

    /// What its explainer foretells of the next ε of `client`; false when it has none, or when that
    /// one has not sent for long enough. `out` is emptied first.
    pub(crate) fn foretell(&self, memory: &Memory, client: usize, out: &mut Vec<f64>) -> bool {
        out.clear();
        let Some(Part { from, coefficients }) = &self.parts[client] else { return false };
        if memory.spoken[*from] < LAGS {
            return false;
        }
        let psi = &memory.psi[*from];
        let rows = coefficients.chunks_exact(psi.len());
        out.extend(rows.map(|row| row.iter().zip(psi).map(|(b, psi)| b * psi).sum::<f64>()));
        true
    }

    /// Takes the summary of `client` at the step that has just been predicted.
    pub(crate) fn hear(&self, memory: &mut Memory, client: usize, z: Option<&[f64]>) {
        let source = &self.sources[client];
        let sound =
            |z: &&[f64]| z.len() == source.features.states() && z.iter().all(|z| z.is_finite());
        let psi = &mut memory.psi[client];
        let width = source.width();
        psi.copy_within(..(LAGS - 1) * width, width);
        if let Some(z) = z.filter(sound) {
            source.write(z, &mut psi[..width]);
            memory.spoken[client] += 1;
        } else {
            psi[..width].fill(0.0);
            memory.spoken[client] = 0;
        }
    }
}
