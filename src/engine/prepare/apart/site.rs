//! The models of one site, and how they are made.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{id_of, of_site, own, part_file};
use crate::base::rng;
use crate::engine::error::PrepareError;
use crate::engine::prepare::fingerprint::json;
use crate::engine::prepare::make::{
    calibrate, client_models, site_fit, spent, train_proprietary, training_name,
};
use crate::engine::prepare::stored::{ClientCalibration, header, site, unusable};
use crate::engine::prepare::{
    FEDERATION, OnStage, Prepared, PreparedSite, Stage, fingerprint, hooks,
};
use crate::engine::vendor::{self, ClientVendor};
use crate::engine::{cost, decimation};
use crate::federation::FederationError;
use crate::federation::apart::SiteHalf;
use crate::nn::checkpoint::{Checkpoint, Hasher};
use crate::nn::kernel::WeightsError;
use crate::nn::proprietary::VendorModel;
use crate::nn::weights::LstmFc;
use crate::privacy::{Counted, Protection, Provenance, Trained, What};
use crate::server::influence::learn;
use crate::session::Session;
use crate::site::INFLUENCE;
use crate::site::fit;
use crate::site::grader::GraderFit;
use crate::site::informed::{Answers, InformedFit};
use crate::site::line::Line;
use crate::site::material::Material;
use crate::site::messenger::{Messenger, Trace};
use crate::site::prepared::SiteFit;
use crate::wire::{Outgoing, Sender, ToSite};

/// Files of the models that were learned with others, and of those that a site made by itself.
const TRAINED: &str = "site";
const ALONE: &str = "alone";

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
        Self::of_file(session, client, TRAINED)
    }

    /// Those that this client made by itself before.
    pub(crate) fn kept_alone(session: &Session, client: &str) -> Option<Self> {
        Self::of_file(session, client, ALONE)
    }

    fn of_file(session: &Session, client: &str, part: &str) -> Option<Self> {
        let models = of_site(session, client).ok()?;
        let file = part_file(models, &format!("{part}-{client}"));
        Self::restore(Checkpoint::load(&file, Some(models)).ok()?, &file).ok()
    }

    fn restore(mut checkpoint: Checkpoint, file: &Path) -> Result<Self, PrepareError> {
        let StoredSite { id, every, from, trained, calibration } = header(&checkpoint, file)?;
        let fit = SiteFit::from_bytes(&checkpoint.fits)
            .map_err(|why| unusable(file, format!("the fit of the site cannot be read: {why}")))?
            .pop()
            .ok_or_else(|| unusable(file, "the site has no fit".to_owned()))?;
        let models = checkpoint.clients.pop();
        let models = models.ok_or_else(|| unusable(file, "the site has no models".to_owned()))?;
        Ok(Self { id, every, site: site(models, calibration, fit, file)?, from, trained })
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
    /// What the server foretold, in tier 2.
    foretold: Option<ServerPredictions>,
}

