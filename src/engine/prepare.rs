//! From a session to models that can run: delivered or trained, federated, calibrated, kept.
//!
//! What was prepared once for a session and its data is read from the cache the next time, and both
//! ways give the same bits: a fresh preparation is used as it was written, not as it was computed.

pub(crate) mod apart;
mod fingerprint;
mod make;
mod stored;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use self::fingerprint::fingerprint;
use self::make::make;
pub(crate) use self::stored::keep_oracle;
use self::stored::restore;
use super::decimation;
pub(crate) use super::error::PrepareError;
use super::influence::Influences;
use super::vendor;
use crate::federation::{self, History, Hooks};
use crate::nn::checkpoint::{
    CacheEnvironment, Checkpoint, CheckpointError, Fingerprint, cache_folder,
};
use crate::nn::train;
use crate::nn::weights::LstmFc;
use crate::privacy::Trained;
use crate::server::StateCorrelation;
use crate::session::Session;
pub(crate) use crate::site::PreparedSite;
use crate::site::material::{ClientMaterial, LeftOut, Material};
use crate::site::seen::SeenFit;
use crate::stream::{Layout, UnusedRows};
use crate::wire::{Memory, Wire};

/// Sources of a seed.
const PROPRIETARY: u64 = 0x50;
pub(super) const FEDERATION: u64 = 0x46;

/// The stages of a preparation, reported as they happen.
#[derive(Debug)]
pub(crate) enum Stage<'a> {
    /// Nominal data is being read.
    Reading,
    /// The models come with the program: nothing is trained but the federation.
    Delivered,
    Proprietary(train::Progress<'a>),
    /// Clients and server learn from each other.
    Federation(federation::Progress<'a>),
    /// Nominal residuals are being measured.
    Calibrating,
    /// Something about where models are kept is not as it should be; the work goes on.
    Notice(&'a str),
}

/// Told of every stage; `Break` stops training with what was learned.
pub(crate) type OnStage<'a> = &'a mut (dyn FnMut(Stage) -> ControlFlow<()> + Send);

/// A session's models, ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// Samples in a block mean.
    pub(crate) every: u32,
    /// Clients in the order of the session.
    pub(crate) clients: Vec<PreparedSite>,
    /// f_s.
    pub(crate) server: LstmFc,
    pub(crate) history: Option<History>,
    /// It was trained just now, and not read from where it was kept.
    pub(crate) fresh: bool,
    /// Whether training was asked to stop before its end.
    pub(crate) stopped: bool,
    /// What training released about each client.
    pub(crate) spent: TrainingSpent,
    pub(crate) influences: Influences,
    /// How states move together; nothing where training was too short or states are too many.
    pub(crate) together: Option<StateCorrelation>,
    /// Rows of the nominal data that were not used.
    pub(crate) unused: UnusedRows,
    pub(crate) file: PathBuf,
    /// Why it could not be kept there, where it could not.
    pub(crate) not_kept: Option<String>,
}

/// What a training released, kept with the models it made: they are used many times and were trained
/// once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainingSpent {
    /// The first sample it is about.
    pub(crate) from: Timestamp,
    /// For each client, by kind.
    pub(crate) clients: Vec<Vec<Trained>>,
}

/// Where `session`'s models are kept between runs.
pub(crate) fn cache_file(session: &Session) -> PathBuf {
    // Not the session's name: the same session under another name has the same models.
    let name = match fingerprint(session) {
        Ok(fingerprint) => format!("models-{fingerprint}.safetensors"),
        // Nothing is ever kept under this name: `prepare` fails with the reason.
        Err(_) => "models.safetensors".to_owned(),
    };
    cache_folder(&CacheEnvironment::of_process()).join(name)
}

/// Prepares `session`, or reads what was prepared before from `file`; also what was stopped early,
/// which [`Prepared::stopped`] then says.
///
/// A file that cannot be read is made anew, and one that cannot be written is done without. Both are
/// reported as a [`Stage::Notice`], and the second by [`Prepared::not_kept`].
pub(crate) fn prepare(
    session: &Session,
    file: &Path,
    on_stage: OnStage,
) -> Result<Prepared, PrepareError> {
    prepare_over(session, file, Box::new(Memory::default()), on_stage)
}

