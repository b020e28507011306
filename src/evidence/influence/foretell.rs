//! The server at work: what others explain of a client's next ε.

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
    /// From nominal z.
    pub fn fit<'a>(states: usize, nominal: impl Iterator<Item = &'a [f64]>) -> Self {
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

    pub fn width(&self) -> usize {
        self.mean.len()
    }

    pub fn write(&self, z: &[f64], psi: &mut [f64]) {
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
    pub from: usize,
    /// For every number of ε, every lag, every feature.
    pub coefficients: Vec<f64>,
}

/// The server's model of influence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Foreteller {
    sources: Vec<Source>,
    parts: Vec<Vec<Part>>,
}

/// What the server remembers of the last steps.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Per client, the newest step first.
    psi: Vec<Vec<f64>>,
    /// For how many steps on end each client has spoken.
    spoken: Vec<usize>,
}

impl Foreteller {
    pub(super) fn new(sources: Vec<Source>, parts: Vec<Vec<Part>>) -> Self {
        Self { sources, parts }
    }

    /// Who foretells something of `client`.
    pub fn parents(&self, client: usize) -> impl Iterator<Item = usize> + '_ {
        self.parts[client].iter().map(|part| part.from)
    }

    /// Number of clients.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.sources.len()
    }

    /// Nothing heard yet.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory {
            psi: self.sources.iter().map(|source| vec![0.0; LAGS * source.width()]).collect(),
            spoken: vec![0; self.sources.len()],
        }
    }

    /// What the others foretell of the next ε of `client`; false when nobody does, or when one of
    /// them has not spoken for long enough. `out` is emptied first.
    pub fn foretell(&self, memory: &Memory, client: usize, out: &mut Vec<f64>) -> bool {
        out.clear();
        let parts = &self.parts[client];
        if parts.is_empty() || parts.iter().any(|part| memory.spoken[part.from] < LAGS) {
            return false;
        }
        out.resize(self.sources[client].features.states(), 0.0);
        for Part { from, coefficients } in parts {
            let psi = &memory.psi[*from];
            for (out, row) in out.iter_mut().zip(coefficients.chunks_exact(psi.len())) {
                *out += row.iter().zip(psi).map(|(b, psi)| b * psi).sum::<f64>();
            }
        }
        true
    }

    /// Takes what `client` says of the step that has just been foretold.
    pub fn hear(&self, memory: &mut Memory, client: usize, z: Option<&[f64]>) {
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
