//! Trained models on disk: one safetensors file with every tensor by its name and, beside them, what
//! makes the tensors usable (sizes, scaling, thresholds) and what they were made from.
//!
//! A file appears under its name only when it is complete, and is believed only when its checksum,
//! its version, its fingerprint, every shape and every number hold. The checksum covers all bytes of
//! the file: one changed bit anywhere is noticed. This module must not know how models are trained.

mod bundle;
mod cache;
mod checksum;
mod hash;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::bundle::{Reader, Tensors};
pub(crate) use self::cache::{CacheEnvironment, cache_folder};
use self::checksum::Checksum;
pub(crate) use self::hash::{Fingerprint, Hasher};
use super::oracle::{Layout, Oracle};
use super::weights::{LstmFc, ProprietaryWeights};
use crate::base::atomic_file::{AtomicFile, WriteError};

/// Version of the file format. Files of version 2 differ by the names of their tensors alone and are
/// read too, such as the delivered models; one of any other version is made anew.
pub(crate) const VERSION: u32 = 3;
const READABLE: [u32; 2] = [2, VERSION];

/// The one metadata entry: several would be written in no fixed order.
const HEADER: &str = "headwater";

/// The tensor of bytes beside the networks.
const FITS: &str = "fits";

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Checkpoint {
    /// What it was made from: session, data, seed.
    pub(crate) fingerprint: Fingerprint,
    /// Clients in the order of the session.
    pub(crate) clients: Vec<ClientModels>,
    /// `f_s`, once the federation has trained it.
    pub(crate) server: Option<LstmFc>,
    /// The centralised oracle, when a study asked for it.
    pub(crate) oracle: Option<Oracle>,
    /// Thresholds and calibration, as JSON text that its writer reads.
    pub(crate) thresholds: String,
    /// What sites fitted beside their models, as bytes that their writer reads; may be empty.
    pub(crate) fits: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientModels {
    pub(crate) name: String,
    pub(crate) mean: Vec<f64>,
    pub(crate) std: Vec<f64>,
    /// The frozen proprietary model that watches.
    pub(crate) proprietary: ProprietaryWeights,
    /// A frozen model whose states may be sent, where those of `proprietary` may not.
    pub(crate) sending: Option<ProprietaryWeights>,
    /// `φ_m`, once the federation has trained it.
    pub(crate) augment: Option<LstmFc>,
    /// The end-to-end baseline, when a study asked for it.
    pub(crate) predictor: Option<LstmFc>,
}

/// Why a checkpoint cannot be written or used.
#[derive(Debug, Error)]
pub(crate) enum CheckpointError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Not a safetensors file, or not all of one.
    #[error("{}: not a complete safetensors file ({source})", path.display())]
    Damaged { path: PathBuf, source: safetensors::SafeTensorError },
    /// Its bytes are not those that were written.
    #[error("{}: cannot be read: {what}", path.display())]
    Checksum {
        path: PathBuf,
        /// Whether the checksum differs or is not there.
        what: &'static str,
    },
    /// Written by another version of the format.
    #[error("{}: checkpoint of version {found}, expected {VERSION}", path.display())]
    Version { path: PathBuf, found: u32 },
    /// Made from another session or other data.
    #[error("{}: made from {found}, expected {expected}: session or data have changed", path.display())]
    Fingerprint {
        path: PathBuf,
        found: Fingerprint,
        /// What it should have been made from.
        expected: Fingerprint,
    },
    /// A tensor or the header does not fit.
    #[error("{}: {what}", path.display())]
    Content { path: PathBuf, what: String },
}

/// What stands in the header beside the tensors.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// First, so that it is found before anything else is read.
    checksum: String,
    version: u32,
    fingerprint: String,
    clients: Vec<ClientHeader>,
    oracle: Option<OracleHeader>,
    thresholds: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct ClientHeader {
    name: String,
    proprietary: Kind,
    sending: Option<Kind>,
}

/// Which tensors a proprietary model has.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Kind {
    Filter,
    OwnLagFilter { lags: usize },
    Linear { lags: usize },
}

#[derive(Debug, Serialize, Deserialize)]
struct OracleHeader {
    /// (states, sensors) per client.
    clients: Vec<(usize, usize)>,
}

