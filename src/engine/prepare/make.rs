//! Makes the models of a session: proprietary ones, the federation, calibration, fits of the sites.

use std::sync::Mutex;

use super::fingerprint::json;
use super::stored::{Calibration, ClientCalibration};
use super::{FEDERATION, OnStage, PROPRIETARY, Stage, TrainingSpent, hooks};
use crate::base::rng;
use crate::engine::error::{PrepareError, TrainingReleases};
use crate::engine::influence::{self, SiteHalves, SiteTraces};
use crate::engine::vendor::{self, ClientVendor};
use crate::engine::{cost, decimation};
use crate::federation::{Federation, FederationError};
use crate::nn::checkpoint::{Checkpoint, ClientModels, Fingerprint};
use crate::nn::kernel::WeightsError;
use crate::nn::proprietary::VendorModel;
use crate::nn::train::TrainError;
use crate::nn::weights::LstmFc;
use crate::privacy::{Counted, FilterMemory, Provenance, Randomness, Trained};
use crate::session::Session;
use crate::site::fit;
use crate::site::grader::GraderFit;
use crate::site::informed::InformedFit;
use crate::site::material::{ClientMaterial, Material, SensorView};
use crate::site::messenger::{Messenger, Trace};
use crate::site::nominal;
use crate::site::prepared::SiteFit;
use crate::site::training::SiteData;
use crate::wire::{Sender, Wire};

pub(super) fn make(
    session: &Session,
    fingerprint: Fingerprint,
    wire: Box<dyn Wire>,
    on_stage: OnStage,
    released: &mut Option<TrainingReleases>,
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
        None => train_proprietary(session, (&material, 0), on_stage)?,
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
        let clients = names.iter().cloned().zip(spent.clients.iter().cloned()).collect();
        *released = Some(TrainingReleases { from: spent.from, clients });
        spent
    };
    let run = federation.run(&mut |progress| on_stage(Stage::Federation(progress)));
    release(run.as_ref().map_or(0, |outcome| outcome.history.rounds), &federation.released());
    let mut outcome = run?;
    let mut wire = federation.into_wire();
    let _ = on_stage(Stage::Calibrating);
    let graded = grade_all(&material, &models)?;
    let told: Vec<SiteTraces> = graded
        .iter()
        .zip(&models)
        .enumerate()
        .map(|(m, ((_, traces), models))| {
            let model = VendorModel::new(models.federated())?;
            Ok(SiteTraces { traces, sender: Sender::new(m, &model).ok() })
        })
        .collect::<Result<_, WeightsError>>()?;
    let period_s = material.layout.period_s;
    let (influences, halves) = influence::learn(session, &names, period_s, &told, wire.as_mut())?;
    for (released, more) in outcome.released.iter_mut().zip(&influences.released) {
        released.extend(more);
    }
    let spent = release(outcome.history.rounds, &outcome.released);
    let fits = site_fits(&material, graded, halves);
    let fits = SiteFit::to_bytes(&fits).map_err(PrepareError::Fits)?;
    let mut clients = Vec::new();
    let mut calibrations = Vec::new();
    let phis = outcome.weights.phi.clone();
    for ((client, models), phi) in material.clients.iter().zip(models).zip(phis) {
        calibrations.push(calibrate(client, &models, &phi)?);
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

/// The nominal distribution of a client's residuals with this φ.
pub(super) fn calibrate(
    client: &ClientMaterial,
    models: &ClientVendor,
    phi: &LstmFc,
) -> Result<ClientCalibration, PrepareError> {
    let too_short = || PrepareError::TooShort { client: client.name.clone() };
    let [c, a] = nominal::of(client, models.federated(), phi)?.ok_or_else(too_short)?;
    let other = models.sending.as_ref().map(|_| &models.watching);
    let moves = fit::moves(client, models.federated(), other, phi)?;
    Ok(ClientCalibration {
        used: client.view.used.clone(),
        names: client.view.names.clone(),
        left_out: client.left_out.clone(),
        c,
        a,
        memory: moves.map(|moves| FilterMemory::measured(&moves)).transpose()?,
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
    let of = |(place, (grader, _)): (usize, (GraderFit, _))| {
        site_fit((material, place), grader, summaries.next(), informed.next().flatten())
    };
    graded.into_iter().enumerate().map(of).collect()
}

/// What is kept of the site at a place of `material` beside its models.
pub(super) fn site_fit(
    (material, place): (&Material, usize),
    grader: GraderFit,
    summary: Option<Messenger>,
    informed: Option<(usize, InformedFit)>,
) -> SiteFit {
    let client = &material.clients[place];
    // A recording has no entry for a row without any value, and neither have its distances.
    let measured = |t: usize| client.is_measured(t);
    SiteFit {
        inputs: client.inputs.clone(),
        habits: fit::habits(client),
        seen: client.seen.clone(),
        grader,
        summary,
        informed: informed.map(|(by, fit)| (by, fit.keeping(measured))),
        calibrated: material.calibration_span,
    }
}

/// The name of a training in ledgers, which count each training once. The same seed draws the same
/// noise again, which tells nothing new; other noise does.
pub(super) fn training_name(
    session: &Session,
    fingerprint: Fingerprint,
) -> Result<String, FederationError> {
    Ok(match Provenance::of(session) {
        Provenance::Seeded => format!("{fingerprint}"),
        Provenance::OperatingSystem => {
            let once = Randomness::operating_system().word()?;
            format!("{fingerprint}-{once:016x}")
        }
    })
}

/// The releases of a training, for the ledgers of all runs that will use its models.
pub(super) fn spent(
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

pub(super) fn client_models(
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

/// Trains the models of clients; the first stands at the place `first` of the federation.
pub(super) fn train_proprietary(
    session: &Session,
    (material, first): (&Material, usize),
    on_stage: OnStage,
) -> Result<Vec<ClientVendor>, TrainError> {
    let threads = crate::base::threads::threads();
    let seed = rng::child(session.seed, PROPRIETARY);
    // Models learn on several threads, and each reports its own progress.
    let on_stage = Mutex::new(on_stage);
    vendor::train((material, first), &session.model, seed, threads, &|progress| {
        let mut on_stage = on_stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        on_stage(Stage::Proprietary(progress))
    })
}
