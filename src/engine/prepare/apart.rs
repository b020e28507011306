//! The models of a federation whose sites and server are processes of their own: each process makes and
//! keeps its own part.
//!
//! A site reads its own rows, makes or is delivered its proprietary model, learns φ in the rounds,
//! and calibrates. The server learns f_s and who influences whom. The parts are the same, bit by bit, as
//! those that [`make`](super::make) makes in one process.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::fingerprint::json;
use super::make::{calibrate, client_models, spent, train_proprietary, training_name};
use super::stored::{ClientCalibration, site, unusable};
use super::{FEDERATION, Influences, OnStage, Prepared, PreparedSite, Stage, TrainingSpent};
use super::{fingerprint, hooks};
use crate::base::rng;
use crate::engine::error::PrepareError;
use crate::engine::vendor::{self, ClientVendor};
use crate::engine::{cost, decimation};
use crate::federation::apart::{ServerHalf, SiteHalf};
use crate::federation::{FederationError, History};
use crate::nn::checkpoint::{
    CacheEnvironment, Checkpoint, CheckpointError, Fingerprint, Hasher, cache_folder,
};
use crate::nn::proprietary::VendorModel;
use crate::nn::weights::{LstmFc, Parameters as _};
use crate::privacy::{Counted, Provenance, Trained};
use crate::server::Together;
use crate::server::influence::heard::Heard;
use crate::server::influence::{InfluenceGraph, learn};
use crate::session::{Labels, LiveHistory, Session, Source};
use crate::site::INFLUENCE;
use crate::site::fit;
use crate::site::grader::GraderFit;
use crate::site::line::Line;
use crate::site::material::Material;
use crate::site::messenger::{Messenger, Trace};
use crate::site::prepared::SiteFit;
use crate::stream::UnusedRows;
use crate::wire::{Outgoing, Sender};

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

/// The models of one site.
#[derive(Debug, Clone)]
pub(crate) struct SiteModels {
    /// Which training made them.
    pub(crate) id: u64,
    /// Samples in a block mean.
    pub(crate) every: u32,
    pub(crate) site: PreparedSite,
    /// The first sample that training released anything about, and what it released.
    pub(crate) from: Timestamp,
    pub(crate) trained: Vec<Trained>,
}

/// The models of the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerModels {
    /// Which training made them.
    pub(crate) id: u64,
    /// Seconds of a step, from the sites or else from the session's data.
    pub(crate) period_s: Option<f64>,
    /// Without clients where those have their models themselves.
    pub(crate) prepared: Prepared,
}

impl SiteModels {
    /// Those of the client at `place` among the models of all, where one process made them.
    pub(crate) fn of(prepared: &Prepared, place: usize) -> Option<Self> {
        Some(Self {
            id: id_of(&prepared.server),
            every: prepared.every,
            site: prepared.clients.get(place)?.clone(),
            from: prepared.spent.from,
            trained: prepared.spent.clients.get(place).cloned().unwrap_or_default(),
        })
    }

    /// Those that this client learned over a broker before.
    pub(crate) fn kept(session: &Session, client: &str) -> Option<Self> {
        let models = of_site(session, client).ok()?;
        let file = part_file(models, &format!("site-{client}"));
        Self::restore(Checkpoint::load(&file, Some(models)).ok()?, &file).ok()
    }

    fn restore(mut checkpoint: Checkpoint, file: &Path) -> Result<Self, PrepareError> {
        let StoredSite { id, every, from, trained, calibration } = read(&checkpoint, file)?;
        let fit = SiteFit::from_bytes(&checkpoint.fits)
            .map_err(|why| unusable(file, format!("the fit of the site cannot be read: {why}")))?
            .pop()
            .ok_or_else(|| unusable(file, "the site has no fit".to_owned()))?;
        let models = checkpoint.clients.pop();
        let models = models.ok_or_else(|| unusable(file, "the site has no models".to_owned()))?;
        Ok(Self { id, every, site: site(models, calibration, fit, file)?, from, trained })
    }
}

impl ServerModels {
    /// Those of a process that made the models of all.
    pub(crate) fn of(prepared: Prepared) -> Self {
        Self { id: id_of(&prepared.server), period_s: None, prepared }
    }

    /// Those that the server learned over a broker before.
    pub(crate) fn kept(session: &Session) -> Option<Self> {
        let expected = fingerprint(session).ok()?;
        let file = part_file(expected, "server");
        Self::restore(Checkpoint::load(&file, Some(expected)).ok()?, &file, session).ok()
    }

    fn restore(
        checkpoint: Checkpoint,
        file: &Path,
        session: &Session,
    ) -> Result<Self, CheckpointError> {
        let stored: StoredServer = read(&checkpoint, file)?;
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
            together: stored.together.filter(Together::is_whole),
            unused: UnusedRows::default(),
            file: file.to_path_buf(),
            not_kept: None,
            server,
        };
        Ok(Self { id: id_of(&prepared.server), period_s: Some(stored.period_s), prepared })
    }
}

