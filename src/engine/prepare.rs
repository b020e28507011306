//! From a session to models that can run: delivered or trained, federated, calibrated, kept.
//!
//! What was prepared once for a session and its data is read from the cache the next time, and both
//! ways give the same bits: a fresh preparation is used as it was written, not as it was computed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cost::{self, TooMuch};
use super::decimation;
use super::influence::{self, Influences, SiteHalves, Told};
use super::vendor::{self, ClientVendor};
use crate::federation::{self, Federation, FederationError, History, Hooks};
use crate::nn::checkpoint::{
    CacheEnvironment, Checkpoint, CheckpointError, ClientModels, Fingerprint, Hasher, cache_folder,
};
use crate::nn::kernel::WeightsError;
use crate::nn::proprietary::VendorModel;
use crate::nn::train::{self, TrainError};
use crate::nn::weights::LstmFc;
use crate::privacy::{Counted, FilterMemory, PrivacyError, Provenance, Randomness, Trained};
use crate::rng;
use crate::server::Together;
use crate::session::{Session, Source, Tier};
pub(crate) use crate::site::PreparedSite;
use crate::site::fit;
use crate::site::grader::GraderFit;
use crate::site::material::{ClientMaterial, LeftOut, Material, SensorView};
use crate::site::messenger::Trace;
use crate::site::nominal::{self, StoredNominal};
use crate::site::prepared::SiteFit;
use crate::site::training::SiteData;
use crate::stream::resolution::Grids;
use crate::stream::{Layout, Part, StreamError, UnusedRows};
use crate::wire::{Memory, Sender, Wire};

/// Sources of a seed.
const PROPRIETARY: u64 = 0x50;
pub(super) const FEDERATION: u64 = 0x46;

/// What a preparation consists of: one that lacks something is made anew.
const CONTENT: &str =
    "models, federation, calibration, influence, memory, correlation, sites, unused rows";

/// What is going on, told as it happens.
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
    pub(crate) together: Option<Together>,
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

/// What a training has released so far, and about whom.
#[derive(Debug, Clone)]
pub(crate) struct Released {
    /// Names of the clients.
    pub(crate) clients: Vec<String>,
    /// What was released about each.
    pub(crate) spent: TrainingSpent,
}

/// Why a session cannot be prepared.
#[derive(Debug, Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Federation(#[from] FederationError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("{client}: the calibration range is too short to tell what is normal")]
    TooShort { client: String },
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
    /// It failed after clients had released something, which belongs in their ledgers.
    #[error("{why}")]
    AfterReleases {
        why: Box<PrepareError>,
        /// What was released.
        released: Released,
    },
    #[error("the fits of the sites cannot be written: {0}")]
    Fits(postcard::Error),
    #[error("{what} cannot be written as JSON: {source}")]
    Json {
        /// Which part of the session or of its models.
        what: &'static str,
        source: serde_json::Error,
    },
}

/// `value` as JSON. An empty text instead of an error would give all sessions one fingerprint.
fn json(what: &'static str, value: &impl Serialize) -> Result<String, PrepareError> {
    serde_json::to_string(value).map_err(|source| PrepareError::Json { what, source })
}

