//! The models of the server, and how they are made.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{id_of, keep, part_file};
use crate::base::rng;
use crate::engine::error::PrepareError;
use crate::engine::prepare::fingerprint::json;
use crate::engine::prepare::stored::{header, unusable};
use crate::engine::prepare::{FEDERATION, Influences, Prepared, TrainingSpent, fingerprint, hooks};
use crate::federation::apart::ServerHalf;
use crate::federation::{FederationError, History};
use crate::nn::checkpoint::{Checkpoint, CheckpointError, Fingerprint};
use crate::server::StateCorrelation;
use crate::server::influence::heard::Heard;
use crate::server::influence::{InfluenceGraph, learn};
use crate::session::Session;
use crate::stream::UnusedRows;

#[derive(Debug, Clone)]
pub(crate) struct ServerModels {
    /// Which training made them.
    pub(crate) id: u64,
    /// Seconds of a step, from the sites or else from the session's data.
    pub(crate) period_s: Option<f64>,
    /// Without clients where those have their models themselves.
    pub(crate) prepared: Prepared,
}

impl ServerModels {
    /// Those of a process that made the models of all.
    pub(crate) fn of(prepared: Prepared) -> Self {
        Self { id: id_of(&prepared.server), period_s: None, prepared }
    }

    /// Those that the server learned over a broker before, from all clients but `later` ones.
    pub(crate) fn kept(session: &Session, later: &[String]) -> Option<Self> {
        let (expected, file) = place_of(session, later).ok()?;
        Self::restore(Checkpoint::load(&file, Some(expected)).ok()?, &file, session).ok()
    }

    fn restore(
        checkpoint: Checkpoint,
        file: &Path,
        session: &Session,
    ) -> Result<Self, CheckpointError> {
        let stored: StoredServer = header(&checkpoint, file)?;
        let server = checkpoint
            .server
            .ok_or_else(|| unusable(file, "the server has no model".to_owned()))?;
        let prepared = Prepared {
            every: stored.every,
            clients: Vec::new(),
            history: Some(stored.history),
            fresh: false,
            stopped: false,
            spent: TrainingSpent { from: stored.from, clients: Vec::new() },
            influences: stored.influences.with_declared(&session.edges),
            together: stored.together.filter(StateCorrelation::is_whole),
            unused: UnusedRows::default(),
            file: file.to_path_buf(),
            not_kept: None,
            server,
        };
        Ok(Self { id: id_of(&prepared.server), period_s: Some(stored.period_s), prepared })
    }
}

/// The header of the server's models.
#[derive(Debug, Serialize, Deserialize)]
struct StoredServer {
    every: u32,
    period_s: f64,
    from: Timestamp,
    history: History,
    influences: Influences,
    together: Option<StateCorrelation>,
}

/// Where the models of a training without `later` clients are kept, and what they depend on. Where the
/// session names its clients, they are those of a session without the others.
fn place_of(session: &Session, later: &[String]) -> Result<(Fingerprint, PathBuf), PrepareError> {
    let mut learned = session.clone();
    learned.clients.retain(|client| !later.contains(&client.name));
    let models = fingerprint(&learned)?;
    let part = match (learned.clients.is_empty(), later) {
        (true, [_, ..]) => format!("server-without-{}", later.join("-")),
        (false, _) | (true, []) => "server".to_owned(),
    };
    Ok((models, part_file(models, &part)))
}

/// What the server has learned in a training, and from what.
pub(crate) struct ServerPart {
    pub(crate) half: ServerHalf,
    pub(crate) history: History,
    pub(crate) every: u32,
    pub(crate) period_s: f64,
    /// The first instant of the fit range.
    pub(crate) from: Timestamp,
}

impl ServerPart {
    /// The server's half of a training with clients of `states` states each.
    pub(crate) fn half(session: &Session, states: &[usize]) -> Result<ServerHalf, FederationError> {
        let seed = rng::child(session.seed, FEDERATION);
        ServerHalf::new(states, &session.model, hooks(session), seed)
    }

    /// The seed of the order of rounds.
    pub(crate) fn seed(session: &Session) -> u64 {
        rng::child(session.seed, FEDERATION)
    }

    /// Learns who influences whom from the summaries of every site over both stretches.
    pub(crate) fn influences(
        &self,
        names: &[String],
        lessons: Option<&[Vec<Heard>; 2]>,
    ) -> Influences {
        let (graph, foreteller) = match (lessons, learn::refusal(names.len())) {
            (Some([fit, held_out]), None) => {
                let learned = learn::learn(names, self.period_s, fit, held_out);
                (learned.graph, learned.foreteller)
            }
            (_, refused) => {
                let silent = "the states of a client's model never leave it".to_owned();
                let why = refused.unwrap_or(silent);
                (InfluenceGraph::unlearned(names, self.period_s, why), None)
            }
        };
        Influences { graph, foreteller, released: Vec::new() }
    }

    /// Keeps everything that was learned without `later` clients.
    pub(crate) fn finish(
        mut self,
        session: &Session,
        later: &[String],
        influences: Influences,
        say: &mut dyn FnMut(&str),
    ) -> Result<ServerModels, PrepareError> {
        let stored = StoredServer {
            every: self.every,
            period_s: self.period_s,
            from: self.from,
            history: self.history,
            influences,
            together: self.half.together(),
        };
        let (models, file) = place_of(session, later)?;
        let checkpoint = Checkpoint {
            fingerprint: models,
            clients: Vec::new(),
            server: Some(self.half.f_s()?),
            oracle: None,
            thresholds: json("the calibration", &stored)?,
            fits: Vec::new(),
        };
        Ok(ServerModels::restore(keep(&checkpoint, &file, say)?, &file, session)?)
    }
}