/// The header of a site's models.
#[derive(Debug, Serialize, Deserialize)]
struct StoredSite {
    id: u64,
    every: u32,
    from: Timestamp,
    trained: Vec<Trained>,
    calibration: ClientCalibration,
}

/// The header of the server's models.
#[derive(Debug, Serialize, Deserialize)]
struct StoredServer {
    every: u32,
    period_s: f64,
    from: Timestamp,
    history: History,
    influences: Influences,
    together: Option<Together>,
}

fn read<T: for<'a> Deserialize<'a>>(
    checkpoint: &Checkpoint,
    file: &Path,
) -> Result<T, CheckpointError> {
    serde_json::from_str(&checkpoint.thresholds)
        .map_err(|why| unusable(file, format!("the calibration cannot be read: {why}")))
}

/// Where a part is kept between runs.
fn part_file(models: Fingerprint, part: &str) -> PathBuf {
    let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let part: String = part.chars().map(plain).collect();
    let name = format!("models-{models}-{part}.safetensors");
    cache_folder(&CacheEnvironment::of_process()).join(name)
}

/// Writes a part; what was written is what is used. A file that cannot be written is done without, and
/// told.
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
/// built-in plants need no data and are left as
/// they are.
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

/// What the models of a site depend on: with a live source also on the rows that it has gathered.
fn of_site(session: &Session, client: &str) -> Result<Fingerprint, PrepareError> {
    if session.live().is_some() { fingerprint(&own(session, client)) } else { fingerprint(session) }
}

/// A site that is about to learn: its nominal rows and its proprietary model.
pub(crate) struct SitePart {
    place: usize,
    clients: usize,
    training: String,
    every: u32,
    /// Its own rows only.
    material: Material,
    models: ClientVendor,
    /// Its grader and what its models make of its rows, once they are asked for.
    graded: Option<(GraderFit, [Trace; 2])>,
    /// Releases of trainings that were broken off.
    before: Vec<Trained>,
    broken: usize,
    /// Releases while influence was learned.
    taught: Vec<Counted>,
    summary: Option<Messenger>,
}

/// The two stretches that a site sends while influence is learned, and how many steps they have.
pub(crate) type Lessons = [(u64, Vec<Outgoing>); 2];

impl SitePart {
    /// Reads the rows of the client at `place` of `clients`, and makes its proprietary model.
    pub(crate) fn read(
        session: &Session,
        (place, clients): (usize, usize),
        client: &str,
        on_stage: OnStage,
    ) -> Result<Self, PrepareError> {
        let own = own(session, client);
        cost::allow(&own, cost::estimate(&own)?)?;
        let _ = on_stage(Stage::Reading);
        let every = decimation::every(&own)?;
        let delivered = vendor::delivered(session, every);
        let mut material = Material::read(&own, every, &vendor::views_of(delivered.as_ref()))?;
        let found = material.clients.iter().position(|known| known.name == client);
        let unknown = || FederationError::Sites(format!("the data has no client {client:?}"));
        material.clients = vec![material.clients.swap_remove(found.ok_or_else(unknown)?)];
        let model = match delivered.and_then(|(_, models)| models.into_iter().nth(place)) {
            Some(models) => Some(models),
            None => train_proprietary(session, (&material, place), on_stage)?.pop(),
        };
        let none = || FederationError::Sites(format!("no model was made for {client:?}"));
        Ok(Self {
            place,
            clients,
            training: training_name(session, fingerprint(session)?)?,
            every,
            material,
            models: model.ok_or_else(none)?,
            graded: None,
            before: Vec::new(),
            broken: 0,
            taught: Vec::new(),
            summary: None,
        })
    }

    pub(crate) fn every(&self) -> u32 {
        self.every
    }

    /// Seconds of a step.
    pub(crate) fn period_s(&self) -> f64 {
        self.material.layout.period_s
    }

    /// First and last instant of its fit range.
    pub(crate) fn fit_span(&self) -> (Timestamp, Timestamp) {
        self.material.fit_span
    }

    /// Releases of trainings before this start.
    pub(crate) fn goes_after(&mut self, before: &[Trained]) {
        self.before.extend_from_slice(before);
    }

    /// What will have been released once a training with so many messages of states is over, together
    /// with all trainings before it. It is entered before the first of them is sent, and holds if the
    /// site is killed on the way. A seed draws the same noise again, which tells nothing new.
    pub(crate) fn reserve(
        &self,
        session: &Session,
        half: &SiteHalf,
        messages: u64,
    ) -> Vec<Trained> {
        let mut reserved = self.before.clone();
        if Provenance::of(session) == Provenance::OperatingSystem {
            let client = &self.material.clients[0];
            let summaries = (client.fit_rows() + client.calibration_rows()) as u64;
            let planned = half.planned(messages, summaries);
            let training = format!("{}-begun-{}", self.training, self.broken);
            let spent = spent(session, &training, &self.material, 0, &[planned]);
            reserved.extend(spent.clients.into_iter().flatten());
        }
        reserved
    }

