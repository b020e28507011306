//! One federation, learned on one plant with one seed and looked at from every side.
//!
//! Three studies ask about the same thing: how learning went (`convergence`), how states move
//! together (`correlation`) and what is left over (`residuals`). So a lesson answers all three at
//! once, and what was found is kept for all of them. Beside the federation stands the centralised
//! oracle, which sees the raw data of all clients; it is what the paper compares with, and what takes
//! most of the time.
//!
//! Nothing is noised here: what privacy costs is another study.

mod course;
mod flags;
mod ground;
mod maps;
mod norms;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use ndarray::{ArrayView2, Axis, concatenate};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(crate) use self::course::{Beside, Course, Loss, Pass};
pub(crate) use self::ground::{Ground, Plant};
pub(crate) use self::maps::Map;
pub(crate) use self::norms::{Condition, Norms, Trace};
use super::detection::flags::ModelFlags;
use super::frame::{Done, Job, Options, StudyError};
use crate::federation::convergence::Yardstick;
use crate::federation::states::{replay, series};
use crate::federation::variant::{Fitted, Variant};
use crate::federation::{FederationError, Hooks, Progress};
use crate::nn::oracle::Oracle;
use crate::nn::train::{self, proprietary};
use crate::nn::weights::ProprietaryWeights;
use crate::privacy::{Provenance, SigmaRule};
use crate::rng;
use crate::session::settings::{Federation, ModelSettings, PrivacySettings, Proprietary};
use crate::site::training::SiteData;

/// The weights of the server's gradient that are tried: none, the paper's, ten times that.
pub(crate) const ETA2: [f64; 3] = [0.0, 1.0, 10.0];

/// The weight of the method as published.
pub(crate) const PUBLISHED: f64 = 1.0;

/// Under this name lessons are kept, whichever study asked for them first.
const KEPT_AS: &str = "lesson";

/// Rows that were not fitted to and on which states are compared with the oracle's: two fifths to
/// align them, the rest to compare.
const COMPARED: usize = 5000;

/// Sources of a lesson's seed.
const MODELS: u64 = 0x4D;
const ORACLE: u64 = 0x4F;
const FEDERATION: u64 = 0x46;

/// How much is learned from, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Rows of the fit slice that the federation learns from, at most.
    pub(crate) rows: usize,
    /// Passes of the proprietary models, where they are not delivered.
    pub(crate) epochs: usize,
    /// Passes of Algorithm 1.
    pub(crate) passes: usize,
    /// Rows that the oracle learns from, at most.
    pub(crate) oracle_rows: usize,
    pub(crate) oracle_epochs: usize,
    /// Width of its network.
    pub(crate) oracle_width: usize,
}

impl Effort {
    /// The usual one. The paper gives the oracle ten passes; five take as long as all the rest.
    pub(crate) const FULL: Self = Self {
        rows: 12_000,
        epochs: 10,
        passes: 8,
        oracle_rows: 4000,
        oracle_epochs: 5,
        oracle_width: 128,
    };
    /// An answer within half a minute.
    pub(crate) const QUICK: Self = Self {
        rows: 2500,
        epochs: 3,
        passes: 4,
        oracle_rows: 1500,
        oracle_epochs: 2,
        oracle_width: 128,
    };

    fn of(options: &Options) -> Self {
        if options.quick { Self::QUICK } else { Self::FULL }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lesson {
    pub(crate) plant: Plant,
    /// Its seed, and that of all networks.
    pub(crate) seed: u64,
    /// How much is learned from.
    pub(crate) effort: Effort,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Findings {
    /// Names of the clients.
    pub(crate) clients: Vec<String>,
    /// How learning went, for each weight of the server's gradient.
    pub(crate) courses: Vec<Course>,
    /// How states move together, by model.
    pub(crate) maps: Vec<Map>,
    /// Mean |correlation| of true states of clients of two plants that have nothing in common but
    /// their kind; none where no state is known.
    pub(crate) strangers: Option<f64>,
    pub(crate) norms: Vec<Norms>,
    /// The norms step by step around the first anomaly.
    pub(crate) traces: Vec<Trace>,
    /// Flags on what each model leaves over; run lengths in steps.
    pub(crate) flags: Vec<ModelFlags>,
    /// Seconds between two steps.
    pub(crate) period_s: f64,
}

impl Findings {
    /// The course with this weight of the server's gradient.
    pub(crate) fn course(&self, eta2: f64) -> Option<&Course> {
        self.courses.iter().find(|course| (course.eta2 - eta2).abs() < 1e-9)
    }

    /// The map of a model.
    pub(crate) fn map(&self, model: &str) -> Option<&Map> {
        self.maps.iter().find(|map| map.model == model)
    }
}

/// The lessons of a study: every plant with every seed.
pub(crate) fn jobs(options: &Options) -> Vec<Job> {
    let plants: &[Plant] = if options.quick {
        &[Plant::Twin(2), Plant::BuiltIn]
    } else {
        &[Plant::Twin(2), Plant::Twin(4), Plant::BuiltIn]
    };
    plants.iter().flat_map(|&plant| jobs_of(plant, options)).collect()
}

/// What the oracle had, for the foot of a table that shows it.
pub(crate) fn oracle_note(options: &Options) -> String {
    let Effort { oracle_rows, oracle_epochs, oracle_width, .. } = Effort::of(options);
    format!(
        "The oracle sees the raw data of all clients: width {oracle_width}, {oracle_epochs} passes \
         over at most {oracle_rows} rows (the paper gives it ten passes)."
    )
}

/// The lessons of one plant.
pub(crate) fn jobs_of(plant: Plant, options: &Options) -> impl Iterator<Item = Job> {
    let effort = Effort::of(options);
    let seeds = options.seeds(3, 1).into_iter();
    seeds.map(move |seed| Lesson { plant, seed, effort }.job())
}

/// What was found, by family, in the order in which it was asked for.
pub(crate) fn by_family(done: &[Done]) -> Result<Vec<(String, Vec<Findings>)>, StudyError> {
    let mut families: Vec<(String, Vec<Findings>)> = Vec::new();
    for lesson in done {
        let (family, found): (String, Findings) = (lesson.input("family")?, lesson.read()?);
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, seeds)) => seeds.push(found),
            None => families.push((family, vec![found])),
        }
    }
    Ok(families)
}