/// What stands beside the tensors.
#[derive(Debug, Serialize, Deserialize)]
struct Calibration {
    every: u32,
    /// Training was asked to stop before its end.
    stopped: bool,
    history: Option<History>,
    spent: TrainingSpent,
    influences: Influences,
    together: Option<Together>,
    unused: UnusedRows,
    clients: Vec<ClientCalibration>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ClientCalibration {
    used: Vec<usize>,
    names: Vec<String>,
    left_out: Vec<(String, LeftOut)>,
    c: StoredNominal,
    a: StoredNominal,
    memory: Option<FilterMemory>,
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
/// told as a [`Stage::Notice`], and the second by [`Prepared::not_kept`].
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

fn load(
    session: &Session,
    file: &Path,
    expected: Fingerprint,
) -> Result<Prepared, CheckpointError> {
    restore(Checkpoint::load(file, Some(expected))?, file, session)
}

/// Whether a file cannot be used for a reason that nobody needs to hear: it is not there yet, or it
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

/// Keeps what the oracle says about how states move together, beside the models it was made for;
/// for this run only where those could not be kept.
pub(crate) fn keep_oracle(
    prepared: &mut Prepared,
    correlation: Vec<f32>,
) -> Result<(), PrepareError> {
    let together = prepared.together.clone().and_then(|known| known.with_oracle(correlation));
    let Some(together) = together else { return Ok(()) };
    if prepared.not_kept.is_some() {
        prepared.together = Some(together);
        return Ok(());
    }
    let mut checkpoint = Checkpoint::load(&prepared.file, None)?;
    let mut kept = calibration(&checkpoint, &prepared.file)?;
    kept.together = Some(together.clone());
    checkpoint.thresholds = json("the calibration", &kept)?;
    checkpoint.save(&prepared.file)?;
    prepared.together = Some(together);
    Ok(())
}

/// The sensors of every client that its models will not look at, with the reason.
pub(crate) fn not_watched(session: &Session) -> Result<Vec<NotWatched>, PrepareError> {
    let every = decimation::every(session)?;
    let delivered = vendor::delivered(session, every);
    let material = Material::read(session, every, &vendor::views_of(delivered.as_ref()))?;
    Ok(material.clients.into_iter().map(|client| (client.name, client.left_out)).collect())
}

/// A client and its sensors that are not watched.
type NotWatched = (String, Vec<(String, LeftOut)>);

fn make(
    session: &Session,
    fingerprint: Fingerprint,
    wire: Box<dyn Wire>,
    on_stage: OnStage,
    released: &mut Option<Released>,
) -> Result<Checkpoint, PrepareError> {
    cost::allow(session, cost::estimate(session)?)?;
    let _ = on_stage(Stage::Reading);
    let every = decimation::every(session)?;
    let delivered = vendor::delivered(session, every);
    let material = Material::read(session, every, &vendor::views_of(delivered.as_ref()))?;
    let models = match delivered {
        Some((_, models)) => {
            let _ = on_stage(Stage::Delivered);
            models
        }
        None => train_proprietary(session, &material, on_stage)?,
    };
    let sites: Vec<SiteData> = material
        .clients
        .iter()
        .zip(&models)
        .map(|(client, models)| client.fit_site(models.federated()))
        .collect();
    let seed = rng::child(session.seed, FEDERATION);
    let mut federation = Federation::new(&sites, &session.model, hooks(session), seed)?;
    federation.set_wire(wire);
    let training = training_name(session, fingerprint)?;
    let names: Vec<String> = material.clients.iter().map(|client| client.name.clone()).collect();
    let mut release = |rounds: usize, counts: &[Vec<Counted>]| {
        let spent = spent(session, &training, &material, rounds, counts);
        *released = Some(Released { clients: names.clone(), spent: spent.clone() });
        spent
    };
    let run = federation.run(&mut |progress| on_stage(Stage::Federation(progress)));
    release(run.as_ref().map_or(0, |outcome| outcome.history.rounds), &federation.released());
    let mut outcome = run?;
    let mut wire = federation.into_wire();
    let _ = on_stage(Stage::Calibrating);
    let graded = grade_all(&material, &models)?;
    let told: Vec<Told> = graded
        .iter()
        .zip(&models)
        .enumerate()
        .map(|(m, ((_, traces), models))| {
            let model = VendorModel::new(models.federated())?;
            Ok(Told { traces, sender: Sender::new(m, &model).ok() })
        })
        .collect::<Result<_, WeightsError>>()?;
    let period_s = material.layout.period_s;
    let (influences, halves) = influence::learn(session, &names, period_s, &told, wire.as_mut())?;
    for (released, more) in outcome.released.iter_mut().zip(&influences.released) {
        released.extend(more);
    }
    let spent = release(outcome.history.rounds, &outcome.released);
    let fits = site_fits(&material, graded, halves);
    let fits = postcard::to_stdvec(&fits).map_err(PrepareError::Fits)?;
    let mut clients = Vec::new();
    let mut calibrations = Vec::new();
    let phis = outcome.weights.phi.clone();
    for ((client, models), phi) in material.clients.iter().zip(models).zip(phis) {
        let too_short = || PrepareError::TooShort { client: client.name.clone() };
        let [c, a] = nominal::of(client, models.federated(), &phi)?.ok_or_else(too_short)?;
        let other = models.sending.as_ref().map(|_| &models.watching);
        let moves = fit::moves(client, models.federated(), other, &phi)?;
        calibrations.push(ClientCalibration {
            used: client.view.used.clone(),
            names: client.view.names.clone(),
            left_out: client.left_out.clone(),
            c,
            a,
            memory: moves.map(|moves| FilterMemory::measured(&moves)).transpose()?,
        });
        clients.push(client_models(client.name.clone(), &client.view, models, phi));
    }
    let calibration = Calibration {
        every,
        stopped: outcome.stopped,
        history: Some(outcome.history),
        spent,
        influences,
        together: outcome.together,
        unused: material.unused,
        clients: calibrations,
    };
    Ok(Checkpoint {
        fingerprint,
        clients,
        server: Some(outcome.weights.server),
        oracle: None,
        thresholds: json("the calibration", &calibration)?,
        fits,
    })
}

/// Fits every site beside its models, and runs its models over its nominal rows, a thread each.
fn grade_all(
    material: &Material,
    models: &[ClientVendor],
) -> Result<Vec<(GraderFit, [Trace; 2])>, WeightsError> {
    let of = |client: &ClientMaterial, models: &ClientVendor| {
        fit::grader_with_traces(client, &models.watching, models.sending.as_ref())
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = material
            .clients
            .iter()
            .zip(models)
            .map(|(client, models)| scope.spawn(move || of(client, models)))
            .collect();
        jobs.into_iter()
            .map(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn site_fits(
    material: &Material,
    graded: Vec<(GraderFit, [Trace; 2])>,
    halves: SiteHalves,
) -> Vec<SiteFit> {
    let SiteHalves { summaries, informed } = halves;
    let mut summaries = summaries.into_iter();
    let mut informed = informed.into_iter();
    let of = |(client, (grader, _)): (&ClientMaterial, (GraderFit, _))| {
        // A recording has no entry for a row without any value, and neither have its distances.
        let measured = |t: usize| client.is_measured(t);
        let informed = informed.next().flatten();
        SiteFit {
            inputs: client.inputs.clone(),
            habits: fit::habits(client),
            grader,
            summary: summaries.next(),
            informed: informed.map(|(by, fit)| (by, fit.keeping(measured))),
            calibrated: material.calibration_span,
        }
    };
    material.clients.iter().zip(graded).map(of).collect()
}

/// What stands between values and messages: the session's noise.
pub(super) fn hooks(session: &Session) -> Hooks<'_> {
    Hooks::of(session)
}

/// The name of a training in ledgers, which count each training once. The same seed draws the same
/// noise again, which tells nothing new; other noise does.
fn training_name(session: &Session, fingerprint: Fingerprint) -> Result<String, FederationError> {
    Ok(match Provenance::of(session) {
        Provenance::Seeded => format!("{fingerprint}"),
        Provenance::OperatingSystem => {
            let once = Randomness::operating_system().word()?;
            format!("{fingerprint}-{once:016x}")
        }
    })
}

/// What a training released, for the ledgers of all runs that will use its models.
fn spent(
    session: &Session,
    training: &str,
    material: &Material,
    rounds: usize,
    released: &[Vec<Counted>],
) -> TrainingSpent {
    let (from, until) = material.fit_span;
    let samples = material.clients.first().map_or(0, ClientMaterial::fit_rows) as u64;
    let trained = |counted: &Counted| Trained {
        training: training.to_owned(),
        what: counted.what,
        spend: counted.spend,
        count: counted.count,
        samples,
        rounds: rounds as u64,
        until,
        randomness: Provenance::of(session),
    };
    let clients = released.iter().map(|c| c.iter().map(trained).collect()).collect();
    TrainingSpent { from, clients }
}

fn client_models(
    name: String,
    view: &SensorView,
    models: ClientVendor,
    phi: LstmFc,
) -> ClientModels {
    ClientModels {
        name,
        mean: view.mean.clone(),
        std: view.std.clone(),
        proprietary: models.watching,
        sending: models.sending,
        augment: Some(phi),
        predictor: None,
    }
}

fn train_proprietary(
    session: &Session,
    material: &Material,
    on_stage: OnStage,
) -> Result<Vec<ClientVendor>, TrainError> {
    let threads = crate::threads::threads();
    let seed = rng::child(session.seed, PROPRIETARY);
    // Models learn on several threads, and each tells of itself.
    let on_stage = Mutex::new(on_stage);
    vendor::train(material, &session.model, seed, threads, &|progress| {
        let mut on_stage = on_stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        on_stage(Stage::Proprietary(progress))
    })
}

/// An error about the content of a file of models.
fn unusable(file: &Path, what: String) -> CheckpointError {
    CheckpointError::Content { path: file.to_path_buf(), what }
}

/// What stands beside the tensors of a checkpoint that was read from `file`.
fn calibration(checkpoint: &Checkpoint, file: &Path) -> Result<Calibration, CheckpointError> {
    serde_json::from_str(&checkpoint.thresholds)
        .map_err(|why| unusable(file, format!("the calibration cannot be read: {why}")))
}

/// The models of a checkpoint that was read from `file`; an error says what it lacks.
fn restore(
    checkpoint: Checkpoint,
    file: &Path,
    session: &Session,
) -> Result<Prepared, CheckpointError> {
    let calibration = calibration(&checkpoint, file)?;
    let fits: Vec<SiteFit> = postcard::from_bytes(&checkpoint.fits)
        .map_err(|why| unusable(file, format!("the fits of the sites cannot be read: {why}")))?;
    let (models, calibrated) = (checkpoint.clients.len(), calibration.clients.len());
    if models != calibrated || models != fits.len() {
        let what = format!(
            "{models} clients have models, but {calibrated} are calibrated and {} fitted",
            fits.len()
        );
        return Err(unusable(file, what));
    }
    let clients = checkpoint
        .clients
        .into_iter()
        .zip(calibration.clients)
        .zip(fits)
        .map(|((models, calibration), fit)| {
            let lacks = |what: &str| unusable(file, format!("{} has no {what}", models.name));
            if !fit.is_whole(models.mean.len()) {
                return Err(lacks("fit that belongs to its sensors"));
            }
            Ok(PreparedSite {
                view: SensorView {
                    used: calibration.used,
                    names: calibration.names,
                    mean: models.mean,
                    std: models.std,
                },
                left_out: calibration.left_out,
                sending: models.sending.unwrap_or_else(|| models.proprietary.clone()),
                watching: models.proprietary,
                phi: models.augment.ok_or_else(|| lacks("network φ"))?,
                nominal_c: calibration.c.restore().ok_or_else(|| lacks("distribution of r_c"))?,
                nominal_a: calibration.a.restore().ok_or_else(|| lacks("distribution of r_a"))?,
                memory: calibration.memory,
                name: models.name,
                fit,
            })
        })
        .collect::<Result<Vec<_>, CheckpointError>>()?;
    Ok(Prepared {
        every: calibration.every,
        clients,
        server: checkpoint
            .server
            .ok_or_else(|| unusable(file, "the server has no model".into()))?,
        history: calibration.history,
        fresh: false,
        stopped: calibration.stopped,
        spent: calibration.spent,
        influences: calibration.influences.with_declared(&session.edges),
        together: calibration.together.filter(Together::is_whole),
        unused: calibration.unused,
        file: file.to_path_buf(),
        not_kept: None,
    })
}

/// What a preparation depends on: the parts of the session that shape it, and its nominal data.
///
/// Neither the session's name nor the place of its file counts, nor words that are only shown. Data
/// counts by its folder, wherever the session is read from, and by the name, size and time of change of
/// its files: reading them through would take longer than most preparations.
pub(crate) fn fingerprint(session: &Session) -> Result<Fingerprint, PrepareError> {
    let mut hasher = Hasher::new();
    hasher.text(env!("CARGO_PKG_VERSION"));
    hasher.text(CONTENT);
    let clients: Vec<_> =
        session.clients.iter().map(|c| (&c.name, &c.columns, &c.except, &c.inputs)).collect();
    let parts = (
        without_place(&session.source),
        clients,
        (&session.ranges.fit, &session.ranges.calibration),
        &session.sampling,
        &session.model,
        noise_of_training(session),
        session.seed,
    );
    hasher.text(&json("the session", &parts)?);
    if session.thresholds.tier == Tier::States {
        hasher.text("tier 2");
    }
    if let Some(folder) = session.data_folder() {
        let place = std::fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
        hasher.text(&place.to_string_lossy());
        for part in [Part::Fit, Part::Calibration] {
            for file in data_files(&folder, &part.stretch(session).files) {
                hasher.text(&file);
            }
        }
        // Nominal data is rounded to what live data can show. Where the data cannot be read there
        // is nothing prepared that could be found under this name.
        for step in Grids::of(session).unwrap_or_default().steps() {
            hasher.text(&step.to_string());
        }
    }
    Ok(hasher.finish())
}

/// A source without the path of its data, which may be written in many ways, and without the address
/// at which the data is published.
fn without_place(source: &Source) -> Source {
    let mut source = source.clone();
    match &mut source {
        Source::Table(table) => (table.data, table.published) = (String::new(), None),
        Source::Hai(hai) => hai.data = String::new(),
        Source::Plant(_) | Source::Twin(_) => {}
    }
    source
}

/// The part of the privacy settings that shapes models. Models that were trained with noise from a
/// seed are not those of a run that wants it from the operating system.
fn noise_of_training(session: &Session) -> impl Serialize {
    let p = &session.privacy;
    let epsilons = [p.epsilon_c, p.epsilon_a, p.epsilon_g];
    let noised = epsilons.iter().any(Option::is_some);
    noised.then(|| {
        let bounds = (p.delta, p.clip_state, p.clip_gradient);
        (epsilons, bounds, p.sigma, Provenance::of(session).label())
    })
}

/// Name, size and time of change of the files that patterns mean.
fn data_files(folder: &Path, patterns: &[String]) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let wanted = |p: &String| crate::stream::columns::glob(p, &name);
            let known = entry.metadata().ok().filter(|_| patterns.iter().any(wanted))?;
            Some(format!("{name} {} {:?}", known.len(), known.modified().ok()))
        })
        .collect();
    files.sort();
    files
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Estimator;

    const SHORT: &str = "Session(about: \"short\", source: Plant(history_h: 3, hours: 1), \
        sampling: (decimate: Every(5)))";

    /// Its models come with the program, so that only the federation takes time.
    const QUICK: &str = "Session(about: \"short\", source: Plant(history_h: 1, hours: 1), \
        sampling: (decimate: Every(5)), model: (federation: Online(passes: 1)))";

    const SMALL: &str = "Session(about: \"short\", source: Twin(clients: 2), \
        model: (proprietary: Linear, federation: Batched(rounds: 1)))";

    fn session(text: &str) -> Session {
        Session::parse("short", Path::new(""), text).expect("a sound session")
    }

    #[test]
    fn what_was_prepared_is_loaded_the_next_time_with_the_same_bits() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("kept.safetensors");
        let session = session(SHORT);
        let mut rounds = 0;
        let fresh = prepare(&session, &file, &mut |stage| {
            rounds += usize::from(matches!(stage, Stage::Federation(_)));
            ControlFlow::Continue(())
        })
        .expect("prepared");
        assert!(rounds > 1, "training is told as it happens");
        let kept =
            prepare(&session, &file, &mut |_| panic!("nothing is left to do")).expect("loaded");
        assert!(fresh.fresh && !kept.fresh);
        let rounds = |prepared: &Prepared| prepared.history.as_ref().map(|history| history.rounds);
        assert_eq!(rounds(&fresh), rounds(&kept), "the course of training is kept");
        assert_eq!(fresh.spent, kept.spent, "what training released is kept with what it made");
        let states: u64 = kept.spent.clients[0]
            .iter()
            .filter(|trained| !trained.what.is_derived())
            .map(|trained| trained.count)
            .sum();
        let learning: u64 = kept.influences.released[0].iter().map(|counted| counted.count).sum();
        assert_eq!(Some(states), rounds(&fresh).map(|rounds| learning + 2 * rounds as u64));
        assert_eq!(fresh.server, kept.server);
        assert_eq!(fresh.together, kept.together, "how states move together is kept");
        let mut kept = kept;
        let states: usize = kept.together.as_ref().map_or(0, |known| known.states.iter().sum());
        keep_oracle(&mut kept, vec![0.5; states * states]).expect("kept");
        let again = prepare(&session, &file, &mut |_| panic!("nothing is left to do"));
        let again = again.expect("loaded").together.expect("kept");
        assert!(again.map(Estimator::Oracle).is_some_and(|map| map.size() == states));
        for (fresh, kept) in fresh.clients.iter().zip(&kept.clients) {
            assert_eq!(fresh.nominal_a, kept.nominal_a);
            assert_eq!(fresh.phi, kept.phi);
        }
    }