    /// Its half of a training that begins now.
    pub(crate) fn half(&self, session: &Session) -> Result<SiteHalf, PrepareError> {
        let seed = rng::child(session.seed, FEDERATION);
        let site = self.material.clients[0].fit_site(self.models.federated());
        Ok(SiteHalf::new(self.place, &site, &session.model, hooks(session), seed)?)
    }

    /// A training was broken off: what it released has been released. A seed draws the same noise again,
    /// which tells nothing new.
    pub(crate) fn broken_off(&mut self, session: &Session, half: &SiteHalf) {
        let released = [half.released(), std::mem::take(&mut self.taught)].concat();
        if Provenance::of(session) == Provenance::OperatingSystem {
            self.broken += 1;
            let training = format!("{}-broken-{}", self.training, self.broken);
            let spent = spent(session, &training, &self.material, 0, &[released]);
            self.before.extend(spent.clients.into_iter().flatten());
        }
    }

    /// What it sends about its states so that the server learns who influences whom; none
    /// where nothing can be learned. It is released at every call.
    pub(crate) fn teach(&mut self, session: &Session) -> Result<Option<Lessons>, PrepareError> {
        let graded = if let Some(graded) = self.graded.take() {
            graded
        } else {
            let ClientVendor { watching, sending, .. } = &self.models;
            fit::grader_with_traces(&self.material.clients[0], watching, sending.as_ref())?
        };
        let (_, traces) = &*self.graded.insert(graded);
        if learn::refusal(self.clients).is_some() {
            return Ok(None);
        }
        let model = VendorModel::new(self.models.federated())?;
        let Ok(sender) = Sender::new(self.place, &model) else { return Ok(None) };
        let summary = self.summary.insert(Messenger::fit(&traces[0]));
        let seed = rng::child(session.seed, INFLUENCE);
        let mut line = Line::new(sender, summary.clone(), &hooks(session), seed)?;
        let mut lessons = [(0, Vec::new()), (0, Vec::new())];
        for ((steps, lesson), trace) in lessons.iter_mut().zip(traces) {
            *steps = trace.steps() as u64;
            *lesson = line.teach_stretch(trace).collect::<Result<_, _>>()?;
        }
        self.taught = line.counted();
        Ok(Some(lessons))
    }

    /// Calibrates with the φ of `half`, and keeps everything under the `id` of the training.
    pub(crate) fn finish(
        mut self,
        session: &Session,
        mut half: SiteHalf,
        (id, rounds): (u64, usize),
        say: &mut dyn FnMut(&str),
    ) -> Result<SiteModels, PrepareError> {
        if self.graded.is_none() {
            self.teach(session)?;
        }
        let phi = half.phi()?;
        let client = &self.material.clients[0];
        let too_short = || PrepareError::TooShort { client: client.name.clone() };
        let (grader, _) = self.graded.take().ok_or_else(too_short)?;
        let calibration = calibrate(client, &self.models, &phi)?;
        let fit = SiteFit {
            inputs: client.inputs.clone(),
            habits: fit::habits(client),
            seen: client.seen.clone(),
            grader,
            summary: self.summary.take(),
            informed: None,
            calibrated: self.material.calibration_span,
        };
        let released = [half.released(), self.taught].concat();
        let spent = spent(session, &self.training, &self.material, rounds, &[released]);
        let mut trained = self.before;
        trained.extend(spent.clients.into_iter().flatten());
        let stored = StoredSite { id, every: self.every, from: spent.from, trained, calibration };
        let models = of_site(session, &client.name)?;
        let file = part_file(models, &format!("site-{}", client.name));
        let checkpoint = Checkpoint {
            fingerprint: models,
            clients: vec![client_models(
                client.name.clone(),
                &client.view,
                self.models.clone(),
                phi,
            )],
            server: None,
            oracle: None,
            thresholds: json("the calibration", &stored)?,
            fits: SiteFit::to_bytes(std::slice::from_ref(&fit)).map_err(PrepareError::Fits)?,
        };
        SiteModels::restore(keep(&checkpoint, &file, say)?, &file)
    }
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

    /// Learns who influences whom from what every site sent about both stretches, and stores everything.
    pub(crate) fn finish(
        mut self,
        session: &Session,
        names: &[String],
        lessons: Option<&[Vec<Heard>; 2]>,
        say: &mut dyn FnMut(&str),
    ) -> Result<ServerModels, PrepareError> {
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
        let stored = StoredServer {
            every: self.every,
            period_s: self.period_s,
            from: self.from,
            history: self.history,
            influences: Influences { graph, foreteller, released: Vec::new() },
            together: self.half.together(),
        };
        let models = fingerprint(session)?;
        let file = part_file(models, "server");
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