/// The same, with every message of the federation, and of learning influence, sent over `wire`.
pub(crate) fn prepare_over(
    session: &Session,
    file: &Path,
    wire: Box<dyn Wire>,
    on_stage: OnStage,
) -> Result<Prepared, PrepareError> {
    let expected = fingerprint(session)?;
    match load(session, file, expected) {
        Ok(prepared) => return Ok(prepared),
        Err(why) if is_ordinary(&why) => {}
        Err(why) => {
            let _ = on_stage(Stage::Notice(&format!("{why}; the models are made again")));
        }
    }
    let mut released = None;
    let made = make(session, expected, wire, on_stage, &mut released);
    let made = made.map_err(|why| match released {
        Some(released) => PrepareError::AfterReleases { why: Box::new(why), released },
        None => why,
    });
    let bytes = made?.to_file(file)?;
    let not_kept = Checkpoint::write(file, &bytes).err().map(|why| why.to_string());
    if let Some(why) = &not_kept {
        let _ =
            on_stage(Stage::Notice(&format!("{why}; the run goes on, and models are not kept")));
    }
    let checkpoint = Checkpoint::from_bytes(file, &bytes, Some(expected))?;
    Ok(Prepared { fresh: true, not_kept, ..restore(checkpoint, file, session)? })
}

/// What was prepared before for `session` and its data, as it is kept in `file`.
pub(crate) fn kept(session: &Session, file: &Path) -> Result<Prepared, PrepareError> {
    Ok(load(session, file, fingerprint(session)?)?)
}

/// The models of `session` as a recording holds them; `file` is where they come from, for errors.
pub(crate) fn from_bytes(
    session: &Session,
    file: &Path,
    bytes: &[u8],
) -> Result<Prepared, CheckpointError> {
    restore(Checkpoint::from_bytes(file, bytes, None)?, file, session)
}

fn load(
    session: &Session,
    file: &Path,
    expected: Fingerprint,
) -> Result<Prepared, CheckpointError> {
    restore(Checkpoint::load(file, Some(expected))?, file, session)
}

/// Whether a file cannot be used for a reason that needs no message: it is not there yet, or it
/// was made by another version or from other data.
fn is_ordinary(why: &CheckpointError) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match why {
        CheckpointError::Io { source, .. } => matches!(source.kind(), NotFound | NotADirectory),
        CheckpointError::Version { .. } | CheckpointError::Fingerprint { .. } => true,
        CheckpointError::Checksum { .. }
        | CheckpointError::Damaged { .. }
        | CheckpointError::Content { .. }
        | CheckpointError::Write(_) => false,
    }
}

/// The sensors of every client that its models will not look at, with the reason and with what is
/// known of their values.
pub(crate) fn unmodelled(session: &Session) -> Result<Vec<Unmodelled>, PrepareError> {
    let every = decimation::every(session)?;
    let delivered = vendor::delivered(session, every);
    let material = Material::read(session, every, &vendor::views_of(delivered.as_ref()))?;
    let of = |client: ClientMaterial| Unmodelled {
        client: client.name,
        sensors: client.view.used.len(),
        left_out: client.left_out,
        wild: client.wild,
        seen: client.seen,
        step_s: material.layout.period_s,
    };
    Ok(material.clients.into_iter().map(of).collect())
}

/// The sensors of a client that its models will not look at.
#[derive(Debug)]
pub(crate) struct Unmodelled {
    pub(crate) client: String,
    /// Sensors that its models do look at.
    pub(crate) sensors: usize,
    /// The others, with the reason.
    pub(crate) left_out: Vec<(String, LeftOut)>,
    /// Those of them that are watched by their values.
    pub(crate) seen: SeenFit,
    /// Columns with wild values in the nominal data, which are taken out, and how many.
    pub(crate) wild: Vec<(String, u64)>,
    /// Seconds of a step.
    pub(crate) step_s: f64,
}

/// The session's noise, between values and messages.
pub(super) fn hooks(session: &Session) -> Hooks<'_> {
    Hooks::of(session)
}

/// The layout that a prepared session's frames must have.
pub(crate) fn fits(prepared: &Prepared, layout: &Layout) -> bool {
    prepared.clients.len() == layout.clients.len()
        && prepared.clients.iter().zip(&layout.clients).all(|(prepared, client)| {
            prepared.name == client.name
                && prepared.view.used.iter().zip(&prepared.view.names).all(|(place, name)| {
                    client.sensors.get(*place).is_some_and(|sensor| sensor.name == *name)
                })
        })
}