    #[test]
    fn a_file_of_models_that_cannot_be_used_is_named_with_what_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("kept.safetensors");
        let session = session(SMALL);
        let go_on = &mut |_: Stage| ControlFlow::Continue(());
        prepare(&session, &file, go_on).expect("prepared");
        let kept = Checkpoint::load(&file, None).expect("kept");
        let why = |change: &dyn Fn(&mut Checkpoint)| {
            let mut checkpoint = kept.clone();
            change(&mut checkpoint);
            let why = restore(checkpoint, &file, &session).expect_err("something is wrong");
            why.to_string().replace(&file.display().to_string(), "FILE")
        };
        // JSON has no form for what is no number: it is written as null.
        let null = why(&|kept| {
            kept.thresholds = kept.thresholds.replacen("\"mean\":[", "\"mean\":[null,", 1);
        });
        let expected = "FILE: the calibration cannot be read: invalid type: null, expected f64";
        assert!(null.starts_with(expected), "{null}");
        assert_eq!(why(&|kept| kept.server = None), "FILE: the server has no model");
        assert_eq!(why(&|kept| kept.clients[1].augment = None), "FILE: C2 has no network φ");
        assert_eq!(
            why(&|kept| drop(kept.clients.pop())),
            "FILE: 1 clients have models, but 2 are calibrated and 2 fitted"
        );
        let cut = why(&|kept| kept.fits.truncate(40));
        assert!(cut.starts_with("FILE: the fits of the sites cannot be read: "), "{cut}");
    }

    #[test]
    fn a_kept_file_with_a_flipped_bit_is_said_and_made_again() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("kept.safetensors");
        let session = session(QUICK);
        let go_on = &mut |_: Stage| ControlFlow::Continue(());
        prepare(&session, &file, go_on).expect("prepared");
        let written = std::fs::read(&file).expect("kept");
        for place in [20, written.len() / 2] {
            let mut flipped = written.clone();
            flipped[place] ^= 4;
            std::fs::write(&file, flipped).expect("written");
            let mut notices = Vec::new();
            let made = prepare(&session, &file, &mut |stage| {
                if let Stage::Notice(notice) = stage {
                    notices.push(notice.to_owned());
                }
                ControlFlow::Continue(())
            });
            assert!(made.expect("made again").fresh, "{place}");
            let [notice] = &notices[..] else { panic!("{place}: {notices:?}") };
            assert!(notice.ends_with("; the models are made again"), "{notice}");
            assert_eq!(std::fs::read(&file).expect("kept"), written, "the same bits again");
        }
    }

    #[test]
    fn models_that_cannot_be_kept_are_used_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        std::fs::write(folder.path().join("in the way"), "").expect("written");
        let file = folder.path().join("in the way").join("kept.safetensors");
        let session = session(QUICK);
        let mut notices = Vec::new();
        let made = prepare(&session, &file, &mut |stage| {
            if let Stage::Notice(notice) = stage {
                notices.push(notice.to_owned());
            }
            ControlFlow::Continue(())
        });
        let made = made.expect("prepared without a cache");
        assert!(made.fresh && made.not_kept.is_some());
        let [notice] = &notices[..] else { panic!("{notices:?}") };
        assert!(notice.starts_with("cannot write ") && notice.contains("in the way"), "{notice}");
        let kept = folder.path().join("kept.safetensors");
        let other = prepare(&session, &kept, &mut |_| ControlFlow::Continue(())).expect("kept");
        assert_eq!(made.server, other.server, "the models are those that would have been kept");
    }

    #[test]
    fn the_same_session_under_another_name_or_in_another_folder_has_the_same_models() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let below = folder.path().join("below");
        std::fs::create_dir(&below).expect("a folder");
        std::fs::write(folder.path().join("data.csv"), "time,a,b\n").expect("written");
        let table = |data: &str| {
            format!(
                "Session(about: \"a\", source: Table(data: {data:?}, time: (column: \"time\")), \
                 clients: [(name: \"A\", columns: [\"a\"]), (name: \"B\", columns: [\"b\"])], \
                 ranges: (fit: (files: [\"data.csv\"], until: \"+9s\"), \
                 calibration: (files: [\"data.csv\"], from: \"+9s\"), \
                 replay: (files: [\"data.csv\"])))"
            )
        };
        let of = |name: &str, folder: &Path, data: &str| {
            let session = Session::parse(name, folder, &table(data)).expect("a sound session");
            (fingerprint(&session).expect("a session is JSON"), cache_file(&session))
        };
        let one = of("one.ron", folder.path(), ".");
        assert_eq!(one, of("two.ron", folder.path(), "."));
        assert_eq!(one, of("one.ron", &below, ".."));
        assert_eq!(one, of("one.ron", Path::new(""), &folder.path().to_string_lossy()));
        assert_ne!(one, of("one.ron", &below, "."), "other data");
        assert_ne!(fingerprint(&session(SHORT)).ok(), Some(one.0));
    }

    #[test]
    fn what_has_no_json_form_is_an_error_and_not_an_empty_text() {
        let no_json = std::collections::BTreeMap::from([((1, 2), 3)]);
        let why = json("the session", &no_json).expect_err("keys of JSON are texts").to_string();
        assert!(why.starts_with("the session cannot be written as JSON: key must be"), "{why}");
    }

    #[test]
    fn a_decimation_that_is_left_to_the_data_is_decided_once_and_kept() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("kept.safetensors");
        let session = session(SMALL);
        let go_on = &mut |_: Stage| ControlFlow::Continue(());
        let fresh = prepare(&session, &file, go_on).expect("prepared");
        let kept = prepare(&session, &file, &mut |_| panic!("nothing is left to do"));
        assert_eq!(fresh.every, decimation::every(&session).expect("decided"));
        assert_eq!(kept.expect("loaded").every, fresh.every);
    }

    #[test]
    fn a_change_that_shapes_the_models_is_another_preparation_and_others_are_not() {
        let of = |text: &str| fingerprint(&session(text)).expect("a session is JSON");
        let base = of(SHORT);
        assert_ne!(base, of(&SHORT.replace("Every(5)", "Every(6)")));
        assert_ne!(base, of(&SHORT.replace("hours: 1)", "hours: 1), seed: 2")));
        assert_ne!(base, of(&SHORT.replace("hours: 1)", "hours: 1), model: (eta2: 0)")));
        assert_eq!(base, of(&SHORT.replace("\"short\"", "\"another word\"")));
        assert_eq!(base, of(&SHORT.replace("hours: 1)", "hours: 1), replay: (speed: 5)")));
        let private =
            |text: &str| of(&SHORT.replace("hours: 1)", &format!("hours: 1), privacy: ({text})")));
        assert_ne!(base, private("epsilon_c: 4"));
        assert_ne!(private("epsilon_c: 4"), private("epsilon_c: 4, sigma: Classic"));
        assert_eq!(
            base,
            private("epsilon_flag: 4, thrift: Window(3)"),
            "symbols come after training"
        );
    }
}