impl Lesson {
    fn job(self) -> Job {
        let Self { plant, seed, effort } = self;
        let inputs = json!({ "family": plant.name(), "seed": seed, "effort": effort });
        Job::new(format!("{} seed {seed}", plant.name()), inputs, move || self.run())
            .costing(plant.clients() as u32)
            .kept_as(KEPT_AS)
    }

    pub(crate) fn run(&self) -> Result<Findings, StudyError> {
        let ground = self.plant.ground(self.seed, usize::MAX)?;
        let strangers = self.plant.strangers(self.seed, &ground)?;
        self.on(&ground, strangers)
    }

    /// The same on rows that are there already.
    fn on(&self, ground: &Ground, strangers: Option<f64>) -> Result<Findings, StudyError> {
        let Effort { rows, passes, oracle_rows, .. } = self.effort;
        let settings = ModelSettings {
            epochs: self.effort.epochs,
            federation: Federation::Online { passes },
            ..ModelSettings::default()
        };
        let fit = ground.fit.start..ground.fit.end.min(ground.fit.start + rows);
        let models = match &ground.delivered {
            Some(models) => models.clone(),
            None => models(ground, &settings, rng::child(self.seed, MODELS))?,
        };
        let oracle = {
            let rows = fit.start..fit.end.min(fit.start + oracle_rows);
            self.oracle(&ground.sites(&models, rows), &settings)?
        };

        let compared =
            ground.nominal.start..ground.nominal.end.min(ground.nominal.start + COMPARED);
        let held_out = ground.sites(&models, compared.clone());
        let yardstick = Yardstick::new(&held_out, &oracle, 2 * compared.len() / 5)?;
        let learning = ground.sites(&models, fit.clone());
        let seed = rng::child(self.seed, FEDERATION);
        let (mut courses, mut published) = (Vec::new(), None);
        for eta2 in ETA2 {
            let settings = ModelSettings { eta2, ..settings.clone() };
            let (course, weights) =
                course::follow(&learning, &held_out, &yardstick, &settings, seed)?;
            courses.push(course);
            if (eta2 - PUBLISHED).abs() < 1e-9 {
                published = Some(weights);
            }
        }
        let weights = published.expect("the published weight is among those tried");

        let all = ground.sites(&models, 0..ground.steps());
        let federation = replay(&all, &weights)?;
        let central = {
            let rows: Vec<ArrayView2<f32>> = all.iter().map(|site| site.rows).collect();
            let joint = concatenate(Axis(1), &rows).expect("rows of one plant are of one length");
            series(&ProprietaryWeights::Filter(oracle.filter.clone()), None, &joint.view())
                .map_err(FederationError::from)?
        };
        let maps = maps::maps(ground, &federation, &central);
        let residuals = norms::Residuals::of(&all, &federation, &central, &oracle.layout)?;
        Ok(Findings {
            clients: ground.names.clone(),
            courses,
            maps,
            strangers,
            norms: residuals.norms(ground, fit),
            traces: residuals.traces(ground),
            flags: flags::flags(ground, &federation, &central, &oracle.layout),
            period_s: ground.period_s,
        })
    }

    fn oracle(
        &self,
        sites: &[SiteData],
        settings: &ModelSettings,
    ) -> Result<Oracle, FederationError> {
        let Effort { oracle_epochs: epochs, oracle_width, .. } = self.effort;
        let settings = ModelSettings { oracle_width, epochs, ..settings.clone() };
        let privacy = PrivacySettings::default();
        let seed = rng::child(self.seed, ORACLE);
        let variant = Variant::CentralisedOracle;
        match variant.fit(sites, &settings, hooks(&privacy), seed, &mut go_on)? {
            Fitted::CentralisedOracle(oracle) => Ok(oracle),
            other => unreachable!("the oracle was asked for, not {other:?}"),
        }
    }
}

/// The clients' proprietary models, of the paper's form, from the fit slice.
pub(super) fn models(
    ground: &Ground,
    settings: &ModelSettings,
    seed: u64,
) -> Result<Vec<ProprietaryWeights>, FederationError> {
    let clients = ground.names.iter().enumerate();
    clients
        .map(|(m, name)| {
            let job = train::Job {
                client: name,
                kind: Proprietary::Paper,
                settings,
                fit: ground.view(m, ground.fit.clone()),
                held_out: ground.view(m, 0..0),
                seed: rng::child(seed, m as u64),
            };
            Ok(proprietary(&job, &|_| ControlFlow::Continue(()))?.weights)
        })
        .collect()
}

pub(super) fn hooks(open: &PrivacySettings) -> Hooks<'_> {
    Hooks { privacy: open, rule: SigmaRule::Analytic, provenance: Provenance::Seeded }
}

/// Learning goes on to its end.
pub(super) fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