impl Checkpoint {
    /// Writes the file: complete under a temporary name beside it, then renamed. Whatever stood
    /// there before stays until then.
    pub(crate) fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        Self::write(path, &self.to_file(path)?)
    }

    /// The content of its file; `path` is what complaints call it.
    pub(crate) fn to_file(&self, path: &Path) -> Result<Vec<u8>, CheckpointError> {
        self.to_bytes().map_err(|what| content(path, what))
    }

    /// Writes the content of a file as [`Self::save`] does.
    pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let name =
            path.file_name().ok_or_else(|| content(path, "not the name of a file".into()))?;
        let mut draft = AtomicFile::create(folder, &name.to_string_lossy())?;
        draft.fill(|file| file.write_all(bytes))?;
        draft.publish()?;
        Ok(())
    }

    /// Reads a file made from `expected`; any fingerprint will do when that is none.
    pub(crate) fn load(
        path: &Path,
        expected: Option<Fingerprint>,
    ) -> Result<Self, CheckpointError> {
        let bytes = fs::read(path)
            .map_err(|source| CheckpointError::Io { path: path.to_owned(), source })?;
        Self::from_bytes(path, &bytes, expected)
    }

    /// The same of a file's content; `path` is what complaints call it.
    pub(crate) fn from_bytes(
        path: &Path,
        bytes: &[u8],
        expected: Option<Fingerprint>,
    ) -> Result<Self, CheckpointError> {
        let checksum = checksum::check(bytes);
        if checksum == Checksum::Differs {
            let what = "checksum differs";
            return Err(CheckpointError::Checksum { path: path.to_owned(), what });
        }
        let damaged = |source| CheckpointError::Damaged { path: path.to_owned(), source };
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let text = metadata.metadata().as_ref().and_then(|m| m.get(HEADER));
        let text = text.ok_or_else(|| content(path, "not a checkpoint of headwater".to_owned()))?;
        // The version first: the rest of another version's header may look different.
        let version: VersionOnly =
            serde_json::from_str(text).map_err(|e| content(path, format!("header: {e}")))?;
        if !READABLE.contains(&version.version) {
            return Err(CheckpointError::Version { path: path.to_owned(), found: version.version });
        }
        if checksum == Checksum::Absent {
            let what = "it has no checksum";
            return Err(CheckpointError::Checksum { path: path.to_owned(), what });
        }
        let header: Header =
            serde_json::from_str(text).map_err(|e| content(path, format!("header: {e}")))?;
        let found = header
            .fingerprint
            .parse()
            .map_err(|()| content(path, "header: fingerprint is not a number".to_owned()))?;
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(CheckpointError::Fingerprint { path: path.to_owned(), found, expected });
        }
        let reader = Reader::new(&tensors, version.version);
        Self::from_parts(header, found, &reader).map_err(|what| content(path, what))
    }

    fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut tensors = Tensors::default();
        let mut clients = Vec::with_capacity(self.clients.len());
        for client in &self.clients {
            let name = format!("clients.{}", client.name);
            tensors.add(format!("{name}.mean"), &[client.mean.len()], &client.mean)?;
            tensors.add(format!("{name}.std"), &[client.std.len()], &client.std)?;
            let sending = client.sending.as_ref();
            clients.push(ClientHeader {
                name: client.name.clone(),
                proprietary: tensors.add_proprietary(&name, &client.proprietary)?,
                sending: sending
                    .map(|w| tensors.add_proprietary(&format!("{name}.sending"), w))
                    .transpose()?,
            });
            for (part, lstm) in [("augment", &client.augment), ("predictor", &client.predictor)] {
                if let Some(lstm) = lstm {
                    tensors.add_network(&format!("{name}.{part}"), lstm)?;
                }
            }
        }
        if let Some(server) = &self.server {
            tensors.add_network("server", server)?;
        }
        if !self.fits.is_empty() {
            tensors.add(FITS.to_owned(), &[self.fits.len()], &self.fits)?;
        }
        let mut oracle = None;
        if let Some(Oracle { filter, layout }) = &self.oracle {
            tensors.add_filter("oracle", filter)?;
            let parts =
                (0..layout.clients()).map(|m| (layout.states(m).len(), layout.sensors(m).len()));
            oracle = Some(OracleHeader { clients: parts.collect() });
        }
        let header = Header {
            checksum: checksum::PLACE.to_owned(),
            version: VERSION,
            fingerprint: self.fingerprint.to_string(),
            clients,
            oracle,
            thresholds: self.thresholds.clone(),
        };
        let header = serde_json::to_string(&header).map_err(|e| e.to_string())?;
        let metadata = Some([(HEADER.to_owned(), header)].into());
        let mut bytes = safetensors::serialize(&tensors.0, metadata).map_err(|e| e.to_string())?;
        checksum::enter(&mut bytes)?;
        Ok(bytes)
    }

    fn from_parts(
        header: Header,
        fingerprint: Fingerprint,
        tensors: &Reader,
    ) -> Result<Self, String> {
        let mut clients = Vec::with_capacity(header.clients.len());
        for client in header.clients {
            let name = format!("clients.{}", client.name);
            let mean: Vec<f64> = tensors.numbers(&format!("{name}.mean"))?;
            let std: Vec<f64> = tensors.numbers(&format!("{name}.std"))?;
            let sensors = mean.len();
            if std.len() != sensors {
                return Err(format!("{name}: {sensors} means, {} deviations", std.len()));
            }
            clients.push(ClientModels {
                proprietary: tensors.proprietary(&name, &client.proprietary, sensors)?,
                sending: client
                    .sending
                    .map(|kind| tensors.proprietary(&format!("{name}.sending"), &kind, sensors))
                    .transpose()?,
                augment: tensors.optional_lstm(&format!("{name}.augment"))?,
                predictor: tensors.optional_lstm(&format!("{name}.predictor"))?,
                name: client.name,
                mean,
                std,
            });
        }
        let mut oracle = None;
        if let Some(OracleHeader { clients }) = header.oracle {
            let layout = Layout::new(&clients);
            let filter = tensors.filter("oracle", layout.total_sensors())?;
            if filter.states() != layout.total_states() {
                return Err(format!(
                    "oracle: {} states, expected {}",
                    filter.states(),
                    layout.total_states()
                ));
            }
            oracle = Some(Oracle { filter, layout });
        }
        let server = tensors.optional_lstm("server")?;
        let fits = tensors.optional_numbers(FITS)?;
        tensors.nothing_left()?;
        Ok(Self { fingerprint, clients, server, oracle, thresholds: header.thresholds, fits })
    }
}

#[derive(Debug, Deserialize)]
struct VersionOnly {
    version: u32,
}

fn content(path: &Path, what: String) -> CheckpointError {
    CheckpointError::Content { path: path.to_owned(), what }
}

#[cfg(test)]
mod tests;
