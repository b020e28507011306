//! The models of a federation whose sites and server are processes of their own: each process makes and
//! keeps its own part.
//!
//! A site reads its own rows, makes or is delivered its proprietary model, learns φ in the rounds,
//! and calibrates. The server learns f_s and who influences whom. The parts are the same, bit by bit, as
//! those that [`make`](super::make) makes in one process.

mod server;
mod site;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub(crate) use self::server::{ServerModels, ServerPart};
pub(crate) use self::site::{SiteModels, SitePart};
use super::{Stage, fingerprint};
use crate::engine::error::PrepareError;
use crate::nn::checkpoint::{
    CacheEnvironment, Checkpoint, CheckpointError, Fingerprint, Hasher, cache_folder,
};
use crate::nn::weights::{LstmFc, Parameters as _};
use crate::session::{Labels, LiveHistory, Session, Source};

/// Identifies the models of one training: f_s, which all clients helped to learn.
fn id_of(f_s: &LstmFc) -> u64 {
    let mut hasher = Hasher::new();
    for slice in f_s.slices() {
        let bytes: Vec<u8> = slice.iter().flat_map(|x| x.to_le_bytes()).collect();
        hasher.bytes(&bytes);
    }
    // The upper half would do as well: all bits of an FNV digest depend on all input.
    hasher.finish().0 as u64
}

/// Where a part is kept between runs.
fn part_file(models: Fingerprint, part: &str) -> PathBuf {
    let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let part: String = part.chars().map(plain).collect();
    let name = format!("models-{models}-{part}.safetensors");
    cache_folder(&CacheEnvironment::of_process()).join(name)
}

/// Writes a part; what was written is what is used. A file that cannot be written is done without, with a
/// message.
fn keep(
    checkpoint: &Checkpoint,
    file: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Checkpoint, CheckpointError> {
    let bytes = checkpoint.to_file(file)?;
    if let Err(why) = Checkpoint::write(file, &bytes) {
        say(&format!("{why}; the run goes on, and models are not kept"));
    }
    Checkpoint::from_bytes(file, &bytes, Some(checkpoint.fingerprint))
}

/// A session with the one client whose data is here, and without labels, which a site has no use for. The
/// built-in plants need no data and are left as they are.
pub(crate) fn own(session: &Session, client: &str) -> Session {
    let mut own = session.clone();
    match own.source {
        Source::Table(_) | Source::Hai(_) | Source::Live(_) => {
            own.clients.retain(|known| known.name == client);
            own.labels = Labels::default();
        }
        Source::Plant(_) | Source::Twin(_) => {}
    }
    // A site that is started again must not wait for its history: others went on.
    if let Source::Live(live) = &mut own.source
        && live.history == LiveHistory::First
    {
        live.history = LiveHistory::Learned;
    }
    own
}

/// What the models of a site depend on: its own part of the session and its own data, with a live source
/// also the rows that it has gathered. A client that is added to the session changes nothing about them.
fn of_site(session: &Session, client: &str) -> Result<Fingerprint, PrepareError> {
    fingerprint(&own(session, client))
}

/// Stages of a training over a broker are not shown; it goes on until its process is interrupted.
pub(crate) fn unwatched(
    say: &mut (dyn FnMut(&str) + Send),
) -> impl FnMut(Stage) -> ControlFlow<()> + Send {
    move |stage| {
        if let Stage::Notice(what) = stage {
            say(what);
        }
        ControlFlow::Continue(())
    }
}