/// What the server foretold of both stretches.
struct ServerPredictions {
    explainer: Option<usize>,
    stretches: [Answers; 2],
    /// Messages that came.
    count: u64,
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
            foretold: None,
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
        self.foretold = None;
        if Provenance::of(session) == Provenance::OperatingSystem {
            self.broken += 1;
            let training = format!("{}-broken-{}", self.training, self.broken);
            let spent = spent(session, &training, &self.material, 0, &[released]);
            self.before.extend(spent.clients.into_iter().flatten());
        }
    }

    fn grade(&self) -> Result<(GraderFit, [Trace; 2]), WeightsError> {
        let ClientVendor { watching, sending, .. } = &self.models;
        fit::grader_with_traces(&self.material.clients[0], watching, sending.as_ref())
    }

    /// What it sends about its states so that the server learns who influences whom; none
    /// where nothing can be learned. It is released at every call.
    pub(crate) fn teach(&mut self, session: &Session) -> Result<Option<Lessons>, PrepareError> {
        let graded = match self.graded.take() {
            Some(graded) => graded,
            None => self.grade()?,
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

    /// Takes a part of what the server foretells of a stretch by the states of `explainer`.
    pub(crate) fn hear_foretold(
        &mut self,
        stretch: usize,
        explainer: Option<usize>,
        messages: &[ToSite],
    ) {
        let Some((_, traces)) = &self.graded else { return };
        let none = || ServerPredictions {
            explainer,
            stretches: [0, 1].map(|i: usize| Answers::none(traces[i].steps())),
            count: 0,
        };
        let foretold = self.foretold.get_or_insert_with(none);
        let Some(answers) = foretold.stretches.get_mut(stretch) else { return };
        for message in messages.iter().filter(|message| message.client() == self.place) {
            answers.hear(message);
            foretold.count += 1;
        }
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
        let mut released = [half.released(), std::mem::take(&mut self.taught)].concat();
        if let Some(ServerPredictions { count, .. }) = self.foretold {
            let protection = Protection::new(hooks(session).privacy, 1);
            let spend = protection.map_err(FederationError::from)?.gradient_spend();
            released.push(Counted { what: What::Gradient, spend, count });
        }
        self.keep(session, phi, (Some(id), rounds), &released, say)
    }

    /// Calibrates without any other client, and keeps everything: nothing is released. φ stays as it
    /// begins, which only the paper's method uses.
    pub(crate) fn alone(
        mut self,
        session: &Session,
        say: &mut dyn FnMut(&str),
    ) -> Result<SiteModels, PrepareError> {
        let phi = self.half(session)?.phi()?;
        let graded = self.grade()?;
        self.summary = Some(Messenger::fit(&graded.1[0]));
        self.graded = Some(graded);
        self.keep(session, phi, (None, 0), &[], say)
    }

    /// Calibrates and keeps everything. Without an `id` models are called by their digest.
    fn keep(
        mut self,
        session: &Session,
        phi: LstmFc,
        (id, rounds): (Option<u64>, usize),
        released: &[Counted],
        say: &mut dyn FnMut(&str),
    ) -> Result<SiteModels, PrepareError> {
        let client = &self.material.clients[0];
        let too_short = || PrepareError::TooShort { client: client.name.clone() };
        let (grader, traces) = self.graded.take().ok_or_else(too_short)?;
        let calibration = calibrate(client, &self.models, &phi)?;
        let informed =
            self.foretold.take().and_then(|ServerPredictions { explainer, stretches, .. }| {
                let [fit, calibration] = [0, 1].map(|i: usize| (&traces[i], &stretches[i]));
                let states = self.summary.as_ref()?.states();
                Some((explainer?, InformedFit::new(states, fit, calibration)))
            });
        let fit = site_fit((&self.material, 0), grader, self.summary.take(), informed);
        let spent = spent(session, &self.training, &self.material, rounds, &[released.to_vec()]);
        let mut trained = self.before;
        trained.extend(spent.clients.into_iter().flatten());
        let models = of_site(session, &client.name)?;
        let part = if id.is_some() { TRAINED } else { ALONE };
        let file = part_file(models, &format!("{part}-{}", client.name));
        let mut stored = StoredSite {
            id: id.unwrap_or_default(),
            every: self.every,
            from: spent.from,
            trained,
            calibration,
        };
        let mut checkpoint = Checkpoint {
            fingerprint: models,
            clients: vec![client_models(
                client.name.clone(),
                &client.view,
                self.models.clone(),
                phi,
            )],
            server: None,
            oracle: None,
            thresholds: json("the calibration", &stored.calibration)?,
            fits: SiteFit::to_bytes(std::slice::from_ref(&fit)).map_err(PrepareError::Fits)?,
        };
        if id.is_none() {
            stored.id = digest(&checkpoint.to_file(&file)?);
        }
        checkpoint.thresholds = json("the calibration", &stored)?;
        SiteModels::restore(super::keep(&checkpoint, &file, say)?, &file)
    }
}

/// What models are called that were learned with nobody else: the digest of all that they are.
fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = Hasher::new();
    hasher.bytes(bytes);
    hasher.finish().0 as u64
}
